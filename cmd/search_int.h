/* What the commands that print a best plan share. */
#pragma once

#include "cmd/cmd.h"

/* ---- search_run.c ---------------------------------------------------------------------------- */

/* Searches as the options say.  Close *s and release *out in any case. */
int search_run(const struct options *o, struct session *s, struct tune_report *out,
               struct status *st);

/* Notes why a search ended without a plan or could go on; returns its exit status. */
int search_end(const struct options *o, const struct tune_report *r);

/* ---- search_precision.c ---------------------------------------------------------------------- */

/* Searches plans of --precision, or of each precision that --error allows, compares them, and
 * prints the fastest. */
int search_precisions(const struct options *o, struct status *st);

/* ---- search_output.c: the best plan, explained ----------------------------------------------- */

json_t *best_json(const struct workload *w, const struct db_best *b);

/* Prints the report in the format of the options.  relaxed: a JSON array of what the study and the
 * request differ in; top: the rows of --top, or null; precisions: a row for each that was searched,
 * or null.  All are taken over. */
void search_print(const struct options *o, const struct workload *w, enum target_kind target,
                  const struct tune_report *r, json_t *relaxed, json_t *top, json_t *precisions);

/* ---- search_tables.c ------------------------------------------------------------------------- */

/* Prints the plans of --top. */
void top_print(enum format format, const json_t *top);
/* Prints a row for each precision that was searched. */
void precisions_print(const json_t *precisions);

/* ---- verdict.c: what a search found, in a sentence, and what to do next ---------------------- */

/* Prints "verdict" and how the best plan compares with each baseline; first, if a time is unstable,
 * that there is no winner, and what to do.  elsewhere: the times are of another device. */
void verdict_print(const struct options *o, const struct tune_report *r, bool elsewhere);

/* Why the times cannot be relied on, and of which plan that is; "" if they can. */
const char *verdict_doubt(const struct tune_report *r, unsigned *value);
const char *verdict_word(const struct tune_report *r); /* "faster", "a tie", ... */

/* ---- next.c: commands to go on with ---------------------------------------------------------- */

/* A command to go on with: its name and operands, the options that it takes over, what follows. */
struct next_step {
    const char *command;
    option_bits options;
    const char *more;
};

/* Prints the steps, if people read the output on a terminal. */
void next_print(const struct options *o, const struct next_step *steps, int count);
