/* How a segment of a plan runs on a CPU. */
#ifndef SEGMENT_H
#define SEGMENT_H

#include "abi.h"

typedef uint64_t fp_word; /* of the mask */

struct plan_segment {
    fp_segment *run;
    int knob[6];
};

/* A call's lengths, in the workspace. */
struct run_space {
    int *lengths;           /* (the plan's batch) */
    int *unpacked, *offset; /* as in fp_args */
};

/* The mask of a kind of layers in a call, and space in the workspace for lists for its lengths. */
struct run_mask {
    struct fp_blocks lists; /* as in fp_args */
    int *start, *full, *key_block, *bits;
    fp_word *words;
};

#endif
