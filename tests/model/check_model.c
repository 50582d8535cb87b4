#include "tests/model/fixture.h"

/* What a model says of one plan in 37.  Takes the model over. */
static struct buf answers_of(struct model *m, const struct segment_times *times)
{
    enum { STEP = 37, ASKED = VALUE_MAX / STEP };
    struct plan plans[ASKED];
    double ms[ASKED], high[ASKED];
    struct buf b = BUF_INIT;
    for (unsigned i = 0; i < ASKED; i++)
        plans[i] = plan_from_value(i * STEP);
    predict(m, plans, ASKED, times, ms, high);
    model_free(m);
    buf_add(&b, ms, sizeof(ms));
    buf_add(&b, high, sizeof(high));
    return b;
}

/* Are the answers equal?  Releases both. */
static bool same(struct buf a, struct buf b)
{
    bool equal = a.len == b.len && memcmp(a.ptr, b.ptr, a.len) == 0;
    buf_release(&a);
    buf_release(&b);
    return equal;
}

/* ---- determinism ----------------------------------------------------------------------------- */

TEST(same_input_same_answers)
{
    SCOPED struct measured_space *f = made_up_measured(1);
    struct buf first = answers_of(train(defaults, 200, f->plans, f->ms, &f->times), &f->times);
    model_free(train(defaults, 50, f->plans, f->ms, NULL)); /* in between */
    ck_assert(same(first, answers_of(train(defaults, 200, f->plans, f->ms, &f->times), &f->times)));
}

static unsigned long threads(void)
{
    struct stat task;
    ck_assert_int_eq(stat("/proc/self/task", &task), 0);
    return task.st_nlink - 2; /* ".", ".." and one directory a thread */
}

/* A thread pool would spin beside measurements and not survive a fork. */
TEST(no_threads_are_left_behind)
{
    SCOPED struct measured_space *f = made_up_measured(1);
    double ms[MAX_ROWS], high[MAX_ROWS];
    unsigned long before = threads(); /* a sanitizer may have its own */
    SCOPED_BY(model_free_at) struct model *m = train(defaults, MAX_ROWS, f->plans, f->ms, NULL);
    ck_assert_uint_eq(threads(), before);
    predict(m, f->plans, MAX_ROWS, NULL, ms, high);
    ck_assert_uint_eq(threads(), before);
}

TEST(order_of_rows_changes_nothing)
{
    SCOPED struct measured_space *f = made_up_measured(1);
    struct plan plans[100];
    double ms[100];
    for (int i = 0; i < 100; i++) {
        plans[i] = f->plans[99 - i];
        ms[i] = f->ms[99 - i];
    }
    ck_assert(same(answers_of(train(defaults, 100, f->plans, f->ms, NULL), NULL),
                   answers_of(train(defaults, 100, plans, ms, NULL), NULL)));
}

/* Repeats become their mean. */
TEST(repeats_are_averaged)
{
    SCOPED struct measured_space *f = made_up_measured(1);
    struct plan plans[60];
    double ms[60];
    for (int i = 0; i < 30; i++) {
        plans[i] = plans[30 + i] = f->plans[i];
        ms[i] = f->ms[i] + 0.5;
        ms[30 + i] = f->ms[i] - 0.5;
    }
    for (int i = 0; i < 30; i++)
        f->ms[i] = (ms[30 + i] + ms[i]) / 2;
    ck_assert(same(answers_of(train(defaults, 60, plans, ms, NULL), NULL),
                   answers_of(train(defaults, 30, f->plans, f->ms, NULL), NULL)));
}

/* ---- prediction ------------------------------------------------------------------------------ */

/* Place v asks for the plan of value VALUE_MAX - v: most plans are asked for several times. */
TEST(all_values_at_once)
{
    SCOPED struct measured_space *f = made_up_measured(1);
    static struct plan plans[VALUE_MAX + 1];
    static double ms[VALUE_MAX + 1], high[VALUE_MAX + 1];
    for (unsigned v = 0; v <= VALUE_MAX; v++)
        plans[v] = plan_from_value(VALUE_MAX - v);
    struct model *m = train(defaults, MAX_ROWS, f->plans, f->ms, &f->times);
    predict(m, plans, VALUE_MAX + 1, &f->times, ms, high);
    for (unsigned i = 0; i <= VALUE_MAX; i++) {
        unsigned canonical = plan_value(plans[i]);
        ck_assert_double_eq(ms[i], ms[VALUE_MAX - canonical]);
        ck_assert_double_eq(high[i], high[VALUE_MAX - canonical]);
    }
    for (unsigned v = 32768; v < 49152; v += 1000) { /* one alone answers as among all */
        double alone_ms, alone_high;
        predict(m, &plans[VALUE_MAX - v], 1, &f->times, &alone_ms, &alone_high);
        ck_assert_double_eq(alone_ms, ms[VALUE_MAX - v]);
        ck_assert_double_eq(alone_high, high[VALUE_MAX - v]);
    }
    model_free(m);
}

/* ---- what is refused ------------------------------------------------------------------------- */

static const struct {
    double ms;
    const char *message;
} bad_rows[] = {
    {NAN, "row 3 of the training data gives plan 40000 a time of nan ms"},
    {0, "row 3 of the training data gives plan 40000 a time of 0 ms"},
    {-1.5, "row 3 of the training data gives plan 40000 a time of -1.5 ms"},
};

TEST_LOOP(bad_rows_are_named, 0, ARRAY_LEN(bad_rows))
{
    struct plan plans[] = {plan_from_value(40001), plan_from_value(40002), plan_from_value(40000),
                           plan_from_value(40003)};
    double ms[] = {1, 2, bad_rows[_i].ms, 3};
    struct model_data d = {.count = 4, .plans = plans, .ms = ms};
    struct model *m;
    FAILS(model_train(&defaults, &d, NULL, &m, &st), STATUS_MODEL, bad_rows[_i].message);
    ck_assert_ptr_null(m);
}

/* Three rows of one plan are one row. */
TEST(one_plan_is_too_few)
{
    const struct plan plans[3] = {{.fused = 0}};
    const double ms[] = {1, 2, 3};
    for (int count = 0; count <= 3; count++) {
        struct model_data d = {.count = count, .plans = plans, .ms = ms};
        struct model *m;
        FAILS(model_train(&defaults, &d, NULL, &m, &st), STATUS_MODEL,
              "distinct plans are too few");
        ck_assert_ptr_null(m);
    }
}

/* A time so large that its logarithm's float is fine, yet its mean is not. */
TEST(xgboost_errors_become_a_status)
{
    const struct plan plans[] = {{.fused = 1}, {.fused = 1}, {.fused = 2}};
    const double ms[] = {1e308, 1e308, 1};
    struct model_data d = {.count = 3, .plans = plans, .ms = ms};
    struct model *m;
    FAILS(model_train(&defaults, &d, NULL, &m, &st), STATUS_MODEL, "xgboost cannot ");
    ck_assert_ptr_null(m);
}

SUITE("model", NULL, NULL)
