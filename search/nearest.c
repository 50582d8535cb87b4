/* The best plan of the nearest workload, by the schedules that it ran there. */
#include "search/tuner_int.h"

/* Near are workloads of at most so many times as many tokens or fewer, and likewise long. */
#define NEAR 2.0

struct near {
    int64_t study;
    double distance;
};

struct nearest {
    const struct workload *workload;
    struct near *items; /* (count) owned */
    size_t count;
};

/* Infinite if it is not near. */
static double distance(const struct workload *a, const struct workload *b)
{
    double tokens = fabs(log((double)workload_tokens(a) / (double)workload_tokens(b))),
           lengths = fabs(log((double)a->seq_len / b->seq_len)), most = log(NEAR) + 1e-9;
    bool near = same_layers(a, b) && (a->lengths != NULL) == (b->lengths != NULL) &&
                tokens <= most && lengths <= most;
    return near ? tokens + lengths / 2 : INFINITY;
}

static void note_study(void *ctx, int64_t study, const char *workload_text)
{
    struct nearest *n = ctx;
    SCOPED_BY(workload_release) struct workload w;
    if (workload_parse(workload_text, &w, STATUS_IGNORED) == 0 && /* else of another version */
        isfinite(distance(&w, n->workload))) {
        n->items = mem_resize(n->items, n->count + 1, sizeof(*n->items));
        n->items[n->count++] = (struct near){study, distance(&w, n->workload)};
    }
}

static int by_distance(const void *pa, const void *pb)
{
    const struct near *a = pa, *b = pb;
    int by = (a->distance > b->distance) - (a->distance < b->distance);
    return by != 0 ? by : (a->study < b->study) - (a->study > b->study);
}

/* The best plan of a study, if it is of the space and has choices for this target; 1, 0 or -1. */
static int best_of(const struct tuner *t, int64_t study, struct candidate *out, struct status *st)
{
    const struct choice_source from = {
        .db = t->db, .study = study, .target = bench_target(t->bench)};
    SCOPED_BY(db_best_release) struct db_best best = {.value = -1};
    struct status missing = STATUS_INIT;
    int slots[OP_COUNT], found = db_best(t->db, study, &best, &missing);
    struct plan p = plan_from_value(best.value >= 0 ? (unsigned)best.value : 0);
    if (found != 0)
        return status_unless_missing(&missing, st);
    if (!plan_in_space(p, t->space, t->space_count) || (t->o->by_neighbour && !best.final) ||
        history_has(&t->history, p)) /* it failed here */
        return 0;
    if (study_candidate(&from, p, out, st) != 0)
        return -1;
    out->packed = t->segments.packed;
    return out->count == plan_slots(p, slots);
}

int nearest_plan(const struct tuner *t, struct candidate *out, struct status *st)
{
    struct nearest n = {.workload = bench_workload(t->bench)};
    int found = db_studies_beside(t->db, t->study, note_study, &n, st);
    if (n.count > 0)
        qsort(n.items, n.count, sizeof(*n.items), by_distance);
    for (size_t i = 0; i < n.count && found == 0; i++)
        found = best_of(t, n.items[i].study, out, st);
    free(n.items);
    return found;
}
