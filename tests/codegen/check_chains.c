/* What implementations make of other chains than BERT's: right or refused. */
#include "codegen/cuda_int.h"
#include "tests/chains.h"
#include "tests/suite.h"

enum { CHOICES_MAX = 256 };

static struct build_target target_of(enum test_chain which, enum target_kind kind)
{
    return (struct build_target){.chain = chain_of_test(which),
                                 .kind = kind,
                                 .dtype = kind == TARGET_CPU ? DTYPE_FP32 : DTYPE_FP16,
                                 .head_size = 64,
                                 .arch = kind == TARGET_CPU ? 0 : CUDA_ARCH_HOPPER,
                                 .library = kind == TARGET_CUDA};
}

/* Whether an implementation of CUDA runs a segment by any schedule. */
static bool serves(enum test_chain which, struct segment s, const char *impl)
{
    struct build_target t = target_of(which, TARGET_CUDA);
    struct choice choices[CHOICES_MAX];
    int count = choices_for(&t, s, false, CHOICES_MAX, choices);
    ck_assert_int_le(count, CHOICES_MAX);
    for (int i = 0; i < count; i++)
        if (strcmp(choices[i].impl->name, impl) == 0)
            return true;
    return false;
}

/* Why the default schedule of an implementation of CUDA does not run a segment. */
static const char *why_not(enum test_chain which, struct segment s, const char *impl)
{
    struct build_target t = target_of(which, TARGET_CUDA);
    const struct choice c = {.chain = t.chain, .segment = s, .impl = impl_find(TARGET_CUDA, impl)};
    const char *why = NULL;
    ck_assert(!choice_applicable(&c, &t, &why));
    return why;
}

/* Whatever runs a segment stores all of its outputs and reads no weight that is not there. */
TEST_LOOP(choices_store_all_outputs, 0, CHAIN_COUNT *SEGMENT_COUNT)
{
    enum test_chain which = (enum test_chain)(_i / SEGMENT_COUNT);
    struct segment s = segment_at(_i % SEGMENT_COUNT);
    for (int kind = 0; kind < TARGET_COUNT; kind++) {
        struct build_target t = target_of(which, (enum target_kind)kind);
        struct choice choices[CHOICES_MAX];
        int count = choices_for(&t, s, false, CHOICES_MAX, choices);
        uint32_t outputs = segment_outputs(t.chain, s);
        if (kind == TARGET_CPU || which != CHAIN_NO_BETA)
            ck_assert_int_ge(count, 1);
        for (int i = 0; i < count; i++) {
            SCOPED_BUF text = BUF_INIT;
            ck_assert_uint_eq(choice_tensors(&choices[i]) & outputs, outputs);
            choice_emit(&choices[i], &t, &text);
            ck_assert_msg(strstr(text.ptr, "weight[-1]") == NULL &&
                              strstr(text.ptr, "tensor[-1]") == NULL,
                          "%s", text.ptr);
        }
    }
}

/* The sum is read by operator 13, too. */
TEST(sums_that_others_read_are_stored)
{
    const struct segment norm = {7, 9}, sum = {7, 8};
    ck_assert(serves(CHAIN_PRE, norm, "hopper_gemm"));
    ck_assert(serves(CHAIN_PRE, sum, "hopper_gemm"));
    ck_assert(serves(CHAIN_PRE, norm, "generated"));
}

/* A stage whose last operator alone is stored ends where others read. */
TEST(stages_end_where_others_read)
{
    struct cuda_stage stages[OP_COUNT];
    const struct segment rows = {8, 9};
    ck_assert_int_eq(cuda_stages_of(&chain_bert, rows, CUDA_NORM_BARRIER, stages), 1);
    ck_assert_int_eq(cuda_stages_of(chain_find("pre"), rows, CUDA_NORM_BARRIER, stages), 2);
    ck_assert_int_eq(stages[0].last, 8);
    ck_assert_int_eq(stages[1].kind, STAGE_ROWS);
}

TEST(missing_biases_are_refused)
{
    const struct segment split = {0, 1}, sum = {7, 8}, gelu = {10, 11}, attention = {1, 6};
    const char *why = "its kernel needs a weight that an operator lacks";
    ck_assert_str_eq(why_not(CHAIN_NO_BIAS, split, "hopper_gemm"), why);
    ck_assert_str_eq(why_not(CHAIN_NO_BIAS, sum, "hopper_gemm"), why);
    ck_assert_str_eq(why_not(CHAIN_NO_BIAS, sum, "library"), why);
    ck_assert_str_eq(why_not(CHAIN_NO_BIAS, gelu, "library"), why);
    ck_assert_str_eq(why_not(CHAIN_NO_BIAS, attention, "hopper_attention"), why);
    ck_assert(serves(CHAIN_NO_BIAS, (struct segment){7, 7}, "hopper_gemm"));
    ck_assert(serves(CHAIN_NO_BIAS, (struct segment){2, 6}, "hopper_attention"));
    for (int op = 0; op < OP_COUNT; op++)
        ck_assert(serves(CHAIN_NO_BIAS, (struct segment){(int8_t)op, (int8_t)op}, "generated"));
}

TEST(missing_betas_are_refused)
{
    const char *why = "its kernel needs a weight that an operator lacks";
    ck_assert_str_eq(why_not(CHAIN_NO_BETA, (struct segment){7, 9}, "hopper_gemm"), why);
    ck_assert_str_eq(why_not(CHAIN_NO_BETA, (struct segment){9, 9}, "generated"), why);
    ck_assert(serves(CHAIN_NO_BETA, (struct segment){7, 8}, "hopper_gemm"));
}

/* Whether an implementation of CUDA runs a segment of a chain by its default schedule. */
static bool runs(const char *chain, struct segment s, const char *impl)
{
    struct build_target t = target_of(CHAIN_PRE, TARGET_CUDA);
    t.chain = chain_find(chain);
    const struct choice c = {.chain = t.chain, .segment = s, .impl = impl_find(TARGET_CUDA, impl)};
    const char *why = NULL;
    return choice_applicable(&c, &t, &why);
}

TEST(functions_without_a_kernel_are_refused)
{
    const struct segment activation = {10, 11}, sum = {7, 8}, norm = {7, 9}, split = {0, 1};
    ck_assert(runs("gelu_tanh", activation, "library"));
    ck_assert(runs("relu", activation, "library"));
    ck_assert(!runs("silu", activation, "library"));
    ck_assert(!runs("quick_gelu", activation, "library"));
    ck_assert(!runs("relu+gate", activation, "library"));
    ck_assert(runs("pre+silu+gate", sum, "library"));
    ck_assert(runs("pre+rms", norm, "hopper_gemm"));
    ck_assert(runs("quick_gelu", activation, "hopper_gemm"));
    ck_assert(runs("silu+gate", activation, "hopper_gemm"));
    ck_assert(runs("rope", split, "hopper_gemm"));
    for (int8_t last = 5; last <= 6; last++) {
        const struct segment heads = {2, last}, rows = {1, last};
        ck_assert(runs("rope", heads, "hopper_attention"));
        ck_assert(!runs("rope", rows, "hopper_attention"));
        ck_assert(runs("bias", heads, "hopper_attention"));
        ck_assert(runs("bias", rows, "hopper_attention"));
    }
}

/* Every segment of every chain, and the hand-written attention. */
TEST_LOOP(cuda_runs_every_chain, 0, 5 * 32)
{
    enum { ACTIVATIONS = 5 };
    static const enum function_id activations[ACTIVATIONS] = {
        FUNCTION_BIAS_GELU, FUNCTION_BIAS_GELU_TANH, FUNCTION_BIAS_QUICK_GELU, FUNCTION_BIAS_RELU,
        FUNCTION_BIAS_SILU};
    const int flags = _i / ACTIVATIONS;
    const struct chain *c =
        chain_of((struct chain_functions){.pre = (flags & 1) != 0,
                                          .rms = (flags & 2) != 0,
                                          .activation = activations[_i % ACTIVATIONS],
                                          .gate = (flags & 4) != 0,
                                          .rope = (flags & 8) != 0,
                                          .score_bias = (flags & 16) != 0});
    for (int i = 0; i < SEGMENT_COUNT; i++)
        ck_assert_msg(runs(c->name, segment_at(i), "generated"), "%s: segment %d", c->name, i);
    ck_assert(runs(c->name, (struct segment){ATTENTION_FIRST, ATTENTION_LAST}, "handwritten"));
}

/* A GEMM hands pairs of columns to a gate.  A head's halves are further apart than its tile. */
TEST(gates_join_gemms_and_rotations_do_not)
{
    struct cuda_stage stages[OP_COUNT];
    const struct segment gate = {10, 11}, split = {0, 1}, attention = {0, 6};
    ck_assert_int_eq(cuda_stages_of(chain_find("gate"), gate, CUDA_NORM_BARRIER, stages), 1);
    ck_assert_int_eq(cuda_stages_of(chain_find("rope"), split, CUDA_NORM_BARRIER, stages), 2);
    ck_assert_int_eq(cuda_stages_of(chain_find("rope"), attention, CUDA_NORM_BARRIER, stages), 2);
    ck_assert_int_eq(stages[1].first, 1);
    ck_assert_int_eq(stages[1].kind, STAGE_ATTENTION);
}

/* A target that lacks code for an operator of a chain says so before anything is compiled. */
TEST(chains_without_code_are_refused)
{
    SCOPED_BY(workload_release) struct workload w;
    workload_init(&w);
    w.seq_len = 64;
    w.ffn = 3072;
    w.dtype = DTYPE_FP16;
    w.chain = chain_of_test(CHAIN_NO_BETA);
    struct build_target t = build_target_of(TARGET_CUDA, "sm_90", false, &w);
    FAILS(build_check(&t, &w, &st), STATUS_UNFIT, "needs a weight that an operator lacks");
    t = build_target_of(TARGET_CPU, "avx512", false, &w);
    OK(build_check(&t, &w, &st));
}

SUITE("chains", NULL, NULL)
