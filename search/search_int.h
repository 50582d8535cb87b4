/* What search's files share among themselves. */
#ifndef FUSEPLAN_SEARCH_INT_H
#define FUSEPLAN_SEARCH_INT_H

#include "search/search.h"

/* ---- random.c, guided.c: the strategies ------------------------------------------------------ */

int random_propose(const struct strategy_context *c, int max, struct proposal *out,
                   struct status *st);
int guided_propose(const struct strategy_context *c, int max, struct proposal *out,
                   struct status *st);

bool proposal_has(const struct proposal *p, struct plan plan);

/* ---- history.c: what a model learns from ----------------------------------------------------- */

/* The plans that gave a time; of a censored one its lower bound.  Free with model_data_release().
 */
struct model_data training_of(const struct history *h);

/* ---- segments.c: what is known of the segments ----------------------------------------------- */

struct attempt {
    struct choice choice;
    bool tried;
    double ms; /* NaN where it failed or was censored */
};

struct slot {
    int count;
    struct attempt *attempts;   /* (count) the defaults first, owned */
    const struct attempt *best; /* the fastest that ran; null where none has */
    struct status reason;       /* of the last that did not */
};

struct segment_table {
    enum target_kind target;
    struct slot slots[SLOT_COUNT];
    struct segment_times times; /* of each slot's best */
};

void segment_table_init(struct segment_table *t, const struct build_target *target);
void segment_table_release(struct segment_table *t);

/* Keeps the choices that run on another target too; before anything is read. */
void segment_table_restrict(struct segment_table *t, const struct build_target *target);

/* Marks what the database holds as tried. */
int segment_table_read(struct segment_table *t, struct db *db, int64_t study, struct status *st);

/* What became of an attempt: ms, or NaN and the reason. */
void segment_table_note(struct segment_table *t, int slot, int attempt, double ms,
                        const struct status *reason);

bool choice_is_default(const struct choice *c);

/* The defaults of all its implementations failed: no plan can hold this segment. */
bool slot_failed(const struct slot *s);

/* The index of the space's plan with the smallest sum over its segments; -1 where none is known. */
int additive_best(const struct plan *space, int space_count, const struct segment_times *times);

/* The plan with the best choice known of each segment, an untried default where none is.  -1 with
 * the reason where a segment failed; *out is filled then too, so that the failure can be stored. */
int segment_table_candidate(const struct segment_table *t, struct plan p, struct candidate *out,
                            struct status *st);

/* ---- tune.c: what the phases share ----------------------------------------------------------- */

struct tuner {
    struct bench *bench; /* borrowed */
    struct db *db;       /* borrowed */
    const struct tune_options *o;
    double (*clock)(void); /* in seconds; the only one that tune() reads */
    int64_t study;
    char search_id[HASH_TEXT_SIZE];
    struct segment_table segments;
    struct history history;
    struct plan space[PLAN_SPACE];
    int space_count;
    int new_trials;
    bool said_sharing;
    double start, end; /* seconds; end is infinite without a limit */
    double verify_s;   /* what the first comparison takes to verify layers that no plan ran yet */
    struct {
        double start; /* seconds */
        int before;   /* plans in the history */
        int open;     /* plans of the space that were not */
    } stage2;         /* as it began */
};

/* ---- say.c: to people ------------------------------------------------------------------------ */

void tuner_say(const struct tuner *t, const char *fmt, ...) PRINTF_LIKE(2, 3);
void tuner_tick(const struct tuner *t, const char *fmt, ...) PRINTF_LIKE(2, 3);

/* Once a search, as soon as it is known: others use the GPU. */
void say_sharing(struct tuner *t);

/* At the end: that, and how often the GPU slowed itself down. */
void say_disturbance(struct tuner *t);

/* ---- stage1.c -------------------------------------------------------------------------------- */

/* Builds and times what was not tried of the slots, the defaults or all that a climb from them
 * reaches, and stores each result.  Begins nothing after the deadline. */
int time_slots(struct tuner *t, const int *slots, int count, bool climb, double deadline,
               struct status *st);

/* All segments; resumes where the database ends. */
int stage1(struct tuner *t, double deadline, struct status *st);

/* ---- evaluator.c: stage 2's evaluator -------------------------------------------------------- */

/* A choice or plan this many times slower than the best is not timed to the end but censored. */
#define HOPELESS_RATIO 2.0

struct evaluator tuner_evaluator(struct tuner *t);

/* ---- lineup.c: who stands side by side, and for how long ------------------------------------- */

/* A comparison side by side. */
struct contest {
    const char *name;
    int fastest; /* how many of the fastest plans, the baselines apart */
    struct sampling how;
    double share; /* of the time left */
    /* Tell its rows from those of the search's other comparisons: where all were compared, and
     * where a time limit cut that short. */
    const char *mark, *mark_cut_short;
};

struct lineup {
    int count;                 /* 0 where the time left allows none */
    struct observation *items; /* (count) owned */
    struct sampling how;
    bool cut_short; /* fewer of the fastest than the contest wants */
};

/* A baseline as it was measured; null where it was not, or failed. */
const struct observation *baseline_known(const struct tuner *t, struct plan p);

/* As many of the fastest as the time left allows, and the sampling that it allows them. */
struct lineup lineup_in_time(const struct tuner *t, const struct history *from,
                             const struct contest *contest);
void lineup_release(struct lineup *l);

/* What comparing the best plan with the baselines takes, beside verifying their layers. */
double least_finals_seconds(const struct tuner *t);

/* ---- finals.c: the finalists, side by side --------------------------------------------------- */

/* Finalists are verified in all layers, plans and segments in the first: what the oracle takes for
 * that one, it takes for each of the others. */
void expect_verification(struct tuner *t, const struct trial *trial);

/* Whether the finalists were compared with all baselines and nothing was measured since. */
int finals_held(struct tuner *t, bool *out, struct status *st);

/* Times the best few plans, the baselines and the additive best interleaved, unless
 * finals_held(); of an exhaustive search the best few of those that a
 * shorter comparison of many more finds.  Where a time limit cut that one short, an exhaustive
 * search with the time makes both again. */
int measure_finals(struct tuner *t, struct status *st);

/* ---- record.c -------------------------------------------------------------------------------- */

/* trials_store() of finals, under a text of their own: for a search that compares more than once.
 */
int comparison_store(struct db *db, int64_t study, const struct candidate *c, const struct trial *t,
                     int count, const char *comparison, const char *search_id, struct status *st);

/* ---- gzip.c: packed bytes -------------------------------------------------------------------- */

/* Appends to out.  Equal data gives equal bytes: no name, no time. */
void gzip_pack(const void *data, size_t len, struct buf *out);

/* Appends what was packed; more than max_bytes of it is refused. */
int gzip_unpack(const void *data, size_t len, size_t max_bytes, struct buf *out, struct status *st);

/* ---- space_write.c, space_read.c: what both know of the format ------------------------------- */

#define SPACE_FORMAT "fuseplan space"
enum { SPACE_VERSION = 1 };

/* Fills what space.c's init left empty; changes the text. */
int space_parse(char *text, struct recorded_space *out, struct status *st);

/* ---- learned.c: how a model is judged -------------------------------------------------------- */

enum { FOLDS = 5, JUDGED_LEAST = 2 * FOLDS }; /* plans, for figures on held-out ones */

/* ---- summary.c ------------------------------------------------------------------------------- */

int report_fill(struct tuner *t, enum search_stop stopped_by, struct tune_report *out,
                struct status *st);

/* About what training the report's model will take, at the search's end; 0 where it trains none. */
double learn_seconds(const struct tuner *t);

#endif
