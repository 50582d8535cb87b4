/* Shared by the files that parse options. */
#pragma once

#include "cmd/cmd.h"

/* ---- option_table.c: the options and their parsers ------------------------------------------- */

/* Parses an option's argument into its field.  what: "--batch", for messages.  text: null if there
 * is none. */
int option_set(struct options *o, enum option_id id, const char *what, const char *text,
               struct status *st);

/* Appends a field's value as the option takes it; nothing where it has none, or has a list. */
void option_text(const struct options *o, enum option_id id, struct buf *out);

/* ---- option_words.c: the arguments that options take ----------------------------------------- */

/* In the order of the enumeration or table that the option's field indexes. */
void words_format(struct buf *out);
void words_init(struct buf *out);
void words_norm(struct buf *out);
void words_norm_kind(struct buf *out);
void words_activation(struct buf *out);
void words_precision(struct buf *out);
void words_rigor(struct buf *out);
void words_dtype(struct buf *out);
void words_strategy(struct buf *out);
void words_op(struct buf *out);

/* ---- preset.c: known encoders ---------------------------------------------------------------- */

void words_preset(struct buf *out);

/* Sets what --preset or --model says and no option does. */
int preset_apply(struct options *o, struct status *st);

/* The kind of layer that the options name, a preset's or a model's already among them. */
const struct chain *chain_from_options(const struct options *o);

/* ---- option_words.c: other words ------------------------------------------------------------- */

void words_none(struct buf *out);
void words_target(struct buf *out);
void words_arch(struct buf *out);

/* Appends what an option does, with its words in the place of a '%'. */
void option_help(const struct option_info *info, struct buf *out);

/* ---- settings.c: what files set -------------------------------------------------------------- */

/* Reads fuseplan.conf of the user and of the current directory, and sets the options that the
 * command takes and that its line does not give, and the variables of places that are not set.
 * FUSEPLAN_CONFIG may say otherwise.  STATUS_USAGE names file and line. */
int settings_apply(struct options *o, const struct command *c, struct status *st);

/* Appends "--batch 8 (fuseplan.conf:2), --gate (fuseplan.conf:3)": all of o->from_files. */
void settings_text(const struct options *o, struct buf *out);
void settings_free(struct settings *s);

/* ---- each.c: several workloads at once ------------------------------------------------------- */

/* How many workloads the lists of sizes make; 0: a size is missing. */
static inline int options_workloads(const struct options *o)
{
    return o->batches.count * o->seq_lens.count;
}

/* The options of one of the workloads, 0..options_workloads() - 1. */
struct options each_part(const struct options *o, int part);

/* STATUS_USAGE if several sizes are given to a command that takes one. */
int each_check(const struct options *o, const struct command *c, struct status *st);

/* Calls step() for each batch size with each sequence length.  Where one has no result, the others
 * follow; other failures end it.  Returns the highest exit status, or -1 if there is one workload.
 * command: its name, for messages. */
typedef int each_step(void *ctx, const struct options *one, struct status *st);
int each_workload(const struct options *o, const char *command, each_step *step, void *ctx,
                  struct status *st);

/* Runs a command for each batch size and each sequence length, as each_workload() does, and prints
 * the outputs as one. */
int each_run(const struct options *o, const struct command *c, struct status *st);

/* In output.c: several outputs, one a workload, become one: an array in JSON, one header in CSV. */
void output_parts_begin(enum format format);
void output_part(const struct options *o);
void output_parts_end(void);

/* ---- help.c: --help, of which cmd/pages.sh makes the manual pages ---------------------------- */

void help_program(FILE *out);
void help_command(const struct command *c, bool all, FILE *out); /* all: rare options too */

/* ---- complete.c ------------------------------------------------------------------------------ */

/* Prints what the last of a command line's words can be, a line each: "word<TAB>description", or
 * ":files<TAB>before<TAB>path" (":dirs") where it is a path with a text before it.  argv: the words
 * after the program's name.  Returns the exit status. */
int complete(int argc, char **argv);
