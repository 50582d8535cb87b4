#include "codegen/codegen_int.h"

static bool of_attention(const struct op *op)
{
    return op->kind == KIND_CONTEXT || op->layout == LAYOUT_SCORES;
}

static enum stage_kind kind_of(const struct op *op)
{
    if (of_attention(op))
        return STAGE_ATTENTION;
    return op->kind == KIND_GEMM   ? STAGE_GEMM
           : op->kind == KIND_NORM ? STAGE_ROWS
                                   : STAGE_ELEMENTWISE;
}

/* The loader of attention can split the heads if the segment has everything from the scores to the
 * context, as then no other stage reads q, k or v. */
static bool loads_for_attention(const struct chain *c, struct segment s, int op)
{
    if (c->ops[op].kind != KIND_SPLIT)
        return false;
    int last = op + 1;
    while (last <= s.last && c->ops[last].kind != KIND_CONTEXT)
        last++;
    return last <= s.last;
}

/* Whether an operator can follow a GEMM, which holds tiles of rows and pairs of columns.  A head is
 * turned by columns that are further apart. */
static bool takes_tiles(const struct op *op)
{
    return op->kind == KIND_GATE ||
           (kind_is_pointwise(op->kind) && op->function != FUNCTION_BIAS_ROPE_SPLIT_HEADS);
}

/* Whether op, which follows the stage, joins it.  *kind is the stage's kind afterwards. */
static bool joins(struct segment s, enum lowering how, const struct stage *stage,
                  const struct op *op, enum stage_kind *kind)
{
    const struct chain *c = stage->chain;
    bool pointwise = kind_is_pointwise(op->kind);
    bool rows_held = how == LOWERING_ROWWISE && c->ops[stage->last].layout == LAYOUT_TOKENS;
    bool takes_rows = op->kind == KIND_NORM || (rows_held && op->kind == KIND_GEMM);
    switch (stage->kind) {
    case STAGE_ELEMENTWISE:
        *kind = of_attention(op) ? STAGE_ATTENTION : STAGE_ROWS;
        return of_attention(op) ? loads_for_attention(c, s, stage->last) : takes_rows;
    case STAGE_GEMM:
        *kind = takes_tiles(op) ? STAGE_GEMM : STAGE_ROWS;
        return takes_tiles(op) || (rows_held && takes_rows);
    case STAGE_ROWS:
        *kind = STAGE_ROWS;
        return pointwise || takes_rows || (how == LOWERING_ROWWISE && op->kind == KIND_GATE);
    case STAGE_ATTENTION:
        *kind = STAGE_ATTENTION;
        return of_attention(op) || pointwise;
    }
    return false;
}

/* The outputs of operators first..last that others read: read[op] is what the caller or an operator
 * of the segment behind op reads. */
static uint32_t stored(const uint32_t read[OP_COUNT], int first, int last)
{
    return read[last] & (SET_OF(TENSOR_OF(last) + 1) - SET_OF(TENSOR_OF(first)));
}

/* Whether an operator may join although it hides the stage's last output: nobody else reads that
 * output, or the stage stores it all the same.  Only a stage of rows stores each step's output, and
 * not under LOWERING_ONE.  q, k and v are hidden only from attention in the same stage. */
static bool passes_on(struct segment s, enum lowering how, const uint32_t read[OP_COUNT],
                      const struct stage *stage, enum stage_kind kind)
{
    bool split = stage->chain->ops[stage->last].kind == KIND_SPLIT;
    uint32_t kept = split ? read[s.last] : stored(read, stage->first, stage->last + 1);
    return (kind == STAGE_ROWS && how != LOWERING_ONE) ||
           (kept & SET_OF(TENSOR_OF(stage->last))) == 0;
}

int lower_segment(const struct chain *chain, struct segment s, enum lowering how,
                  struct stage out[OP_COUNT])
{
    int count = 0;
    uint32_t read[OP_COUNT];
    read[s.last] = segment_outputs(chain, s);
    for (int op = s.last; op > s.first; op--)
        read[op - 1] = read[op] | op_tensors(&chain->ops[op]);
    for (int op = s.first; op <= s.last; op++) {
        struct stage *before = count > 0 ? &out[count - 1] : NULL;
        enum stage_kind kind;
        if (before != NULL && joins(s, how, before, &chain->ops[op], &kind) &&
            passes_on(s, how, read, before, kind)) {
            before->kind = kind;
            before->last = (int8_t)op;
        } else {
            out[count++] = (struct stage){.chain = chain,
                                          .kind = kind_of(&chain->ops[op]),
                                          .first = (int8_t)op,
                                          .last = (int8_t)op};
        }
    }
    for (int i = 0; i < count; i++)
        out[i].stores = stored(read, out[i].first, out[i].last);
    return count;
}

bool stage_has(const struct stage *s, enum op_kind kind)
{
    for (int op = s->first; op <= s->last; op++)
        if (s->chain->ops[op].kind == kind)
            return true;
    return false;
}
