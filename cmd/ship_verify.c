#include "cmd/ship_int.h"

#include "cmd/bench_int.h"
#include "cmd/generate_int.h"
#include "cmd/plans.h"

/* ---- rows ------------------------------------------------------------------------------------ */

/* what: "unfused".  beside: the plan's speed over the unfused one's. */
static json_t *row_of(const char *what, const struct workload *w, const struct comparison *c, int i,
                      const struct baseline_time *beside)
{
    const struct trial *t = &c->trials[i];
    bool ok = t->status == TRIAL_OK;
    const struct interval ms = trial_ms(t);
    char unstable[UNSTABLE_SIZE];
    comparison_unstable(c, i, unstable);
    return json_pack(
        "{si si ss si so so so so so so so so so so so}", "batch", w->batch, "seq_len", w->seq_len,
        "row", what, "value", (int)plan_value(c->plans[i]), "fused", plan_fused_json(c->plans[i]),
        LAYER_MEMBERS(ms, w->layers), "speedup", json_number(beside->speedup.median), "speedup_low",
        json_number(beside->speedup.low), "speedup_high", json_number(beside->speedup.high),
        "unstable", json_text_or_null(unstable), "error", json_number(ok ? t->error : NAN),
        "allowed", json_number(layer_tolerance(w->dtype, c->precision[i])));
}

/* The best plan is the one given, the unfused one the only baseline. */
static void add_rows(const struct workload *w, const struct comparison *c, double difference,
                     json_t *rows)
{
    struct baseline_time itself, beside[BASELINES_MAX];
    int unfused = comparison_find(c, plan_from_value(VALUE_UNFUSED), false, 0);
    const struct trial *t = &c->trials[unfused];
    comparison_beside(c, 0, beside);
    itself = baseline_beside(c->plans[unfused], t, t, c->compared_at);
    json_array_append_new(rows, row_of("unfused", w, c, unfused, &itself));
    json_array_append_new(rows, row_of("best", w, c, 0, &beside[0]));
    json_t *library = row_of("library", w, c, 0, &beside[0]);
    static const char *const times[] = {"median_ms", "ci_low_ms",   "ci_high_ms",   "us_per_layer",
                                        "speedup",   "speedup_low", "speedup_high", "unstable"};
    for (size_t i = 0; i < ARRAY_LEN(times); i++)
        json_object_set_new(library, times[i], json_null());
    json_object_set_new(library, "error", json_number(difference));
    json_array_append_new(rows, library);
}

/* ---- the library ----------------------------------------------------------------------------- */

static int read_array(const char *dir, const char *name, const struct workload *w,
                      struct buf *bytes, struct npy *out, struct status *st)
{
    enum { HEADER_MOST = 65536 };
    SCOPED char *path = buf_text("%s/%s", dir, name);
    size_t most =
        sizeof(float) * (size_t)w->batch * (size_t)w->seq_len * (size_t)workload_hidden(w);
    return file_read(path, most + HEADER_MOST, bytes, st) != 0
               ? -1
               : npy_parse(bytes->ptr, bytes->len, out, st);
}

/* ||library - plan|| / ||plan|| of y; NaN or infinite where a value is. */
static int difference_of(const char *dir, const struct workload *w, double *out, struct status *st)
{
    SCOPED_BUF plan_bytes = BUF_INIT, library_bytes = BUF_INIT;
    struct npy plan, library;
    double error = 0, norm = 0;
    if (read_array(dir, "y.npy", w, &plan_bytes, &plan, st) != 0 ||
        read_array(dir, "library.npy", w, &library_bytes, &library, st) != 0)
        return -1;
    if (npy_count(&plan) != npy_count(&library))
        return status_set(st, STATUS_WRONG, "the library's result has another size");
    for (int64_t i = 0; i < npy_count(&plan); i++) {
        double right = npy_value(&plan, i), d = npy_value(&library, i) - right;
        error += d * d;
        norm += right * right;
    }
    *out = error == 0 ? 0 : sqrt(error / norm);
    return 0;
}

/* Runs the library on the input that the best plan has, in files below `dir`. */
static int run_library(const struct options *o, const struct session *s, const char *at,
                       const char *dir, struct status *st)
{
    SCOPED char *x = buf_text("%s/x.npy", dir);
    SCOPED char *y = buf_text("%s/library.npy", dir);
    const char *uuid = bench_fingerprint(s->bench)->uuid;
    bool other = s->target.kind == TARGET_CUDA && s->target.device > 0;
    const struct library_example e = {.weights = o->weights,
                                      .prefix = o->prefix,
                                      .input = x,
                                      .output = y,
                                      .gpu = other ? uuid : NULL};
    return library_run(at, &e, st);
}

static int compare_library(const struct options *o, struct session *s, const struct comparison *c,
                           const char *at, double *difference, struct status *st)
{
    SCOPED char *dir = buf_text("%s/verified", at);
    double most = layer_tolerance(s->workload.dtype, c->precision[0]);
    progress_step(NULL, &(struct step){"running the library", 0, 0, NAN});
    int result = bench_dump_flow(s->bench, &c->candidates[0], dir, st) != 0 ||
                         run_library(o, s, at, dir, st) != 0 ||
                         difference_of(dir, &s->workload, difference, st) != 0
                     ? -1
                     : 0;
    if (result == 0 && !(*difference <= most))
        result = status_set(st, STATUS_WRONG,
                            "the library's result differs from that of plan %u by %.2g of its "
                            "norm; %.2g is allowed",
                            plan_value(c->plans[0]), *difference, most);
    file_remove_all(dir, result == 0 ? st : STATUS_IGNORED);
    return st->code == STATUS_OK ? 0 : -1;
}

/* ---- all of it ------------------------------------------------------------------------------- */

static int measure(const struct options *o, struct comparison *c, struct session *s,
                   struct status *st)
{
    if (comparison_read(o, c, st) != 0)
        return -1;
    c->wants_kernels = false;
    if (comparison_measure(o, c, s, st) != 0)
        return -1;
    const struct trial *best = &c->trials[0];
    return best->status == TRIAL_OK
               ? 0
               : status_set(st, STATUS_WRONG, "the best plan, %u, gives no valid result: %s",
                            plan_value(c->plans[0]), best->reason.message);
}

int ship_verify(const struct options *one, const char *at, json_t *rows, struct status *st)
{
    const char *operands[] = {BEST_WORD};
    char unfused[16];
    struct options o = *one;
    SCOPED_BY(session_close) struct session s = {.bench = NULL};
    SCOPED_BY(comparison_free_at) struct comparison *c = mem_alloc(1, sizeof(*c));
    double difference = 0;
    snprintf(unfused, sizeof(unfused), "%d", VALUE_UNFUSED);
    o.operands = operands;
    o.operand_count = 1;
    o.baseline = unfused;
    o.given &= ~OPT(FORCE); /* of the library's directory, and no --dump */
    if (measure(&o, c, &s, st) != 0 || compare_library(&o, &s, c, at, &difference, st) != 0)
        return -1;
    add_rows(&s.workload, c, difference, rows);
    return 0;
}
