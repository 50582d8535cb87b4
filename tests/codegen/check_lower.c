#include "codegen/codegen_int.h"
#include "tests/suite.h"

#include <stdio.h>
#include <string.h>

/* "gemm 0-1 >2, attention 2-6 >7": kind, operators, tensors stored. */
static void stages_text(struct segment s, enum lowering how, struct buf *out)
{
    static const char *const kinds[] = {[STAGE_ELEMENTWISE] = "elementwise",
                                        [STAGE_GEMM] = "gemm",
                                        [STAGE_ROWS] = "rows",
                                        [STAGE_ATTENTION] = "attention"};
    struct stage stages[OP_COUNT];
    int count = lower_segment(&chain_bert, s, how, stages);
    for (int i = 0; i < count; i++) {
        buf_addf(out, "%s%s %d-%d >", i > 0 ? ", " : "", kinds[stages[i].kind], stages[i].first,
                 stages[i].last);
        const char *separator = "";
        for (int t = 0; t < TENSOR_COUNT; t++)
            if ((stages[i].stores >> t & 1) != 0) {
                buf_addf(out, "%s%d", separator, t);
                separator = "+";
            }
    }
}

static const struct {
    struct segment segment;
    enum lowering how;
    const char *stages;
} expected[] = {
    {{0, 0}, LOWERING_TILED, "gemm 0-0 >1"},
    {{0, 1}, LOWERING_TILED, "gemm 0-1 >2"},
    {{0, 6}, LOWERING_TILED, "gemm 0-1 >2, attention 2-6 >7"},
    {{1, 4}, LOWERING_TILED, "elementwise 1-1 >2, attention 2-4 >5"},
    {{1, 6}, LOWERING_TILED, "attention 1-6 >7"},
    {{3, 3}, LOWERING_TILED, "attention 3-3 >4"},
    {{3, 5}, LOWERING_TILED, "attention 3-5 >6"},
    {{5, 7}, LOWERING_TILED, "attention 5-6 >7, gemm 7-7 >8"},
    {{6, 7}, LOWERING_TILED, "elementwise 6-6 >7, gemm 7-7 >8"},
    {{6, 7}, LOWERING_ROWWISE, "rows 6-7 >8"},
    {{7, 9}, LOWERING_TILED, "gemm 7-8 >9, rows 9-9 >10"},
    {{7, 9}, LOWERING_ROWWISE, "rows 7-9 >10"},
    {{8, 9}, LOWERING_TILED, "rows 8-9 >10"},
    {{9, 12}, LOWERING_ROWWISE, "rows 9-12 >10+13"},
    {{10, 11}, LOWERING_ROWWISE, "gemm 10-11 >12"},
    {{11, 12}, LOWERING_TILED, "elementwise 11-11 >12, gemm 12-12 >13"},
    {{13, 14}, LOWERING_TILED, "rows 13-14 >15"},
    {{0, 14},
     LOWERING_TILED,
     "gemm 0-1 >2, attention 2-6 >7, gemm 7-8 >9, rows 9-9 >10, gemm 10-11 >12, gemm 12-13 >14, "
     "rows 14-14 >15"},
    {{0, 14}, LOWERING_ROWWISE, "gemm 0-1 >2, attention 2-6 >7, rows 7-14 >15"},
};

START_TEST(lowers_as_expected)
{
    struct buf text;
    buf_init(&text);
    stages_text(expected[_i].segment, expected[_i].how, &text);
    ck_assert_str_eq(text.ptr, expected[_i].stages);
    buf_release(&text);
}
END_TEST

/* Of every segment: stages cover its operators once and in order, and whatever a later stage or a
 * later segment reads is stored. */
START_TEST(stages_cover_and_store)
{
    struct segment s = segment_at(_i / 2);
    struct stage stages[OP_COUNT];
    int count =
            lower_segment(&chain_bert, s, _i % 2 != 0 ? LOWERING_ROWWISE : LOWERING_TILED, stages),
        next = s.first;
    uint32_t stored = segment_inputs(&chain_bert, s), all = 0;
    for (int i = 0; i < count; i++) {
        ck_assert_int_eq(stages[i].first, next);
        ck_assert_int_le(stages[i].first, stages[i].last);
        next = stages[i].last + 1;
        uint32_t own = 0;
        for (int op = stages[i].first; op < next; op++) {
            ck_assert_uint_eq(op_tensors(&chain_bert.ops[op]) & ~(stored | own), 0);
            own |= SET_OF(TENSOR_OF(op));
        }
        ck_assert_uint_eq(stages[i].stores & ~own, 0);
        stored |= stages[i].stores;
        all |= stages[i].stores;
    }
    ck_assert_int_eq(next, s.last + 1);
    ck_assert_uint_eq(segment_outputs(&chain_bert, s) & ~all, 0);
}
END_TEST

START_TEST(a_stage_knows_its_kinds)
{
    struct stage out_projection = {.chain = &chain_bert, .kind = STAGE_GEMM, .first = 7, .last = 8};
    ck_assert(stage_has(&out_projection, KIND_GEMM));
    ck_assert(stage_has(&out_projection, KIND_ADD));
    ck_assert(!stage_has(&out_projection, KIND_NORM));
}
END_TEST

SUITE("lower", NULL, NULL, LOOP(lowers_as_expected, 0, ARRAY_LEN(expected)),
      LOOP(stages_cover_and_store, 0, 2 * SEGMENT_COUNT), ONCE(a_stage_knows_its_kinds))
