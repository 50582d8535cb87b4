#include "model/model.h"
#include "tests/suite.h"

#include <math.h>

enum { MAX_COLUMNS = 200 };

/* Each segment's time a distinct number, the hand-written operator's another. */
static struct segment_times made_up_times(void)
{
    struct segment_times t = {.ms[SLOT_HANDWRITTEN] = 1000};
    for (int i = 0; i < SEGMENT_COUNT; i++)
        t.ms[i] = 1 + i;
    return t;
}

static double time_of(const struct segment_times *t, int first, int last)
{
    return t->ms[segment_index((struct segment){(int8_t)first, (int8_t)last})];
}

START_TEST(additive_time_sums_the_segments)
{
    struct segment_times t = made_up_times();
    double expected = 0;
    for (int op = 0; op < OP_COUNT; op++)
        expected += time_of(&t, op, op);
    ck_assert_double_eq(additive_ms(&t, plan_from_value(VALUE_UNFUSED)), expected);
    ck_assert_double_eq(additive_ms(&t, plan_from_value(0)), time_of(&t, 0, 14));
}
END_TEST

START_TEST(handwritten_time_stands_alone)
{
    struct segment_times t = made_up_times();
    struct plan p = plan_from_value(41115);
    double whole = additive_ms(&t, p);
    t.ms[segment_index((struct segment){2, 6})] = NAN; /* the plan does not run it */
    ck_assert_double_eq(additive_ms(&t, p), whole);
    t.ms[SLOT_HANDWRITTEN] = NAN;
    ck_assert_double_nan(additive_ms(&t, p));
}
END_TEST

START_TEST(bits_are_the_digits_of_the_canonical_value)
{
    const char *digits = "1011101000100010"; /* 0100010111011101, pos1..pos15 complemented */
    float out[MAX_COLUMNS];
    ck_assert_int_eq(feature_count(FEATURES_BITS), 16);
    features_of(FEATURES_BITS, plan_from_value(0x45dd), NULL, out);
    for (int i = 0; i < 16; i++)
        ck_assert_float_eq(out[i], (float)(digits[i] - '0'));
}
END_TEST

/* _i: the feature set. */
START_TEST(names_of_one_plan_have_equal_features)
{
    enum feature_set set = (enum feature_set)_i;
    int columns = feature_count(set);
    struct segment_times t = made_up_times();
    ck_assert_int_le(columns, MAX_COLUMNS);
    for (unsigned value = 0; value <= VALUE_MAX; value++) {
        float here[MAX_COLUMNS], canonical[MAX_COLUMNS];
        features_of(set, plan_from_value(value), &t, here);
        features_of(set, plan_from_value(plan_canonical(value)), &t, canonical);
        ck_assert_mem_eq(here, canonical, (size_t)columns * sizeof(*here));
    }
}
END_TEST

START_TEST(different_plans_have_different_features)
{
    static struct plan plans[PLAN_SPACE];
    static char hashes[PLAN_SPACE][HASH_TEXT_SIZE];
    enum feature_set set = (enum feature_set)_i;
    int count = plan_space(0, VALUE_MAX, plans);
    for (int i = 0; i < count; i++) {
        float out[MAX_COLUMNS];
        features_of(set, plans[i], NULL, out);
        hash_text(out, (size_t)feature_count(set) * sizeof(*out), hashes[i]);
    }
    qsort(hashes, (size_t)count, sizeof(hashes[0]), (int (*)(const void *, const void *))strcmp);
    for (int i = 1; i < count; i++)
        ck_assert_str_ne(hashes[i - 1], hashes[i]);
}
END_TEST

START_TEST(only_the_additive_time_can_be_missing)
{
    struct segment_times t = made_up_times();
    float known[MAX_COLUMNS], unknown[MAX_COLUMNS];
    features_of(FEATURES_PLAN, plan_from_value(VALUE_UNFUSED), &t, known);
    features_of(FEATURES_PLAN, plan_from_value(VALUE_UNFUSED), NULL, unknown);
    int missing = 0;
    for (int i = 0; i < feature_count(FEATURES_PLAN); i++) {
        ck_assert(!isnan(known[i]));
        if (isnan(unknown[i])) {
            missing++;
            ck_assert_float_eq(known[i], (float)additive_ms(&t, plan_from_value(VALUE_UNFUSED)));
        } else
            ck_assert_float_eq(known[i], unknown[i]);
    }
    ck_assert_int_eq(missing, 1);
}
END_TEST

SUITE("features", NULL, NULL, ONCE(additive_time_sums_the_segments),
      ONCE(handwritten_time_stands_alone), ONCE(bits_are_the_digits_of_the_canonical_value),
      LOOP(names_of_one_plan_have_equal_features, 0, 2),
      LOOP(different_plans_have_different_features, 0, 2),
      ONCE(only_the_additive_time_can_be_missing))
