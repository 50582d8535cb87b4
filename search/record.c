#include "search/strategy_int.h"
#include "search/study.h"

#include <jansson.h>

/* Fills the study's key; the texts live as long as *text and b. */
static void study_of(const struct bench *b, struct db_workload *w, struct db_target *t,
                     struct buf *text)
{
    const struct fingerprint *f = bench_fingerprint(b);
    struct inputs in = bench_inputs(b);
    *w = db_workload_of(bench_workload(b), text);
    w->seed = in.seed;
    w->init = ranges_names[in.ranges];
    *t = (struct db_target){.kind = target_names[bench_target(b)->kind],
                            .device = f->device,
                            .uuid = f->uuid,
                            .capability = f->capability,
                            .driver = f->driver,
                            .compiler = f->compiler,
                            .libraries = f->libraries,
                            .units = f->units};
}

int study_open(const struct bench *b, struct db *db, int64_t *study, struct status *st)
{
    struct db_workload w;
    struct db_target t;
    SCOPED_BUF text = BUF_INIT;
    study_of(b, &w, &t, &text);
    return db_study(db, &w, &t, bench_fingerprint(b)->protocol, study, st);
}

/* Appends nothing if the target tells no resources. */
static void resources_json(const struct resources *r, struct buf *out)
{
    if (r->registers == 0 && r->grid[0] == 0)
        return;
    json_auto_t *all = json_pack(
        "{s:i, s:i, s:i, s:i, s:i, s:i, s:[iii], s:[iii], s:f}", "registers", r->registers,
        "shared_static_bytes", r->shared_static_bytes, "shared_dynamic_bytes",
        r->shared_dynamic_bytes, "stack_bytes", r->stack_bytes, "spill_bytes", r->spill_bytes,
        "spill_load_bytes", r->spill_load_bytes, "grid", r->grid[0], r->grid[1], r->grid[2],
        "block", r->block[0], r->block[1], r->block[2], "occupancy", r->occupancy);
    if (r->compiler_warning[0] != '\0')
        json_object_set_new(all, "compiler_warning", json_string(r->compiler_warning));
    SCOPED char *text = json_dumps(all, JSON_COMPACT | JSON_REAL_PRECISION(4));
    buf_adds(out, text);
}

/* The texts of a row. */
struct texts {
    struct db_choice choices[OP_COUNT];
    char *schedules[OP_COUNT];
    struct buf resources, conditions;
};

static void texts_init(struct texts *x, const struct candidate *c, const struct trial *t)
{
    for (int i = 0; i < c->count; i++) {
        const struct choice *from = &c->choices[i];
        struct buf text = BUF_INIT;
        schedule_text(from->impl, &from->schedule, &text);
        x->schedules[i] = buf_detach(&text);
        x->choices[i] = (struct db_choice){
            .segment = from->segment, .impl = from->impl->name, .schedule = x->schedules[i]};
    }
    buf_init(&x->resources);
    buf_init(&x->conditions);
    resources_json(&t->resources, &x->resources);
    conditions_json(&t->conditions, &x->conditions);
}

static void texts_release(struct texts *x)
{
    buf_release(&x->resources);
    buf_release(&x->conditions);
    for (int i = 0; i < OP_COUNT; i++)
        free(x->schedules[i]);
}

static struct db_trial row_of(enum db_trial_kind kind, const struct candidate *c,
                              const struct trial *t, const struct texts *x, const char *comparison,
                              const char *search_id)
{
    bool failed = t->status == TRIAL_FAILED, ok = t->status == TRIAL_OK;
    return (struct db_trial){
        .kind = kind,
        .value = kind == DB_TRIAL_SEGMENT ? -1 : (int)plan_value(c->plan),
        .packed = c->packed,
        .precision =
            (int)(kind == DB_TRIAL_SEGMENT ? c->choices[0].schedule.precision : c->precision),
        .status = t->status,
        .reason_code = ok ? "" : status_name(t->reason.code),
        .reason = ok ? "" : t->reason.message,
        .median_ms = failed ? NAN : t->ms.median,
        .ci_low_ms = failed ? NAN : t->ms.low,
        .ci_high_ms = failed ? NAN : t->ms.high,
        .build_s = t->build_s,
        .verify_s = t->verify_s,
        .time_s = t->time_s,
        .error = t->error,
        .layers_timed = t->layers_timed,
        .choice_count = c->count,
        .sample_count = t->sample_count,
        .choices = x->choices,
        .samples_ms = t->samples_ms,
        .comparison = comparison,
        .resources = x->resources.ptr,
        .conditions = x->conditions.ptr,
        .search = search_id};
}

static int store(struct db *db, int64_t study, enum db_trial_kind kind, const struct candidate *c,
                 const struct trial *t, int count, const char *comparison, const char *search_id,
                 struct status *st)
{
    SCOPED struct texts *texts = mem_alloc((size_t)count + 1, sizeof(*texts));
    SCOPED struct db_trial *rows = mem_alloc((size_t)count + 1, sizeof(*rows));
    for (int i = 0; i < count; i++) {
        texts_init(&texts[i], &c[i], &t[i]);
        rows[i] = row_of(kind, &c[i], &t[i], &texts[i], comparison, search_id);
    }
    int result = db_trials_add(db, study, rows, count, st);
    for (int i = 0; i < count; i++)
        texts_release(&texts[i]);
    return result;
}

int trial_store(struct db *db, int64_t study, enum db_trial_kind kind, const struct candidate *c,
                const struct trial *t, const char *search_id, struct status *st)
{
    return store(db, study, kind, c, t, 1, "", search_id, st);
}

int comparison_store(struct db *db, int64_t study, const struct candidate *c, const struct trial *t,
                     int count, const char *comparison, const char *search_id, struct status *st)
{
    return store(db, study, DB_TRIAL_FINAL, c, t, count, comparison, search_id, st);
}
