/* The model of programs that test an exported library of one plan, (2,100) in fp32. */
#ifndef FUSEPLAN_TESTS_CMD_LIBRARY_H
#define FUSEPLAN_TESTS_CMD_LIBRARY_H

#include "elements.h"
#include "encoder.h"
#include "host.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { BATCH = 2, SEQ_LEN = 100, LAYERS = 3, WEIGHTS = 12 };

static int failures;

#define CHECK(what)                                                                                \
    do {                                                                                           \
        if (!(what)) {                                                                             \
            printf("line %d: %s (%s)\n", __LINE__, #what, encoder_message());                      \
            failures++;                                                                            \
        }                                                                                          \
    } while (0)

static inline int hidden(void)
{
    return encoder_describe()->hidden;
}

static inline bool on_cpu(void)
{
    return strcmp(encoder_describe()->target, "cpu") == 0;
}

/* Whether the last message holds a text. */
static inline bool said(const char *text)
{
    return strstr(encoder_message(), text) != NULL;
}

/* A call with memory of its own, all zeros. */
static inline struct encoder_call call_new(int batch, int seq_len)
{
    const size_t bytes = (size_t)batch * (size_t)seq_len * (size_t)hidden() *
                         (size_t)encoder_describe()->element_bytes;
    struct encoder_call c = {.batch = batch,
                             .seq_len = seq_len,
                             .x = device_new(bytes),
                             .y = device_new(bytes),
                             .workspace_bytes = encoder_workspace_bytes(batch, seq_len)};
    c.workspace = device_new(c.workspace_bytes);
    return c;
}

static inline void call_delete(const struct encoder_call *c)
{
    device_delete((void *)c->x);
    device_delete(c->y);
    device_delete(c->yn);
    device_delete(c->workspace);
    device_delete((void *)c->device_lengths);
}

/* Of a workspace, enough for tensors, not for cuBLASLt's part. */
static inline size_t bytes_of_tensors(size_t workspace_bytes)
{
    const size_t some = 1 << 20;
    return workspace_bytes < some ? workspace_bytes : some;
}

static inline bool has(unsigned function)
{
    return (encoder_describe()->functions & function) != 0;
}

static float *score_bias;
static float *drawn[LAYERS][WEIGHTS];
static struct encoder_weights weights[LAYERS];
static struct encoder_model model;

/* The caller frees. */
static inline float *draw(size_t n, float middle)
{
    float *out = malloc(n * sizeof(*out));
    for (size_t i = 0; i < n; i++)
        out[i] = middle + 0.1f * ((float)rand() / (float)RAND_MAX - 0.5f);
    return out;
}

static inline void draw_model(unsigned seed)
{
    const struct encoder_info *l = encoder_describe();
    size_t d = (size_t)hidden(), f = (size_t)l->ffn, up = has(ENCODER_GATE) ? 2 * f : f;
    size_t a = (size_t)l->heads * (size_t)l->head_size;
    const size_t n[WEIGHTS] = {3 * d * a, 3 * a, a * d, d, d, d, d * up, up, f * d, d, d, d};
    srand(seed);
    for (int layer = 0; layer < LAYERS; layer++) {
        float **w = drawn[layer];
        for (int i = 0; i < WEIGHTS; i++) {
            free(w[i]);
            w[i] = draw(n[i], i == 4 || i == 10 ? 1 : 0);
        }
        weights[layer] = (struct encoder_weights){w[0], w[1], w[2], w[3], w[4],  w[5],
                                                  w[6], w[7], w[8], w[9], w[10], w[11]};
    }
    model = (struct encoder_model){.heads = l->heads,
                                   .head_size = l->head_size,
                                   .ffn = l->ffn,
                                   .dtype = l->dtype,
                                   .layers = LAYERS,
                                   .eps = 1e-12,
                                   .weights = weights,
                                   .hidden = l->hidden};
    free(score_bias);
    score_bias = draw((size_t)l->heads * (2 * (size_t)l->seq_len - 1), 0);
    model.score_bias = score_bias;
    model.rope_theta = l->rope_theta;
    model.local_rope_theta = l->local_rope_theta;
    if (has(ENCODER_PRE)) {
        model.first_gamma = drawn[0][4];
        model.first_beta = drawn[0][5];
    }
}

static inline void free_model(void)
{
    for (int layer = 0; layer < LAYERS; layer++)
        for (int i = 0; i < WEIGHTS; i++)
            free(drawn[layer][i]);
    free(score_bias);
}

/* What main() returns. */
static inline int report(void)
{
    printf("%d failures\n", failures);
    return failures == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}

#endif
