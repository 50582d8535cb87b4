/* CUDA: a segment's stages, its source text, and how to launch its kernel. */
#pragma once

#include "codegen/codegen_int.h"
#include "kernels/cuda/gemm.h"
#include "kernels/cuda/hopper_attention.h"
#include "kernels/cuda/hopper_gemm.h"

static inline int64_t max_of(int64_t a, int64_t b)
{
    return a > b ? a : b;
}

static inline int64_t ceil_div(int64_t a, int64_t b)
{
    return (a + b - 1) / b;
}

/* As C writes it. */
static inline const char *truth(bool value)
{
    return value ? "true" : "false";
}

/* ---- cuda.c: stages, and which choices are applicable ---------------------------------------- */

/* The knobs of CUDA's `generated`, in the order of its row in impls[]. */
enum cuda_knob {
    CUDA_KNOB_TILE,     /* enum cuda_tile_row */
    CUDA_KNOB_SPLIT,    /* thread blocks that share a tile's inner dimension */
    CUDA_KNOB_NORM,     /* enum cuda_norm */
    CUDA_KNOB_RESIDENT, /* without a GEMM: thread blocks for which registers must suffice */
    CUDA_KNOB_COUNT
};

/* How a layernorm follows a GEMM. */
enum cuda_norm {
    CUDA_NORM_BARRIER, /* as a stage of its own, behind a grid barrier */
    CUDA_NORM_STRIP    /* the thread block that stores the last tile of a row strip normalises it */
};

/* The knob of CUDA's `handwritten`: its four warps share the keys of 16 query rows, or take 16 of
 * 64 query rows each. */
enum cuda_hand_knob { CUDA_HAND_KNOB_WARPS };
enum cuda_hand_warps { CUDA_HAND_KEYS, CUDA_HAND_ROWS };

/* Threads of a thread block without a GEMM: four warps, which take one block of query rows. */
enum { CUDA_ATTENTION_THREADS = 128 };

/* Tiles of GEMMs by mma.sync, X(bm, bn, warps_m, warps_n, depth), the default first.  Depths are
 * the fastest that was tried on an H200. */
#define CUDA_TILES(X)                                                                              \
    X(64, 64, 2, 2, 3)                                                                             \
    X(128, 96, 2, 2, 3)                                                                            \
    X(128, 128, 2, 2, 3)                                                                           \
    X(128, 192, 2, 4, 3)                                                                           \
    X(128, 64, 2, 2, 3)                                                                            \
    X(32, 64, 2, 2, 4)

enum cuda_tile_row {
#define X(bm, bn, ...) CUDA_TILE_##bm##X##bn,
    CUDA_TILES(X)
#undef X
};

/* A stage of a CUDA kernel.  Unlike a struct stage, a GEMM may begin with the merge of heads, which
 * its loader does, and end with the layernorm of finished row strips. */
struct cuda_stage {
    const struct chain *chain;
    enum stage_kind kind;
    int8_t first, last;
    bool norm_strip; /* operator `last` is a layernorm of row strips */
};

/* What a choice's kernel is made of.  Stages meet at grid barriers. */
struct cuda_kernel {
    struct cuda_stage stages[OP_COUNT];
    int count;
    int of_kind[STAGE_ATTENTION + 1]; /* how many stages, by enum stage_kind */
    const struct fp_gemm_tile *tile;  /* of its GEMMs */
    int split;
    int threads, resident; /* of its launch bounds */
};

void cuda_kernel_of(const struct choice *c, struct cuda_kernel *out);

/* Returns the number of stages.  norm: enum cuda_norm. */
int cuda_stages_of(const struct chain *chain, struct segment s, int norm,
                   struct cuda_stage out[OP_COUNT]);

/* The GEMM operator of a GEMM stage, the last operator whose result the GEMM itself stores, and
 * that one if it is not the GEMM; else null. */
int cuda_gemm_op(const struct cuda_stage *s);
int cuda_gemm_stored(const struct cuda_stage *s);
const struct op *cuda_gemm_ending(const struct cuda_stage *s);

/* The weight of its GEMM, and how many columns and rows that has. */
int cuda_gemm_weight(const struct cuda_stage *s);
int64_t cuda_gemm_columns(const struct cuda_stage *s, const struct workload *w);
int64_t cuda_gemm_inner(const struct cuda_stage *s, const struct workload *w);

/* Bytes of dynamic shared memory of a thread block. */
int cuda_shared_bytes(const struct cuda_kernel *k, enum dtype dtype, int head_size);

bool cuda_applicable(const struct choice *c, const struct build_target *t, const char **why);
uint32_t cuda_tensors(const struct choice *c);

/* ---- hopper_attention.c: whole attention on Hopper ----------------------------------------------
 *
 * `hopper_attention` runs scores to context by wgmma, with the split of heads before and their
 * merge after or without them. */

/* Its knobs. */
enum hopper_attention_knob {
    HOPPER_ATTENTION_KNOB_SHAPE, /* enum hopper_attention_row */
    HOPPER_ATTENTION_KNOB_COVER, /* enum hopper_attention_cover */
    HOPPER_ATTENTION_KNOB_COUNT
};
enum hopper_attention_cover {
    HOPPER_COVER_PLAIN,
    HOPPER_COVER_ORDERED,
    HOPPER_COVER_JOINED /* tiles of neighbouring token rows, of several sequences */
};

/* Its shapes, named by the query rows of a tile. */
enum hopper_attention_row {
    HOPPER_ATTENTION_64,
    HOPPER_ATTENTION_64_OVERLAP, /* the next scores run beside the softmax */
    HOPPER_ATTENTION_64_SPLIT,   /* two warpgroups take half of the keys each */
    HOPPER_ATTENTION_64_CLUSTER, /* two thread blocks do, and overlap */
    HOPPER_ATTENTION_128,
    HOPPER_ATTENTION_192,     /* three blocks share the keys; heads of 64 overlap */
    HOPPER_ATTENTION_192_TMA, /* the same, for long lists: TMA copies k and v */
    HOPPER_ATTENTION_COUNT
};

/* Of a choice of `hopper_attention`; false for a head size that it does not take. */
bool hopper_attention_of(const struct choice *c, int head_size, struct fp_hopper_attention *out);

bool hopper_attention_applicable(const struct choice *c, const struct build_target *t,
                                 const char **why);
void hopper_attention_launch(const struct choice *c, const struct workload *w,
                             struct cuda_launch *out);

/* ---- hopper_gemm.c: GEMMs on Hopper -------------------------------------------------------------
 *
 * `hopper_gemm` runs a segment that is one GEMM with its elementwise operators, by wgmma and TMA. A
 * layernorm may follow: then a group of thread blocks takes the tiles of a row strip. */

/* Its knobs. */
enum hopper_gemm_knob {
    HOPPER_GEMM_KNOB_TILE,  /* enum hopper_gemm_row */
    HOPPER_GEMM_KNOB_SPLIT, /* thread blocks of a cluster that share a tile's inner dimension */
    HOPPER_GEMM_KNOB_NORM,  /* enum fp_norm */
    HOPPER_GEMM_KNOB_COUNT
};

/* Its tiles, X(bm, bn, step, teams, groups, cluster, swap, kept, name): a step is that much of the
 * inner dimension, 64 or 128; the warpgroups of a team share the rows of a tile, 64 or more each;
 * two teams take tiles in turn.  The thread blocks of a cluster take tiles one below the other, and
 * load the weight for each other.  swap: the weight is the first operand of wgmma, so that bm need
 * be no multiple of 64, and the warpgroups share the columns.  kept: steps of the weight that a
 * thread block keeps, of e4m3.  Where a name says which of two tiles of a size is meant, "pingpong"
 * and "cooperative" are CUTLASS's words for two teams and for one of two warpgroups.  The default
 * first. */
#define HOPPER_GEMM_TILES(X)                                                                       \
    X(128, 192, 64, 2, 1, 1, 0, 0, "128x192")                                                      \
    X(128, 192, 64, 1, 2, 1, 0, 0, "128x192_cooperative")                                          \
    X(64, 64, 128, 2, 1, 1, 0, 0, "64x64")                                                         \
    X(64, 96, 128, 2, 1, 1, 0, 0, "64x96")                                                         \
    X(64, 128, 64, 2, 1, 1, 0, 0, "64x128")                                                        \
    X(64, 192, 64, 2, 1, 1, 0, 0, "64x192")                                                        \
    X(128, 128, 64, 2, 1, 1, 0, 0, "128x128")                                                      \
    X(128, 256, 64, 1, 2, 1, 0, 0, "128x256")                                                      \
    X(192, 128, 64, 1, 3, 1, 0, 0, "192x128")                                                      \
    X(192, 192, 64, 1, 3, 1, 0, 0, "192x192")                                                      \
    X(64, 96, 128, 2, 1, 2, 0, 0, "64x96_cluster2x1")                                              \
    X(16, 128, 128, 1, 2, 1, 1, 0, "16x128_swap")                                                  \
    X(96, 128, 64, 1, 2, 1, 1, 0, "96x128_swap")                                                   \
    X(96, 192, 64, 2, 1, 1, 1, 0, "96x192_swap_pingpong")                                          \
    X(144, 128, 64, 1, 2, 1, 1, 0, "144x128_swap")                                                 \
    X(128, 192, 64, 2, 1, 1, 0, 6, "128x192_kept")

enum hopper_gemm_row {
#define X(bm, bn, step, teams, groups, cluster, swap, kept, name)                                  \
    HOPPER_GEMM_##bm##X##bn##_##teams##_##cluster##_##swap##_##kept,
    HOPPER_GEMM_TILES(X)
#undef X
};

/* Of a choice of `hopper_gemm`: its stage and the kernel's configuration; false as
 * hopper_gemm_stage(). */
bool hopper_gemm_of(const struct choice *c, struct cuda_stage *stage, struct fp_hopper_gemm *out);

/* The stage of a segment that is one GEMM with its epilogue, a layernorm included; false if it is
 * anything else. */
bool hopper_gemm_stage(const struct chain *chain, struct segment s, struct cuda_stage *out);

uint32_t hopper_gemm_tensors(const struct choice *c);
bool hopper_gemm_applicable(const struct choice *c, const struct build_target *t, const char **why);
void hopper_gemm_launch(const struct choice *c, const struct workload *w, struct cuda_launch *out);

/* ---- cuda_library.c: segments that cuBLASLt runs --------------------------------------------- */

/* The knob of CUDA's `library`: index in the list of algorithms that cuBLASLt proposes. */
enum cuda_library_knob { CUDA_LIBRARY_KNOB_ALGORITHM };

bool cuda_library_applicable(const struct choice *c, const struct build_target *t,
                             const char **why);
void emit_cuda_library(const struct choice *c, const struct build_target *t, struct buf *out);

/* ---- cuda_expected.c: expected times of schedules -------------------------------------------- */

double hopper_gemm_expected_us(const struct choice *c, const struct workload *w);
double hopper_attention_expected_us(const struct choice *c, const struct workload *w);

/* ---- cuda_launch.c --------------------------------------------------------------------------- */

void cuda_launch(const struct choice *c, const struct workload *w, struct cuda_launch *out);
void cuda_launch_handwritten(const struct choice *c, const struct workload *w,
                             struct cuda_launch *out);

/* ---- emit_cuda_head.c ------------------------------------------------------------------------ */

/* What the sources of all kernels share: element type and head size; the kernel's head. resident:
 * thread blocks on a multiprocessor for which registers must suffice; cluster: thread blocks of a
 * cluster; parameters: such as "fp_args a"; the first becomes a __grid_constant__. */
void add_types(const struct build_target *t, struct buf *out);
void open_kernel(const struct choice *c, int threads, int resident, int cluster,
                 const char *parameters, struct buf *out);

/* ---- emit_cuda.c ----------------------------------------------------------------------------- */

void emit_cuda_generated(const struct choice *c, const struct build_target *t, struct buf *out);

/* ---- emit_cuda_stage.c ----------------------------------------------------------------------- */

/* One line for people: what the stage does. */
const char *cuda_stage_summary(const struct cuda_stage *s);

/* Appends the function that runs the stage. */
void emit_cuda_stage(const struct cuda_stage *s, int threads, struct buf *out);

/* ---- emit_cuda_attention.c ------------------------------------------------------------------- */

/* Appends the statements of a stage of `generated`. */
void add_attention_stage(const struct cuda_stage *s, int threads, struct buf *out);

void emit_cuda_handwritten(const struct choice *c, const struct build_target *t, struct buf *out);
void emit_hopper_attention(const struct choice *c, const struct build_target *t, struct buf *out);

/* Appends the value of a configuration. */
void add_hopper_attention(const struct fp_hopper_attention *k, struct buf *out);

/* ---- emit_hopper_gemm.c ---------------------------------------------------------------------- */

/* "gemm_bias_residual_layernorm": what the GEMM of a segment computes. */
void add_gemm_name(const struct choice *c, struct buf *out);

/* Appends the initialiser of the kernel's configuration. */
void add_hopper_gemm(const struct fp_hopper_gemm *g, struct buf *out);

void emit_hopper_gemm(const struct choice *c, const struct build_target *t, struct buf *out);
