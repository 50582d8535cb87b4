/* Which slots are timed, the most promising first. */
#include "search/best_first_int.h"
#include "space_fixture.h"

#include <math.h>
#include <string.h>

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

/* ---- on recorded spaces ---------------------------------------------------------------------- */

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

/* ---- hopes ----------------------------------------------------------------------------------- */

/* Each operator takes 1 ms, another slot that does not wait 0.9 ms an operator. */
static void know_first(void)
{
    int slots[SLOT_COUNT], count = slots_timed_first(&b, slots);
    ck_assert_int_gt(count, 30);
    for (int i = 0; i < count; i++) {
        struct segment s = slot_segment(slots[i]);
        b.known.ms[slots[i]] = s.first == s.last ? 1 : 0.9 * (s.last - s.first + 1);
    }
}

/* The sum of times known is not beaten by hopes that equal it. */
START_TEST(a_hope_must_be_better)
{
    int slots[SLOT_COUNT], first;
    begin(32768, 49152);
    know_first();
    ck_assert_int_eq(slots_wanted(&b, 1, 16, &first, slots), 0);
    int count = slots_wanted(&b, 0.95, 16, &first, slots);
    ck_assert_int_ge(count, 16);
    ck_assert_int_ge(first, 1);
    ck_assert_int_lt(first, count);
    for (int i = 0; i < count; i++) {
        ck_assert(b.waits[slots[i]]);
        for (int k = 0; k < i; k++)
            ck_assert_int_ne(slots[i], slots[k]);
    }
}
END_TEST

/* ---- what is made of it ---------------------------------------------------------------------- */

static struct segment_times alone;

static int takes_a_second(void *ctx, struct plan p, struct outcome *out, struct status *status)
{
    (void)ctx, (void)p, (void)status;
    *out = (struct outcome){.status = TRIAL_OK, .ms = 1000};
    return 0;
}

static const struct segment_times *times_alone(void *ctx)
{
    (void)ctx;
    return &alone;
}

static double now(void *ctx)
{
    (void)ctx;
    return 0;
}

/* Of all plans only the unfused one has no segment that was not timed. */
START_TEST(plans_of_timed_segments_come_first)
{
    struct evaluator e = {.measure = takes_a_second, .segments = times_alone, .now = now};
    struct search_options o = {.strategy = strategy_find("random"),
                               .space_lo = 32768,
                               .space_hi = 49152,
                               .budget = 3,
                               .seed = 1,
                               .quantile = 0.1};
    struct history h = {.count = 0};
    struct search_result found;
    for (int i = 0; i < SLOT_COUNT; i++)
        alone.ms[i] = slot_segment(i).first == slot_segment(i).last ? 1 : NAN;
    OK(search_loop(&o, &e, &h, NULL, NULL, &found, &st));
    ck_assert_uint_eq(plan_value(h.items[0].plan), VALUE_UNFUSED);
    ck_assert_int_eq(h.count, 3);
    history_release(&h);
}
END_TEST

SUITE("search/best_first", NULL, NULL,
      LOOP(few_slots_of_a_recorded_space, 0, ARRAY_LEN(recorded) - 1), ONCE(a_hope_must_be_better),
      ONCE(plans_of_timed_segments_come_first))
