#include "layer/layer.h"

const char *const dim_names[DIM_COUNT] = {
    [DIM_NONE] = "0", [DIM_1] = "1",   [DIM_D] = "D", [DIM_3D] = "3D",
    [DIM_A] = "A",    [DIM_3A] = "3A", [DIM_F] = "F", [DIM_2F] = "2F",
    [DIM_H] = "H",    [DIM_W] = "W",   [DIM_S] = "S", [DIM_2S_1] = "2S-1"};

enum { MATRIX = 1 << ROLE_MATRIX, BIAS = 1 << ROLE_BIAS };
enum { GAMMA = 1 << ROLE_GAMMA, BETA = 1 << ROLE_BETA, TABLE = 1 << ROLE_TABLE };

const struct op_function op_functions[FUNCTION_COUNT] = {
#define X(id, name, kind, roles, kernels) {name, "FP_" #id, kind, roles, kernels},
    CHAIN_FUNCTIONS(X)
#undef X
};

/* ---- chains ---------------------------------------------------------------------------------- */

#define OF(op) TENSOR_OF(op)
#define NONE   (-1)

/* clang-format off */

/* Weights by role. */
#define NO_WEIGHT            {NONE, NONE, NONE, NONE, NONE}
#define GEMM_OF(id)          {WEIGHT_##id, NONE, NONE, NONE, NONE}
#define BIAS_OF(id)          {NONE, WEIGHT_##id, NONE, NONE, NONE}
#define NORM_OF(gamma, beta) {NONE, NONE, WEIGHT_##gamma, WEIGHT_##beta, NONE}

/* A row: name, what it computes;
 * kind, function, input, skip, qkv, weights, layout and columns of its output. */
const struct chain chain_bert = {
    .name = "bert",
    .ops = {
        {"qkv_gemm", "x @ Wqkv",
         KIND_GEMM, FUNCTION_GEMM, TENSOR_X, NONE, NONE, GEMM_OF(WQKV), LAYOUT_TOKENS, DIM_3D},
        {"qkv_bias_split", "+ bqkv, split into q, k, v, each to heads",
         KIND_SPLIT, FUNCTION_BIAS_SPLIT_HEADS, OF(0), NONE, NONE, BIAS_OF(BQKV), LAYOUT_QKV_HEADS, DIM_3D},
        {"scores", "q @ k^T / sqrt(W)",
         KIND_SCORES, FUNCTION_SCORES, OF(1), NONE, OF(1), NO_WEIGHT, LAYOUT_SCORES, DIM_1},
        {"mask", "drop the keys that the mask does not keep",
         KIND_SCORE_MOD, FUNCTION_MASK, OF(2), NONE, NONE, NO_WEIGHT, LAYOUT_SCORES, DIM_1},
        {"softmax", "softmax over the keys",
         KIND_SOFTMAX, FUNCTION_SOFTMAX, OF(3), NONE, NONE, NO_WEIGHT, LAYOUT_SCORES, DIM_1},
        {"context", "probs @ v",
         KIND_CONTEXT, FUNCTION_CONTEXT, OF(4), NONE, OF(1), NO_WEIGHT, LAYOUT_HEADS, DIM_D},
        {"merge_heads", "heads side by side again",
         KIND_MERGE, FUNCTION_MERGE_HEADS, OF(5), NONE, NONE, NO_WEIGHT, LAYOUT_TOKENS, DIM_D},
        {"out_gemm", "@ Wo",
         KIND_GEMM, FUNCTION_GEMM, OF(6), NONE, NONE, GEMM_OF(WO), LAYOUT_TOKENS, DIM_D},
        {"out_bias_residual", "+ bo, + x",
         KIND_ADD, FUNCTION_BIAS_RESIDUAL, OF(7), TENSOR_X, NONE, BIAS_OF(BO), LAYOUT_TOKENS, DIM_D},
        {"layernorm1", "layernorm(gamma1, beta1)",
         KIND_NORM, FUNCTION_LAYERNORM, OF(8), NONE, NONE, NORM_OF(GAMMA1, BETA1), LAYOUT_TOKENS, DIM_D},
        {"ffn1_gemm", "@ W1",
         KIND_GEMM, FUNCTION_GEMM, OF(9), NONE, NONE, GEMM_OF(W1), LAYOUT_TOKENS, DIM_F},
        {"ffn1_bias_gelu", "+ b1, GELU",
         KIND_ACTIVATION, FUNCTION_BIAS_GELU, OF(10), NONE, NONE, BIAS_OF(B1), LAYOUT_TOKENS, DIM_F},
        {"ffn2_gemm", "@ W2",
         KIND_GEMM, FUNCTION_GEMM, OF(11), NONE, NONE, GEMM_OF(W2), LAYOUT_TOKENS, DIM_D},
        {"ffn2_bias_residual", "+ b2, + layernorm1's result",
         KIND_ADD, FUNCTION_BIAS_RESIDUAL, OF(12), OF(9), NONE, BIAS_OF(B2), LAYOUT_TOKENS, DIM_D},
        {"layernorm2", "layernorm(gamma2, beta2)",
         KIND_NORM, FUNCTION_LAYERNORM, OF(13), NONE, NONE, NORM_OF(GAMMA2, BETA2), LAYOUT_TOKENS, DIM_D},
    },
    .weights = {
        [WEIGHT_WQKV] = {"wqkv", DIM_D, DIM_3D, WEIGHT_UNIFORM, false},
        [WEIGHT_BQKV] = {"bqkv", DIM_1, DIM_3D, WEIGHT_UNIFORM, false},
        [WEIGHT_WO] = {"wo", DIM_D, DIM_D, WEIGHT_UNIFORM, false},
        [WEIGHT_BO] = {"bo", DIM_1, DIM_D, WEIGHT_UNIFORM, false},
        [WEIGHT_GAMMA1] = {"gamma1", DIM_1, DIM_D, WEIGHT_ONE_PLUS_UNIFORM, false},
        [WEIGHT_BETA1] = {"beta1", DIM_1, DIM_D, WEIGHT_UNIFORM, false},
        [WEIGHT_W1] = {"w1", DIM_D, DIM_F, WEIGHT_UNIFORM, false},
        [WEIGHT_B1] = {"b1", DIM_1, DIM_F, WEIGHT_UNIFORM, false},
        [WEIGHT_W2] = {"w2", DIM_F, DIM_D, WEIGHT_UNIFORM, false},
        [WEIGHT_B2] = {"b2", DIM_1, DIM_D, WEIGHT_UNIFORM, false},
        [WEIGHT_GAMMA2] = {"gamma2", DIM_1, DIM_D, WEIGHT_ONE_PLUS_UNIFORM, false},
        [WEIGHT_BETA2] = {"beta2", DIM_1, DIM_D, WEIGHT_UNIFORM, false},
    },
    .carried = {{TENSOR_Y, TENSOR_X}},
    .carried_count = 1,
};
/* clang-format on */
_Static_assert(TENSOR_COUNT <= 32 && WEIGHT_MAX <= 32, "sets of them are bits of uint32_t");

/* ---- operators ------------------------------------------------------------------------------- */

bool kind_is_pointwise(enum op_kind kind)
{
    return kind == KIND_SPLIT || kind == KIND_SCORE_MOD || kind == KIND_MERGE || kind == KIND_ADD ||
           kind == KIND_ACTIVATION;
}

static uint32_t set_if_any(int n)
{
    return n >= 0 ? SET_OF(n) : 0;
}

uint32_t op_tensors(const struct op *op)
{
    return set_if_any(op->input) | set_if_any(op->skip) | set_if_any(op->qkv);
}

uint32_t op_weights(const struct op *op)
{
    uint32_t all = 0;
    for (int role = 0; role < ROLE_COUNT; role++)
        all |= set_if_any(op->weight[role]);
    return all;
}

uint32_t chain_carried(const struct chain *c)
{
    uint32_t all = 0;
    for (int i = 0; i < c->carried_count; i++)
        all |= SET_OF(c->carried[i].from);
    return all;
}

uint32_t chain_inputs(const struct chain *c)
{
    uint32_t all = SET_OF(TENSOR_X);
    for (int i = 0; i < c->carried_count; i++)
        all |= SET_OF(c->carried[i].to);
    return all;
}

int chain_handed_on_as(const struct chain *c, int t)
{
    for (int i = 0; i < c->carried_count; i++)
        if (c->carried[i].to == t)
            return c->carried[i].from;
    return t;
}

int chain_gemm(const struct chain *c, int gemm)
{
    int op = 0;
    while (c->ops[op].kind != KIND_GEMM || gemm-- > 0)
        op++;
    return op;
}

const struct op *tensor_op(const struct chain *c, int tensor)
{
    return tensor == TENSOR_X || tensor == TENSOR_N ? NULL : &c->ops[tensor - 1];
}

const char *op_activation(const struct op *op)
{
    return op->kind == KIND_ACTIVATION || op->kind == KIND_GATE ? op_functions[op->function].name
                                                                : NULL;
}

/* ---- names ----------------------------------------------------------------------------------- */

const char *const gemm_names[GEMM_COUNT] = {
    [GEMM_QKV] = "qkv", [GEMM_OUT] = "out", [GEMM_FFN1] = "ffn1", [GEMM_FFN2] = "ffn2"};
const char *const gemm_inputs[GEMM_COUNT] = {
    [GEMM_QKV] = "x", [GEMM_OUT] = "context", [GEMM_FFN1] = "norm1", [GEMM_FFN2] = "activation"};

void gemms_text(unsigned gemms, const char *between, struct buf *out)
{
    const char *before = "";
    for (int g = 0; g < GEMM_COUNT; g++)
        if ((gemms >> g & 1) != 0) {
            buf_addf(out, "%s%s", before, gemm_names[g]);
            before = between;
        }
}

void precision_text(unsigned precision, const char *dtype, struct buf *out)
{
    if (precision == 0 || precision == GEMM_ALL)
        buf_adds(out, precision == 0 ? dtype : "fp8");
    else
        gemms_text(precision, ",", out);
}

int precision_parse(const char *text, unsigned *out, struct status *st)
{
    *out = strcmp(text, "fp8") == 0 ? GEMM_ALL : 0;
    if (*out != 0 || strcmp(text, "fp16") == 0)
        return 0;
    SCOPED char *copy = mem_strdup(text);
    for (char *rest = copy, *one; (one = strsep(&rest, ",")) != NULL;) {
        int g = 0;
        while (g < GEMM_COUNT && strcmp(gemm_names[g], one) != 0)
            g++;
        if (g == GEMM_COUNT)
            return status_set(st, STATUS_USAGE,
                              "'%s' is no precision; expected fp16, fp8, or the GEMMs in e4m3 with "
                              "commas between: qkv, out, ffn1, ffn2",
                              text);
        *out |= 1u << g;
    }
    return 0;
}

const char *tensor_name(const struct chain *c, int tensor)
{
    const struct op *op = tensor_op(c, tensor);
    return op != NULL ? op->name : tensor == TENSOR_X ? "x" : "n";
}

void add_op_names(const struct chain *c, int first, int last, const char *separator,
                  struct buf *out)
{
    for (int op = first; op <= last; op++)
        buf_addf(out, "%s%s", op > first ? separator : "", c->ops[op].name);
}

/* ---- sizes ----------------------------------------------------------------------------------- */

double dim_bound(enum dim d, const struct workload *w)
{
    double heads = (double)w->heads * w->head_size, hidden = w->hidden != 0 ? w->hidden : heads;
    double ffn = w->ffn != 0 ? w->ffn : 4 * hidden;
    const double sizes[DIM_COUNT] = {[DIM_1] = 1,
                                     [DIM_D] = hidden,
                                     [DIM_3D] = 3 * hidden,
                                     [DIM_A] = heads,
                                     [DIM_3A] = 3 * heads,
                                     [DIM_F] = ffn,
                                     [DIM_2F] = 2 * ffn,
                                     [DIM_H] = w->heads,
                                     [DIM_W] = w->head_size,
                                     [DIM_S] = w->seq_len,
                                     [DIM_2S_1] = 2.0 * w->seq_len - 1};
    return sizes[d];
}

int64_t dim_size(enum dim d, const struct workload *w)
{
    return (int64_t)dim_bound(d, w);
}

enum layout tensor_layout(const struct chain *c, int tensor)
{
    const struct op *op = tensor_op(c, tensor);
    return op != NULL ? op->layout : LAYOUT_TOKENS;
}

enum dim tensor_columns(const struct chain *c, int tensor)
{
    const struct op *op = tensor_op(c, tensor);
    return op != NULL ? op->columns : DIM_D;
}

bool chain_has_tensor(const struct chain *c, int tensor)
{
    return tensor_op(c, tensor) != NULL || (chain_inputs(c) & SET_OF(tensor)) != 0;
}

int64_t tensor_elements(int tensor, const struct workload *w)
{
    int64_t tokens = (int64_t)w->batch * w->seq_len;
    bool scores = tensor_layout(w->chain, tensor) == LAYOUT_SCORES;
    int64_t columns =
        scores ? (int64_t)w->heads * w->seq_len : dim_size(tensor_columns(w->chain, tensor), w);
    return chain_has_tensor(w->chain, tensor) ? tokens * columns : 0;
}

int64_t weight_elements(int weight, const struct workload *w)
{
    const struct weight *shape = &w->chain->weights[weight];
    return dim_size(shape->rows, w) * dim_size(shape->cols, w);
}

const char *tensor_shape_text(const struct chain *c, int tensor)
{
    static const char *const tokens[DIM_COUNT] = {
        [DIM_1] = "(B,S,1)",   [DIM_D] = "(B,S,D)", [DIM_3D] = "(B,S,3D)", [DIM_A] = "(B,S,A)",
        [DIM_3A] = "(B,S,3A)", [DIM_F] = "(B,S,F)", [DIM_2F] = "(B,S,2F)"};
    static const char *const others[] = {[LAYOUT_QKV_HEADS] = "3x(B,H,S,W)",
                                         [LAYOUT_SCORES] = "(B,H,S,S)",
                                         [LAYOUT_HEADS] = "(B,H,S,W)"};
    enum layout layout = tensor_layout(c, tensor);
    return layout == LAYOUT_TOKENS ? tokens[tensor_columns(c, tensor)] : others[layout];
}
