#include "layer/layer.h"

#define READS(t) (1u << (t))
#define OF(op)   READS(TENSOR_OF(op))
#define WITH(id) (1u << WEIGHT_##id)

const struct weight weights[WEIGHT_COUNT] = {
#define X(id, name, rows, cols, draw) {name, rows, cols, draw},
    CHAIN_WEIGHTS(X)
#undef X
};

/* A row: name, what it computes;
 * anchor, pointwise, tensors and weights that it reads, layout and columns of its output. */
/* clang-format off */
const struct op ops[] = {
    {"qkv_gemm", "x @ Wqkv",
     ANCHOR_GEMM, POINTWISE_NONE, READS(TENSOR_X), WITH(WQKV), LAYOUT_TOKENS, DIM_3D},
    {"qkv_bias_split", "+ bqkv, split into q, k, v, each to heads",
     ANCHOR_NONE, POINTWISE_BIAS_SPLIT_HEADS, OF(0), WITH(BQKV), LAYOUT_QKV_HEADS, DIM_3D},
    {"scores", "q @ k^T / sqrt(W)",
     ANCHOR_SCORES, POINTWISE_NONE, OF(1), 0, LAYOUT_SCORES, DIM_1},
    {"mask", "drop the keys that the mask does not keep",
     ANCHOR_NONE, POINTWISE_MASK, OF(2), 0, LAYOUT_SCORES, DIM_1},
    {"softmax", "softmax over the keys",
     ANCHOR_SOFTMAX, POINTWISE_NONE, OF(3), 0, LAYOUT_SCORES, DIM_1},
    {"context", "probs @ v",
     ANCHOR_CONTEXT, POINTWISE_NONE, OF(1) | OF(4), 0, LAYOUT_HEADS, DIM_D},
    {"merge_heads", "heads side by side again",
     ANCHOR_NONE, POINTWISE_MERGE_HEADS, OF(5), 0, LAYOUT_TOKENS, DIM_D},
    {"out_gemm", "@ Wo",
     ANCHOR_GEMM, POINTWISE_NONE, OF(6), WITH(WO), LAYOUT_TOKENS, DIM_D},
    {"out_bias_residual", "+ bo, + x",
     ANCHOR_NONE, POINTWISE_BIAS_RESIDUAL, OF(7) | READS(TENSOR_X), WITH(BO), LAYOUT_TOKENS, DIM_D},
    {"layernorm1", "layernorm(gamma1, beta1)",
     ANCHOR_LAYERNORM, POINTWISE_NONE, OF(8), WITH(GAMMA1) | WITH(BETA1), LAYOUT_TOKENS, DIM_D},
    {"ffn1_gemm", "@ W1",
     ANCHOR_GEMM, POINTWISE_NONE, OF(9), WITH(W1), LAYOUT_TOKENS, DIM_F},
    {"ffn1_bias_gelu", "+ b1, GELU",
     ANCHOR_NONE, POINTWISE_BIAS_GELU, OF(10), WITH(B1), LAYOUT_TOKENS, DIM_F},
    {"ffn2_gemm", "@ W2",
     ANCHOR_GEMM, POINTWISE_NONE, OF(11), WITH(W2), LAYOUT_TOKENS, DIM_D},
    {"ffn2_bias_residual", "+ b2, + layernorm1's result",
     ANCHOR_NONE, POINTWISE_BIAS_RESIDUAL, OF(12) | OF(9), WITH(B2), LAYOUT_TOKENS, DIM_D},
    {"layernorm2", "layernorm(gamma2, beta2)",
     ANCHOR_LAYERNORM, POINTWISE_NONE, OF(13), WITH(GAMMA2) | WITH(BETA2), LAYOUT_TOKENS, DIM_D},
};
/* clang-format on */
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
    const int64_t hidden = workload_hidden(w);
    const int64_t sizes[] = {
        [DIM_1] = 1, [DIM_D] = hidden, [DIM_3D] = 3 * hidden, [DIM_F] = w->ffn};
    return sizes[d];
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
