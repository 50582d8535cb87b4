#include "codegen/codegen_int.h"

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

/* The function's first lines.  Its declaration is for compilers that warn where there is none. */
static void add_prototype(const struct choice *c, struct buf *out)
{
    buf_adds(out, "fp_segment ");
    choice_symbol(c, out);
    buf_adds(out, ";\nvoid ");
    choice_symbol(c, out);
    buf_adds(out, "(const struct fp_args *a)");
}

static void add_stage_list(const struct stage *stages, int count, struct buf *out)
{
    buf_adds(out, " *\n * Stages, between which all threads meet:\n");
    for (int i = 0; i < count; i++)
        add_stage_line(stages[i].chain, i, stages[i].first, stages[i].last,
                       cpu_stage_summary(&stages[i]), out);
    buf_adds(out, " */\n");
}

void emit_cpu_generated(const struct choice *c, const struct build_target *t, struct buf *out)
{
    struct stage stages[OP_COUNT];
    int count = cpu_stages(c, stages);
    add_header(c, t, out);
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
        add_stage_name(c->chain, stages[i].first, stages[i].last, out);
        buf_adds(out, "(a);\n");
    }
    buf_adds(out, "    }\n}\n");
}

void emit_cpu_handwritten(const struct choice *c, const struct build_target *t, struct buf *out)
{
    add_header(c, t, out);
    buf_adds(out, " */\n#include \"handwritten_attention.h\"\n\n");
    add_prototype(c, out);
    int table = c->chain->ops[c->segment.first + 1].weight[ROLE_TABLE];
    buf_addf(out, "\n{\n#pragma omp parallel\n    fp_handwritten_%s(a, a->tensor[%d], ",
             table == WEIGHT_NONE ? "attention" : "biased", c->chain->ops[c->segment.first].qkv);
    if (table != WEIGHT_NONE)
        buf_addf(out, "a->weight[%d], ", table);
    buf_addf(out, "a->tensor[%d]);\n}\n", TENSOR_OF(c->segment.last));
}
