/* The configuration of a GEMM on Hopper, and what follows from it for the kernel and for its host
 * alike: boxes that TMA copies, and the size of shared memory.  C, and C++ for nvcc. */
#ifndef FUSEPLAN_CUDA_HOPPER_GEMM_H
#define FUSEPLAN_CUDA_HOPPER_GEMM_H

#include "abi.h"

/* Whether a layernorm follows, and how the thread blocks that share its rows exchange what they
 * know of them: those of a cluster by their shared memory, others by mailboxes in memory. */
enum fp_norm { FP_NORM_NONE, FP_NORM_CLUSTER, FP_NORM_MEMORY };

struct fp_hopper_gemm {
    int rows, columns; /* of a tile */
    int step;          /* elements of the inner dimension that a step takes */
    int teams;         /* that take tiles in turn */
    int groups;        /* warpgroups of a team, which share its tile */
    int depth;         /* steps in flight */
    int split;         /* thread blocks of a cluster that share a sum */
    int cluster;       /* thread blocks of a cluster that load the weight for each other */
    enum fp_norm norm; /* of the layernorm that follows */
    bool swap;         /* the weight is the first operand of wgmma */
    bool adds;         /* a residual is added */
    bool keeps;        /* what a norm is of is stored, too */
    bool rms;          /* the norm is an RMS norm */
    bool gate;         /* two neighbouring columns become one */
    bool e4m3;         /* input and weight are e4m3, and the weight is (N, K) */
    bool out_e4m3;     /* the result is stored in e4m3, in the order of hopper_gemm_pairs.cuh */
    bool out_both;     /* and in a half type */
    int kept;          /* steps of the weight that a thread block keeps for all of its tiles, which
                          have the same columns; 0: none */
};

enum {
    FP_GEMM_ALIGN = 1024,     /* bytes of the swizzle's pattern, at which shared memory begins */
    FP_GEMM_LINE = 128,       /* bytes of the inner dimension that TMA copies at once */
    FP_GEMM_STORED_ROWS = 16, /* that a warp stores at once */
    FP_GEMM_PLACES = 2,       /* of panels of a residual that is added between products */
    FP_GEMM_RANKS = 8,        /* at most, of the tiles of a layernorm's row: a cluster on any GPU */
    FP_GEMM_SPLIT_RANKS = 16, /* the same after a split */
    FP_GEMM_SUMS_PAD = 8      /* floats behind a row of sums that are added up */
};

FP_CONSTANT int fp_hopper_gemm_threads(struct fp_hopper_gemm g)
{
    return (g.teams * g.groups + 1) * 128;
}

/* Bytes of an element of the input and of the weight. */
FP_CONSTANT int fp_hopper_gemm_element(struct fp_hopper_gemm g)
{
    return g.e4m3 ? 1 : 2;
}

/* Columns of the input that TMA copies at once; of the weight, too, if that is (N, K). */
FP_CONSTANT int fp_hopper_gemm_input_panel(struct fp_hopper_gemm g)
{
    return FP_GEMM_LINE / fp_hopper_gemm_element(g);
}

/* Columns of the weight, if that is (K, N), of the residual and the result that TMA copies at
 * once. */
FP_CONSTANT int fp_hopper_gemm_panel(struct fp_hopper_gemm g)
{
    return g.columns % 64 == 0 ? 64 : 32;
}

/* Columns of the result that TMA stores at once: those of a panel. */
FP_CONSTANT int fp_hopper_gemm_stored_columns(struct fp_hopper_gemm g)
{
    return g.gate ? fp_hopper_gemm_panel(g) / 2 : fp_hopper_gemm_panel(g);
}

/* Products of a warpgroup: 64 rows of the tile each, with swapped operands 64 columns. */
FP_CONSTANT int fp_hopper_gemm_products(struct fp_hopper_gemm g)
{
    return (g.swap ? g.columns : g.rows) / (64 * g.groups);
}

/* A warpgroup of each team has two products: it adds the residual to one of them while the other
 * one is computed.  Tiles of 96 columns take longer so. */
FP_CONSTANT bool fp_hopper_gemm_between(struct fp_hopper_gemm g)
{
    return g.adds && g.teams == 2 && fp_hopper_gemm_products(g) == 2 && !g.swap &&
           fp_hopper_gemm_panel(g) == 64;
}

/* Other residuals come in so many steps of the ring. */
FP_CONSTANT int fp_hopper_gemm_pieces(struct fp_hopper_gemm g)
{
    return (g.rows + 63) / 64;
}

/* Rows of a residual that TMA copies at once. */
FP_CONSTANT int fp_hopper_gemm_residual_rows(struct fp_hopper_gemm g)
{
    return fp_hopper_gemm_between(g) ? g.rows : g.rows / fp_hopper_gemm_pieces(g);
}

/* Panels of a warp that are on their way to memory at once. */
FP_CONSTANT int fp_hopper_gemm_slots(struct fp_hopper_gemm g)
{
    return g.kept == 0 && fp_hopper_gemm_products(g) * (g.columns / fp_hopper_gemm_panel(g)) > 1
               ? 2
               : 1;
}

/* A group of thread blocks takes the tiles of a row strip, one each. */
FP_CONSTANT bool fp_hopper_gemm_strips(struct fp_hopper_gemm g)
{
    return g.norm != FP_NORM_NONE && g.split == 1;
}

/* ---- shared memory --------------------------------------------------------------------------- */

FP_CONSTANT int fp_hopper_gemm_out_bytes(struct fp_hopper_gemm g)
{
    const int stored = FP_GEMM_STORED_ROWS * fp_hopper_gemm_panel(g) * 2;
    if (g.split > 1)
        return (g.rows - g.rows / g.split) * (g.columns + FP_GEMM_SUMS_PAD) * 4;
    return g.swap ? g.rows * g.columns * 2
                  : g.teams * g.groups * 4 * fp_hopper_gemm_slots(g) * stored;
}

/* Of a thread block, with what aligns it; hopper_gemm_work.cuh has the struct. */
FP_CONSTANT int fp_hopper_gemm_shared(struct fp_hopper_gemm g)
{
    const bool cluster = g.norm == FP_NORM_CLUSTER;
    const int mbarriers = 2 * g.depth + (3 + g.groups) * g.teams + 1 + 2 * FP_GEMM_PLACES + g.kept;
    const int weights = g.kept > 0 ? g.kept : g.depth;
    int bytes = (g.depth * g.rows + weights * g.columns) * g.step * fp_hopper_gemm_element(g) +
                fp_hopper_gemm_out_bytes(g) + g.rows * 4 + mbarriers * 8;
    if (fp_hopper_gemm_between(g))
        bytes += FP_GEMM_PLACES * g.rows * fp_hopper_gemm_panel(g) * 2;
    if (fp_hopper_gemm_strips(g))
        bytes = (bytes + 15) / 16 * 16 + g.columns * 4 + (2 + 1 + g.teams) * 8 +
                (cluster ? 2 * FP_GEMM_RANKS : 1) * (cluster || g.swap ? g.rows : 1) * 8;
    return FP_GEMM_ALIGN + (bytes + 15) / 16 * 16;
}

#endif
