/* The plans that differ from one by a cut, and what is known of their times. */
#include "search/study_int.h"

const char *const change_names[CHANGE_COUNT] = {
    [CHANGE_FUSED] = "fused",
    [CHANGE_CUT] = "cut",
    [CHANGE_MOVED] = "moved",
    [CHANGE_ATTENTION] = "attention",
};

/* ---- which they are -------------------------------------------------------------------------- */

/* Attention that becomes a segment of its own is hand-written, as in the values that a search
 * chooses from. */
static void add(struct explanation *e, uint16_t fused, enum change change, int after, int to)
{
    bool serves = plan_of(e->plan.fused, true).handwritten;
    e->neighbours[e->neighbour_count++] =
        (struct neighbour){.plan = plan_of(fused, !serves || e->plan.handwritten),
                           .change = change,
                           .after = after,
                           .to = to};
}

static bool is_cut(struct plan p, int boundary)
{
    return boundary >= 0 && boundary < BOUNDARY_COUNT && (p.fused >> boundary & 1) == 0;
}

static bool is_fused(struct plan p, int boundary)
{
    return boundary >= 0 && boundary < BOUNDARY_COUNT && !is_cut(p, boundary);
}

static void find_neighbours(struct explanation *e)
{
    struct plan p = e->plan;
    for (int b = 0; b < BOUNDARY_COUNT; b++) {
        uint16_t other = p.fused ^ (uint16_t)(1u << b);
        add(e, other, is_cut(p, b) ? CHANGE_FUSED : CHANGE_CUT, b, -1);
        for (int to = b - 1; to <= b + 1; to += 2)
            if (is_cut(p, b) && is_fused(p, to))
                add(e, other ^ (uint16_t)(1u << to), CHANGE_MOVED, b, to);
    }
    if (!plan_of(p.fused, true).handwritten)
        return;
    add(e, p.fused, CHANGE_ATTENTION, -1, -1);
    e->neighbours[e->neighbour_count - 1].plan.handwritten = !p.handwritten;
}

/* ---- what is known of them ------------------------------------------------------------------- */

/* What is stored of a plan. */
struct stored {
    struct trial searched,
        compared; /* of its search, and of the comparison that the best plan won */
    bool tried;   /* in a search */
};

static int read_stored(struct db *db, int64_t study, struct plan p, const char *comparison,
                       struct stored *out, struct status *st)
{
    int value = (int)plan_value(p), searched, compared = 0;
    *out = (struct stored){.searched = {.status = TRIAL_FAILED, .ms = NO_INTERVAL},
                           .compared = {.status = TRIAL_FAILED, .ms = NO_INTERVAL}};
    if (db == NULL)
        return 0;
    searched = trial_read(db, study, value, "", &out->searched, NULL, NULL, st);
    if (searched >= 0 && comparison[0] != '\0')
        compared = trial_read(db, study, value, comparison, &out->compared, NULL, NULL, st);
    out->tried = searched > 0;
    return searched < 0 || compared < 0 ? -1 : 0;
}

static void release_stored(struct stored *s)
{
    trial_release(&s->searched);
    trial_release(&s->compared);
}

/* The sum of the segments of one plan that another one lacks, in one layer; NaN if one of them was
 * not measured alone. */
static double own_ms(const struct segment_times *times, struct plan p, struct plan other)
{
    int at[OP_COUNT], theirs[OP_COUNT], count = plan_slots(p, at), n = plan_slots(other, theirs);
    double sum = 0;
    for (int i = 0; i < count; i++) {
        bool shared = false;
        for (int k = 0; k < n; k++)
            shared |= theirs[k] == at[i];
        if (!shared)
            sum += times->ms[at[i]];
    }
    return sum;
}

/* Like is compared with like: times of one comparison, times of searches, sums of segments. */
static void judge(struct neighbour *n, const struct explanation *e, const struct stored *plan,
                  const struct stored *other, double change_ms)
{
    double base_ms = e->ms.median;
    n->ms = NAN;
    n->ratio = NO_INTERVAL;
    if (isfinite(plan->compared.ms.median) && isfinite(other->compared.ms.median)) {
        n->source = TIME_COMPARED;
        n->ms = other->compared.ms.median;
        n->ratio = times_ratio(&other->compared, &plan->compared);
    } else if (isfinite(other->searched.ms.median)) {
        n->source = TIME_SEARCHED;
        n->ms = other->searched.ms.median;
        n->ratio.median = n->ms / plan->searched.ms.median;
    } else if (other->tried) {
        n->source = TIME_TRIED;
        snprintf(n->reason, sizeof(n->reason), "%.159s", other->searched.reason.message);
        utf8_mend(n->reason);
    } else if (isfinite(base_ms + change_ms)) {
        n->source = TIME_PREDICTED;
        n->ms = base_ms + change_ms;
        n->ratio.median = n->ms / base_ms;
    }
}

static int by_ratio(const void *a, const void *b)
{
    const struct neighbour *x = a, *y = b;
    if ((x->source == TIME_UNKNOWN) != (y->source == TIME_UNKNOWN))
        return x->source == TIME_UNKNOWN ? 1 : -1;
    double xs = x->ratio.median, ys = y->ratio.median;
    if (isnan(xs) || isnan(ys) || xs == ys)
        return isnan(xs) != isnan(ys) ? (isnan(xs) ? 1 : -1)
                                      : (int)plan_value(x->plan) - (int)plan_value(y->plan);
    return xs < ys ? -1 : 1;
}

/* The plan's own time: of the comparison, else of its search, else the sum of its segments. */
static void judge_plan(const struct stored *plan, int layers, struct explanation *out)
{
    if (isfinite(plan->compared.ms.median)) {
        out->source = TIME_COMPARED;
        out->ms = plan->compared.ms;
    } else if (isfinite(plan->searched.ms.median)) {
        out->source = TIME_SEARCHED;
        out->ms = plan->searched.ms;
    } else if (plan->tried) {
        out->source = TIME_TRIED;
    } else if (isfinite(out->sum_us)) {
        out->source = TIME_PREDICTED;
        out->ms.median = 1e-3 * out->sum_us * layers;
    }
}

static int read_all(struct db *db, int64_t study, const struct segment_times *times,
                    const char *comparison, int layers, struct explanation *out, struct status *st)
{
    struct stored plan, other;
    int result = read_stored(db, study, out->plan, comparison, &plan, st);
    judge_plan(&plan, layers, out);
    for (int i = 0; i < out->neighbour_count && result == 0; i++) {
        struct neighbour *n = &out->neighbours[i];
        result = read_stored(db, study, n->plan, comparison, &other, st);
        double change_ms = own_ms(times, n->plan, out->plan) - own_ms(times, out->plan, n->plan);
        judge(n, out, &plan, &other, change_ms * layers);
        release_stored(&other);
    }
    release_stored(&plan);
    return result;
}

int explain_neighbours(struct db *db, int64_t study, const struct segment_times *times, int layers,
                       struct explanation *out, struct status *st)
{
    SCOPED_BY(db_best_release) struct db_best best = {.value = -1};
    struct status none = STATUS_INIT;
    if (db != NULL && db_best(db, study, &best, &none) != 0 &&
        status_unless_missing(&none, st) != 0)
        return -1;
    out->packed = best.packed && best.value == (int)plan_value(out->plan);
    find_neighbours(out);
    int result =
        read_all(db, study, times, best.comparison != NULL ? best.comparison : "", layers, out, st);
    qsort(out->neighbours, (size_t)out->neighbour_count, sizeof(out->neighbours[0]), by_ratio);
    return result;
}
