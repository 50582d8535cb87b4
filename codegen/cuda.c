#include "codegen/cuda_int.h"

static const struct fp_gemm_tile cuda_tiles[] = {
#define X(...) {__VA_ARGS__},
    CUDA_TILES(X)
#undef X
};

/* ---- stages ---------------------------------------------------------------------------------- */

static const struct op *first_of(const struct stage *s)
{
    return &s->chain->ops[s->first];
}

static bool merges_heads(const struct stage *s)
{
    return s->first == s->last && first_of(s)->kind == KIND_MERGE;
}

int cuda_stages_of(const struct chain *chain, struct segment s, int norm,
                   struct cuda_stage out[OP_COUNT])
{
    struct stage plain[OP_COUNT];
    int count = 0, given = lower_segment(chain, s, LOWERING_ONE, plain);
    for (int i = 0; i < given; i++) {
        const struct stage *next = &plain[i];
        struct cuda_stage *before = count > 0 ? &out[count - 1] : NULL;
        if (before != NULL && next->kind == STAGE_GEMM && merges_heads(&plain[i - 1])) {
            before->kind = STAGE_GEMM;
            before->last = next->last;
        } else if (before != NULL && before->kind == STAGE_GEMM && next->kind == STAGE_ROWS &&
                   first_of(next)->kind == KIND_NORM && norm == CUDA_NORM_STRIP) {
            before->last = next->last;
            before->norm_strip = true;
        } else {
            out[count++] = (struct cuda_stage){chain, next->kind, next->first, next->last, false};
        }
    }
    return count;
}

int cuda_gemm_op(const struct cuda_stage *s)
{
    int op = s->first;
    while (s->chain->ops[op].kind != KIND_GEMM)
        op++;
    return op;
}

int cuda_gemm_stored(const struct cuda_stage *s)
{
    return s->norm_strip ? s->last - 1 : s->last;
}

const struct op *cuda_gemm_ending(const struct cuda_stage *s)
{
    int stored = cuda_gemm_stored(s);
    return stored > cuda_gemm_op(s) ? &s->chain->ops[stored] : NULL;
}

int cuda_gemm_weight(const struct cuda_stage *s)
{
    return s->chain->ops[cuda_gemm_op(s)].weight[ROLE_MATRIX];
}

int64_t cuda_gemm_columns(const struct cuda_stage *s, const struct workload *w)
{
    return dim_size(s->chain->weights[cuda_gemm_weight(s)].cols, w);
}

int64_t cuda_gemm_inner(const struct cuda_stage *s, const struct workload *w)
{
    return dim_size(s->chain->weights[cuda_gemm_weight(s)].rows, w);
}

void cuda_kernel_of(const struct choice *c, struct cuda_kernel *out)
{
    const struct fp_gemm_tile *tile = &cuda_tiles[choice_value(c, CUDA_KNOB_TILE)];
    *out = (struct cuda_kernel){.tile = tile, .split = choice_value(c, CUDA_KNOB_SPLIT)};
    out->count = cuda_stages_of(c->chain, c->segment, choice_value(c, CUDA_KNOB_NORM), out->stages);
    for (int i = 0; i < out->count; i++)
        out->of_kind[out->stages[i].kind]++;
    bool gemm = out->of_kind[STAGE_GEMM] > 0;
    out->threads = gemm ? 32 * tile->warps_m * tile->warps_n : (int)CUDA_ATTENTION_THREADS;
    out->resident = gemm ? 1 : choice_value(c, CUDA_KNOB_RESIDENT);
}

uint32_t cuda_tensors(const struct choice *c)
{
    struct cuda_kernel k;
    uint32_t written = 0;
    cuda_kernel_of(c, &k);
    for (int i = 0; i < k.count; i++) {
        written |= SET_OF(TENSOR_OF(k.stages[i].last));
        if (k.stages[i].kind == STAGE_GEMM)
            written |= SET_OF(TENSOR_OF(cuda_gemm_stored(&k.stages[i])));
    }
    return written;
}

/* Stages use the same memory one after another. */
int cuda_shared_bytes(const struct cuda_kernel *k, enum dtype dtype, int head_size)
{
    int element = dtypes[dtype].bytes, gemm = 0, attention = 0;
    bool tensor_cores = dtype != DTYPE_FP32;
    if (k->of_kind[STAGE_GEMM] > 0)
        gemm = fp_gemm_tile_shared(*k->tile, element, tensor_cores);
    if (k->of_kind[STAGE_ATTENTION] > 0)
        attention = k->threads / CUDA_ATTENTION_THREADS *
                    fp_attention_shared(head_size, element, tensor_cores);
    return (int)max_of(gemm, attention);
}

/* ---- which choices are applicable ------------------------------------------------------------ */

static bool norm_follows_gemm(const struct choice *c)
{
    struct cuda_stage stages[OP_COUNT];
    for (int i = cuda_stages_of(c->chain, c->segment, CUDA_NORM_STRIP, stages) - 1; i >= 0; i--)
        if (stages[i].norm_strip)
            return true;
    return false;
}

bool cuda_applicable(const struct choice *c, const struct build_target *t, const char **why)
{
    struct cuda_kernel k;
    cuda_kernel_of(c, &k);
    if (cuda_shared_bytes(&k, t->dtype, t->head_size) > arch_shared_bytes(t->arch))
        return inapplicable(why, "it needs more shared memory than a thread block can have");
    if (choice_turns(c, CUDA_KNOB_TILE) && k.of_kind[STAGE_GEMM] == 0)
        return inapplicable(why, "tile is a knob of GEMMs, and this segment has none");
    if (choice_turns(c, CUDA_KNOB_SPLIT) && k.of_kind[STAGE_GEMM] != 1)
        return inapplicable(
            why, "split is a knob of a single GEMM, and this segment has none or several");
    if (choice_turns(c, CUDA_KNOB_NORM) && !norm_follows_gemm(c))
        return inapplicable(
            why, "norm is a knob of a layernorm after a GEMM, and this segment has none");
    if (choice_turns(c, CUDA_KNOB_RESIDENT) &&
        (k.of_kind[STAGE_GEMM] > 0 || k.of_kind[STAGE_ATTENTION] == 0))
        return inapplicable(why, "resident is a knob of attention without a GEMM");
    return true;
}
