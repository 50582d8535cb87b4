#include "search/strategy_int.h"

struct outcome outcome_of(enum trial_status status, struct interval ms)
{
    double noise = (ms.high - ms.low) / (2 * INTERVAL_ERRORS * ms.median);
    return (struct outcome){.status = status,
                            .ms = status == TRIAL_FAILED ? NAN : ms.median,
                            .noise =
                                status == TRIAL_OK && noise > 0 && isfinite(noise) ? noise : 0};
}

struct outcome outcome_of_row(const struct db_trial *row)
{
    return outcome_of(row->status, db_trial_ms(row));
}

/* The q quantile of what the plans that ran give; NaN if none has. */
static double quantile_of(const struct history *h, double q, bool noise)
{
    SCOPED double *values = mem_alloc((size_t)h->count + 1, sizeof(*values));
    size_t n = 0;
    for (int i = 0; i < h->count; i++)
        if (h->items[i].outcome.status == TRIAL_OK)
            values[n++] = noise ? h->items[i].outcome.noise : h->items[i].outcome.ms;
    return n > 0 ? stats_quantile(values, n, q) : NAN;
}

double history_noise(const struct history *h)
{
    return INTERVAL_ERRORS * quantile_of(h, 0.5, true);
}

/* The middle two thirds of normal values span two standard deviations, which fewer than six values
 * do not show. */
bool history_indistinct(const struct history *h)
{
    int ran = 0;
    for (int i = 0; i < h->count; i++)
        ran += h->items[i].outcome.status == TRIAL_OK;
    if (ran < 6)
        return false;
    double span = quantile_of(h, 5.0 / 6, false) - quantile_of(h, 1.0 / 6, false);
    return span / 2 <= 1.25 * quantile_of(h, 0.5, true) * quantile_of(h, 0.5, false);
}

bool history_has(const struct history *h, struct plan p)
{
    return (h->seen[plan_key(p) / 64] >> (plan_key(p) % 64) & 1) != 0;
}

void history_add(struct history *h, struct plan p, struct outcome o)
{
    h->items = mem_room(h->items, (size_t)h->count, sizeof(*h->items));
    h->items[h->count++] = (struct observation){.plan = p, .outcome = o};
    h->seen[plan_key(p) / 64] |= UINT64_C(1) << (plan_key(p) % 64);
}

void history_release(struct history *h)
{
    free(h->items);
    memset(h, 0, sizeof(*h));
}

int history_best(const struct history *h)
{
    int best = -1;
    for (int i = 0; i < h->count; i++) {
        const struct outcome *o = &h->items[i].outcome;
        if (o->status == TRIAL_OK && (best < 0 || o->ms < h->items[best].outcome.ms))
            best = i;
    }
    return best;
}

const struct observation *history_find(const struct history *h, struct plan p)
{
    for (int i = 0; i < h->count; i++)
        if (plan_equal(h->items[i].plan, p) && h->items[i].outcome.status != TRIAL_FAILED)
            return &h->items[i];
    return NULL;
}

int history_drop_failed(struct history *h, struct plan *out)
{
    int kept = 0, dropped = 0;
    for (int i = 0; i < h->count; i++) {
        struct observation o = h->items[i];
        if (o.outcome.status != TRIAL_FAILED) {
            h->items[kept++] = o;
            continue;
        }
        h->seen[plan_key(o.plan) / 64] &= ~(UINT64_C(1) << (plan_key(o.plan) % 64));
        if (out != NULL)
            out[dropped] = o.plan;
        dropped++;
    }
    h->count = kept;
    return dropped;
}

int history_count_in(const struct history *h, const struct plan *space, int space_count)
{
    int count = 0;
    for (int i = 0; i < space_count; i++)
        count += history_has(h, space[i]);
    return count;
}

struct model_data training_of(const struct history *h)
{
    struct plan *plans = mem_alloc((size_t)h->count + 1, sizeof(*plans));
    double *ms = mem_alloc((size_t)h->count + 1, sizeof(*ms));
    struct model_data out = {.plans = plans, .ms = ms};
    for (int i = 0; i < h->count; i++) {
        const struct observation *item = &h->items[i];
        if (item->outcome.status == TRIAL_FAILED)
            continue;
        plans[out.count] = item->plan;
        ms[out.count++] = item->outcome.ms;
    }
    return out;
}
