/* How a segment of a plan is launched on a GPU.  C, and C++ for nvcc; arrays are in host memory. */
#ifndef SEGMENT_H
#define SEGMENT_H

#include "abi.h"
#include "encoder.h"
#include "joined.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The mask by tiles of query blocks, see fp_tiles of abi.h.  Null words: the words of the mask. */
struct plan_tiles {
    int count, parts, rows, entry_ints; /* rows: query blocks of a tile; ints of an entry */
    const int *tile, *head, *rest;
    const fp_word *words;
    const int *query_token, *key_token;
    long rest_entries, word_blocks, tokens;
    /* Of joined rows, whose tiles are made in each call; most = 0: there are none. */
    int left, right, most; /* keys that a token keeps on each side; the most entries of a tile */
};

/* A matrix that a kernel copies by TMA.  size[0] = 0: none. */
enum { PLAN_MAP_SUM = 4, PLAN_MAP_E4M3, PLAN_MAPS };
struct plan_map {
    bool weight; /* else a tensor */
    int index;
    uint64_t size[2]; /* columns, rows */
    unsigned box[2];
    bool e4m3;  /* it is in fp_args.e4m3 */
    bool dealt; /* a box's 64 rows are dealt out, see maps.c */
};

/* What fp_args.gemm names to a kernel that copies by TMA.  Segments that share a kernel differ in
 * it alone. */
struct plan_gemm {
    int columns, inner;
    int in, out, residual; /* tensors; residual -1: none */
    int bias, gamma, beta; /* weights; -1: none */
};

/* out (rows, columns) = in (rows, inner) @ weight (inner, columns) + bias (columns) + residual, or
 * GELU of that in its tanh form, by cuBLASLt.  plan_segment.e4m3 says what of it is in e4m3. */
struct plan_product {
    const struct product_calls *by; /* products.c */
    int in, out, residual;          /* tensors; residual -1: none */
    int weight, bias;               /* bias -1: none */
    int epilogue;                   /* cublasLtEpilogue_t */
    long rows, inner, columns;
    long tuned_rows; /* fewer than rows: of packed tensors */
    int algorithm;   /* in the list that cuBLASLt proposes for their step */
};

/* GEMMs, numbered in order: wqkv, wo, w1, w2. */
enum { PLAN_GEMMS = 4 };

/* What a segment has in e4m3.  Places are as those of struct plan. */
struct plan_e4m3 {
    int in;  /* the GEMM that it runs on operands of e4m3; -1: none */
    int out; /* the GEMM whose input it stores so; -1: none */
    long in_at, out_at;
};

/* Of a calibration: by which inputs of GEMMs are kept in e4m3. */
struct plan_scales {
    int layers;               /* 0: no GEMM has operands of e4m3 */
    unsigned long long model; /* the fingerprint of the weights, see e4m3.h */
    const float (*in)[PLAN_GEMMS];
};
extern const struct plan_scales encoder_scales; /* plans.c */

struct plan_segment {
    const void *kernel;          /* null: it runs as a product */
    int threads, shared_bytes;   /* of a thread block */
    bool cooperative;            /* thread blocks meet in it */
    bool persistent;             /* no more thread blocks than the GPU holds at once */
    bool at_once;                /* all thread blocks: they wait for each other */
    int cluster;                 /* thread blocks; 0: the launch gives none */
    const struct plan_map *maps; /* (PLAN_MAPS); null: it takes none */
    struct plan_gemm gemm;       /* with maps */
    long tiles;                  /* more thread blocks would idle */
    long sync_words, workspace_bytes;
    const struct plan_product *product;
    struct plan_e4m3 e4m3;
};

/* Words that a call begins with as zeros. */
struct fp_clearing {
    unsigned *words;
    int count;
};

/* Lengths that are on the device already, for the plan's batch. */
struct fp_given_lengths {
    int batch, seq_len; /* the call's */
    int count;          /* the plan's batch */
    const int *from;    /* (batch); null: there are none */
    int *to;            /* (count) */
};

/* Lists of blocks for the lengths of a call, all in device memory: see lengths.cu. */
struct fp_cut_lists {
    struct fp_clearing clearing;
    struct fp_given_lengths given; /* they become `lengths` */
    int batch, seq_len;
    const int *lengths; /* (batch) */
    struct fp_blocks from;
    int from_words; /* blocks of its words, which `words` begins with */
    int *start, *full, *key_block, *bits;
    fp_word *words;
    int *unpacked, *offset; /* as in fp_args; null: they are not made */
};

/* The rows of a call's x or y and where the layers have them, in pieces of 16 bytes. */
struct fp_moving {
    int batch, seq_len; /* the call's */
    int pieces;         /* of a row */
    bool in;            /* real rows to the layers; else back, and zeros to the call's other rows */
    const int *lengths;
    const int *offset; /* the layers' first row of each sequence; null: sequence * pitch */
    const int *place;  /* of the call's rows, as in run_space; null: tokens lie first, in order */
    int pitch;
    void *call, *layers; /* the same: there are only zeros to write */
};

/* The norm before the first layer, as encoder.h says. */
struct fp_normalising {
    int rows, columns;
    int dtype; /* enum encoder_dtype */
    bool rms;
    float eps;
    const int *live;              /* as in fp_args */
    const void *x, *gamma, *beta; /* gamma null: n is x */
    void *n;
};

/* A call of encoder_embed(). */
struct fp_embedding {
    struct encoder_embedding call;
    int columns;
    enum encoder_dtype dtype;
};

/* Rows in a half type to codes of e4m3. */
struct fp_quantising {
    int rows, columns;
    int dtype;       /* enum encoder_dtype */
    const int *live; /* as in fp_args */
    float inverse;   /* 1 / the scale */
    const void *x;
    void *codes;
};

struct fp_cut_tiles {
    int batch, seq_len, blocks, lists; /* blocks, lists: of the mask */
    const int *lengths;
    struct fp_tiles from;
    int rows, entry_ints, rest_entries;
    int from_words;
    int *tile, *head, *rest;
    fp_word *words;
};

/* A call's lengths and counters, in the workspace. */
struct run_space {
    size_t sync_bytes; /* of fp_args.sync */
    int *lengths;
    int *unpacked, *offset; /* as in fp_args */
    int *place; /* (batch, seq_len of the call): where tokens lie in a sequence, then all others */
};

/* A call's mask, of which lengths and places are made. */
struct fp_reading {
    int batch, seq_len; /* the call's */
    int count;          /* the plan's batch */
    const long long *mask;
    int *lengths; /* (count) */
    int *place;   /* (batch, seq_len) */
};

/* The mask of a kind of layers in a call, and space in the workspace for lists for its lengths. */
struct run_mask {
    struct fp_blocks lists; /* as in fp_args */
    struct fp_tiles tiles;  /* likewise */
    struct fp_cut_lists cut_lists;
    struct fp_cut_tiles cut_tiles;
    struct fp_join_tiles join_tiles;
};

/* Lengths go to the device as arguments of a kernel, so that a call neither copies from memory that
 * must stay nor waits. */
enum { FP_LENGTHS_CHUNK = 512 };
struct fp_lengths_chunk {
    int count;
    int *to;
    int value[FP_LENGTHS_CHUNK];
};

#endif
