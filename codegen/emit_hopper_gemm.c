/* The source of a kernel of `hopper_gemm`: kernels/cuda/hopper_gemm.cuh with the operators of a
 * segment. Segments that differ in their operands alone have the same source, so that a layer's
 * kernels are fewer: those that exceed the instruction cache together are fetched anew in every
 * layer. */
#include "codegen/cuda_int.h"

#include <assert.h>
#include <string.h>

/* What follows the GEMM: the elementwise operator, -1 for none. */
static int ending_of(const struct cuda_stage *s)
{
    int stored = cuda_gemm_stored(s);
    return stored > cuda_gemm_op(s) ? stored : -1;
}

void add_gemm_name(struct segment segment, struct buf *out)
{
    static const char *const endings[POINTWISE_COUNT] = {
        [POINTWISE_BIAS_SPLIT_HEADS] = "_bias_split",
        [POINTWISE_BIAS_RESIDUAL] = "_bias_residual",
        [POINTWISE_BIAS_GELU] = "_bias_gelu",
        [POINTWISE_BIAS_GELU_TANH] = "_bias_gelu_tanh",
    };
    struct cuda_stage s;
    hopper_gemm_stage(segment, &s);
    int ending = ending_of(&s);
    assert(ending < 0 || endings[ops[ending].pointwise] != NULL);
    buf_addf(out, "%sgemm%s%s", s.first < cuda_gemm_op(&s) ? "merge_heads_" : "",
             ending >= 0 ? endings[ops[ending].pointwise] : "", s.norm_strip ? "_layernorm" : "");
}

/* The segments of a kernel, in the layer's order; returns how many there are. */
static int segments_of(const char *name, struct segment out[SEGMENT_COUNT])
{
    struct cuda_stage s;
    struct buf other;
    int count = 0;
    buf_init(&other);
    for (int i = 0; i < SEGMENT_COUNT; i++) {
        if (!hopper_gemm_stage(segment_at(i), &s))
            continue;
        buf_reset(&other);
        add_gemm_name(segment_at(i), &other);
        if (strcmp(other.ptr, name) == 0)
            out[count++] = segment_at(i);
    }
    buf_release(&other);
    return count;
}

static void add_comment(const struct choice *c, const struct build_target *t, struct buf *out)
{
    struct segment segments[SEGMENT_COUNT];
    struct buf name;
    buf_init(&name);
    add_gemm_name(c->segment, &name);
    add_shared_header(c, segments, segments_of(name.ptr, segments), t, out);
    buf_adds(out, " */\n");
    buf_release(&name);
}

static void add_tile(const struct choice *c, struct buf *out)
{
    buf_adds(out,
             "/* tokens, columns, elements of a step, teams, warpgroups of a team, steps in "
             "flight, thread\n * blocks that share a sum, how a layernorm follows, thread blocks "
             "that load the weight for each\n * other; whether the weight is the first operand, "
             "whether a residual is added */\n"
             "using tile =\n    fp::hopper_gemm_shape<dtype, ");
    hopper_gemm_arguments(c, out);
    buf_adds(out, ">;\n\n");
}

static void add_view(const struct cuda_stage *s, struct buf *out)
{
    if (tensor_layout(op_input(s->first)) == LAYOUT_HEADS)
        buf_adds(out, "    const fp::head_view<dtype, W> in{fp::elements<dtype>(a.gemm.in), "
                      "a.seq_len, a.heads,\n"
                      "                                       a.unpacked};\n");
    else
        buf_adds(out, "    const fp::token_view<dtype> in{fp::elements<dtype>(a.gemm.in), "
                      "a.gemm.inner};\n");
}

static void add_store(const struct cuda_stage *s, struct buf *out)
{
    if (tensor_layout(TENSOR_OF(s->last)) == LAYOUT_QKV_HEADS)
        buf_adds(out, "    const fp::store_qkv<dtype, W> store{fp::elements<dtype>(a.gemm.out), "
                      "a.batch, a.seq_len,\n"
                      "                                         a.heads, a.unpacked};\n");
    else
        buf_adds(out, "    const fp::store_tokens<dtype> store{fp::elements<dtype>(a.gemm.out), "
                      "a.gemm.columns};\n");
}

/* Bias, residual and activation are arguments of one struct, as the kernel applies them at
 * different times. */
static void add_ending(const struct cuda_stage *s, struct buf *out)
{
    int op = ending_of(s);
    const char *activation = op >= 0 ? op_activation(op) : NULL;
    buf_adds(out, "    using ending = fp::gemm_end<dtype, ");
    if (activation != NULL)
        buf_addf(out, "fp::apply_%s<dtype, fp::keep>", activation);
    else
        buf_adds(out, "fp::keep");
    buf_addf(out,
             ", decltype(store)>;\n    const ending end{%s,\n                     %s, {}, store",
             op >= 0 ? "fp::elements<dtype>(a.gemm.bias)" : "nullptr",
             op >= 0 && op_residual(op) >= 0 ? "fp::elements<dtype>(a.gemm.residual)" : "nullptr");
    if (s->norm_strip)
        buf_adds(out, ",\n                     fp::elements<dtype>(a.gemm.gamma),\n"
                      "                     fp::elements<dtype>(a.gemm.beta), a.eps");
    buf_adds(out, "};\n");
}

void emit_hopper_gemm(const struct choice *c, const struct build_target *t, struct buf *out)
{
    struct cuda_stage s;
    struct hopper_gemm g;
    hopper_gemm_stage(c->segment, &s);
    hopper_gemm_of(c, &g);
    add_comment(c, t, out);
    buf_adds(out, "#include \"hopper_gemm.cuh\"\n\n");
    add_types(t, out);
    add_tile(c, out);
    open_kernel(c, hopper_gemm_threads(&g), 1, g.split,
                "fp_args a, const __grid_constant__ fp_maps maps", out);
    add_view(&s, out);
    add_store(&s, out);
    add_ending(&s, out);
    buf_adds(out, "    fp::hopper_gemm<tile, decltype(in), ending>(a, maps, a.gemm.columns, "
                  "a.gemm.inner, in, end,\n                                                shared)"
                  ".run();\n}\n");
}
