/* The functions that BERT's chain lacks, with values computed by hand. */
#include "bench/oracle/oracle_int.h"
#include "tests/bench/oracle/layer_inputs.h"
#include "tests/workload.h"

static struct workload w;
static struct layer_inputs in;
static struct oracle_layer layer;

/* Two tokens, a head of a few columns, F = 2; all weights 0, but gamma 1. */
static void prepare(const char *chain, int head_size)
{
    w = (struct workload){.chain = chain_find(chain),
                          .batch = 1,
                          .seq_len = 2,
                          .heads = 1,
                          .head_size = head_size,
                          .ffn = 2,
                          .layers = 1,
                          .eps = 1e-5,
                          .rope_theta = 100};
    workload_ready(&w, "full", NULL, NULL);
    in = layer_inputs_draw(&w, (struct inputs){.seed = 1}, 0);
    for (int id = 0; id < WEIGHT_MAX; id++)
        for (int64_t i = 0; i < weight_elements(id, &w) && id != WEIGHT_ROPE; i++)
            in.weight[id][i] = id == WEIGHT_GAMMA1 || id == WEIGHT_GAMMA2;
}

static void set(float *to, const float *values, size_t bytes)
{
    memcpy(to, values, bytes);
}
#define SET(to, ...) set(to, (const float[]){__VA_ARGS__}, sizeof((const float[]){__VA_ARGS__}))

/* A row of an operator's output. */
static void check_row(int op, int first, int count, const double *expected)
{
    for (int i = 0; i < count; i++)
        ck_assert_double_eq_tol(layer.tensor[TENSOR_OF(op)][first + i], expected[i], 1e-6);
}
#define CHECK_ROW(op, first, ...)                                                                  \
    check_row(op, first, ARRAY_LEN(((const double[]){__VA_ARGS__})), (const double[]){__VA_ARGS__})

static void run(void)
{
    layer_inputs_run(&w, &in, 1, &layer);
}

static void release(void)
{
    oracle_layer_release(&layer);
    layer_inputs_release(&in);
    workload_release(&w);
}

static const struct {
    const char *chain;
    double of_1, of_minus_2;
} activations[] = {
    {"bert", 0.8413447460685429, -0.0455002638963584},
    {"gelu_tanh", 0.8411919906082768, -0.0454023059026137},
    {"quick_gelu", 0.8457957659328212, -0.0643413768557919},
    {"relu", 1, 0},
    {"silu", 0.7310585786300049, -0.2384058440442351},
};

/* _i: the activation.  Of 1 and -2. */
TEST_LOOP(activations_by_hand, 0, ARRAY_LEN(activations))
{
    prepare(activations[_i].chain, 2);
    SET(in.weight[WEIGHT_B1], 1, -2);
    run();
    CHECK_ROW(11, 0, activations[_i].of_1, activations[_i].of_minus_2);
    release();
}

/* Even columns are activated, odd ones their factors. */
TEST_LOOP(gates_by_hand, 0, ARRAY_LEN(activations))
{
    char name[32];
    snprintf(name, sizeof(name), "%s+gate", activations[_i].chain);
    prepare(_i == 0 ? "gate" : name, 2);
    SET(in.weight[WEIGHT_B1], 1, 3, -2, 5);
    run();
    CHECK_ROW(11, 0, activations[_i].of_1 * 3, activations[_i].of_minus_2 * 5);
    release();
}

TEST(rms_norm_by_hand)
{
    prepare("rms", 2);
    SET(in.flow.tensor[TENSOR_X], 3, 4, 0, 0);
    SET(in.weight[WEIGHT_GAMMA1], 1, -2);
    run();
    double root = sqrt(12.5 + 1e-5);
    CHECK_ROW(9, 0, 3 / root, -8 / root);
    CHECK_ROW(9, 2, 0, 0);
    release();
}

/* Columns 0 and 2 turn by 1 for each place, 1 and 3 by 100^(-1/2); v and place 0 stay. */
TEST(rotations_by_hand)
{
    prepare("rope", 4);
    SET(in.weight[WEIGHT_BQKV], 1, 0, 0, 2, 0, 3, 5, 0, 1, 2, 3, 4);
    run();
    CHECK_ROW(1, 0, 1, 0, 0, 2);
    CHECK_ROW(1, 4, cos(1), -2 * sin(0.1), sin(1), 2 * cos(0.1));
    CHECK_ROW(1, 8, 0, 3, 5, 0);
    CHECK_ROW(1, 12, -5 * sin(1), 3 * cos(0.1), 5 * cos(1), 3 * sin(0.1));
    CHECK_ROW(1, 16, 1, 2, 3, 4);
    CHECK_ROW(1, 20, 1, 2, 3, 4);
    release();
}

/* Scores are q k / sqrt(4) = 1; the bias is of the key's place less the query's: -1, 0, 1. */
TEST(score_biases_by_hand)
{
    prepare("bias", 4);
    SET(in.weight[WEIGHT_BQKV], 1, 1, 0, 0, 1, 1, 0, 0);
    SET(in.weight[WEIGHT_SCORE_BIAS], 10, 20, 30);
    run();
    CHECK_ROW(2, 0, 1, 1, 1, 1);
    CHECK_ROW(3, 0, 21, 31, 11, 21);
    release();
}

/* The first norm of x is n; attention reads n, the sums add x and operator 8's sum. */
TEST(norms_before_by_hand)
{
    prepare("pre", 2);
    SET(in.flow.tensor[TENSOR_N], 5, 7, 0, 0);
    SET(in.flow.tensor[TENSOR_X], 1, 4, 0, 0);
    SET(in.weight[WEIGHT_WQKV], 1, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0);
    SET(in.weight[WEIGHT_BO], 1, 0);
    SET(in.weight[WEIGHT_B2], 0, 10);
    run();
    CHECK_ROW(0, 0, 5, 7, 0, 0, 0, 0);
    CHECK_ROW(8, 0, 2, 4);
    double unit = 1 / sqrt(1 + 1e-5);
    CHECK_ROW(9, 0, -unit, unit);
    CHECK_ROW(13, 0, 2, 14);
    unit = 6 / sqrt(36 + 1e-5);
    CHECK_ROW(14, 0, -unit, unit);
    release();
}

/* n of layer 0, by each norm and as its type keeps it. */
TEST_LOOP(first_norms_by_hand, 0, 2)
{
    prepare(_i == 0 ? "pre" : "pre+rms", 2);
    w.dtype = DTYPE_FP16;
    struct flow flow;
    inputs_flow(&w, (struct inputs){.seed = 1}, &flow);
    const float *x = flow.tensor[TENSOR_X], *n = flow.tensor[TENSOR_N];
    for (int i = 0; i < 4; i++) {
        double a = x[i / 2 * 2], b = x[i / 2 * 2 + 1], mean = _i == 0 ? (a + b) / 2 : 0;
        double variance = ((a - mean) * (a - mean) + (b - mean) * (b - mean)) / 2;
        double right = ((double)x[i] - mean) / sqrt(variance + 1e-5);
        ck_assert_float_eq(n[i], element_round(DTYPE_FP16, (float)right));
    }
    flow_release(&flow);
    run();
    release();
}

/* One table for all layers, in fp32 whatever the type. */
TEST(tables_are_of_all_layers)
{
    float found[2][8];
    prepare("rope+bias", 4);
    w.dtype = DTYPE_BF16;
    for (int id = WEIGHT_ROPE; id <= WEIGHT_SCORE_BIAS; id++) {
        for (int l = 0; l < 2; l++)
            inputs_weight(&w, (struct inputs){.seed = 1}, l, id, found[l]);
        size_t n = (size_t)weight_elements(id, &w);
        ck_assert_mem_eq(found[0], found[1], n * sizeof(float));
        ck_assert_float_ne(found[0][n - 1], element_round(DTYPE_BF16, found[0][n - 1]));
    }
    for (int i = 0; i < 8; i++) {
        double angle = i / 4 * (i / 2 % 2 == 0 ? 1 : 0.1);
        inputs_weight(&w, (struct inputs){.seed = 1}, 0, WEIGHT_ROPE, found[0]);
        ck_assert_float_eq(found[0][i], (float)(i % 2 == 0 ? cos(angle) : sin(angle)));
    }
    run();
    release();
}

/* ---- identities ------------------------------------------------------------------------------ */

/* y of a chain with drawn weights that `change` has had, of S = 7, two heads of 4, F = 6; free it.
 */
static double *y_of(const char *chain, void (*change)(void))
{
    w = (struct workload){.chain = chain_find(chain),
                          .batch = 2,
                          .seq_len = 7,
                          .heads = 2,
                          .head_size = 4,
                          .ffn = 6,
                          .layers = 1,
                          .eps = 1e-5,
                          .rope_theta = 100};
    workload_ready(&w, "causal", "7,5", NULL);
    in = layer_inputs_draw(&w, (struct inputs){.seed = 3, .ranges = RANGES_WIDE}, 0);
    change();
    run();
    double *y = layer.tensor[TENSOR_Y];
    layer.tensor[TENSOR_Y] = NULL;
    release();
    return y;
}

static void nothing(void)
{
}

static void angles_of_0(void)
{
    for (int64_t i = 0; i < weight_elements(WEIGHT_ROPE, &w); i++)
        in.weight[WEIGHT_ROPE][i] = i % 2 == 0;
}

/* Each place is that of the one behind it. */
static void places_later(void)
{
    struct workload longer = w;
    longer.seq_len = 8;
    float table[8 * 4];
    rope_table(&longer, table);
    memcpy(in.weight[WEIGHT_ROPE], table + 4, 7 * 4 * sizeof(*table));
}

static void bias_alike(void)
{
    for (int64_t i = 0; i < weight_elements(WEIGHT_SCORE_BIAS, &w); i++)
        in.weight[WEIGHT_SCORE_BIAS][i] = i < 13 ? 5 : -3; /* of each head */
}

/* What is activated as without a gate, times 1. */
static void factors_of_1(void)
{
    float plain[8 * 6], bias[6];
    struct workload ungated = w;
    ungated.chain = &chain_bert;
    inputs_weight(&ungated, (struct inputs){.seed = 3, .ranges = RANGES_WIDE}, 0, WEIGHT_W1, plain);
    inputs_weight(&ungated, (struct inputs){.seed = 3, .ranges = RANGES_WIDE}, 0, WEIGHT_B1, bias);
    for (int c = 0; c < 2 * 6; c++) {
        in.weight[WEIGHT_B1][c] = c % 2 == 0 ? bias[c / 2] : 1;
        for (int k = 0; k < 8; k++)
            in.weight[WEIGHT_W1][k * 12 + c] = c % 2 == 0 ? plain[k * 6 + c / 2] : 0;
    }
}

static const struct {
    const char *chain;
    void (*change)(void);
    const char *same_as; /* unchanged */
    bool same;
} identities[] = {
    {"rope", angles_of_0, "bert", true}, {"rope", places_later, "rope", true},
    {"rope", nothing, "bert", false},    {"bias", bias_alike, "bert", true},
    {"bias", nothing, "bert", false},    {"gate", factors_of_1, "bert", true},
    {"gate", nothing, "bert", false},
};

TEST_LOOP(identities_hold, 0, ARRAY_LEN(identities))
{
    SCOPED double *y = y_of(identities[_i].chain, identities[_i].change);
    double *right = y_of(identities[_i].same_as, nothing), most = 0;
    for (int i = 0; i < 2 * 7 * 8; i++)
        most = fmax(most, fabs(y[i] - right[i]));
    ck_assert_msg((most < 1e-6) == identities[_i].same, "%g", most);
    free(right);
}

/* Where norms give their beta alone, each layer adds the same to x. */
TEST(norms_of_0_add_alike)
{
    double delta[8];
    prepare("pre", 8);
    for (int id = 0; id < WEIGHT_MAX; id++)
        inputs_weight(&w, (struct inputs){.seed = 3, .ranges = RANGES_WIDE}, 0, id, in.weight[id]);
    memset(in.weight[WEIGHT_GAMMA1], 0, 8 * sizeof(float));
    memset(in.weight[WEIGHT_GAMMA2], 0, 8 * sizeof(float));
    for (int i = 0; i < 2 * 8; i++)
        in.flow.tensor[TENSOR_N][i] = in.weight[WEIGHT_BETA2][i % 8];
    run();
    for (int i = 0; i < 2 * 8; i++) {
        double added = layer.tensor[TENSOR_OF(13)][i] - in.flow.tensor[TENSOR_X][i];
        delta[i % 8] = i < 8 ? added : delta[i % 8];
        ck_assert_double_eq_tol(added, delta[i % 8], 1e-12);
        ck_assert_double_eq_tol(layer.tensor[TENSOR_Y][i], in.weight[WEIGHT_BETA2][i % 8], 1e-12);
    }
    release();
}

/* Beside the C library's, in runs of any length; what no number of fp32 can hold is 0. */
TEST(exponentials_are_exact)
{
    double x[2000], y[2000], sum;
    const int n = ARRAY_LEN(x);
    for (int i = 0; i < n; i++)
        x[i] = 3 - (i % 7 == 0 ? 1e-3 : 0.35) * i;
    for (int length = 1; length <= n; length += length < 40 ? 1 : 490) {
        double largest = x[n - 1];
        sum = 0;
        for (int i = 0; i < length; i++) {
            sum += exp(x[i] - 3);
            largest = fmax(largest, x[n - 1 - i]);
        }
        ck_assert_double_eq(oracle_largest(x + n - length, length), largest);
        ck_assert_double_eq_tol(oracle_exps(x, length, 3, y), sum, 1e-14 * sum);
    }
    for (int i = 0; i < n; i++) {
        const double right = exp(x[i] - 3);
        ck_assert_double_eq_tol(y[i], right, x[i] > -700 ? 4e-16 * right : 1e-300);
    }
    x[0] = NAN;
    ck_assert_double_nan(oracle_exps(x, 1, 3, y));
    x[0] = -INFINITY;
    ck_assert_double_eq(oracle_exps(x, 1, 3, y), 0);
}

SUITE("functions", NULL, NULL)
