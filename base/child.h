/* The section of base.h on processes that this one starts.  Include base.h. */
#pragma once

/* ---- child.c: processes that this one starts ------------------------------------------------- */

/* Before a child is started that is waited for: if the program that started this one ignores
 * SIGCHLD, so does this one, and the system does not keep how a child ended. */
void child_keep_ends(void);

/* What a child is, as far as its environment goes.  A worker also answers questions. */
enum child_kind { CHILD_COMPILER, CHILD_WORKER, CHILD_KIND_COUNT };

/* The environment of a child: what such a program needs of this one's, and nothing else.  So no
 * variable of the user's makes its libraries print or changes what it measures, and a candidate
 * finds no secret.  Messages are in the C locale.  FUSEPLAN_PASS names further variables,
 * between blanks; a name that ends with '*' stands for all that begin with the rest.  own: a
 * variable in the place of the user's, "TMPDIR=...", or null.  Null-terminated; the caller frees
 * the array alone, whose texts are borrowed. */
char **child_environment(enum child_kind kind, char *own);

/* Appends "; LD_LIBRARY_PATH, CPATH are set: are they right" for the variables in such an
 * environment that may be why a child failed, which said this; nothing where there is none. */
void child_suspects(enum child_kind kind, const char *said, struct buf *out);
