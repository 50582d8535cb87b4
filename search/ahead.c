/* What a search of a workload builds first, told without a device. */
#include "search/best_first_int.h"
#include "search/tune.h"

#include <stdlib.h>

struct ahead {
    const struct segment_table *table;
    bool wanted[SLOT_COUNT];
    struct choice *choices; /* (count) owned */
    int count;
};

static void add(struct ahead *a, const struct choice *c)
{
    a->choices = mem_resize(a->choices, (size_t)a->count + 1, sizeof(*a->choices));
    a->choices[a->count++] = *c;
}

static void add_plan(struct ahead *a, struct plan p)
{
    int slots[OP_COUNT], count = plan_slots(p, slots);
    for (int i = 0; i < count; i++)
        a->wanted[slots[i]] = true;
}

/* Other schedules of its segments are tried as soon as it has run. */
static void add_steps(struct ahead *a, struct plan p)
{
    int slots[OP_COUNT], count = plan_slots(p, slots);
    for (int i = 0; i < count; i++) {
        const struct slot *s = &a->table->slots[slots[i]];
        for (int k = 0; k < s->count; k++)
            if (!s->attempts[k].usual &&
                one_knob_apart(&s->attempts[k].choice, &s->attempts[0].choice))
                add(a, &s->attempts[k].choice);
    }
}

/* Where nothing is expected, any segment may be wanted. */
static void choose_slots(struct ahead *a, const struct tune_options *o, const struct plan *space,
                         int space_count, int expected)
{
    struct best_first b;
    int slots[SLOT_COUNT];
    best_first_init(&b, a->table, space, space_count, o->search.seed);
    for (int i = 0, count = slots_timed_first(&b, slots); i < count; i++)
        a->wanted[slots[i]] = true;
    for (int i = 0; i < SLOT_COUNT; i++)
        a->wanted[i] |= b.used[i] && (expected < 0 || o->rigor == RIGOR_EXHAUSTIVE);
    for (int i = 0; i < o->baselines.count; i++)
        add_plan(a, o->baselines.plans[i]);
    if (expected >= 0)
        add_plan(a, space[expected]);
}

int choices_ahead(const struct bench *b, const struct tune_options *o, struct choice **out)
{
    struct segment_table table;
    struct plan *space = mem_alloc(PLAN_SPACE, sizeof(*space));
    int space_count = plan_space(o->search.space_lo, o->search.space_hi, space);
    segment_table_init(&table, bench_target(b));
    struct ahead a = {.table = &table};
    int expected = expected_best(&table, bench_workload(b), space, space_count);
    choose_slots(&a, o, space, space_count, expected);
    for (int i = 0; i < SLOT_COUNT; i++)
        for (int k = 0; k < table.slots[i].count && a.wanted[i]; k++)
            if (table.slots[i].attempts[k].usual)
                add(&a, &table.slots[i].attempts[k].choice);
    if (expected >= 0)
        add_steps(&a, space[expected]);
    segment_table_release(&table);
    free(space);
    *out = a.choices;
    return a.count;
}
