/* The fastest plans known of a study. */
#include "search/strategy_int.h"
#include "search/study.h"

/* What is known of a plan; NaN where nothing is. */
struct times {
    struct interval alone;    /* in its search */
    struct interval compared; /* in the comparison that the best plan won */
};

struct reading {
    struct times *of; /* (PLAN_KEYS) */
    const char *comparison;
};

static int read_plan(void *ctx, const struct db_trial *row)
{
    const struct reading *r = ctx;
    if (row->status == TRIAL_OK)
        r->of[plan_key(plan_from_value((unsigned)row->value))].alone = db_trial_ms(row);
    return 0;
}

static int read_final(void *ctx, const struct db_trial *row)
{
    const struct reading *r = ctx;
    if (row->status == TRIAL_OK && strcmp(row->comparison, r->comparison) == 0)
        r->of[plan_key(plan_from_value((unsigned)row->value))].compared = db_trial_ms(row);
    return 0;
}

static int by_time(const void *a, const void *b)
{
    const struct top_plan *x = a, *y = b;
    return x->times_best != y->times_best ? (x->times_best < y->times_best ? -1 : 1)
                                          : (int)plan_key(x->plan) - (int)plan_key(y->plan);
}

/* Appends the plan of a key, if it has a time. */
static int rank(const struct times *t, unsigned key, const struct times *best, struct top_plan *out)
{
    bool compared = isfinite(t->compared.median);
    struct interval ms = compared ? t->compared : t->alone;
    if (!isfinite(ms.median))
        return 0;
    double unit = compared ? best->compared.median : best->alone.median;
    *out = (struct top_plan){.plan = plan_of(key & (PLAN_KEYS / 2 - 1), key >= PLAN_KEYS / 2),
                             .ms = ms,
                             .compared = compared,
                             .times_best = isfinite(unit) ? ms.median / unit : INFINITY};
    return 1;
}

int study_top(struct db *db, int64_t study, const struct db_best *best, int most,
              struct top_plan *out, int *count, struct status *st)
{
    SCOPED struct times *of = mem_alloc(PLAN_KEYS, sizeof(*of));
    SCOPED struct top_plan *all = mem_alloc(PLAN_KEYS, sizeof(*all));
    struct reading r = {.of = of, .comparison = best->comparison};
    unsigned first = plan_key(plan_from_value((unsigned)best->value));
    int n = 0;
    for (int key = 0; key < PLAN_KEYS; key++)
        of[key] = (struct times){NO_INTERVAL, NO_INTERVAL};
    *count = 0;
    if (db_trial_times(db, study, DB_TRIAL_PLAN, read_plan, &r, st) != 0 ||
        (best->final && db_trial_times(db, study, DB_TRIAL_FINAL, read_final, &r, st) != 0))
        return -1;
    for (unsigned key = 0; key < PLAN_KEYS; key++)
        n += rank(&of[key], key, &of[first], &all[n]);
    qsort(all, (size_t)n, sizeof(*all), by_time);
    for (int i = n - 1; i > 0; i--) /* the best plan is the first, whatever noise says */
        if (plan_key(all[i].plan) == first) {
            struct top_plan best_plan = all[i];
            memmove(all + 1, all, (size_t)i * sizeof(*all));
            all[0] = best_plan;
        }
    for (; *count < n && *count < most; ++*count)
        out[*count] = all[*count];
    return 0;
}
