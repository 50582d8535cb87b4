/* Which slots are timed, the most promising first. */
#include "search/best_first_int.h"
#include "space_fixture.h"
#include "tests/candidate.h"
#include "tests/workload.h"

static struct plan plans[PLAN_SPACE];
static struct best_first b;
static int timed;

static const struct build_target hopper = {HOPPER_FP16, .ordered = true};

static struct workload workload; /* if its mask was built, times are expected */

static void begin(unsigned lo, unsigned hi)
{
    static struct segment_table t;
    struct build_target target = hopper;
    target.workload = workload.blocks.start != NULL ? &workload : NULL;
    segment_table_init(&t, &target);
    if (target.workload != NULL)
        segment_table_expect(&t, &workload);
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
    int slots[SLOT_COUNT], first, sure;
    for (size_t i = 0; i < ARRAY_LEN(baselines); i++)
        time_recorded(slots, plan_slots(plan_from_value(baselines[i]), slots));
    time_recorded(slots, slots_timed_first(&b, &sure, slots));
    while (regret_known() > 0.03 && slots_wanted(&b, 0.9, 1, &first, slots) > 0)
        time_recorded(slots, first);
}

/* Paths from the build, each with a comma behind it. */
static const char *const recorded[] = {RECORDED_SPACES NULL};

/* At most 40 slots; one of each length after the other, it would be more. */
static void few_slots(void)
{
    begin(space.lo, space.hi);
    time_best_first();
    ck_assert_int_le(timed, 40);
    ck_assert_double_le(regret_known(), 0.03);
}

/* Of the spaces that were recorded whole, which come first in `recorded`. */
static const struct {
    int batch, seq_len;
    const char *mask;
} workloads[] = {{1, 128, "causal"}, {8, 512, "strided"}};

static void expect(int i)
{
    workload = workload_sized(workloads[i].batch, workloads[i].seq_len);
    workload.dtype = DTYPE_FP16;
    workload_ready(&workload, workloads[i].mask, NULL, NULL);
}

static bool has(const int *slots, int count, int slot)
{
    for (int i = 0; i < count; i++)
        if (slots[i] == slot)
            return true;
    return false;
}

static void time_plan(unsigned value)
{
    int slots[OP_COUNT];
    for (int i = 0, count = plan_slots(plan_from_value(value), slots); i < count; i++)
        b.known.ms[slots[i]] = space.segments.ms[slots[i]];
}

/* When the expected plan and the operators alone are timed, few of the other slots are left, and
 * all that are in one of the plans whose sums of recorded times are the least, within 3 %. */
static void far_behind_is_left_out(int i_of_space)
{
    int slots[SLOT_COUNT], of_plan[OP_COUNT], sure;
    expect(i_of_space);
    begin(space.lo, space.hi);
    time_plan(VALUE_UNFUSED);
    time_plan(48920);
    int best = additive_best(plans, b.space_count, &space.segments);
    double least = additive_ms(&space.segments, plans[best]);
    int count = slots_timed_first(&b, &sure, slots);
    ck_assert_int_eq(count, sure);
    ck_assert_int_le(count, 14); /* of 24 */
    for (int i = 0; i < b.space_count; i++) {
        bool near = additive_ms(&space.segments, plans[i]) < 1.03 * least;
        for (int k = 0, n = near ? plan_slots(plans[i], of_plan) : 0; k < n; k++)
            ck_assert_msg(!isnan(b.known.ms[of_plan[k]]) || b.waits[of_plan[k]] ||
                              has(slots, count, of_plan[k]),
                          "%d-%d is left out", slot_segment(of_plan[k]).first,
                          slot_segment(of_plan[k]).last);
    }
    workload_release(&workload);
}

TEST_LOOP(slots_of_a_recorded_space, 0, ARRAY_LEN(workloads))
{
    read_space(recorded[_i]);
    ck_assert(recorded_space_is_whole(&space));
    few_slots();
    far_behind_is_left_out(_i);
    recorded_space_release(&space);
}

/* Steps of a climb whose time is expected, as many as are due; their indices go to out. */
static int due(const struct slot *s, int *out)
{
    int count = 0;
    for (int i = 0; i < s->count; i++)
        if (attempt_is_due(s, &s->attempts[i], true) && isfinite(s->attempts[i].expected_ms))
            out[count++] = i;
    return count;
}

/* Four at once, those that are expected to be the fastest; after four that are slower no more, but
 * more if one of them is faster. */
TEST(steps_come_as_they_are_expected)
{
    static struct segment_table t;
    struct build_target target = hopper;
    for (int faster = 0; faster < 2; faster++) {
        int steps[500], slot = segment_index((struct segment){10, 11});
        struct slot *s = &t.slots[slot];
        expect(1);
        target.workload = &workload;
        segment_table_init(&t, &target);
        segment_table_expect(&t, &workload);
        segment_table_note(&t, slot, 0, TRIAL_OK, 1, &st);
        int count = due(s, steps); /* the last ones may be expected to take as long */
        ck_assert(count == 4 || count == 5);
        for (int i = 1; i < s->count; i++)
            if (!attempt_is_due(s, &s->attempts[i], true) && !s->attempts[i].behind &&
                one_knob_apart(&s->attempts[i].choice, &s->attempts[0].choice))
                for (int k = 0; k < count; k++)
                    ck_assert_double_ge(s->attempts[i].expected_ms,
                                        s->attempts[steps[k]].expected_ms);
        for (int k = 0; k < count; k++)
            segment_table_note(&t, slot, steps[k], TRIAL_OK, k == 3 && faster != 0 ? 0.9 : 1.1,
                               &st);
        ck_assert_int_eq(due(s, steps) > 0, faster);
        segment_table_release(&t);
        workload_release(&workload);
    }
}

/* Each operator takes 1 ms, but GEMMs 4 ms by generated code: a segment that only that serves hopes
 * for no less than they take by it. */
TEST(hopes_are_made_of_generated_parts)
{
    int slots[SLOT_COUNT], first;
    begin(32768, 49152);
    for (int i = 0; i < SLOT_COUNT; i++)
        b.failed[i] = !b.waits[i];
    for (int8_t op = 0; op < OP_COUNT; op++) {
        int slot = segment_index((struct segment){op, op});
        bool gemm = chain_bert.ops[op].kind == KIND_GEMM;
        b.failed[slot] = false;
        b.known.ms[slot] = 1;
        b.parts.ms[slot] = gemm ? 4 : 1;
    }
    ck_assert_int_gt(slots_wanted(&b, 0.9, 4, &first, slots), 0);
    for (int i = 0; i < first; i++)
        for (int op = slot_segment(slots[i]).first; op <= slot_segment(slots[i]).last; op++)
            ck_assert_int_ne(chain_bert.ops[op].kind, KIND_GEMM);
}

/* Each operator takes 1 ms. */
TEST(one_that_beats_its_hope_lowers_the_others)
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

SUITE("search/best_first", NULL, NULL)
