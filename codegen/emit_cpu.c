#include "codegen/codegen_int.h"

#include <string.h>

static const char *const dim_names[] = {
    [DIM_1] = "1", [DIM_D] = "D", [DIM_3D] = "3D", [DIM_F] = "F"};

/* ---- the comment at the top ----------------------------------------------------------------- */

static void add_flops(int op, struct buf *out)
{
    const struct weight *w =
        &weights[__builtin_ctz(ops[op].weights | 1u << WEIGHT_COUNT) % WEIGHT_COUNT];
    if (ops[op].anchor == ANCHOR_GEMM)
        buf_addf(out, "  [2 T %s %s]", dim_names[w->rows], dim_names[w->cols]);
    else if (ops[op].anchor == ANCHOR_SCORES || ops[op].anchor == ANCHOR_CONTEXT)
        buf_adds(out, "  [2 P D]");
}

static void add_operators(struct segment s, struct buf *out)
{
    for (int op = s.first; op <= s.last; op++) {
        buf_addf(out, " *   %2d %-18s %s", op, ops[op].name, ops[op].computes);
        add_flops(op, out);
        buf_adds(out, "\n");
    }
}

static void add_tensors(const char *verb, uint16_t tensors, struct buf *out)
{
    buf_addf(out, " * %s", verb);
    const char *separator = " ";
    for (int t = 0; t < TENSOR_COUNT; t++)
        if (tensors >> t & 1) {
            buf_addf(out, "%s%s %s", separator, t == TENSOR_X ? "x" : ops[t - 1].name,
                     tensor_shape_text(t));
            separator = ", ";
        }
    buf_adds(out, "\n");
}

static void add_weights(struct segment s, struct buf *out)
{
    uint16_t used = segment_weights(s);
    const char *separator = " * Weights ";
    for (int w = 0; w < WEIGHT_COUNT; w++)
        if (used >> w & 1) {
            buf_addf(out, "%s%s (%s,%s)", separator, weights[w].name, dim_names[weights[w].rows],
                     dim_names[weights[w].cols]);
            separator = ", ";
        }
    if (used)
        buf_adds(out, "\n");
}

/* The value whose plan fuses this segment and nothing else. */
static unsigned value_of(const struct choice *c)
{
    struct plan p = {.handwritten = c->impl->handwritten};
    for (int op = c->segment.first; op < c->segment.last; op++)
        p.fused |= (uint16_t)(1u << op);
    return plan_value(p);
}

static void add_header(const struct choice *c, struct buf *out)
{
    struct segment s = c->segment;
    buf_addf(out,
             "/* Operators %d-%d of the layer in one launch, as `fuseplan generate %u` emits "
             "them.\n *\n",
             s.first, s.last, value_of(c));
    add_operators(s, out);
    buf_adds(out, " *\n");
    add_tensors("Reads", segment_inputs(s), out);
    add_weights(s, out);
    add_tensors("Writes", choice_tensors(c), out);
    buf_adds(out, " * Four bytes an element; operations in brackets, T real tokens, P kept (query, "
                  "key) pairs.\n");
}

/* ---- the file ------------------------------------------------------------------------------- */

static void add_includes(const struct stage *stages, int count, struct buf *out)
{
    static const char *const headers[] = {"attention.h", "streaming_attention.h", "tokens.h"};
    for (size_t h = 0; h < ARRAY_LEN(headers); h++)
        for (int i = 0; i < count; i++)
            if (strcmp(cpu_stage_header(&stages[i]), headers[h]) == 0) {
                buf_addf(out, "#include \"%s\"\n", headers[h]);
                break;
            }
    buf_adds(out, "\n");
}

static void add_prototype(const struct choice *c, struct buf *out)
{
    buf_adds(out, "void ");
    choice_symbol(c, out);
    buf_adds(out, "(const struct fp_args *a)");
}

static void add_stage_list(const struct stage *stages, int count, struct buf *out)
{
    buf_adds(out, " *\n * Stages, between which all threads meet:\n");
    for (int i = 0; i < count; i++) {
        buf_addf(out, " *   %d. ", i + 1);
        add_op_names(stages[i].first, stages[i].last, "+", out);
        buf_addf(out, ": %s\n", cpu_stage_summary(&stages[i]));
    }
    buf_adds(out, " */\n");
}

void emit_cpu_generated(const struct choice *c, const struct build_target *t, struct buf *out)
{
    (void)t;
    struct stage stages[OP_COUNT];
    int count =
        lower_segment(c->segment, (enum lowering)c->schedule.pick[CPU_KNOB_LOWERING], stages);
    add_header(c, out);
    add_stage_list(stages, count, out);
    add_includes(stages, count, out);
    for (int i = 0; i < count; i++) {
        emit_cpu_stage(&stages[i], out);
        buf_adds(out, "\n");
    }
    add_prototype(c, out);
    buf_adds(out, "\n{\n#pragma omp parallel\n    {\n");
    for (int i = 0; i < count; i++) {
        buf_addf(out, "%s        ", i > 0 ? "#pragma omp barrier\n" : "");
        cpu_stage_name(&stages[i], out);
        buf_adds(out, "(a);\n");
    }
    buf_adds(out, "    }\n}\n");
}

void emit_cpu_handwritten(const struct choice *c, const struct build_target *t, struct buf *out)
{
    (void)t;
    add_header(c, out);
    buf_adds(out, " */\n#include \"handwritten_attention.h\"\n\n");
    add_prototype(c, out);
    buf_addf(out,
             "\n{\n#pragma omp parallel\n"
             "    fp_handwritten_attention(a, a->tensor[%d], a->tensor[%d]);\n}\n",
             TENSOR_OF(c->segment.first - 1), TENSOR_OF(c->segment.last));
}
