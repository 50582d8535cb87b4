/* What the files of the command line's options share. */
#ifndef FUSEPLAN_CMD_OPTIONS_INT_H
#define FUSEPLAN_CMD_OPTIONS_INT_H

#include "cmd/cmd.h"

/* ---- option_table.c: each option, and how its text becomes a field --------------------------- */

/* text: null where the option takes none. */
int option_set(struct options *o, enum option_id id, const char *text, struct status *st);

/* ---- option_words.c: what may follow an option, blanks between ------------------------------- */

/* In the order of their enumerations. */
void words_format(struct buf *out);
void words_init(struct buf *out);
void words_feature(struct buf *out);
void words_rigor(struct buf *out);

void words_target(struct buf *out);
void words_arch(struct buf *out);
void words_dtype(struct buf *out);
void words_strategy(struct buf *out);

#endif
