/* The section of base.h on processes that this one starts.  Include base.h. */
#ifndef FUSEPLAN_CHILD_H
#define FUSEPLAN_CHILD_H

/* ---- child.c: processes that this one starts ------------------------------------------------- */

/* Before a child is started that is waited for: if the program that started this one ignores
 * SIGCHLD, so does this one, and the system does not keep how a child ended. */
void child_keep_ends(void);

#endif
