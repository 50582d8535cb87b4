#include "tests/model/fixture.h"

static const struct {
    bool segments; /* are their times given? */
    int rows;
    double spearman, regret; /* at least, at most */
} expected[] = {
    {true, 200, 0.80, 0.10},
    {true, 48, 0.74, 0.13},
    {true, 16, 0.65, 0.10},
    {false, 200, 0.68, 0.10},
};

TEST_LOOP(held_out_plans_are_ranked, 0, ARRAY_LEN(expected))
{
    SCOPED struct measured_space *f = made_up_measured(3);
    int rows = expected[_i].rows, rest = f->count - rows, chosen = 0;
    const struct segment_times *times = expected[_i].segments ? &f->times : NULL;
    SCOPED_BY(model_free_at) struct model *m = train(defaults, rows, f->plans, f->ms, times);

    static double ms[PLAN_SPACE], high[PLAN_SPACE];
    const double *truth = f->true_ms + rows;
    predict(m, f->plans + rows, rest, times, ms, high);
    for (int i = 1; i < rest; i++)
        if (ms[i] < ms[chosen])
            chosen = i;
    ck_assert_double_gt(stats_spearman(ms, truth, (size_t)rest), expected[_i].spearman);
    ck_assert_double_lt(truth[chosen] / f->best_ms - 1, expected[_i].regret);

    for (int i = 0; i < rest; i++) {
        ck_assert(high[i] >= 0 && high[i] <= 1);
        high[i] = -high[i];
    }
    ck_assert_double_gt(stats_spearman(high, truth, (size_t)rest), 0.5 * expected[_i].spearman);
}

TEST(training_rows_are_classified)
{
    SCOPED struct measured_space *f = made_up_measured(2);
    double ms[MAX_ROWS], high[MAX_ROWS];
    int right = 0, fast = 0;
    struct model *m = train(defaults, MAX_ROWS, f->plans, f->ms, &f->times);
    ck_assert_double_eq(model_threshold_ms(m), stats_quantile(f->ms, MAX_ROWS, 0.1));
    predict(m, f->plans, MAX_ROWS, &f->times, ms, high);
    for (int i = 0; i < MAX_ROWS; i++) {
        fast += f->ms[i] <= model_threshold_ms(m);
        right += (high[i] >= 0.5) == (f->ms[i] <= model_threshold_ms(m));
    }
    ck_assert_int_eq(fast, MAX_ROWS / 10);
    ck_assert_int_gt(right, MAX_ROWS * 95 / 100);
    model_free(m);
}

static const int few_rows[] = {2, 3, 8, 16, 48};

static double sum_of(const struct measured_space *s, int i)
{
    return additive_ms(&s->times, s->plans[i]);
}

/* Few rows, with segment times or without, of one class or two: always an answer, and a
 * sane one. */
TEST_LOOP(few_rows_serve, 0, ARRAY_LEN(few_rows))
{
    SCOPED struct measured_space *f = made_up_measured(4);
    int rows = few_rows[_i], least = 0; /* least: of the smallest sum */
    double equal[48], ms[MAX_ROWS], high[MAX_ROWS];
    for (int i = 0; i < rows; i++) {
        equal[i] = 5;
        if (sum_of(f, i) < sum_of(f, least))
            least = i;
    }
    for (int kind = 0; kind < 4; kind++) {
        const double *given = (kind & 1) != 0 ? equal : f->ms;
        const struct segment_times *times = (kind & 2) != 0 ? &f->times : NULL;
        SCOPED_BY(model_free_at) struct model *m = train(defaults, rows, f->plans, given, times);
        predict(m, f->plans, MAX_ROWS, times, ms, high);
        for (int i = 0; i < MAX_ROWS; i++) {
            ck_assert(ms[i] > 1 && ms[i] < 100);
            ck_assert(high[i] >= 0 && high[i] <= 1);
        }
        if (given == equal)
            ck_assert_double_gt(high[least], 0.5); /* equally fast is fast */
    }
}

SUITE("model quality", NULL, NULL)
