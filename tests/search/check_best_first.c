/* Which slots are timed, the most promising first. */
#include "search/best_first_int.h"
#include "space_fixture.h"

#include <math.h>

static struct plan plans[PLAN_SPACE];
static struct best_first b;
static int timed;

static const struct build_target hopper = {.chain = &chain_bert,
                                           .kind = TARGET_CUDA,
                                           .dtype = DTYPE_FP16,
                                           .head_size = 64,
                                           .arch = 90,
                                           .ordered = true};

static void begin(unsigned lo, unsigned hi)
{
    static struct segment_table t;
    segment_table_init(&t, &hopper);
    best_first_init(&b, &t, plans, plan_space(lo, hi, plans), 1);
    segment_table_release(&t);
    timed = 0;
}

/* How much slower the plan of the least sum known is than the best one. */
static double regret_known(void)
{
    int i = additive_best(plans, b.space_count, &b.known);
    if (i < 0)
        return INFINITY;
    return space.outcomes[space.at[plan_key(plans[i])]].ms / space.outcomes[space.best].ms - 1;
}

/* Times slots until the plan of the least sum is within 3 %. */
static void time_recorded(const int *slots, int count)
{
    for (int i = 0; i < count && regret_known() > 0.03; i++)
        if (isnan(b.known.ms[slots[i]])) {
            b.known.ms[slots[i]] = space.segments.ms[slots[i]];
            timed++;
        }
}

/* As stage1(): the baselines, slots that do not wait, and those of which the most is hoped. */
static void time_best_first(void)
{
    static const unsigned baselines[] = {VALUE_UNFUSED, 41115};
    int slots[SLOT_COUNT], first;
    for (size_t i = 0; i < ARRAY_LEN(baselines); i++)
        time_recorded(slots, plan_slots(plan_from_value(baselines[i]), slots));
    time_recorded(slots, slots_timed_first(&b, slots));
    while (regret_known() > 0.03 && slots_wanted(&b, 0.9, 1, &first, slots) > 0)
        time_recorded(slots, first);
}

/* Paths from the build, each with a comma behind it. */
static const char *const recorded[] = {RECORDED_SPACES NULL};

/* At most 40 slots; one of each length after the other, it would be more. */
START_TEST(few_slots_of_a_recorded_space)
{
    read_space(recorded[_i]);
    if (!recorded_space_is_whole(&space)) { /* the plan of the least sum may not be there */
        recorded_space_release(&space);
        return;
    }
    begin(space.lo, space.hi);
    time_best_first();
    ck_assert_int_le(timed, 40);
    ck_assert_double_le(regret_known(), 0.03);
    recorded_space_release(&space);
}
END_TEST

/* Each operator takes 1 ms. */
START_TEST(one_that_beats_its_hope_lowers_the_others)
{
    int fused = segment_index((struct segment){9, 10});
    begin(32768, 49152);
    for (int8_t op = 0; op < OP_COUNT; op++)
        b.known.ms[segment_index((struct segment){op, op})] = 1;
    b.known.ms[fused] = 2.4;
    ck_assert_double_eq(least_share(&b, 0.9), 0.9);
    b.known.ms[fused] = 1.6;
    ck_assert_double_eq_tol(least_share(&b, 0.9), 0.8, 1e-9);
}
END_TEST

SUITE("search/best_first", NULL, NULL,
      LOOP(few_slots_of_a_recorded_space, 0, ARRAY_LEN(recorded) - 1),
      ONCE(one_that_beats_its_hope_lowers_the_others))
