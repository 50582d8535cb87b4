/* The attention stages of a CUDA source: kernels/cuda/attention.h says what they are told. */
#include "codegen/cuda_int.h"

#include <assert.h>

/* Appends the declaration of a constant `ops`: the operators of the stage. */
static void add_operators(int first, int last, struct buf *out)
{
    buf_adds(out, "    constexpr int ops =\n        ");
    for (int op = first; op <= last; op++) {
        buf_addf(out, "%s%s", op > first ? " | " : "", attention_name(op));
        if (ops[op].pointwise == POINTWISE_BIAS_SPLIT_HEADS && op_weight_count(op) > 0)
            buf_adds(out, " | FP_BIAS");
    }
    buf_adds(out, ";\n");
}

static void add_tensor(const char *field, int tensor, struct buf *out)
{
    buf_addf(out, "    io.%s = &a.tensor[%d]; /* %s */\n", field, tensor, tensor_name(tensor));
}

/* Appends the declaration of `io`, the operands of a stage. */
static void add_operands(int first, int last, struct buf *out)
{
    bool splits = ops[first].pointwise == POINTWISE_BIAS_SPLIT_HEADS, reads = false;
    for (int op = first; op <= last; op++)
        reads |= ops[op].anchor == ANCHOR_SCORES || ops[op].anchor == ANCHOR_CONTEXT;
    buf_adds(out, "    fp_attention io = {};\n");
    if (reads)
        add_tensor("in", splits ? op_input(first) : qkv_tensor(), out);
    if (!splits && ops[first].anchor != ANCHOR_SCORES)
        add_tensor("scores", op_input(first), out);
    if (splits && op_weight_count(first) > 0)
        buf_addf(out, "    io.bias = &a.weight[%d]; /* %s */\n", op_weight(first, 0),
                 weights[op_weight(first, 0)].name);
    add_tensor("out", TENSOR_OF(last), out);
}

void add_attention_stage(const struct cuda_stage *s, int threads, struct buf *out)
{
    add_operators(s->first, s->last, out);
    add_operands(s->first, s->last, out);
    buf_addf(out, "    fp::attention<dtype, W, ops, %d>(a, io, shared).run();\n", threads);
}

void emit_cuda_handwritten(const struct choice *c, const struct build_target *t, struct buf *out)
{
    bool split_keys = choice_value(c, CUDA_HAND_KNOB_WARPS) == CUDA_HAND_KEYS;
    add_header(c, t, out);
    buf_adds(out, " */\n#include \"handwritten.cuh\"\n\n");
    add_types(t, out);
    open_kernel(c, CUDA_ATTENTION_THREADS, 1, 1, "fp_args a", out);
    add_operands(c->segment.first, c->segment.last, out);
    buf_addf(out,
             "    fp::await_dependencies();\n"
             "    fp::hand_attention<dtype, W, %s>().run(a, io, shared);\n}\n",
             split_keys ? "true" : "false");
}

void emit_cuda_attention(const struct choice *c, const struct build_target *t, struct buf *out)
{
    const struct cuda_attention_shape *s = cuda_attention_shape_of(c, t->head_size);
    assert(s != NULL);
    add_header(c, t, out);
    buf_adds(out, " */\n#include \"attention_wgmma.cuh\"\n\n");
    add_types(t, out);
    open_kernel(c, cuda_attention_threads(s), s->resident, s->cluster, "fp_args a", out);
    add_operators(c->segment.first, c->segment.last, out);
    add_operands(c->segment.first, c->segment.last, out);
    buf_adds(out,
             "    /* warpgroups that compute, query blocks, key blocks in flight, warps that load, "
             "thread blocks\n"
             "     * that share a tile; tiles drawn, overlap, q in registers, tiles of a cover */\n"
             "    fp::attention_wgmma<dtype, W, ops, ");
    cuda_attention_arguments(c, t->head_size, out);
    buf_adds(out, ">(a, io, shared)\n        .run();\n}\n");
}
