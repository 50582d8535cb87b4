/* What rounding costs, beside the oracle's layers one sentence at a time. */
#include "bench/accuracy/accuracy.h"
#include "tests/bench/oracle/layer_inputs.h"
#include "tests/workload.h"

enum { SENTENCES = 14, LAYERS = 2, COLUMNS = 16 };

static const char *const chains[] = {"bert", "pre", "pre+rms+silu+gate+rope+bias"};

struct run {
    struct workload w;
    struct sentences sentences;
    struct calibration calibration;
    struct accuracy_list list;
};

/* Sentences of 1 to 14 tokens, not by their lengths; all layers are local but the first. */
static void prepare(struct run *r, const char *chain, enum dtype dtype, float scale)
{
    *r = (struct run){.sentences = {.count = SENTENCES, .columns = COLUMNS, .longest = SENTENCES}};
    r->w = workload_sized(1, SENTENCES);
    r->w.chain = chain_find(chain);
    r->w.heads = 2;
    r->w.head_size = COLUMNS / 2;
    r->w.ffn = 24;
    r->w.layers = LAYERS;
    r->w.dtype = dtype;
    r->w.rope_theta = chain_functions(r->w.chain).rope ? 100 : 0;
    OK(workload_add_local(&r->w, "sliding:w=2", r->w.rope_theta, 2, &st));
    workload_ready(&r->w, "causal", NULL, NULL);
    r->sentences.lengths = mem_alloc(SENTENCES, sizeof(int));
    for (int i = 0; i < SENTENCES; i++) {
        r->sentences.lengths[i] = 1 + i * 5 % SENTENCES;
        r->sentences.tokens += r->sentences.lengths[i];
    }
    float *rows = mem_alloc((size_t)r->sentences.tokens * COLUMNS, sizeof(*rows));
    struct rng draw = {7};
    for (int64_t i = 0; i < r->sentences.tokens * COLUMNS; i++)
        rows[i] = (float)rng_normal(&draw);
    r->sentences.rows = rows;
    r->calibration.layers = LAYERS;
    r->calibration.scale = mem_alloc(LAYERS, sizeof(*r->calibration.scale));
    for (int i = 0; i < LAYERS * GEMM_COUNT; i++)
        r->calibration.scale[i / GEMM_COUNT][i % GEMM_COUNT] = scale;
    OK(accuracy_run(&r->w, (struct inputs){.ranges = RANGES_WIDE}, &r->sentences, &r->calibration,
                    1 << GEMM_QKV | 1 << GEMM_FFN1, NULL, &r->list, &st));
    ck_assert_int_eq(r->list.count, ACCURACY_MAX);
}

static void release(struct run *r)
{
    accuracy_release(&r->list);
    calibration_release(&r->calibration);
    sentences_release(&r->sentences);
    workload_release(&r->w);
}

/* Layer 0 of a sentence by its own: its rows, rounded to the dtype if any is. */
static void run_alone(const struct run *r, int sentence, enum dtype dtype, bool rounds,
                      struct oracle_layer *out)
{
    SCOPED_BY(workload_release) struct workload w;
    int64_t before = 0;
    workload_copy(&w, &r->w);
    w.seq_len = r->sentences.lengths[sentence];
    w.dtype = dtype;
    workload_ready(&w, "causal", NULL, NULL);
    struct inputs in = {.ranges = RANGES_WIDE};
    SCOPED_BY(layer_inputs_release) struct layer_inputs inputs = layer_inputs_draw(&w, in, 0);
    for (int i = 0; i < sentence; i++)
        before += r->sentences.lengths[i] * COLUMNS;
    for (int64_t i = 0; i < (int64_t)w.seq_len * COLUMNS; i++)
        inputs.flow.tensor[TENSOR_X][i] = element_round(dtype, r->sentences.rows[before + i]);
    if (inputs.flow.tensor[TENSOR_N] != NULL)
        flow_normalise(&w, in, &inputs.flow);
    struct rounding rounding = {.dtype = dtype, .stored = rounding_stored(w.chain)};
    layer_inputs_round(&w, &inputs, rounds ? &rounding : NULL, 1, out);
}

/* _i: a chain. */
TEST_LOOP(errors_are_those_of_sentences_alone, 0, ARRAY_LEN(chains))
{
    SCOPED_BY(release) struct run r;
    double off = 0, norm = 0;
    prepare(&r, chains[_i], DTYPE_FP16, 0x1p-4f);
    for (int i = 0; i < SENTENCES; i++) {
        SCOPED_BY(oracle_layer_release) struct oracle_layer exact, half;
        run_alone(&r, i, DTYPE_FP32, false, &exact);
        run_alone(&r, i, DTYPE_FP16, true, &half);
        for (int k = 0; k < r.sentences.lengths[i] * COLUMNS; k++) {
            double is = exact.tensor[TENSOR_Y][k], d = half.tensor[TENSOR_Y][k] - is;
            off += d * d;
            norm += is * is;
        }
    }
    ck_assert_double_eq_tol(r.list.items[1].errors[0], sqrt(off / norm), 1e-6);
}

/* fp32 is exact to its fraction, bf16 has 8 times the error of fp16, and the squares of single
 * GEMMs' errors add up to about that of all. */
TEST_LOOP(types_and_gemms_cost_what_they_should, 0, ARRAY_LEN(chains))
{
    SCOPED_BY(release) struct run r;
    prepare(&r, chains[_i], DTYPE_FP16, 0x1p-4f);
    const struct accuracy *a = r.list.items;
    for (int l = 0; l < LAYERS; l++) {
        double squares = 0;
        ck_assert_double_lt(a[0].errors[l], 1e-6);
        ck_assert_double_gt(a[2].errors[l] / a[1].errors[l], 4);
        ck_assert_double_lt(a[2].errors[l] / a[1].errors[l], 16);
        for (int g = 0; g < GEMM_COUNT; g++) {
            ck_assert_uint_eq(a[3 + g].gemms, 1u << g);
            squares += a[3 + g].errors[l] * a[3 + g].errors[l];
        }
        ck_assert_double_gt(a[7].errors[l], 0.5 * sqrt(squares));
        ck_assert_double_lt(a[7].errors[l], 2 * sqrt(squares));
    }
    double two = hypot(a[3 + GEMM_QKV].errors[0], a[3 + GEMM_FFN1].errors[0]) / a[9].errors[0];
    ck_assert(a[9].gemms == (1 << GEMM_QKV | 1 << GEMM_FFN1) && two > 0.5 && two < 2);
    ck_assert(a[8].by_column && a[8].errors[0] < 1.1 * a[7].errors[0]);
    for (int i = 0; i < ACCURACY_MAX; i++) {
        ck_assert(a[i].cosine_least <= a[i].cosine_mean && a[i].cosine_mean <= 1 + 1e-9);
        ck_assert(a[i].agreement > 0.5 && a[i].agreement <= 1 && a[i].sentence_cosine > 0.9);
    }
    ck_assert(a[0].agreement == 1);
    ck_assert_double_eq_tol(a[0].sentence_cosine, 1, 1e-6);
}

/* What is beyond 448 * scale is counted of the GEMMs in e4m3, and of no others, from what the type
 * beside stores. */
TEST_LOOP(saturation_is_counted, 0, 2)
{
    SCOPED_BY(release) struct run r;
    int64_t beyond = 0;
    const enum dtype dtype = _i == 0 ? DTYPE_FP16 : DTYPE_BF16;
    prepare(&r, "bert", dtype, 0x1p-9f); /* 448 becomes 0.875 */
    ck_assert_str_eq(r.list.items[7].beside, dtypes[dtype].name);
    for (int64_t i = 0; i < r.sentences.tokens * COLUMNS; i++)
        beyond += fabsf(element_round(dtype, r.sentences.rows[i])) > 0.875f ? 1 : 0;
    double share = (double)beyond / (double)(r.sentences.tokens * COLUMNS);
    ck_assert(share > 0.2 && share < 0.6);
    ck_assert_double_eq_tol(r.list.items[7].saturated[0][GEMM_QKV], share, 1e-12);
    ck_assert_double_eq_tol(r.list.items[3].saturated[0][GEMM_QKV], share, 1e-12);
    ck_assert(r.list.items[7].saturated[1][GEMM_QKV] > 0);
    for (int g = 0; g < GEMM_COUNT; g++) {
        ck_assert((r.list.items[4].saturated[1][g] > 0) <= (g == GEMM_OUT));
        ck_assert(r.list.items[1].saturated[0][g] == 0);
    }
}

TEST(rows_of_another_size_are_refused)
{
    SCOPED_BY(release) struct run r;
    struct accuracy_list list;
    prepare(&r, "bert", DTYPE_FP16, 1);
    r.sentences.columns = COLUMNS + 1;
    FAILS(accuracy_run(&r.w, (struct inputs){.seed = 0}, &r.sentences, NULL, 0, NULL, &list, &st),
          STATUS_USAGE, "rows have 17 columns, and the layers 16");
}

/* ---- neighbours ------------------------------------------------------------------------------ */

/* Rows at angles in the order of their numbers. */
TEST(neighbours_are_the_nearest)
{
    enum { N = 14 };
    float rows[N][2];
    for (int i = 0; i < N; i++) {
        rows[i][0] = cosf(3 * (float)(i * i) / (N * N));
        rows[i][1] = sinf(3 * (float)(i * i) / (N * N));
    }
    SCOPED int *found = neighbours_find(rows[0], N, 2);
    for (int i = 0; i < N; i++)
        for (int k = 0; k < NEIGHBOURS; k++) {
            int j = found[i * NEIGHBOURS + k], nearer = 0, as_near = 0;
            ck_assert(j >= 0 && j < N && j != i);
            for (int other = 0; other < N; other++) {
                int distance = abs(other * other - i * i) - abs(j * j - i * i);
                nearer += other != i && distance < 0 ? 1 : 0;
                as_near += other != i && distance == 0 ? 1 : 0;
            }
            ck_assert(nearer <= k && k < nearer + as_near);
        }
    ck_assert(neighbours_agree(found, found, N) == 1);
    SCOPED int *other = neighbours_find(rows[0], N, 2);
    for (int i = 0; i < N; i++)
        other[i * NEIGHBOURS + i % NEIGHBOURS] = -1;
    ck_assert_double_eq_tol(neighbours_agree(found, other, N), 0.9, 1e-12);
}

TEST(few_rows_have_few_neighbours)
{
    const float rows[] = {1, 0, 0.8f, 0.6f, 0, 1};
    SCOPED int *found = neighbours_find(rows, 3, 2);
    const int right[] = {1, 2, -1, 0, 2, -1, 1, 0, -1};
    for (int i = 0; i < 9; i++)
        ck_assert_int_eq(found[i / 3 * NEIGHBOURS + i % 3], right[i]);
    ck_assert(neighbours_agree(found, found, 3) == 1);
}

SUITE("accuracy", NULL, NULL)
