/* What an exported library has as data: its plans with masks and tables of segments. */
#include "codegen/codegen_int.h"

/* "encoder_plan_b1_s128" */
static void add_plan_name(const struct standalone_spec *s, const struct standalone_plan *p,
                          struct buf *out)
{
    buf_addf(out, "%s_plan_b%d_s%d", s->name, p->workload->batch, p->workload->seq_len);
}

/* "text", or a null pointer. */
static void add_string(const char *text, struct buf *out)
{
    if (text == NULL) {
        buf_adds(out, "0");
        return;
    }
    buf_adds(out, "\"");
    for (; *text != '\0'; text++)
        buf_addf(out, *text == '"' || *text == '\\' ? "\\%c" : "%c", *text);
    buf_adds(out, "\"");
}

/* ---- plan_bB_sS.c ---------------------------------------------------------------------------- */

static void add_title(const struct standalone_plan *p, struct buf *out)
{
    const struct workload *w = p->workload;
    double flops = segment_flops((struct segment){0, OP_COUNT - 1}, w);
    buf_addf(out, "/* Plan %u: ", plan_value(p->candidate->plan));
    plan_translate(plan_value(p->candidate->plan), out);
    buf_adds(out, " (value, first bit, fused segments: start and end of each).\n * Workload ");
    workload_text(w, out);
    buf_addf(out,
             ".\n * %.4g GFLOP a pass through all layers; tensors, weights and mask take at most "
             "%.4g MB. */\n",
             1e-9 * flops * w->layers, 1e-6 * workload_bytes(w));
}

static void add_placement(const struct standalone_plan *p, struct buf *out)
{
    struct placement places;
    placement_find(p->candidate, p->full, &places);
    buf_adds(out, "    .tensor_at = {");
    for (int t = 0; t < TENSOR_COUNT; t++)
        buf_addf(out, "%s%lld", t > 0 ? ", " : "", (long long)places.at[t]);
    buf_addf(out, "},\n    .tensor_elements = %lld,\n", (long long)places.elements);
}

/* In front of the names of a kind's arrays. */
static const char *const prefixes[KINDS_MAX] = {"", "local_"};

/* Appends the arrays of a kind's mask, and to `members` its struct plan_mask. */
static void add_mask(const struct library_target *target, const struct standalone_plan *p, int kind,
                     struct buf *members, struct buf *out)
{
    const struct block_lists *l = &workload_of_kind(p->full, kind)->blocks;
    const int64_t rows = (int64_t)l->lists * l->blocks, entries = l->start[rows];
    const char *name = prefixes[kind];
    buf_addf(out, "/* The mask%s as lists of 64x64 blocks, see abi.h. */\n",
             kind > 0 ? " of local layers" : "");
    add_ints(name, "start", l->start, rows + 1, out);
    add_ints(name, "full", l->full, rows, out);
    add_ints(name, "key_block", l->key_block, entries, out);
    add_ints(name, "bits", l->bits, entries, out);
    add_words(name, "words", l->words, l->bit_blocks * MASK_BLOCK, out);
    buf_addf(members,
             "        {.lists = {.lists = %d,\n                   .blocks = %d,\n"
             "                   .start = %sstart,\n                   .full = %sfull,\n"
             "                   .key_block = %skey_block,\n                   .bits = %sbits,\n"
             "                   .words = %swords},\n"
             "         .entries = %lld,\n         .words = %lld",
             l->lists, l->blocks, name, name, name, name, name, (long long)entries,
             (long long)l->bit_blocks);
    if (target->add_tiles != NULL && target->add_tiles(p, kind, name, out))
        buf_addf(members, ",\n         .tiles = &%squery_tiles", name);
    buf_adds(members, "},\n");
}

void add_plan_source(const struct standalone_spec *s, const struct library_target *target,
                     const struct standalone_plan *p, struct buf *out)
{
    const struct workload *w = p->workload;
    SCOPED_BUF masks = BUF_INIT;
    add_title(p, out);
    buf_adds(out, "#include \"plan.h\"\n\n");
    for (int i = 0; i < p->candidate->count; i++)
        target->declare_function(s, p, i, out);
    buf_adds(out, "\nstatic const struct plan_segment segments[] = {\n");
    for (int i = 0; i < p->candidate->count; i++)
        target->define_segment(s, p, i, out);
    buf_adds(out, "};\n\n");
    for (int kind = 0; kind < workload_kinds(w); kind++)
        add_mask(target, p, kind, &masks, out);
    buf_adds(out, "const struct plan ");
    add_plan_name(s, p, out);
    buf_addf(
        out,
        " = {\n    .about = {.batch = %d,\n              .seq_len = %d,\n"
        "              .value = %u,\n              .kernels = %d,\n              .packed = %d,\n"
        "              .mask = \"",
        w->batch, w->seq_len, plan_value(p->candidate->plan), p->candidate->count,
        p->candidate->packed);
    mask_text(&w->mask_spec, out);
    buf_adds(out, "\",\n              .workload = \"");
    workload_text(w, out);
    buf_adds(out, "\",\n              .measured_on = ");
    add_string(p->measured_on, out);
    buf_adds(out, "},\n    .segments = segments,\n");
    add_placement(p, out);
    buf_addf(out, "    .masks = {\n%s    },\n};\n", masks.ptr);
}

/* ---- plans.c --------------------------------------------------------------------------------- */

/* The last members of struct encoder_info.  Returns the longest sequence. */
static int add_functions(const struct standalone_spec *s, struct buf *out)
{
    const struct workload *w = s->plans[0].workload;
    int longest = 0;
    for (int i = 0; i < s->count; i++)
        longest = s->plans[i].workload->seq_len > longest ? s->plans[i].workload->seq_len : longest;
    buf_addf(out,
             ",\n    .plans = %d,\n    .seq_len = %d,\n    .functions = %u,\n"
             "    .rope_theta = ",
             s->count, longest, workload_functions(w));
    number_add(w->rope_theta, out);
    buf_adds(out, ",\n    .rope_factor = ");
    number_add(w->rope_factor, out);
    if (w->local != NULL) {
        buf_addf(out, ",\n    .global_every = %d,\n    .local_rope_theta = ", w->every);
        number_add(w->local->rope_theta, out);
    }
    buf_addf(out, ",\n    .precision = %u,\n};\n\n", s->plans[0].candidate->precision);
    return longest;
}

/* A row of layer_weights[].  in: the struct that it is a member of. */
static void add_weight(const struct standalone_spec *s, const char *name, const char *in,
                       int64_t elements, int number, struct buf *out)
{
    buf_addf(out, "    [%d] = {\"%s\", offsetof(struct %s_%s, %s), %lld},\n", number, name, s->name,
             in, name, (long long)elements);
}

void add_plans_source(const struct standalone_spec *s, const struct library_target *target,
                      struct buf *out)
{
    static const char *const types[DTYPE_COUNT] = {
        [DTYPE_FP32] = "FP32", [DTYPE_TF32] = "TF32", [DTYPE_FP16] = "FP16", [DTYPE_BF16] = "BF16"};
    const struct workload *w = s->plans[0].workload;
    SCOPED_BUF upper = BUF_INIT;
    buf_adds(out,
             "/* The library's plans, and what all of them share. */\n#include \"plan.h\"\n\n");
    for (int i = 0; i < s->count; i++) {
        buf_adds(out, "extern const struct plan ");
        add_plan_name(s, &s->plans[i], out);
        buf_adds(out, ";\n");
    }
    buf_addf(out, "\nconst struct plan *const %s_plans[] = {\n", s->name);
    for (int i = 0; i < s->count; i++) {
        buf_adds(out, "    &");
        add_plan_name(s, &s->plans[i], out);
        buf_adds(out, ",\n");
    }
    add_library_name(s, true, &upper);
    buf_addf(
        out,
        "};\n\nconst struct %s_info %s_library = {\n    .generator = \"fuseplan " FUSEPLAN_VERSION
        "\",\n    .target = \"%s\",\n    .archs = \"",
        s->name, s->name, target_names[s->target.kind]);
    for (int i = 0; i < s->archs.count; i++) {
        buf_adds(out, i > 0 ? "," : "");
        arch_name(s->archs.arch[i], out);
    }
    buf_addf(out,
             "\",\n    .dtype = %s_%s,\n    .element_bytes = %d,\n    .heads = %d,\n"
             "    .head_size = %d,\n    .hidden = %d,\n    .ffn = %d,\n    .layers = %d,\n"
             "    .eps = ",
             upper.ptr, types[s->target.dtype], dtypes[s->target.dtype].bytes, w->heads,
             w->head_size, workload_hidden(w), w->ffn, w->layers);
    number_add(w->eps, out);
    int longest = add_functions(s, out);
    struct workload full = *w;
    full.seq_len = longest;
    buf_addf(out, "const struct plan_weight %s_layer_weights[WEIGHTS] = {\n", s->name);
    for (int i = 0; i < WEIGHT_MAX; i++)
        if (w->chain->weights[i].name != NULL)
            add_weight(s, w->chain->weights[i].name, i < WEIGHT_ROPE ? "weights" : "model",
                       weight_elements(i, &full), i, out);
    if (w->chain->carried_count > 1) {
        add_weight(s, "first_gamma", "model", workload_hidden(w), WEIGHT_MAX, out);
        if (!chain_functions(w->chain).rms)
            add_weight(s, "first_beta", "model", workload_hidden(w), WEIGHT_MAX + 1, out);
    }
    buf_adds(out, "};\n");
    if (target->add_scales != NULL)
        target->add_scales(s, out);
}

/* ---- drawn.h --------------------------------------------------------------------------------- */

void add_drawn(const struct standalone_spec *s, struct buf *out)
{
    const struct workload *w = s->plans[0].workload;
    buf_addf(out,
             "/* From what program.c draws, and its sequences. */\n#ifndef DRAWN_H\n"
             "#define DRAWN_H\n\n#include <stddef.h>\n#include <stdint.h>\n\n"
             "static const uint64_t drawn_seed = %lluu;\n\n"
             "static const struct {\n    double middle, range;\n    size_t elements;\n} "
             "drawn_weights[14] = {\n",
             (unsigned long long)s->inputs->seed);
    for (int i = 0; i < WEIGHT_MAX; i++) {
        const struct weight *weight = &w->chain->weights[i];
        if (weight->name == NULL)
            continue;
        struct drawn from = weight_drawn(weight, s->inputs->ranges);
        buf_addf(out, "    [%d] = {%g, %g, %lld}, /* %s */\n", i, from.middle, from.range,
                 (long long)weight_elements(i, w), weight->name);
    }
    buf_adds(out, "};\n\n/* Real tokens of each sequence; null: all of them. */\n");
    if (w->lengths != NULL)
        add_ints("", "lengths", w->lengths, w->batch, out);
    buf_addf(out, "static const int *const drawn_lengths = %s;\n\n#endif\n",
             w->lengths != NULL ? "lengths" : "0");
}
