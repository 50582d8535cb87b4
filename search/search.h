/* search: picks the candidates worth measuring.
 *
 * Strategies see only an evaluator, so they run on a GPU, on a recorded space or on a made-up one.
 * All hand on struct plan: values are read and written where rows, files and options are.
 * To add a strategy: a file and a row in strategies[] (strategy.c). */
#ifndef FUSEPLAN_SEARCH_H
#define FUSEPLAN_SEARCH_H

#include "bench/bench.h"
#include "codegen/codegen.h"
#include "db/db.h"
#include "model/model.h"

/* ---- evaluator: what a strategy's proposals are measured with -------------------------------- */

struct outcome {
    enum trial_status status;
    double ms; /* ok: the median; censored: a lower bound; failed: NaN */
};

struct evaluator {
    /* Measures a plan; 0 with *out filled, -1 where the search must end. */
    int (*measure)(void *ctx, struct plan p, struct outcome *out, struct status *st);
    /* Times of segments alone, growing while the search runs; may be null. */
    const struct segment_times *(*segments)(void *ctx);
    /* Whether a plan is known to fail, because a segment of it did: it is not measured. May be
     * null. */
    bool (*fails)(void *ctx, struct plan p);
    double (*now)(void *ctx); /* seconds; a test's clock is a made-up one */
    void *ctx;
};

/* ---- history: what is known of a space ------------------------------------------------------- */

struct observation {
    struct plan plan;
    struct outcome outcome;
};

struct history {               /* all zero: empty */
    struct observation *items; /* in the order measured, owned */
    int count, cap;
    uint64_t seen[PLAN_KEYS / 64]; /* bit k: the plan of key k is among items */
};

void history_add(struct history *h, struct plan p, struct outcome o);
void history_release(struct history *h);
bool history_has(const struct history *h, struct plan p);
int history_best(const struct history *h); /* index of the fastest plan; -1 where none is ok */
int history_count_in(const struct history *h, const struct plan *space, int space_count);

/* ---- strategy.c: the table ------------------------------------------------------------------- */

struct strategy_context {
    const struct plan *space; /* that may be proposed, in plan_space()'s order: none of history's */
    int space_count;          /* at least 1 */
    const struct history *history;
    const struct segment_times *segments; /* may be null */
    struct rng *rng;
    double quantile;
    uint64_t seed;
};

enum { PROPOSAL_MAX = 8 }; /* plans measured before a strategy learns again */

struct proposal {
    int count; /* 1..max */
    struct plan plans[PROPOSAL_MAX];
    double expected_ms; /* the fastest time expected in the space; NaN where it expects nothing */
};

struct strategy {
    const char *name, *summary;
    /* Fills *out with distinct plans of the space, at most max <= PROPOSAL_MAX. */
    int (*propose)(const struct strategy_context *c, int max, struct proposal *out,
                   struct status *st);
};
extern const struct strategy strategies[];
extern const int strategy_count;
const struct strategy *strategy_find(const char *name);

/* ---- loop.c: propose, measure, learn, stop ------------------------------------------------------
 *
 * Converged means: the last CONVERGED_PATIENCE plans have not improved the best by CONVERGED_GAIN,
 * and the strategy expects no plan of the space to be that much faster.  The rule looks at the
 * history alone, so that a search run again stops where it stopped before. */

enum { CONVERGED_PATIENCE = 40 }; /* five batches; and so no search converges below 41 plans */
#define CONVERGED_GAIN 0.002

struct search_options {
    const struct strategy *strategy;
    unsigned space_lo, space_hi;
    int budget;          /* distinct plans with a stored result, old ones counted; 0: no limit */
    double time_limit_s; /* 0: no limit */
    uint64_t seed;
    double quantile;
    const volatile sig_atomic_t *stop;
};

enum search_stop {
    STOP_BUDGET,
    STOP_TIME,
    STOP_CONVERGED,
    STOP_SPACE,
    STOP_INTERRUPTED,
    STOP_COUNT
};
extern const char *const search_stop_names[STOP_COUNT]; /* "budget", ... */

struct search_result {
    enum search_stop stopped_by;
    int new_trials;
    int best; /* index into the history, -1 where no plan is ok */
};

/* Called after each measurement; for progress and tests. */
typedef void search_progress(void *ctx, const struct history *h, const struct observation *latest);

/* history may hold earlier results (resume): they count against the budget and are not measured
 * again.  Returns 0 also where the user interrupts. */
int search_loop(const struct search_options *o, const struct evaluator *e, struct history *h,
                search_progress *progress, void *ctx, struct search_result *out, struct status *st);

/* ---- baselines.c: plans that the others are compared with --------------------------------------
 *
 * A search measures them first, whatever its space, and times them beside its finalists. */

enum { BASELINES_MAX = 8 };

struct baselines {
    int count;
    struct plan plans[BASELINES_MAX]; /* distinct */
};
bool baselines_have(const struct baselines *b, struct plan p);
void baselines_text(const struct baselines *b, struct buf *out); /* appends "43690, 41115" */

/* What a stored search was asked for; *out stays as it is where its options do not say. */
void baselines_of_search(const char *options_json, struct baselines *out);

/* A baseline beside one plan. */
struct baseline_time {
    struct plan plan;
    struct interval ms;      /* NaN where it gave no time */
    struct interval speedup; /* how many times as fast the plan is; NaN unless both were timed side
                                by side */
    struct status reason;    /* why it gave no time */
    char compared_at[CLOCK_UTC_SIZE]; /* empty where the speed-up is NaN */
};
bool baseline_ties(const struct baseline_time *b); /* the speed-up's interval holds 1 */

/* plan: timed in the same bench_compare(); null: there is none. */
struct baseline_time baseline_beside(struct plan p, const struct trial *baseline,
                                     const struct trial *plan, const char *compared_at);

/* What is stored: each wanted baseline in the comparison that the best plan won, else its own
 * trial. */
int baselines_read(struct db *db, int64_t study, const struct db_best *best,
                   const struct baselines *wanted, struct baseline_time out[BASELINES_MAX],
                   struct status *st);

/* ---- tune.c: a search on a real target, stored as it goes ---------------------------------------
 *
 * Stage 1 builds and times segments alone and keeps each one's fastest choice; stage 2 runs a
 * strategy over plans; then the finalists and the baselines are timed side by side.
 *
 * An exhaustive search measures every plan, in an order drawn at random so that a part of the space
 * is a fair sample of it and drift of the machine follows no value; none is censored, all run the
 * choices that stage 1 ended with, and the best few hundred are timed again side by side before the
 * finalists are. */

enum rigor { RIGOR_MEASURE, RIGOR_EXHAUSTIVE, RIGOR_COUNT };
extern const char *const rigor_names[RIGOR_COUNT];

struct tune_options {
    struct search_options search; /* the time limit covers everything; an exhaustive search asks no
                                     strategy */
    enum rigor rigor;
    struct baselines baselines; /* measured even where the budget is spent */
    double (*clock)(void);      /* in seconds, never backwards; null: clock_seconds() */
    /* Lines for people, one a phase; and a ticker for a terminal.  Either may be null. */
    void (*say)(void *ctx, const char *line);
    void (*tick)(void *ctx, const char *line);
    void *ctx;
};

struct tune_report {
    struct db_best best; /* value -1 where no plan is known to run */
    int baseline_count;
    struct baseline_time baselines[BASELINES_MAX];
    /* Distinct plans: measured now, stored in all; of these failed and censored; to choose from;
     * of those stored. */
    int new_trials, total_trials, failed_trials, censored_trials, space, space_trials;
    const char *stopped_by; /* of search_stop_names */
    double seconds;
    /* What the model says of the plans not measured: share of the space that it expects to be
     * faster than the best, and its Spearman correlation on held-out plans.  NaN where unknown. */
    double model_spearman, expected_faster_share;
};

/* Resumes by itself: whatever the database holds for this study is not measured again.  An
 * interrupt is a result too: returns 0 with stopped_by "interrupted". */
int tune(struct bench *b, struct db *db, const struct tune_options *o, struct tune_report *out,
         struct status *st);
void tune_report_release(struct tune_report *r);

/* ---- space.c, space_write.c: recorded spaces ----------------------------------------------------
 *
 * A study's plans and segments in one small file, so that strategies run on what was measured once
 * without a device: docs/recorded-spaces.md describes the format. */

/* Appends the file's bytes to out: the plans of lo..hi that are stored; the same study gives the
 * same bytes.  workload_json: of its workload, as query prints it.  STATUS_NOT_FOUND where no plan
 * of the space works. */
int space_export(struct db *db, int64_t study, enum target_kind target, const char *workload_json,
                 unsigned lo, unsigned hi, struct buf *out, struct status *st);

struct recorded_space {
    char *workload;           /* JSON, owned */
    struct db_target target;  /* owned texts */
    char *protocol;           /* owned */
    char *measured_utc;       /* owned */
    unsigned lo, hi;          /* values that were to choose from */
    int count;                /* plans, in the file's order */
    struct plan *plans;       /* (count) owned */
    struct outcome *outcomes; /* (count) owned */
    int best;                 /* index of the best plan known; what is faster by its outcome is so
                                 by noise */
    struct segment_times segments;
    bool failed[SLOT_COUNT]; /* alone */
    int at[PLAN_KEYS];       /* index of the plan of a key, -1 where it is not among them */
};

/* STATUS_USAGE where the file is damaged or none of this format. */
int recorded_space_read(const char *path, struct recorded_space *out, struct status *st);
void recorded_space_release(struct recorded_space *s);

/* Gives the recorded outcomes; its clock stands still.  A plan that was not recorded is
 * STATUS_NOT_FOUND. */
struct evaluator recorded_space_evaluator(struct recorded_space *s);

/* ---- record.c: bench's words as db's rows ---------------------------------------------------- */

/* The key of a study; the texts live as long as *text and b do. */
void study_of(const struct bench *b, struct db_workload *w, struct db_target *t, struct buf *text);
int study_open(const struct bench *b, struct db *db, int64_t *study, struct status *st);

/* c holds one choice for a segment, a whole plan's for the other kinds. */
int trial_store(struct db *db, int64_t study, enum db_trial_kind kind, const struct candidate *c,
                const struct trial *t, const char *search_id, struct status *st);

/* Many in one transaction: all of a comparison is stored or nothing. */
int trials_store(struct db *db, int64_t study, enum db_trial_kind kind, const struct candidate *c,
                 const struct trial *t, int count, const char *search_id, struct status *st);

/* ---- learned.c: what a study has taught ------------------------------------------------------ */

/* All plans stored for a study; add to an empty history. */
int study_history(struct db *db, int64_t study, struct history *out, struct status *st);

/* The fastest stored time of each segment alone. */
int study_segments(struct db *db, int64_t study, const struct build_target *target,
                   struct segment_times *out, struct status *st);

/* The plan with the fastest stored choice of each segment, the default where none is known. */
int study_candidate(struct db *db, int64_t study, const struct build_target *target, struct plan p,
                    struct candidate *out, struct status *st);

/* The same of choices that run on every architecture of a list beside the target's own. */
int study_candidate_for(struct db *db, int64_t study, const struct build_target *target,
                        const struct arch_list *archs, struct plan p, struct candidate *out,
                        struct status *st);

/* Models kept in the database, regressor and classifier in one blob: a study's own, which tune()
 * trains on all its plans, has the name STUDY_MODEL; those of files belong to study 0. */
#define STUDY_MODEL "plans"
#define MODEL_KIND  "regressor+classifier"

struct learned {
    struct model *model;        /* owned */
    struct model_report report; /* NaN where there are too few plans to hold some out */
};

/* Trains, judges on held-out plans and keeps the result. times: null for FEATURES_BITS. */
int model_learn(struct db *db, int64_t study, const char *name, const struct model_options *options,
                const struct model_data *data, const struct segment_times *times,
                struct learned *out, struct status *st);
void learned_release(struct learned *l);

/* The same on all that a study holds, under STUDY_MODEL. */
int study_learn(struct db *db, int64_t study, const struct build_target *target,
                const struct model_options *options, struct learned *out, struct status *st);

/* STATUS_NOT_FOUND where there is none of that name. */
int model_fetch(struct db *db, int64_t study, const char *name, struct model **out,
                struct status *st);

#endif
