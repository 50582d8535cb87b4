#include "codegen/codegen_int.h"

#include <stdio.h>

/* What kernels/cpu calls an operator: where it is pointwise, and where it is of attention. */
static const struct {
    const char *pointwise, *attention;
} kernel_names[OP_COUNT] = {
    [1] = {.pointwise = "FP_BIAS_SPLIT_HEADS"},
    [2] = {.attention = "FP_SCORES"},
    [3] = {.attention = "FP_MASK"},
    [4] = {.attention = "FP_SOFTMAX"},
    [5] = {.attention = "FP_CONTEXT"},
    [6] = {.pointwise = "FP_MERGE_HEADS", .attention = "FP_MERGE"},
    [8] = {.pointwise = "FP_BIAS_RESIDUAL"},
    [11] = {.pointwise = "FP_BIAS_GELU"},
    [13] = {.pointwise = "FP_BIAS_RESIDUAL"},
};

static const char *const dim_code[] = {
    [DIM_1] = "1", [DIM_D] = "fp_hidden(a)", [DIM_3D] = "3 * fp_hidden(a)", [DIM_F] = "a->ffn"};

/* ---- facts about operators and stages
 * ----------------------------------------------------------*/

static bool streams(const struct stage *stage)
{
    return stage_has(stage, ANCHOR_SCORES) && stage_has(stage, ANCHOR_CONTEXT);
}

/* The tensor that an operator works on: the one before it. What else it reads is a residual. */
static int main_input(int op)
{
    return TENSOR_OF(op - 1);
}

static int residual_of(int op)
{
    unsigned others = ops[op].reads & ~(1u << main_input(op));
    return others ? __builtin_ctz(others) : -1;
}

/* The tensor that holds q, k and v of each head. */
static int qkv_tensor(void)
{
    int op = 0;
    while (ops[op].layout != LAYOUT_QKV_HEADS)
        op++;
    return TENSOR_OF(op);
}

/* Columns of a tensor of token rows; of q, k and v together where it is split into heads. */
static enum dim columns_of(int tensor)
{
    if (tensor == TENSOR_X)
        return DIM_D;
    return ops[tensor - 1].layout == LAYOUT_QKV_HEADS ? DIM_3D : ops[tensor - 1].columns;
}

/* Weight n of an operator, in the chain's order. */
static enum weight_id weight_of(int op, int n)
{
    unsigned left = ops[op].weights;
    for (; n > 0; n--)
        left &= left - 1;
    return (enum weight_id)__builtin_ctz(left);
}

static const char *tensor_name(int tensor)
{
    return tensor == TENSOR_X ? "x" : ops[tensor - 1].name;
}

/* A step of a stage on token rows: one operator, or a GEMM with the pointwise one after it. */
static int step_last(const struct stage *stage, int op)
{
    bool epilogue =
        ops[op].anchor == ANCHOR_GEMM && op < stage->last && ops[op + 1].anchor == ANCHOR_NONE;
    return epilogue ? op + 1 : op;
}

void add_op_names(int first, int last, const char *separator, struct buf *out)
{
    for (int op = first; op <= last; op++)
        buf_addf(out, "%s%s", op > first ? separator : "", ops[op].name);
}

void cpu_stage_name(const struct stage *stage, struct buf *out)
{
    buf_addf(out, "stage_%02d_%02d_", stage->first, stage->last);
    add_op_names(stage->first, stage->last, "_", out);
}

const char *cpu_stage_header(const struct stage *stage)
{
    if (stage->kind != STAGE_ATTENTION)
        return "tokens.h";
    return streams(stage) ? "streaming_attention.h" : "attention.h";
}

const char *cpu_stage_summary(const struct stage *stage)
{
    switch (stage->kind) {
    case STAGE_ELEMENTWISE:
        return "row by row";
    case STAGE_GEMM:
        return "tiles of a GEMM, each with its epilogue while it is in the cache";
    case STAGE_ROWS:
        return stage_has(stage, ANCHOR_GEMM) ? "blocks of whole rows from one operator to the next"
                                             : "blocks of whole rows";
    case STAGE_ATTENTION:
        return streams(stage) ? "key blocks stream past blocks of query rows, no scores in memory"
                              : "blocks of query rows, only key blocks that the mask keeps";
    }
    return "";
}

/* ---- steps on token rows
 * -----------------------------------------------------------------------*/

static void add_weight(const char *field, enum weight_id id, struct buf *out)
{
    buf_addf(out, ".%s = a->weight[%d] /* %s */,\n", field, id, weights[id].name);
}

/* The tensor as a step sees it: all of it, or a block of its rows, which a variable names. */
static void add_tensor(const char *field, int tensor, bool variables, struct buf *out)
{
    if (variables)
        buf_addf(out, ".%s = %s,\n", field, tensor_name(tensor));
    else
        buf_addf(out, ".%s = a->tensor[%d] /* %s */,\n", field, tensor, tensor_name(tensor));
}

/* Fields that the operator brings into a step, one a line behind `indent`. */
static void add_fields(int op, bool variables, const char *indent, struct buf *out)
{
    switch (ops[op].anchor) {
    case ANCHOR_GEMM:
        buf_addf(out, "%s.inner = %s,\n", indent, dim_code[weights[weight_of(op, 0)].rows]);
        buf_adds(out, indent);
        add_weight("weight", weight_of(op, 0), out);
        return;
    case ANCHOR_LAYERNORM:
        buf_adds(out, indent);
        add_weight("gamma", weight_of(op, 0), out);
        buf_adds(out, indent);
        add_weight("beta", weight_of(op, 1), out);
        return;
    default:
        buf_addf(out, "%s.pointwise = %s,\n", indent, kernel_names[op].pointwise);
    }
    if (ops[op].weights) {
        buf_adds(out, indent);
        add_weight("bias", weight_of(op, 0), out);
    }
    if (residual_of(op) >= 0) {
        buf_adds(out, indent);
        add_tensor("residual", residual_of(op), variables, out);
    }
}

/* `const struct fp_step s = {...};` for operators first..last. */
static void add_step(const char *name, int first, int last, bool variables, const char *indent,
                     struct buf *out)
{
    char inner[32];
    snprintf(inner, sizeof(inner), "%s    ", indent);
    bool heads_in = first > 0 && ops[first - 1].layout == LAYOUT_HEADS;
    buf_addf(out, "%sconst struct fp_step %s = {\n", indent, name);
    for (int op = first; op <= last; op++)
        add_fields(op, variables, inner, out);
    buf_addf(out, "%s.columns = %s,\n%s", inner, dim_code[columns_of(TENSOR_OF(last))], inner);
    add_tensor("input", main_input(first), variables && !heads_in, out);
    buf_adds(out, inner);
    add_tensor("out", TENSOR_OF(last), variables, out);
    buf_addf(out, "%s};\n", indent);
}

/* ---- bodies, one a kind of stage
 * ---------------------------------------------------------------*/

static void gemm_body(const struct stage *stage, struct buf *out)
{
    add_step("s", stage->first, stage->last, false, "    ", out);
    buf_addf(out, "    fp_gemm_stage(a, &s, a->knob[%d], a->knob[%d]);\n", CPU_KNOB_ROW_BLOCK,
             CPU_KNOB_COL_BLOCK);
}

static void elementwise_body(const struct stage *stage, struct buf *out)
{
    add_step("s", stage->first, stage->last, false, "    ", out);
    buf_adds(out, "    fp_pointwise_stage(a, &s);\n");
}

/* Variables for the tensors of a row block: blocks of the caller's tensors, or scratch where nobody
 * else needs them. */
static void rows_variables(const struct stage *stage, struct buf *out)
{
    struct buf local;
    buf_init(&local);
    uint16_t made = 0, used = 0;
    for (int op = stage->first; op <= stage->last; op = step_last(stage, op) + 1) {
        int last = step_last(stage, op);
        if (!(op > 0 && ops[op - 1].layout == LAYOUT_HEADS))
            used |= (uint16_t)(1u << main_input(op));
        if (ops[last].anchor == ANCHOR_NONE && residual_of(last) >= 0)
            used |= (uint16_t)(1u << residual_of(last));
        made |= (uint16_t)(1u << TENSOR_OF(last));
    }
    uint16_t scratch = made & (uint16_t)~stage->stores;
    for (int t = 0; t < TENSOR_COUNT; t++)
        if (scratch >> t & 1)
            buf_addf(&local, "%s%s", local.len > 0 ? " + " : "", dim_code[columns_of(t)]);
    if (scratch)
        buf_addf(out, "        float *scratch = fp_scratch((size_t)rows.count * (%s));\n",
                 local.ptr);
    for (int t = 0; t < TENSOR_COUNT; t++) {
        const char *name = tensor_name(t), *columns = dim_code[columns_of(t)];
        if (scratch >> t & 1)
            buf_addf(out,
                     "        float *const %s = scratch;\n"
                     "        scratch += (size_t)rows.count * (%s);\n",
                     name, columns);
        else if ((made | used) >> t & 1)
            buf_addf(out, "        float *const %s = fp_rows_of(a->tensor[%d], rows, %s);\n", name,
                     t, columns);
    }
    buf_release(&local);
}

static void rows_body(const struct stage *stage, struct buf *out)
{
    if (stage_has(stage, ANCHOR_GEMM))
        buf_addf(out, "    const int size = fp_even_rows(a, a->knob[%d]);\n", CPU_KNOB_ROW_BLOCK);
    else
        buf_adds(out, "    const int size = FP_FEW_ROWS;\n");
    buf_adds(out, "    const int blocks = fp_row_blocks(a, size);\n"
                  "#pragma omp for schedule(static) nowait\n"
                  "    for (int i = 0; i < blocks; i++) {\n"
                  "        const struct fp_range rows = fp_row_block(a, size, i);\n");
    rows_variables(stage, out);
    for (int op = stage->first; op <= stage->last; op = step_last(stage, op) + 1) {
        char name[8];
        snprintf(name, sizeof(name), "s%d", op);
        add_step(name, op, step_last(stage, op), true, "        ", out);
        switch (ops[op].anchor) {
        case ANCHOR_GEMM:
            buf_addf(out, "        fp_gemm_rows(a, &%s, rows);\n", name);
            break;
        case ANCHOR_LAYERNORM:
            buf_addf(out, "        fp_layernorm_rows(a, &%s, rows);\n", name);
            break;
        default:
            buf_addf(out, "        fp_pointwise_rows(a, &%s, rows);\n", name);
        }
    }
    buf_adds(out, "    }\n");
    if (stage->last == OP_COUNT - 1)
        buf_addf(out, "    fp_zero_padding(a, a->tensor[%d], %s);\n", TENSOR_OF(stage->last),
                 dim_code[columns_of(TENSOR_OF(stage->last))]);
}

static void attention_body(const struct stage *stage, struct buf *out)
{
    int first = stage->first, last = stage->last;
    if (streams(stage)) {
        bool loads = ops[first].anchor == ANCHOR_NONE;
        buf_adds(out, "    const struct fp_stream t = {\n        ");
        add_tensor("qkv", main_input(first), false, out);
        if (loads) {
            buf_adds(out, "        ");
            add_weight("bias", weight_of(first, 0), out);
        }
        buf_addf(out, "        .merged = %d,\n        ", ops[last].layout == LAYOUT_TOKENS);
        add_tensor("out", TENSOR_OF(last), false, out);
        buf_adds(out, "    };\n    fp_stream_stage(a, &t);\n");
        return;
    }
    buf_addf(out,
             "    const struct fp_attention t = {\n        .first = %s,\n        .last = %s,\n",
             kernel_names[first].attention, kernel_names[last].attention);
    if (stage_has(stage, ANCHOR_SCORES) || stage_has(stage, ANCHOR_CONTEXT)) {
        buf_adds(out, "        ");
        add_tensor("qkv", qkv_tensor(), false, out);
    }
    if (ops[first].anchor != ANCHOR_SCORES) {
        buf_adds(out, "        ");
        add_tensor("input", main_input(first), false, out);
    }
    buf_adds(out, "        ");
    add_tensor("out", TENSOR_OF(last), false, out);
    buf_adds(out, "    };\n    fp_attention_stage(a, &t);\n");
}

void emit_cpu_stage(const struct stage *stage, struct buf *out)
{
    static void (*const body[])(const struct stage *, struct buf *) = {
        [STAGE_ELEMENTWISE] = elementwise_body,
        [STAGE_GEMM] = gemm_body,
        [STAGE_ROWS] = rows_body,
        [STAGE_ATTENTION] = attention_body,
    };
    buf_adds(out, "static void ");
    cpu_stage_name(stage, out);
    buf_adds(out, "(const struct fp_args *a)\n{\n");
    body[stage->kind](stage, out);
    buf_adds(out, "}\n");
}
