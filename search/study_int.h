/* What is known of a study: its segments, and how plans run. */
#pragma once

#include "search/explain.h"
#include "search/strategy_int.h"
#include "search/study.h"

/* ---- covers.c -------------------------------------------------------------------------------- */

/* The least sums of times known of segments that cover operators first..last, in milliseconds of
 * one layer; infinite where none do. */
struct covers {
    double ms[OP_COUNT][OP_COUNT];    /* of one segment or several */
    double split[OP_COUNT][OP_COUNT]; /* of several */
};
void find_covers(const struct segment_times *times, struct covers *out);

/* ---- slots.c --------------------------------------------------------------------------------- */

/* The slot that a choice serves. */
int slot_of_choice(enum target_kind target, const struct db_choice *c);

/* Whether a plan has one of some slots. */
bool plan_has_slot(struct plan p, const bool slots[SLOT_COUNT]);

/* A row's median and interval, in microseconds. */
struct interval row_us(const struct db_trial *row);

/* ---- segments.c: what is known of the segments ----------------------------------------------- */

struct attempt {
    struct choice choice;
    bool usual; /* the default of its implementation, or given with a first plan */
    bool tried;
    bool failed_before; /* its stored failure does not count: see segment_table */
    double ms;          /* NaN if it failed or was censored */
    double least_ms;    /* that it takes at least: also of one that was censored; NaN: unknown */
    /* By segment_table_expect(). */
    double expected_ms; /* NaN: its implementation expects nothing */
    bool behind;        /* it is expected to take much longer than another schedule */
    bool reserve;       /* a default that is tried only where others fail */
    bool slows;         /* it made a plan slower for certain: see schedules.c */
};

struct slot {
    int count;
    struct attempt *attempts;        /* (count) owned, the first is a default */
    const struct attempt *best;      /* the fastest that ran; null if none has */
    struct status reason;            /* of the last attempt that did not run */
    char failed_utc[CLOCK_UTC_SIZE]; /* when that was stored; empty: in this session */
};

struct segment_table {
    enum target_kind target;
    const struct chain *chain; /* the segments are its */
    bool retry_failed;         /* attempts that the database holds as failed count as not tried */
    bool packed;               /* all is timed without rows of padding */
    unsigned precision;        /* of the target, and so of all plans */
    struct slot slots[SLOT_COUNT];
    struct segment_times times; /* of each slot's best */
};

void segment_table_init(struct segment_table *t, const struct build_target *target);
void segment_table_release(struct segment_table *t);

/* Notes what the attempts are expected to take, and so which ones are not worth building.  A table
 * without that has every attempt tried. */
void segment_table_expect(struct segment_table *t, const struct workload *w);

/* Drops the choices that do not run on another target.  Call it before segment_table_read(). */
void segment_table_restrict(struct segment_table *t, const struct build_target *target);

/* Notes the attempts that the database holds. */
int segment_table_read(struct segment_table *t, struct db *db, int64_t study, struct status *st);

/* Notes what became of an attempt: the median of its samples, unless it failed, and the reason why
 * it did not run to its end. */
void segment_table_note(struct segment_table *t, int slot, int attempt, enum trial_status status,
                        double ms, const struct status *reason);

/* The slots with an attempt that failed before; writes them to out, unless it is null, and returns
 * their number. */
int segment_table_failed(const struct segment_table *t, int out[SLOT_COUNT]);

/* How many attempts there are. */
int segment_table_size(const struct segment_table *t);

/* How many attempts were tried, in this search or before. */
int segment_table_tried(const struct segment_table *t);

/* The index of a choice in a slot's attempts; -1 if it has none. */
int slot_attempt(const struct slot *slot, const struct choice *c);

/* Whether the defaults of all implementations failed, so that no plan with this slot runs. */
bool slot_failed(const struct slot *s);

/* Whether an attempt is worth trying: an untried default, one that failed before or, in a climb, a
 * step from the best. */
bool attempt_is_due(const struct slot *s, const struct attempt *a, bool climb);

/* Whether an attempt is worth trying as a step of a climb from another one, the best so far or the
 * first default. */
bool step_is_due(const struct slot *s, const struct attempt *a, const struct attempt *from);

/* The index of the plan with the smallest additive time; -1 if none is known. */
int additive_best(const struct plan *space, int space_count, const struct segment_times *times);

/* The index of the plan of the least sum of what its segments take by their best choices or, if
 * they were not timed, are expected to take by their defaults; -1: too little is known. */
int expected_best(const struct segment_table *t, const struct plan *space, int space_count);

/* Whether two choices differ in one knob. */
bool one_knob_apart(const struct choice *a, const struct choice *b);

/* ---- candidate.c: how a plan runs ----------------------------------------------------------- */

/* Plans with the choices that they ran in a search's comparison, or that were found for them. */
struct fitted_plans {
    int count;
    struct candidate *items; /* (count) owned */
};

/* Those of the study's newest comparison of a search, whose choices are those of their segments and
 * of this version.  The caller releases *out, also after a failure. */
int fitted_read(struct db *db, int64_t study, const struct build_target *target,
                struct fitted_plans *out, struct status *st);
void fitted_keep(struct fitted_plans *f, const struct candidate *c); /* in place of the plan's */
const struct candidate *fitted_find(const struct fitted_plans *f, struct plan p); /* null: none */
void fitted_release(struct fitted_plans *f);

/* Chooses what runs each segment of a plan: as the plan ran in a comparison, if `fitted` has it,
 * which may be null; else the fastest choice alone; else an untried default: of the implementation
 * that won over another one most often at such stages.  -1 with the reason if a segment has none
 * of these; *out is filled then too, so that the failure can be stored. */
int plan_candidate(const struct segment_table *t, const struct fitted_plans *fitted, struct plan p,
                   struct candidate *out, struct status *st);

/* ---- steady.c ------------------------------------------------------------------------------- */

/* Makes a trial of db_time()'s answer and returns what it returns.  packed and stored_utc may be
 * null. */
int trial_read(struct db *db, int64_t study, int value, const char *comparison, struct trial *out,
               bool *packed, char stored_utc[CLOCK_UTC_SIZE], struct status *st);

/* ---- baselines.c ----------------------------------------------------------------------------- */

/* One trial's time over another's of the same bench_compare(): from the samples of each round,
 * which are pairs, or from the two intervals if one has no samples. */
struct interval times_ratio(const struct trial *a, const struct trial *b);

/* ---- neighbours.c ---------------------------------------------------------------------------- */

/* Fills in the plan's time and its neighbours.  db may be null. */
int explain_neighbours(struct db *db, int64_t study, const struct segment_times *times, int layers,
                       struct explanation *out, struct status *st);

/* ---- finals.c -------------------------------------------------------------------------------- */

/* How plans are timed side by side. */
struct sampling final_sampling(enum target_kind target);
