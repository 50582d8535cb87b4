#include "codegen/codegen_int.h"

static bool pointwise(int op)
{
    return ops[op].anchor == ANCHOR_NONE;
}

/* Whether an operator's output has one row a token. */
static bool token_rows(int op)
{
    return ops[op].layout == LAYOUT_TOKENS;
}

static bool of_attention(int op)
{
    return ops[op].anchor == ANCHOR_SCORES || ops[op].anchor == ANCHOR_SOFTMAX ||
           ops[op].anchor == ANCHOR_CONTEXT || ops[op].layout == LAYOUT_SCORES;
}

static enum stage_kind kind_of(int op)
{
    if (of_attention(op))
        return STAGE_ATTENTION;
    switch (ops[op].anchor) {
    case ANCHOR_GEMM:
        return STAGE_GEMM;
    case ANCHOR_LAYERNORM:
        return STAGE_ROWS;
    default:
        return STAGE_ELEMENTWISE;
    }
}

/* The loader of attention can split the heads if the segment has everything from the scores to the
 * context, as then no other stage reads q, k or v. */
static bool loads_for_attention(struct segment s, int op)
{
    if (ops[op].layout != LAYOUT_QKV_HEADS)
        return false;
    int last = op + 1;
    while (last <= s.last && ops[last].anchor != ANCHOR_CONTEXT)
        last++;
    return last <= s.last;
}

/* Whether op, which follows the stage, joins it.  *kind is the stage's kind afterwards. */
static bool joins(struct segment s, enum lowering how, const struct stage *stage, int op,
                  enum stage_kind *kind)
{
    bool rows_held = how == LOWERING_ROWWISE && token_rows(stage->last);
    bool takes_rows =
        ops[op].anchor == ANCHOR_LAYERNORM || (rows_held && ops[op].anchor == ANCHOR_GEMM);
    switch (stage->kind) {
    case STAGE_ELEMENTWISE:
        *kind = of_attention(op) ? STAGE_ATTENTION : STAGE_ROWS;
        return of_attention(op) ? loads_for_attention(s, stage->last) : takes_rows;
    case STAGE_GEMM:
        *kind = pointwise(op) ? STAGE_GEMM : STAGE_ROWS;
        return pointwise(op) || (rows_held && takes_rows);
    case STAGE_ROWS:
        *kind = STAGE_ROWS;
        return pointwise(op) || takes_rows;
    case STAGE_ATTENTION:
        *kind = STAGE_ATTENTION;
        return of_attention(op) || pointwise(op);
    }
    return false;
}

/* The outputs of a stage's operators that the caller or a later stage reads, as bits. */
static uint16_t stored(struct segment s, const struct stage *stage)
{
    uint16_t needed = segment_outputs(s), own = 0;
    for (int op = stage->last + 1; op <= s.last; op++)
        needed |= ops[op].reads;
    for (int op = stage->first; op <= stage->last; op++)
        own |= (uint16_t)(1u << TENSOR_OF(op));
    return needed & own;
}

int lower_segment(struct segment s, enum lowering how, struct stage out[OP_COUNT])
{
    int count = 0;
    for (int op = s.first; op <= s.last; op++) {
        enum stage_kind kind;
        if (count > 0 && joins(s, how, &out[count - 1], op, &kind)) {
            out[count - 1].kind = kind;
            out[count - 1].last = (int8_t)op;
        } else {
            out[count++] =
                (struct stage){.kind = kind_of(op), .first = (int8_t)op, .last = (int8_t)op};
        }
    }
    for (int i = 0; i < count; i++)
        out[i].stores = stored(s, &out[i]);
    return count;
}

bool stage_has(const struct stage *s, enum anchor anchor)
{
    for (int op = s->first; op <= s->last; op++)
        if (ops[op].anchor == anchor)
            return true;
    return false;
}
