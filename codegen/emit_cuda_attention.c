/* The attention stages of a CUDA source: kernels/cuda/attention.h says what they are told. */
#include "codegen/cuda_int.h"

/* Appends the declaration of a constant `ops`: operators first..last. */
static void add_operators(const struct chain *c, int first, int last, struct buf *out)
{
    buf_adds(out, "    constexpr int ops =\n        ");
    for (int op = first; op <= last; op++) {
        buf_addf(out, "%s%s", op > first ? " | " : "", attention_name(&c->ops[op]));
        if (c->ops[op].kind == KIND_SPLIT && c->ops[op].weight[ROLE_BIAS] != WEIGHT_NONE)
            buf_adds(out, " | FP_BIAS");
        if (c->ops[op].kind == KIND_SPLIT && c->ops[op].weight[ROLE_TABLE] != WEIGHT_NONE)
            buf_adds(out, " | FP_ROPE");
    }
    buf_adds(out, ";\n");
}

static void add_tensor(const struct chain *c, const char *field, int tensor, struct buf *out)
{
    buf_addf(out, "    io.%s = &a.tensor[%d]; /* %s */\n", field, tensor, tensor_name(c, tensor));
}

static void add_weight(const struct chain *c, const char *field, int weight, struct buf *out)
{
    if (weight != WEIGHT_NONE)
        buf_addf(out, "    io.%s = &a.weight[%d]; /* %s */\n", field, weight,
                 c->weights[weight].name);
}

/* Appends the declaration of `io`, the operands of these operators. */
static void add_operands(const struct chain *c, int first, int last, struct buf *out)
{
    const struct op *begin = &c->ops[first];
    int qkv = attention_qkv(c, first, last);
    bool splits = begin->kind == KIND_SPLIT;
    buf_adds(out, "    fp_attention io = {};\n");
    if (qkv != TENSOR_NONE)
        add_tensor(c, "in", splits ? begin->input : qkv, out);
    if (!splits && begin->kind != KIND_SCORES)
        add_tensor(c, "scores", begin->input, out);
    add_weight(c, "bias", begin->weight[ROLE_BIAS], out);
    for (int op = first; op <= last; op++)
        add_weight(c, c->ops[op].kind == KIND_SPLIT ? "rope" : "score_bias",
                   c->ops[op].weight[ROLE_TABLE], out);
    add_tensor(c, "out", TENSOR_OF(last), out);
}

void add_attention_stage(const struct cuda_stage *s, int threads, struct buf *out)
{
    add_operators(s->chain, s->first, s->last, out);
    add_operands(s->chain, s->first, s->last, out);
    buf_addf(out, "    fp::attention<dtype, W, ops, %d>(a, io, shared).run();\n", threads);
}

void emit_cuda_handwritten(const struct choice *c, const struct build_target *t, struct buf *out)
{
    bool split_keys = choice_value(c, CUDA_HAND_KNOB_WARPS) == CUDA_HAND_KEYS;
    bool biased = chain_functions(c->chain).score_bias;
    add_header(c, t, out);
    buf_adds(out, " */\n#include \"handwritten.cuh\"\n\n");
    add_types(t, out);
    open_kernel(c, CUDA_ATTENTION_THREADS, 1, 1, "fp_args a", out);
    add_operands(c->chain, c->segment.first, c->segment.last, out);
    buf_addf(out,
             "    fp::await_dependencies();\n"
             "    fp::hand_attention<dtype, W, %s%s>().run(a, io, shared);\n}\n",
             truth(split_keys), biased ? ", true" : "");
}

void add_hopper_attention(const struct fp_hopper_attention *k, struct buf *out)
{
    buf_addf(out, "{%d, %d, %d, %d, %d, %d, %d, %s, %s, %s, %s", k->head_size, k->consumers,
             k->rows, k->ring, k->producers, k->cluster, k->resident, truth(k->draws),
             truth(k->overlap), truth(k->q_in_registers), truth(k->ordered));
    if (k->out_e4m3 || k->joined || k->tma)
        buf_addf(out, ", %s", truth(k->out_e4m3));
    if (k->joined || k->tma)
        buf_addf(out, ", %s", truth(k->joined));
    buf_adds(out, k->tma ? ", true}" : "}");
}

void emit_hopper_attention(const struct choice *c, const struct build_target *t, struct buf *out)
{
    struct fp_hopper_attention h;
    hopper_attention_of(c, t->head_size, &h);
    add_header(c, t, out);
    buf_adds(out, " */\n#include \"hopper_attention.cuh\"\n\n");
    add_types(t, out);
    buf_adds(
        out,
        "/* head size, warpgroups that compute, query blocks, key blocks in flight, warps "
        "that load, thread\n"
        " * blocks that share a tile, and that a multiprocessor holds; tiles drawn, overlap, q "
        "in\n"
        " * registers, tiles of a cover");
    buf_addf(out,
             "%s */\n"
             "constexpr fp_hopper_attention shape = ",
             h.tma        ? ", a result in e4m3, joined rows, TMA"
             : h.out_e4m3 ? ", a result in e4m3"
                          : "");
    add_hopper_attention(&h, out);
    buf_adds(out, ";\n\n");
    open_kernel(c, fp_hopper_attention_threads(h), h.resident, h.cluster,
                h.tma ? "fp_args a, const __grid_constant__ fp_maps maps" : "fp_args a", out);
    add_operators(c->chain, c->segment.first, c->segment.last, out);
    add_operands(c->chain, c->segment.first, c->segment.last, out);
    buf_addf(out, "    fp::hopper_attention::run<dtype, ops, shape>(a, io, shared%s);\n}\n",
             h.tma ? ", &maps" : "");
}
