#include "tests/workload.h"

/* B 2, S 4, H 2, W 3: D 6, F 5, in fp16.  Causal with lengths 4 and 2: 6 real tokens, and
 * 10 + 3 kept pairs a head. */
static void make_workload(struct workload *w)
{
    *w = workload_sized(2, 4);
    w->heads = 2;
    w->head_size = 3;
    w->ffn = 5;
    w->dtype = DTYPE_FP16;
    workload_ready(w, "causal", "4,2", NULL);
}

enum { TOKENS = 6, KEPT = 13, HEADS = 2, D = 6, F = 5 };

static const struct {
    struct segment segment;
    double flops, elements;
} figures[] = {
    /* x (6,6), wqkv (6,18); (6,18) */
    {{0, 0}, 2 * TOKENS *D * 3 * D, TOKENS *D + D * 3 * D + TOKENS * 3 * D},
    /* (6,18), bqkv; q, k, v */
    {{1, 1}, 0, TOKENS * 3 * D + 3 * D + TOKENS * 3 * D},
    /* q, k; kept scores of each head */
    {{2, 2}, 2 * KEPT *HEADS * 3, 2 * TOKENS *D + KEPT *HEADS},
    /* kept scores, read and written */
    {{3, 4}, 0, 2 * KEPT *HEADS},
    /* kept probabilities, v; the context */
    {{5, 5}, 2 * KEPT *HEADS * 3, KEPT *HEADS + 2 * TOKENS *D},
    /* q, k, v; the context merged */
    {{2, 6}, 4 * KEPT *HEADS * 3, 4 * TOKENS *D},
    /* the context and x, wo, bo, gamma1, beta1; (6,6) */
    {{7, 9}, 2 * TOKENS *D *D, 2 * TOKENS *D + D *D + 3 * D + TOKENS *D},
    /* (6,6), w1, b1, w2; (6,6) and no more: the residual is read later */
    {{10, 12}, 4 * TOKENS *D *F, TOKENS *D + D *F + F + F *D + TOKENS *D},
    /* x and every weight; y */
    {{0, 14},
     2 * TOKENS *D *(3 * D + D + 2 * F) + 4 * KEPT *HEADS * 3,
     TOKENS *D + (D * 3 * D + 3 * D) + (D * D + 3 * D) + (D * F + F) + (F * D + 3 * D) + TOKENS *D},
};

TEST_LOOP(work_and_bytes_are_those_counted_by_hand, 0, ARRAY_LEN(figures))
{
    SCOPED_BY(workload_release) struct workload w;
    make_workload(&w);
    ck_assert_int_eq(workload_tokens(&w), TOKENS);
    ck_assert_int_eq(w.blocks.kept, KEPT);
    ck_assert_double_eq(segment_flops(figures[_i].segment, &w), figures[_i].flops);
    ck_assert_double_eq_tol(segment_bytes(figures[_i].segment, &w), 2 * figures[_i].elements, 1e-9);
    w.dtype = DTYPE_TF32;
    ck_assert_double_eq_tol(segment_bytes(figures[_i].segment, &w), 4 * figures[_i].elements, 1e-9);
}

/* The same heads beside a hidden size of 4. */
TEST(heads_beside_another_hidden_size_count_their_own_columns)
{
    enum { HIDDEN = 4, A = D };
    SCOPED_BY(workload_release) struct workload w;
    make_workload(&w);
    w.hidden = HIDDEN;
    workload_ready(&w, "causal", NULL, NULL);
    ck_assert_str_eq(w.chain->name, "hidden");
    const struct segment in = {0, 0}, attention = {2, 6}, out = {7, 9};
    ck_assert_double_eq(segment_flops(in, &w), 2 * TOKENS * HIDDEN * 3 * A);
    ck_assert_double_eq(segment_bytes(in, &w),
                        2 * (TOKENS * HIDDEN + HIDDEN * 3 * A + TOKENS * 3 * A));
    ck_assert_double_eq(segment_flops(attention, &w), 4 * KEPT * HEADS * 3);
    ck_assert_double_eq(segment_bytes(attention, &w), 2 * 4 * TOKENS * A);
    ck_assert_double_eq(segment_flops(out, &w), 2 * TOKENS * A * HIDDEN);
    ck_assert_double_eq(segment_bytes(out, &w), 2 * (TOKENS * A + TOKENS * HIDDEN + A * HIDDEN +
                                                     3 * HIDDEN + TOKENS * HIDDEN));
    w.hidden = A;
    workload_ready(&w, "causal", NULL, NULL);
    ck_assert_ptr_eq(w.chain, &chain_bert);
}

SUITE("cost", NULL, NULL)
