/* Plans with GEMMs of e4m3 on the fake driver: what is right, and what is found. */
#include "tests/bench/gpu_fixture.h"

enum { BATCH = 2, ROWS = 20 };

/* Heads of 64, so that tiles of 64 columns make up rows. */
static struct bench *open_with(const char *chain, enum dtype dtype, const char *lengths,
                               bool library)
{
    struct bench_options o = gpu_options();
    struct workload w = {.chain = chain_find(chain),
                         .batch = BATCH,
                         .seq_len = ROWS,
                         .heads = 2,
                         .head_size = 64,
                         .ffn = 256,
                         .layers = 3,
                         .eps = 1e-5,
                         .dtype = dtype};
    setenv("FAKE_GPU", "h200", 1);
    setenv("FAKE_DTYPE", dtypes[dtype].name, 1);
    setenv("FAKE_CHAIN", chain, 1);
    if (!library)
        hide_cublas();
    workload_ready(&w, "full", lengths, NULL);
    return bench_of(&o, &w);
}

static struct bench *open_chain(const char *chain, const char *lengths)
{
    return open_with(chain, DTYPE_FP16, lengths, false);
}

static struct bench *open_bench(const char *lengths)
{
    return open_chain("bert", lengths);
}

static struct build_target target_of(const struct bench *b, unsigned precision)
{
    struct build_target t = *bench_target(b);
    t.precision = precision;
    return t;
}

static struct candidate candidate_with(const struct bench *b, const char *segments,
                                       unsigned precision)
{
    const struct build_target t = target_of(b, precision);
    struct segment s[OP_COUNT];
    struct candidate c = {.precision = precision};
    OK(plan_parse_segments(segments, false, &c.plan, &st));
    c.count = plan_segments(c.plan, s);
    for (int i = 0; i < c.count; i++)
        c.choices[i] = choice_for(&t, s[i].first, s[i].last);
    return c;
}

static struct trial trial_with(struct bench *b, const char *segments, unsigned precision)
{
    const struct sampling verify = {.all_layers = true, .all_rows = true};
    struct candidate c = candidate_with(b, segments, precision);
    struct trial t;
    OK(bench_plan(b, &c, &verify, &t, &st));
    return t;
}

static const enum dtype halves[] = {DTYPE_FP16, DTYPE_BF16};

static const unsigned precisions[] = {1 << GEMM_QKV, 1 << GEMM_OUT, 1 << GEMM_FFN1 | 1 << GEMM_FFN2,
                                      1 << GEMM_FFN2, GEMM_ALL};

TEST_LOOP(plans_of_each_precision_are_right, 0, 2 * ARRAY_LEN(precisions))
{
    struct bench *b = open_with("bert", halves[_i % 2], _i % 4 < 2 ? NULL : "20,9", false);
    struct trial t = trial_with(b, "0-0,1-6,7-9,10-11,12-14", precisions[_i / 2]);
    check_ok(&t);
    bench_close(b);
}

TEST_LOOP(gated_plans_are_right, 0, ARRAY_LEN(precisions))
{
    struct bench *b = open_chain("pre+silu+gate", _i % 2 == 0 ? NULL : "20,9");
    struct trial t = trial_with(b, "0-0,1-6,7-9,10-11,12-14", precisions[_i]);
    check_ok(&t);
    bench_close(b);
}

TEST(packed_plans_are_right)
{
    SCOPED_BY(bench_close_at) struct bench *b = open_bench("20,9");
    const struct sampling verify = {.all_layers = true};
    struct candidate c = candidate_with(b, "0-0,1-6,7-9,10-11,12-14", GEMM_ALL);
    struct trial t;
    c.packed = true;
    OK(bench_plan(b, &c, &verify, &t, &st));
    check_ok(&t);
}

TEST_LOOP(segments_alone_are_right, 0, 2 * 8)
{
    static const struct segment segments[] = {{0, 0}, {0, 1},   {1, 6},   {7, 8},
                                              {7, 9}, {10, 11}, {12, 13}, {12, 14}};
    SCOPED_BY(bench_close_at) struct bench *b = open_with("bert", halves[_i / 8], NULL, false);
    const struct build_target t = target_of(b, GEMM_ALL);
    const struct choice c = choice_for(&t, segments[_i % 8].first, segments[_i % 8].last);
    struct trial trial;
    OK(bench_segment(b, &c, false, &sampling_search, &trial, &st));
    ck_assert_double_lt(trial.error, 0.5 * dtypes[halves[_i / 8]].tolerance);
    check_ok(&trial);
}

/* ---- cuBLASLt -------------------------------------------------------------------------------- */

static struct choice product_of(const struct bench *b, int first, int last, unsigned precision)
{
    const struct build_target t = target_of(b, precision);
    const struct segment s = {(int8_t)first, (int8_t)last};
    struct choice choices[100];
    int count = choices_for(&t, s, false, ARRAY_LEN(choices), choices), i = 0;
    while (i < count && !choices[i].impl->library)
        i++;
    ck_assert_int_lt(i, count);
    return choices[i];
}

static const struct {
    const char *chain;
    int first, last;
    unsigned precision;
} products[] = {
    {"bert", 0, 0, GEMM_ALL},   {"bert", 7, 7, GEMM_ALL},         {"bert", 7, 8, GEMM_ALL},
    {"bert", 10, 10, GEMM_ALL}, {"bert", 10, 11, 1 << GEMM_FFN1}, {"bert", 10, 11, GEMM_ALL},
    {"bert", 12, 12, GEMM_ALL}, {"bert", 12, 13, GEMM_ALL},       {"relu", 10, 11, GEMM_ALL},
};

TEST_LOOP(products_are_right, 0, 2 * ARRAY_LEN(products))
{
    const int i = _i / 2;
    struct bench *b = open_with(products[i].chain, halves[_i % 2], NULL, true);
    const struct choice c =
        product_of(b, products[i].first, products[i].last, products[i].precision);
    struct trial trial;
    OK(bench_segment(b, &c, false, &sampling_search, &trial, &st));
    check_ok(&trial);
    bench_close(b);
}

TEST(wrong_products_are_found)
{
    SCOPED_BY(bench_close_at) struct bench *b = open_with("bert", DTYPE_FP16, NULL, true);
    struct choice c = product_of(b, 10, 11, GEMM_ALL);
    struct trial trial;
    OK(schedule_parse(c.impl, "algorithm=1 e4m3=ffn1+ffn2", &c.schedule, &st));
    OK(bench_segment(b, &c, false, &sampling_search, &trial, &st));
    check_failed(&trial, STATUS_WRONG, "the output of ffn1_bias_gelu");
}

/* Layers of other scales, on rows with and without padding. */
TEST_LOOP(plans_of_products_are_right, 0, 4)
{
    const struct sampling verify = {.all_layers = true};
    SCOPED_BY(bench_close_at) struct bench *b = open_with("bert", halves[_i / 2], "20,9", true);
    struct candidate c = candidate_with(b, "0-0,1-6,7-9,10-11,12-14", GEMM_ALL);
    struct trial t;
    c.choices[0] = product_of(b, 0, 0, GEMM_ALL);
    c.choices[3] = product_of(b, 10, 11, GEMM_ALL);
    c.packed = _i % 2 == 1;
    OK(bench_plan(b, &c, &verify, &t, &st));
    check_ok(&t);
}

/* ---- faults ---------------------------------------------------------------------------------- */

/* What a kernel does wrong, of a segment that is verified alone.  Each tensor is in both types. */
static const struct {
    struct segment segment;
    const char *code, *says;
} faults[] = {
    {{10, 11}, "fake unordered\n", "the output of ffn1_bias_gelu"},
    {{12, 14}, "fake unordered\n", "the output of layernorm2"},
    {{1, 6}, "fake scaled\n", "the output of merge_heads"},
    {{10, 11}, "fake scaled\n", "the output of ffn1_bias_gelu"},
    {{7, 9}, "fake scaled\n", "the copy of layernorm1 in e4m3"},
    {{1, 6}, "fake wraps\n", "the output of merge_heads"},
    {{10, 11}, "fake wraps\n", "the output of ffn1_bias_gelu"},
    {{12, 14}, "fake wraps\n", "the copy of layernorm2 in e4m3"},
    {{1, 6}, "fake uncopied\n", "the output of merge_heads"},
    {{7, 9}, "fake uncopied\n", "the copy of layernorm1 in e4m3"},
    {{12, 14}, "fake wrong\n", "the output of layernorm2"},
};

TEST_LOOP(wrong_kernels_are_found, 0, ARRAY_LEN(faults))
{
    SCOPED_BY(bench_close_at) struct bench *b = open_with("bert", halves[_i % 2], NULL, false);
    const struct build_target t = target_of(b, GEMM_ALL);
    const struct segment s = faults[_i].segment;
    const struct choice c = choice_for(&t, s.first, s.last);
    struct trial trial;
    gpu_build(b, &c, faults[_i].code);
    OK(bench_segment(b, &c, false, &sampling_search, &trial, &st));
    check_failed(&trial, STATUS_WRONG, faults[_i].says);
}

/* What is stored in e4m3 alone is dumped as numbers of 4 significant bits. */
TEST(codes_are_dumped_as_numbers)
{
    SCOPED_BY(bench_close_at) struct bench *b = open_bench(NULL);
    const struct build_target t = target_of(b, GEMM_ALL);
    const struct choice c = choice_for(&t, 10, 11);
    SCOPED_BUF bytes = BUF_INIT;
    struct npy array;
    double sum = 0;
    OK(bench_dump_segment(b, &c, test_path("dump"), false, &st));
    OK(file_read(test_path("dump/ffn1_bias_gelu.npy"), 0, &bytes, &st));
    OK(npy_parse(bytes.ptr, bytes.len, &array, &st));
    const float *values = array.data;
    for (int64_t i = 0; i < (int64_t)BATCH * ROWS * 256; i++) {
        int exponent;
        const float units = ldexpf(frexpf(values[i], &exponent), 4);
        ck_assert_float_eq(units, rintf(units));
        sum += fabsf(values[i]);
    }
    ck_assert_double_gt(sum, 0);
}

/* A segment of another precision than its neighbours leaves them what they do not read. */
TEST(stale_copies_are_found)
{
    SCOPED_BY(bench_close_at) struct bench *b = open_bench(NULL);
    const struct sampling verify = {.all_layers = true, .all_rows = true};
    struct candidate c = candidate_with(b, "0-0,1-6,7-9,10-11,12-14", GEMM_ALL),
                     other = candidate_with(b, "0-0,1-6,7-9,10-11,12-14",
                                            GEMM_ALL & ~(1u << GEMM_FFN1));
    struct trial t;
    c.choices[2] = other.choices[2];
    OK(bench_plan(b, &c, &verify, &t, &st));
    check_failed(&t, STATUS_WRONG, "layer 0");
}

SUITE("e4m3", gpu_setup, test_dir_teardown)
