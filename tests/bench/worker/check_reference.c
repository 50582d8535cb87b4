#include "bench/worker/worker_int.h"
#include "tests/bench/fixture.h"
#include "tests/bench/oracle/layer_inputs.h"

#include <sys/syscall.h>

enum { LAYERS = 3 };

static const struct chain *chain = &chain_bert;
static bool two_kinds;
static struct workload w;
static struct reference reference;
static int beats[1 << 20], beat_count;

static void beat(void *ctx, int layer)
{
    ck_assert_ptr_eq(ctx, beats);
    beats[beat_count++] = layer;
}

static void open_with(enum dtype dtype, struct inputs inputs)
{
    small_workload(&w);
    w.chain = chain;
    w.rope_theta = 100;
    w.layers = LAYERS;
    w.dtype = dtype;
    if (two_kinds) {
        OK(workload_add_local(&w, "sliding:w=1", 20, 2, &st));
        OK(workload_check(&w, &st));
        OK(workload_build_mask(&w, NULL, &st));
    }
    reference_init(&reference, &w, inputs);
    reference.beat_ms = 1000000; /* once a layer */
}

static void close_all(void)
{
    reference_release(&reference);
    workload_release(&w);
}

/* Layer `layer` of the chain for the input that the reference says it had. */
static void compute(int layer, bool all_rows, struct oracle_layer *out)
{
    struct layer_inputs in = layer_inputs_draw(&w, reference.inputs, layer);
    const struct flow *given = reference_input(&reference, layer, all_rows);
    for (int t = 0; t < TENSOR_COUNT; t++)
        if ((chain_inputs(w.chain) & SET_OF(t)) != 0)
            memcpy(in.flow.tensor[t], given->tensor[t],
                   (size_t)tensor_elements(t, &w) * sizeof(float));
    layer_inputs_run(workload_of_layer(&w, layer), &in, 1, out);
    layer_inputs_release(&in);
}

static void check_tensor(const struct oracle_results *results, int t, const double *right)
{
    int64_t n = tensor_elements(t, &w);
    SCOPED float *room = mem_alloc((size_t)n, sizeof(*room));
    struct rows rows = {0, n / tensor_row_columns(&w, t)};
    const float *values = oracle_results_rows(results, t, rows, room);
    for (int64_t i = 0; i < n; i++)
        if (t != TENSOR_OF(2) || values[i] != 0) /* of scores only the kept ones are stored */
            ck_assert_float_eq(values[i], (float)right[i]);
}

static void check_layer(int layer)
{
    SCOPED_BY(oracle_layer_release) struct oracle_layer computed;
    compute(layer, true, &computed);
    const struct oracle_results *results = reference_output(&reference, layer, true);
    for (int t = 0; t < TENSOR_COUNT; t++)
        if ((chain_inputs(w.chain) & SET_OF(t)) == 0 &&
            (layer < workload_kinds(&w) || (chain_carried(w.chain) & SET_OF(t)) != 0))
            check_tensor(results, t, computed.tensor[t]);
    for (int c = 0; c < w.chain->carried_count; c++) {
        const struct carried from_to = w.chain->carried[c];
        const float *in = reference_input(&reference, layer + 1, true)->tensor[from_to.to];
        for (int64_t i = 0; i < tensor_elements(TENSOR_X, &w); i++)
            ck_assert_float_eq(in[i],
                               element_round(w.dtype, (float)computed.tensor[from_to.from][i]));
    }
}

/* _i: the element type.  A layer's input is what the type keeps of the output before. */
TEST_LOOP(layers_follow_one_another, 0, DTYPE_COUNT)
{
    chain = chain_find(_i < DTYPE_COUNT ? "bert" : "pre+rms+silu+gate+rope+bias");
    open_with((enum dtype)(_i % DTYPE_COUNT), (struct inputs){.seed = 5});
    reference_need(&reference, LAYERS, true, beat, beats);
    for (int layer = 0; layer < LAYERS; layer++)
        check_layer(layer);
}

/* The first layer of each kind is known in full. */
TEST(kinds_have_results_of_their_own)
{
    chain = chain_find("pre+gate+rope");
    two_kinds = true;
    open_with(DTYPE_FP32, (struct inputs){.seed = 5});
    reference_need(&reference, 2, false, beat, beats);
    ck_assert_int_eq(reference.known, 2);
    for (int t = 0; t < TENSOR_COUNT; t++)
        ck_assert((reference_output(&reference, 1, false)->tensor[t] != NULL) ==
                  ((chain_inputs(chain) & SET_OF(t)) == 0));
    reference_need(&reference, LAYERS, true, beat, beats);
    for (int layer = 0; layer < LAYERS; layer++)
        check_layer(layer);
}

static void check_samples(void)
{
    for (int layer = 1; layer < LAYERS; layer++) {
        SCOPED_BY(oracle_layer_release) struct oracle_layer computed;
        compute(layer, false, &computed);
        check_tensor(reference_output(&reference, layer, false), TENSOR_Y,
                     computed.tensor[TENSOR_Y]);
    }
}

/* Samples of later layers all have layer 0's output for their input. */
TEST(samples_follow_layer_0)
{
    static const int expected[] = {0, 1, 2};
    open_with(DTYPE_FP16, (struct inputs){.seed = 5});
    for (int i = 0; i < 2; i++)
        reference_need(&reference, LAYERS, false, beat, beats);
    ck_assert_int_eq(beat_count, LAYERS);
    ck_assert_mem_eq(beats, expected, sizeof(expected));
    ck_assert_int_eq(reference.known, 1);
    for (int layer = 1; layer < LAYERS; layer++)
        ck_assert_ptr_eq(reference_input(&reference, layer, false), &reference.in[1]);
    check_samples();
    check_layer(0);
}

/* A thread computes samples once layer 0 is known.  _i: layers that are needed at once. */
TEST_LOOP(samples_may_start_early, 1, LAYERS + 1)
{
    open_with(DTYPE_FP16, (struct inputs){.seed = 5});
    reference_start_samples(&reference);
    ck_assert(!reference.sampling);
    reference_need(&reference, 1, false, beat, beats);
    reference_start_samples(&reference);
    reference_need(&reference, _i, false, beat, beats);
    reference_start_samples(&reference);
    reference_need(&reference, LAYERS, false, beat, beats);
    ck_assert_double_eq(reference_left_s(&reference), 0);
    check_samples();
    close_all();

    open_with(DTYPE_FP16, (struct inputs){.seed = 5}); /* nobody needs them */
    reference_need(&reference, 1, false, beat, beats);
    reference_start_samples(&reference);
}

/* A thread computes layer 0 until it is needed, or nothing is. */
TEST(layer_0_starts_early)
{
    open_with(DTYPE_FP32, (struct inputs){.seed = 5});
    reference_start(&reference);
    reference_need(&reference, 0, true, beat, beats);
    ck_assert_int_eq(beat_count, 0);
    reference_need(&reference, 1, false, beat, beats);
    ck_assert_int_eq(reference.known, 1);
    ck_assert_int_eq(beat_count, 1);
    check_layer(0);
    reference_need(&reference, LAYERS, true, beat, beats);
    ck_assert_int_eq(beat_count, LAYERS);
    check_layer(1);
    close_all();
    open_with(DTYPE_FP32, (struct inputs){.seed = 5});
    reference_start(&reference);
}

static bool set_back; /* the time of day, by an hour, whenever it was read */

/* In the place of the system's. */
int clock_gettime(clockid_t clock, struct timespec *out)
{
    int result = (int)syscall(SYS_clock_gettime, clock, out);
    if (set_back && clock == CLOCK_REALTIME)
        out->tv_sec += 3600;
    return result;
}

/* Who waits for a layer hears of it all the time.  _i: the time of day is set back. */
TEST_LOOP(slow_layers_are_heard_of, 0, 2)
{
    set_back = _i != 0;
    w = (struct workload){.chain = &chain_bert,
                          .batch = 1,
                          .seq_len = 64,
                          .heads = 4,
                          .head_size = 64,
                          .layers = 1,
                          .eps = 1e-5};
    workload_ready(&w, "causal", NULL, NULL);
    reference_init(&reference, &w, (struct inputs){.seed = 1});
    reference.beat_ms = 1;
    reference_need(&reference, 1, true, beat, beats);
    ck_assert_int_gt(beat_count, 2);
    ck_assert_int_eq(beats[beat_count - 1], 0);
}

/* Inputs of GEMMs in e4m3 have the scales of a calibration, layer by layer; without one, scales by
 * which the oracle's values leave a half of e4m3's range. */
TEST(scales_are_those_of_a_calibration)
{
    float scale[LAYERS][GEMM_COUNT];
    for (int i = 0; i < LAYERS * GEMM_COUNT; i++)
        scale[i / GEMM_COUNT][i % GEMM_COUNT] = ldexpf(1, i - 6);
    const struct calibration c = {.layers = LAYERS, .scale = scale};
    open_with(DTYPE_FP16, (struct inputs){.seed = 1});
    beat_count = 0;
    reference_need(&reference, LAYERS, true, beat, beats);
    for (int given = 0; given < 2; given++) {
        struct tensors k = {.w = &w, .inputs = {.calibration = given == 1 ? &c : NULL}};
        e4m3_find_scales(&k, &reference);
        for (int i = 0; i < LAYERS * GEMM_COUNT; i++) {
            float found = k.e4m3.scales[i / GEMM_COUNT].in[i % GEMM_COUNT];
            if (given == 1)
                ck_assert_float_eq(found, scale[i / GEMM_COUNT][i % GEMM_COUNT]);
            else
                ck_assert(0x1p-15f <= found && found <= 1);
        }
        free(k.e4m3.scales);
        free(k.e4m3.weight);
        free(k.e4m3.placed);
    }
}

SUITE("reference", NULL, close_all)
