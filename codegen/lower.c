#include "codegen/codegen_int.h"

static bool pointwise(int op)
{
    return ops[op].anchor == ANCHOR_NONE;
}

/* One row a token, on both sides of the operator or at least in its output. */
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

/* The split into heads joins the attention that loads q, k and v, if that one reads all three and
 * so nothing else does. */
static bool loads_for_attention(struct segment s, int op)
{
    if (ops[op].layout != LAYOUT_QKV_HEADS)
        return false;
    int last = op + 1;
    while (last <= s.last && ops[last].anchor != ANCHOR_CONTEXT)
        last++;
    return last <= s.last;
}

/* Whether op, which follows the stage, joins it. The stage's kind afterwards goes to *kind. */
static bool joins(struct segment s, enum lowering how, const struct stage *stage, int op,
                  enum stage_kind *kind)
{
    bool whole_rows = ops[op].anchor == ANCHOR_LAYERNORM || ops[op].anchor == ANCHOR_GEMM;
    bool rows_held = how == LOWERING_ROWWISE && token_rows(stage->last);
    switch (stage->kind) {
    case STAGE_ELEMENTWISE:
        if (of_attention(op)) {
            *kind = STAGE_ATTENTION;
            return loads_for_attention(s, stage->last);
        }
        *kind = STAGE_ROWS;
        return ops[op].anchor == ANCHOR_LAYERNORM || (whole_rows && rows_held);
    case STAGE_GEMM:
        *kind = pointwise(op) ? STAGE_GEMM : STAGE_ROWS;
        return pointwise(op) || (whole_rows && rows_held);
    case STAGE_ROWS:
        *kind = STAGE_ROWS;
        return pointwise(op) || ops[op].anchor == ANCHOR_LAYERNORM || (whole_rows && rows_held);
    case STAGE_ATTENTION:
        *kind = STAGE_ATTENTION;
        return of_attention(op) || pointwise(op);
    }
    return false;
}

/* The tensors of its own operators that a stage must write. */
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
