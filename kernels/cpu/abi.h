/* The contract between an emitted CPU segment and its caller.
 *
 * One function runs one segment of one layer.  All pointers are borrowed.  Tensors are fp32: token
 * rows (B,S,C), q, k and v 3x(B,H,S,W), heads (B,H,S,W), scores (B,H,S,S).  The function starts its
 * own team of OpenMP threads and may be called from any thread. */
#ifndef FUSEPLAN_CPU_ABI_H
#define FUSEPLAN_CPU_ABI_H

#include <stdint.h>

#if defined __ASSOCIATIVE_MATH__ ||                                                                \
    __FINITE_MATH_ONLY__ /* as vecmath.h rounds, and softmax masks */
#error "compile without -ffast-math and -Ofast, or with -fno-fast-math: results would be wrong"
#endif

#define FP_BLOCK 64 /* rows and columns of an attention block */

/* The mask: for each block of query rows the key blocks of which it keeps an element, full blocks
 * first.  There is one list for the whole batch, or one for each batch row. */
struct fp_blocks {
    int lists, blocks;     /* lists: 1 or B; blocks: ceil(S/64) */
    const int *start;      /* (lists*blocks + 1) */
    const int *full;       /* (lists*blocks) how many entries are full */
    const int *key_block;  /* (entries) */
    const int *bits;       /* (entries) row of words, -1 for a full block */
    const uint64_t *words; /* (n, 64): bit c of word r keeps key c for query row r */
};

struct fp_args {
    int batch, seq_len, heads, head_size, hidden, ffn;
    float eps;          /* of the layernorms */
    const int *lengths; /* (B) real tokens; rows past them are never computed; null: all S */
    /* Packed: tensors of token rows are (tokens,C), sequence after sequence without padding. */
    const int *unpacked;     /* (tokens) the row in (B*S) of each; null: they are not packed */
    const int *offset;       /* (B+1) the first row of each sequence; likewise */
    float *tensor[17];       /* 0: the layer's input; 1+i: output of operator i; null if unused */
    const float *weight[14]; /* in the chain's order, row-major (rows, columns) */
    struct fp_blocks mask;
    int knob[6]; /* values of the implementation's knobs; compile-time knobs are not read */
};

typedef void fp_segment(const struct fp_args *a);

#endif
