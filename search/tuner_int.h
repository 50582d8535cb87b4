/* What the phases of a search share. */
#pragma once

#include "search/study_int.h"
#include "search/tune.h"

/* ---- past.c: what earlier searches of a study leave to the next one -------------------------- */

struct past {
    bool searched;   /* there was a search */
    bool time_spent; /* one had this search's time limit or a longer one, and spent it */
};

#define STRATEGY_AGAIN "again" /* of tune_again() */

/* Appends the options that are stored with a search, as JSON. */
void past_options(const struct tune_options *o, unsigned precision, struct buf *out);

/* Of searches for plans of this precision. */
int past_read(struct db *db, int64_t study, const struct tune_options *o, unsigned precision,
              struct past *out, struct status *st);

/* ---- tune.c: what the phases share ----------------------------------------------------------- */

/* What a search has, and what it knows, to which each phase adds. */
struct tuner {
    struct bench *bench; /* borrowed */
    struct db *db;       /* borrowed */
    const struct tune_options *o;
    struct plan space[PLAN_SPACE];
    int space_count;
    int64_t study;
    char search_id[HASH_TEXT_SIZE];
    struct past past;

    struct segment_table segments;
    struct history history;
    struct fitted_plans fitted;
    int new_trials;
    struct {
        int count;
        struct plan plans[PLAN_SPACE];
    } failed; /* plans stored as failed that are measured again */
    struct first_plan {
        struct candidate candidate;
        struct trial trial;        /* released here while `owned` */
        struct observation known;  /* what it says */
        double climb;              /* seconds; when its schedules were first tried */
        bool ran, owned, expected; /* expected: it was chosen for its time, as a baseline is not */
    } first;
    bool taught; /* by a near workload: first has its best plan */
    struct anchor_plan {
        struct candidate candidate; /* of no choices: there is none yet */
        struct outcome first;
        int plans;    /* measured since it was timed last */
        double drift; /* of its time to the first one; 1 within the noise of both */
    } anchor;

    double (*clock)(void); /* in seconds; tune() reads no other clock */
    double start, end;     /* seconds; end is infinite without a limit */
    double round;          /* when stage 1 began, or went on */
    struct {
        double build_s, time_s; /* to build it; to time it alone */
    } slowest;                  /* of the choices so far */

    int comparisons; /* stored by this search */
    struct {
        bool sharing, no_time, crowded;
    } told; /* to people, once a search */
};

static inline bool is_exhaustive(const struct tuner *t)
{
    return t->o->rigor == RIGOR_EXHAUSTIVE;
}

/* A phase adds to what the tuner knows.  The search goes on after it while found->stopped_by is
 * STOP_SPACE. */
typedef int search_phase(struct tuner *t, struct search_result *found, struct status *st);
search_phase phase_baselines, phase_failures; /* asked.c */
search_phase phase_segments_and_plans;        /* plans.c; found->stopped_by: why it ended */

/* Whether there are stored failures to measure again. */
bool tuner_retries(const struct tuner *t);

/* ---- say.c: lines for people ----------------------------------------------------------------- */

void tuner_say(const struct tuner *t, const char *fmt, ...) PRINTF_LIKE(2, 3);

enum tune_phase {
    PHASE_BASELINES,
    PHASE_FAILURES,
    PHASE_SEGMENTS,
    PHASE_SCHEDULES,
    PHASE_PLANS,
    PHASE_FINALS,
    PHASE_COUNT
};

/* Reports a step.  latest: the plan that it measured; may be null. */
void tuner_step(const struct tuner *t, enum tune_phase phase, int done, int total,
                const struct observation *latest);
/* The same of work that takes left_s more at the pace so far. */
void tuner_step_by(const struct tuner *t, enum tune_phase phase, int done, int total, double left_s,
                   const struct observation *latest);

/* Says which segments fail alone; fate: what becomes of plans with them. */
void say_failed(const struct tuner *t, const char *fate);

/* Says once a search that other processes use the GPU, if they do. */
void say_sharing(struct tuner *t);

/* For the search's end: say_sharing(), and how often the GPU slowed itself down. */
void say_disturbance(struct tuner *t);

/* ---- deadlines.c: when the phases must end ------------------------------------------------------
 *
 * In the tuner's clock; infinite without a time limit.  They move as the search learns what the
 * finals will take. */

typedef double deadline(const struct tuner *t);
deadline stage1_end, stage2_end;
deadline first_climb_end; /* of the first plan's schedules */

/* ---- stage1.c -------------------------------------------------------------------------------- */

/* Builds, times and stores the untried defaults of the slots and, with `climb`, the schedules that
 * a climb from them reaches.  Begins nothing that may end after the deadline. */
int time_slots(struct tuner *t, const int *slots, int count, bool climb, deadline *until,
               struct status *st);

/* Times and climbs segments, the most promising first, until stage1_end(). */
int stage1(struct tuner *t, struct status *st);

/* Where compilers run while the device works: begins to build what a plan needs, and behind it what
 * stage 1 will time first. */
int stage1_build_ahead(struct tuner *t, const struct candidate *first, struct status *st);

/* Whether there is time for one more segment. */
bool stage1_goes_on(const struct tuner *t);

/* The plans of an exhaustive search all run the choices that stage 1 ends with: none runs if stage
 * 1 was cut short. */
bool choices_may_change(const struct tuner *t);

/* ---- first_plan.c: a plan to print from the first seconds on --------------------------------- */

int first_plan_measure(struct tuner *t, struct status *st); /* unless a plan is known */
/* time_slots() of its segments. */
int first_plan_times(struct tuner *t, bool climb, deadline *until, struct status *st);
/* Whether it ran and its trial is comparable with those of other plans. */
bool first_plan_stands(const struct tuner *t);
/* Takes its trial, if it stands and ran these choices. */
bool first_plan_take(struct tuner *t, const struct candidate *c, struct trial *out);
/* Stores it at the search's end, if its plan was not measured since and the budget has room. */
int first_plan_keep(struct tuner *t, struct status *st);
void first_plan_release(struct tuner *t);

/* ---- baselines.c: those of a search ---------------------------------------------------------- */

/* Whether each has a stored result, a failure included. */
bool baselines_measured(const struct tuner *t);

/* Of those not measured, the one that takes the fewest compilers.  False: none is left that may
 * run. */
bool cheapest_baseline(const struct tuner *t, struct candidate *out);

/* Says which ones, if they are to be measured. */
void say_baselines(const struct tuner *t);

/* ---- shared.c: segment times of studies of other workloads ----------------------------------- */

/* Whether layers compute the same in the same sizes, types and number.  The base of rotary
 * embeddings only fills a table, and changes no time. */
bool same_layers(const struct workload *a, const struct workload *b);

/* Whether a segment takes the same time in both workloads, on the same target. */
bool segment_shared(struct segment s, const struct workload *a, const struct workload *b);

/* Takes the times of segments that do not depend on what differs, after two of them were timed
 * again.  If one of these takes another time here, none is taken. */
int take_shared(struct tuner *t, struct status *st);

/* ---- nearest.c ------------------------------------------------------------------------------ */

/* The best plan of the workload of equal layers that is nearest in tokens and sequence length, on
 * the same target, as it ran there.  1, 0 if there is none in the space, or -1. */
int nearest_plan(const struct tuner *t, struct candidate *out, struct status *st);

/* ---- evaluator.c: stage 2's evaluator -------------------------------------------------------- */

/* A choice or plan that is this many times slower than the best is censored. */
#define HOPELESS_RATIO 2.0

struct evaluator tuner_evaluator(struct tuner *t);

/* For an evaluator's `fails` where failures are to be stored: whether the target has no code for a
 * segment of the plan.  ctx: the tuner. */
bool plan_lacks_code(void *ctx, struct plan p);

/* ---- anchor.c: whether the machine keeps its pace ---------------------------------------------
 *
 * A plan is timed again every ANCHOR_EVERY plans.  If its time has changed by more than the noise
 * of both times, and once more, the times of other plans are divided by the change that is nearer
 * to the last one.  A change that noise explains keeps the last one. */

enum { ANCHOR_EVERY = 20 };

/* Before a plan is measured: times the anchor if it is due. */
int anchor_check(struct tuner *t, struct status *st);

/* After a plan was measured: divides the drift out; the first plan that runs is the anchor. */
void anchor_note(struct tuner *t, const struct candidate *c, struct outcome *o);

/* What a time of the history is multiplied by to be one of this moment. */
double anchor_drift(const struct tuner *t);

/* Whether other programs kept this one waiting in most measurements.  Then small differences are
 * noise, and all work takes several times as long: a guided search leaves to a quieter machine what
 * only pays by them, segments that wait with a hope and schedules off their defaults.  Says so
 * once. */
bool machine_is_crowded(struct tuner *t);

/* ---- lineup.c: the contenders of a comparison, and how long they are timed ------------------- */

/* A comparison side by side. */
struct contest {
    const char *name;
    int fastest; /* how many of the fastest plans contend, and beside them the baselines and the
                    plan of the smallest additive time; 0: the fastest and the baselines alone */
    struct sampling how;
    double share; /* of the time left */
    /* The comparison's text is the search's id and a mark: the second one if a time limit left
     * contenders out. */
    const char *mark, *mark_cut_short;
};

struct lineup {
    int count;                 /* 0 if the time left allows no comparison */
    int fastest;               /* so many of the fastest plans come first */
    struct observation *items; /* (count) the contenders, owned */
    struct sampling how;
    bool cut_short; /* fewer of the fastest contend than the contest wants */
};

/* As many of the fastest plans of `from` as the time left allows, and the sampling for them. */
struct lineup lineup_in_time(const struct tuner *t, const struct history *from,
                             const struct contest *contest);
void lineup_release(struct lineup *l);

/* About what it takes to compare the best plan and that of the smallest additive time with the
 * baselines. */
double least_finals_seconds(const struct tuner *t);

/* ---- schedules.c: schedules in plans -------------------------------------------------------- */

/* Notes in t->fitted the fastest choices found for these plans, as long as there is time before the
 * finals. */
int fit_schedules(struct tuner *t, const struct observation *plans, int count, struct status *st);

/* ---- finals.c: the finalists, side by side --------------------------------------------------- */

/* Whether the finals were held with all baselines and no plan was measured after them. */
int finals_held(struct tuner *t, bool *out, struct status *st);

/* Holds the finals, unless finals_held(): times the fastest few plans, the baselines and the plan
 * of the smallest additive time interleaved.  An exhaustive search first refines: a shorter
 * comparison of the fastest few hundred picks the finalists.  If a time limit cut an earlier
 * refining short, a search with more time repeats both. */
int measure_finals(struct tuner *t, struct status *st);

/* Times a plan that ran and the baselines anew, interleaved. */
int compare_again(struct tuner *t, struct plan p, struct status *st);

/* ---- summary.c ------------------------------------------------------------------------------- */

int report_fill(struct tuner *t, enum search_stop stopped_by, struct tune_report *out,
                struct status *st);
