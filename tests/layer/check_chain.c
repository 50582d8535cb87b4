#include "tests/chains.h"
#include "tests/workload.h"

TEST(bert_is_well_formed)
{
    OK(chain_check(&chain_bert, &st));
    ck_assert_ptr_eq(chain_find("bert"), &chain_bert);
    ck_assert_ptr_null(chain_find("bart"));
}

TEST_LOOP(chains_of_tests_are_well_formed, 0, CHAIN_COUNT)
{
    const struct chain *c = chain_of_test((enum test_chain)_i);
    OK(chain_check(c, &st));
    int weights = 0;
    for (int i = 0; i < WEIGHT_MAX; i++)
        weights += c->weights[i].name != NULL;
    if (_i < CHAIN_PRE)
        ck_assert_int_eq(weights, _i == CHAIN_NO_BIAS ? 8 : 10);
}

/* Every function names its kernels and the roles that its kind can have. */
TEST_LOOP(functions_are_whole, 0, FUNCTION_COUNT)
{
    const struct op_function *f = &op_functions[_i];
    ck_assert_ptr_nonnull(f->name);
    ck_assert(strncmp(f->cpu, "FP_", 3) == 0);
    ck_assert_uint_ne(f->kernels & ON_CPU, 0);
    if (f->kind == KIND_ACTIVATION && _i != FUNCTION_BIAS_GELU) /* they stand one after another */
        ck_assert_int_eq(op_functions[_i - 1].kind, KIND_ACTIVATION);
    ck_assert_uint_eq(f->roles >> ROLE_COUNT, 0);
    ck_assert_int_eq(f->kind == KIND_GEMM, (f->roles & 1u << ROLE_MATRIX) != 0);
    ck_assert_int_eq(f->kind == KIND_NORM, (f->roles & 1u << ROLE_GAMMA) != 0);
    for (int other = 0; other < _i; other++)
        ck_assert_str_ne(op_functions[other].name, f->name);
}

/* What an operator reads is what it names, and no two operators share a weight. */
TEST(sets_hold_what_rows_name)
{
    uint32_t weights = 0;
    for (int i = 0; i < OP_COUNT; i++) {
        const struct op *op = &chain_bert.ops[i];
        ck_assert_uint_eq(op_weights(op) & weights, 0);
        weights |= op_weights(op);
        ck_assert_uint_eq(op_tensors(op) & ~(SET_OF(TENSOR_OF(i)) - 1), 0);
        ck_assert_uint_ne(op_tensors(op) & SET_OF(op->input), 0);
    }
    ck_assert_uint_eq(weights, SET_OF(WEIGHT_BETA2 + 1) - 1);
    ck_assert_uint_eq(op_tensors(&chain_bert.ops[13]),
                      SET_OF(TENSOR_OF(12)) | SET_OF(TENSOR_OF(9)));
    ck_assert_uint_eq(op_tensors(&chain_bert.ops[5]), SET_OF(TENSOR_OF(4)) | SET_OF(TENSOR_OF(1)));
    ck_assert_uint_eq(chain_carried(&chain_bert), SET_OF(TENSOR_Y));
}

/* ---- chains by name -------------------------------------------------------------------------- */

/* Each combination of functions is a chain of its own, well formed, and found by its name. */
TEST_LOOP(chains_have_names, 0, 64)
{
    static const char *const words[] = {"pre", "rms", "gate", "rope", "bias", "hidden"};
    struct chain_functions f = {.pre = _i % 2 != 0,
                                .rms = _i / 2 % 2 != 0,
                                .gate = _i / 4 % 2 != 0,
                                .rope = _i / 8 % 2 != 0,
                                .score_bias = _i / 16 % 2 != 0,
                                .hidden = _i / 32 % 2 != 0};
    for (int id = 0; id < FUNCTION_COUNT; id++) {
        if (op_functions[id].kind != KIND_ACTIVATION)
            continue;
        f.activation = (enum function_id)id;
        const struct chain *c = chain_of(f);
        OK(chain_check(c, &st));
        ck_assert_ptr_eq(chain_of(f), c);
        ck_assert_ptr_eq(chain_find(c->name), c);
        ck_assert_ptr_eq(chain_of(chain_functions(c)), c);
        ck_assert_int_eq(c == &chain_bert, _i == 0 && id == FUNCTION_BIAS_GELU);
        for (size_t i = 0; i < ARRAY_LEN(words); i++)
            ck_assert_int_eq(strstr(c->name, words[i]) != NULL, _i >> i & 1);
    }
}

TEST(other_names_are_no_chains)
{
    static const char *const names[] = {"",       "post",     "gelu",      "bert+pre",  "pre+",
                                        "+pre",   "pre+pre",  "rms+pre",   "pre++rms",  "gate+silu",
                                        "prerms", "pre+rms ", "silu+silu", "hidden+pre"};
    for (size_t i = 0; i < ARRAY_LEN(names); i++)
        ck_assert_msg(chain_find(names[i]) == NULL, "'%s' is a chain", names[i]);
}

/* 7-9 and 12-14 store two tensors, and the next layer's are what 13 and 14 leave. */
TEST(norms_before_hand_two_tensors_on)
{
    const struct chain *c = chain_find("pre");
    const uint32_t sums = SET_OF(TENSOR_OF(8)) | SET_OF(TENSOR_OF(9));
    ck_assert_uint_eq(segment_inputs(c, (struct segment){0, 1}), SET_OF(TENSOR_N));
    ck_assert_uint_eq(segment_outputs(c, (struct segment){7, 9}), sums);
    ck_assert_uint_eq(segment_outputs(c, (struct segment){12, 14}),
                      SET_OF(TENSOR_OF(13)) | SET_OF(TENSOR_Y));
    ck_assert_uint_eq(segment_inputs(c, (struct segment){12, 14}),
                      SET_OF(TENSOR_OF(11)) | SET_OF(TENSOR_OF(8)));
    ck_assert_uint_eq(segment_inputs(c, (struct segment){0, 14}),
                      SET_OF(TENSOR_X) | SET_OF(TENSOR_N));
}

/* ---- precisions ------------------------------------------------------------------------------ */

/* What is written is read again. */
TEST_LOOP(precisions_are_texts, 0, GEMM_ALL + 1)
{
    static const char *const texts[] = {[0] = "bf16",
                                        [1 << GEMM_FFN1] = "ffn1",
                                        [1 << GEMM_QKV | 1 << GEMM_FFN2] = "qkv,ffn2",
                                        [GEMM_ALL] = "fp8"};
    unsigned read = 99;
    SCOPED_BUF text = BUF_INIT;
    precision_text((unsigned)_i, "bf16", &text);
    if (texts[_i] != NULL)
        ck_assert_str_eq(text.ptr, texts[_i]);
    OK(precision_parse(_i == 0 ? "fp16" : text.ptr, &read, &st));
    ck_assert_uint_eq(read, (unsigned)_i);
}

TEST(other_texts_are_no_precisions)
{
    static const char *const texts[] = {"",     "FP8",  "bf16",    "ffn3",
                                        "qkv,", ",out", "qkv out", "fp8,qkv"};
    unsigned read;
    for (size_t i = 0; i < ARRAY_LEN(texts); i++)
        FAILS(precision_parse(texts[i], &read, &st), STATUS_USAGE, "expected fp16, fp8, or");
    OK(precision_parse("ffn2,qkv,ffn2", &read, &st));
    ck_assert_uint_eq(read, 1 << GEMM_QKV | 1 << GEMM_FFN2);
}

/* ---- chains that cannot be ------------------------------------------------------------------- */

enum { WRONG_CHAINS = 19 };

/* Spoils a chain in one of so many ways; what is said of it. */
static const char *spoil(struct chain *c, int way)
{
    switch (way) {
    case 0:
        c->ops[7].input = TENSOR_OF(7);
        return "operator 7, out_gemm, does not read what its kind does, of tensors before it";
    case 1:
        c->ops[8].skip = TENSOR_NONE;
        return "operator 8, out_bias_residual, does not read what its kind does, of tensors before "
               "it";
    case 2:
        c->ops[7].skip = TENSOR_X;
        return "operator 7, out_gemm, does not read what its kind does, of tensors before it";
    case 3:
        c->ops[13].skip = TENSOR_OF(11);
        return "operator 13, ffn2_bias_residual, adds rows of another width";
    case 4:
        c->ops[7].input = TENSOR_OF(4);
        return "operator 7, out_gemm, has a layout that is not its kind's";
    case 5:
        c->ops[5].qkv = TENSOR_X;
        return "operator 5, context, reads q, k and v of a tensor that has none";
    case 6:
        c->ops[11].columns = DIM_D;
        return "operator 11, ffn1_bias_gelu, has not the width that its kind has";
    case 7:
        c->ops[0].columns = c->ops[1].columns = DIM_D;
        c->weights[WEIGHT_WQKV].cols = c->weights[WEIGHT_BQKV].cols = DIM_D;
        return "operator 1, qkv_bias_split, has not the width that its kind has";
    case 8:
        c->carried[1] = (struct carried){TENSOR_OF(13), TENSOR_X};
        c->carried_count = 2;
        return "tensor 14 cannot be tensor 0 of the next layer";
    case 9:
        c->ops[3].function = FUNCTION_COUNT;
        return "operator 3, mask, computes what is not of its kind";
    case 10:
        c->ops[9].function = FUNCTION_BIAS_GELU;
        return "operator 9, layernorm1, computes what is not of its kind";
    case 11:
        c->ops[10].weight[ROLE_MATRIX] = WEIGHT_NONE;
        return "operator 10, ffn1_gemm, lacks a weight of its function, or has one too many";
    case 12:
        c->ops[8].weight[ROLE_GAMMA] = WEIGHT_GAMMA1;
        return "operator 8, out_bias_residual, lacks a weight of its function, or has one too many";
    case 13:
        c->ops[10].weight[ROLE_MATRIX] = WEIGHT_W2;
        return "operator 10, ffn1_gemm, has a weight of another shape";
    case 14:
        c->ops[13].weight[ROLE_BIAS] = WEIGHT_BO;
        return "operator 13, ffn2_bias_residual, reads a weight that another role has";
    case 15:
        c->ops[13].weight[ROLE_BIAS] = WEIGHT_NONE;
        return "nothing reads weight b2";
    case 16:
        c->ops[10].input = c->ops[13].skip = TENSOR_OF(8);
        return "nothing reads tensor 10, layernorm1";
    case 17:
        c->carried_count = 0;
        c->ops[14].input = TENSOR_OF(13);
        return "nothing reads tensor 15, layernorm2";
    default:
        c->carried[0].from = TENSOR_OF(3);
        return "tensor 4 cannot be tensor 0 of the next layer";
    }
}

TEST_LOOP(wrong_chains_are_found_out, 0, WRONG_CHAINS)
{
    struct chain c = chain_bert;
    char message[200];
    snprintf(message, sizeof(message), "chain bert: %s", spoil(&c, _i));
    FAILS(chain_check(&c, &st), STATUS_USAGE, message);
}

TEST(a_next_layer_gets_what_it_reads)
{
    struct chain c = chain_bert;
    c.carried[0].to = TENSOR_OF(0);
    FAILS(chain_check(&c, &st), STATUS_USAGE, "cannot be tensor 1 of the next layer");
    c = chain_bert;
    c.carried[0].from = TENSOR_X;
    FAILS(chain_check(&c, &st), STATUS_USAGE, "tensor 0 cannot be tensor 0 of the next layer");
}

/* A chain that cannot be is no workload's. */
TEST(chain_is_checked)
{
    struct chain c = chain_bert;
    SCOPED_BY(workload_release) struct workload w = workload_sized(1, 1);
    w.chain = &c;
    c.ops[8].skip = TENSOR_NONE;
    FAILS(workload_check(&w, &st), STATUS_USAGE, "operator 8");
}

/* What another layer or operator reads is an output of its segment. */
TEST(outputs_follow_the_rows)
{
    const struct segment norm = {7, 9};
    struct chain carries = chain_bert;
    ck_assert_uint_eq(segment_outputs(&chain_bert, norm), SET_OF(TENSOR_OF(9)));
    carries.carried[1] = (struct carried){TENSOR_OF(13), TENSOR_X};
    carries.carried_count = 2;
    ck_assert_uint_eq(segment_outputs(&carries, (struct segment){12, 14}),
                      SET_OF(TENSOR_OF(13)) | SET_OF(TENSOR_OF(14)));
}

SUITE("chain", NULL, NULL)
