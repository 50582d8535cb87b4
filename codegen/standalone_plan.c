/* plan.h and plan.c of a program: the workload, the mask and the table of segments. */
#include "codegen/codegen_int.h"

static void add_title(const struct standalone_spec *s, struct buf *out)
{
    const struct workload *w = s->workload;
    double flops = 0;
    for (int op = 0; op < OP_COUNT; op++)
        flops += op_flops(op, w, w->blocks.kept);
    buf_addf(out, "/* Plan %u: ", plan_value(s->candidate->plan));
    plan_translate(plan_value(s->candidate->plan), out);
    buf_adds(out, " (value, first bit, fused segments: start and end of each).\n * Workload ");
    workload_text(w, out);
    buf_addf(out,
             ".\n * %.4g GFLOP a pass through all layers; tensors, weights and mask take at most "
             "%.4g MB. */\n",
             1e-9 * flops * w->layers, 1e-6 * workload_bytes(w));
}

void add_plan_h(const struct standalone_spec *s, const struct program *program, struct buf *out)
{
    const struct workload *w = s->workload;
    add_title(s, out);
    buf_adds(out, "#ifndef PLAN_H\n#define PLAN_H\n\n#include \"abi.h\"\n");
    if (program->add_includes != NULL)
        program->add_includes(s, out);
    buf_adds(out, "\n#define PLAN_GENERATOR \"fuseplan " FUSEPLAN_VERSION
                  "\"\n#define PLAN_WORKLOAD  \"");
    workload_text(w, out);
    buf_addf(out,
             "\"\n\nenum {\n    PLAN_VALUE = %u,\n    SEGMENTS = %d,\n    LAYERS = %d,\n"
             "    BATCH = %d,\n    SEQ_LEN = %d,\n    HEADS = %d,\n    HEAD_SIZE = %d,\n"
             "    FFN = %d\n};\n\n",
             plan_value(s->candidate->plan), s->candidate->count, w->layers, w->batch, w->seq_len,
             w->heads, w->head_size, w->ffn);
    buf_adds(out, "extern const float plan_eps;\n"
                  "extern const uint64_t plan_seed;\n\n");
    program->declare_segments(s, out);
    buf_addf(
        out,
        "extern const struct plan_segment plan_segments[SEGMENTS];\n\n"
        "/* Tensor 0 is a layer's input, 1+i the output of operator i; 0: never in memory. */\n"
        "extern const long plan_tensor_elements[%d];\n\n"
        "/* Drawn uniformly in middle +- range. */\n"
        "struct plan_weight {\n    long elements;\n    double middle, range;\n};\n"
        "extern const struct plan_weight plan_weights[%d];\n\n"
        "/* Real tokens of each sequence; null: all of them. */\n"
        "extern const int *const plan_lengths;\n\n"
        "extern const struct fp_blocks plan_mask;\n\n#endif\n",
        TENSOR_COUNT, WEIGHT_COUNT);
}

static void add_sizes(const struct standalone_spec *s, struct buf *out)
{
    uint32_t used = 1u << TENSOR_X;
    for (int i = 0; i < s->candidate->count; i++)
        used |= choice_tensors(&s->candidate->choices[i]);
    buf_addf(out, "const long plan_tensor_elements[%d] = {", TENSOR_COUNT);
    for (int t = 0; t < TENSOR_COUNT; t++)
        buf_addf(out, "%s%lld", t > 0 ? ", " : "",
                 (used >> t & 1) != 0 ? (long long)tensor_elements(t, s->workload) : 0);
    buf_addf(out, "};\n\nconst struct plan_weight plan_weights[%d] = {\n", WEIGHT_COUNT);
    for (int i = 0; i < WEIGHT_COUNT; i++) {
        struct drawn from = weight_drawn((enum weight_id)i, s->inputs.ranges);
        buf_addf(out, "    {%lld, %g, %g}, /* %s */\n",
                 (long long)weight_elements((enum weight_id)i, s->workload), from.middle,
                 from.range, weights[i].name);
    }
    buf_adds(out, "};\n\n");
}

void add_ints(const char *name, const int *values, int64_t count, struct buf *out)
{
    buf_addf(out, "static const int %s[] = {", name);
    for (int64_t i = 0; i < count; i++)
        buf_addf(out, "%s%d", i == 0 ? "" : i % 16 == 0 ? ",\n    " : ", ", values[i]);
    buf_adds(out, count > 0 ? "};\n" : "0};\n");
}

void add_words(const char *name, const char *type, const uint64_t *values, int64_t count,
               struct buf *out)
{
    buf_addf(out, "static const %s %s[] = {", type, name);
    for (int64_t i = 0; i < count; i++) {
        const char *separator = i == 0 ? "" : i % 4 == 0 ? ",\n    " : ", ";
        buf_addf(out, "%s0x%llx", separator, (unsigned long long)values[i]);
    }
    buf_adds(out, count > 0 ? "};\n\n" : "0};\n\n");
}

static void add_mask(const struct block_lists *l, const char *word_type, struct buf *out)
{
    int64_t rows = (int64_t)l->lists * l->blocks, entries = l->start[rows];
    buf_adds(out, "/* The mask as lists of 64x64 blocks, see abi.h. */\n");
    add_ints("start", l->start, rows + 1, out);
    add_ints("full", l->full, rows, out);
    add_ints("key_block", l->key_block, entries, out);
    add_ints("bits", l->bits, entries, out);
    add_words("words", word_type, l->words, l->bit_blocks * MASK_BLOCK, out);
    buf_addf(out,
             "const struct fp_blocks plan_mask = {%d, %d, start, full, key_block, bits, words};\n",
             l->lists, l->blocks);
}

void add_plan_c(const struct standalone_spec *s, const struct program *program, struct buf *out)
{
    const struct workload *w = s->workload;
    buf_adds(out, "#include \"plan.h\"\n\n");
    for (int i = 0; i < s->candidate->count; i++)
        program->declare_function(s, i, out);
    buf_adds(out, "\nconst struct plan_segment plan_segments[SEGMENTS] = {\n");
    for (int i = 0; i < s->candidate->count; i++)
        program->define_segment(s, i, out);
    buf_adds(out, "};\n\nconst float plan_eps = (float)");
    number_add(w->eps, out);
    buf_addf(out, ";\nconst uint64_t plan_seed = %lluu;\n\n", (unsigned long long)s->inputs.seed);
    add_sizes(s, out);
    if (w->lengths != NULL)
        add_ints("lengths", w->lengths, w->batch, out);
    buf_addf(out, "const int *const plan_lengths = %s;\n\n", w->lengths != NULL ? "lengths" : "0");
    add_mask(&w->blocks, program->word_type, out);
}
