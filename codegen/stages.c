#include "codegen/cuda_int.h"

int segment_stages(enum target_kind target, const struct chain *chain, struct segment s,
                   enum stage_kind kinds[OP_COUNT])
{
    struct stage cpu[OP_COUNT];
    struct cuda_stage cuda[OP_COUNT];
    bool on_cpu = target == TARGET_CPU;
    int count = on_cpu ? lower_segment(chain, s, LOWERING_TILED, cpu)
                       : cuda_stages_of(chain, s, CUDA_NORM_BARRIER, cuda);
    for (int i = 0; i < count; i++)
        kinds[i] = on_cpu ? cpu[i].kind : cuda[i].kind;
    return count;
}
