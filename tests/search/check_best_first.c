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

/* As it was before: short segments first. */
static void time_short_first(void)
{
    for (int length = 1; length <= OP_COUNT; length++)
        for (int i = 0; i < SLOT_COUNT; i++)
            if (slot_segment(i).last - slot_segment(i).first + 1 == length)
                time_recorded(&i, 1);
}

/* Paths from the build, each with a comma behind it. */
static const char *const recorded[] = {RECORDED_SPACES NULL};

/* At most 40 slots; the order of lengths takes more. */
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
    begin(space.lo, space.hi);
    time_short_first();
    ck_assert_int_gt(timed, 40);
    recorded_space_release(&space);
}
END_TEST

/* ---- hopes ----------------------------------------------------------------------------------- */

static int slot(int first, int last)
{
    return segment_index((struct segment){(int8_t)first, (int8_t)last});
}

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

/* Nothing is known: neither of an operator nor of what is longer. */
START_TEST(operators_alone_come_first)
{
    int slots[SLOT_COUNT];
    begin(0, 65535);
    int count = slots_timed_first(&b, slots), alone = 0;
    while (alone < count && slot_segment(slots[alone]).first == slot_segment(slots[alone]).last)
        alone++;
    ck_assert_int_eq(alone, OP_COUNT - 4); /* 2 to 5 read or write scores */
    ck_assert_int_eq(count,
                     39); /* 7-9, 6-9 and 12-14 among them, which have kernels of their own */
}
END_TEST

START_TEST(hope_is_a_share_of_the_best_split)
{
    struct segment_times hoped;
    begin(32768, 49152);
    know_first();
    hoped_times(&b, 0.5, &hoped);
    ck_assert_double_eq_tol(hoped.ms[slot(9, 10)], 0.5 * 2, 1e-6);
    ck_assert_double_eq_tol(hoped.ms[slot(8, 11)], 0.5 * 3.6, 1e-6);
    ck_assert_double_eq(hoped.ms[slot(8, 9)], 1.8);
}
END_TEST

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

START_TEST(one_that_beats_its_hope_lowers_the_others)
{
    begin(32768, 49152);
    know_first();
    b.known.ms[slot(9, 10)] = 2.4;
    ck_assert_double_eq(least_share(&b, 0.9), 0.9);
    b.known.ms[slot(9, 10)] = 1.6;
    ck_assert_double_eq_tol(least_share(&b, 0.9), 0.8, 1e-9);
}
END_TEST

START_TEST(audit_is_drawn_by_the_seed)
{
    int one[AUDITED], other[AUDITED], same = 0;
    begin(32768, 49152);
    know_first();
    ck_assert_int_eq(slots_audited(&b, one), AUDITED);
    b.seed = 2;
    ck_assert_int_eq(slots_audited(&b, other), AUDITED);
    for (int i = 0; i < AUDITED; i++) {
        ck_assert(b.waits[one[i]] && isnan(b.known.ms[one[i]]));
        same += one[i] == other[i];
    }
    ck_assert_int_lt(same, AUDITED);
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
      LOOP(few_slots_of_a_recorded_space, 0, ARRAY_LEN(recorded) - 1),
      ONCE(operators_alone_come_first), ONCE(hope_is_a_share_of_the_best_split),
      ONCE(a_hope_must_be_better), ONCE(one_that_beats_its_hope_lowers_the_others),
      ONCE(audit_is_drawn_by_the_seed), ONCE(plans_of_timed_segments_come_first))
