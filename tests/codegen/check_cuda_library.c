/* Segments that cuBLASLt runs: which, and on what. */
#include "codegen/codegen.h"
#include "tests/suite.h"

START_TEST(library_is_of_gemms_where_it_is_there)
{
    static const struct segment served[] = {{0, 0},   {7, 7},   {7, 8},  {10, 10},
                                            {10, 11}, {12, 12}, {12, 13}};
    struct choice c = {.chain = &chain_bert, .impl = impl_find(TARGET_CUDA, "library")};
    struct build_target t = {&chain_bert, TARGET_CUDA, DTYPE_FP16, 64, 80, true, false, NULL};
    const char *why = NULL;
    size_t next = 0;
    for (int i = 0; i < SEGMENT_COUNT; i++) {
        c.segment = segment_at(i);
        bool serves = next < ARRAY_LEN(served) && c.segment.first == served[next].first &&
                      c.segment.last == served[next].last;
        next += serves;
        ck_assert_int_eq(choice_applicable(&c, &t, &why), serves);
    }
    ck_assert_uint_eq(next, ARRAY_LEN(served));
    c.segment = (struct segment){10, 11};
    t.dtype = DTYPE_FP32;
    ck_assert(!choice_applicable(&c, &t, &why));
    ck_assert_str_eq(why, "cuBLASLt's GELU is the tanh form, which is not exact enough for fp32");
    t.dtype = DTYPE_TF32;
    ck_assert(choice_applicable(&c, &t, &why));
    t.library = false;
    ck_assert(!choice_applicable(&c, &t, &why));
    ck_assert_str_eq(why, "cuBLASLt is not available");
}
END_TEST

START_TEST(products_name_their_operands)
{
    static const struct {
        struct segment segment;
        struct cuda_product product;
    } cases[] = {
        {{0, 0}, {0, 1, -1, WEIGHT_WQKV, -1, false}},
        {{7, 8}, {7, 9, 0, WEIGHT_WO, WEIGHT_BO, false}},
        {{10, 11}, {10, 12, -1, WEIGHT_W1, WEIGHT_B1, true}},
        {{12, 13}, {12, 14, 10, WEIGHT_W2, WEIGHT_B2, false}},
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        const struct choice c = {
            &chain_bert, cases[i].segment, impl_find(TARGET_CUDA, "library"), {{0}}};
        const struct cuda_product *expected = &cases[i].product;
        struct cuda_product p;
        choice_product(&c, &p);
        ck_assert_int_eq(p.in, expected->in);
        ck_assert_int_eq(p.out, expected->out);
        ck_assert_int_eq(p.residual, expected->residual);
        ck_assert_int_eq(p.weight, expected->weight);
        ck_assert_int_eq(p.bias, expected->bias);
        ck_assert_int_eq(p.gelu, expected->gelu);
        ck_assert_uint_eq(choice_tensors(&c), 1u << p.out);
    }
}
END_TEST

SUITE("cuda_library", NULL, NULL, ONCE(library_is_of_gemms_where_it_is_there),
      ONCE(products_name_their_operands))
