#include "codegen/cuda_int.h"

/* ---- the body of a stage's function -------------------------------------------------------------
 *
 * The statements are written first, as the declarations before them depend on what they name. */

struct body {
    const struct chain *chain;
    struct buf text;
    uint32_t tensors, weights, dims; /* named so far, as sets */
};

static const char *use_tensor(struct body *b, int tensor)
{
    b->tensors |= SET_OF(tensor);
    return tensor_name(b->chain, tensor);
}

static const char *use_weight(struct body *b, int weight)
{
    b->weights |= SET_OF(weight);
    return b->chain->weights[weight].name;
}

static const char *use_dim(struct body *b, enum dim d)
{
    static const char *const code[DIM_COUNT] = {
        [DIM_1] = "1",      [DIM_D] = "D", [DIM_3D] = "3 * D", [DIM_A] = "A",
        [DIM_3A] = "3 * A", [DIM_F] = "F", [DIM_2F] = "2 * F"};
    b->dims |= SET_OF(d);
    return code[d];
}

static void add_declarations(const struct body *b, struct buf *out)
{
    if ((b->dims & (1u << DIM_D | 1u << DIM_3D)) != 0)
        buf_adds(out, chain_functions(b->chain).hidden ? "    const int D = a.hidden;\n"
                                                       : "    const int D = a.heads * W;\n");
    if ((b->dims & (1u << DIM_A | 1u << DIM_3A)) != 0)
        buf_adds(out, "    const int A = a.heads * W;\n");
    if ((b->dims & (1u << DIM_F | 1u << DIM_2F)) != 0)
        buf_adds(out, "    const int F = a.ffn;\n");
    for (int t = 0; t < TENSOR_COUNT; t++)
        if ((b->tensors >> t & 1) != 0)
            buf_addf(out, "    const auto %s = fp::tensor<dtype>(a, %d);\n",
                     tensor_name(b->chain, t), t);
    for (int w = 0; w < WEIGHT_MAX; w++)
        if ((b->weights >> w & 1) != 0)
            buf_addf(out, "    const auto %s = fp::%s(a, %d);\n", b->chain->weights[w].name,
                     b->chain->weights[w].table ? "table" : "weight<dtype>", w);
    if (b->tensors != 0)
        buf_adds(out, "\n");
}

/* ---- statements ------------------------------------------------------------------------------ */

static void add_view(struct body *b, int op)
{
    int tensor = b->chain->ops[op].input;
    const char *name = use_tensor(b, tensor);
    if (tensor_layout(b->chain, tensor) == LAYOUT_HEADS)
        buf_addf(&b->text,
                 "    const fp::head_view<dtype, W> in{%s, a.seq_len, a.heads, a.unpacked};\n",
                 name);
    else
        buf_addf(&b->text, "    const fp::token_view<dtype> in{%s, %s};\n", name,
                 use_dim(b, tensor_columns(b->chain, tensor)));
}

static void add_store(struct body *b, int tensor)
{
    const char *name = use_tensor(b, tensor);
    if (tensor_layout(b->chain, tensor) == LAYOUT_QKV_HEADS)
        buf_addf(&b->text,
                 "    const fp::store_qkv<dtype, W> store{%s, a.batch, a.seq_len, a.heads, "
                 "a.unpacked};\n",
                 name);
    else
        buf_addf(&b->text, "    const fp::store_tokens<dtype> store{%s, %s};\n", name,
                 use_dim(b, tensor_columns(b->chain, tensor)));
}

/* Declares the epilogues of a pointwise operator, the last one, which passes rows to `next`, first.
 * Returns the name of the epilogue that takes the rows. */
static const char *add_pointwise(struct body *b, const struct op *op, const char *next)
{
    const char *activation = op_activation(op);
    int bias = op->weight[ROLE_BIAS];
    if (op->kind == KIND_GATE) {
        buf_addf(&b->text, "    const fp::gate<dtype, fp::%s_function, decltype(%s)> gate{%s};\n",
                 activation, next, next);
        next = "gate";
    } else if (activation != NULL) {
        buf_addf(&b->text, "    const fp::apply_%s<dtype, decltype(%s)> %s{%s};\n", activation,
                 next, activation, next);
        next = activation;
    }
    if (op->skip >= 0) {
        buf_addf(&b->text,
                 "    const fp::add_residual<dtype, decltype(%s)> residual{%s, %s, %s};\n", next,
                 use_tensor(b, op->skip), use_dim(b, op->columns), next);
        next = "residual";
    }
    if (op->function == FUNCTION_BIAS_ROPE_SPLIT_HEADS) {
        buf_addf(&b->text,
                 "    const fp::turn_heads<dtype, W, decltype(in), decltype(%s)> turn{\n"
                 "        in, %s, {%s, a.seq_len, a.heads, a.unpacked}, %s};\n",
                 next, bias >= 0 ? use_weight(b, bias) : "nullptr",
                 use_weight(b, op->weight[ROLE_TABLE]), next);
        next = "turn";
    }
    if (bias >= 0) {
        buf_addf(&b->text, "    const fp::add_bias<dtype, decltype(%s)> bias{%s, %s};\n", next,
                 use_weight(b, bias), next);
        next = "bias";
    }
    return next;
}

/* The template argument of an RMS norm. */
static const char *rms_argument(const struct op *norm)
{
    return norm->function == FUNCTION_RMSNORM ? ", true" : "";
}

static void add_norm(struct body *b, int op)
{
    const struct op *o = &b->chain->ops[op];
    int beta = o->weight[ROLE_BETA];
    buf_addf(&b->text, "    const fp::norm_weights<dtype%s> norm{", rms_argument(o));
    buf_addf(&b->text, "%s, ", use_weight(b, o->weight[ROLE_GAMMA]));
    buf_addf(&b->text, "%s, ", beta >= 0 ? use_weight(b, beta) : "nullptr");
    buf_addf(&b->text, "%s, %s, a.eps};\n", use_tensor(b, TENSOR_OF(op)), use_dim(b, o->columns));
}

/* ---- stages ---------------------------------------------------------------------------------- */

static void add_gemm(struct body *b, const struct cuda_stage *s)
{
    const struct op *op = &b->chain->ops[cuda_gemm_op(s)], *ending = cuda_gemm_ending(s);
    int weight = op->weight[ROLE_MATRIX], stored = TENSOR_OF(cuda_gemm_stored(s));
    add_view(b, s->first);
    add_store(b, stored);
    const char *epilogue = ending != NULL ? add_pointwise(b, ending, "store") : "store";
    if (s->norm_strip) {
        add_norm(b, s->last);
        buf_addf(
            &b->text,
            "    const fp::norm_strip<dtype, fp::token_view<dtype>%s> strip{norm, {%s, %s}};\n",
            rms_argument(&b->chain->ops[s->last]), use_tensor(b, stored),
            use_dim(b, tensor_columns(b->chain, stored)));
    }
    buf_addf(&b->text, "    fp::gemm<tile>(a, {%s, %s}, in, %s, %s, %s, shared);\n",
             use_dim(b, op->columns), use_dim(b, b->chain->weights[weight].rows),
             use_weight(b, weight), epilogue, s->norm_strip ? "strip" : "fp::nothing()");
}

static void add_rows(struct body *b, const struct cuda_stage *s)
{
    const char *before = "fp::keep()";
    add_view(b, s->first);
    if (s->first < s->last) {
        buf_adds(&b->text, "    const fp::keep keep;\n");
        before = add_pointwise(b, &b->chain->ops[s->first], "keep");
    }
    add_norm(b, s->last);
    buf_addf(&b->text, "    fp::norm_rows<dtype>(a, norm, in, %s);\n", before);
}

static void add_elementwise(struct body *b, const struct cuda_stage *s)
{
    add_view(b, s->first);
    add_store(b, TENSOR_OF(s->last));
    const char *epilogue = add_pointwise(b, &b->chain->ops[s->last], "store");
    buf_addf(&b->text, "    fp::elementwise<dtype>(a, %s, in, %s);\n",
             use_dim(b, tensor_columns(b->chain, b->chain->ops[s->first].input)), epilogue);
}

const char *cuda_stage_summary(const struct cuda_stage *s)
{
    static const char *const summaries[] = {
        [STAGE_ELEMENTWISE] = "16 bytes a thread",
        [STAGE_GEMM] = "tiles of a GEMM, each with its epilogue",
        [STAGE_ROWS] = "a warp a row",
        [STAGE_ATTENTION] = "64 query rows at a time",
    };
    return s->norm_strip ? "GEMM tiles; a strip's last normalises it" : summaries[s->kind];
}

static void add_function(const struct cuda_stage *s, const struct body *b, struct buf *out)
{
    buf_adds(out, "static FP_DEVICE void\n");
    add_stage_name(s->chain, s->first, s->last, out);
    buf_adds(out, "(const fp_args &a, void *shared)\n{\n");
    add_declarations(b, out);
    buf_add(out, b->text.ptr, b->text.len);
    buf_adds(out, "}\n\n");
}

void emit_cuda_stage(const struct cuda_stage *s, int threads, struct buf *out)
{
    struct body b = {.chain = s->chain};
    buf_init(&b.text);
    switch (s->kind) {
    case STAGE_GEMM:
        add_gemm(&b, s);
        break;
    case STAGE_ROWS:
        add_rows(&b, s);
        break;
    case STAGE_ELEMENTWISE:
        add_elementwise(&b, s);
        break;
    case STAGE_ATTENTION:
        add_attention_stage(s, threads, &b.text);
        break;
    }
    add_function(s, &b, out);
    buf_release(&b.text);
}
