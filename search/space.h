/* search, continued: recorded spaces, and strategies that run on them. */
#ifndef FUSEPLAN_SPACE_H
#define FUSEPLAN_SPACE_H

#include "search/search.h"

/* ---- space.c, space_write.c, space_import.c: docs/recorded-spaces.md ------------------------- */

/* Appends the file's bytes to out: the stored plans of lo..hi.  Equal studies give equal bytes.
 * workload_json: the study's workload, as query prints it.  STATUS_NOT_FOUND if no plan of lo..hi
 * ran. */
int space_export(struct db *db, int64_t study, enum target_kind target, const char *workload_json,
                 unsigned lo, unsigned hi, struct buf *out, struct status *st);

/* A segment's choice that was built, verified and timed alone. */
struct recorded_attempt {
    int slot;
    const char *impl, *schedule; /* borrowed; null in a file of version 1 for one that failed */
    double us;                   /* NaN unless it ran to its end */
    double build_s, verify_s, time_s; /* NaN if unknown */
};

struct recorded_space {
    struct json_t *header; /* the file's first line, owned; the texts below point into it */
    struct json_t *lines;  /* the lines of segments, then those of plans, owned */
    char *workload;        /* JSON, owned */
    struct db_target target;
    const char *protocol, *measured_utc;
    int version;
    unsigned lo, hi; /* the values of the space */
    int attempt_count;
    struct recorded_attempt *attempts; /* (attempt_count) owned, in the order measured */
    int count;                         /* plans, in the file's order */
    struct plan *plans;                /* (count) owned */
    struct outcome *outcomes;          /* (count) owned */
    double *seconds;  /* (count) owned: that each plan took to build, verify and time */
    bool has_seconds; /* of every attempt and plan; else NaN where they are unknown */
    int best;         /* index of the best plan known; an outcome that is faster is noise */
    struct segment_times segments;
    const struct recorded_attempt *fastest[SLOT_COUNT]; /* null: none ran */
    bool failed[SLOT_COUNT];                            /* the slot failed alone: no attempt ran */
    int at[PLAN_KEYS]; /* index of the plan of a key, -1 if it was not recorded */
};

/* Of a gzip file or a plain one.  STATUS_USAGE if it is damaged or has another format. */
int recorded_space_read(const char *path, struct recorded_space *out, struct status *st);
int recorded_space_unpack(const struct buf *bytes, struct recorded_space *out, struct status *st);
void recorded_space_release(struct recorded_space *s);

/* Whether every plan of the space was recorded, so that its best plan is. */
bool recorded_space_is_whole(const struct recorded_space *s);

/* Its clock stands still.  measure() gives STATUS_NOT_FOUND for a plan that was not recorded. */
struct evaluator recorded_space_evaluator(const struct recorded_space *s);

/* Opens the database and adds the space by db_record_add().  STATUS_USAGE with the line, and *db is
 * left alone, if the file contradicts itself or lacks what a database has. */
int space_import(const struct recorded_space *s, const char *db_path, struct db **db,
                 struct db_moved *out, struct status *st);

/* ---- replay.c: how good strategies are, on a recorded space -------------------------------------
 *
 * A strategy searches the space with each seed, the baselines first, and gets recorded times.
 * *Regret* is how much slower the plan that it would choose is than the best plan of the space.
 * With noise on the plans the chosen one is the fastest of the finalists, whose times side by side
 * are taken to be exact.
 *
 * The clock goes by the seconds of the file.  Before a baseline all attempts of its segments are
 * paid, and after the baselines those of all segments: that is stage 1.  On a GPU compilers run
 * ahead of the device, which waits for an attempt's build alone.  Without segment times each
 * segment is built once, by its fastest choice, for the first plan that has it.  What a strategy
 * takes to propose and what the finals take is left out. */

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
    /* Medians; NaN if that many plans are not enough in half of the searches.  Those of seconds are
     * NaN too if the file lacks some. */
    double plans_to_1pct;
    double seconds; /* that the plans of the budget take */
    double seconds_to_3pct, seconds_to_1pct;
    /* (strategy - random) / (best - random) of the fastest time found, the mean over the plans up
     * to the budget and over the seeds; random: what as many plans drawn uniformly give
     * on average. */
    double score;
};

/* STATUS_USAGE if replay() may not be called: the space's workload is none that fuseplan knows, or
 * the budget is above the number of recorded plans that can run. */
int replay_check(const struct recorded_space *s, const struct replay_options *o, struct status *st);

/* Fills a row for each strategy and each of 8, 16, 32, ... plans below the budget and the budget
 * itself: (REPLAY_ROWS * strategy_count).  *count gets their number.  replay_check() must have
 * accepted the space with the same options. */
enum { REPLAY_ROWS = 13 };
int replay(const struct recorded_space *s, const struct replay_options *o, struct replay_row *rows,
           int *count, struct status *st);

#endif
