/* What the files of search/ share. */
#ifndef FUSEPLAN_SEARCH_INT_H
#define FUSEPLAN_SEARCH_INT_H

#include "search/search.h"

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

/* ---- guided.c, rivals.c: the strategies ------------------------------------------------------ */

typedef int propose(const struct strategy_context *c, int max, struct proposal *out,
                    struct status *st);
propose guided_propose, additive_propose, xgb_propose, random_propose, annealing_propose,
    genetic_propose, reward_propose;

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

/* ---- posterior.c: what the measured plans say ------------------------------------------------ */

/* The posterior from the plans that ran, and the censored ones whose bound says something. alone
 * may be null.  gaussian_free() it. */
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

/* The rank correlation of the times of plans and their sums, as the other plans say them: NaN below
 * JUDGED_LEAST plans. */
double sum_spearman(const struct history *h, const struct segment_times *alone);

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

/* A row's median and interval, in microseconds. */
struct interval row_us(const struct db_trial *row);

/* ---- segments.c: what is known of the segments ----------------------------------------------- */

struct attempt {
    struct choice choice;
    bool usual; /* the default of its implementation */
    bool tried;
    bool failed_before; /* its stored failure does not count: see segment_table */
    double ms;          /* NaN if it failed or was censored */
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
    struct slot slots[SLOT_COUNT];
    struct segment_times times; /* of each slot's best */
};

void segment_table_init(struct segment_table *t, const struct build_target *target);
void segment_table_release(struct segment_table *t);

/* Drops the choices that do not run on another target.  Call it before segment_table_read(). */
void segment_table_restrict(struct segment_table *t, const struct build_target *target);

/* Notes the attempts that the database holds. */
int segment_table_read(struct segment_table *t, struct db *db, int64_t study, struct status *st);

/* Notes what became of an attempt: its time, or NaN and the reason. */
void segment_table_note(struct segment_table *t, int slot, int attempt, double ms,
                        const struct status *reason);

/* The slots with an attempt that failed before; writes them to out, unless it is null, and returns
 * their number. */
int segment_table_failed(const struct segment_table *t, int out[SLOT_COUNT]);

/* How many attempts were tried, in this search or before. */
int segment_table_tried(const struct segment_table *t);

/* The index of a choice in a slot's attempts; -1 if it has none. */
int slot_attempt(const struct slot *slot, const struct choice *c);

/* Whether the defaults of all implementations failed, so that no plan with this slot runs. */
bool slot_failed(const struct slot *s);

/* The index of the plan with the smallest additive time; -1 if none is known. */
int additive_best(const struct plan *space, int space_count, const struct segment_times *times);

/* ---- candidate.c: how a plan runs -------------------------------------------------------------
 */

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

/* Makes a trial of db_time()'s answer and returns what it returns.  packed may be null. */
int trial_read(struct db *db, int64_t study, int value, const char *comparison, struct trial *out,
               bool *packed, char stored_utc[CLOCK_UTC_SIZE], struct status *st);

/* ---- baselines.c ----------------------------------------------------------------------------- */

/* One trial's time over another's of the same bench_compare(): from the samples of each round,
 * which are pairs, or from the two intervals if one has no samples. */
struct interval times_ratio(const struct trial *a, const struct trial *b);

/* ---- past.c: what earlier searches of a study leave to the next one -------------------------- */

struct past {
    bool searched;   /* there was a search */
    bool time_spent; /* one had this search's time limit or a longer one, and spent it */
};

/* Appends the options that are stored with a search, as JSON. */
void past_options(const struct tune_options *o, struct buf *out);

int past_read(struct db *db, int64_t study, const struct tune_options *o, struct past *out,
              struct status *st);

/* ---- schedules.c: schedules in plans ----------------------------------------------------------
 */

struct tuner;

/* Notes in t->fitted the fastest choices found for these plans, as long as there is time before the
 * finals. */
int fit_schedules(struct tuner *t, const struct observation *plans, int count, struct status *st);

/* ---- tune.c: what the phases share ----------------------------------------------------------- */

struct tuner {
    struct bench *bench; /* borrowed */
    struct db *db;       /* borrowed */
    const struct tune_options *o;
    double (*clock)(void); /* in seconds; tune() reads no other clock */
    int64_t study;
    char search_id[HASH_TEXT_SIZE];
    struct past past;
    struct segment_table segments;
    struct history history;
    struct fitted_plans fitted;
    struct plan failed[PLAN_SPACE]; /* stored failures that are measured again */
    int failed_count;
    struct plan space[PLAN_SPACE];
    int space_count;
    int new_trials;
    struct pace {
        struct candidate candidate; /* of no choices: there is none yet */
        struct outcome first;
        int plans;    /* measured since it was timed last */
        double drift; /* of its time to the first one; 1 within the noise of both */
    } anchor;
    struct first_plan {
        struct candidate candidate;
        struct trial trial;        /* released here while `owned` */
        struct observation known;  /* what it says */
        double climb;              /* seconds; when its schedules were first tried */
        bool ran, owned, expected; /* expected: it was chosen for what is expected */
    } first;
    bool said_sharing, said_no_time;
    int comparisons;        /* stored by this search */
    double start, end;      /* seconds; end is infinite without a limit */
    double round;           /* when stage 1 began, or went on */
    double build_s, time_s; /* what the slowest choice took to build, and to time alone */
    struct {
        double start; /* seconds */
        int before;   /* plans in the history */
        int open;     /* plans of the space that are not in the history */
        bool one;     /* it measures one plan */
        bool hasty;   /* segments wait for what time it leaves */
    } stage2;         /* when it began */
};

/* ---- say.c: lines for people ----------------------------------------------------------------- */

void tuner_say(const struct tuner *t, const char *fmt, ...) PRINTF_LIKE(2, 3);

enum tune_phase {
    PHASE_BASELINES,
    PHASE_FAILURES,
    PHASE_SEGMENTS,
    PHASE_SCHEDULES,
    PHASE_PLANS,
    PHASE_FINALS,
    PHASE_MODEL,
    PHASE_COUNT
};

/* Reports a step.  latest: the plan that it measured; may be null. */
void tuner_step(const struct tuner *t, enum tune_phase phase, int done, int total,
                const struct observation *latest);

/* Says which segments fail alone; fate: what becomes of plans with them. */
void say_failed(const struct tuner *t, const char *fate);

/* Says once a search that other processes use the GPU, if they do. */
void say_sharing(struct tuner *t);

/* For the search's end: say_sharing(), and how often the GPU slowed itself down. */
void say_disturbance(struct tuner *t);

/* ---- shared.c: segment times of studies of other workloads ----------------------------------- */

/* On what the time of a segment depends at most, beside the sizes of a layer. */
enum dependence { ON_TOKENS, ON_LENGTHS, ON_MASK };
enum dependence segment_dependence(const struct chain *c, struct segment s);

/* Whether layers have the same sizes, types and number. */
bool same_layers(const struct workload *a, const struct workload *b);

/* Whether a segment takes the same time in both workloads, on the same target. */
bool segment_shared(struct segment s, const struct workload *a, const struct workload *b);

/* Takes the times of segments that do not depend on what differs, after two of them were timed
 * again.  If one of these takes another time here, none is taken. */
int take_shared(struct tuner *t, struct status *st);

/* ---- evaluator.c: stage 2's evaluator -------------------------------------------------------- */

/* A choice or plan that is this many times slower than the best is censored. */
#define HOPELESS_RATIO 2.0

struct evaluator tuner_evaluator(struct tuner *t);

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
    int fitted; /* so many of the fastest try other schedules before */
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

/* ---- learned.c: how a model is judged -------------------------------------------------------- */

/* Figures on held-out plans need JUDGED_LEAST plans. */
enum { FOLDS = 5, JUDGED_LEAST = 2 * FOLDS };

/* About what training the report's model will take; 0 if report_fill() trains none. */
double learn_seconds(const struct tuner *t);

/* ---- neighbours.c ---------------------------------------------------------------------------- */

/* Fills in the plan's time and its neighbours.  db may be null. */
int explain_neighbours(struct db *db, int64_t study, const struct slot_record slots[SLOT_COUNT],
                       int layers, struct explanation *out, struct status *st);

/* ---- summary.c ------------------------------------------------------------------------------- */

int report_fill(struct tuner *t, enum search_stop stopped_by, struct tune_report *out,
                struct status *st);

#include "search/stage1_int.h"

#endif
