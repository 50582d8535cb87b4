/* Operators 3-4 of the layer in one launch, as `fuseplan generate 44373` emits them.
 *
 *    3 mask               drop the keys that the mask does not keep
 *    4 softmax            softmax over the keys
 *
 * Reads scores (B,H,S,S)
 * Writes softmax (B,H,S,S)
 * Four bytes an element; operations in brackets, T real tokens, P kept (query, key) pairs.
 *
 * Stages, between which all threads meet:
 *   1. mask+softmax: blocks of query rows, only key blocks that the mask keeps
 */
#include "attention.h"

static void stage_03_04_mask_softmax(const struct fp_args *a)
{
    const struct fp_attention t = {
        .first = FP_MASK,
        .last = FP_SOFTMAX,
        .input = a->tensor[3] /* scores */,
        .out = a->tensor[5] /* softmax */,
    };
    fp_attention_stage(a, &t);
}

fp_segment segment_03_04_mask_softmax;
void segment_03_04_mask_softmax(const struct fp_args *a)
{
#pragma omp parallel
    {
        stage_03_04_mask_softmax(a);
    }
}
