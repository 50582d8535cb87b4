#include "bench/worker/worker_int.h"

#include <inttypes.h>

/* The operators from a GEMM on that read rows of tokens alone. */
static struct segment rows_from(const struct chain *c, int op)
{
    int last = op;
    while (last + 1 < OP_COUNT && c->ops[last + 1].kind != KIND_GEMM &&
           c->ops[last + 1].kind != KIND_SCORES)
        last++;
    return (struct segment){(int8_t)op, (int8_t)last};
}

/* The input is rounded as it is stored, and then to e4m3. */
static struct rounding rounding_of(const struct worker *k, int layer, int gemm)
{
    struct rounding r = {.dtype = k->w.dtype, .stored = SET_OF(e4m3_input(k->w.chain, gemm))};
    r.scale[gemm] = k->tensors.e4m3.scales[layer].in[gemm];
    return r;
}

const struct oracle_results *verify_rounded_gemm(struct worker *k, int layer, int gemm)
{
    struct oracle_results *out = &k->rounded_gemm[layer][gemm];
    if (out->w != NULL)
        return out;
    const struct workload *w = workload_of_layer(&k->w, layer);
    const struct segment s = rows_from(w->chain, chain_gemm(w->chain, gemm));
    const struct rounding rounding = rounding_of(k, layer, gemm);
    SCOPED_BY(spans_release) struct spans all = spans_all(w);
    struct flow in;
    float *weight[WEIGHT_MAX];
    uint32_t made = 0;
    worker_doing(k, "computing operators %d-%d in e4m3 with the oracle", s.first, s.last);
    for (int op = s.first; op <= s.last; op++)
        made |= SET_OF(TENSOR_OF(op));
    for (int t = 0; t < TENSOR_COUNT; t++)
        in.tensor[t] = (chain_inputs(w->chain) >> t & 1) != 0 ? k->reference.in[layer].tensor[t]
                                                              : k->reference.layer[layer].tensor[t];
    inputs_weights(w, k->reference.inputs, layer, &rounding, false, weight);
    oracle_results_init(out, w, made, &all);
    const struct oracle_taker taker = oracle_results_taker(out);
    oracle_segment_run(w, s, &in, (const float *const *)weight, &rounding, &taker);
    weights_release(weight);
    return out;
}

/* The tensor cores' sums of e4m3 have fewer bits than fp32: errors grow with the inner dimension.
 * An output in e4m3 or a half type adds half a unit of the latter, as elsewhere; of bf16 most. */
double verify_gemm_tolerance(const struct worker *k, int gemm)
{
    enum { SHORT = 1024 };
    const struct chain *c = k->w.chain;
    const int id = c->ops[chain_gemm(c, gemm)].weight[ROLE_MATRIX];
    return fmax(dim_size(c->weights[id].rows, &k->w) <= SHORT ? 5e-3 : 1e-2,
                dtypes[k->w.dtype].tolerance);
}

struct reference *verify_rounded_layers(struct worker *k, unsigned precision)
{
    if (precision == 0)
        return &k->reference;
    const bool known = k->rounding != NULL;
    bool same = known;
    for (int g = 0; g < GEMM_COUNT && known; g++)
        same = same && (k->rounding[0].scale[g] > 0) == ((precision >> g & 1) != 0);
    if (same)
        return &k->rounded;
    if (known)
        reference_release(&k->rounded);
    free(k->rounding);
    k->rounding = mem_alloc((size_t)k->w.layers, sizeof(*k->rounding));
    for (int l = 0; l < k->w.layers; l++) {
        k->rounding[l].dtype = k->w.dtype;
        k->rounding[l].stored = rounding_stored(k->w.chain);
        for (int g = 0; g < GEMM_COUNT; g++)
            if ((precision >> g & 1) != 0)
                k->rounding[l].scale[g] = k->tensors.e4m3.scales[l].in[g];
    }
    reference_init(&k->rounded, &k->w, k->inputs);
    k->rounded.rounding = k->rounding;
    return &k->rounded;
}

static struct rows all_rows(const struct worker *k, int t)
{
    return (struct rows){0, tensor_elements(t, &k->w) / tensor_row_columns(&k->w, t)};
}

struct oracle_error verify_codes(struct worker *k, const struct part *part, int layer, float scale,
                                 const struct oracle_results *right)
{
    const int t = TENSOR_OF(part->choice.segment.last);
    struct comparison c;
    comparison_init(&c, right, t);
    comparison_add_e4m3(&c, all_rows(k, t), e4m3_read(&k->tensors, layer, t), scale);
    return comparison_end(&c);
}

/* Whether a row of (B,S) is of a real token. */
static bool is_real(const struct workload *w, int64_t row)
{
    return w->lengths == NULL || row % w->seq_len < w->lengths[row / w->seq_len];
}

int verify_copy(struct worker *k, const struct part *part, int layer, float scale,
                struct status *st)
{
    const int t = TENSOR_OF(part->choice.segment.last);
    const int64_t columns = tensor_row_columns(&k->w, t);
    const uint8_t *codes = e4m3_read(&k->tensors, layer, t);
    const float *values = tensors_read(&k->tensors, layer, t);
    const int64_t count = all_rows(k, t).count * columns;
    for (int64_t i = 0; i < count; i++) {
        const uint8_t right = e4m3_pack(values[i] / scale);
        if (codes[i] != right && is_real(&k->w, i / columns))
            return status_set(st, STATUS_WRONG,
                              "wrong result: the copy of %s in e4m3 has the code 0x%02x at element "
                              "%" PRId64 ", where %g by a scale of %g gives 0x%02x",
                              tensor_name(k->w.chain, t), codes[i], i, values[i], scale, right);
    }
    return 0;
}

void verify_e4m3_release(struct worker *k)
{
    for (int i = 0; i < KINDS_MAX * GEMM_COUNT; i++)
        if (k->rounded_gemm[i / GEMM_COUNT][i % GEMM_COUNT].w != NULL)
            oracle_results_release(&k->rounded_gemm[i / GEMM_COUNT][i % GEMM_COUNT]);
    if (k->rounding != NULL)
        reference_release(&k->rounded);
    free(k->rounding);
    k->rounding = NULL;
}
