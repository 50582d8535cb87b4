#include "layer/layer.h"

#define READS(t) (1u << (t))
#define OF(op)   READS(TENSOR_OF(op))
#define WITH(id) (1u << WEIGHT_##id)

const struct weight weights[WEIGHT_COUNT] = {
#define X(id, name, rows, cols, draw) {name, rows, cols, draw},
    CHAIN_WEIGHTS(X)
#undef X
};

const struct op ops[] = {
    {.name = "qkv_gemm",
     .computes = "x @ Wqkv",
     .anchor = ANCHOR_GEMM,
     .reads = READS(TENSOR_X),
     .weights = WITH(WQKV),
     .layout = LAYOUT_TOKENS,
     .columns = DIM_3D},
    {.name = "qkv_bias_split",
     .computes = "+ bqkv, split into q, k, v, each to heads",
     .anchor = ANCHOR_NONE,
     .pointwise = POINTWISE_BIAS_SPLIT_HEADS,
     .reads = OF(0),
     .weights = WITH(BQKV),
     .layout = LAYOUT_QKV_HEADS,
     .columns = DIM_3D},
    {.name = "scores",
     .computes = "q @ k^T / sqrt(W)",
     .anchor = ANCHOR_SCORES,
     .reads = OF(1),
     .layout = LAYOUT_SCORES},
    {.name = "mask",
     .computes = "drop the keys that the mask does not keep",
     .anchor = ANCHOR_NONE,
     .pointwise = POINTWISE_MASK,
     .reads = OF(2),
     .layout = LAYOUT_SCORES},
    {.name = "softmax",
     .computes = "softmax over the keys",
     .anchor = ANCHOR_SOFTMAX,
     .reads = OF(3),
     .layout = LAYOUT_SCORES},
    {.name = "context",
     .computes = "probs @ v",
     .anchor = ANCHOR_CONTEXT,
     .reads = OF(1) | OF(4),
     .layout = LAYOUT_HEADS,
     .columns = DIM_D},
    {.name = "merge_heads",
     .computes = "heads side by side again",
     .anchor = ANCHOR_NONE,
     .pointwise = POINTWISE_MERGE_HEADS,
     .reads = OF(5),
     .layout = LAYOUT_TOKENS,
     .columns = DIM_D},
    {.name = "out_gemm",
     .computes = "@ Wo",
     .anchor = ANCHOR_GEMM,
     .reads = OF(6),
     .weights = WITH(WO),
     .layout = LAYOUT_TOKENS,
     .columns = DIM_D},
    {.name = "out_bias_residual",
     .computes = "+ bo, + x",
     .anchor = ANCHOR_NONE,
     .pointwise = POINTWISE_BIAS_RESIDUAL,
     .reads = OF(7) | READS(TENSOR_X),
     .weights = WITH(BO),
     .layout = LAYOUT_TOKENS,
     .columns = DIM_D},
    {.name = "layernorm1",
     .computes = "layernorm(gamma1, beta1)",
     .anchor = ANCHOR_LAYERNORM,
     .reads = OF(8),
     .weights = WITH(GAMMA1) | WITH(BETA1),
     .layout = LAYOUT_TOKENS,
     .columns = DIM_D},
    {.name = "ffn1_gemm",
     .computes = "@ W1",
     .anchor = ANCHOR_GEMM,
     .reads = OF(9),
     .weights = WITH(W1),
     .layout = LAYOUT_TOKENS,
     .columns = DIM_F},
    {.name = "ffn1_bias_gelu",
     .computes = "+ b1, GELU",
     .anchor = ANCHOR_NONE,
     .pointwise = POINTWISE_BIAS_GELU,
     .reads = OF(10),
     .weights = WITH(B1),
     .layout = LAYOUT_TOKENS,
     .columns = DIM_F},
    {.name = "ffn2_gemm",
     .computes = "@ W2",
     .anchor = ANCHOR_GEMM,
     .reads = OF(11),
     .weights = WITH(W2),
     .layout = LAYOUT_TOKENS,
     .columns = DIM_D},
    {.name = "ffn2_bias_residual",
     .computes = "+ b2, + layernorm1's result",
     .anchor = ANCHOR_NONE,
     .pointwise = POINTWISE_BIAS_RESIDUAL,
     .reads = OF(12) | OF(9),
     .weights = WITH(B2),
     .layout = LAYOUT_TOKENS,
     .columns = DIM_D},
    {.name = "layernorm2",
     .computes = "layernorm(gamma2, beta2)",
     .anchor = ANCHOR_LAYERNORM,
     .reads = OF(13),
     .weights = WITH(GAMMA2) | WITH(BETA2),
     .layout = LAYOUT_TOKENS,
     .columns = DIM_D},
};
_Static_assert(ARRAY_LEN(ops) == OP_COUNT, "one row an operator");
_Static_assert(TENSOR_COUNT <= 16 && WEIGHT_COUNT <= 16, "sets of them are bits of uint16_t");

/* ---- what an operator reads ------------------------------------------------------------------ */

int op_input(int op)
{
    return TENSOR_OF(op - 1);
}

int op_residual(int op)
{
    unsigned others = ops[op].reads & ~(1u << op_input(op));
    return others != 0 ? __builtin_ctz(others) : -1;
}

int op_weight_count(int op)
{
    return __builtin_popcount(ops[op].weights);
}

enum weight_id op_weight(int op, int n)
{
    unsigned left = ops[op].weights;
    for (; n > 0; n--)
        left &= left - 1;
    return (enum weight_id)__builtin_ctz(left);
}

const char *op_activation(int op)
{
    static const char *const activations[] = {
#define X(id, activation) activation,
        CHAIN_POINTWISE(X)
#undef X
    };
    return activations[ops[op].pointwise];
}

/* ---- names ----------------------------------------------------------------------------------- */

const char *tensor_name(int tensor)
{
    return tensor == TENSOR_X ? "x" : ops[tensor - 1].name;
}

void add_op_names(int first, int last, const char *separator, struct buf *out)
{
    for (int op = first; op <= last; op++)
        buf_addf(out, "%s%s", op > first ? separator : "", ops[op].name);
}

/* ---- sizes ----------------------------------------------------------------------------------- */

int64_t dim_size(enum dim d, const struct workload *w)
{
    int64_t hidden = workload_hidden(w);
    switch (d) {
    case DIM_1:
        return 1;
    case DIM_D:
        return hidden;
    case DIM_3D:
        return 3 * hidden;
    case DIM_F:
        return w->ffn;
    }
    return 0;
}

enum layout tensor_layout(int tensor)
{
    return tensor == TENSOR_X ? LAYOUT_TOKENS : ops[tensor - 1].layout;
}

enum dim tensor_columns(int tensor)
{
    return tensor == TENSOR_X ? DIM_D : ops[tensor - 1].columns;
}

int qkv_tensor(void)
{
    int tensor = TENSOR_X;
    while (tensor_layout(tensor) != LAYOUT_QKV_HEADS)
        tensor++;
    return tensor;
}

int64_t tensor_elements(int tensor, const struct workload *w)
{
    int64_t tokens = (int64_t)w->batch * w->seq_len;
    bool scores = tensor_layout(tensor) == LAYOUT_SCORES;
    return tokens * (scores ? (int64_t)w->heads * w->seq_len : dim_size(tensor_columns(tensor), w));
}

int64_t weight_elements(enum weight_id id, const struct workload *w)
{
    return dim_size(weights[id].rows, w) * dim_size(weights[id].cols, w);
}

const char *tensor_shape_text(int tensor)
{
    static const char *const tokens[] = {
        [DIM_1] = "(B,S,1)", [DIM_D] = "(B,S,D)", [DIM_3D] = "(B,S,3D)", [DIM_F] = "(B,S,F)"};
    static const char *const others[] = {[LAYOUT_QKV_HEADS] = "3x(B,H,S,W)",
                                         [LAYOUT_SCORES] = "(B,H,S,S)",
                                         [LAYOUT_HEADS] = "(B,H,S,W)"};
    enum layout layout = tensor_layout(tensor);
    return layout == LAYOUT_TOKENS ? tokens[tensor_columns(tensor)] : others[layout];
}

double op_flops(int op, const struct workload *w, int64_t kept)
{
    switch (ops[op].anchor) {
    case ANCHOR_GEMM:
        return 2.0 * (double)workload_tokens(w) * (double)weight_elements(op_weight(op, 0), w);
    case ANCHOR_SCORES:
    case ANCHOR_CONTEXT:
        return 2.0 * (double)kept * workload_hidden(w);
    case ANCHOR_NONE:
    case ANCHOR_SOFTMAX:
    case ANCHOR_LAYERNORM:
        return 0;
    }
    return 0;
}
