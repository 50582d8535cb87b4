/* search, continued: what a study holds, and what it says of plans. */
#pragma once

#include "search/strategy.h"

/* ---- record.c: trials of bench as rows of db ------------------------------------------------- */

/* The study of a bench's workload and target; creates it if it is new. */
int study_open(const struct bench *b, struct db *db, int64_t *study, struct status *st);

/* Stores a trial of a segment, for which c has one choice, or of a plan. */
int trial_store(struct db *db, int64_t study, enum db_trial_kind kind, const struct candidate *c,
                const struct trial *t, const char *search_id, struct status *st);

/* Stores the finals of a comparison: all of them or nothing.  comparison: see struct db_trial. */
int comparison_store(struct db *db, int64_t study, const struct candidate *c, const struct trial *t,
                     int count, const char *comparison, const char *search_id, struct status *st);

/* ---- slots.c, rates.c: each segment alone, as stored ----------------------------------------- */

struct slot_record {
    char *impl, *schedule; /* of the fastest choice, owned; null if none ran */
    struct interval us;    /* one launch */
    char *reason;          /* of the last failure, owned; null if none failed */
};

int slot_records_read(struct db *db, int64_t study, enum target_kind target,
                      struct slot_record out[SLOT_COUNT], struct status *st);
void slot_records_release(struct slot_record slots[SLOT_COUNT]);

/* The rates of the roofline: the device's peaks if a trial has them, else the highest that a
 * segment reached, of times in a precision; NaN if unknown. */
int study_rates(struct db *db, int64_t study, const struct segment_times *times,
                const struct workload *w, unsigned precision, struct limits *out, bool *of_device,
                struct status *st);

/* The roofline (Williams, Waterman, Patterson 2009): work takes at least the time of its arithmetic
 * at the peak rate, and of its bytes at the memory's.  In microseconds; NaN if unknown. */
double least_us(const struct work *work, const struct limits *rates, bool *memory_bound);

/* "code: reason" of a trial that did not run, as UTF-8; the caller frees it. */
char *trial_reason(const struct db_trial *row);

/* ---- candidate.c: how a plan runs ----------------------------------------------------------- */

/* What is known of choices; all borrowed. */
struct choice_source {
    struct db *db; /* null: nothing is, and defaults run */
    int64_t study;
    const struct build_target *target;
    const struct arch_list *archs; /* only choices that also run on these count; may be null */
    bool retry_failed;             /* stored failures do not count */
    bool alone;                    /* comparisons of plans do not count */
};

/* Each segment of a plan as it ran in the newest comparison of a search; else by the fastest choice
 * alone; else by a default.  A segment that nothing implements is left out, so that out->count is
 * below the number of segments; one that is known to fail is no error here.  out->packed is false:
 * the caller sets it. */
int study_candidate(const struct choice_source *from, struct plan p, struct candidate *out,
                    struct status *st);

/* The index of the choice of a candidate that is stored as this one; -1: there is none, or another
 * version stored it. */
int candidate_find(const struct candidate *c, enum target_kind target,
                   const struct db_choice *stored);

/* A best plan with its choices.  -1 with the reason where this version does not know one of them,
 * or the target does not run it. */
int candidate_of_best(const struct db_best *b, const struct build_target *target,
                      struct candidate *out, struct status *st);

/* ---- learned.c: what a study has taught ------------------------------------------------------ */

/* Adds the plans stored for a study to a history. */
int study_history(struct db *db, int64_t study, struct history *out, struct status *st);

/* The fastest stored time of each segment alone. */
int study_segments(struct db *db, int64_t study, const struct build_target *target,
                   struct segment_times *out, struct status *st);

/* A model is trained whenever it is asked: a workload's on the plans of its study.  Of a file the
 * plans and times are stored, not trees. */
struct learned {
    struct model *model;        /* owned */
    struct model_report report; /* NaN if there are too few plans to hold some out, but for count */
};

/* Trains a model on the plans of a file, judges it on held-out plans and stores it.  Release *out
 * in any case. */
int model_learn(struct db *db, const char *name, const struct model_options *options,
                const struct model_data *data, struct learned *out, struct status *st);
void learned_release(struct learned *l);

/* Trains one on all plans of a study, with their segments' times, which a prediction needs too.
 * judge: also on held-out plans.  Release *out in any case. */
int study_learn(struct db *db, int64_t study, const struct build_target *target,
                const struct model_options *options, bool judge, struct segment_times *times,
                struct learned *out, struct status *st);

/* The model of a file, trained again.  STATUS_NOT_FOUND if there is none of that name. */
int model_fetch(struct db *db, const char *name, struct model **out, struct status *st);

/* ---- top.c: the fastest plans known ---------------------------------------------------------- */

struct top_plan {
    struct plan plan;
    struct interval ms;
    bool compared;     /* the time is of the comparison that the best plan won, else of a search */
    double times_best; /* the time over the best plan's of the same kind, by which plans rank */
};

/* Fills *out with at most `most` plans of a study, and *count with their number: first the best
 * plan known, then the others by their time.  Times of the comparison and of the search are not
 * compared with one another: both count as multiples of the best plan's own time there. */
int study_top(struct db *db, int64_t study, const struct db_best *best, int most,
              struct top_plan *out, int *count, struct status *st);

/* ---- baselines.c: plans that others are compared with -------------------------------------------
 *
 * A search measures its baselines first, in its space or not, and times them with its finalists. */

enum { BASELINES_MAX = 8, UNSTABLE_SIZE = 320 };

struct baselines {
    int count;
    struct plan plans[BASELINES_MAX]; /* distinct */
};
bool baselines_have(const struct baselines *b, struct plan p);
void baselines_text(const struct baselines *b, struct buf *out); /* appends "43690, 41115" */

/* The baselines of a stored search; *out stays as it is if the search's options name none. */
void baselines_of_search(const char *options_json, struct baselines *out);

/* A baseline beside one plan. */
struct baseline_time {
    struct plan plan;
    struct interval ms;      /* NaN if the baseline has no time */
    struct interval speedup; /* baseline's time / plan's; NaN unless both were timed side by side */
    struct status reason;    /* why the baseline has no time */
    double tie;              /* a speed-up this near to 1 is a tie, too */
    char compared_at[CLOCK_UTC_SIZE]; /* empty if the speed-up is NaN */
    char unstable[UNSTABLE_SIZE];     /* see plan_unstable() */
};
bool baseline_ties(const struct baseline_time *b); /* the speed-up's interval holds 1, or see tie */

/* plan: the plan's trial of the same bench_compare(); null: there is none, and no speed-up. */
struct baseline_time baseline_beside(struct plan p, const struct trial *baseline,
                                     const struct trial *plan, const char *compared_at);

/* Reads the fastest of the plans that ran in the finals as long as the best one, beside it; no
 * times where there is none. */
int runner_up_read(struct db *db, int64_t study, const struct db_best *best,
                   struct baseline_time *out, struct status *st);

/* Reads each wanted baseline: its final of the comparison that the best plan won, or else its own
 * trial. */
int baselines_read(struct db *db, int64_t study, const struct db_best *best,
                   const struct baselines *wanted, struct baseline_time out[BASELINES_MAX],
                   struct status *st);

/* ---- steady.c: whether a plan's time can be relied on (docs/measuring.md, noise) ------------- */

/* The trial of the least median of those with the most samples, without `but`, which may be null;
 * null if none ran.  One with fewer was slower for certain, perhaps at a higher clock. */
const struct trial *trial_fastest(const struct trial *trials, int count, const struct trial *but);

/* Appends why a final is unstable; nothing if it is not.  beside: another plan of its rounds, or
 * null.  in_search: NaN if unknown. */
void unstable_text(const struct trial *final, const struct trial *beside, struct interval in_search,
                   struct buf *out);

/* Writes why a plan's final is unstable; "" if it is not, or if the comparison is empty. */
int plan_unstable(struct db *db, int64_t study, int value, const char *comparison,
                  char out[UNSTABLE_SIZE], struct status *st);

/* Reads what the device was like when a plan was timed, in a comparison or, if that is empty, in
 * its search. */
int plan_conditions(struct db *db, int64_t study, int value, const char *comparison,
                    struct conditions *out, struct status *st);
