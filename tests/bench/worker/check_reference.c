#include "tests/bench/oracle/layer_inputs.h"
#include "tests/bench/worker/fixture.h"

enum { LAYERS = 3 };

static struct workload w;
static struct reference reference;
static int beats[2 * LAYERS], beat_count;

static void beat(void *ctx, int layer)
{
    ck_assert_ptr_eq(ctx, beats);
    beats[beat_count++] = layer;
}

static void open_with(enum dtype dtype, struct inputs inputs)
{
    small_workload(&w);
    w.layers = LAYERS;
    w.dtype = dtype;
    reference_init(&reference, &w, inputs);
}

static void close_all(void)
{
    reference_release(&reference);
    workload_release(&w);
}

START_TEST(layers_are_computed_once_and_in_order)
{
    static const int expected[] = {0, 1, 2};
    open_with(DTYPE_FP32, (struct inputs){.seed = 1});
    reference_need(&reference, 0, beat, beats);
    ck_assert_int_eq(beat_count, 0);
    reference_need(&reference, 2, beat, beats);
    ck_assert_int_eq(reference.known, 2);
    reference_need(&reference, 1, beat, beats);
    ck_assert_int_eq(beat_count, 2);
    reference_need(&reference, LAYERS, beat, beats);
    ck_assert_int_eq(beat_count, LAYERS);
    ck_assert_mem_eq(beats, expected, sizeof(expected));
    close_all();
}
END_TEST

/* Layer `layer` of the chain for the input that the reference says it had. */
static void check_layer(int layer)
{
    int64_t n = tensor_elements(TENSOR_X, &w);
    struct layer_inputs in = layer_inputs_draw(&w, reference.inputs, layer);
    struct oracle_layer computed;
    for (int64_t i = 0; i < n; i++)
        in.x[i] = reference.x[layer][i];
    layer_inputs_run(&w, &in, 1, &computed);
    for (int64_t i = 0; i < n; i++) {
        double y = computed.tensor[TENSOR_Y][i];
        ck_assert_double_eq(reference.y[layer][i], y);
        ck_assert_float_eq(reference.x[layer + 1][i], element_round(w.dtype, (float)y));
    }
    for (int t = 0; t < TENSOR_COUNT && layer == 0; t++)
        ck_assert_mem_eq(reference.first.tensor[t], computed.tensor[t],
                         (size_t)tensor_elements(t, &w) * sizeof(double));
    oracle_layer_release(&computed);
    layer_inputs_release(&in);
}

/* _i: the element type.  A layer's input is what the type keeps of the output before. */
START_TEST(layers_follow_one_another)
{
    open_with((enum dtype)_i, (struct inputs){.seed = 5});
    reference_need(&reference, LAYERS, beat, beats);
    for (int layer = 0; layer < LAYERS; layer++)
        check_layer(layer);
    close_all();
}
END_TEST

/* _i: what differs. */
START_TEST(inputs_decide)
{
    static const struct inputs all[] = {{.seed = 1}, {.seed = 2}, {1, RANGES_WIDE}};
    double y[2][2 * 5 * 8];
    for (int i = 0; i < 2; i++) {
        open_with(DTYPE_FP32, all[i * (_i + 1)]);
        reference_need(&reference, 1, beat, beats);
        ck_assert_int_eq(tensor_elements(TENSOR_Y, &w), ARRAY_LEN(y[i]));
        memcpy(y[i], reference.y[0], sizeof(y[i]));
        close_all();
    }
    ck_assert_mem_ne(y[0], y[1], sizeof(y[0]));
}
END_TEST

SUITE("reference", NULL, NULL, ONCE(layers_are_computed_once_and_in_order),
      LOOP(layers_follow_one_another, 0, DTYPE_COUNT), LOOP(inputs_decide, 0, 2))
