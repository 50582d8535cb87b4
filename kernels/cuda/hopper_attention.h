/* The configuration of attention on Hopper, and what follows from it for the kernel and for its
 * host alike.  C, and C++ for nvcc. */
#ifndef FUSEPLAN_CUDA_HOPPER_ATTENTION_H
#define FUSEPLAN_CUDA_HOPPER_ATTENTION_H

#include "attention.h"

struct fp_hopper_attention {
    int head_size;       /* of those in wgmma.cuh, 32 to 128 */
    int consumers;       /* warpgroups that compute */
    int rows;            /* query blocks of a tile; fewer than consumers: these share the keys */
    int ring;            /* key blocks in flight */
    int producers;       /* warps that load */
    int cluster;         /* thread blocks that share a tile's keys */
    int resident;        /* thread blocks that a multiprocessor has registers for */
    bool draws;          /* thread blocks draw tiles from a counter; else one tile each */
    bool overlap;        /* the next scores are issued before the context, for softmax beside it */
    bool q_in_registers; /* as an operand; else in shared memory */
    bool ordered;        /* the tiles are those of a cover */
    bool out_e4m3;       /* the merged context is stored in e4m3 */
    bool joined;         /* a tile has rows of several sequences: the batch is one sequence */
    bool tma;            /* TMA copies k and v; else cp.async does */
};

FP_CONSTANT int fp_hopper_attention_threads(struct fp_hopper_attention g)
{
    return g.consumers * 128 + g.producers * 32;
}

/* Registers of a thread, as ptxas gives them out: in eights, 16384 to the warps of each of a
 * multiprocessor's four parts. */
FP_CONSTANT int fp_hopper_attention_registers(struct fp_hopper_attention g)
{
    const int warps = fp_hopper_attention_threads(g) / 32 * g.resident;
    return 16384 / ((warps + 3) / 4 * 32) / 8 * 8;
}

/* Bytes of the ones beside v, a line for each of 16 keys; else of an array that nobody reads. */
FP_CONSTANT int fp_hopper_attention_ones(struct fp_hopper_attention g)
{
    return g.tma ? 16 * 128 : 16;
}

/* Bytes of shared memory of a thread block: sizeof(shape::smem), and what aligns it.  score_bias:
 * the kernel has FP_BIAS_MASK, and is not ordered. */
FP_CONSTANT int fp_hopper_attention_shared(struct fp_hopper_attention g, bool score_bias)
{
    const int block = (g.head_size + 63) / 64 * FP_BLOCK * 128, tiles = g.draws ? 2 : 1;
    const int blocks = (tiles * g.rows + 2 * g.ring) * block;
    const int join = g.consumers > g.rows ? g.rows * (g.head_size / 2 + 4) * 128 * 4 : 16;
    const int words = g.ring * g.rows * FP_BLOCK * 8;
    const int tokens = g.ordered    ? tiles * 4 * FP_BLOCK * g.rows
                       : score_bias ? g.ring * 4 * FP_BLOCK * (g.rows + 1)
                                    : 16;
    const int items = tiles * (4 * g.head_size + 32 + 8 * g.rows) + 16 * g.rows + 8;
    const int mbarriers = (4 * g.ring + 2 * tiles) * 8;
    const int bytes =
        blocks + join + words + fp_hopper_attention_ones(g) + tokens + items + mbarriers;
    return 1024 + (bytes + 15) / 16 * 16;
}

#endif
