/* Choices and launches of the CUDA target. */
#include "cuda_sources.h"
#include "tests/workload.h"

static const struct build_target hopper = {HOPPER_FP16, .library = true};

/* All implementations of a segment with all schedules. */
static int all_choices(struct segment s, struct choice out[2 * CUDA_CHOICES_MAX])
{
    int count = choices_for(&hopper, s, false, CUDA_CHOICES_MAX, out);
    ck_assert_int_le(count, CUDA_CHOICES_MAX);
    if (s.first == 2 && s.last == 6)
        count += choices_for(&hopper, s, true, CUDA_CHOICES_MAX, out + count);
    return count;
}

/* ---- choices --------------------------------------------------------------------------------- */

TEST_LOOP(choices_start_with_the_defaults, 0, SEGMENT_COUNT)
{
    struct choice choices[2 * CUDA_CHOICES_MAX];
    int count = all_choices(segment_at(_i), choices);
    ck_assert_int_ge(count, 1);
    bool generated = choices[0].impl == impl_find(TARGET_CUDA, "generated");
    ck_assert_mem_eq(&choices[0].schedule, &(struct schedule){0}, sizeof(struct schedule));
    for (int i = 1; i < count && choices[i].impl != choices[i - 1].impl; i++)
        generated |= choices[i].impl == impl_find(TARGET_CUDA, "generated");
    ck_assert(generated);
    for (int i = 0; i < count; i++)
        for (int j = 0; j < i; j++)
            if (choices[i].impl == choices[j].impl &&
                memcmp(&choices[i].schedule, &choices[j].schedule, sizeof(struct schedule)) == 0)
                ck_abort_msg("choices %d and %d are the same", j, i);
}

#define TARGET(type, size, architecture, has_library, has_cover)                                   \
    {                                                                                              \
        .chain = &chain_bert, .kind = TARGET_CUDA, .dtype = DTYPE_##type, .head_size = (size),     \
        .arch = (architecture), .library = (has_library), .ordered = (has_cover)                   \
    }
static const struct build_target usual = TARGET(FP16, 64, 90, true, true),
                                 bf16 = TARGET(BF16, 64, 90, true, true),
                                 tf32 = TARGET(TF32, 64, 90, true, true),
                                 fp32 = TARGET(FP32, 64, 90, true, true),
                                 narrow = TARGET(FP16, 32, 90, true, true),
                                 tiny = TARGET(FP16, 16, 90, true, true),
                                 wide = TARGET(FP16, 128, 90, true, true),
                                 sm_80 = TARGET(FP16, 64, 80, true, true),
                                 sm_100 = TARGET(FP16, 64, 100, true, true),
                                 no_library = TARGET(FP16, 64, 90, false, true),
                                 no_cover = TARGET(FP16, 64, 90, true, false);
#undef TARGET
static const struct build_target joins = {.chain = &chain_bert,
                                          .kind = TARGET_CUDA,
                                          .dtype = DTYPE_FP16,
                                          .head_size = 72,
                                          .arch = 90,
                                          .joined = true};

/* Rows of ffn have half of 16 columns left. */
static const struct workload of_uneven = {
    .chain = &chain_bert, .batch = 1, .seq_len = 64, .heads = 2, .head_size = 64, .ffn = 264};
static const struct build_target uneven = {HOPPER_FP16, .library = true, .workload = &of_uneven};

/* What an implementation runs; `why` is a part of the reason where it does not. */
static const struct {
    const struct build_target *target;
    const char *impl;
    struct segment segment;
    const char *schedule, *why;
} rows[] = {
    {&usual, "generated", {2, 6}, "tile=128x96", "tile is a knob of GEMMs"},
    {&usual, "generated", {0, 14}, "split=2", "split is a knob of a single GEMM"},
    {&usual, "generated", {10, 11}, "norm=strip", "norm is a knob of a layernorm after a GEMM"},
    {&usual, "generated", {2, 7}, "resident=3", "resident is a knob of attention without a GEMM"},
    {&usual, "generated", {9, 9}, "resident=3", "resident is a knob of attention without a GEMM"},
    {&usual, "hopper_gemm", {0, 0}, "", NULL},
    {&bf16, "hopper_gemm", {0, 1}, "", NULL},
    {&usual, "hopper_gemm", {6, 8}, "", NULL},
    {&usual, "hopper_gemm", {12, 14}, "", NULL},
    {&sm_80, "hopper_gemm", {0, 0}, "", "wgmma is an instruction of sm_90a alone"},
    {&sm_100, "hopper_gemm", {0, 0}, "", "wgmma is an instruction of sm_90a alone"},
    {&tf32, "hopper_gemm", {0, 0}, "", "in fp16 and bf16 alone"},
    {&usual, "hopper_gemm", {2, 6}, "", "this kernel runs one GEMM"},
    {&usual, "hopper_gemm", {11, 11}, "", "this kernel runs one GEMM"},
    {&usual, "hopper_gemm", {9, 10}, "", "this kernel runs one GEMM"},
    {&usual, "hopper_gemm", {10, 13}, "", "this kernel runs one GEMM"},
    {&usual,
     "hopper_gemm",
     {7, 9},
     "tile=64x64 split=4",
     "the layernorm of split sums is one through"},
    {&usual,
     "hopper_gemm",
     {7, 9},
     "tile=64x96 split=4 norm=memory",
     "the inner dimension of 64x64 and"},
    {&usual,
     "hopper_gemm",
     {12, 13},
     "tile=96x128_swap split=2",
     "the inner dimension of 64x64 and"},
    {&usual, "hopper_gemm", {7, 8}, "norm=memory", "norm is a knob of a layernorm after a GEMM"},
    {&usual, "hopper_attention", {1, 6}, "cover=ordered", NULL},
    {&usual, "hopper_attention", {1, 5}, "", NULL},
    {&usual, "hopper_attention", {2, 5}, "shape=64_split", NULL},
    {&bf16, "hopper_attention", {1, 6}, "shape=192", NULL},
    {&wide, "hopper_attention", {1, 6}, "shape=64_overlap", NULL},
    {&wide, "hopper_attention", {1, 6}, "shape=128 cover=ordered", NULL},
    {&no_cover, "hopper_attention", {1, 6}, "cover=ordered", "no order of tokens"},
    {&usual, "hopper_attention", {1, 6}, "shape=64_overlap cover=ordered", "this shape draws none"},
    {&usual, "hopper_attention", {1, 6}, "shape=192 cover=ordered", "have no registers"},
    {&bf16, "hopper_attention", {2, 6}, "shape=192_tma", NULL},
    {&wide,
     "hopper_attention",
     {1, 6},
     "shape=192_tma",
     "neighbouring rows of keys, of 64 columns"},
    {&joins, "hopper_attention", {1, 6}, "shape=192_tma cover=joined", "neighbouring rows of keys"},
    {&joins, "hopper_attention", {1, 6}, "cover=joined", NULL},
    {&joins, "hopper_attention", {1, 5}, "cover=joined", "tensors of tokens alone"},
    {&joins, "hopper_attention", {2, 6}, "cover=joined", "tensors of tokens alone"},
    {&joins, "hopper_attention", {1, 6}, "shape=128 cover=joined", "shape=64"},
    {&joins, "hopper_attention", {1, 6}, "shape=64_split cover=joined", "shape=64"},
    {&usual, "hopper_attention", {1, 6}, "cover=joined", "some neighbours on each side"},
    {&sm_80, "hopper_attention", {1, 6}, "", "wgmma is an instruction of sm_90a alone"},
    {&tf32, "hopper_attention", {1, 6}, "", "in fp16 and bf16 alone"},
    {&narrow, "hopper_attention", {1, 6}, "cover=ordered", NULL},
    {&tiny, "hopper_attention", {1, 6}, "", "head sizes 32, 48, 64, 72, 80, 96, 104 and 128 alone"},
    {&usual, "hopper_attention", {2, 4}, "", "scores, softmax and context together, and no GEMM"},
    {&usual, "hopper_attention", {2, 7}, "", "scores, softmax and context together, and no GEMM"},
    {&usual, "library", {7, 8}, "", NULL},
    {&usual, "library", {12, 13}, "", NULL},
    {&tf32, "library", {10, 11}, "", NULL},
    {&fp32, "library", {10, 11}, "", "cuBLASLt's GELU is the tanh form"},
    {&no_library, "library", {0, 0}, "", "cuBLASLt is not available"},
    {&usual, "library", {7, 9}, "", "cuBLASLt runs one GEMM, alone or with"},
    {&usual, "library", {0, 0}, "algorithm=0 e4m3=qkv", NULL},
    {&usual, "library", {10, 11}, "algorithm=0 e4m3=ffn1", NULL},
    {&usual, "library", {10, 11}, "algorithm=0 e4m3=ffn1+ffn2", NULL},
    {&usual, "library", {10, 11}, "algorithm=0 e4m3=ffn2", "where the operands are e4m3 alone"},
    {&bf16, "library", {12, 13}, "algorithm=0 e4m3=ffn2", NULL},
    {&tf32, "library", {12, 13}, "algorithm=0 e4m3=ffn2", "beside e4m3 it has fp16 and bf16 alone"},
    {&bf16, "hopper_gemm", {12, 14}, "e4m3=qkv+ffn2", NULL},
    {&usual, "hopper_gemm", {12, 14}, "tile=64x64 split=4 norm=memory e4m3=qkv+ffn2", NULL},
    {&usual, "hopper_gemm", {12, 13}, "tile=96x128_swap e4m3=ffn2", "without swapped operands"},
    {&bf16, "hopper_attention", {1, 6}, "e4m3=out", NULL},
    {&sm_80, "library", {12, 13}, "algorithm=0 e4m3=ffn2", "from sm_89 on"},
    {&uneven, "library", {10, 11}, "algorithm=0 e4m3=ffn1", NULL},
    {&uneven, "library", {10, 11}, "algorithm=0 e4m3=ffn1+ffn2", "a multiple of 16 columns"},
    {&uneven, "library", {12, 12}, "algorithm=0 e4m3=ffn2", "a multiple of 16 columns"},
    {&usual, "handwritten", {2, 7}, "", "scores to merge_heads, no more and no less"},
    {&usual, "handwritten", {2, 6}, "warps=rows", NULL},
    {&fp32, "handwritten", {2, 6}, "", NULL},
    {&fp32, "handwritten", {2, 6}, "warps=rows", "fp32 has one kernel"},
};

TEST_LOOP(implementations_run_what_they_can, 0, ARRAY_LEN(rows))
{
    struct choice c = {.chain = &chain_bert,
                       .segment = rows[_i].segment,
                       .impl = impl_find(TARGET_CUDA, rows[_i].impl)};
    const char *why = "";
    OK(schedule_parse(c.impl, rows[_i].schedule, &c.schedule, &st));
    ck_assert_int_eq(choice_applicable(&c, rows[_i].target, &why), rows[_i].why == NULL);
    ck_assert_msg(rows[_i].why == NULL || strstr(why, rows[_i].why) != NULL, "%s", why);
}

struct named {
    char *symbol;
    struct choice choice;
};

static int by_symbol(const void *a, const void *b)
{
    return strcmp(((const struct named *)a)->symbol, ((const struct named *)b)->symbol);
}

static void check_same_source(const struct choice *a, const struct choice *b)
{
    SCOPED_BUF one = BUF_INIT, other = BUF_INIT;
    choice_emit(a, &hopper, &one);
    choice_emit(b, &hopper, &other);
    ck_assert_str_eq(one.ptr, other.ptr);
}

/* A knob that is an argument of the function is not at its default. */
static bool turns_argument(const struct choice *c)
{
    for (int k = 0; k < c->impl->knob_count; k++)
        if (!c->impl->knobs[k].compile_time && c->schedule.pick[k] != 0)
            return true;
    return false;
}

/* Programs hold the sources of many choices side by side. */
TEST(sources_with_the_same_symbol_are_the_same)
{
    enum { MOST = SEGMENT_COUNT * CUDA_CHOICES_MAX };
    SCOPED struct named *of = mem_alloc(MOST, sizeof(*of));
    int count = 0, shared = 0;
    for (int i = 0; i < SEGMENT_COUNT; i++) {
        struct choice choices[2 * CUDA_CHOICES_MAX];
        int n = all_choices(segment_at(i), choices);
        for (int c = 0; c < n; c++) {
            struct buf symbol = BUF_INIT;
            if (turns_argument(&choices[c]))
                continue; /* the same function */
            choice_symbol(&choices[c], &symbol);
            of[count++] = (struct named){buf_detach(&symbol), choices[c]};
        }
    }
    qsort(of, (size_t)count, sizeof(*of), by_symbol);
    for (int i = 1; i < count; i++)
        if (strcmp(of[i - 1].symbol, of[i].symbol) == 0) {
            ck_assert_str_eq(of[i].choice.impl->name, "hopper_gemm");
            check_same_source(&of[i - 1].choice, &of[i].choice);
            shared++;
        }
    ck_assert_int_gt(shared, 0);
    while (count > 0)
        free(of[--count].symbol);
}

/* ---- launches -------------------------------------------------------------------------------- */

static const int head_sizes[] = {8, 16, 32, 48, 64, 72, 80, 96, 104, 128, 256};

enum { THREADS_MAX = 1024 }; /* of a thread block, on every architecture */

static void check_launch(const struct choice *c, const struct build_target *t,
                         const struct workload *w)
{
    struct cuda_launch l;
    choice_launch(c, w, &l);
    ck_assert_int_ge(l.threads, 128);
    ck_assert_int_le(l.threads, THREADS_MAX);
    ck_assert_int_eq(l.threads % 32, 0);
    ck_assert_int_ge(l.shared_bytes, 0);
    ck_assert_int_le(l.shared_bytes, arch_shared_bytes(t->arch));
    ck_assert_int_ge(l.tiles, 1);
    ck_assert_int_ge(l.sync_words, 32);
    bool split = strcmp(c->impl->name, "generated") == 0 && choice_knob(c, "split") > 1;
    ck_assert_int_eq(l.workspace_bytes > 0, split);
}

TEST_LOOP(launches_are_sane, 0, 2 * DTYPE_COUNT * ARRAY_LEN(head_sizes))
{
    struct workload w = workload_of_195((enum dtype)(_i / 2 % DTYPE_COUNT));
    w.head_size = head_sizes[_i / 2 / DTYPE_COUNT];
    OK(workload_check(&w, &st));
    static const char *const capabilities[] = {"sm_80", "sm_90"};
    struct build_target t = build_target_of(TARGET_CUDA, capabilities[_i % 2], false, &w);
    bool too_wide = w.head_size == 256 && dtypes[w.dtype].bytes == 4 && t.arch == 80;
    ck_assert_int_eq(build_check(&t, &w, &st), too_wide ? -1 : 0);
    for (int i = 0; i < SEGMENT_COUNT && !too_wide; i++)
        for (int hand = 0; hand < 2; hand++) {
            struct choice choices[CUDA_CHOICES_MAX];
            int n = choices_for(&t, segment_at(i), hand != 0, CUDA_CHOICES_MAX, choices);
            ck_assert_int_ge(n, 1);
            for (int c = 0; c < n; c++)
                check_launch(&choices[c], &t, &w);
        }
    workload_release(&w);
}

/* ---- what code is compiled for --------------------------------------------------------------- */

static const struct {
    int head_size, ffn;
    enum dtype dtype;
    const char *capability, *message;
} without_code[] = {
    {60, 64, DTYPE_FP16, "sm_90",
     "the cuda target has no code for head size 60; expected a multiple of 8 up to 256"},
    {264, 64, DTYPE_FP16, "sm_90",
     "the cuda target has no code for head size 264; expected a multiple of 8 up to 256"},
    {32, 64, DTYPE_FP16, "sm_75", "the cuda target has no code for sm_75; expected sm_80 or later"},
    {128, 64, DTYPE_FP32, "sm_89",
     "the cuda target has no code for head size 128 in fp32 on sm_89: it needs more shared memory "
     "than a thread block can have"},
};

TEST_LOOP(sizes_without_code_are_refused, 0, ARRAY_LEN(without_code))
{
    const struct workload w = {.chain = &chain_bert,
                               .head_size = without_code[_i].head_size,
                               .ffn = without_code[_i].ffn,
                               .dtype = without_code[_i].dtype};
    struct build_target t = build_target_of(TARGET_CUDA, without_code[_i].capability, false, &w);
    ck_assert_int_eq(build_check(&t, &w, &st), -1);
    ck_assert_str_eq(st.message, without_code[_i].message);
    t = build_target_of(TARGET_CPU, "avx512", false, &w);
    OK(build_check(&t, &w, &st));
}

/* The segments that compute a GEMM or what it reads, where implementations have e4m3 or none. */
TEST(precision_without_kernels_is_refused)
{
    static const struct {
        struct segment s;
        unsigned gemms;
    } touched[] = {{{0, 0}, 1 << GEMM_QKV},
                   {{2, 6}, 1 << GEMM_OUT},
                   {{2, 5}, 0},
                   {{7, 9}, 1 << GEMM_OUT | 1 << GEMM_FFN1},
                   {{10, 11}, 1 << GEMM_FFN1 | 1 << GEMM_FFN2},
                   {{13, 14}, 1 << GEMM_QKV},
                   {{0, 14}, GEMM_ALL}};
    SCOPED_BY(workload_release) struct workload w = workload_of_195(DTYPE_FP16);
    struct build_target t = build_target_of(TARGET_CUDA, "sm_80", true, &w);
    for (size_t i = 0; i < ARRAY_LEN(touched); i++)
        for (int chain = 0; chain < 2; chain++)
            ck_assert_uint_eq(segment_gemms(chain_find(chain == 0 ? "bert" : "pre"), touched[i].s),
                              touched[i].gemms);
    for (int g = 0; g < GEMM_COUNT; g++) {
        struct choice c;
        t.precision = 1u << g;
        FAILS(build_check(&t, &w, &st), STATUS_UNFIT, gemm_names[g]);
        ck_assert_int_eq(choices_for(&t, (struct segment){2, 5}, false, 1, &c) > 0, true);
        ck_assert_int_eq(choices_for(&t, (struct segment){0, 14}, false, 1, &c), 0);
    }
    static const enum dtype halves[] = {DTYPE_FP16, DTYPE_BF16};
    for (size_t i = 0; i < ARRAY_LEN(halves); i++) {
        w.dtype = halves[i];
        t = build_target_of(TARGET_CUDA, "sm_90", true, &w);
        t.precision = GEMM_ALL;
        FAILS(build_check(&t, &w, &st), STATUS_UNFIT,
              "ffn2 on sm_90a in e4m3 with ffn 136, no multiple of 16; without");
        t.precision &= ~(1u << GEMM_FFN2);
        OK(build_check(&t, &w, &st));
        static const char *const sizes[] = {"hidden size 48, no multiple of 64",
                                            "head size 24, no multiple of 16"};
        struct workload odd = w;
        odd.head_size = 24;
        for (int g = 0; g < 2; g++) {
            struct build_target of_odd = build_target_of(TARGET_CUDA, "sm_90", true, &odd);
            of_odd.precision = 1u << g;
            FAILS(build_check(&of_odd, &odd, &st), STATUS_UNFIT, sizes[g]);
        }
    }
    w.dtype = t.dtype = DTYPE_FP32;
    FAILS(build_check(&t, &w, &st), STATUS_UNFIT, "no kernels for qkv on sm_90a in e4m3");
}

/* Chains whose first tensors fit one kernel with attention, and those that are turned before it. */
static const struct {
    const char *chain, *capability;
    unsigned value; /* 0: nothing is expected */
} expected[] = {{"bert", "sm_90", 48920},
                {"pre+gelu_tanh", "sm_90", 48920},
                {"silu+gate+rope", "sm_90", 7960},
                {"bert", "sm_80", 0}};

TEST_LOOP(plans_of_the_least_expected_time, 0, ARRAY_LEN(expected))
{
    struct plan plan;
    SCOPED_BY(workload_release) struct workload w = workload_sized(8, 512);
    w.dtype = DTYPE_FP16;
    w.rope_theta = 1000;
    w.chain = chain_find(expected[_i].chain);
    workload_ready(&w, "full", NULL, NULL);
    struct build_target t = build_target_of(TARGET_CUDA, expected[_i].capability, true, &w);
    ck_assert_int_eq(plan_expected(&t, &plan), expected[_i].value != 0);
    if (expected[_i].value != 0)
        ck_assert_uint_eq(plan_value(plan), expected[_i].value);
}

/* Tiles of an order of tokens are launched for all layers alike. */
TEST_LOOP(kinds_of_layers_share_an_order_of_tokens, 0, 3)
{
    SCOPED_BY(workload_release) struct workload w = workload_sized(1, 512);
    w.dtype = DTYPE_FP16;
    if (_i > 0)
        OK(workload_add_local(&w, _i == 1 ? "strided:t=7" : "sliding", 0, 2, &st));
    workload_ready(&w, "strided:t=7", NULL, NULL);
    ck_assert_int_eq(build_target_of(TARGET_CUDA, "sm_90", true, &w).ordered, _i < 2);
}

SUITE("cuda_choices", NULL, NULL)
