#include "cmd/report_int.h"

struct tried {
    struct plan plan;
    enum trial_status status;
    struct interval us; /* a layer */
    double alone_us;    /* a layer: the sum of its kernels alone */
};

struct plans {
    int layers, count;
    struct tried *items;
    struct segment_times times;
    char first_utc[CLOCK_UTC_SIZE], last_utc[CLOCK_UTC_SIZE]; /* of plans and of finals */
    json_t *searches; /* {search: its strategy}; both are empty where it is unknown */
    json_t *reasons;  /* {reason: how many plans failed for it} */
};

/* ---- the trials ------------------------------------------------------------------------------ */

static int note_time(void *ctx, const struct db_trial *row)
{
    struct plans *p = ctx;
    if (p->first_utc[0] == '\0' || strcmp(row->stored_utc, p->first_utc) < 0)
        snprintf(p->first_utc, sizeof(p->first_utc), "%s", row->stored_utc);
    if (strcmp(row->stored_utc, p->last_utc) > 0)
        snprintf(p->last_utc, sizeof(p->last_utc), "%s", row->stored_utc);
    return 0;
}

static void note_reason(struct plans *p, const struct db_trial *row)
{
    SCOPED char *reason = trial_reason(row);
    json_int_t before = json_integer_value(json_object_get(p->reasons, reason));
    json_object_set_new(p->reasons, reason, json_integer(before + 1));
}

static int keep(void *ctx, const struct db_trial *row)
{
    struct plans *p = ctx;
    double us = 1e3 / p->layers;
    p->items = mem_room(p->items, (size_t)p->count, sizeof(*p->items));
    json_object_set_new(p->searches, row->search, json_string(row->strategy));
    if (row->status == TRIAL_FAILED)
        note_reason(p, row);
    struct plan plan = plan_from_value((unsigned)row->value);
    p->items[p->count++] = (struct tried){
        .plan = plan,
        .status = row->status,
        .us = interval_times(us, db_trial_ms(row)),
        .alone_us = 1e3 * additive_ms(&p->times, plan),
    };
    return note_time(p, row);
}

/* The rank correlation of the sums with the times of the plans that ran; null if a sum is unknown
 * or fewer than three plans ran. */
static json_t *correlation(const struct plans *p)
{
    SCOPED double *expected = mem_alloc((size_t)p->count + 1, sizeof(*expected));
    SCOPED double *measured = mem_alloc((size_t)p->count + 1, sizeof(*measured));
    size_t n = 0;
    for (int i = 0; i < p->count; i++) {
        const struct tried *t = &p->items[i];
        if (t->status != TRIAL_OK || isnan(t->alone_us))
            continue;
        expected[n] = t->alone_us;
        measured[n++] = t->us.median;
    }
    return json_number(n > 2 ? stats_spearman(expected, measured, n) : NAN);
}

/* ---- as columns ------------------------------------------------------------------------------ */

static json_t *columns_json(const struct plans *p)
{
    json_t *value = json_array(), *status = json_array(), *us = json_array(), *low = json_array(),
           *high = json_array(), *alone = json_array();
    for (int i = 0; i < p->count; i++) {
        const struct tried *t = &p->items[i];
        json_array_append_new(value, json_integer(plan_value(t->plan)));
        json_array_append_new(status, json_integer(t->status));
        json_array_append_new(us, json_number(t->us.median));
        json_array_append_new(low, json_number(t->us.low));
        json_array_append_new(high, json_number(t->us.high));
        json_array_append_new(alone, json_number(t->alone_us));
    }
    return json_pack("{so so so so so so}", "value", value, "status", status, "us", us, "low_us",
                     low, "high_us", high, "alone_us", alone);
}

int report_plans_add(const struct reported *r, json_t *data, struct status *st)
{
    struct plans p = {.layers = r->workload->layers, .times = r->times};
    p.searches = json_object();
    p.reasons = json_object();
    int result = db_trial_times(r->db, r->study, DB_TRIAL_PLAN, keep, &p, st);
    if (result == 0)
        result = db_trial_times(r->db, r->study, DB_TRIAL_FINAL, note_time, &p, st);
    json_object_set_new(data, "plans",
                        json_pack("{so so so so ss ss}", "columns", columns_json(&p), "searches",
                                  p.searches, "reasons", p.reasons, "alone_spearman",
                                  correlation(&p), "first_utc", p.first_utc, "last_utc",
                                  p.last_utc));
    free(p.items);
    return result;
}
