#include "cmd/plans.h"

/* Adds a plan once. */
static int add_value(const struct options *o, const char *text, const struct best_plan *best,
                     struct baselines *out, struct status *st)
{
    struct plan p;
    if (plan_from_text(o, text, best, &p, st) != 0)
        return status_prefix(st, "--baseline");
    if (baselines_have(out, p))
        return 0;
    if (out->count == BASELINES_MAX)
        return status_set(st, STATUS_USAGE, "--baseline: more than %d plans are given; name fewer",
                          BASELINES_MAX);
    out->plans[out->count++] = p;
    return 0;
}

int baselines_from_options(const struct options *o, const struct best_plan *best,
                           struct baselines *out, struct status *st)
{
    *out = (struct baselines){.count = 0};
    if (strcmp(o->baseline, "none") == 0)
        return 0;
    SCOPED char *list = mem_strdup(o->baseline);
    for (char *rest = list, *value; (value = strsep(&rest, ",")) != NULL;)
        if (add_value(o, value, best, out, st) != 0)
            return -1;
    return 0;
}

int baselines_of_best(struct db *db, int64_t study, const struct db_best *best,
                      struct baseline_time out[BASELINES_MAX], int *count, struct status *st)
{
    const struct options by_default = {.baseline = BASELINE_DEFAULT};
    const struct best_plan none = {.known = false};
    struct baselines wanted;
    if (baselines_from_options(&by_default, &none, &wanted, st) != 0)
        return -1;
    baselines_of_search(best->search_options, &wanted);
    *count = wanted.count;
    return baselines_read(db, study, best, &wanted, out, st);
}

/* ---- output ---------------------------------------------------------------------------------- */

json_t *baselines_json(const struct baseline_time *b, int count)
{
    json_t *all = json_array();
    for (int i = 0; i < count; i++, b++) {
        bool compared = isfinite(b->speedup.median);
        json_array_append_new(
            all,
            json_pack("{si so so so so so so so ss? ss?}", "value", (int)plan_value(b->plan),
                      MS_MEMBERS(b->ms), "speedup", json_number(b->speedup.median), "speedup_low",
                      json_number(b->speedup.low), "speedup_high", json_number(b->speedup.high),
                      "tie", compared ? json_boolean(baseline_ties(b)) : json_null(), "compared_at",
                      compared ? b->compared_at : NULL, "unstable",
                      b->unstable[0] != '\0' ? b->unstable : NULL));
    }
    return all;
}

void baseline_note(const struct options *o, const struct baseline_time *b)
{
    SCOPED_BUF name = BUF_INIT;
    plan_add(plan_value(b->plan), &name);
    if (!isfinite(b->ms.median))
        note(o, "baseline %s has no time: %s", name.ptr, b->reason.message);
}

void unstable_print(unsigned value, const char *why)
{
    SCOPED_BUF name = BUF_INIT;
    plan_add(value, &name);
    if (why[0] != '\0')
        printf("%-12s %s: %s\n", "unstable", name.ptr, why);
}

void baseline_ratio(const struct baseline_time *b, bool same, struct buf *out)
{
    enum { NARROW_DECIMALS = 3, DECIMALS = 2 };
    int digits = b->speedup.high - b->speedup.low < 0.02 ? NARROW_DECIMALS : DECIMALS;
    unsigned value = plan_value(b->plan);
    if (same)
        buf_adds(out, "no plan measured is faster than baseline ");
    else if (!isfinite(b->ms.median))
        buf_adds(out, "not compared, as it has no time, with ");
    else if (!isfinite(b->speedup.median))
        buf_adds(out, "not yet timed side by side with ");
    else
        buf_addf(out, "%s%.*f [%.*f, %.*f] times as fast as ", baseline_ties(b) ? "a tie: " : "",
                 digits, b->speedup.median, digits, b->speedup.low, digits, b->speedup.high);
    plan_add(value, out);
}
