#include "codegen/codegen_int.h"

static const char *const dim_code[DIM_COUNT] = {[DIM_1] = "1",
                                                [DIM_D] = "fp_hidden(a)",
                                                [DIM_3D] = "3 * fp_hidden(a)",
                                                [DIM_A] = "fp_heads_columns(a)",
                                                [DIM_3A] = "3 * fp_heads_columns(a)",
                                                [DIM_F] = "a->ffn",
                                                [DIM_2F] = "2 * a->ffn"};

/* ---- facts about operators and stages -------------------------------------------------------- */

static bool streams(const struct stage *stage)
{
    return stage_has(stage, KIND_SCORES) && stage_has(stage, KIND_CONTEXT);
}

static const struct op *op_of(const struct stage *stage, int op)
{
    return &stage->chain->ops[op];
}

static bool split_into_heads(const struct stage *stage, int tensor)
{
    return tensor_layout(stage->chain, tensor) != LAYOUT_TOKENS;
}

/* The last operator of the step that begins with op: a step is one operator, or a GEMM and the
 * pointwise operator after it.  A product that a gate halves needs scratch memory, which a block of
 * rows has taken for itself: there the two are steps of their own. */
static int step_last(const struct stage *stage, int op)
{
    bool epilogue = op < stage->last && op_of(stage, op)->kind == KIND_GEMM &&
                    (kind_is_pointwise(op_of(stage, op + 1)->kind) ||
                     (op_of(stage, op + 1)->kind == KIND_GATE && stage->kind == STAGE_GEMM)) &&
                    (stage->stores & SET_OF(TENSOR_OF(op))) == 0;
    return epilogue ? op + 1 : op;
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
        return stage_has(stage, KIND_GEMM) ? "blocks of whole rows from one operator to the next"
                                           : "blocks of whole rows";
    case STAGE_ATTENTION:
        return streams(stage) ? "key blocks stream past blocks of query rows, no scores in memory"
                              : "blocks of query rows, only key blocks that the mask keeps";
    }
    return "";
}

/* ---- steps on token rows --------------------------------------------------------------------- */

/* Writes the fields of a kernel's argument, one a line. */
struct fields {
    const struct stage *stage;
    struct buf *out;
    const char *indent;
    bool of_block; /* token rows belong to a row block, and variables point to them */
};

static void add_field(const struct fields *f, const char *field, const char *value)
{
    buf_addf(f->out, "%s.%s = %s,\n", f->indent, field, value);
}

static void add_weight(const struct fields *f, const char *field, int id)
{
    if (id != WEIGHT_NONE)
        buf_addf(f->out, "%s.%s = a->weight[%d] /* %s */,\n", f->indent, field, id,
                 f->stage->chain->weights[id].name);
}

static void add_whole(const struct fields *f, const char *field, int tensor)
{
    buf_addf(f->out, "%s.%s = a->tensor[%d] /* %s */,\n", f->indent, field, tensor,
             tensor_name(f->stage->chain, tensor));
}

static void add_rows(const struct fields *f, const char *field, int tensor)
{
    if (f->of_block && !split_into_heads(f->stage, tensor))
        add_field(f, field, tensor_name(f->stage->chain, tensor));
    else
        add_whole(f, field, tensor);
}

/* Says that an operator lacks a weight of its function. */
static void add_lack(const struct fields *f, const char *field, const struct op *op,
                     enum weight_role role)
{
    if ((op_functions[op->function].roles >> role & 1) != 0 && op->weight[role] == WEIGHT_NONE)
        add_field(f, field, "1");
}

/* The fields of a step that one operator sets. */
static void add_operator(const struct fields *f, const struct op *op)
{
    if (op->kind == KIND_GEMM)
        add_field(f, "inner", dim_code[f->stage->chain->weights[op->weight[ROLE_MATRIX]].rows]);
    else if (kind_is_pointwise(op->kind) || op->kind == KIND_GATE)
        add_field(f, "pointwise", op_functions[op->function].cpu);
    if (op->kind == KIND_GATE)
        add_field(f, "gate", "1");
    add_weight(f, "weight", op->weight[ROLE_MATRIX]);
    add_weight(f, "gamma", op->weight[ROLE_GAMMA]);
    add_weight(f, "beta", op->weight[ROLE_BETA]);
    add_weight(f, "bias", op->weight[ROLE_BIAS]);
    add_weight(f, "table", op->weight[ROLE_TABLE]);
    if (op->skip != TENSOR_NONE)
        add_rows(f, "residual", op->skip);
    add_lack(f, "no_bias", op, ROLE_BIAS);
    add_lack(f, "no_beta", op, ROLE_BETA);
}

static void add_step(const struct fields *f, int first, int last)
{
    for (int op = first; op <= last; op++)
        add_operator(f, op_of(f->stage, op));
    add_field(f, "columns", dim_code[op_of(f->stage, last)->columns]);
    add_rows(f, "input", op_of(f->stage, first)->input);
    add_rows(f, "out", TENSOR_OF(last));
}

/* ---- bodies, one a kind of stage ------------------------------------------------------------- */

/* The one step of a stage, which the kernel cuts into tiles or rows. */
static void add_only_step(const struct stage *stage, struct buf *out)
{
    struct fields f = {.stage = stage, .out = out, .indent = "        "};
    buf_adds(out, "    const struct fp_step s = {\n");
    add_step(&f, stage->first, stage->last);
    buf_adds(out, "    };\n");
}

static void gemm_body(const struct stage *stage, struct buf *out)
{
    add_only_step(stage, out);
    buf_addf(out, "    fp_gemm_stage(a, &s, a->knob[%d], a->knob[%d]);\n", CPU_KNOB_ROW_BLOCK,
             CPU_KNOB_COL_BLOCK);
}

static void elementwise_body(const struct stage *stage, struct buf *out)
{
    add_only_step(stage, out);
    buf_adds(out, "    fp_pointwise_stage(a, &s);\n");
}

/* The token tensors that the steps of a stage read or write, as bits. */
static uint32_t rows_touched(const struct stage *stage)
{
    uint32_t touched = 0;
    for (int op = stage->first, last; op <= stage->last; op = last + 1) {
        last = step_last(stage, op);
        touched |= SET_OF(op_of(stage, op)->input) | SET_OF(TENSOR_OF(last));
        if (op_of(stage, last)->skip != TENSOR_NONE)
            touched |= SET_OF(op_of(stage, last)->skip);
    }
    for (int t = 0; t < TENSOR_COUNT; t++)
        if (split_into_heads(stage, t))
            touched &= ~SET_OF(t);
    return touched;
}

/* Declares a variable for each token tensor that the stage touches: the block's rows of the
 * caller's tensor, or scratch memory for an output that no other stage reads. */
static void add_variables(const struct stage *stage, struct buf *out)
{
    uint32_t touched = rows_touched(stage), scratch = 0;
    for (int op = stage->first; op <= stage->last; op++)
        scratch |= SET_OF(TENSOR_OF(op));
    scratch &= touched & ~stage->stores;
    if (scratch != 0) {
        const char *separator = "";
        buf_adds(out, "        float *scratch = fp_scratch((size_t)rows.count * (");
        for (int t = 0; t < TENSOR_COUNT; t++)
            if ((scratch >> t & 1) != 0) {
                buf_addf(out, "%s%s", separator, dim_code[tensor_columns(stage->chain, t)]);
                separator = " + ";
            }
        buf_adds(out, "));\n");
    }
    for (int t = 0; t < TENSOR_COUNT; t++) {
        const char *name = tensor_name(stage->chain, t),
                   *columns = dim_code[tensor_columns(stage->chain, t)];
        if ((scratch >> t & 1) != 0)
            buf_addf(out,
                     "        float *const %s = scratch;\n"
                     "        scratch += (size_t)rows.count * %s;\n",
                     name, columns);
        else if ((touched >> t & 1) != 0)
            buf_addf(out, "        float *const %s = fp_rows_of(a->tensor[%d], rows, %s);\n", name,
                     t, columns);
    }
}

static void add_row_steps(const struct stage *stage, struct buf *out)
{
    struct fields f = {.stage = stage, .out = out, .indent = "            ", .of_block = true};
    for (int op = stage->first, last; op <= stage->last; op = last + 1) {
        last = step_last(stage, op);
        enum op_kind kind = op_of(stage, op)->kind;
        bool rms = op_of(stage, op)->function == FUNCTION_RMSNORM;
        const char *kernel = kind == KIND_GEMM   ? "fp_gemm_rows"
                             : kind != KIND_NORM ? "fp_pointwise_rows"
                             : rms               ? "fp_rmsnorm_rows"
                                                 : "fp_layernorm_rows";
        buf_addf(out, "        const struct fp_step step_%d = {\n", op);
        add_step(&f, op, last);
        buf_addf(out, "        };\n        %s(a, &step_%d, rows);\n", kernel, op);
    }
}

static void rows_body(const struct stage *stage, struct buf *out)
{
    if (stage_has(stage, KIND_GEMM))
        buf_addf(out, "    const int size = fp_even_rows(a, a->knob[%d]);\n", CPU_KNOB_ROW_BLOCK);
    else
        buf_adds(out, "    const int size = FP_FEW_ROWS;\n");
    buf_adds(out, "    const int blocks = fp_row_blocks(a, size);\n"
                  "#pragma omp for schedule(static) nowait\n"
                  "    for (int i = 0; i < blocks; i++) {\n"
                  "        const struct fp_range rows = fp_row_block(a, size, i);\n");
    add_variables(stage, out);
    add_row_steps(stage, out);
    buf_adds(out, "    }\n");
    if ((chain_carried(stage->chain) & SET_OF(TENSOR_OF(stage->last))) != 0)
        buf_addf(out, "    fp_zero_padding(a, a->tensor[%d], %s);\n", TENSOR_OF(stage->last),
                 dim_code[op_of(stage, stage->last)->columns]);
}

/* The table that an operator of attention adds to scores. */
static void add_score_bias(const struct fields *f)
{
    for (int op = f->stage->first; op <= f->stage->last; op++)
        if (op_of(f->stage, op)->kind == KIND_SCORE_MOD)
            add_weight(f, "score_bias", op_of(f->stage, op)->weight[ROLE_TABLE]);
}

static void stream_body(const struct stage *stage, struct buf *out)
{
    struct fields f = {.stage = stage, .out = out, .indent = "        "};
    int first = stage->first, last = stage->last;
    buf_adds(out, "    const struct fp_stream t = {\n");
    add_whole(&f, "qkv", op_of(stage, first)->input);
    add_weight(&f, "bias", op_of(stage, first)->weight[ROLE_BIAS]);
    add_lack(&f, "no_bias", op_of(stage, first), ROLE_BIAS);
    add_weight(&f, "turn", op_of(stage, first)->weight[ROLE_TABLE]);
    add_score_bias(&f);
    add_field(&f, "merged", op_of(stage, last)->layout == LAYOUT_TOKENS ? "1" : "0");
    add_whole(&f, "out", TENSOR_OF(last));
    buf_adds(out, "    };\n    fp_stream_stage(a, &t);\n");
}

static void attention_body(const struct stage *stage, struct buf *out)
{
    struct fields f = {.stage = stage, .out = out, .indent = "        "};
    int first = stage->first, last = stage->last;
    if (streams(stage)) {
        stream_body(stage, out);
        return;
    }
    buf_adds(out, "    const struct fp_attention t = {\n");
    add_field(&f, "first", attention_name(op_of(stage, first)));
    add_field(&f, "last", attention_name(op_of(stage, last)));
    if (attention_qkv(stage->chain, first, last) != TENSOR_NONE)
        add_whole(&f, "qkv", attention_qkv(stage->chain, first, last));
    if (op_of(stage, first)->kind != KIND_SCORES)
        add_whole(&f, "input", op_of(stage, first)->input);
    add_score_bias(&f);
    add_whole(&f, "out", TENSOR_OF(last));
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
    add_stage_name(stage->chain, stage->first, stage->last, out);
    buf_adds(out, "(const struct fp_args *a)\n{\n");
    body[stage->kind](stage, out);
    buf_adds(out, "}\n");
}
