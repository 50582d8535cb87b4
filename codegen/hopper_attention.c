/* Whole attention on Hopper's wgmma: kernels/cuda/hopper_attention.cuh. */
#include "codegen/cuda_int.h"

#include <assert.h>

static_assert(TILE_HEAD == 32, "a lane holds one of a tile's first entries");

/* The fastest that was tried on an H200 with heads of 64 and of 128 columns; smaller heads run the
 * same.  hopper_attention_of() sets the head size.  Which one wins depends on the lists.  Above 64
 * a block takes twice the shared memory, and q has no registers beside the next scores. */
static const struct fp_hopper_attention shapes[][HOPPER_ATTENTION_COUNT] = {
    {[HOPPER_ATTENTION_64] = {0, 1, 1, 2, 1, 1, 4, true, false, false},
     [HOPPER_ATTENTION_64_OVERLAP] = {0, 1, 1, 3, 1, 1, 3, false, true, true},
     [HOPPER_ATTENTION_64_SPLIT] = {0, 2, 1, 4, 2, 1, 2, false, false, false},
     [HOPPER_ATTENTION_64_CLUSTER] = {0, 1, 1, 3, 1, 2, 3, false, true, true},
     [HOPPER_ATTENTION_128] = {0, 2, 2, 3, 2, 1, 2, true, false, false},
     [HOPPER_ATTENTION_192] = {0, 3, 3, 4, 4, 1, 1, true, true, true},
     [HOPPER_ATTENTION_192_TMA] = {0, 3, 3, 4, 4, 1, 1, true, true, true, .tma = true}},
    {[HOPPER_ATTENTION_64] = {0, 1, 1, 2, 1, 1, 2, true, false, false},
     [HOPPER_ATTENTION_64_OVERLAP] = {0, 1, 1, 3, 1, 1, 1, false, true, false},
     [HOPPER_ATTENTION_64_SPLIT] = {0, 2, 1, 4, 2, 1, 1, false, false, false},
     [HOPPER_ATTENTION_64_CLUSTER] = {0, 1, 1, 3, 1, 2, 1, false, true, false},
     [HOPPER_ATTENTION_128] = {0, 2, 2, 3, 2, 1, 1, true, true, false},
     [HOPPER_ATTENTION_192] = {0, 3, 3, 3, 4, 1, 1, true, false, false},
     [HOPPER_ATTENTION_192_TMA] = {0, 3, 3, 3, 4, 1, 1, true, false, false, .tma = true}},
};

/* wgmma multiplies with so many columns of v; wgmma.cuh has these. */
static const int head_sizes[] = {32, 48, 64, 72, 80, 96, 104, 128};

bool hopper_attention_of(const struct choice *c, int head_size, struct fp_hopper_attention *out)
{
    *out = shapes[head_size > 64][choice_value(c, HOPPER_ATTENTION_KNOB_SHAPE)];
    out->head_size = head_size;
    out->ordered = choice_value(c, HOPPER_ATTENTION_KNOB_COVER) == HOPPER_COVER_ORDERED;
    out->joined = choice_value(c, HOPPER_ATTENTION_KNOB_COVER) == HOPPER_COVER_JOINED;
    out->out_e4m3 = c->schedule.precision != 0;
    for (size_t i = 0; i < ARRAY_LEN(head_sizes); i++)
        if (head_sizes[i] == head_size)
            return true;
    return false;
}

/* The segment is one stage that holds scores, softmax and context. */
static bool whole_attention(const struct choice *c)
{
    struct stage stages[OP_COUNT];
    return lower_segment(c->chain, c->segment, LOWERING_TILED, stages) == 1 &&
           stage_has(&stages[0], KIND_SCORES) && stage_has(&stages[0], KIND_CONTEXT);
}

/* What keeps joined tiles from being taken; null: nothing. */
static const char *why_not_joined(const struct choice *c, const struct build_target *t,
                                  const struct fp_hopper_attention *k)
{
    const struct op *first = &c->chain->ops[c->segment.first];
    if (k->rows > 1 || !k->draws)
        return "joined rows come in tiles of 64 that thread blocks draw: shape=64";
    if (tensor_layout(c->chain, first->input) != LAYOUT_TOKENS ||
        tensor_layout(c->chain, TENSOR_OF(c->segment.last)) != LAYOUT_TOKENS)
        return "rows of several sequences are neighbours in tensors of tokens alone: in 1-6";
    if (chain_functions(c->chain).score_bias)
        return "joined tokens have no distance by their places";
    if (!t->joined)
        return "joined rows want an attention mask that keeps some neighbours on each side, so few "
               "that a tile has at most 32 blocks of keys";
    return NULL;
}

bool hopper_attention_applicable(const struct choice *c, const struct build_target *t,
                                 const char **why)
{
    struct fp_hopper_attention h;
    bool known = hopper_attention_of(c, t->head_size, &h);
    const struct chain_functions f = chain_functions(c->chain);
    if (t->arch != CUDA_ARCH_HOPPER && t->arch != 0)
        return inapplicable(why, "wgmma is an instruction of sm_90a alone");
    if (dtypes[t->dtype].bytes != 2)
        return inapplicable(why, "this kernel computes in fp16 and bf16 alone");
    if (!known)
        return inapplicable(
            why, "this kernel takes head sizes 32, 48, 64, 72, 80, 96, 104 and 128 alone");
    if (!whole_attention(c))
        return inapplicable(why,
                            "this kernel runs scores, softmax and context together, and no GEMM");
    if (f.rope && c->segment.first < ATTENTION_FIRST)
        return inapplicable(why, "this kernel does not turn q and k: segments 0-1 and 1 do");
    if (h.ordered && f.score_bias)
        return inapplicable(why, "ordered tokens have no distance by their places");
    if (h.ordered && !t->ordered)
        return inapplicable(why, "no order of tokens needs fewer blocks of this attention mask");
    if (h.ordered && !h.draws)
        return inapplicable(
            why, "a part of the attention mask waits for tiles that were drawn before its own, "
                 "and this shape draws none");
    if (h.ordered && h.rows > 2)
        return inapplicable(why, "where three query blocks share the keys, the tokens of a cover "
                                 "have no registers");
    if (h.tma && (t->head_size != 64 || h.ordered || h.joined))
        return inapplicable(why, "TMA copies 64 neighbouring rows of keys, of 64 columns");
    if (h.joined && why_not_joined(c, t, &h) != NULL)
        return inapplicable(why, why_not_joined(c, t, &h));
    if (h.out_e4m3 && t->head_size % 16 != 0)
        return inapplicable(why, "e4m3 is stored in groups of 16 columns");
    if (fp_hopper_attention_shared(h, f.score_bias) > arch_shared_bytes(t->arch))
        return inapplicable(why, "it needs more shared memory than a thread block can have");
    return true;
}

/* q, k and v: of a token side by side, or head by head. */
static struct cuda_map keys_map(const struct choice *c, const struct workload *w)
{
    const struct op *first = &c->chain->ops[c->segment.first];
    const int64_t tokens = (int64_t)w->batch * w->seq_len;
    struct cuda_map map = {.box = {w->head_size, MASK_BLOCK}};
    if (first->kind == KIND_SPLIT) {
        map.index = first->input;
        map.size[0] = 3 * (int64_t)w->heads * w->head_size;
        map.size[1] = tokens;
    } else {
        map.index = attention_qkv(c->chain, c->segment.first, c->segment.last);
        map.size[0] = w->head_size;
        map.size[1] = 3 * w->heads * tokens;
    }
    return map;
}

void hopper_attention_launch(const struct choice *c, const struct workload *w,
                             struct cuda_launch *out)
{
    struct fp_hopper_attention k;
    hopper_attention_of(c, w->head_size, &k);
    int64_t blocks = ceil_div(w->seq_len, MASK_BLOCK), heads = (int64_t)w->batch * w->heads;
    *out = (struct cuda_launch){
        .threads = fp_hopper_attention_threads(k),
        .shared_bytes = fp_hopper_attention_shared(k, chain_functions(c->chain).score_bias),
        .persistent = k.draws,
        .tiling = {.rows = k.rows, .ordered = k.ordered, .joined = k.joined},
        .sync_words = FP_SYNC_TILES};
    if (k.tma) {
        out->maps[CUDA_MAP_IN] = keys_map(c, w);
        out->dealt = true;
    }
    int64_t parts = tiling_parts(&out->tiling, w);
    out->tiles = parts * heads * ceil_div(blocks, k.rows) * k.cluster;
    if (k.joined)
        out->tiles = w->heads * ceil_div((int64_t)w->batch * w->seq_len, MASK_BLOCK);
    if (parts == 1)
        return;
    out->sync_words += heads;
    out->workspace_bytes = heads * w->seq_len * (int64_t)sizeof(float);
}
