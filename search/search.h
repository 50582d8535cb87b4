/* search: picks the plans worth measuring and stores what was measured.
 *
 * A strategy sees only an evaluator, so it runs on a real target, on a recorded space or on a
 * made-up one.  Functions pass plans as struct plan; values occur only in rows, files and options.
 * To add a strategy: a function and a row in strategies[] (strategy.c). */
#ifndef FUSEPLAN_SEARCH_H
#define FUSEPLAN_SEARCH_H

#include "bench/bench.h"
#include "codegen/codegen.h"
#include "db/db.h"
#include "model/model.h"
#include "search/close.h"

/* ---- evaluator: what measures a strategy's proposals ----------------------------------------- */

struct outcome {
    enum trial_status status;
    double ms;    /* ok: the median; censored: a lower bound; failed: NaN */
    double noise; /* the standard error of ms, as a share; 0: unknown */
    double drift; /* measured were (1 + drift) times ms: the machine was slower than at first */
};

struct evaluator {
    /* Measures a plan: returns 0 and fills *out, or -1 if the search must end. */
    int (*measure)(void *ctx, struct plan p, struct outcome *out, struct status *st);
    /* The times of segments alone that are known so far.  May be null. */
    const struct segment_times *(*segments)(void *ctx);
    /* Whether a plan must fail because a segment of it failed: not measured then.  May be null. */
    bool (*fails)(void *ctx, struct plan p);
    double (*now)(void *ctx); /* seconds, from any clock */
    void *ctx;
};

/* ---- history: what is known of a space ------------------------------------------------------- */

/* What proposed a plan. */
enum signal {
    SIGNAL_NONE, /* it was asked for, or measured by an earlier search */
    SIGNAL_RULE, /* of a strategy that has one */
    SIGNAL_SUM,  /* the least sum of its segments, expected or alone */
    SIGNAL_REGRESSOR,
    SIGNAL_CLASSIFIER,
    SIGNAL_COUNT
};
extern const char *const signal_names[SIGNAL_COUNT]; /* "none", "rule", "sum", ... */

struct observation {
    struct plan plan;
    struct outcome outcome;
    enum signal by; /* what proposed it in this search */
};

struct history {               /* all zero: empty */
    struct observation *items; /* in the order measured, owned */
    int count, cap;
    uint64_t seen[PLAN_KEYS / 64]; /* bit k: items have the plan of key k */
};

void history_add(struct history *h, struct plan p, struct outcome o);
void history_release(struct history *h);
bool history_has(const struct history *h, struct plan p);
int history_best(const struct history *h); /* index of the fastest plan; -1 if none is ok */
/* A plan as it was measured; null if it was not, or failed. */
const struct observation *history_find(const struct history *h, struct plan p);
/* Drops the plans that failed; out: null, or gets them.  Returns how many. */
int history_drop_failed(struct history *h, struct plan *out);

/* How many plans of a space the history has. */
int history_count_in(const struct history *h, const struct plan *space, int space_count);

/* ---- strategy.c: the table ------------------------------------------------------------------- */

struct strategy_context {
    const struct plan *space; /* plans to choose from, in plan_space()'s order, not in history */
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
    enum signal by[PROPOSAL_MAX];
    double expected_ms; /* the fastest time expected in the space; NaN if unknown */
};

struct strategy {
    const char *name, *summary;
    /* Fills *out with distinct plans of the space, at most max, which is 1..PROPOSAL_MAX. */
    int (*propose)(const struct strategy_context *c, int max, struct proposal *out,
                   struct status *st);
};
extern const struct strategy strategies[];
extern const int strategy_count;
const struct strategy *strategy_find(const char *name);

/* ---- loop.c: propose, measure, learn, stop ------------------------------------------------------
 *
 * A search has converged if the last CONVERGED_PATIENCE plans have not improved the best time by
 * CONVERGED_GAIN, or by the noise of a plan's time if that is more, and the strategy expects no
 * plan of the space to be that much faster.  The rule uses the history alone, so that a search run
 * again stops at the same plan.  For a hasty search one batch of plans is enough. */

enum { CONVERGED_PATIENCE = 40 }; /* five batches: no search converges below 41 plans */
#define CONVERGED_GAIN 0.002

struct search_options {
    const struct strategy *strategy;
    unsigned space_lo, space_hi;
    int budget;          /* distinct plans in the history, earlier ones too; 0: no limit */
    double time_limit_s; /* 0: no limit */
    bool endless;        /* never converges */
    bool hasty;
    uint64_t seed;
    double quantile;
    const volatile sig_atomic_t *stop;
};

/* clang-format off */
enum search_stop { STOP_BUDGET, STOP_TIME, STOP_CONVERGED, STOP_SPACE, STOP_INTERRUPTED, STOP_COUNT };
/* clang-format on */
extern const char *const search_stop_names[STOP_COUNT]; /* "budget", ... */

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
    char compared_at[CLOCK_UTC_SIZE]; /* empty if the speed-up is NaN */
    char unstable[UNSTABLE_SIZE];     /* see plan_unstable() */
};
bool baseline_ties(const struct baseline_time *b); /* the speed-up's interval holds 1 */

/* plan: the plan's trial of the same bench_compare(); null: there is none, and no speed-up. */
struct baseline_time baseline_beside(struct plan p, const struct trial *baseline,
                                     const struct trial *plan, const char *compared_at);

/* Reads each wanted baseline: its final of the comparison that the best plan won, or else its own
 * trial. */
int baselines_read(struct db *db, int64_t study, const struct db_best *best,
                   const struct baselines *wanted, struct baseline_time out[BASELINES_MAX],
                   struct status *st);

/* ---- steady.c: whether a plan's time can be relied on (docs/measuring.md, noise) ------------- */

/* Appends why a final is unstable; nothing if it is not.  in_search: NaN if unknown. */
void unstable_text(const struct trial *final, struct interval in_search, struct buf *out);

/* Writes why a plan's final is unstable; "" if it is not, or if the comparison is empty. */
int plan_unstable(struct db *db, int64_t study, int value, const char *comparison,
                  char out[UNSTABLE_SIZE], struct status *st);

/* ---- tune.c: a search on a real target, stored as it goes ---------------------------------------
 *
 * Stage 1 builds and times segments alone and keeps the fastest choice of each.  Stage 2 runs a
 * strategy over plans.  The finals time the finalists and the baselines side by side.
 *
 * An exhaustive search measures every plan, in random order, so that a part of the space is a fair
 * sample of it and drift of the machine follows no value.  It censors no plan, runs all of them
 * with the choices that stage 1 ended with, and times the fastest few hundred side by side before
 * the finals. */

enum rigor { RIGOR_MEASURE, RIGOR_EXHAUSTIVE, RIGOR_COUNT };
extern const char *const rigor_names[RIGOR_COUNT];

/* How far a search is.  Plans are borrowed until the callback returns, and null if there is none.
 * Their times are those of the search: only the finals time plans side by side. */
struct tune_state {
    struct step step;                   /* its phases: tune_phases[] of say.c */
    const struct observation *latest;   /* the plan that this step measured */
    const struct observation *best;     /* the fastest plan so far */
    const struct observation *baseline; /* the first baseline that ran */
};

struct tune_options {
    struct search_options search; /* time_limit_s is for all phases; an exhaustive search uses no
                                     strategy */
    enum rigor rigor;
    struct baselines baselines; /* measured even if the budget is spent */
    bool again; /* measure no new plan: time the best one known and the baselines anew, side by
                   side. STATUS_NOT_FOUND if none is known */
    bool retry_failed;     /* measure what is stored as failed again, before anything new */
    double (*clock)(void); /* in seconds, never backwards; null: clock_seconds() */
    /* Take a line for people, and the state after each step.  Either may be null. */
    void (*say)(void *ctx, const char *line);
    void (*step)(void *ctx, const struct tune_state *state);
    void *ctx;
};

struct tune_report {
    struct db_best best;          /* value -1 if no plan has run */
    char unstable[UNSTABLE_SIZE]; /* why the best plan's time is; "" if it is not */
    int baseline_count;
    struct baseline_time baselines[BASELINES_MAX];
    /* Numbers of distinct plans. */
    int new_trials;                     /* measured by this search */
    int total_trials;                   /* stored for the study */
    int failed_trials, censored_trials; /* among total_trials */
    int space, space_trials;            /* in the space; stored of the space */
    const char *stopped_by;             /* of search_stop_names; null after `again` */
    double seconds;
    int proposed[SIGNAL_COUNT]; /* plans by what proposed them here; all others: SIGNAL_NONE */
    enum signal best_by;        /* what proposed the best plan */
    bool indistinct;            /* see history_indistinct() */
    double drift;               /* the machine's pace at the end over that at first; 1: as it was */
    double model_spearman;      /* see struct model_report; NaN if unknown */
    double sum_spearman;        /* the same of the sums that plans and segments say */
    struct certainty certainty;
    double expected_faster_share; /* of the space: plans not measured that the model expects to be
                                     faster than the best; NaN if unknown */
};

/* Resumes: what the database holds for the study is not measured again.  An interrupt is no
 * failure: returns 0 with stopped_by "interrupted". */
int tune(struct bench *b, struct db *db, const struct tune_options *o, struct tune_report *out,
         struct status *st);
void tune_report_release(struct tune_report *r);

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
 * segment reached; NaN if unknown. */
int study_rates(struct db *db, int64_t study, const struct slot_record slots[SLOT_COUNT],
                const struct workload *w, struct limits *out, bool *of_device, struct status *st);

/* "code: reason" of a trial that did not run, as UTF-8; the caller frees it. */
char *trial_reason(const struct db_trial *row);

/* ---- explain.c: why a plan takes the time that it takes ---------------------------------------
 *
 * What each kernel of a plan moves and computes, beside the shortest time that the roofline allows,
 * and the plans that differ from it by one cut.  Measures nothing. */

struct explained_kernel {
    struct choice choice; /* the fastest stored one, else the default one */
    struct interval us;   /* alone; NaN if it was not measured */
    double flops, bytes;  /* the least that it does: segment_flops(), segment_bytes() */
    double least_us;      /* the larger of flops and bytes at the peak rates; NaN if unknown */
    bool memory_bound;    /* the bytes take longer */
    /* Tensors as bits: read from memory, kept on chip, stored for its own later stages, written for
     * others. */
    uint16_t reads, keeps, passes, writes;
};

enum change { CHANGE_FUSED, CHANGE_CUT, CHANGE_MOVED, CHANGE_ATTENTION, CHANGE_COUNT };
extern const char *const change_names[CHANGE_COUNT]; /* "fused", ... */

enum time_source {
    TIME_UNKNOWN,
    TIME_PREDICTED, /* from the times of the segments alone */
    TIME_SEARCHED,  /* measured in a search, not beside the plan explained */
    TIME_COMPARED,  /* measured side by side with it */
    TIME_TRIED,     /* it failed or was stopped early */
    TIME_SOURCE_COUNT
};
extern const char *const time_source_names[TIME_SOURCE_COUNT]; /* "unknown", ... */

struct neighbour {
    struct plan plan;
    enum change change;
    int after, to; /* the operators before the cut that changes, and before its new place; -1 */
    enum time_source source;
    double ms;             /* NaN unless it is known */
    struct interval ratio; /* to the plan's time; low and high are NaN unless TIME_COMPARED */
    char reason[160];      /* of TIME_TRIED; else empty */
};

enum { NEIGHBOURS_MAX = 3 * BOUNDARY_COUNT + 1 };

struct explanation {
    struct plan plan;
    enum time_source source;
    bool packed;         /* it is the best plan known, and that is without rows of padding */
    struct interval ms;  /* low and high are NaN if it is predicted */
    struct limits rates; /* of study_rates() */
    bool device_rates;   /* they are the device's */
    int count;
    struct explained_kernel kernels[OP_COUNT];
    double sum_us, least_us; /* of all kernels; NaN if one is unknown */
    int neighbour_count;
    struct neighbour neighbours[NEIGHBOURS_MAX]; /* fastest first, unknown last */
};

/* db: null if nothing is stored of the workload, whose mask must be built. */
int explain_plan(struct db *db, int64_t study, const struct build_target *target,
                 const struct workload *w, struct plan p, struct explanation *out,
                 struct status *st);

/* ---- learned.c: what a study has taught ------------------------------------------------------ */

/* Adds the plans stored for a study to a history. */
int study_history(struct db *db, int64_t study, struct history *out, struct status *st);

/* The fastest stored time of each segment alone. */
int study_segments(struct db *db, int64_t study, const struct build_target *target,
                   struct segment_times *out, struct status *st);

/* ---- candidate.c: how a plan runs -------------------------------------------------------------
 */

/* What is known of choices. */
struct choice_source {
    struct db *db; /* null: nothing is, and defaults run */
    int64_t study;
    const struct build_target *target;
    const struct arch_list *archs; /* only choices that also run on these count; may be null */
    bool retry_failed;             /* stored failures do not count */
};

/* Each segment of a plan as it ran in the newest comparison of a search; else by the fastest choice
 * alone; else by a default. */
int study_candidate(const struct choice_source *from, struct plan p, struct candidate *out,
                    struct status *st);

/* A stored model has regressor and classifier in one blob.  tune() trains a study's own model on
 * all its plans and names it STUDY_MODEL; models of files belong to study 0. */
#define STUDY_MODEL "plans"
#define MODEL_KIND  "regressor+classifier"

struct learned {
    struct model *model;        /* owned */
    struct model_report report; /* NaN if there are too few plans to hold some out */
};

/* Trains a model, judges it on held-out plans and stores it.  times: null for FEATURES_BITS. */
int model_learn(struct db *db, int64_t study, const char *name, const struct model_options *options,
                const struct model_data *data, const struct segment_times *times,
                struct learned *out, struct status *st);
void learned_release(struct learned *l);

/* Trains, judges and stores STUDY_MODEL on all plans of a study. */
int study_learn(struct db *db, int64_t study, const struct build_target *target,
                const struct model_options *options, struct learned *out, struct status *st);

/* Load a stored model.  STATUS_NOT_FOUND if there is none of that name.  If STUDY_MODEL cannot be
 * used, study_model() trains it anew on the stored plans, and *bad says why. */
int model_fetch(struct db *db, int64_t study, const char *name, struct model **out,
                struct status *st);
int study_model(struct db *db, int64_t study, const struct segment_times *times, struct model **out,
                struct status *bad, struct status *st);
/* ---- top.c: the fastest plans known ---------------------------------------------------------- */

struct top_plan {
    struct plan plan;
    struct interval ms;
    bool compared; /* the time is of the comparison that the best plan won, else of a search */
};

/* Fills *out with at most `most` plans of a study, and *count with their number: first the best
 * plan known, then the others by their time.  Times of the comparison and of the search are not
 * compared with one another: both count as multiples of the best plan's own time there. */
int study_top(struct db *db, int64_t study, const struct db_best *best, int most,
              struct top_plan *out, int *count, struct status *st);

#include "search/space.h"

#endif
