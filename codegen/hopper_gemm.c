/* GEMMs by Hopper's wgmma and TMA: kernels/cuda/hopper_gemm.cuh. */
#include "codegen/cuda_int.h"
#include "kernels/cuda/abi.h"

#include <assert.h>

static_assert(sizeof(struct fp_maps) == CUDA_MAPS * sizeof(struct fp_map), "abi.h: maps");

static const struct {
    int bm, bn, step, teams, groups, cluster;
    bool swap;
} tiles[] = {
#define X(bm, bn, step, teams, groups, cluster, swap, name)                                        \
    {bm, bn, step, teams, groups, cluster, swap},
    HOPPER_GEMM_TILES(X)
#undef X
};

/* ---- shapes ---------------------------------------------------------------------------------- */

enum {
    WARPGROUP = 128,      /* threads */
    STORED_ROWS = 16,     /* that a warp stores at once */
    INPUT_PANEL = 64,     /* columns of the input that TMA copies at once: a line of the swizzle */
    SMEM_ALIGNMENT = 16,  /* of hopper_gemm_shape::smem */
    SWIZZLE_BYTES = 1024, /* ALIGN of hopper_gemm_shape */
    RESIDUAL_PLACES = 2,  /* PLACES of hopper_gemm_shape */
    RANKS_MAX = 8,        /* NORM_RANKS */
    RANKS_OF_SPLIT_MAX = 16, /* RANKS_OF_SPLIT */
    AT_ONCE_MAX = 112,       /* thread blocks that an H100 or H200 holds in clusters of up to 8 */
    MOMENTS_BYTES = 8
};

/* Columns of a weight's panel: PANEL of hopper_gemm_shape. */
static int panel_of(const struct hopper_gemm *g)
{
    return g->bn % 64 == 0 ? 64 : 32;
}

/* Sums of others, a tile, or by rows what warps store: hopper_gemm_shape::smem::out. */
static int out_bytes(const struct hopper_gemm *g)
{
    if (g->split > 1)
        return (g->bm - g->bm / g->split) * (g->bn + 8) * 4; /* rows of LDS numbers */
    if (g->swap)
        return g->bm * g->bn * 2;
    int warps = g->teams * g->groups * 4;
    int panels = g->bm / (64 * g->groups) * (g->bn / panel_of(g)); /* of a warp */
    return warps * (panels > 1 ? 2 : 1) * STORED_ROWS * panel_of(g) * 2;
}

/* The residual is added between two products of a team: BETWEEN of hopper_gemm_shape. */
static bool adds_between(const struct hopper_gemm *g)
{
    return g->adds && g->teams == 2 && g->bm == 128 && !g->swap && panel_of(g) == 64;
}

/* Rows of a residual that TMA copies at once: the rows of a panel or, where it comes in the ring,
 * PIECE of hopper_gemm_shape. */
static int residual_rows(const struct hopper_gemm *g)
{
    return adds_between(g) ? g->bm : g->bm / ((g->bm + 63) / 64);
}

/* hopper_gemm_shape::smem::residual */
static int residual_bytes(const struct hopper_gemm *g)
{
    return adds_between(g) ? RESIDUAL_PLACES * g->bm * panel_of(g) * 2 : 0;
}

/* Of hopper_gemm_shape::smem, all but the ring and its mbarriers. */
static int outside_ring(const struct hopper_gemm *g)
{
    bool cluster = g->norm == HOPPER_GEMM_NORM_CLUSTER;
    int rows = cluster || g->swap ? g->bm : 1; /* whose moments or scalings have room */
    /* ready, landed, done, turn, handed, residual_full, residual_empty */
    int mbarriers = ((3 + g->groups) * g->teams + 1 + 2 * RESIDUAL_PLACES) * 8;
    int align = mbarriers % 16;                                 /* the weights begin at 16 bytes */
    int norm = align + 2 * g->bn * 2 + (2 + 1 + g->teams) * 8 + /* shared, columns, taken */
               (cluster ? 2 * RANKS_MAX : 1) * rows * MOMENTS_BYTES;
    bool strips = g->norm != HOPPER_GEMM_NORM_NONE && g->split == 1;
    int bytes = residual_bytes(g) + out_bytes(g) + g->bm * 4 + mbarriers + (strips ? norm : 0);
    return (bytes + SMEM_ALIGNMENT - 1) / SMEM_ALIGNMENT * SMEM_ALIGNMENT;
}

static int step_bytes(const struct hopper_gemm *g)
{
    return (g->bm + g->bn) * g->step * 2 + 2 * 8;
}

/* The tensor that is added to the products, -1: none. */
static int residual_of(const struct cuda_stage *s)
{
    const struct op *ending = cuda_gemm_ending(s);
    return ending != NULL ? ending->skip : TENSOR_NONE;
}

/* The ring has as many steps as fit.  The thread blocks of a cluster take one tile, and so need no
 * second team. */
void hopper_gemm_of(const struct choice *c, struct hopper_gemm *out)
{
    int tile = choice_value(c, HOPPER_GEMM_KNOB_TILE),
        split = choice_value(c, HOPPER_GEMM_KNOB_SPLIT);
    struct cuda_stage stage;
    bool gemm = hopper_gemm_stage(c->chain, c->segment, &stage), norm = gemm && stage.norm_strip;
    *out = (struct hopper_gemm){
        .bm = tiles[tile].bm,
        .bn = tiles[tile].bn,
        .step = tiles[tile].step,
        .teams = split == 1 ? tiles[tile].teams : 1,
        .groups = tiles[tile].groups,
        .split = split,
        .cluster = tiles[tile].cluster,
        .swap = tiles[tile].swap,
        .adds = gemm && residual_of(&stage) >= 0,
        .norm = norm ? (enum hopper_gemm_norm)choice_value(c, HOPPER_GEMM_KNOB_NORM)
                     : HOPPER_GEMM_NORM_NONE};
    int room = arch_shared_bytes(CUDA_ARCH_HOPPER) - SWIZZLE_BYTES - outside_ring(out);
    out->depth = room / step_bytes(out);
}

/* sizeof(hopper_gemm_shape::smem) and what aligns it; a compiled test compares them. */
static int shared_bytes(const struct hopper_gemm *g)
{
    return SWIZZLE_BYTES + g->depth * step_bytes(g) + outside_ring(g);
}

int hopper_gemm_threads(const struct hopper_gemm *g)
{
    return (g->teams * g->groups + 1) * WARPGROUP;
}

bool hopper_gemm_stage(const struct chain *chain, struct segment s, struct cuda_stage *out)
{
    struct cuda_stage stages[OP_COUNT];
    int count = cuda_stages_of(chain, s, CUDA_NORM_STRIP, stages);
    *out = stages[0];
    return count == 1 && stages[0].kind == STAGE_GEMM;
}

/* The tiles that make up whole rows; 0: no number of them does. */
static int ranks_of(const struct hopper_gemm *g, const struct cuda_stage *s,
                    const struct workload *w)
{
    int64_t columns = cuda_gemm_columns(s, w);
    int most = g->split == 1 ? RANKS_MAX : RANKS_OF_SPLIT_MAX;
    return columns % g->bn == 0 && columns / g->bn <= most ? (int)(columns / g->bn) : 0;
}

/* Thread blocks of a cluster, 0 for none: those that share the rows of a layernorm, or load the
 * weight for each other.  Of those that exchange a row's moments through memory two neighbours are
 * a cluster, if only so that they run on neighbouring multiprocessors and take less time for it.
 * With swapped operands there are no such pairs: they were not timed alone. */
static int cluster_of_launch(const struct hopper_gemm *g, int ranks)
{
    if (g->norm == HOPPER_GEMM_NORM_CLUSTER)
        return ranks;
    if (g->cluster > 1)
        return g->cluster;
    bool pairs = g->norm == HOPPER_GEMM_NORM_MEMORY && g->split == 1 && !g->swap;
    return pairs && ranks % 2 == 0 ? 2 : 0;
}

/* Strips of rows.  A cluster has one for each thread block, of which some may be empty. */
static int64_t strips_of(const struct hopper_gemm *g, const struct workload *w)
{
    int64_t rows = (int64_t)g->cluster * g->bm;
    return (workload_tokens(w) + rows - 1) / rows * g->cluster;
}

/* A part of a tile for each. */
static int64_t thread_blocks(const struct hopper_gemm *g, const struct cuda_stage *s,
                             const struct workload *w)
{
    return strips_of(g, w) * ((cuda_gemm_columns(s, w) + g->bn - 1) / g->bn) * g->split;
}

/* A layernorm whose sums are split: thread blocks wait for those that have the rest of a row. */
static bool norm_of_split_applicable(const struct hopper_gemm *g, const struct cuda_stage *s,
                                     const struct workload *w, const char **why)
{
    if (g->norm != HOPPER_GEMM_NORM_MEMORY)
        return inapplicable(why, "the layernorm of split sums is one through memory");
    return w == NULL || thread_blocks(g, s, w) <= AT_ONCE_MAX ||
           inapplicable(why, "the GPU does not hold all thread blocks at once, which wait for each "
                             "other's part of a row");
}

bool hopper_gemm_applicable(const struct choice *c, const struct build_target *t, const char **why)
{
    enum {
        TILES_MAX = (1 << 20) - 1 /* up to there quotient() of hopper_gemm_shape.cuh is exact */
    };
    struct cuda_stage stage;
    struct hopper_gemm g;
    struct workload rows, *w = NULL; /* launches are laid out for all rows, whatever is packed */
    if (t->workload != NULL) {
        rows = *t->workload;
        rows.lengths = NULL;
        w = &rows;
    }
    hopper_gemm_of(c, &g);
    if (t->arch != CUDA_ARCH_HOPPER && t->arch != 0)
        return inapplicable(why, "wgmma is an instruction of sm_90a alone");
    if (dtypes[t->dtype].bytes != 2)
        return inapplicable(why, "this kernel computes in fp16 and bf16 alone");
    if (!hopper_gemm_stage(c->chain, c->segment, &stage))
        return inapplicable(why, "this kernel runs one GEMM with its elementwise operators and a "
                                 "layernorm after them");
    if (g.norm == HOPPER_GEMM_NORM_NONE && choice_turns(c, HOPPER_GEMM_KNOB_NORM))
        return inapplicable(
            why, "norm is a knob of a layernorm after a GEMM, and this segment has none");
    if (g.split > 1 && !(g.bm == 64 && (g.bn == 64 || g.bn == 128) && g.cluster == 1))
        return inapplicable(why, "thread blocks share the inner dimension of 64x64 and 64x128");
    if (g.norm != HOPPER_GEMM_NORM_NONE && g.split > 1 &&
        !norm_of_split_applicable(&g, &stage, w, why))
        return false;
    if (g.cluster > 1 && g.norm == HOPPER_GEMM_NORM_CLUSTER)
        return inapplicable(why, "a cluster shares the weight, or the rows of a layernorm");
    if (g.norm != HOPPER_GEMM_NORM_NONE && w != NULL && ranks_of(&g, &stage, w) == 0)
        return inapplicable(why, "so few tiles of this width make no row for the layernorm");
    if (g.norm == HOPPER_GEMM_NORM_CLUSTER && w != NULL && ranks_of(&g, &stage, w) == 1)
        return inapplicable(why,
                            "a cluster has two thread blocks or more, and a tile of this width "
                            "has whole rows");
    if (w != NULL && thread_blocks(&g, &stage, w) / g.split > TILES_MAX)
        return inapplicable(why, "the kernel finds the places of less than 2^20 tiles");
    return true;
}

void hopper_gemm_arguments(const struct choice *c, struct buf *out)
{
    static const char *const norms[] = {[HOPPER_GEMM_NORM_NONE] = "NONE",
                                        [HOPPER_GEMM_NORM_CLUSTER] = "CLUSTER",
                                        [HOPPER_GEMM_NORM_MEMORY] = "MEMORY"};
    struct hopper_gemm g;
    hopper_gemm_of(c, &g);
    buf_addf(out, "%d, %d, %d, %d, %d, %d, %d, fp::NORM_%s, %d, %s, %s", g.bm, g.bn, g.step,
             g.teams, g.groups, g.depth, g.split, norms[g.norm], g.cluster,
             g.swap ? "true" : "false", g.adds ? "true" : "false");
}

/* ---- launches -------------------------------------------------------------------------------- */

/* The kernel copies heads without TMA. */
static void describe(const struct hopper_gemm *g, const struct cuda_stage *s,
                     const struct workload *w, struct cuda_launch *out)
{
    const struct op *ending = cuda_gemm_ending(s), *last = &s->chain->ops[s->last];
    int in = s->chain->ops[s->first].input, stored = TENSOR_OF(s->last), residual = residual_of(s);
    int weight = cuda_gemm_weight(s);
    int64_t tokens = workload_tokens(w), n = cuda_gemm_columns(s, w), k = cuda_gemm_inner(s, w);
    int panel = panel_of(g);
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
        (struct cuda_map){true, weight, {n, k}, {panel, g->step / g->cluster}};
    if (in_rows)
        out->maps[CUDA_MAP_IN] = (struct cuda_map){false, in, {k, tokens}, {INPUT_PANEL, g->bm}};
    if (out_rows)
        out->maps[CUDA_MAP_OUT] =
            (struct cuda_map){false, stored, {n, tokens}, {panel, g->swap ? g->bm : STORED_ROWS}};
    if (out_rows && residual >= 0)
        out->maps[CUDA_MAP_RESIDUAL] =
            (struct cuda_map){false, residual, {n, tokens}, {panel, residual_rows(g)}};
}

void hopper_gemm_launch(const struct choice *c, const struct workload *w, struct cuda_launch *out)
{
    struct cuda_stage stage;
    struct hopper_gemm g;
    hopper_gemm_stage(c->chain, c->segment, &stage);
    hopper_gemm_of(c, &g);
    int64_t strips = strips_of(&g, w);
    int ranks = g.norm != HOPPER_GEMM_NORM_NONE ? ranks_of(&g, &stage, w) : 0;
    bool mailboxes = g.norm == HOPPER_GEMM_NORM_MEMORY; /* words of 64 bits */
    *out = (struct cuda_launch){.threads = hopper_gemm_threads(&g),
                                .shared_bytes = shared_bytes(&g),
                                .persistent = g.split == 1,
                                .cluster = cluster_of_launch(&g, ranks),
                                .tiles = thread_blocks(&g, &stage, w),
                                .at_once = mailboxes && g.split > 1,
                                .sync_words = FP_SYNC_TILES +
                                              (mailboxes ? strips * ranks * ranks * g.bm * 2 : 0)};
    describe(&g, &stage, w, out);
}
