/* GEMMs by Hopper's wgmma and TMA: kernels/cuda/hopper_gemm.cuh. */
#include "codegen/cuda_int.h"
#include "kernels/cuda/abi.h"

#include <assert.h>

static_assert(sizeof(struct fp_maps) == CUDA_MAPS * sizeof(struct fp_map), "abi.h: maps");

static const struct fp_hopper_gemm tiles[] = {
#define X(r, c, s, t, g, n, swapped, keep, name)                                                   \
    {.rows = (r),                                                                                  \
     .columns = (c),                                                                               \
     .step = (s),                                                                                  \
     .teams = (t),                                                                                 \
     .groups = (g),                                                                                \
     .cluster = (n),                                                                               \
     .swap = (swapped),                                                                            \
     .kept = (keep)},
    HOPPER_GEMM_TILES(X)
#undef X
};

/* The tensor that is added to the products, -1: none. */
static int residual_of(const struct cuda_stage *s)
{
    const struct op *ending = cuda_gemm_ending(s);
    return ending != NULL ? ending->skip : TENSOR_NONE;
}

/* Whether others read what the segment's norm is of. */
static bool keeps_sum(const struct choice *c)
{
    return (segment_outputs(c->chain, c->segment) & SET_OF(TENSOR_OF(c->segment.last - 1))) != 0;
}

uint32_t hopper_gemm_tensors(const struct choice *c)
{
    struct cuda_stage stage;
    struct fp_hopper_gemm g;
    hopper_gemm_of(c, &stage, &g);
    return SET_OF(TENSOR_OF(stage.last)) | (g.keeps ? SET_OF(TENSOR_OF(stage.last - 1)) : 0);
}

/* The ring has as many steps as fit.  The thread blocks of a cluster take one tile, and so need no
 * second team. */
bool hopper_gemm_of(const struct choice *c, struct cuda_stage *stage, struct fp_hopper_gemm *out)
{
    const struct op *ops = c->chain->ops;
    bool gemm = hopper_gemm_stage(c->chain, c->segment, stage);
    *out = tiles[choice_value(c, HOPPER_GEMM_KNOB_TILE)];
    out->split = choice_value(c, HOPPER_GEMM_KNOB_SPLIT);
    if (out->split > 1)
        out->teams = 1;
    if (gemm && stage->norm_strip)
        out->norm = (enum fp_norm)choice_value(c, HOPPER_GEMM_KNOB_NORM);
    out->adds = gemm && residual_of(stage) >= 0;
    out->keeps = out->norm != FP_NORM_NONE && keeps_sum(c);
    out->rms = out->norm != FP_NORM_NONE && ops[c->segment.last].function == FUNCTION_RMSNORM;
    out->gate = gemm && ops[stage->last].kind == KIND_GATE;
    struct e4m3_use use;
    choice_e4m3(c, &use);
    out->e4m3 = use.in >= 0;
    out->out_e4m3 = use.out >= 0;
    out->out_both = use.both;
    if (out->e4m3) /* as many bytes */
        out->step *= 2;
    int bytes = fp_hopper_gemm_shared(*out);
    out->depth = 1;
    int step = fp_hopper_gemm_shared(*out) - bytes;
    out->depth = (arch_shared_bytes(CUDA_ARCH_HOPPER) - bytes) / step;
    return gemm;
}

bool hopper_gemm_stage(const struct chain *chain, struct segment s, struct cuda_stage *out)
{
    struct cuda_stage stages[OP_COUNT];
    int count = cuda_stages_of(chain, s, CUDA_NORM_STRIP, stages);
    *out = stages[0];
    if (count == 2 && chain->ops[s.last].kind == KIND_SPLIT) { /* a thread has both of a pair */
        out->last = s.last;
        count = 1;
    }
    return count == 1 && stages[0].kind == STAGE_GEMM;
}

/* The tiles that make up whole rows; 0: no number of them does. */
static int ranks_of(const struct fp_hopper_gemm *g, const struct cuda_stage *s,
                    const struct workload *w)
{
    int64_t columns = cuda_gemm_columns(s, w);
    int most = g->split == 1 ? FP_GEMM_RANKS : FP_GEMM_SPLIT_RANKS;
    return columns % g->columns == 0 && columns / g->columns <= most ? (int)(columns / g->columns)
                                                                     : 0;
}

/* Thread blocks of a cluster, 0 for none: those that share the rows of a layernorm, or load the
 * weight for each other.  Of those that exchange a row's moments through memory two neighbours are
 * a cluster, if only so that they run on neighbouring multiprocessors and take less time for it.
 * With swapped operands there are no such pairs: they were not timed alone. */
static int cluster_of_launch(const struct fp_hopper_gemm *g, int ranks)
{
    if (g->norm == FP_NORM_CLUSTER)
        return ranks;
    if (g->cluster > 1)
        return g->cluster;
    bool pairs = g->norm == FP_NORM_MEMORY && g->split == 1 && !g->swap;
    return pairs && ranks % 2 == 0 ? 2 : 0;
}

/* Strips of rows.  A cluster has one for each thread block, of which some may be empty. */
static int64_t strips_of(const struct fp_hopper_gemm *g, const struct workload *w)
{
    return ceil_div(workload_tokens(w), (int64_t)g->cluster * g->rows) * g->cluster;
}

/* A part of a tile for each. */
static int64_t thread_blocks(const struct fp_hopper_gemm *g, const struct cuda_stage *s,
                             const struct workload *w)
{
    return strips_of(g, w) * ceil_div(cuda_gemm_columns(s, w), g->columns) * g->split;
}

enum { AT_ONCE_MAX = 112 }; /* thread blocks that an H100 or H200 holds in clusters of up to 8 */

/* A layernorm whose sums are split: thread blocks wait for those that have the rest of a row. */
static bool norm_of_split_applicable(const struct fp_hopper_gemm *g, const struct cuda_stage *s,
                                     const struct workload *w, const char **why)
{
    if (g->norm != FP_NORM_MEMORY)
        return inapplicable(why, "the layernorm of split sums is one through memory");
    return w == NULL || thread_blocks(g, s, w) <= AT_ONCE_MAX ||
           inapplicable(why, "the GPU does not hold all thread blocks at once, which wait for each "
                             "other's part of a row");
}

/* A thread block keeps a weight beside the ring alone. */
static bool kept_applicable(const struct fp_hopper_gemm *g, const struct cuda_stage *s,
                            const struct workload *w, const char **why)
{
    enum { ACROSS_MAX = 16 }; /* multiprocessors of the smallest part of a GPU */
    if (!g->e4m3)
        return inapplicable(why, "a thread block keeps a weight of e4m3");
    if (g->adds || g->norm != FP_NORM_NONE)
        return inapplicable(why, "beside a weight that stays nothing else has room");
    if (w != NULL && cuda_gemm_inner(s, w) > (int64_t)g->kept * g->step)
        return inapplicable(why, "a thread block has no room for so many rows of the weight");
    return w == NULL || ceil_div(cuda_gemm_columns(s, w), g->columns) <= ACROSS_MAX ||
           inapplicable(why, "a part of a GPU has too few multiprocessors for so many columns");
}

static bool e4m3_applicable(const struct fp_hopper_gemm *g, const struct cuda_stage *s,
                            const struct workload *w, const char **why)
{
    enum { GROUP = 16 }; /* columns: 16 bytes, and what changes its order */
    if (g->swap)
        return inapplicable(why, "e4m3 goes without swapped operands");
    if (g->out_e4m3 && fp_hopper_gemm_panel(*g) < 64)
        return inapplicable(why, "warps store e4m3 in panels of 64 columns");
    if (w != NULL &&
        ((g->e4m3 && cuda_gemm_inner(s, w) % GROUP != 0) ||
         (g->out_e4m3 && cuda_gemm_columns(s, w) % (g->gate ? 2 * GROUP : GROUP) != 0)))
        return inapplicable(why, "e4m3 takes rows of a multiple of 16 columns");
    return true;
}

bool hopper_gemm_applicable(const struct choice *c, const struct build_target *t, const char **why)
{
    enum {
        TILES_MAX = (1 << 20) - 1 /* up to there quotient() of hopper_gemm_work.cuh is exact */
    };
    struct cuda_stage stage;
    struct fp_hopper_gemm g;
    struct workload rows, *w = NULL; /* launches are laid out for all rows, whatever is packed */
    if (t->workload != NULL) {
        rows = *t->workload;
        rows.lengths = NULL;
        w = &rows;
    }
    bool gemm = hopper_gemm_of(c, &stage, &g);
    if (t->arch != CUDA_ARCH_HOPPER && t->arch != 0)
        return inapplicable(why, "wgmma is an instruction of sm_90a alone");
    if (dtypes[t->dtype].bytes != 2)
        return inapplicable(why, "this kernel computes in fp16 and bf16 alone");
    if (!gemm)
        return inapplicable(why, "this kernel runs one GEMM with its elementwise operators and a "
                                 "layernorm after them");
    if ((g.e4m3 || g.out_e4m3) && !e4m3_applicable(&g, &stage, w, why))
        return false;
    if (g.kept > 0 && !kept_applicable(&g, &stage, w, why))
        return false;
    if (g.norm == FP_NORM_NONE && choice_turns(c, HOPPER_GEMM_KNOB_NORM))
        return inapplicable(
            why, "norm is a knob of a layernorm after a GEMM, and this segment has none");
    if (g.split > 1 && !(g.rows == 64 && (g.columns == 64 || g.columns == 128) && g.cluster == 1))
        return inapplicable(why, "thread blocks share the inner dimension of 64x64 and 64x128");
    if (g.norm != FP_NORM_NONE && g.split > 1 && !norm_of_split_applicable(&g, &stage, w, why))
        return false;
    if (g.gate && (g.swap || g.split > 1 || fp_hopper_gemm_panel(g) < 64))
        return inapplicable(why, "a gate halves what warps store, panels of 64 columns of rows");
    if (c->chain->ops[stage.last].function == FUNCTION_BIAS_ROPE_SPLIT_HEADS &&
        (t->head_size % 16 != 0 || g.columns % t->head_size != 0))
        return inapplicable(why, "q and k are turned in tiles of whole heads, of a multiple of 16 "
                                 "columns");
    if (g.cluster > 1 && g.norm == FP_NORM_CLUSTER)
        return inapplicable(why, "a cluster shares the weight, or the rows of a layernorm");
    if (g.norm != FP_NORM_NONE && w != NULL && ranks_of(&g, &stage, w) == 0)
        return inapplicable(why, "so few tiles of this width make no row for the layernorm");
    if (g.norm == FP_NORM_CLUSTER && w != NULL && ranks_of(&g, &stage, w) == 1)
        return inapplicable(why,
                            "a cluster has two thread blocks or more, and a tile of this width "
                            "has whole rows");
    if (w != NULL && thread_blocks(&g, &stage, w) / g.split > TILES_MAX)
        return inapplicable(why, "the kernel finds the places of less than 2^20 tiles");
    return true;
}

/* ---- launches -------------------------------------------------------------------------------- */

/* The kernel copies heads without TMA. */
static void describe(const struct fp_hopper_gemm *g, const struct cuda_stage *s,
                     const struct workload *w, struct cuda_launch *out)
{
    const struct op *ending = cuda_gemm_ending(s), *last = &s->chain->ops[s->last];
    int in = s->chain->ops[s->first].input, stored = TENSOR_OF(s->last), residual = residual_of(s);
    int weight = cuda_gemm_weight(s);
    int64_t tokens = workload_tokens(w), n = cuda_gemm_columns(s, w), k = cuda_gemm_inner(s, w);
    int line = fp_hopper_gemm_input_panel(*g);
    int panel = fp_hopper_gemm_panel(*g), stored_columns = fp_hopper_gemm_stored_columns(*g);
    bool in_rows = tensor_layout(s->chain, in) == LAYOUT_TOKENS;
    bool out_rows = tensor_layout(s->chain, stored) == LAYOUT_TOKENS && g->split == 1;
    out->operands =
        (struct cuda_operands){.columns = n,
                               .inner = k,
                               .in = in,
                               .out = stored,
                               .residual = residual,
                               .bias = ending != NULL ? ending->weight[ROLE_BIAS] : WEIGHT_NONE,
                               .gamma = last->weight[ROLE_GAMMA],
                               .beta = last->weight[ROLE_BETA]};
    out->maps[CUDA_MAP_WEIGHT] =
        g->e4m3 ? (struct cuda_map){true, weight, {k, n}, {line, g->columns / g->cluster}, true}
                : (struct cuda_map){true, weight, {n, k}, {panel, g->step / g->cluster}, false};
    if (in_rows)
        out->maps[CUDA_MAP_IN] =
            (struct cuda_map){false, in, {k, tokens}, {line, g->rows}, g->e4m3};
    struct cuda_map rows = {false};
    if (out_rows)
        rows = (struct cuda_map){false,
                                 stored,
                                 {g->gate ? n / 2 : n, tokens},
                                 {stored_columns, g->swap ? g->rows : FP_GEMM_STORED_ROWS},
                                 false};
    if (!g->out_e4m3 || g->out_both)
        out->maps[CUDA_MAP_OUT] = rows;
    if (g->out_e4m3) {
        out->maps[CUDA_MAP_E4M3] = rows;
        out->maps[CUDA_MAP_E4M3].e4m3 = out_rows;
    }
    if (g->keeps) {
        out->maps[CUDA_MAP_SUM] = rows;
        out->maps[CUDA_MAP_SUM].index = TENSOR_OF(s->last - 1);
    }
    if (out_rows && residual >= 0)
        out->maps[CUDA_MAP_RESIDUAL] = (struct cuda_map){
            false, residual, {n, tokens}, {panel, fp_hopper_gemm_residual_rows(*g)}, false};
}

void hopper_gemm_launch(const struct choice *c, const struct workload *w, struct cuda_launch *out)
{
    struct cuda_stage stage;
    struct fp_hopper_gemm g;
    hopper_gemm_of(c, &stage, &g);
    int64_t strips = strips_of(&g, w);
    int ranks = g.norm != FP_NORM_NONE ? ranks_of(&g, &stage, w) : 0;
    bool mailboxes = g.norm == FP_NORM_MEMORY; /* words of 64 bits */
    *out = (struct cuda_launch){
        .threads = fp_hopper_gemm_threads(g),
        .shared_bytes = fp_hopper_gemm_shared(g),
        .persistent = g.split == 1,
        .cluster = cluster_of_launch(&g, ranks),
        .tiles = thread_blocks(&g, &stage, w),
        .at_once = mailboxes && g.split > 1,
        .sync_words = FP_SYNC_TILES + (mailboxes ? strips * ranks * ranks * g.rows * 2 : 0)};
    describe(&g, &stage, w, out);
}
