#include "search/space.h"
#include "search/study_int.h"

static void init(struct recorded_space *s)
{
    *s = (struct recorded_space){.best = -1};
    for (int i = 0; i < SLOT_COUNT; i++)
        s->segments.ms[i] = NAN;
    for (int i = 0; i < PLAN_KEYS; i++)
        s->at[i] = -1;
}

void recorded_space_release(struct recorded_space *s)
{
    free(s->plans);
    free(s->outcomes);
    init(s);
}

bool recorded_space_is_whole(const struct recorded_space *s)
{
    SCOPED struct plan *space = mem_alloc(PLAN_SPACE, sizeof(*space));
    return s->count == plan_space(s->lo, s->hi, space);
}

/* ---- reading a study ------------------------------------------------------------------------- */

struct reading {
    struct recorded_space *out;
    bool in_space[PLAN_KEYS];
    double again_ms[PLAN_SPACE]; /* like plans: side by side with others; NaN if it was not */
};

static int segment_row(void *ctx, const struct db_trial *row)
{
    struct recorded_space *s = ((struct reading *)ctx)->out;
    int slot = slot_of_choice(s->target, &row->choices[0]);
    if (row->status == TRIAL_OK)
        s->segments.ms[slot] = fmin(s->segments.ms[slot], row->median_ms); /* ignores a NaN */
    s->failed[slot] = isnan(s->segments.ms[slot]);
    return 0;
}

static int plan_row(void *ctx, const struct db_trial *row)
{
    struct reading *r = ctx;
    struct recorded_space *s = r->out;
    struct plan p = plan_from_value((unsigned)row->value);
    if (!r->in_space[plan_key(p)])
        return 0;
    s->at[plan_key(p)] = s->count;
    s->plans[s->count] = p;
    s->outcomes[s->count] = outcome_of_row(row);
    r->again_ms[s->count++] = NAN;
    return 0;
}

/* Rows come oldest first, so the newest comparison of a search counts.  A comparison of `bench` has
 * any plans and any date, and would put its plans on a scale of their own. */
static int final_row(void *ctx, const struct db_trial *row)
{
    struct reading *r = ctx;
    int i = r->out->at[plan_key(plan_from_value((unsigned)row->value))];
    if (i >= 0 && strcmp(row->strategy, "bench") != 0 && row->status == TRIAL_OK &&
        r->out->outcomes[i].status == TRIAL_OK) {
        r->again_ms[i] = row->median_ms;
        r->out->outcomes[i].noise = outcome_of_row(row).noise;
    }
    return 0;
}

/* A search times fewer layers than there are and scales the time to all, and it times no plans side
 * by side.  This factor puts such a time on the scale of the plans timed again: the median of their
 * ratios, 1 if there are none. */
static double scale(const struct reading *r)
{
    const struct recorded_space *s = r->out;
    SCOPED double *ratios = mem_alloc((size_t)s->count + 1, sizeof(*ratios));
    size_t n = 0;
    for (int i = 0; i < s->count; i++)
        if (!isnan(r->again_ms[i]))
            ratios[n++] = r->again_ms[i] / s->outcomes[i].ms;
    return n > 0 ? stats_median(ratios, n).median : 1;
}

/* The best plan known of the study or, if it is not in the space, the fastest one there. */
static int find_best(struct db *db, int64_t study, struct recorded_space *s, struct status *st)
{
    SCOPED_BY(db_best_release) struct db_best best;
    if (db_best(db, study, &best, st) != 0)
        return -1;
    s->best = s->at[plan_key(plan_from_value((unsigned)best.value))];
    if (s->best >= 0 && s->outcomes[s->best].status == TRIAL_OK)
        return 0;
    s->best = -1;
    for (int i = 0; i < s->count; i++)
        if (s->outcomes[i].status == TRIAL_OK &&
            (s->best < 0 || s->outcomes[i].ms < s->outcomes[s->best].ms))
            s->best = i;
    return s->best >= 0 ? 0 : status_set(st, STATUS_USAGE, "no plan of %u..%u ran", s->lo, s->hi);
}

static int read_study(struct db *db, int64_t study, struct reading *r, struct status *st)
{
    struct recorded_space *s = r->out;
    SCOPED struct plan *space = mem_alloc(PLAN_SPACE, sizeof(*space));
    int count = plan_space(s->lo, s->hi, space);
    for (int i = 0; i < count; i++)
        r->in_space[plan_key(space[i])] = true;
    s->plans = mem_alloc((size_t)count, sizeof(*s->plans));
    s->outcomes = mem_alloc((size_t)count, sizeof(*s->outcomes));
    if (db_trials(db, study, DB_TRIAL_SEGMENT, segment_row, r, st) != 0 ||
        db_trial_times(db, study, DB_TRIAL_PLAN, plan_row, r, st) != 0 ||
        db_trial_times(db, study, DB_TRIAL_FINAL, final_row, r, st) != 0)
        return -1;
    double ratio = scale(r);
    for (int i = 0; i < s->count; i++)
        s->outcomes[i].ms = isnan(r->again_ms[i]) ? ratio * s->outcomes[i].ms : r->again_ms[i];
    return find_best(db, study, s, st);
}

/* ---- the file -------------------------------------------------------------------------------- */

struct studies {
    int count; /* in which a plan ran */
    int64_t study;
    enum target_kind target;
    int layers;
};

static void note_study(void *ctx, const struct db_listed *l)
{
    struct studies *s = ctx;
    if (l->value < 0)
        return;
    s->count++;
    s->study = l->study;
    s->target = strcmp(l->target.kind, target_names[TARGET_CUDA]) == 0 ? TARGET_CUDA : TARGET_CPU;
    s->layers = (int)l->workload.layers;
}

static int read_file(const char *path, struct db *db, struct recorded_space *out, struct status *st)
{
    struct db_moved moved;
    struct studies found = {.count = 0};
    if (db_import(db, &path, 1, &moved, st) != 0 || db_list(db, note_study, &found, st) != 0)
        return -1;
    if (found.count != 1)
        return status_set(st, STATUS_USAGE,
                          "'%s' has plans of %d workloads, devices or protocols; a replay takes "
                          "one, as 'fuseplan db export' writes it from a database of its own",
                          path, found.count);
    out->target = found.target;
    out->layers = found.layers;
    SCOPED struct reading *r = mem_alloc(1, sizeof(*r));
    r->out = out;
    return read_study(db, found.study, r, st) == 0 ? 0 : status_prefix(st, "'%s'", path);
}

int recorded_space_read(const char *path, unsigned lo, unsigned hi, struct recorded_space *out,
                        struct status *st)
{
    SCOPED_BY(db_close_at) struct db *db = NULL;
    init(out);
    out->lo = lo;
    out->hi = hi;
    if (db_open_scratch(&db, st) == 0 && read_file(path, db, out, st) == 0)
        return 0;
    recorded_space_release(out);
    return -1;
}

/* ---- the evaluator --------------------------------------------------------------------------- */

static int measure(void *ctx, struct plan p, struct outcome *out, struct status *st)
{
    const struct recorded_space *s = ctx;
    int i = s->at[plan_key(p)];
    if (i < 0)
        return status_set(st, STATUS_NOT_FOUND, "plan %u was not recorded", plan_value(p));
    *out = s->outcomes[i];
    return 0;
}

static const struct segment_times *segments(void *ctx)
{
    return &((const struct recorded_space *)ctx)->segments;
}

bool recorded_space_fails(const struct recorded_space *s, struct plan p)
{
    return s->at[plan_key(p)] < 0 || plan_has_slot(p, s->failed);
}

static bool fails(void *ctx, struct plan p)
{
    return recorded_space_fails(ctx, p);
}

static double now(void *ctx)
{
    (void)ctx;
    return 0;
}

struct evaluator recorded_space_evaluator(const struct recorded_space *s)
{
    return (struct evaluator){.measure = measure,
                              .segments = segments,
                              .fails = fails,
                              .now = now,
                              .ctx = (void *)(uintptr_t)s}; /* which they only read */
}
