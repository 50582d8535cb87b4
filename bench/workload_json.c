#include "bench/bench.h"

/* kinds: of each layer; all are alike. */
static json_t *chain_json(const struct workload *w)
{
    const struct chain_functions f = chain_functions(w->chain);
    json_t *kinds = json_array();
    for (int layer = 0; layer < w->layers; layer++)
        json_array_append_new(kinds, json_integer(0));
    return json_pack("{ss ss ss ss sb so sb so}", "name", w->chain->name, "norm",
                     f.pre ? "pre" : "post", "norm_kind", f.rms ? "rms" : "layer", "activation",
                     op_functions[f.activation].name, "gate", (int)f.gate, "rope",
                     f.rope ? json_real(w->rope_theta) : json_null(), "score_bias",
                     (int)f.score_bias, "kinds", kinds);
}

json_t *workload_json(const struct workload *w, enum target_kind target)
{
    struct buf mask;
    buf_init(&mask);
    mask_text(&w->mask_spec, &mask);
    json_t *object = json_pack("{si si ss si si si si sf ss ss}", "batch", w->batch, "seq_len",
                               w->seq_len, "mask", mask.ptr, "heads", w->heads, "head_size",
                               w->head_size, "ffn", w->ffn, "layers", w->layers, "eps", w->eps,
                               "dtype", dtypes[w->dtype].name, "target", target_names[target]);
    json_t *lengths = w->lengths != NULL ? json_array() : json_null();
    for (int b = 0; w->lengths != NULL && b < w->batch; b++)
        json_array_append_new(lengths, json_integer(w->lengths[b]));
    json_object_set_new(object, "lengths", lengths);
    json_object_set_new(object, "chain", chain_json(w));
    buf_release(&mask);
    return object;
}
