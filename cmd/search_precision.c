/* Searches for plans whose GEMMs have operands of e4m3. */
#include "cmd/plans.h"
#include "cmd/search_int.h"

/* The precisions of a search, of which the first has no e4m3. */
struct precisions {
    int count, first; /* first: of those that are searched; 0 where --error chooses */
    unsigned items[GEMM_ALL + 1];
    struct precision_errors errors; /* NaN without --accuracy */
    struct tune_report reports[GEMM_ALL + 1];
};

static int check(const struct options *o, struct status *st)
{
    if (options_has(o, OPT(PRECISION)) && options_has(o, OPT(ERROR)))
        return status_set(
            st, STATUS_USAGE,
            "--error chooses the GEMMs that --precision names; leave one of them out");
    if (options_has(o, OPT(ERROR)) && o->accuracy == NULL)
        return status_set(st, STATUS_USAGE,
                          "--error needs the errors of the model: --accuracy FILE, which 'fuseplan "
                          "accuracy --calibration FILE --format json' prints");
    if (o->accuracy != NULL && !options_has(o, OPT(ERROR) | OPT(PRECISION)))
        return status_set(st, STATUS_USAGE,
                          "--accuracy says what precisions lose; give --error E with it, or "
                          "--precision");
    return 0;
}

/* Begins with the workload's dtype alone, and each precision within --error that is in no other
 * such. */
static int choose(const struct options *o, struct precisions *p, struct status *st)
{
    struct target_name target;
    SCOPED_BY(workload_release) struct workload w;
    if (workload_from_options(o, true, &target, &w, st) != 0)
        return -1;
    const struct build_target build = target_build(target, &w);
    p->first = 0;
    p->count = 1 + precisions_within(&p->errors, o->error, &build, p->items + 1);
    if (p->count == 1)
        note(o, "no GEMM in e4m3 is within an error of %g that the target has kernels for",
             o->error);
    return 0;
}

/* Whether the last comparison of each was the same one. */
static bool are_compared(const struct precisions *p)
{
    bool same = p->reports[0].best.final;
    for (int i = 1; i < p->count && same; i++)
        same = p->reports[i].best.final &&
               strcmp(p->reports[i].best.comparison, p->reports[0].best.comparison) == 0;
    return same;
}

/* limit_s: heeded if there is a time limit. */
static int search_one(const struct options *o, struct precisions *p, int i, double limit_s,
                      struct session *s, struct status *st)
{
    const double least_s = 0.1;
    struct options one = *o;
    SCOPED_BUF name = BUF_INIT;
    if (o->time_limit_s > 0)
        one.time_limit_s = fmax(least_s, limit_s);
    one.precision = p->items[i];
    precision_text(one.precision, "without e4m3", &name);
    if (p->first == 0)
        note(o, "searching plans %s%s, %d of %d", i > 0 ? "in " : "", name.ptr, i + 1, p->count);
    session_close(s);
    tune_report_release(&p->reports[i]);
    return search_run(&one, s, &p->reports[i], st);
}

/* The fastest from the i-th on, by its own finals or by those of all. */
static int fastest(const struct precisions *p, int i)
{
    int best = i;
    while (++i < p->count)
        if (p->reports[i].best.value >= 0 &&
            (p->reports[best].best.value < 0 ||
             p->reports[i].best.ms.median < p->reports[best].best.ms.median))
            best = i;
    return best;
}

static bool has_plans(const struct options *o, const struct build_target *t, unsigned precision)
{
    static struct plan space[PLAN_SPACE];
    struct build_target with = *t;
    with.precision = precision;
    return precision_has_plans(t, precision) &&
           plans_possible(&with, space, plan_space(o->space[0], o->space[1], space)) > 0;
}

static void add(struct precisions *p, unsigned precision)
{
    for (int i = 0; i < p->count; i++)
        if (p->items[i] == precision)
            return;
    p->items[p->count++] = precision;
}

/* Those of which plans are stored. */
static int add_stored(const struct options *o, struct precisions *p, struct session *s,
                      struct status *st)
{
    int64_t study;
    if (study_open(s->bench, s->db, &study, st) != 0)
        return -1;
    for (unsigned precision = GEMM_ALL; precision > 0; precision--) {
        SCOPED_BY(db_best_release) struct db_best best = {.value = -1};
        struct status none = STATUS_INIT;
        db_set_precision(s->db, precision);
        if (precision_error(&p->errors, precision) <= o->error &&
            db_best(s->db, study, &best, &none) == 0)
            add(p, precision);
        if (status_unless_missing(&none, st) != 0)
            return -1;
    }
    db_set_precision(s->db, 0);
    return 0;
}

/* Those that have one GEMM less than the fastest so far. */
static void add_smaller(const struct options *o, struct precisions *p, const struct build_target *t)
{
    const unsigned than = p->items[fastest(p, 1)];
    for (int g = 0; g < GEMM_COUNT; g++) {
        const unsigned smaller = than & ~(1u << g);
        if (smaller != 0 && smaller != than && has_plans(o, t, smaller))
            add(p, smaller);
    }
}

/* All precisions, with equal shares of the time, which no clock changes: the same command finds
 * them spent.  By --error those that have one GEMM less than the fastest follow, as long as one of
 * them is faster: with few tokens a GEMM may take longer in e4m3, or keep operators apart.  Where
 * all were compared, and nothing was measured since, they were searched before. */
static int search_each(const struct options *o, struct precisions *p, struct session *s,
                       struct status *st)
{
    const double end_s = clock_seconds() + o->time_limit_s;
    const bool chooses = p->first == 0 && p->count > 1;
    const int largest = p->count, shares = largest - p->first + (chooses ? GEMM_COUNT : 0);
    int measured = 0;
    for (int i = p->first; i < p->count; i++) {
        double limit_s = o->time_limit_s / shares;
        if (i - p->first >= shares)
            limit_s = fmin(limit_s, end_s - clock_seconds());
        if (search_one(o, p, i, limit_s, s, st) != 0)
            return -1;
        measured += p->reports[i].new_trials;
        if (!chooses || session_stop != 0)
            continue;
        if (i == 0 && add_stored(o, p, s, st) != 0)
            return -1;
        if (i == p->count - 1 && (measured > 0 || p->count == largest || !are_compared(p)))
            add_smaller(o, p, bench_target(s->bench));
    }
    return 0;
}

/* Whether a plan in e4m3 is known; else there is nothing to compare. */
static bool has_e4m3(const struct precisions *p)
{
    bool has = false;
    for (int i = 0; i < p->count; i++)
        has = has || (p->items[i] != 0 && p->reports[i].best.value >= 0);
    return has;
}

/* The best plan known of each precision. */
static int read_best(struct precisions *p, struct session *s, struct status *st)
{
    int64_t study;
    if (study_open(s->bench, s->db, &study, st) != 0)
        return -1;
    for (int i = 0; i < p->count; i++) {
        struct status none = STATUS_INIT;
        db_best_release(&p->reports[i].best);
        db_set_precision(s->db, p->items[i]);
        if (db_best(s->db, study, &p->reports[i].best, &none) == 0) {
            if (runner_up_read(s->db, study, &p->reports[i].best, &p->reports[i].runner_up, st) !=
                0)
                return -1;
            continue;
        }
        p->reports[i].best.value = -1;
        if (status_unless_missing(&none, st) != 0)
            return -1;
    }
    return 0;
}

static int compare(const struct options *o, struct precisions *p, struct session *s,
                   struct status *st)
{
    struct best_plan best = {.known = false};
    struct baselines baselines;
    struct status none = STATUS_INIT;
    if (read_best(p, s, st) != 0)
        return -1;
    if (session_stop != 0 || !has_e4m3(p) || are_compared(p))
        return 0;
    if (baselines_from_options(o, &best, &baselines, st) != 0)
        return -1;
    if (compare_precisions(s->bench, s->db, p->items, p->count, &baselines, &p->errors, &none) !=
        0) {
        if (none.code != STATUS_NOT_FOUND) {
            *st = none;
            return -1;
        }
        if (p->first > 0)
            note(o, "%s: 'fuseplan search' without --precision finds one to compare with",
                 none.message);
        return 0;
    }
    return read_best(p, s, st);
}

/* What each of its GEMMs gains stands in the rows of the others. */
static json_t *rows_of(const struct precisions *p, const struct workload *w)
{
    json_t *rows = json_array();
    for (int i = 0; i < p->count; i++) {
        const struct db_best *b = &p->reports[i].best;
        SCOPED_BUF name = BUF_INIT;
        precision_text(p->items[i], dtypes[w->dtype].name, &name);
        bool ran = b->value >= 0, compared = ran && are_compared(p);
        const struct interval ms = ran ? b->ms : NO_INTERVAL;
        json_array_append_new(
            rows,
            json_pack("{ss so so so so so so sb}", "precision", name.ptr, "value",
                      ran ? json_integer(b->value) : json_null(), MS_MEMBERS(ms), "speedup",
                      json_number(compared ? p->reports[0].best.ms.median / b->ms.median : NAN),
                      "error", json_number(precision_error(&p->errors, p->items[i])),
                      "error_measured", !isnan(p->errors.measured[p->items[i]])));
    }
    return rows;
}

static int run(const struct options *o, struct precisions *p, struct session *s, struct status *st)
{
    if (search_each(o, p, s, st) != 0 || compare(o, p, s, st) != 0)
        return -1;
    const struct tune_report *best = &p->reports[fastest(p, p->first)];
    search_print(o, &s->workload, s->target.kind, best, json_array(), NULL,
                 rows_of(p, &s->workload));
    return search_end(o, best);
}

int search_precisions(const struct options *o, struct status *st)
{
    SCOPED struct precisions *p = mem_alloc(1, sizeof(*p));
    SCOPED_BY(session_close) struct session s = {.bench = NULL};
    *p = (struct precisions){.count = 2, .first = 1, .items = {0, o->precision}};
    for (unsigned i = 0; i <= GEMM_ALL; i++) {
        p->errors.measured[i] = NAN;
        p->reports[i].best.value = -1;
    }
    if (check(o, st) != 0 ||
        (o->accuracy != NULL &&
         precision_errors_read(o->accuracy, options_has(o, OPT(DTYPE)) ? o->dtype : DTYPE_FP16,
                               &p->errors, st) != 0) ||
        (options_has(o, OPT(ERROR)) && choose(o, p, st) != 0))
        return -1;
    int code = run(o, p, &s, st);
    for (int i = 0; i < p->count; i++)
        tune_report_release(&p->reports[i]);
    return code;
}
