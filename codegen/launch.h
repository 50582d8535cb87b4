/* codegen, its launches: how a choice of the CUDA target runs.  Part of codegen/codegen.h. */
#pragma once

#include "layer/layer.h"

struct choice;

/* ---- choice.c, cuda_library.c: how a choice of the CUDA target runs -------------------------- */

/* How a kernel takes the mask by tiles of query blocks. */
struct tiling {
    int rows;     /* query blocks of a tile, 1 to 3; 0: it reads no tiles */
    bool ordered; /* the tiles of the workload's cover, if it has one; else of the plain lists */
    bool joined;  /* the tiles of all token rows, see below */
    bool packed;  /* token rows are, where tiles are joined: those of real tokens alone */
};

/* A matrix that a kernel copies by TMA: what cuTensorMapEncodeTiled() needs beside its address. All
 * zeros: none.  Elements have two bytes, or one; the swizzle is as wide as a row of the box. */
struct cuda_map {
    bool weight;     /* else a tensor */
    int index;       /* which one */
    int64_t size[2]; /* columns, rows */
    int box[2];      /* of one copy */
    bool e4m3;       /* it is in fp_args.e4m3 */
};

/* In the order of struct fp_maps (kernels/cuda/abi.h).  CUDA_MAP_SUM has its index without a size,
 * too. */
enum {
    CUDA_MAP_IN,
    CUDA_MAP_WEIGHT,
    CUDA_MAP_OUT,
    CUDA_MAP_RESIDUAL,
    CUDA_MAP_SUM,
    CUDA_MAP_E4M3,
    CUDA_MAPS
};

/* The operands of fp_args.gemm (kernels/cuda/abi.h). */
struct cuda_operands {
    int64_t columns, inner;
    int in, out, residual; /* tensors; residual -1: none */
    int bias, gamma, beta; /* weights; -1: none */
};

/* Everything about a kernel launch except the grid: min(tiles, resident thread blocks) if it is
 * cooperative or persistent, and then a smaller one computes the same; else tiles.  A kernel that
 * is not cooperative may be launched before the one in front of it has ended, because it waits for
 * that by itself: see kernels/cuda/common.cuh. */
struct cuda_launch {
    int threads;      /* of a thread block */
    int shared_bytes; /* dynamic shared memory of a thread block */
    bool cooperative; /* stages meet at grid barriers */
    bool persistent;  /* thread blocks take several tiles: no more than the device holds at once */
    bool at_once;     /* thread blocks wait for each other: the device must hold all of them */
    int cluster;      /* thread blocks of a cluster; 0: the kernel has none, or says so itself */
    struct tiling tiling;    /* of fp_args.tiles */
    int64_t tiles;           /* of the stage that has most: the thread blocks that find work */
    int64_t sync_words;      /* of fp_args.sync */
    int64_t workspace_bytes; /* of fp_args.workspace */
    struct cuda_map maps[CUDA_MAPS]; /* of fp_maps, the kernel's second argument, if it has one */
    bool dealt; /* row 16t+2p+e of a box of CUDA_MAP_IN becomes row 8p+2t+e of its copy */
    struct cuda_operands operands; /* of fp_args.gemm, if CUDA_MAP_WEIGHT is one */
};

/* For a choice whose implementation is not a library. */
void choice_launch(const struct choice *c, const struct workload *w, struct cuda_launch *out);

/* Whether the kernel takes fp_maps. */
bool launch_has_maps(const struct cuda_launch *l);

/* Memory that an algorithm of cuBLASLt may work in: NVIDIA's advice for sm_90, its largest. */
enum { CUDA_LIBRARY_WORKSPACE_BYTES = 32 << 20 };

/* What follows a product, as bits of cuBLASLt's cublasLtEpilogue_t, or PRODUCT_PLAIN. */
enum product_epilogue { PRODUCT_PLAIN = 1, PRODUCT_RELU = 2, PRODUCT_BIAS = 4, PRODUCT_GELU = 32 };

/* A segment as one product of token rows: out = in @ weight (+ bias) (+ residual), or an activation
 * of it. */
struct cuda_product {
    int in, out, residual; /* tensors; residual -1: none */
    int weight, bias;      /* weights; bias -1: none */
    int epilogue;
    bool e4m3;     /* `in` and the weight are in e4m3: alpha * in @ weight */
    bool out_e4m3; /* so is `out`, in whose order of columns weight and bias are */
};

/* For a choice whose implementation is a library. */
void choice_product(const struct choice *c, struct cuda_product *out);

/* ---- query_tiles.c: lists of key blocks for several query blocks --------------------------------
 *
 * Warpgroups that take neighbouring query blocks share the key blocks that they load.  A tile is
 * `rows` neighbouring query blocks of one list; in a list's last tile some may lie past its end.
 * An entry is a key block followed by one word for each of the tile's query blocks: TILE_FULL,
 * TILE_SKIP, or the index of its 64 row words.
 * Tiles are in parts, the parts of the workload's cover.  Every kept element of the mask is in
 * exactly one word of one part.  The kernel joins the results of two parts.
 * Joined tiles are of 64 neighbouring token rows of the whole batch, which may belong to several
 * sequences, and list 0 has them all: the batch is one sequence whose tokens keep keys of their own
 * one alone.  The mask is a band. */

enum { TILE_FULL = -1, TILE_SKIP = -2, TILE_HEAD = 32, TILE_INTS = 4 };

struct query_tiles {
    int rows, parts, count; /* count: tiles of all parts and lists */
    int entry_ints;         /* 2 for one query block, else 4, so that an entry is one vector load */
    int *tile; /* (count, TILE_INTS), part by part, in each the tiles with the most entries
                  first: list; first query block, plus `blocks` for each part before;
                  entries; the place in `rest` of entry TILE_HEAD */
    int *head; /* (count, TILE_HEAD, entry_ints): a tile's first entries */
    int *rest; /* (rest_count + TILE_HEAD, entry_ints): those behind them, then zeros; null: joined
                  tiles have none */
    int64_t rest_count;

    /* Of a cover; null for the plain lists, whose row words the workload's lists have. */
    uint64_t *words; /* (word_blocks, 64) */
    int64_t word_blocks;
    int *query_token, *key_token; /* (parts, blocks*64) the token at each place, -1: none */
};

int tiling_parts(const struct tiling *t, const struct workload *w);

/* How many 64x64 blocks a choice of whole attention computes of one head of every batch row: those
 * that are not empty, of the workload's cover if its schedule takes that, else of the
 * plain lists. */
double choice_blocks(const struct choice *c, const struct workload *w);

/* Entries that every query block of the tile uses come first. */
void query_tiles_build(const struct workload *w, const struct tiling *t, struct query_tiles *out);
void query_tiles_release(struct query_tiles *q);
