/* The contract between an emitted CUDA segment and its launcher.
 *
 * One kernel runs one segment of one layer and takes one fp_args by value.  All pointers are device
 * pointers and borrowed.  Tensors have elements of the kernel's storage type: token rows (B,S,C),
 * q, k and v 3x(B,H,S,W), heads (B,H,S,W), scores (B,H,S,S). */
#ifndef FUSEPLAN_CUDA_ABI_H
#define FUSEPLAN_CUDA_ABI_H

#define FP_BLOCK 64 /* rows and columns of an attention block */

/* A function of numbers that the kernel and its host both call. */
#ifdef __CUDACC__
#define FP_CONSTANT __host__ __device__ constexpr
#else
#include <stdbool.h>
#define FP_CONSTANT static inline
#endif

/* The mask: for each block of query rows the key blocks of which it keeps an element, full blocks
 * first.  There is one list for the whole batch, or one for each batch row. */
struct fp_blocks {
    int lists, blocks;               /* lists: 1 or B; blocks: ceil(S/64) */
    const int *start;                /* (lists*blocks + 1) */
    const int *full;                 /* (lists*blocks) how many entries are full */
    const int *key_block;            /* (entries) */
    const int *bits;                 /* (entries) row of words, -1 for a full block */
    const unsigned long long *words; /* (n, 64): bit c of word r keeps key c for query row r */
    const int *order; /* (lists*blocks) query blocks, most key blocks first; null: 0, 1, ... */
};

/* The mask for kernels whose warpgroups share key blocks: lists for tiles of neighbouring query
 * blocks, as codegen/query_tiles.c makes them.  The results of the parts are joined. */
struct fp_tiles {
    int count, parts; /* count: rows of `tile`.  Each stands for a tile of every head: of all batch
                         rows where the mask has one list, else of its list's batch row */
    const int *tile;  /* (count, 4): list; query block, plus `blocks` for each part before; entries;
                         place in `rest` of entry 32 */
    const int *head;  /* (count, 32, entry): the first entries of each tile */
    const int *rest;  /* those behind them; null: joined tiles have none */
    const unsigned long long *words; /* (n, 64): as in fp_blocks */
    const int *query_token; /* (parts, blocks*64) the token of each row, -1: none; null: in order */
    const int *key_token;   /* (parts, blocks*64) likewise, of each key */
};

/* The operands of a GEMM whose kernel several segments share; its weight is in fp_maps.  Pointers
 * that its kernel does not read are null. */
struct fp_gemm {
    int columns, inner; /* N, K */
    void *in, *out, *residual;
    const void *bias, *gamma, *beta;
};

/* What a kernel reads and stores in e4m3, in the order of hopper_gemm_pairs.cuh.  A number x is
 * kept as x / scale, rounded.  Sums of products are results / alpha. */
struct fp_e4m3 {
    const void *in, *weight; /* (tokens, K); (N, K) */
    void *out;               /* (tokens, N) */
    float alpha, inverse;    /* the product of both operands' scales, a power of two; 1 / alpha */
    unsigned factors;        /* 1 / the scale of `out`, in the half type, twice */
};

struct fp_args {
    int batch, seq_len, heads, head_size, hidden, ffn;
    int tokens;         /* token rows to compute: B*S, or packed the sum of the lengths */
    const int *lengths; /* (B) real tokens; keys past them are masked; null: all S */
    /* Packed: tensors of token rows are (tokens,C), sequence after sequence without padding. */
    const int *unpacked; /* (tokens) the row in (B*S) of each; null: they are not packed */
    const int *offset;   /* (B+1) the first row of each sequence; likewise */
    const int *live;  /* how many tokens are real, where only the device knows; null: all tokens */
    float eps;        /* of the layernorms */
    int early;        /* not 0: the next kernel may begin at once, see common.cuh */
    int backwards;    /* not 0: a kernel of sm_90a takes tiles from the last rows on, because the
                         one in front took them from the first rows on: L2 has what it wrote last */
    void *tensor[17]; /* 0: the layer's input; 1+i: output of operator i; null if unused */
    const void *weight[14]; /* in the chain's order, row-major (rows, columns) */
    struct fp_blocks mask;
    struct fp_tiles tiles; /* for kernels that take the mask by tiles; else null */
    struct fp_gemm gemm;   /* for kernels that several segments share; else zeros */
    struct fp_e4m3 e4m3;   /* for kernels that read or store e4m3; else zeros */
    unsigned *sync;        /* zeroed before the first launch only.  Word 0 is the grid barrier; word
                              FP_SYNC_DRAWN counts tiles drawn and words from FP_SYNC_TILES on count
                              arrivals, and these wrap to 0 by themselves; in a GEMM whose
                              layernorm's moments go through memory they are mailboxes, words of 64
                              bits, each emptied by its reader */
    float *workspace; /* parts of sums that gemm.cuh splits: (tiles, split, BM*BN); of attention in
                         two parts log2 of each row's sum in the first: (B,H,S); cuBLASLt's own */
};

/* fp_args.backwards of the n-th launch, on a GPU with that second-level cache: every other launch
 * goes backwards where q, k and v exceed the cache. */
FP_CONSTANT int fp_goes_backwards(const struct fp_args *a, int n, int element_bytes,
                                  long cache_bytes)
{
    const long qkv = 3L * a->tokens * a->heads * a->head_size * element_bytes;
    return qkv > cache_bytes ? n % 2 : 0;
}

/* Descriptions of matrices for the tensor memory accelerator (TMA), a second argument of kernels
 * that copy by it.  cuTensorMapEncodeTiled() fills them in; a kernel needs them aligned. */
#ifdef __cplusplus
#define FP_MAP_ALIGN alignas(128)
#else
#define FP_MAP_ALIGN
#endif
struct fp_map {
    FP_MAP_ALIGN unsigned char opaque[128];
};
struct fp_maps {
    struct fp_map in, weight, out, residual;
    union {
        struct fp_map sum; /* what a norm is of, if that is stored, too */
        void *sum_rows;    /* its rows, for a kernel that does not store it by TMA */
    };
    struct fp_map e4m3; /* the result in e4m3 */
};

/* Packed rows of a product run by cuBLASLt's algorithm for the next full step of rows, so many of
 * which are all rows: an exported library, which does not know how many rows a call will have,
 * keeps one for each step. */
#define FP_ROW_STEPS 16

/* So many algorithms cuBLASLt is asked to propose.  Another number might give another list, and a
 * plan names an algorithm by its place. */
#define FP_ALGORITHMS 16

#define FP_SYNC_DRAWN 16
#define FP_SYNC_TILES 32

#endif
