/* CUDA: a segment's stages, its source text, and how to launch what it compiles to. */
#ifndef FUSEPLAN_CUDA_INT_H
#define FUSEPLAN_CUDA_INT_H

#include "codegen/codegen_int.h"

/* ---- cuda.c: stages, and what may be asked for ----------------------------------------------- */

/* The knobs of CUDA's `generated` and `hopper`, in the order of their rows in impls[]. */
enum cuda_knob {
    CUDA_KNOB_TILE,     /* row of cuda_tiles */
    CUDA_KNOB_SPLIT,    /* thread blocks that share a tile's inner dimension */
    CUDA_KNOB_NORM,     /* enum cuda_norm */
    CUDA_KNOB_RESIDENT, /* without a GEMM: thread blocks of a multiprocessor that registers allow */
    CUDA_KNOB_COUNT
};

enum cuda_norm {
    CUDA_NORM_BARRIER, /* all thread blocks meet, then rows are dealt out anew */
    CUDA_NORM_STRIP    /* whoever stores a row strip's last tile normalises it */
};

/* The knob of CUDA's `handwritten`: what its four warps share of 16 or 64 query rows. */
enum cuda_hand_knob { CUDA_HAND_KNOB_WARPS };
enum cuda_hand_warps { CUDA_HAND_KEYS, CUDA_HAND_ROWS };

/* Threads of a thread block that has no GEMM: the four warps of one attention block. */
enum { CUDA_ATTENTION_THREADS = 128 };

/* bm x bn tokens by columns, shared by warps_m x warps_n warps. */
struct cuda_tile {
    int bm, bn, warps_m, warps_n;
    int depth;    /* buffers, each of CUDA_STEP_BYTES of the inner dimension */
    int resident; /* thread blocks of a multiprocessor that registers must suffice for */
};

/* Bytes of the inner dimension that one step of a GEMM takes: BK of the kernels. */
enum { CUDA_STEP_BYTES = 128 };

/* Rows of cuda_tiles: those of mma.sync, then those of Hopper's warpgroup products. */
enum cuda_tile_row {
    CUDA_TILE_64X64,
    CUDA_TILE_128X96,
    CUDA_TILE_128X128,
    CUDA_TILE_128X192,
    CUDA_TILE_128X64,
    CUDA_TILE_32X64,
    CUDA_TILE_HOPPER,
    CUDA_TILE_HOPPER_128X192 = CUDA_TILE_HOPPER,
    CUDA_TILE_HOPPER_256X128,
    CUDA_TILE_HOPPER_192X128,
    CUDA_TILE_HOPPER_128X128,
    CUDA_TILE_HOPPER_64X64,
    CUDA_TILE_COUNT
};

/* A stage of a CUDA kernel: as lower.c gives it, but a GEMM may start with the merge of heads,
 * which its loader does, and may end with the layernorm of finished row strips. */
struct cuda_stage {
    enum stage_kind kind;
    int8_t first, last;
    bool norm_strip; /* operator `last` is a layernorm done strip by strip */
};

/* A choice as its kernel sees it.  Grid barriers stand between stages. */
struct cuda_kernel {
    struct cuda_stage stages[OP_COUNT];
    int count;
    bool has[STAGE_ATTENTION + 1]; /* by enum stage_kind */
    const struct cuda_tile *tile;  /* of its GEMMs */
    bool wgmma;                    /* the tile is Hopper's */
    int split;
    int threads, resident; /* of its launch bounds */
};

void cuda_kernel_of(const struct choice *c, struct cuda_kernel *out);

/* The GEMM operator of a GEMM stage, and the last operator whose result the GEMM itself stores. */
int cuda_gemm_op(const struct cuda_stage *s);
int cuda_gemm_stored(const struct cuda_stage *s);

bool cuda_applicable(const struct choice *c, const struct build_target *t, const char **why);
bool cuda_hopper_applicable(const struct choice *c, const struct build_target *t, const char **why);
uint16_t cuda_tensors(const struct choice *c);

/* ---- cuda_shared.c --------------------------------------------------------------------------- */

/* Dynamic shared memory of a thread block: of a kernel, and of the hand-written attention, whose
 * warps share 16 query rows (split_keys) or take 16 each. */
int cuda_shared_bytes(const struct cuda_kernel *k, enum dtype dtype, int head_size);
int cuda_hand_shared_bytes(enum dtype dtype, int head_size, bool split_keys);

/* ---- cuda_library.c: segments that cuBLASLt runs --------------------------------------------- */

/* The knob of CUDA's `library`: place in the library's own list of algorithms, best guess first. */
enum cuda_library_knob { CUDA_LIBRARY_KNOB_ALGORITHM };

bool cuda_library_applicable(const struct choice *c, const struct build_target *t,
                             const char **why);
uint16_t cuda_library_tensors(const struct choice *c);
void emit_cuda_library(const struct choice *c, const struct build_target *t, struct buf *out);

/* ---- cuda_launch.c --------------------------------------------------------------------------- */

void cuda_launch(const struct choice *c, const struct workload *w, struct cuda_launch *out);
void cuda_launch_handwritten(const struct choice *c, const struct workload *w,
                             struct cuda_launch *out);

/* ---- emit_cuda.c ----------------------------------------------------------------------------- */

void emit_cuda_generated(const struct choice *c, const struct build_target *t, struct buf *out);
void emit_cuda_handwritten(const struct choice *c, const struct build_target *t, struct buf *out);

/* ---- emit_cuda_stage.c ----------------------------------------------------------------------- */

/* One line for people: what the stage does. */
const char *cuda_stage_summary(const struct cuda_stage *s);

/* Appends the function that runs the stage. */
void emit_cuda_stage(const struct cuda_stage *s, int threads, struct buf *out);

#endif
