/* The library in use: one batch of inputs, the time of a run.
 *
 *   example                               runs layers of drawn weights
 *   example --weights model.safetensors   runs those of a HuggingFace model
 *
 * In a file with several models '--prefix bert' chooses that whose names begin so, '--prefix .'
 * that without a prefix.  '--input x.npy' takes x, a NumPy array (B,S,D) of fp32, from a file, and
 * '--output y.npy' writes the result to one. */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include "arrays.h"
#include "elements.h"
#include "encoder.h"
#include "host.h"
#include "weights.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void check(int status)
{
    if (status == ENCODER_OK)
        return;
    fprintf(stderr, "example: %s: %s\n", encoder_status_text(status), encoder_message());
    exit(EXIT_FAILURE);
}

static void *allocate(size_t bytes)
{
    void *memory = malloc(bytes);
    if (memory != NULL)
        return memory;
    fprintf(stderr, "example: out of memory: %zu bytes\n", bytes);
    exit(EXIT_FAILURE);
}

static float drawn(float middle, float range)
{
    return middle + range * (2 * (float)rand() / (float)RAND_MAX - 1);
}

/* n elements, drawn in middle +- range.  The caller frees. */
static void *draw_as(enum encoder_dtype dtype, size_t n, float middle, float range)
{
    void *out = allocate(n * sizeof(float));
    for (size_t i = 0; i < n; i++)
        element_store(dtype, out, i, drawn(middle, range));
    return out;
}

static void *draw(size_t n, float middle, float range)
{
    return draw_as(encoder_describe()->dtype, n, middle, range);
}

/* shared: what weights_load() says of them. */
static struct encoder *create(const struct encoder_weights *weights, int layers,
                              void *const shared[WEIGHTS_SHARED])
{
    const struct encoder_info *l = encoder_describe();
    const struct encoder_model model = {.heads = l->heads,
                                        .head_size = l->head_size,
                                        .ffn = l->ffn,
                                        .dtype = l->dtype,
                                        .layers = layers,
                                        .eps = l->eps,
                                        .weights = weights,
                                        .score_bias = shared[0],
                                        .first_gamma = shared[1],
                                        .first_beta = shared[2],
                                        .rope_theta = l->rope_theta,
                                        .hidden = l->hidden,
                                        .rope_factor = l->rope_factor,
                                        .local_rope_theta = l->local_rope_theta};
    struct encoder *e;
    check(encoder_create(&model, &e));
    return e;
}

/* The layers of a file, behind a prefix of their names; null: it has one model. */
static struct encoder *create_loaded(const char *path, const char *prefix, int *layers)
{
    struct weights w;
    if (weights_load(path, prefix, encoder_describe(), &w) != 0) {
        fprintf(stderr, "example: '%s': %s\n", path, w.error);
        exit(EXIT_FAILURE);
    }
    *layers = w.layers;
    struct encoder *e = create(w.list, w.layers, w.shared);
    weights_release(&w);
    return e;
}

/* All layers share one layer's weights; a trained model's layers differ. */
static struct encoder *create_drawn(int layers)
{
    const struct encoder_info *l = encoder_describe();
    size_t d = (size_t)l->hidden, a = (size_t)l->heads * (size_t)l->head_size;
    size_t up = ((l->functions & ENCODER_GATE) != 0 ? 2 : 1) * (size_t)l->ffn;
    size_t distances = 2 * (size_t)l->seq_len - 1;
    size_t most = d + 3 * a > up ? d + 3 * a : up; /* columns of any matrix or bias */
    void *matrices = draw(d * most, 0, 0.05f), *biases = draw(most, 0, 0.05f);
    void *gammas = draw(d, 1, 0.05f);
    void *table = draw_as(ENCODER_FP32, (size_t)l->heads * distances, 0, 0.5f);
    struct encoder_weights *weights = allocate((size_t)layers * sizeof(*weights));
    for (int layer = 0; layer < layers; layer++)
        weights[layer] = (struct encoder_weights){.wqkv = matrices,
                                                  .bqkv = biases,
                                                  .wo = matrices,
                                                  .bo = biases,
                                                  .gamma1 = gammas,
                                                  .beta1 = biases,
                                                  .w1 = matrices,
                                                  .b1 = biases,
                                                  .w2 = matrices,
                                                  .b2 = biases,
                                                  .gamma2 = gammas,
                                                  .beta2 = biases};
    void *const shared[WEIGHTS_SHARED] = {table, gammas, biases};
    struct encoder *e = create(weights, layers, shared);
    free(matrices);
    free(biases);
    free(gammas);
    free(table);
    free(weights);
    return e;
}

static struct encoder *handle;
static struct encoder_call call;

static void pass(void *stream)
{
    call.stream = stream;
    check(encoder_run(handle, &call));
}

enum { WEIGHTS, PREFIX, INPUT, OUTPUT, OPTIONS };
static const char *const options[OPTIONS] = {"--weights", "--prefix", "--input", "--output"};

/* Sets the arguments of the options given, and ends the program for any other word. */
static void read_options(int argc, char **argv, const char *given[OPTIONS])
{
    int wrong = argc % 2 == 0;
    for (int i = 1; i < argc - 1 && !wrong; i += 2) {
        int at = 0;
        while (at < OPTIONS && strcmp(argv[i], options[at]) != 0)
            at++;
        wrong = at == OPTIONS;
        if (!wrong)
            given[at] = argv[i + 1];
    }
    if (!wrong && (given[PREFIX] == NULL || given[WEIGHTS] != NULL))
        return;
    fprintf(stderr, "usage: example [--weights model.safetensors [--prefix NAMES]] "
                    "[--input x.npy] [--output y.npy]\n");
    exit(2);
}

/* x of a file, and its sizes; null: it is drawn, of the largest plan's sizes.  The caller frees. */
static float *read_input(const char *path, int shape[ARRAY_DIMS])
{
    const struct encoder_info *l = encoder_describe();
    const struct encoder_plan *p = encoder_plan_at(l->plans - 1);
    shape[0] = p->batch;
    shape[1] = p->seq_len;
    shape[2] = l->hidden;
    char why[ARRAY_WHY];
    if (path == NULL)
        return NULL;
    FILE *in = fopen(path, "rb");
    float *x = in != NULL ? array_read(in, shape, why) : NULL;
    if (in == NULL)
        fprintf(stderr, "example: cannot read '%s': %s\n", path, strerror(errno));
    else if (x == NULL)
        fprintf(stderr, "example: '%s' %s\n", path, why);
    else if (shape[2] != l->hidden || encoder_find(shape[0], shape[1]) < 0)
        fprintf(stderr,
                "example: '%s' is (%d,%d,%d); no plan of the library runs it, whose hidden size is "
                "%d and whose longest plan is of %d tokens\n",
                path, shape[0], shape[1], shape[2], l->hidden, l->seq_len);
    else {
        fclose(in);
        return x;
    }
    exit(EXIT_FAILURE);
}

static void write_output(const char *path, const int shape[ARRAY_DIMS], const float *y)
{
    FILE *out = fopen(path, "wb");
    if (out != NULL && array_write(out, shape, y) == 0 && fclose(out) == 0)
        return;
    fprintf(stderr, "example: cannot write '%s': %s\n", path, strerror(errno));
    exit(EXIT_FAILURE);
}

/* Memory of a batch and the workspace; x: fp32, or null: it is drawn. */
static void prepare(const int shape[ARRAY_DIMS], const float *x, size_t n, void *host)
{
    const struct encoder_info *l = encoder_describe();
    size_t bytes = n * (size_t)l->element_bytes;
    for (size_t i = 0; i < n; i++)
        element_store(l->dtype, host, i, x != NULL ? x[i] : drawn(0, 1));
    call.batch = shape[0];
    call.seq_len = shape[1];
    void *on_device = device_new(bytes);
    device_write(on_device, host, bytes);
    call.x = on_device;
    call.y = device_new(bytes);
    call.workspace_bytes = encoder_workspace_bytes(call.batch, call.seq_len);
    call.workspace = device_new(call.workspace_bytes);
}

int main(int argc, char **argv)
{
    const struct encoder_info *l = encoder_describe();
    const char *given[OPTIONS] = {NULL};
    int layers = l->layers, shape[ARRAY_DIMS];
    read_options(argc, argv, given);
    device_begin(argv);
    float *x = read_input(given[INPUT], shape);
    handle = given[WEIGHTS] != NULL ? create_loaded(given[WEIGHTS], given[PREFIX], &layers)
                                    : create_drawn(layers);
    size_t n = (size_t)shape[0] * (size_t)shape[1] * (size_t)shape[2];
    void *host = allocate(n * sizeof(float));
    prepare(shape, x, n, host);
    device_time(pass);
    printf("plan %d, batch %d, sequence length %d, %d layers: %.4f ms\n",
           encoder_plan_at(encoder_find(shape[0], shape[1]))->value, shape[0], shape[1], layers,
           device_time(pass));

    double sum = 0;
    float *y = allocate(n * sizeof(*y));
    device_read(host, call.y, n * (size_t)l->element_bytes);
    for (size_t i = 0; i < n; i++) {
        y[i] = element_load(l->dtype, host, i);
        sum += (double)y[i] * y[i];
    }
    printf("mean square of the output: %.6f\n", sum / (double)n);
    if (given[OUTPUT] != NULL)
        write_output(given[OUTPUT], shape, y);
    free(x);
    free(y);
    free(host);
    device_delete((void *)call.x);
    device_delete(call.y);
    device_delete(call.workspace);
    encoder_destroy(handle);
    if (fflush(stdout) == 0 && !ferror(stdout))
        return EXIT_SUCCESS;
    fprintf(stderr, "example: cannot write the time: %s\n", strerror(errno));
    return EXIT_FAILURE;
}
