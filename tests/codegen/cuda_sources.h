/* Choices of the CUDA target for the suites that look at them and for the tool that writes down
 * their sources. */
#ifndef FUSEPLAN_TESTS_CUDA_SOURCES_H
#define FUSEPLAN_TESTS_CUDA_SOURCES_H

#include "codegen/codegen.h"
#include "tests/candidate.h"

enum { CUDA_CHOICES_MAX = 128 };

struct cuda_source {
    struct build_target target;
    struct choice choice;
};

/* The sources kept in tests/golden/: one of each kind of stage, implementation and element type. */
enum { CUDA_GOLDEN_COUNT = 17 };

static inline struct cuda_source cuda_golden(int i)
{
    static const struct {
        struct segment segment;
        const char *impl, *schedule;
        enum dtype dtype;
        int head_size, arch;
    } golden[CUDA_GOLDEN_COUNT] = {
        {{1, 6}, "generated", "resident=4", DTYPE_BF16, 64, 80},
        {{1, 6}, "hopper_attention", "shape=128", DTYPE_FP16, 64, CUDA_ARCH_HOPPER},
        {{1, 6}, "hopper_attention", "shape=64 cover=joined", DTYPE_BF16, 72, CUDA_ARCH_HOPPER},
        {{2, 6}, "hopper_attention", "shape=192_tma", DTYPE_FP16, 64, CUDA_ARCH_HOPPER},
        {{2, 6}, "handwritten", "warps=keys", DTYPE_FP16, 64, 80},
        {{3, 4}, "generated", "", DTYPE_FP32, 32, 80},
        {{6, 9}, "generated", "", DTYPE_FP16, 64, 80},
        {{7, 8}, "library", "", DTYPE_FP16, 64, 80},
        {{10, 11}, "generated", "tile=128x192 split=2", DTYPE_TF32, 128, 80},
        {{10, 11}, "hopper_gemm", "tile=96x192_swap_pingpong", DTYPE_BF16, 64, CUDA_ARCH_HOPPER},
        {{12, 13}, "hopper_gemm", "tile=64x64 split=4", DTYPE_FP16, 64, CUDA_ARCH_HOPPER},
        {{6, 9}, "hopper_gemm", "norm=memory", DTYPE_FP16, 64, CUDA_ARCH_HOPPER},
        {{12, 14}, "hopper_gemm", "tile=128x128 norm=memory", DTYPE_BF16, 64, CUDA_ARCH_HOPPER},
        {{12, 14}, "generated", "norm=strip", DTYPE_FP16, 64, CUDA_ARCH_HOPPER},
        {{10, 11},
         "hopper_gemm",
         "tile=64x128 split=2 e4m3=ffn1+ffn2",
         DTYPE_BF16,
         64,
         CUDA_ARCH_HOPPER},
        {{12, 14},
         "hopper_gemm",
         "tile=64x64 split=4 norm=memory e4m3=qkv+ffn2",
         DTYPE_FP16,
         64,
         CUDA_ARCH_HOPPER},
        {{0, 1}, "hopper_gemm", "tile=128x192_kept e4m3=qkv", DTYPE_FP16, 64, CUDA_ARCH_HOPPER}};
    struct cuda_source s = {{.chain = &chain_bert,
                             .kind = TARGET_CUDA,
                             .dtype = golden[i].dtype,
                             .head_size = golden[i].head_size,
                             .arch = golden[i].arch,
                             .library = true,
                             .ordered = true},
                            {.chain = &chain_bert,
                             .segment = golden[i].segment,
                             .impl = impl_find(TARGET_CUDA, golden[i].impl)}};
    struct status st = STATUS_INIT;
    schedule_parse(s.choice.impl, golden[i].schedule, &s.choice.schedule, &st);
    return s;
}

#endif
