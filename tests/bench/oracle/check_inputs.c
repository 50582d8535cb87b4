#include "bench/oracle/oracle.h"
#include "tests/suite.h"

static struct workload workload_of(enum dtype dtype)
{
    return (struct workload){.chain = &chain_bert,
                             .batch = 2,
                             .seq_len = 50,
                             .heads = 3,
                             .head_size = 7,
                             .ffn = 30,
                             .layers = 2,
                             .eps = 1e-5,
                             .dtype = dtype};
}

/* Element i of array a of layer l in [0,1), from the definition. */
static double unit(uint64_t seed, uint64_t l, uint64_t a, uint64_t i)
{
    uint64_t bits = splitmix64(seed + (l * 16 + a) * 1099511627776u + i) >> 11;
    return (double)bits / 9007199254740992.0;
}

TEST_LOOP(weights_are_as_defined, 0, WEIGHT_BETA2 + 1)
{
    struct workload w = workload_of(DTYPE_FP32);
    int id = _i;
    int64_t n = weight_elements(id, &w);
    bool gamma = strncmp(chain_bert.weights[id].name, "gamma", 5) == 0;
    SCOPED float *out = mem_alloc((size_t)n, sizeof(*out));
    for (int layer = 0; layer < 2; layer++)
        for (int k = 0; k < 2; k++) {
            bool wide = k == 1;
            double middle = gamma && !wide ? 1 : 0, reach = wide ? 0.4 : 0.05;
            double lo = middle - reach, hi = middle + reach, sum = 0;
            struct inputs in = {.seed = 42, .ranges = wide ? RANGES_WIDE : RANGES_UNIFORM};
            inputs_weight(&w, in, layer, id, out);
            for (int64_t i = 0; i < n; i++) {
                double u = unit(42, (uint64_t)layer, (uint64_t)id, (uint64_t)i);
                if (fabs(out[i] - (lo + u * (hi - lo))) > 1e-7 || out[i] < (float)lo ||
                    out[i] > (float)hi)
                    ck_abort_msg("%s, element %lld: %.9g", chain_bert.weights[id].name,
                                 (long long)i, out[i]);
                sum += out[i];
            }
            ck_assert_double_eq_tol(sum / (double)n, (lo + hi) / 2,
                                    2.5 * (hi - lo) / sqrt((double)n));
        }
}

/* _i: whether each column of a matrix has its own scale.  Scales are powers of two, so that it
 * shows in numbers far below the largest alone: the matrix is one row of many. */
TEST_LOOP(matrices_in_e4m3_are_rounded_and_no_others, 0, 2)
{
    enum { ROUNDED = 2, LAYER = 1 };
    struct workload w = workload_of(DTYPE_FP32);
    w.heads = w.head_size = 1, w.ffn = 200000;
    struct inputs in = {.seed = 42};
    struct rounding rounding = {.scale = {[ROUNDED] = 1}};
    int matrix = chain_bert.ops[chain_gemm(&chain_bert, ROUNDED)].weight[ROLE_MATRIX];
    float *weight[WEIGHT_MAX];
    inputs_weights(&w, in, LAYER, &rounding, _i == 1, weight);
    for (int id = 0; id < WEIGHT_MAX; id++) {
        size_t n = (size_t)weight_elements(id, &w);
        SCOPED float *expected = mem_alloc(n, sizeof(*expected));
        inputs_weight(&w, in, LAYER, id, expected);
        if (id == matrix)
            e4m3_round_weight(expected, dim_size(chain_bert.weights[id].rows, &w),
                              dim_size(chain_bert.weights[id].cols, &w), _i == 1);
        ck_assert_mem_eq(weight[id], expected, n * sizeof(*expected));
    }
    weights_release(weight);
}

TEST(x_is_as_defined)
{
    struct workload w = workload_of(DTYPE_FP32);
    SCOPED_BY(flow_release) struct flow out, again;
    inputs_flow(&w, (struct inputs){.seed = 7}, &out);
    inputs_flow(&w, (struct inputs){.seed = 8}, &again);
    ck_assert_ptr_null(out.tensor[TENSOR_N]);
    for (uint64_t i = 0; i < 2 * 50 * 21; i++)
        ck_assert_float_eq(out.tensor[TENSOR_X][i], (float)((2 * unit(7, 0, 15, i) - 1) * 0.4));
    ck_assert_mem_ne(out.tensor[TENSOR_X], again.tensor[TENSOR_X], 2 * 50 * 21 * sizeof(float));
}

/* _i: the element type. */
TEST_LOOP(values_are_rounded_to_the_type, 0, DTYPE_COUNT)
{
    enum dtype dtype = (enum dtype)_i;
    struct workload w = workload_of(DTYPE_FP32);
    SCOPED_BY(flow_release) struct flow wide, narrow;
    inputs_flow(&w, (struct inputs){.seed = 3}, &wide);
    w.dtype = dtype;
    inputs_flow(&w, (struct inputs){.seed = 3}, &narrow);
    for (int64_t i = 0; i < tensor_elements(TENSOR_X, &w); i++)
        ck_assert_float_eq(narrow.tensor[TENSOR_X][i],
                           element_round(dtype, wide.tensor[TENSOR_X][i]));
}

SUITE("inputs", NULL, NULL)
