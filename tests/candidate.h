/* Targets, and a plan by defaults, as it runs where nothing was measured. */
#ifndef FUSEPLAN_TESTS_CANDIDATE_H
#define FUSEPLAN_TESTS_CANDIDATE_H

#include "codegen/codegen.h"

/* Of a build_target: BERT's layers in fp16, with heads of 64, on a Hopper GPU. */
#define HOPPER_FP16                                                                                \
    .chain = &chain_bert, .kind = TARGET_CUDA, .dtype = DTYPE_FP16, .head_size = 64,               \
    .arch = CUDA_ARCH_HOPPER

static inline void candidate_default(const struct build_target *t, struct plan p,
                                     struct candidate *out)
{
    struct segment segments[OP_COUNT];
    *out = (struct candidate){.plan = p, .count = plan_segments(p, segments)};
    for (int i = 0; i < out->count; i++)
        choices_for(t, segments[i], p.handwritten, 1, &out->choices[i]);
}

#endif
