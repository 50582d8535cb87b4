#include "cmd/picture_int.h"
#include "cmd/plans.h"
#include "cmd/report_int.h"
#include "cmd/search_int.h"

/* Members for json_pack(), "so so so": a time in microseconds with its interval. */
#define US_MEMBERS(i)                                                                              \
    "us", json_number((i).median), "low_us", json_number((i).low), "high_us", json_number((i).high)

/* ---- the study ------------------------------------------------------------------------------- */

static void add_study(const struct db_study *s, json_t *data)
{
    const struct db_target *t = &s->target;
    json_t *device = json_pack("{so so so sI so so so}", "name", json_text(t->device), "kind",
                               json_text(t->kind), "capability", json_text(t->capability), "units",
                               (json_int_t)t->units, "driver", json_text(t->driver), "compiler",
                               json_text(t->compiler), "libraries", json_text(t->libraries));
    json_object_update_new(data, json_pack("{so so so sI}", "device", device, "protocol",
                                           json_text(s->protocol), "init", json_text(s->init),
                                           "input_seed", (json_int_t)s->seed));
}

/* ---- the chain and its segments -------------------------------------------------------------- */

static const char *work_of(const struct op *op)
{
    if (op->kind == KIND_GEMM)
        return "gemm";
    return op->layout == LAYOUT_SCORES || op->kind == KIND_CONTEXT ? "attention" : "elementwise";
}

static json_t *operators_json(const struct chain *c)
{
    json_t *list = json_array();
    for (int op = 0; op < OP_COUNT; op++)
        json_array_append_new(list, json_pack("{ss ss ss}", "name", c->ops[op].name, "computes",
                                              c->ops[op].computes, "work", work_of(&c->ops[op])));
    return list;
}

/* Each segment that was tried alone. */
static json_t *slots_json(const struct reported *r)
{
    json_t *list = json_array();
    for (int i = 0; i < SLOT_COUNT; i++) {
        const struct slot_record *slot = &r->slots[i];
        struct segment s = slot_segment(i);
        if (slot->impl == NULL && slot->reason == NULL)
            continue;
        json_t *one =
            json_pack("{s[ii] sb}", "ops", s.first, s.last, "handwritten", i == SLOT_HANDWRITTEN);
        if (slot->impl != NULL)
            json_object_update_new(
                one, json_pack("{so so so so so so so}", "implementation", json_text(slot->impl),
                               "schedule", json_text(slot->schedule), US_MEMBERS(slot->us), "flops",
                               json_number(r->drawn ? segment_flops(s, r->workload) : NAN), "bytes",
                               json_number(r->drawn ? segment_bytes(s, r->workload) : NAN)));
        else
            json_object_set_new(one, "failed", json_string(slot->reason));
        json_array_append_new(list, one);
    }
    return list;
}

/* The roofline's rates; null where the mask, and so the kernels' work, is unknown. */
static int add_rates(const struct reported *r, json_t *data, struct status *st)
{
    struct limits rates = {NAN, NAN};
    bool of_device = false;
    if (r->drawn &&
        study_rates(r->db, r->study, &r->times, r->workload, 0, &rates, &of_device, st) != 0)
        return -1;
    json_object_set_new(data, "rates",
                        json_pack("{so so sb}", "flops_per_s", json_number(rates.flops_per_s),
                                  "bytes_per_s", json_number(rates.bytes_per_s), "of_device",
                                  of_device));
    return 0;
}

/* ---- plans timed side by side ---------------------------------------------------------------- */

struct finals {
    const struct reported *r;
    json_t *list;
};

/* Keeps the finals of the comparison that the best plan won. */
static int keep_final(void *ctx, const struct db_trial *row)
{
    struct finals *f = ctx;
    const struct interval us = interval_times(1e3 / f->r->workload->layers, db_trial_ms(row));
    if (row->status == TRIAL_OK && strcmp(row->comparison, f->r->best.comparison) == 0)
        json_array_append_new(f->list, json_pack("{si so so so ss}", "value", row->value,
                                                 US_MEMBERS(us), "utc", row->stored_utc));
    return 0;
}

static int add_finals(const struct reported *r, json_t *data, struct status *st)
{
    struct finals f = {.r = r, .list = json_array()};
    json_object_set_new(data, "finals", f.list);
    if (r->best.comparison[0] == '\0')
        return 0;
    return db_trial_times(r->db, r->study, DB_TRIAL_FINAL, keep_final, &f, st);
}

static int add_baselines(const struct reported *r, json_t *data, struct status *st)
{
    struct baseline_time times[BASELINES_MAX];
    int count = 0;
    if (baselines_of_best(r->db, r->study, &r->best, times, &count, st) != 0)
        return -1;
    json_object_set_new(data, "baselines", baselines_json(times, count));
    return 0;
}

/* ---- precisions ------------------------------------------------------------------------------ */

static void add_precision(const struct reported *r, const struct db_best *b,
                          const struct precision_errors *e, json_t *rows)
{
    const struct interval us = interval_times(1e3 / r->workload->layers, b->ms);
    SCOPED_BUF name = BUF_INIT;
    precision_text(b->precision, dtypes[r->workload->dtype].name, &name);
    json_array_append_new(
        rows, json_pack("{ss si si so so so sb so sb}", "precision", name.ptr, "gemms",
                        __builtin_popcount(b->precision), "value", b->value, US_MEMBERS(us),
                        "compared", b->final && strcmp(b->comparison, r->best.comparison) == 0,
                        "error", json_number(precision_error(e, b->precision)), "error_measured",
                        !isnan(e->measured[b->precision])));
}

/* The best plan of each precision; null where none has GEMMs in e4m3. */
static int add_precisions(const struct reported *r, json_t *data, struct status *st)
{
    struct precision_errors errors;
    json_auto_t *rows = json_array();
    int result = precision_errors_stored(r->db, r->study, &errors, st);
    for (unsigned p = 0; p <= GEMM_ALL && result == 0; p++) {
        SCOPED_BY(db_best_release) struct db_best best;
        struct status none = STATUS_INIT;
        db_set_precision(r->db, p);
        if (db_best(r->db, r->study, &best, &none) == 0)
            add_precision(r, &best, &errors, rows);
        result = status_unless_missing(&none, st);
    }
    db_set_precision(r->db, 0);
    json_object_set_new(data, "precisions",
                        json_array_size(rows) > 1 ? json_incref(rows) : json_null());
    return result;
}

/* ---- the mask -------------------------------------------------------------------------------- */

static json_t *mask_json(const struct reported *r)
{
    const struct workload *w = r->workload;
    const struct block_lists *l = &w->blocks;
    SCOPED_BUF text = BUF_INIT;
    mask_text(&w->mask_spec, &text);
    json_t *mask = json_pack("{ss si}", "text", text.ptr, "seq_len", w->seq_len);
    if (!r->drawn)
        return mask;
    SCOPED_BY(picture_release) struct picture picture;
    picture_init(w, &picture);
    json_t *shades = json_array(), *blocks = json_object();
    for (int i = 0; i < PICTURE_SHADES; i++)
        json_array_append_new(shades, json_string(picture.shades[i].ptr));
    json_object_update_new(blocks,
                           json_pack("{si sI sI sI ss ss}", "across", l->blocks, "all",
                                     (json_int_t)l->blocks_all, "full", (json_int_t)l->blocks_full,
                                     "partial", (json_int_t)l->blocks_partial, "full_path",
                                     picture.full.ptr, "partial_path", picture.partial.ptr));
    double pairs = (double)w->batch * w->seq_len * w->seq_len;
    json_object_update_new(mask,
                           json_pack("{si so sf so}", "cells", picture.cells, "shades", shades,
                                     "kept_share", (double)l->kept / pairs, "blocks", blocks));
    return mask;
}

/* ---- all of it ------------------------------------------------------------------------------- */

int report_data_json(struct reported *r, json_t **out, struct status *st)
{
    char now[CLOCK_UTC_SIZE];
    struct db_study study;
    SCOPED_BUF key = BUF_INIT, path = BUF_INIT, texts = BUF_INIT;
    char unstable[UNSTABLE_SIZE];
    *out = NULL;
    if (db_best(r->db, r->study, &r->best, st) != 0 ||
        plan_unstable(r->db, r->study, r->best.value, r->best.comparison, unstable, st) != 0 ||
        slot_records_read(r->db, r->study, r->target, r->slots, st) != 0 ||
        db_study_read(r->db, r->study, &texts, &study, st) != 0)
        return -1;
    for (int i = 0; i < SLOT_COUNT; i++)
        r->times.ms[i] = r->slots[i].impl != NULL ? 1e-3 * r->slots[i].us.median : NAN;
    workload_text(r->workload, &key);
    buf_add_path(&path, db_path(r->db));
    json_auto_t *data = json_pack(
        "{ss ss ss ss so so so so so so}", "fuseplan", FUSEPLAN_VERSION, "made_utc", clock_utc(now),
        "key", key.ptr, "options", r->options, "database", json_text(path.ptr), "workload",
        workload_json(r->workload, r->target), "operators", operators_json(r->workload->chain),
        "best", best_json(r->workload, &r->best), "slots", slots_json(r), "mask", mask_json(r));
    if (unstable[0] != '\0')
        json_object_set_new(json_object_get(data, "best"), "unstable", json_string(unstable));
    add_study(&study, data);
    if (add_rates(r, data, st) != 0 || add_baselines(r, data, st) != 0 ||
        add_precisions(r, data, st) != 0 || add_finals(r, data, st) != 0 ||
        report_plans_add(r, data, st) != 0)
        return -1;
    *out = json_incref(data);
    return 0;
}
