/* search, continued: a search on a real target. */
#pragma once

#include "search/close.h"
#include "search/study.h"

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
    struct baselines baselines;    /* measured even if the budget is spent */
    const struct candidate *first; /* what a search begins with that knows no plan; may be null */
    bool retry_failed;             /* measure what is stored as failed again, before anything new */
    bool by_neighbour; /* where a near workload's finals are known, begin with their best plan, and
                          believe sooner that nothing is faster than what was found */
    double (*clock)(void); /* in seconds, never backwards; null: clock_seconds() */
    /* Take a line for people, and the state after each step.  Either may be null. */
    void (*say)(void *ctx, const char *line);
    void (*step)(void *ctx, const struct tune_state *state);
    void *ctx;
};

struct tune_report {
    struct db_best best;          /* value -1 if no plan has run */
    char unstable[UNSTABLE_SIZE]; /* why the best plan's time is; "" if it is not */
    struct conditions conditions; /* of the best plan's time */
    int baseline_count;
    struct baseline_time baselines[BASELINES_MAX];
    struct baseline_time runner_up; /* see runner_up_read() */
    /* Numbers of distinct plans. */
    int new_trials;                     /* measured by this search */
    int total_trials;                   /* stored for the study */
    int failed_trials, censored_trials; /* among total_trials */
    int space, space_trials;            /* in the space; stored of the space */
    const char *stopped_by;             /* of search_stop_names; null after tune_again() */
    const char *pack; /* the file that the best plan is read from; null: it was measured here */
    double seconds;
    int proposed[SIGNAL_COUNT]; /* plans by what proposed them here; all others: SIGNAL_NONE */
    enum signal best_by;        /* what proposed the best plan */
    bool indistinct;            /* see history_indistinct() */
    double drift;               /* the machine's pace at the end over that at first; 1: as it was */
    struct certainty certainty;
};

/* Resumes: what the database holds for the study is not measured again.  An interrupt is no
 * failure: returns 0 with stopped_by "interrupted". */
int tune(struct bench *b, struct db *db, const struct tune_options *o, struct tune_report *out,
         struct status *st);

/* Measures no new plan but missing baselines: times them and the best plan known anew, side by
 * side. STATUS_NOT_FOUND if none is known. */
int tune_again(struct bench *b, struct db *db, const struct tune_options *o,
               struct tune_report *out, struct status *st);
void tune_report_release(struct tune_report *r);

/* Whether a search chose plans of this precision, and did not only time some that are known. */
bool search_chose_plans(const struct db_search *s, unsigned precision);

/* ---- ahead.c ------------------------------------------------------------------------------- */

/* The choices that a search of the bench's workload would build first, and their number: the
 * defaults of the segments that stage 1 times first, of the baselines and of the plan that is
 * expected to be the fastest, whose other schedules are there too; where nothing is expected, of
 * all segments.  *out is owned by the caller. */
int choices_ahead(const struct bench *b, const struct tune_options *o, struct choice **out);

/* bench_take_turn() with these choices. */
int tune_take_turn(struct bench *b, const struct tune_options *o, struct status *st);
