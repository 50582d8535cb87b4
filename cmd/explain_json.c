#include "cmd/explain_int.h"

/* ---- kernels --------------------------------------------------------------------------------- */

/* The tensors of a set: name, shape, bytes. */
static json_t *tensors_json(const struct explained_kernel *k, uint32_t set, bool written,
                            const struct workload *w)
{
    json_t *list = json_array();
    for (int t = 0; t < TENSOR_COUNT; t++)
        if ((set >> t & 1) != 0)
            json_array_append_new(list, json_pack("{ss ss so}", "name", tensor_name(w->chain, t),
                                                  "shape", tensor_shape_text(w->chain, t), "bytes",
                                                  json_number(explained_bytes(k, w, t, written))));
    return list;
}

static json_t *weights_json(const struct chain *c, struct segment s)
{
    json_t *list = json_array();
    for (int i = 0; i < WEIGHT_MAX; i++)
        if ((segment_weights(c, s) >> i & 1) != 0)
            json_array_append_new(list, json_string(c->weights[i].name));
    return list;
}

/* What GEMMs in e4m3 cost a model, alone and together; null: it is not known. */
static json_t *errors_json(const struct explained *x)
{
    json_t *all = json_object();
    for (int g = 0; g < GEMM_COUNT; g++)
        if ((x->precision >> g & 1) != 0)
            json_object_set_new(all, gemm_names[g],
                                json_number(precision_error(&x->errors, 1u << g)));
    json_object_set_new(all, "together", json_number(precision_error(&x->errors, x->precision)));
    return all;
}

static json_t *kernel_json(const struct explained_kernel *k, const struct workload *w)
{
    struct segment s = k->choice.segment;
    SCOPED_BUF operators = BUF_INIT;
    segment_describe(w->chain, s, &operators);
    const char *bound = isnan(k->least_us) ? NULL : k->memory_bound ? "memory" : "compute";
    json_t *row =
        json_pack("{s[ii] ss ss so so so so so so so so ss?}", "ops", s.first, s.last, "operators",
                  operators.ptr, "implementation", k->choice.impl->name, "schedule",
                  schedule_json(&k->choice), "median_us", json_number(k->us.median), "ci_low_us",
                  json_number(k->us.low), "ci_high_us", json_number(k->us.high), "without_e4m3_us",
                  json_number(k->plain_us), "flops", json_number(k->work.flops), "bytes",
                  json_number(k->work.bytes), "least_us", json_number(k->least_us), "bound", bound);
    json_object_set_new(row, "reads", tensors_json(k, k->reads, false, w));
    json_object_set_new(row, "weights", weights_json(w->chain, s));
    json_object_set_new(row, "keeps", tensors_json(k, k->keeps, true, w));
    json_object_set_new(row, "passes", tensors_json(k, k->passes, true, w));
    json_object_set_new(row, "writes", tensors_json(k, k->writes, true, w));
    return row;
}

void explained_csv(const struct explained *x)
{
    static const struct column columns[] = {
        {"ops.0", NULL, 0},          {"ops.1", NULL, 0},      {"operators", NULL, 0},
        {"implementation", NULL, 0}, {"schedule", NULL, 0},   {"median_us", NULL, 0},
        {"ci_low_us", NULL, 0},      {"ci_high_us", NULL, 0}, {"flops", NULL, 0},
        {"bytes", NULL, 0},          {"least_us", NULL, 0},   {"bound", NULL, 0},
    };
    struct output out;
    output_begin(&out, FORMAT_CSV, columns, ARRAY_LEN(columns));
    for (int i = 0; i < x->e.count; i++)
        output_row(&out, kernel_json(&x->e.kernels[i], x->workload));
    output_end(&out);
}

/* ---- neighbours ------------------------------------------------------------------------------ */

static double percent(double ratio)
{
    return 100 * (ratio - 1);
}

static json_t *neighbour_json(const struct neighbour *n)
{
    SCOPED_BUF text = BUF_INIT;
    neighbour_text(n, &text);
    return json_pack("{si ss ss so so so so so ss ss}", "value", (int)plan_value(n->plan), "change",
                     change_names[n->change], "text", text.ptr, "segments",
                     plan_segments_json(n->plan), "median_ms", json_number(n->ms), "slower_percent",
                     json_number(percent(n->ratio.median)), "slower_low_percent",
                     json_number(percent(n->ratio.low)), "slower_high_percent",
                     json_number(percent(n->ratio.high)), "source", time_source_names[n->source],
                     "reason", n->reason);
}

/* ---- the plan -------------------------------------------------------------------------------- */

json_t *explained_json(const struct explained *x)
{
    const struct explanation *e = &x->e;
    json_t *kernels = json_array(), *neighbours = json_array();
    for (int i = 0; i < e->count; i++)
        json_array_append_new(kernels, kernel_json(&e->kernels[i], x->workload));
    for (int i = 0; i < e->neighbour_count; i++)
        json_array_append_new(neighbours, neighbour_json(&e->neighbours[i]));
    json_t *rates =
        json_pack("{so so sb}", "flops_per_s", json_number(e->rates.flops_per_s), "bytes_per_s",
                  json_number(e->rates.bytes_per_s), "of_device", e->device_rates);
    SCOPED_BUF precision = BUF_INIT;
    precision_text(x->precision, dtypes[x->workload->dtype].name, &precision);
    json_t *object = json_pack(
        "{so si sb ss so sb ss? ss so so so so}", "workload", workload_json(x->workload, x->target),
        "value", (int)plan_value(e->plan), "packed", (int)e->packed, "precision", precision.ptr,
        "segments", plan_segments_json(e->plan), "handwritten", e->plan.handwritten, "device",
        x->device, "source", time_source_names[e->source],
        LAYER_MEMBERS(e->ms, x->workload->layers));
    json_object_set_new(object, "errors",
                        x->has_errors && x->precision != 0 ? errors_json(x) : json_null());
    json_object_set_new(object, "unstable", json_text_or_null(x->unstable));
    json_object_set_new(object, "kernels_us", json_number(e->sum_us));
    json_object_set_new(object, "least_us", json_number(e->least_us));
    json_object_set_new(object, "rates", rates);
    json_object_set_new(object, "kernels", kernels);
    json_object_set_new(object, "neighbours", neighbours);
    return object;
}
