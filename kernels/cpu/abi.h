/* The contract between an emitted CPU segment and whoever calls it.
 *
 * One function runs one segment of one layer.  All pointers are borrowed; tensors are fp32 and laid
 * out as in the operator chain: x and token rows (B,S,C), qkv 3x(B,H,S,W), scores (B,H,S,S).  The
 * function starts its own team of OpenMP threads and may be called from any thread. */
#ifndef FUSEPLAN_CPU_ABI_H
#define FUSEPLAN_CPU_ABI_H

#include <stdint.h>

#define FP_BLOCK 64 /* rows and columns of an attention block */

/* For each list (one for the whole batch, or one a batch row) and each block of query rows: the key
 * blocks that hold a kept element, full ones first. */
struct fp_blocks {
    int lists, blocks;     /* lists: 1 or B; blocks: ceil(S/64) */
    const int *start;      /* (lists*blocks + 1) */
    const int *full;       /* (lists*blocks) how many entries are full */
    const int *key_block;  /* (entries) */
    const int *bits;       /* (entries) index of 64 row words, -1 where full */
    const uint64_t *words; /* (n, 64): bit c of word r keeps key c for query row r */
};

struct fp_args {
    int batch, seq_len, heads, head_size, ffn;
    float eps;               /* of the layernorms */
    const int *lengths;      /* (B): rows past it are padding, never computed; null: all are S */
    float *tensor[16];       /* 0: the layer's input; 1+i: output of operator i; unused ones null */
    const float *weight[12]; /* in the chain's order, row-major (rows, columns) */
    struct fp_blocks mask;
    int knob[6]; /* knob[i]: the value of the implementation's knob i; compile-time ones unread */
};

typedef void fp_segment(const struct fp_args *a);

#endif
