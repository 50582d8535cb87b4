/* The source of a kernel of `hopper_gemm`: kernels/cuda/hopper_gemm.cuh with the operators of a
 * segment. Segments that differ in their operands alone have the same source, so that a layer's
 * kernels are fewer: kernels that exceed the instruction cache together are fetched anew in every
 * layer. */
#include "codegen/cuda_int.h"

void add_gemm_name(const struct choice *c, struct buf *out)
{
    struct cuda_stage s;
    hopper_gemm_stage(c->chain, c->segment, &s);
    const struct op *ending = cuda_gemm_ending(&s);
    buf_addf(out, "%sgemm", s.first < cuda_gemm_op(&s) ? "merge_heads_" : "");
    if (ending != NULL)
        buf_addf(out, "_bias_%s%s", op_functions[ending->function].name,
                 ending->kind == KIND_GATE ? "_gate" : "");
    if (s.norm_strip)
        buf_addf(out, "_%s", op_functions[c->chain->ops[s.last].function].name);
}

/* The precision by which another segment has what this choice has in e4m3, if it can. */
static unsigned precision_like(const struct choice *c, struct segment s)
{
    struct e4m3_use use, most;
    struct choice other = *c;
    choice_e4m3(c, &use);
    other.segment = s;
    other.schedule.precision = (uint8_t)segment_gemms(c->chain, s);
    choice_e4m3(&other, &most);
    return (use.in >= 0 && most.in >= 0 ? 1u << most.in : 0) |
           (use.out >= 0 && most.out >= 0 ? 1u << most.out : 0);
}

/* The segments of a choice's kernel, in the layer's order; returns how many there are. */
static int segments_of(const struct choice *c, struct segment out[SEGMENT_COUNT])
{
    struct cuda_stage s;
    SCOPED_BUF name = BUF_INIT, other = BUF_INIT;
    int count = 0;
    add_gemm_name(c, &name);
    add_e4m3_name(c, &name);
    for (int i = 0; i < SEGMENT_COUNT; i++) {
        struct choice of = *c;
        of.segment = segment_at(i);
        of.schedule.precision = (uint8_t)precision_like(c, of.segment);
        if (!hopper_gemm_stage(c->chain, of.segment, &s))
            continue;
        buf_reset(&other);
        add_gemm_name(&of, &other);
        add_e4m3_name(&of, &other);
        if (strcmp(other.ptr, name.ptr) == 0)
            out[count++] = of.segment;
    }
    return count;
}

/* C++17 has no designated initialisers: comments name the members. */
void add_hopper_gemm(const struct fp_hopper_gemm *g, struct buf *out)
{
    static const char *const norms[] = {
        [FP_NORM_NONE] = "NONE", [FP_NORM_CLUSTER] = "CLUSTER", [FP_NORM_MEMORY] = "MEMORY"};
    buf_addf(out,
             "{\n"
             "    /* rows */ %d, /* columns */ %d, /* step */ %d, /* teams */ %d, /* groups */ %d, "
             "/* depth */ %d,\n"
             "    /* split */ %d, /* cluster */ %d, FP_NORM_%s, /* swap */ %s, /* adds */ %s",
             g->rows, g->columns, g->step, g->teams, g->groups, g->depth, g->split, g->cluster,
             norms[g->norm], truth(g->swap), truth(g->adds));
    const bool has_e4m3 = g->e4m3 || g->out_e4m3;
    if (g->keeps || g->rms || g->gate || has_e4m3)
        buf_addf(out, ",\n    /* keeps */ %s, /* rms */ %s, /* gate */ %s", truth(g->keeps),
                 truth(g->rms), truth(g->gate));
    if (has_e4m3)
        buf_addf(out, ",\n    /* e4m3 */ %s, /* out_e4m3 */ %s, /* out_both */ %s", truth(g->e4m3),
                 truth(g->out_e4m3), truth(g->out_both));
    if (g->kept > 0)
        buf_addf(out, ", /* kept */ %d", g->kept);
    buf_adds(out, "}");
}

static void add_view(const struct cuda_stage *s, struct buf *out)
{
    if (tensor_layout(s->chain, s->chain->ops[s->first].input) == LAYOUT_HEADS)
        buf_adds(out, "    const fp::head_view<dtype, W> in{fp::elements<dtype>(a.gemm.in), "
                      "a.seq_len, a.heads,\n"
                      "                                       a.unpacked};\n");
    else
        buf_adds(out, "    const fp::token_view<dtype> in{fp::elements<dtype>(a.gemm.in), "
                      "a.gemm.inner};\n");
}

static void add_store(const struct cuda_stage *s, struct buf *out)
{
    const struct op *last = &s->chain->ops[s->last];
    int table = last->weight[ROLE_TABLE];
    if (last->kind != KIND_SPLIT)
        buf_adds(out, "    const fp::store_tokens<dtype> store{fp::elements<dtype>(a.gemm.out), "
                      "a.gemm.columns};\n");
    else if (table < 0)
        buf_adds(out, "    const fp::store_qkv<dtype, W> store{fp::elements<dtype>(a.gemm.out), "
                      "a.batch, a.seq_len,\n"
                      "                                         a.heads, a.unpacked};\n");
    else
        buf_addf(out,
                 "    const fp::store_turned_qkv<dtype, W> store{\n"
                 "        {fp::elements<dtype>(a.gemm.out), a.batch, a.seq_len, a.heads, "
                 "a.unpacked},\n"
                 "        fp::table(a, %d)};\n",
                 table);
}

/* Bias, residual and activation are arguments of one struct, as the kernel applies them at
 * different times. */
static void add_ending(const struct cuda_stage *s, bool sum_rows, struct buf *out)
{
    const struct op *op = cuda_gemm_ending(s);
    const char *activation = op != NULL ? op_activation(op) : NULL;
    buf_adds(out, "    using ending = fp::hopper_gemm::ending<dtype, ");
    if (activation != NULL)
        buf_addf(out, "fp::apply_%s<dtype, fp::keep>", activation);
    else
        buf_adds(out, "fp::keep");
    buf_addf(out,
             ", decltype(store)>;\n    const ending end{%s,\n                     %s, {}, store",
             op != NULL ? "fp::elements<dtype>(a.gemm.bias)" : "nullptr",
             op != NULL && op->skip >= 0 ? "fp::elements<dtype>(a.gemm.residual)" : "nullptr");
    if (s->norm_strip)
        buf_adds(out, ",\n                     fp::elements<dtype>(a.gemm.gamma),\n"
                      "                     fp::elements<dtype>(a.gemm.beta), a.eps");
    if (sum_rows)
        buf_adds(out, ", fp::elements<dtype>(maps.sum_rows)");
    buf_adds(out, "};\n");
}

void emit_hopper_gemm(const struct choice *c, const struct build_target *t, struct buf *out)
{
    struct cuda_stage s;
    struct fp_hopper_gemm g;
    struct segment segments[SEGMENT_COUNT];
    hopper_gemm_of(c, &s, &g);
    add_shared_header(c, segments, segments_of(c, segments), t, out);
    buf_adds(out, " */\n#include \"hopper_gemm.cuh\"\n\n");
    add_types(t, out);
    buf_adds(out, "constexpr fp_hopper_gemm config = ");
    add_hopper_gemm(&g, out);
    buf_adds(out, ";\n\n");
    open_kernel(c, fp_hopper_gemm_threads(g), 1, g.split,
                "fp_args a, const __grid_constant__ fp_maps maps", out);
    add_view(&s, out);
    add_store(&s, out);
    add_ending(&s, g.keeps && g.split > 1, out);
    buf_adds(out, "    fp::hopper_gemm::run<dtype, config>(a, maps, in, end, shared);\n}\n");
}
