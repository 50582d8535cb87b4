/* search, continued: recorded spaces, and strategies that run on them. */
#pragma once

#include "search/study.h"

/* ---- space.c: what was measured of a workload, as strategies see it -----------------------------
 *
 * It is read from the text of one study that db_export() writes.  The time of a plan is that of the
 * newest comparison of a search.  The search times of all other plans are multiplied by a factor:
 * the median, over the plans with both times, of the time side by side over the search time. */

struct recorded_space {
    enum target_kind target;
    int layers;
    unsigned lo, hi;          /* the values of the space */
    int count;                /* plans */
    struct plan *plans;       /* (count) owned, in the order measured */
    struct outcome *outcomes; /* (count) owned */
    int best;                 /* index of the best plan known; an outcome that is faster is noise */
    struct segment_times segments;
    bool failed[SLOT_COUNT]; /* the slot failed alone: no attempt ran */
    int at[PLAN_KEYS];       /* index of the plan of a key, -1 if it was not recorded */
};

/* Reads the plans of lo..hi.  path "-": standard input.  STATUS_USAGE if the text is damaged, has
 * plans of more studies than one, or none that ran. */
int recorded_space_read(const char *path, unsigned lo, unsigned hi, struct recorded_space *out,
                        struct status *st);
void recorded_space_release(struct recorded_space *s);

/* Whether every plan of the space was recorded, so that its best plan is. */
bool recorded_space_is_whole(const struct recorded_space *s);

/* Its clock stands still.  measure() gives STATUS_NOT_FOUND for a plan that was not recorded. */
struct evaluator recorded_space_evaluator(const struct recorded_space *s);

/* Whether a plan has a segment that failed alone.  One that was not recorded counts as failing, so
 * that it is never proposed. */
bool recorded_space_fails(const struct recorded_space *s, struct plan p);

/* ---- replay.c: how good strategies are, on a recorded space -------------------------------------
 *
 * A strategy searches the space with each seed, the baselines first, and gets recorded times.
 * *Regret* is how much slower the plan that it would choose is than the best plan of the space.
 * With noise on the plans the chosen one is the fastest of the finalists, whose times side by side
 * are taken to be exact. */

struct replay_options {
    const struct strategy *const *strategies;
    int strategy_count;
    int budget; /* plans, the baselines among them */
    int seeds;  /* 1..seeds */
    struct baselines baselines;
    double segment_noise, plan_noise; /* standard deviations, as shares */
    bool no_segment_times;            /* strategies are not told them */
    /* Called as searches end, in the thread that called replay().  May be null. */
    void (*step)(void *ctx, int done, int total);
    void *ctx;
    /* Once it is set, replay() fails with STATUS_INTERRUPTED when the searches that run have ended.
     * May be null. */
    const volatile sig_atomic_t *stop;
};

struct replay_row {
    const struct strategy *strategy;
    int budget, seeds;
    double regret_mean, regret_median, regret_p95;
    double plans_to_1pct; /* median; NaN if the budget is not enough in half of the searches */
};

/* STATUS_USAGE if replay() may not be called: the budget is above the number of recorded plans that
 * can run. */
int replay_check(const struct recorded_space *s, const struct replay_options *o, struct status *st);

/* Fills a row for each strategy and each of 8, 16, 32, ... plans below the budget and the budget
 * itself: (REPLAY_ROWS * strategy_count).  *count gets their number.  replay_check() must have
 * accepted the space with the same options. */
enum { REPLAY_ROWS = 13 };
int replay(const struct recorded_space *s, const struct replay_options *o, struct replay_row *rows,
           int *count, struct status *st);
