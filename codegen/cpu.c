/* The CPU's generated code: stages, and which choices are applicable. */
#include "codegen/codegen_int.h"

int cpu_stages(const struct choice *c, struct stage out[OP_COUNT])
{
    return lower_segment(c->chain, c->segment, (enum lowering)choice_value(c, CPU_KNOB_LOWERING),
                         out);
}

uint32_t cpu_tensors(const struct choice *c)
{
    struct stage stages[OP_COUNT];
    uint32_t tensors = 0;
    for (int i = cpu_stages(c, stages) - 1; i >= 0; i--)
        tensors |= stages[i].stores;
    return tensors;
}

/* Rowwise lowering joins stages of tiled lowering, so the two differ if their numbers do. */
static bool lowerings_differ(const struct choice *c)
{
    struct stage tiled[OP_COUNT], rowwise[OP_COUNT];
    return lower_segment(c->chain, c->segment, LOWERING_TILED, tiled) !=
           lower_segment(c->chain, c->segment, LOWERING_ROWWISE, rowwise);
}

static bool any_gemm(const struct stage *stages, int count, bool in_tiles)
{
    for (int i = 0; i < count; i++)
        if (stage_has(&stages[i], KIND_GEMM) && (!in_tiles || stages[i].kind == STAGE_GEMM))
            return true;
    return false;
}

bool cpu_applicable(const struct choice *c, const struct build_target *t, const char **why)
{
    (void)t;
    struct stage stages[OP_COUNT];
    int count = cpu_stages(c, stages);
    if (choice_turns(c, CPU_KNOB_LOWERING) && !lowerings_differ(c))
        return inapplicable(why, "both lowerings give this segment the same stages");
    if (choice_turns(c, CPU_KNOB_ROW_BLOCK) && !any_gemm(stages, count, false))
        return inapplicable(why, "row_block is a knob of GEMMs, and this segment has none");
    if (choice_turns(c, CPU_KNOB_COL_BLOCK) && !any_gemm(stages, count, true))
        return inapplicable(
            why, "col_block is a knob of GEMMs cut into tiles, and this segment has none");
    return true;
}
