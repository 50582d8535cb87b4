/* Uses an exported library whose GEMMs have operands of e4m3; e4m3.sh builds it with the folder.
 * The library has one plan, (2,100) in a half type, and is of draw_model(1).
 *
 * codes Y: writes to Y what it computes; fails, and says why, if it refuses the model. */
#include "library.h"

#include <float.h>
#include <math.h>

static const int lengths[BATCH] = {SEQ_LEN, 37};

static size_t elements(void)
{
    return (size_t)BATCH * SEQ_LEN * (size_t)hidden();
}

/* y of x that is drawn, whose bits are those of the first call in every later one. */
static void run(const struct encoder *e, const int *real, uint16_t *y)
{
    const size_t bytes = elements() * sizeof(*y);
    struct encoder_call call = call_new(BATCH, SEQ_LEN);
    call.lengths = real;
    srand(7);
    uint16_t *x = malloc(bytes);
    for (size_t i = 0; i < elements(); i++)
        element_store(encoder_describe()->dtype, x, i, 2 * (float)rand() / (float)RAND_MAX - 1);
    device_write((void *)call.x, x, bytes);
    for (int i = 0; i < 3; i++) { /* the third one replays a graph */
        CHECK(encoder_run(e, &call) == ENCODER_OK);
        uint16_t *again = malloc(bytes);
        device_read(again, call.y, bytes);
        CHECK(i == 0 || memcmp(again, y, bytes) == 0);
        memcpy(y, again, bytes);
        free(again);
    }
    free(x);
    call_delete(&call);
}

/* The weights in the library's type, in memory of the device. */
static void round_model(struct encoder_weights *rounded)
{
    for (int i = 0; i < LAYERS * WEIGHTS; i++) {
        const struct encoder_info *l = encoder_describe();
        const size_t d = (size_t)l->hidden, f = (size_t)l->ffn;
        const size_t n[WEIGHTS] = {3 * d * d, 3 * d, d * d, d, d, d, d * f, f, f * d, d, d, d};
        const int layer = i / WEIGHTS, id = i % WEIGHTS;
        uint16_t *halves = malloc(n[id] * sizeof(*halves));
        for (size_t k = 0; k < n[id]; k++)
            element_store(l->dtype, halves, k, drawn[layer][id][k]);
        void *at = device_new(n[id] * sizeof(*halves));
        device_write(at, halves, n[id] * sizeof(*halves));
        ((const void **)&rounded[layer])[id] = at;
        free(halves);
    }
}

static void test_refused(void)
{
    const bool bf16 = encoder_describe()->dtype == ENCODER_BF16;
    struct encoder *e;
    float *w1 = drawn[1][6], *bo = drawn[2][3];
    const float first = w1[5], bias = bo[0];
    model.layers = LAYERS - 1;
    CHECK(encoder_create(&model, &e) == ENCODER_BAD_ARGUMENT && e == NULL);
    CHECK(said("the model has 2 layers, and the library scales of 3"));
    model.layers = LAYERS;
    w1[5] = bf16 ? FLT_MAX : 1e6f; /* beyond the type */
    CHECK(encoder_create(&model, &e) == ENCODER_BAD_ARGUMENT &&
          said(bf16 ? "layer 1: element 5 of w1 is inf in bf16"
                    : "layer 1: element 5 of w1 is inf in fp16"));
    w1[5] = NAN;
    CHECK(encoder_create(&model, &e) == ENCODER_BAD_ARGUMENT &&
          said("layer 1: element 5 of w1 is "));
    w1[5] = first;
    bo[0] = bias + 0.25f;
    CHECK(encoder_create(&model, &e) == ENCODER_BAD_ARGUMENT &&
          said("another model; give the one that was calibrated"));
    bo[0] = bias;
    model.dtype = bf16 ? ENCODER_FP16 : ENCODER_BF16;
    CHECK(encoder_create(&model, &e) == ENCODER_BAD_ARGUMENT &&
          said(bf16 ? "the weights are fp16; the library takes bf16 or fp32"
                    : "the weights are bf16; the library takes fp16 or fp32"));
    model.dtype = ENCODER_FP32;
}

int main(int argc, char **argv)
{
    struct encoder_weights rounded[LAYERS];
    struct encoder *e, *of_halves;
    draw_model(1);
    model.dtype = ENCODER_FP32;
    if (argc != 2 || encoder_create(&model, &e) != ENCODER_OK) {
        printf("%s\n", encoder_message());
        free_model();
        return EXIT_FAILURE;
    }
    uint16_t *y = malloc(elements() * sizeof(*y)), *other = malloc(elements() * sizeof(*y));
    test_refused();
    run(e, NULL, y);

    round_model(rounded);
    struct encoder_model halves = model;
    halves.dtype = encoder_describe()->dtype;
    halves.weights = rounded;
    halves.on_device = 1;
    CHECK(encoder_create(&halves, &of_halves) == ENCODER_OK);
    run(of_halves, NULL, other);
    CHECK(memcmp(y, other, elements() * sizeof(*y)) == 0);
    run(of_halves, lengths, other);
    CHECK(memcmp(y, other, (size_t)SEQ_LEN * (size_t)hidden() * sizeof(*y)) == 0);

    FILE *out = fopen(argv[1], "wb");
    fwrite(y, sizeof(*y), elements(), out);
    fwrite(other, sizeof(*y), elements(), out);
    fclose(out);
    encoder_destroy(of_halves);
    encoder_destroy(e);
    for (int i = 0; i < LAYERS * WEIGHTS; i++)
        device_delete((void *)((const void **)&rounded[i / WEIGHTS])[i % WEIGHTS]);
    free(y);
    free(other);
    free_model();
    return report();
}
