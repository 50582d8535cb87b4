/* The library in use: one batch of drawn inputs, the time of a run.
 *
 *   example                               runs layers of drawn weights
 *   example --weights model.safetensors   runs those of a HuggingFace model
 *
 * In a file with several models '--prefix bert' chooses that whose names begin so, '--prefix .'
 * that without a prefix. */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include "elements.h"
#include "encoder.h"
#include "host.h"
#include "weights.h"

#include <stdbool.h>
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

/* n elements, drawn in middle +- range.  The caller frees. */
static void *draw_as(enum encoder_dtype dtype, size_t n, float middle, float range)
{
    void *out = allocate(n * sizeof(float));
    for (size_t i = 0; i < n; i++)
        element_store(dtype, out, i, middle + range * (2 * (float)rand() / (float)RAND_MAX - 1));
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

int main(int argc, char **argv)
{
    const struct encoder_info *l = encoder_describe();
    const struct encoder_plan *p = encoder_plan_at(l->plans - 1);
    size_t n = (size_t)p->batch * (size_t)p->seq_len * (size_t)l->heads * (size_t)l->head_size;
    size_t bytes = n * (size_t)l->element_bytes;
    bool chooses = argc == 5 && strcmp(argv[3], "--prefix") == 0;
    bool loads = (argc == 3 || chooses) && strcmp(argv[1], "--weights") == 0;
    int layers = l->layers;
    if (argc > 1 && !loads) {
        fprintf(stderr, "usage: example [--weights model.safetensors [--prefix NAMES]]\n");
        return 2;
    }
    device_begin(argv);
    handle =
        loads ? create_loaded(argv[2], chooses ? argv[4] : NULL, &layers) : create_drawn(layers);
    call.batch = p->batch;
    call.seq_len = p->seq_len;
    void *host = draw(n, 0, 1), *x = device_new(bytes);
    device_write(x, host, bytes);
    call.x = x;
    call.y = device_new(bytes);
    call.workspace_bytes = encoder_workspace_bytes(call.batch, call.seq_len);
    call.workspace = device_new(call.workspace_bytes);
    device_time(pass);
    printf("plan %d, batch %d, sequence length %d, %d layers: %.4f ms\n", p->value, p->batch,
           p->seq_len, layers, device_time(pass));

    double sum = 0;
    device_read(host, call.y, bytes);
    for (size_t i = 0; i < n; i++) {
        double value = element_load(l->dtype, host, i);
        sum += value * value;
    }
    printf("mean square of the output: %.6f\n", sum / (double)n);
    free(host);
    device_delete(x);
    device_delete(call.y);
    device_delete(call.workspace);
    encoder_destroy(handle);
    return EXIT_SUCCESS;
}
