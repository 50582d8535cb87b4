/* The time that a schedule on Hopper is expected to take, so that the first one tried of a workload
 * is a good one.  The model counts waves: how often every multiprocessor has a tile, how many steps
 * a tile has, and what its beginning and end cost.  Its constants were fitted to the times of all
 * schedules in fp16 on an H100 and an H200, tests/data/h100-gemm-times.csv and
 * h200-attention-times.csv; `kept` and `both` to those of h200-e4m3-times.csv.  Only the order of
 * schedules counts, so constants of tiles that lose by far (narrow, next) may be larger than what
 * they stand for. */
#include "codegen/cuda_int.h"

enum { MULTIPROCESSORS = 132, FEW_ROWS = 48 };

/* ---- GEMMs ----------------------------------------------------------------------------------- */

static const double CYCLES_PER_US = 1700;

/* Cycles, unless said. */
static const struct {
    double begin_us;        /* a launch and its first step */
    double beside_us;       /* less, where the next launch has room beside this one */
    double fmas_per_cycle;  /* of wgmma on a multiprocessor */
    double bytes_per_cycle; /* of operands */
    double narrow;          /* times a weight's bytes, where its panels are half as wide */
    double step;            /* beside the above */
    double tile;            /* beside its steps and its store; not of a split, nor of a layernorm
                               by one team or with swapped operands */
    double store[4];        /* an element; bare, with GELU, with a residual, with a layernorm */
    double both;            /* an element of a tile at least, of a layernorm that is stored in e4m3,
                               too, by two teams with two products each */
    double join, join_sum;  /* of a cluster; and for each sum that a thread block gives away */
    double next;            /* between two clusters of a split, one after the other */
    double mail;            /* of a layernorm, once; nothing with swapped operands */
    double mail_sum;        /* beside that, for each sum that a thread block owns after a split */
    double kept[2];         /* of a weight that stays, once: result of a half type, of e4m3 alone;
                               its steps take no time of their own */
    double again;           /* of a layernorm with swapped operands, between two tiles */
    int clusters[9];        /* that run at once, by their size */
    double alone;           /* times what is stored, where a thread block has one tile of 128 rows
                               and more, and one warpgroup for it */
    double swap_store[2];   /* times what is stored, where warpgroups share swapped columns; without
                               a layernorm, with one */
    double gathers;         /* times all, where input rows are no neighbours in memory: 6-7 and 6-9
                               over 7-7 and 7-9 in tests/data/h200-b8-s512-strided-fp16 */
    double few;             /* at most the same of tiles of few rows, where a launch has no room
                               beside the next: 7-9 at 256 rows takes 2.0 times as long so */
    double scatters[2][2];  /* the same of stored rows, 0-1 over 0-0 on an H200 at (8,512); heads as
                               they are, turned; then without and with swapped operands */
} gemm = {.begin_us = 1.37,
          .beside_us = 0.954,
          .fmas_per_cycle = 2090,
          .bytes_per_cycle = 123,
          .narrow = 8.96,
          .step = 98.4,
          .tile = 518,
          .store = {0.0418, 0.0795, 0.0711, 0.0994},
          .both = 0.4,
          .join = 1850,
          .join_sum = 0.274,
          .next = 7540,
          .mail = 1270,
          .mail_sum = 0.232,
          .kept = {3200, 2200},
          .again = 643,
          .clusters = {[1] = MULTIPROCESSORS, 66, 39, 30, 22, 17, 15, 14},
          .alone = 1.37,
          .swap_store = {1.28, 3.21},
          .gathers = 2.4,
          .few = 2.6,
          .scatters = {{1.1, 2.0}, {1.23, 3.8}}};

/* The steps of a tile.  A launch that has one for each thread block has loaded the weight's part of
 * the first ones before it may begin. */
static double products_of(const struct fp_hopper_gemm *g, double steps, bool once)
{
    bool narrow = fp_hopper_gemm_panel(*g) < 64 && !g->e4m3;
    double width = g->columns * (narrow ? gemm.narrow : 1);
    double line = g->step * fp_hopper_gemm_element(*g) / gemm.bytes_per_cycle;
    double rate = gemm.fmas_per_cycle * (g->e4m3 ? 2 : 1);
    double multiply = (double)g->rows * g->columns * g->step / rate;
    double early = once ? fmin(steps, g->depth) : 0;
    return (g->kept > 0 ? 0 : steps * gemm.step) + early * fmax(multiply, g->rows * line) +
           (steps - early) * fmax(multiply, (g->rows + width) * line);
}

double hopper_gemm_expected_us(const struct choice *c, const struct workload *w)
{
    struct fp_hopper_gemm g;
    struct cuda_stage stage;
    hopper_gemm_of(c, &stage, &g);
    if (g.cluster > 1)
        return NAN; /* not among the times that the model was fitted to */
    const struct op *ending = cuda_gemm_ending(&stage);
    int64_t n = cuda_gemm_columns(&stage, w), k = cuda_gemm_inner(&stage, w);
    bool norm = g.norm != FP_NORM_NONE, by_strips = norm && g.split == 1;
    int epilogue = by_strips ? 3 : ending == NULL ? 0 : ending->skip >= 0 ? 2 : 1;
    int64_t strips = ceil_div(workload_tokens(w), g.rows), across = ceil_div(n, g.columns);
    bool beside = 2 * strips * across * g.split <= MULTIPROCESSORS;
    bool clusters = g.split > 1 || g.norm != FP_NORM_MEMORY;
    int64_t groups = clusters && g.kept == 0 ? gemm.clusters[by_strips ? across : g.split]
                                             : MULTIPROCESSORS / across;
    int64_t turns = ceil_div(by_strips || g.kept > 0 ? strips : strips * across, groups);
    double steps = (double)ceil_div(k, (int64_t)g.step * g.split);
    double elements = (double)g.rows * g.columns;
    double products = products_of(&g, steps, turns == 1);
    double store = elements * gemm.store[epilogue];
    if (g.split == 1 && !g.swap && g.groups == 1 && g.rows >= 128 && turns == 1)
        store *= gemm.alone;
    if (g.swap && g.groups > 1)
        store *= gemm.swap_store[by_strips];
    double both = g.out_both && fp_hopper_gemm_products(g) == 2 ? elements * gemm.both : 0;
    double cycles;
    if (g.split > 1)
        cycles = (double)turns * (products + store / g.split + gemm.join +
                                  gemm.join_sum * elements * (g.split - 1) / g.split) +
                 (double)(turns - 1) * gemm.next +
                 (norm ? gemm.mail + gemm.mail_sum * elements / g.split : 0);
    else if (norm && (g.swap || g.teams == 1)) /* with swapped operands teams share s.out */
        cycles = (double)turns * (products + store) +
                 (g.swap ? (double)(turns - 1) * gemm.again : gemm.mail);
    else /* a second team multiplies while the first one stores */
        cycles = (double)turns * fmax(products + gemm.tile, both) +
                 (g.teams > 1 ? 1 : (double)turns) * store + (norm ? gemm.mail : 0) +
                 (g.kept > 0 ? gemm.kept[g.out_e4m3 && !g.out_both] : 0);
    if (g.rows < FEW_ROWS && !beside)
        cycles *= gemm.few;
    if (tensor_layout(c->chain, c->chain->ops[stage.first].input) != LAYOUT_TOKENS)
        cycles *= gemm.gathers;
    if (tensor_layout(c->chain, TENSOR_OF(stage.last)) != LAYOUT_TOKENS)
        cycles *= gemm.scatters[chain_functions(c->chain).rope][g.swap];
    return gemm.begin_us - (beside ? gemm.beside_us : 0) + cycles / CYCLES_PER_US;
}

/* ---- attention ------------------------------------------------------------------------------- */

/* Microseconds. */
static const struct {
    double begin;
    double step;    /* an entry of a tile's list, where others hide its latency */
    double alone;   /* the same where none does */
    double share;   /* of the steps' time that comes on top of the longest list */
    double tile;    /* on a multiprocessor */
    double ordered; /* times that, for tiles of a cover */
    double join;    /* a second part */
} attention[HOPPER_ATTENTION_COUNT] = {
    [HOPPER_ATTENTION_64] = {3.91, 0.291, 0.415, 0.143, 0.685, 1.62, 1.2},
    [HOPPER_ATTENTION_64_OVERLAP] = {0.558, 0.302, 1.09, 0.0993, 1.18, 1, 0},
    [HOPPER_ATTENTION_64_SPLIT] = {1.92, 0.28, 0.199, 0.29, 1.51, 1, 0},
    [HOPPER_ATTENTION_64_CLUSTER] = {2.61, 0.285, 0.0541, 0.0288, 1.38, 1, 0},
    [HOPPER_ATTENTION_128] = {2.74, 0.546, 0.614, 0, 2.22, 1.55, 1.39},
    [HOPPER_ATTENTION_192] = {2.6, 0.621, 0.72, 0.0645, 2.04, 1, 0},
    [HOPPER_ATTENTION_192_TMA] = {3.3, 0.588, 0.72, 0.0645, 2.32, 1, 0},
};

/* What a tile of padding alone takes of a tile's time where thread blocks draw their tiles. */
#define EMPTY_TILE 0.43

/* Microseconds, of joined rows. */
static const struct {
    double begin;
    double tile;  /* on a multiprocessor */
    double alone; /* an entry of the longest list */
    double later; /* an entry of a tile that a thread block takes after its first one */
} joined = {2.34, 0.709, 1.19, 1.85};

/* The lists of the tiles of a head. */
struct lists {
    int64_t entries, longest, empty; /* of all; of one; lists without an entry */
    int64_t fullest; /* of the multiprocessor that has most, when tiles are dealt out to them */
    int count, parts;
};

/* heads: how many have these lists.  stride: the tiles that multiprocessors take at a time. */
static struct lists lists_of(const struct workload *w, const struct tiling *t, int64_t heads,
                             int stride)
{
    SCOPED_BY(query_tiles_release) struct query_tiles tiles;
    query_tiles_build(w, t, &tiles);
    struct lists out = {.count = tiles.count, .parts = tiles.parts};
    for (int i = 0; i < tiles.count; i++) {
        int64_t of_tile = tiles.tile[(ptrdiff_t)i * TILE_INTS + 2];
        out.entries += of_tile;
        out.longest = max_of(out.longest, of_tile);
        out.empty += of_tile == 0;
    }
    for (int64_t n = 0; n < tiles.count * heads; n += stride) /* the longest rows come first */
        out.fullest += tiles.tile[n / heads * TILE_INTS + 2];
    return out;
}

static double joined_expected_us(const struct fp_hopper_attention *h, const struct workload *w,
                                 struct tiling tiling)
{
    tiling.packed = w->lengths != NULL;
    const struct lists lists = lists_of(w, &tiling, w->heads, MULTIPROCESSORS);
    double mean = (double)lists.entries / lists.count;
    double blocks = (double)lists.count * w->heads / MULTIPROCESSORS;
    return joined.begin + blocks * joined.tile + (double)lists.longest * joined.alone +
           (ceil(blocks / h->resident) - 1) * mean * joined.later;
}

double hopper_attention_expected_us(const struct choice *c, const struct workload *w)
{
    if (w->blocks.start == NULL)
        return NAN;
    struct fp_hopper_attention h;
    struct cuda_launch launch;
    hopper_attention_of(c, w->head_size, &h);
    hopper_attention_launch(c, w, &launch);
    if (h.joined)
        return joined_expected_us(&h, w, launch.tiling);

    int shape = choice_value(c, HOPPER_ATTENTION_KNOB_SHAPE);
    int64_t heads = (int64_t)w->batch * w->heads / w->blocks.lists;
    const struct lists lists = lists_of(w, &launch.tiling, heads, MULTIPROCESSORS / h.cluster);
    double busy = (double)(lists.entries * heads) / MULTIPROCESSORS;
    double blocks = (double)launch.tiles / MULTIPROCESSORS;
    if (blocks <= h.resident) /* all run at once, on some multiprocessors more than on others */
        busy = fmax(busy, (double)lists.fullest / h.cluster);
    else if (h.draws && h.resident == 1) /* a multiprocessor has one tile after another */
        busy *= ceil(blocks) / blocks;
    busy *= attention[shape].step;
    if (h.draws) /* else a thread block is launched for it, too */
        blocks -= (1 - EMPTY_TILE) * (double)(lists.empty * heads) / MULTIPROCESSORS;
    return attention[shape].begin + fmax(busy, (double)lists.longest * attention[shape].alone) +
           busy * attention[shape].share +
           blocks * attention[shape].tile * (launch.tiling.ordered ? attention[shape].ordered : 1) +
           (lists.parts > 1 ? attention[shape].join : 0);
}
