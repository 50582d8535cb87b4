/* A study as a recorded space: docs/recorded-spaces.md describes the format. */
#include "search/search_int.h"
#include "search/space_int.h"

#include <jansson.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* What became of a plan: a search timed it, and again side by side if it was among the fastest. */
struct plan_record {
    bool measured;
    enum trial_status status;
    struct interval search_us, again_us; /* again_us: NaN if it was not timed again */
    double seconds;                      /* that building, verifying and timing took; may be NaN */
    char *reason;                        /* of a failure, owned */
};

/* Plans by canonical value, which rows and lines name them by. */
struct recording {
    unsigned lo, hi;
    bool in_space[VALUE_MAX + 1];
    struct plan_record plans[VALUE_MAX + 1];
    struct slot_record slots[SLOT_COUNT];
    struct buf attempts; /* the lines of segments alone */
    int attempt_count;
    enum target_kind target;
    int count, failed, censored, again, other_choices;
    char measured_utc[CLOCK_UTC_SIZE]; /* of the newest trial */
};

/* Releases the object. */
static void add_line(struct buf *out, json_t *object)
{
    char *text = json_dumps(object, JSON_COMPACT | JSON_REAL_PRECISION(9));
    buf_addf(out, "%s\n", text);
    free(text);
    json_decref(object);
}

/* ---- reading the study ----------------------------------------------------------------------- */

/* Rounds to 10 ns. */
static double rounded(double us)
{
    return round(100 * us) / 100;
}

/* A trial that was imported from a file without seconds has none. */
static double seconds_of(const struct db_trial *row)
{
    double build_s = isnan(row->build_s) ? 0 : row->build_s;
    return build_s + (isnan(row->verify_s) ? 0 : row->verify_s) + row->time_s;
}

static void note_time(struct recording *r, const char *utc)
{
    if (strcmp(utc, r->measured_utc) > 0)
        snprintf(r->measured_utc, sizeof(r->measured_utc), "%s", utc);
}

/* Whether each segment of a plan ran with its fastest choice. */
static bool runs_fastest_choices(const struct recording *r, const struct db_trial *row)
{
    for (int i = 0; i < row->choice_count; i++) {
        const struct db_choice *c = &row->choices[i];
        const struct slot_record *slot = &r->slots[slot_of_choice(r->target, c)];
        if (slot->impl == NULL || strcmp(slot->impl, c->impl) != 0 ||
            strcmp(slot->schedule, c->schedule) != 0)
            return false;
    }
    return true;
}

static int plan_row(void *ctx, const struct db_trial *row)
{
    struct recording *r = ctx;
    struct plan_record *p = &r->plans[row->value];
    if (!r->in_space[row->value])
        return 0;
    *p = (struct plan_record){true, row->status, row_us(row), {NAN, NAN, NAN}, seconds_of(row),
                              NULL};
    if (p->status == TRIAL_FAILED)
        p->reason = trial_reason(row);
    else
        r->other_choices += !runs_fastest_choices(r, row);
    r->count++;
    r->failed += p->status == TRIAL_FAILED;
    r->censored += p->status == TRIAL_CENSORED;
    note_time(r, row->stored_utc);
    return 0;
}

/* Rounds to 0.1 ms. */
static json_t *seconds_json(double seconds)
{
    return isnan(seconds) ? json_null() : json_real(round(1e4 * seconds) / 1e4);
}

static int attempt_row(void *ctx, const struct db_trial *row)
{
    struct recording *r = ctx;
    const struct db_choice *c = &row->choices[0];
    const struct interval us = row_us(row);
    json_t *line = json_pack("{s[ii] sb ss ss}", "ops", c->segment.first, c->segment.last,
                             "handwritten", slot_of_choice(r->target, c) == SLOT_HANDWRITTEN,
                             "implementation", c->impl, "schedule", c->schedule);
    if (row->status == TRIAL_FAILED) {
        char *reason = trial_reason(row);
        json_object_set_new(line, "failed", json_string(reason));
        free(reason);
    } else {
        json_object_set_new(line, "us", json_real(rounded(us.median)));
    }
    if (row->status == TRIAL_CENSORED)
        json_object_set_new(line, "censored", json_true());
    if (row->status == TRIAL_OK && !isnan(us.low) && !isnan(us.high))
        json_object_update_new(
            line, json_pack("{sf sf}", "low_us", rounded(us.low), "high_us", rounded(us.high)));
    json_object_update_new(line, json_pack("{so so so}", "build_s", seconds_json(row->build_s),
                                           "verify_s", seconds_json(row->verify_s), "time_s",
                                           seconds_json(row->time_s)));
    add_line(&r->attempts, line);
    r->attempt_count++;
    return 0;
}

/* Rows come oldest first, so the newest comparison of a search counts.  A comparison of `bench` has
 * any plans and any date, and would put its plans on a scale of their own. */
static int final_row(void *ctx, const struct db_trial *row)
{
    struct recording *r = ctx;
    struct plan_record *p = &r->plans[row->value];
    if (strcmp(row->strategy, "bench") == 0)
        return 0;
    if (row->status == TRIAL_OK && p->measured && p->status == TRIAL_OK) {
        r->again += isnan(p->again_us.median);
        p->again_us = row_us(row);
        note_time(r, row->stored_utc);
    }
    return 0;
}

static int read_study(struct db *db, int64_t study, struct recording *r, struct status *st)
{
    if (slot_records_read(db, study, r->target, r->slots, st) != 0 ||
        db_trials(db, study, DB_TRIAL_SEGMENT, attempt_row, r, st) != 0 ||
        db_trials(db, study, DB_TRIAL_PLAN, plan_row, r, st) != 0 ||
        db_trial_times(db, study, DB_TRIAL_FINAL, final_row, r, st) != 0)
        return -1;
    if (r->count == r->failed + r->censored)
        return status_set(st, STATUS_NOT_FOUND, "no plan of %u..%u that works is stored in '%s'",
                          r->lo, r->hi, db_path(db));
    return 0;
}

static void recording_free(struct recording *r)
{
    for (int i = 0; i <= VALUE_MAX; i++)
        free(r->plans[i].reason);
    slot_records_release(r->slots);
    buf_release(&r->attempts);
    free(r);
}

/* ---- the lines ------------------------------------------------------------------------------- */

static void add_plan(const struct plan_record *p, int value, struct buf *out)
{
    const struct interval *search = &p->search_us, *again = &p->again_us;
    char seconds[32] = "null";
    if (!isnan(p->seconds))
        snprintf(seconds, sizeof(seconds), "%.4f", p->seconds);
    switch (p->status) {
    case TRIAL_FAILED:
        add_line(out, json_pack("[ions]", value, seconds_json(p->seconds), p->reason));
        break;
    case TRIAL_CENSORED:
        buf_addf(out, "[%d,%s,%.2f,\"%s\"]\n", value, seconds, search->median,
                 trial_status_name(p->status));
        break;
    case TRIAL_OK:
        buf_addf(out, "[%d,%s,%.2f,%.2f,%.2f", value, seconds, search->median, search->low,
                 search->high);
        if (!isnan(again->median))
            buf_addf(out, ",%.2f,%.2f,%.2f", again->median, again->low, again->high);
        buf_adds(out, "]\n");
        break;
    }
}

/* ---- the header ------------------------------------------------------------------------------ */

static void target_json(void *ctx, const struct db_study *s)
{
    const struct db_target *t = &s->target;
    json_t *target =
        json_pack("{ss ss ss ss sI ss ss ss}", "kind", t->kind, "device", t->device, "uuid",
                  t->uuid, "capability", t->capability, "units", (json_int_t)t->units, "driver",
                  t->driver, "compiler", t->compiler, "libraries", t->libraries);
    json_object_update_new(ctx,
                           json_pack("{so ss s{sI ss}}", "target", target, "protocol", s->protocol,
                                     "inputs", "seed", (json_int_t)s->seed, "init", s->init));
}

static bool ran(const struct recording *r, int value)
{
    return r->plans[value].measured && r->plans[value].status == TRIAL_OK;
}

/* The best plan known of the study or, if it is not recorded, the fastest recorded plan. */
static int best_json(struct db *db, int64_t study, const struct recording *r, json_t **out,
                     struct status *st)
{
    struct db_best best;
    if (db_best(db, study, &best, st) != 0)
        return -1;
    int value = best.value;
    struct interval us = {1e3 * best.median_ms, 1e3 * best.ci_low_ms, 1e3 * best.ci_high_ms};
    for (int v = 0; v <= VALUE_MAX && !ran(r, best.value); v++)
        if (ran(r, v) && (!ran(r, value) || r->plans[v].search_us.median < us.median)) {
            value = v;
            us = r->plans[v].search_us;
        }
    *out = json_pack("{si sf sf sf}", "value", value, "median_us", rounded(us.median), "low_us",
                     rounded(us.low), "high_us", rounded(us.high));
    db_best_release(&best);
    return 0;
}

static int add_header(struct db *db, int64_t study, const struct recording *r,
                      const char *workload_json, struct buf *out, struct status *st)
{
    json_t *best;
    if (best_json(db, study, r, &best, st) != 0)
        return -1;
    json_t *header = json_pack("{ss si so}", "format", SPACE_FORMAT, "version", SPACE_VERSION,
                               "workload", json_loads(workload_json, 0, NULL));
    int result = db_study_read(db, study, target_json, header, st);
    json_object_update_new(
        header, json_pack("{s[ii] s{si si si si si si} so ss}", "space", (int)r->lo, (int)r->hi,
                          "counts", "attempts", r->attempt_count, "plans", r->count, "failed",
                          r->failed, "censored", r->censored, "again", r->again, "other_choices",
                          r->other_choices, "best", best, "measured_utc", r->measured_utc));
    add_line(out, header);
    return result;
}

int space_export(struct db *db, int64_t study, enum target_kind target, const char *workload_json,
                 unsigned lo, unsigned hi, struct buf *out, struct status *st)
{
    struct plan space[PLAN_SPACE];
    struct recording *r = mem_alloc(1, sizeof(*r));
    *r = (struct recording){.lo = lo, .hi = hi, .target = target};
    buf_init(&r->attempts);
    struct buf lines, text;
    buf_init(&lines);
    buf_init(&text);
    int count = plan_space(lo, hi, space);
    for (int i = 0; i < count; i++)
        r->in_space[plan_value(space[i])] = true;
    int result = read_study(db, study, r, st);
    if (result == 0) {
        buf_add(&lines, r->attempts.ptr, r->attempts.len);
        for (int value = 0; value <= VALUE_MAX; value++)
            if (r->plans[value].measured)
                add_plan(&r->plans[value], value, &lines);
        result = add_header(db, study, r, workload_json, &text, st);
        buf_add(&text, lines.ptr, lines.len);
        gzip_pack(text.ptr, text.len, out);
    }
    buf_release(&text);
    buf_release(&lines);
    recording_free(r);
    return result;
}
