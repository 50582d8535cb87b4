/* What a search builds first. */
#include "search/best_first_int.h"
#include "search/precision.h"
#include "search/tune.h"

struct ahead {
    const struct segment_table *table;
    struct job *jobs; /* (count) each once; there is room for all */
    int count;
};

static void add(struct ahead *a, int slot, int attempt)
{
    for (int i = 0; i < a->count; i++)
        if (a->jobs[i].slot == slot && a->jobs[i].attempt == attempt)
            return;
    a->jobs[a->count++] = (struct job){slot, attempt};
}

static void add_defaults(struct ahead *a, const int *slots, int count)
{
    for (int i = 0; i < count; i++) {
        const struct slot *s = &a->table->slots[slots[i]];
        for (int k = 0; k < s->count; k++)
            if (attempt_is_due(s, &s->attempts[k], false))
                add(a, slots[i], k);
    }
}

static void add_plan(struct ahead *a, struct plan p)
{
    int slots[OP_COUNT], count = plan_slots(p, slots);
    add_defaults(a, slots, count);
}

/* The first steps of a climb. */
static void add_steps(struct ahead *a, struct plan p)
{
    int slots[OP_COUNT], count = plan_slots(p, slots);
    for (int i = 0; i < count; i++) {
        const struct slot *s = &a->table->slots[slots[i]];
        for (int k = 0; k < s->count; k++)
            if (step_is_due(s, &s->attempts[k], s->best != NULL ? s->best : &s->attempts[0]))
                add(a, slots[i], k);
    }
}

int add_likely_jobs(const struct best_first *b, const struct segment_table *t,
                    const struct baselines *baselines, struct job *jobs, int count)
{
    struct ahead a = {t, jobs, count};
    int slots[SLOT_COUNT], sure, all = slots_timed_first(b, &sure, slots);
    int expected = expected_best(t, b->space, b->space_count);
    for (int i = 0; i < baselines->count; i++)
        add_plan(&a, baselines->plans[i]);
    add_defaults(&a, slots, sure);
    if (expected >= 0)
        add_steps(&a, b->space[expected]);
    for (int i = sure; i < all; i++)
        if (isfinite(b->expected.ms[slots[i]]))
            add_defaults(&a, &slots[i], 1);
    if (sure == all && !model_knows(b))
        add_defaults(&a, slots, slots_audited(b, slots));
    return a.count;
}

/* What a search that knows nothing times of a plan of the space or a baseline. */
static void add_all(struct ahead *a, const struct tune_options *o, const struct best_first *b)
{
    int slots[SLOT_COUNT], sure;
    int expected = expected_best(a->table, b->space, b->space_count);
    if (expected >= 0)
        add_plan(a, b->space[expected]);
    a->count = add_likely_jobs(b, a->table, &o->baselines, a->jobs, a->count);
    add_defaults(a, slots, slots_timed_first(b, &sure, slots));
    /* Where nothing is expected, any segment may be wanted. */
    for (int i = 0; (expected < 0 || o->rigor == RIGOR_EXHAUSTIVE) && i < SLOT_COUNT; i++)
        if (b->used[i])
            add_defaults(a, &i, 1);
}

int choices_ahead(const struct bench *b, const struct tune_options *o, struct choice **out)
{
    SCOPED_BY(segment_table_release) struct segment_table table;
    struct best_first first;
    SCOPED struct plan *space = mem_alloc(PLAN_SPACE, sizeof(*space));
    int space_count = plan_space(o->search.space_lo, o->search.space_hi, space);
    if (bench_target(b)->precision != 0)
        space_count = plans_possible(bench_target(b), space, space_count);
    segment_table_init(&table, bench_target(b));
    if (o->rigor != RIGOR_EXHAUSTIVE)
        segment_table_expect(&table, bench_workload(b));
    best_first_init(&first, &table, space, space_count, o->search.seed);
    size_t size = (size_t)segment_table_size(&table) + 1;
    SCOPED struct job *jobs = mem_alloc(size, sizeof(*jobs));
    struct ahead a = {.table = &table, .jobs = jobs};
    add_all(&a, o, &first);
    *out = mem_alloc(size, sizeof(**out));
    for (int i = 0; i < a.count; i++)
        (*out)[i] = table.slots[jobs[i].slot].attempts[jobs[i].attempt].choice;
    return a.count;
}

int tune_take_turn(struct bench *b, const struct tune_options *o, struct status *st)
{
    SCOPED struct choice *choices = NULL;
    int count = bench_waits(b) ? choices_ahead(b, o, &choices) : 0;
    return bench_take_turn(b, choices, count, st);
}
