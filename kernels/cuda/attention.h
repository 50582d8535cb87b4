/* What an attention kernel is told of its stage, and the shared memory that it takes.  C, and C++
 * for nvcc. */
#ifndef FUSEPLAN_CUDA_ATTENTION_H
#define FUSEPLAN_CUDA_ATTENTION_H

#include "abi.h"

/* The operators of a stage, which are neighbours, as bits.  The softmax masks the scores that it
 * takes, whoever computed them: FP_MASK adds nothing to it, and alone it passes scores on. */
enum fp_attention_op {
    FP_SPLIT = 1, /* q, k and v are columns of token rows, from where they are read */
    FP_BIAS = 2,  /* of FP_SPLIT */
    FP_SCORES = 4,
    FP_MASK = 8,
    FP_SOFTMAX = 16,
    FP_CONTEXT = 32,
    FP_MERGE = 64,
    FP_ROPE = 128,     /* of FP_SPLIT: q and k are turned */
    FP_BIAS_MASK = 256 /* FP_MASK, and a number for each distance is added to the scores before */
};

/* Where fp_args has the operands of a stage; null: it does not have this one.  A kernel reads the
 * pointers where it uses them, as copies would take registers all along. */
struct fp_attention {
    void *const *in;         /* q, k and v: 3x(B,H,S,W), with FP_SPLIT (B,S,3D) */
    void *const *scores;     /* (B,H,S,S) that the stage begins with: scores, or probabilities */
    const void *const *bias; /* (3D) of q, k and v */
    const void *const *rope; /* (S,W) in fp32, of FP_ROPE */
    const void *const *score_bias; /* (H,2S-1) in fp32, of FP_BIAS_MASK */
    void *const *out; /* scores or probabilities (B,H,S,S); with FP_CONTEXT (B,H,S,W), with
                         FP_MERGE (B,S,D) */
};

/* ---- bytes of shared memory ------------------------------------------------------------------
 *
 * element: bytes of one; tensor_cores: they multiply, else FFMA does. */

/* Columns that a row of attention_rows.cuh has: those behind the head's are zeros. */
FP_CONSTANT int fp_attention_columns(int head_size)
{
    return (head_size + 15) / 16 * 16;
}

/* Of four warps of attention.cuh. */
FP_CONSTANT int fp_attention_shared(int head_size, int element, bool tensor_cores)
{
    const int rows = 3 * FP_BLOCK * (fp_attention_columns(head_size) * element + 16),
              words = 2 * FP_BLOCK * 8;
    return rows + words + (tensor_cores ? 16 : 4 * 16 * (FP_BLOCK + 4) * 4);
}

/* Of handwritten.cuh.  split_keys: its warps share 16 query rows. */
FP_CONSTANT int fp_handwritten_shared(int head_size, bool tensor_cores, bool split_keys)
{
    if (!tensor_cores)
        return 16 * head_size * 4;
    return (split_keys ? 4 * 16 * (head_size + 4) * 4 : 16) + 2 * 4 * 16 * 4;
}

#endif
