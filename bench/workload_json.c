#include "bench/bench.h"

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
    buf_release(&mask);
    return object;
}
