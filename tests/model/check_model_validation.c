#include "tests/made_up.h"
#include "tests/suite.h"

enum { ROWS = 200 };

static struct model_options plan_options(void)
{
    return (struct model_options){.seed = 1, .quantile = 0.1};
}

struct rows {
    struct plan plans[ROWS];
    double ms[ROWS];
};

static struct model_data data_of(const struct rows *r)
{
    return (struct model_data){.count = ROWS, .plans = r->plans, .ms = r->ms};
}

/* The first plans of the space, with their times. */
static void draw_plans(const struct measured_space *s, struct rows *r)
{
    memcpy(r->plans, s->plans, sizeof(r->plans));
    memcpy(r->ms, s->ms, sizeof(r->ms));
}

static struct model_report validate(const struct rows *r, const struct segment_times *times,
                                    int folds)
{
    struct model_options o = plan_options();
    struct model_data d = data_of(r);
    struct model_report report;
    OK(model_cross_validate(&o, &d, times, folds, &report, &st));
    ck_assert_int_eq(report.folds, folds);
    return report;
}

TEST(sums_are_learnt_perfectly)
{
    SCOPED struct measured_space *s = made_up_measured(1);
    struct rows r;
    draw_plans(s, &r);
    for (int i = 0; i < ROWS; i++)
        r.ms[i] = additive_ms(&s->times, r.plans[i]);
    struct model_report report = validate(&r, &s->times, 5);
    ck_assert_int_eq(report.count, ROWS);
    ck_assert_double_gt(report.spearman, 0.999);
    ck_assert_double_lt(report.top1_regret, 1e-3);
    ck_assert_double_gt(report.auc, 0.99);
}

/* The mean of a few draws: one alone may look like knowledge. */
TEST(noise_is_not_learnt)
{
    enum { DRAWS = 8 };
    SCOPED struct measured_space *s = made_up_measured(1);
    struct rows r;
    double spearman = 0, auc = 0;
    draw_plans(s, &r);
    for (int draw = 0; draw < DRAWS; draw++) {
        struct rng rng = {(uint64_t)draw};
        for (int i = 0; i < ROWS; i++)
            r.ms[i] = 1 + rng_unit(&rng);
        struct model_report report = validate(&r, NULL, 5);
        spearman += report.spearman / DRAWS;
        auc += report.auc / DRAWS;
        ck_assert_double_gt(report.top1_regret, 0);
    }
    ck_assert_double_lt(fabs(spearman), 0.12);
    ck_assert_double_lt(fabs(auc - 0.5), 0.12);
}

static const struct {
    int rows, folds;
    enum status_code code;
    const char *message;
} refused[] = {
    {10, 1, STATUS_USAGE, "1 folds; give 2 or more"},
    {10, 11, STATUS_MODEL, "10 distinct plans are too few for 11 folds"},
    {3, 2, STATUS_MODEL, "3 distinct plans are too few for 2 folds"},
};

TEST_LOOP(too_few_rows_are_refused, 0, ARRAY_LEN(refused))
{
    struct rows r;
    for (int i = 0; i < ROWS; i++) {
        r.plans[i] = plan_from_value(32768u + (unsigned)i);
        r.ms[i] = 1 + i;
    }
    struct model_options o = plan_options();
    struct model_data d = data_of(&r);
    struct model_report report;
    d.count = refused[_i].rows;
    FAILS(model_cross_validate(&o, &d, NULL, refused[_i].folds, &report, &st), refused[_i].code,
          refused[_i].message);
    ck_assert_int_eq(report.folds, 0);
}

SUITE("model report", NULL, NULL)
