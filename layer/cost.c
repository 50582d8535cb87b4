#include "layer/layer.h"

static double op_flops(int op, const struct workload *w)
{
    const struct op *o = &w->chain->ops[op];
    if (o->kind == KIND_GEMM)
        return 2.0 * (double)workload_tokens(w) *
               (double)weight_elements(o->weight[ROLE_MATRIX], w);
    if (o->kind == KIND_SCORES || o->kind == KIND_CONTEXT)
        return 2.0 * workload_pairs(w) * workload_heads_columns(w);
    return 0;
}

double segment_flops(struct segment s, const struct workload *w)
{
    double flops = 0;
    for (int op = s.first; op <= s.last; op++)
        flops += op_flops(op, w);
    return flops;
}

/* How many of q, k and v a segment reads: q and k for the scores, v for the context. */
static int qkv_parts_read(const struct chain *c, struct segment s)
{
    int parts = 0;
    for (int op = s.first; op <= s.last; op++)
        parts += c->ops[op].kind == KIND_SCORES ? 2 : c->ops[op].kind == KIND_CONTEXT ? 1 : 0;
    return parts;
}

/* Elements of a tensor, without padding and masked scores. */
static double real_elements(int tensor, const struct workload *w)
{
    if (tensor_layout(w->chain, tensor) == LAYOUT_SCORES)
        return workload_pairs(w) * w->heads;
    double all = (double)tensor_elements(tensor, w);
    return all / w->batch / w->seq_len * (double)workload_tokens(w);
}

double weight_bytes(int weight, const struct workload *w)
{
    bool table = w->chain->weights[weight].table;
    return (double)weight_elements(weight, w) * (table ? 4 : dtypes[w->dtype].bytes);
}

double tensor_bytes(int tensor, const struct workload *w)
{
    return real_elements(tensor, w) * dtypes[w->dtype].bytes;
}

double segment_bytes(struct segment s, const struct workload *w)
{
    const struct chain *c = w->chain;
    uint32_t inputs = segment_inputs(c, s), outputs = segment_outputs(c, s),
             read = segment_weights(c, s);
    double bytes = 0;
    for (int t = 0; t < TENSOR_COUNT; t++) {
        double share = tensor_layout(c, t) == LAYOUT_QKV_HEADS ? qkv_parts_read(c, s) / 3.0 : 1;
        bytes += (inputs >> t & 1) * share * tensor_bytes(t, w);
        bytes += (outputs >> t & 1) * tensor_bytes(t, w);
    }
    for (int i = 0; i < WEIGHT_MAX; i++)
        bytes += (read >> i & 1) * weight_bytes(i, w);
    return bytes;
}
