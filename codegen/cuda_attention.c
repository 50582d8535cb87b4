/* Whole attention on Hopper's wgmma: kernels/cuda/attention_wgmma.cuh. */
#include "codegen/cuda_int.h"
#include "kernels/cuda/abi.h"

#include <assert.h>

static_assert(TILE_HEAD == 32, "a lane holds one of a tile's first entries");

/* The fastest of those tried on an H200, by head size.  Which one wins depends on the lists.  At
 * 128 a block takes twice the shared memory, and q has no registers beside the next scores. */
static const struct {
    int head_size;
    struct cuda_attention_shape shapes[CUDA_ATTENTION_COUNT];
} head_sizes[] = {
    {64,
     {[CUDA_ATTENTION_64] = {1, 1, 2, 1, 1, true, false, false, 4},
      [CUDA_ATTENTION_64_OVERLAP] = {1, 1, 3, 1, 1, false, true, true, 3},
      [CUDA_ATTENTION_64_SPLIT] = {2, 1, 4, 2, 1, false, false, false, 2},
      [CUDA_ATTENTION_64_CLUSTER] = {1, 1, 3, 1, 2, false, true, true, 3},
      [CUDA_ATTENTION_128] = {2, 2, 3, 2, 1, true, false, false, 2},
      [CUDA_ATTENTION_192] = {3, 3, 4, 4, 1, true, true, true, 1}}},
    {128,
     {[CUDA_ATTENTION_64] = {1, 1, 2, 1, 1, true, false, false, 2},
      [CUDA_ATTENTION_64_OVERLAP] = {1, 1, 3, 1, 1, false, true, false, 1},
      [CUDA_ATTENTION_64_SPLIT] = {2, 1, 4, 2, 1, false, false, false, 1},
      [CUDA_ATTENTION_64_CLUSTER] = {1, 1, 3, 1, 2, false, true, false, 1},
      [CUDA_ATTENTION_128] = {2, 2, 3, 2, 1, true, true, false, 1},
      [CUDA_ATTENTION_192] = {3, 3, 3, 4, 1, true, false, false, 1}}},
};

const struct cuda_attention_shape *cuda_attention_shape_of(const struct choice *c, int head_size)
{
    if (c->impl->emit != emit_cuda_attention)
        return NULL;
    for (size_t i = 0; i < ARRAY_LEN(head_sizes); i++)
        if (head_sizes[i].head_size == head_size)
            return &head_sizes[i].shapes[choice_value(c, CUDA_ATTENTION_KNOB_SHAPE)];
    return NULL;
}

static bool is_ordered(const struct choice *c)
{
    return choice_value(c, CUDA_ATTENTION_KNOB_COVER) == CUDA_COVER_ORDERED;
}

/* sizeof(attention_shape::smem) and what aligns it; a compiled test compares them. */
static int shared_bytes(const struct cuda_attention_shape *s, bool ordered, int head_size)
{
    enum { SWIZZLE_BYTES = 1024, MARKS_LATER = 4, ALIGNMENT = 16 };
    int block = MASK_BLOCK * head_size * 2, tiles = s->draws ? 2 : 1;
    int blocks = (tiles * s->rows + 2 * s->ring) * block;
    int join =
        s->consumers > s->rows ? s->rows * (head_size / 2 + 4) * CUDA_ATTENTION_THREADS * 4 : 16;
    int words = s->ring * s->rows * MASK_BLOCK * 8;
    int tokens = ordered ? tiles * 4 * MASK_BLOCK * s->rows : 16;
    int items = tiles * (4 * head_size + 32 + 8 * s->rows) + MARKS_LATER * 4 * s->rows + 8;
    int barriers = (4 * s->ring + 2 * tiles) * 8;
    int bytes = blocks + join + words + tokens + items + barriers;
    return SWIZZLE_BYTES + (bytes + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
}

/* The segment is one stage that holds scores, softmax and context. */
static bool whole_attention(const struct choice *c)
{
    struct stage stages[OP_COUNT];
    return lower_segment(c->chain, c->segment, LOWERING_TILED, stages) == 1 &&
           stage_has(&stages[0], KIND_SCORES) && stage_has(&stages[0], KIND_CONTEXT);
}

bool cuda_attention_applicable(const struct choice *c, const struct build_target *t,
                               const char **why)
{
    const struct cuda_attention_shape *s = cuda_attention_shape_of(c, t->head_size);
    if (t->arch != CUDA_ARCH_HOPPER && t->arch != 0)
        return inapplicable(why, "wgmma is an instruction of sm_90a alone");
    if (dtypes[t->dtype].bytes != 2)
        return inapplicable(why, "this kernel computes in fp16 and bf16 alone");
    if (s == NULL)
        return inapplicable(why, "this kernel takes head sizes 64 and 128 alone");
    if (!whole_attention(c))
        return inapplicable(why,
                            "this kernel runs scores, softmax and context together, and no GEMM");
    if (is_ordered(c) && !t->ordered)
        return inapplicable(why, "no order of tokens needs fewer blocks of this mask");
    if (is_ordered(c) && !s->draws)
        return inapplicable(why,
                            "a part of the mask waits for tiles that were drawn before its own, "
                            "and this shape draws none");
    if (is_ordered(c) && s->rows > 2)
        return inapplicable(why, "where three query blocks share the keys, the tokens of a cover "
                                 "have no registers");
    if (shared_bytes(s, is_ordered(c), t->head_size) > arch_shared_bytes(t->arch))
        return inapplicable(why, "it needs more shared memory than a thread block can have");
    return true;
}

int cuda_attention_threads(const struct cuda_attention_shape *s)
{
    return s->consumers * CUDA_ATTENTION_THREADS + s->producers * 32;
}

static const char *truth(bool value)
{
    return value ? "true" : "false";
}

void cuda_attention_arguments(const struct choice *c, int head_size, struct buf *out)
{
    const struct cuda_attention_shape *s = cuda_attention_shape_of(c, head_size);
    assert(s != NULL);
    buf_addf(out, "%d, %d, %d, %d, %d, %s, %s, %s, %s", s->consumers, s->rows, s->ring,
             s->producers, s->cluster, truth(s->draws), truth(s->overlap), truth(s->q_in_registers),
             truth(is_ordered(c)));
}

void cuda_attention_launch(const struct choice *c, const struct workload *w,
                           struct cuda_launch *out)
{
    const struct cuda_attention_shape *s = cuda_attention_shape_of(c, w->head_size);
    assert(s != NULL);
    int64_t blocks = (w->seq_len + MASK_BLOCK - 1) / MASK_BLOCK,
            heads = (int64_t)w->batch * w->heads;
    *out = (struct cuda_launch){.threads = cuda_attention_threads(s),
                                .shared_bytes = shared_bytes(s, is_ordered(c), w->head_size),
                                .persistent = s->draws,
                                .tiling = {.rows = s->rows, .ordered = is_ordered(c)},
                                .sync_words = FP_SYNC_TILES};
    int64_t parts = tiling_parts(&out->tiling, w);
    out->tiles = parts * heads * ((blocks + s->rows - 1) / s->rows) * s->cluster;
    if (parts == 1)
        return;
    out->sync_words += heads;
    out->workspace_bytes = heads * w->seq_len * (int64_t)sizeof(float);
}
