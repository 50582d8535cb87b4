#include "codegen/cuda_int.h"

static bool handwritten_applicable(const struct choice *c, const struct build_target *t,
                                   const char **why)
{
    (void)t;
    return segment_is_attention(c->segment) ||
           inapplicable(
               why, "the hand-written attention runs scores to merge_heads, no more and no less");
}

static bool cuda_handwritten_applicable(const struct choice *c, const struct build_target *t,
                                        const char **why)
{
    if (!handwritten_applicable(c, t, why))
        return false;
    return t->dtype != DTYPE_FP32 || !choice_turns(c, CUDA_HAND_KNOB_WARPS) ||
           inapplicable(why, "warps is a knob of the other types: fp32 has one kernel");
}

/* ---- the table ------------------------------------------------------------------------------- */

/* Kinds of operators. */
#define KIND(id)  (1u << KIND_##id)
#define ALL_KINDS ((1u << KIND_COUNT) - 1)
#define ATTENTION (KIND(SCORES) | KIND(SCORE_MOD) | KIND(SOFTMAX) | KIND(CONTEXT) | KIND(MERGE))

/* The values of a knob and their number. */
#define VALUES(...)             .count = ARRAY_LEN(((int[]){__VA_ARGS__})), .values = {__VA_ARGS__}

#define TILE_ROW(bm, bn, ...)   CUDA_TILE_##bm##X##bn,
#define TILE_LABEL(bm, bn, ...) #bm "x" #bn,
#define GEMM_ROW(bm, bn, step, teams, groups, cluster, swap, kept, name)                           \
    HOPPER_GEMM_##bm##X##bn##_##teams##_##cluster##_##swap##_##kept,
#define GEMM_LABEL(bm, bn, step, teams, groups, cluster, swap, kept, name) name,

/* The first implementation that serves a segment is the default: on a GPU it usually wins. */
const struct impl impls[] = {
    {.name = "generated",
     .target = TARGET_CPU,
     .kernels = ON_CPU,
     .kinds = ALL_KINDS,
     .without = 1 << ROLE_BIAS | 1 << ROLE_BETA,
     .applicable = cpu_applicable,
     .tensors = cpu_tensors,
     .emit = emit_cpu_generated,
     .knob_count = 3,
     .knobs = {[CPU_KNOB_LOWERING] = {.name = "lowering",
                                      .compile_time = true,
                                      VALUES(LOWERING_TILED, LOWERING_ROWWISE),
                                      .labels = {"tiled", "rowwise"}},
               [CPU_KNOB_ROW_BLOCK] = {.name = "row_block", VALUES(256, 128, 64)},
               [CPU_KNOB_COL_BLOCK] = {.name = "col_block",
                                       VALUES(0, 384, 192),
                                       .labels = {"even", "384", "192"}}}},
    {.name = "handwritten",
     .target = TARGET_CPU,
     .kernels = ON_CPU,
     .kinds = ATTENTION,
     .handwritten = true,
     .applicable = handwritten_applicable,
     .emit = emit_cpu_handwritten},
    {.name = "hopper_gemm",
     .target = TARGET_CUDA,
     .kernels = ON_HOPPER,
     .kinds = KIND(MERGE) | KIND(GEMM) | KIND(SPLIT) | KIND(ADD) | KIND(ACTIVATION) | KIND(GATE) |
              KIND(NORM),
     .applicable = hopper_gemm_applicable,
     .e4m3 = 1 << GEMM_QKV | 1 << GEMM_OUT | 1 << GEMM_FFN1 | 1 << GEMM_FFN2,
     .tensors = hopper_gemm_tensors,
     .add_name = add_gemm_name,
     .emit = emit_hopper_gemm,
     .launch = hopper_gemm_launch,
     .expected_us = hopper_gemm_expected_us,
     .knob_count = HOPPER_GEMM_KNOB_COUNT,
     .knobs = {[HOPPER_GEMM_KNOB_TILE] = {.name = "tile",
                                          .compile_time = true,
                                          VALUES(HOPPER_GEMM_TILES(GEMM_ROW)),
                                          .labels = {HOPPER_GEMM_TILES(GEMM_LABEL)}},
               [HOPPER_GEMM_KNOB_SPLIT] = {.name = "split", .compile_time = true, VALUES(1, 2, 4)},
               [HOPPER_GEMM_KNOB_NORM] = {.name = "norm",
                                          .compile_time = true,
                                          VALUES(FP_NORM_CLUSTER, FP_NORM_MEMORY),
                                          .labels = {"cluster", "memory"}}}},
    {.name = "library",
     .target = TARGET_CUDA,
     .kernels = ON_CUBLASLT,
     .kinds = KIND(GEMM) | KIND(ADD) | KIND(ACTIVATION),
     .library = true,
     .applicable = cuda_library_applicable,
     .e4m3 = 1 << GEMM_QKV | 1 << GEMM_OUT | 1 << GEMM_FFN1 | 1 << GEMM_FFN2,
     .emit = emit_cuda_library,
     .knob_count = 1,
     .knobs = {[CUDA_LIBRARY_KNOB_ALGORITHM] = {.name = "algorithm",
                                                VALUES(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13,
                                                       14, 15)}}},
    {.name = "hopper_attention",
     .target = TARGET_CUDA,
     .kernels = ON_HOPPER,
     .kinds = KIND(SPLIT) | ATTENTION,
     .e4m3 = 1 << GEMM_OUT,
     .applicable = hopper_attention_applicable,
     .emit = emit_hopper_attention,
     .launch = hopper_attention_launch,
     .expected_us = hopper_attention_expected_us,
     .knob_count = HOPPER_ATTENTION_KNOB_COUNT,
     .knobs =
         {[HOPPER_ATTENTION_KNOB_SHAPE] =
              {.name = "shape",
               .compile_time = true,
               VALUES(HOPPER_ATTENTION_64, HOPPER_ATTENTION_64_OVERLAP, HOPPER_ATTENTION_64_SPLIT,
                      HOPPER_ATTENTION_64_CLUSTER, HOPPER_ATTENTION_128, HOPPER_ATTENTION_192,
                      HOPPER_ATTENTION_192_TMA),
               .labels = {"64", "64_overlap", "64_split", "64_cluster", "128", "192", "192_tma"}},
          [HOPPER_ATTENTION_KNOB_COVER] = {.name = "cover",
                                           .compile_time = true,
                                           VALUES(HOPPER_COVER_PLAIN, HOPPER_COVER_ORDERED,
                                                  HOPPER_COVER_JOINED),
                                           .labels = {"plain", "ordered", "joined"}}}},
    {.name = "generated",
     .target = TARGET_CUDA,
     .kernels = ON_MMA,
     .kinds = ALL_KINDS,
     .without = 1 << ROLE_BIAS,
     .applicable = cuda_applicable,
     .tensors = cuda_tensors,
     .emit = emit_cuda_generated,
     .launch = cuda_launch,
     .knob_count = CUDA_KNOB_COUNT,
     .knobs = {[CUDA_KNOB_TILE] = {.name = "tile",
                                   .compile_time = true,
                                   VALUES(CUDA_TILES(TILE_ROW)),
                                   .labels = {CUDA_TILES(TILE_LABEL)}},
               [CUDA_KNOB_SPLIT] = {.name = "split", .compile_time = true, VALUES(1, 2, 4, 8)},
               [CUDA_KNOB_NORM] = {.name = "norm",
                                   .compile_time = true,
                                   VALUES(CUDA_NORM_BARRIER, CUDA_NORM_STRIP),
                                   .labels = {"barrier", "strip"}},
               [CUDA_KNOB_RESIDENT] = {.name = "resident", .compile_time = true, VALUES(1, 3, 4)}}},
    {.name = "handwritten",
     .target = TARGET_CUDA,
     .kernels = ON_MMA,
     .kinds = ATTENTION,
     .handwritten = true,
     .applicable = cuda_handwritten_applicable,
     .emit = emit_cuda_handwritten,
     .launch = cuda_launch_handwritten,
     .knob_count = 1,
     .knobs = {[CUDA_HAND_KNOB_WARPS] = {.name = "warps",
                                         .compile_time = true,
                                         VALUES(CUDA_HAND_KEYS, CUDA_HAND_ROWS),
                                         .labels = {"keys", "rows"}}}},
};
const int impl_count = ARRAY_LEN(impls);
_Static_assert(ARRAY_LEN(impls) <= IMPLS_MAX, "the implementations");

const struct impl *impl_find(enum target_kind target, const char *name)
{
    for (int i = 0; i < impl_count; i++)
        if (impls[i].target == target && strcmp(impls[i].name, name) == 0)
            return &impls[i];
    return NULL;
}
