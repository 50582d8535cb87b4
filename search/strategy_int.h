/* What strategies and the loop that asks them share. */
#pragma once

#include "search/strategy.h"

/* ---- loop.c ---------------------------------------------------------------------------------- */

struct search_result {
    enum search_stop stopped_by;
    int new_trials;
    int best; /* index into the history, -1 if no plan is ok */
};

/* Called after each measurement. */
typedef void search_progress(void *ctx, const struct history *h, const struct observation *latest);

/* Earlier results in h count against the budget and are not measured again.  An interrupt is no
 * failure: returns 0 with STOP_INTERRUPTED.  progress may be null. */
int search_loop(const struct search_options *o, const struct evaluator *e, struct history *h,
                search_progress *progress, void *ctx, struct search_result *out, struct status *st);

/* Measures a plan that is asked for.  STOP_SPACE: and the search may go on. */
int search_plan(const struct search_options *o, const struct evaluator *e, struct plan p,
                struct history *h, search_progress *progress, void *ctx, struct search_result *out,
                struct status *st);

/* ---- guided.c, rivals.c: the strategies ------------------------------------------------------ */

typedef int propose(const struct strategy_context *c, int max, struct proposal *out,
                    struct status *st);
propose guided_propose, additive_propose, xgb_propose, random_propose, annealing_propose,
    reward_propose;

/* ---- history.c: what a model learns from ----------------------------------------------------- */

/* The half width of a 95 % interval is so many standard errors. */
#define INTERVAL_ERRORS 1.96

/* ms: the median and its 95 % interval, of which the noise is told. */
struct outcome outcome_of(enum trial_status status, struct interval ms);
struct outcome outcome_of_row(const struct db_trial *row);

/* The half width of the usual 95 % interval of a plan's time, as a share; NaN if no plan ran. */
double history_noise(const struct history *h);

/* Whether the times of plans spread no more than the noise of each explains. */
bool history_indistinct(const struct history *h);

/* The plans that gave a time, censored ones with their lower bound.  The caller releases them. */
struct model_data training_of(const struct history *h);

/* ---- close.c: what a search that has converged measures to be sure -----------------------------
 */

/* Measures the plans of o's space with `share` times their sum below the best time; of all plans at
 * most the `most` of the least sums.  layers: a segment's time counts so often in a plan.
 * Ends early as search_loop() does: only STOP_SPACE says that all were measured. */
struct closing {
    double share;
    int most, layers;
    search_progress *progress;
    void *ctx; /* for progress, which may be null */
};
int search_close(const struct search_options *o, const struct closing *how,
                 const struct evaluator *e, struct history *h, struct search_result *out,
                 struct status *st);

/* ---- posterior.c: what the measured plans say ------------------------------------------------ */

/* The posterior from the plans that ran, and the censored ones whose bound says something. alone
 * may be null.  The caller frees. */
struct gaussian *posterior_of(const struct history *h, const struct segment_times *alone);

/* The plans that ran, each with its time: of its measurement, which has noise, and of what all
 * plans let expect.  Most promising first; (*count) the caller frees. */
struct finalist {
    int index; /* into the history */
    double ms, sd;
};
struct finalist *own_times(const struct history *h, const struct segment_times *alone, int *count);

/* The plans that may be the fastest of those that ran, most promising first: FINALISTS_LEAST if so
 * many ran, and more as long as noise may hide a winner. */
enum { FINALISTS_LEAST = 4, FINALISTS_MOST = 12 };
int finalists_of(const struct history *h, const struct segment_times *alone,
                 struct finalist out[FINALISTS_MOST]);

/* ---- learned.c: how a model is judged -------------------------------------------------------- */

/* Figures on held-out plans need JUDGED_LEAST plans. */
enum { FOLDS = 5, JUDGED_LEAST = 2 * FOLDS };
