/* search, continued: strategies, and what they see. */
#pragma once

#include "bench/bench.h"
#include "db/db.h"
#include "model/model.h"

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
    int count;
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
 * A search has converged if the last CONVERGED_PATIENCE plans, on a GPU GPU_PATIENCE, or where
 * tune_options.by_neighbour found one TAUGHT_PATIENCE, have not improved the best time by
 * CONVERGED_GAIN, or by the noise of a plan's time if that is more, and the strategy expects no
 * plan of the space to be that much faster.  The rule uses the history alone, so that a search run
 * again stops at the same plan. */

enum {
    TAUGHT_PATIENCE = 16,   /* two batches: docs/search.md, "How sure" */
    GPU_PATIENCE = 24,      /* three batches: nothing else disturbs its times */
    CONVERGED_PATIENCE = 40 /* five batches */
};
#define CONVERGED_GAIN 0.002

struct search_options {
    const struct strategy *strategy;
    unsigned space_lo, space_hi;
    int budget;          /* distinct plans in the history, earlier ones too; 0: no limit */
    double time_limit_s; /* 0: no limit */
    bool endless;        /* never converges */
    int patience;        /* plans without a gain before it converges; 0: CONVERGED_PATIENCE */
    uint64_t seed;
    double quantile;
    const volatile sig_atomic_t *stop;
};

/* STOP_DONE: it only timed plans that are known. */
/* clang-format off */
enum search_stop { STOP_BUDGET, STOP_TIME, STOP_CONVERGED, STOP_SPACE, STOP_INTERRUPTED, STOP_DONE, STOP_COUNT };
/* clang-format on */
extern const char *const search_stop_names[STOP_COUNT]; /* "budget", ... */
