/* cmd, continued: plans that options name, where they are known, and baselines. */
#pragma once

#include "cmd/cmd.h"

/* ---- workload.c, session.c: a study of the database or of a pack ----------------------------- */

/* The study of a workload and the database that has it. */
struct found_study {
    struct db *db; /* owned; null: none is found */
    int64_t study;
    char *pack; /* as that of struct session */
};
void found_study_close(struct found_study *f);

/* Finds a study to read, for a command that does without: 0 where nothing is known.  Close *out in
 * any case. */
int study_find_known(const struct options *o, enum scope scope, struct target_name target,
                     const struct workload *w, struct found_study *out, struct status *st);

/* ---- packs.c: best plans that come with the program ---------------------------------------------
 *
 * A pack is a text of `db export --pack`. */

/* Finds the workload in packs, as measured on a device of the model of the one here, if the plan's
 * choices are valid here; of several the one measured last.  out->db is null where there is none.
 * A pack that cannot be read is noted.  Close *out in any case. */
void packs_find(const struct options *o, struct target_name target, const struct workload *w,
                struct found_study *out);

/* Opens a pack, or what it has of a workload, as a database that is gone once it is closed.
 * STATUS_USAGE names file and line. */
int pack_open(const char *path, const struct workload *only, struct db **out, struct status *st);

/* Notes that `what`, such as "it is", is from a pack. */
void pack_note(const struct options *o, const char *what, const char *pack,
               const struct db_study *s, const struct db_best *b, const struct fingerprint *here);

/* ---- best.c: plans as operands --------------------------------------------------------------- */

#define BEST_WORD    "best"
#define EITHER_WORD  "best,default" /* of export and generate */
#define DEFAULT_WORD "default"

/* The best plan known of the options' workload. */
struct best_plan {
    bool known;
    struct plan plan;
    bool padded;      /* with lengths: it is faster with rows of padding */
    double median_ms; /* stored */
};

/* Finds it, and says which one it is, if an operand or --baseline is "best"; else out->known is
 * false.  STATUS_NOT_FOUND if none is known. */
int session_best(const struct options *o, enum scope scope, struct best_plan *out,
                 struct status *st);

/* Reads a plan: a value, "default" or, where it is known, "best".  The default plan is the one that
 * is expected to be the fastest, by default schedules. */
int plan_from_text(const struct options *o, const char *text, const struct best_plan *best,
                   struct plan *out, struct status *st);

/* db_best() of the open study; a failure names the workloads that are known. */
int best_of_study(const struct session *s, struct db_best *out, struct status *st);

/* Appends "best" and "default", for lists of operands. */
void words_plans(struct buf *words);

/* ---- baselines.c: plans that the others are compared with ------------------------------------ */

int baselines_from_options(const struct options *o, const struct best_plan *best,
                           struct baselines *out, struct status *st);

/* Reads the baselines of the search that measured the best plan; the default baselines if it names
 * none. */
int baselines_of_best(struct db *db, int64_t study, const struct db_best *best,
                      struct baseline_time out[BASELINES_MAX], int *count, struct status *st);

json_t *baselines_json(const struct baseline_time *b, int count);

/* Appends how a plan compares with a baseline: "1.07 [1.05, 1.11] times as fast as 43690 (...)".
 * same: the plan is the baseline itself. */
void baseline_ratio(const struct baseline_time *b, bool same, struct buf *out);
void unstable_print(unsigned value, const char *why); /* why its time is, unless that is empty */

/* Notes why a baseline has no time; nothing if it has one. */
void baseline_note(const struct options *o, const struct baseline_time *b);

/* ---- sizes.c: a line for each size, after all else ----------------------------------------------
 *
 * Where a list of sizes is given people get a table of them at the end; Markdown is this table. */

/* A plan of a workload with its time, beside at most two baselines.  value: -1 and ms: NaN where no
 * plan ran.  verdict: a word or two. */
void sizes_add(const struct workload *w, int value, double ms,
               const struct baseline_time *baselines, int count, const char *verdict);

/* A row that says that nothing is known of a size, of options of one. */
void sizes_add_unknown(const struct options *one);

/* Prints the table, if it has to be, and forgets it. */
void sizes_end(const struct options *o);
