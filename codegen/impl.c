#include "codegen/cuda_int.h"

#include <string.h>

/* ---- hand-written attention ------------------------------------------------------------------ */

static bool handwritten_applicable(const struct choice *c, const struct build_target *t,
                                   const char **why)
{
    (void)t;
    return segment_is_attention(c->segment) ||
           refuse(why, "the hand-written attention runs ops 2-6, no more and no less");
}

static uint16_t handwritten_tensors(const struct choice *c)
{
    return segment_outputs(c->segment);
}

/* ---- the table ------------------------------------------------------------------------------- */

/* Of CUDA's `generated` and `hopper`. */
#define CUDA_COMMON_KNOBS                                                                          \
    [CUDA_KNOB_SPLIT] = {.name = "split",                                                          \
                         .compile_time = true,                                                     \
                         .count = 4,                                                               \
                         .values = {1, 2, 4, 8}},                                                  \
    [CUDA_KNOB_NORM] = {.name = "norm",                                                            \
                        .compile_time = true,                                                      \
                        .count = 2,                                                                \
                        .values = {CUDA_NORM_BARRIER, CUDA_NORM_STRIP},                            \
                        .labels = {"barrier", "strip"}},                                           \
    [CUDA_KNOB_RESIDENT] = {                                                                       \
        .name = "resident", .compile_time = true, .count = 3, .values = {1, 3, 4}}

const struct impl impls[] = {
    {.name = "generated",
     .target = TARGET_CPU,
     .summary = "C with OpenMP: OpenBLAS on tiles with fused epilogues, attention in key blocks",
     .applicable = cpu_applicable,
     .tensors = cpu_tensors,
     .emit = emit_cpu_generated,
     .knob_count = 3,
     .knobs = {[CPU_KNOB_LOWERING] = {.name = "lowering",
                                      .compile_time = true,
                                      .count = 2,
                                      .values = {LOWERING_TILED, LOWERING_ROWWISE},
                                      .labels = {"tiled", "rowwise"}},
               [CPU_KNOB_ROW_BLOCK] = {.name = "row_block", .count = 3, .values = {256, 128, 64}},
               [CPU_KNOB_COL_BLOCK] = {.name = "col_block",
                                       .count = 3,
                                       .values = {0, 384, 192},
                                       .labels = {"even", "384", "192"}}}},
    {.name = "handwritten",
     .target = TARGET_CPU,
     .handwritten = true,
     .summary = "C with OpenMP: attention over gathered keys, 16 query rows at a time",
     .applicable = handwritten_applicable,
     .tensors = handwritten_tensors,
     .emit = emit_cpu_handwritten},
    {.name = "generated",
     .target = TARGET_CUDA,
     .summary = "mma.sync GEMMs with fused epilogues, attention in key blocks; sm_80 and later",
     .applicable = cuda_applicable,
     .tensors = cuda_tensors,
     .emit = emit_cuda_generated,
     .launch = cuda_launch,
     .knob_count = CUDA_KNOB_COUNT,
     .knobs = {[CUDA_KNOB_TILE] = {.name = "tile",
                                   .compile_time = true,
                                   .count = 6,
                                   .values = {CUDA_TILE_64X64, CUDA_TILE_128X96, CUDA_TILE_128X128,
                                              CUDA_TILE_128X192, CUDA_TILE_128X64, CUDA_TILE_32X64},
                                   .labels = {"64x64", "128x96", "128x128", "128x192", "128x64",
                                              "32x64"}},
               CUDA_COMMON_KNOBS}},
    {.name = "hopper",
     .target = TARGET_CUDA,
     .summary = "the same with warpgroup products; sm_90a, fp16 and bf16",
     .applicable = cuda_hopper_applicable,
     .tensors = cuda_tensors,
     .emit = emit_cuda_generated,
     .launch = cuda_launch,
     .knob_count = CUDA_KNOB_COUNT,
     .knobs = {[CUDA_KNOB_TILE] = {.name = "tile",
                                   .compile_time = true,
                                   .count = 5,
                                   .values = {CUDA_TILE_HOPPER_128X192, CUDA_TILE_HOPPER_256X128,
                                              CUDA_TILE_HOPPER_192X128, CUDA_TILE_HOPPER_128X128,
                                              CUDA_TILE_HOPPER_64X64},
                                   .labels = {"128x192", "256x128", "192x128", "128x128", "64x64"}},
               CUDA_COMMON_KNOBS}},
    {.name = "handwritten",
     .target = TARGET_CUDA,
     .handwritten = true,
     .summary = "attention in registers: warps share the keys of 16 query rows, or 64 rows",
     .applicable = handwritten_applicable,
     .tensors = handwritten_tensors,
     .emit = emit_cuda_handwritten,
     .launch = cuda_launch_handwritten,
     .knob_count = 1,
     .knobs = {[CUDA_HAND_KNOB_WARPS] = {.name = "warps",
                                         .compile_time = true,
                                         .count = 2,
                                         .values = {CUDA_HAND_KEYS, CUDA_HAND_ROWS},
                                         .labels = {"keys", "rows"}}}},
    {.name = "library",
     .target = TARGET_CUDA,
     .library = true,
     .summary = "cuBLASLt: a GEMM with its bias, residual or GELU in the epilogue",
     .applicable = cuda_library_applicable,
     .tensors = cuda_library_tensors,
     .emit = emit_cuda_library,
     .knob_count = 1,
     .knobs = {[CUDA_LIBRARY_KNOB_ALGORITHM] = {.name = "algorithm",
                                                .count = 8,
                                                .values = {0, 1, 2, 3, 4, 5, 6, 7}}}},
};
const int impl_count = ARRAY_LEN(impls);

const struct impl *impl_find(enum target_kind target, const char *name)
{
    for (int i = 0; i < impl_count; i++)
        if (impls[i].target == target && strcmp(impls[i].name, name) == 0)
            return &impls[i];
    return NULL;
}
