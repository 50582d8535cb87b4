/* weights.c FILE: writes a made-up BERT to FILE under HuggingFace's names, and loads it as the
 * exported example does. */
#include "weights.h"

#include "elements.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { LAYERS = 2, D = 16, F = 64, TENSORS = 16, HEADER_MOST = 1 << 16 };

static const struct tensor {
    const char *name;
    int out, in; /* in 0: a vector */
} tensors[TENSORS] = {
    {"attention.self.query.weight", D, D},
    {"attention.self.query.bias", D, 0},
    {"attention.self.key.weight", D, D},
    {"attention.self.key.bias", D, 0},
    {"attention.self.value.weight", D, D},
    {"attention.self.value.bias", D, 0},
    {"attention.output.dense.weight", D, D},
    {"attention.output.dense.bias", D, 0},
    {"attention.output.LayerNorm.gamma", D, 0}, /* the older name */
    {"attention.output.LayerNorm.beta", D, 0},
    {"intermediate.dense.weight", F, D},
    {"intermediate.dense.bias", F, 0},
    {"output.dense.weight", D, F},
    {"output.dense.bias", D, 0},
    {"output.LayerNorm.weight", D, 0},
    {"output.LayerNorm.bias", D, 0},
};

/* Element (o, i) of a tensor: different for each, and exact in fp16. */
static float value(int layer, int tensor, int o, int i)
{
    return (float)((layer * 31 + tensor * 7 + o * 5 + i * 3) % 1024) / 64;
}

/* What is wrong with the file. */
struct fault {
    const char *missing;  /* a tensor of layer 1 that it lacks */
    const char *reshaped; /* one that is a column longer */
    const char *retyped;  /* one of type I16 */
};

static bool is(const char *name, const char *faulty, int layer)
{
    return faulty != NULL && layer == 1 && strcmp(name, faulty) == 0;
}

static void write_model(const char *path, const struct fault *fault)
{
    static char header[HEADER_MOST];
    size_t len = 0, at = 0;
    uint16_t *data = malloc((size_t)LAYERS * 2 * (4 * D * D + 2 * D * F + 20 * D));
    len += (size_t)snprintf(header, sizeof(header), "{\"__metadata__\":{\"format\":\"pt\"}");
    for (int layer = 0; layer < LAYERS; layer++)
        for (int t = 0; t < TENSORS; t++) {
            const struct tensor *x = &tensors[t];
            size_t first = at;
            int out = x->out + is(x->name, fault->reshaped, layer);
            char shape[32];
            if (is(x->name, fault->missing, layer))
                continue;
            snprintf(shape, sizeof(shape), x->in > 0 ? "%d,%d" : "%d", out, x->in);
            for (int o = 0; o < out; o++)
                for (int i = 0; i < (x->in > 0 ? x->in : 1); i++)
                    data[at++] = element_to_fp16(value(layer, t, o, i));
            len +=
                (size_t)snprintf(header + len, sizeof(header) - len,
                                 ",\"bert.encoder.layer.%d.%s\":{\"dtype\":\"%s\",\"shape\":[%s],"
                                 "\"data_offsets\":[%zu,%zu]}",
                                 layer, x->name, is(x->name, fault->retyped, layer) ? "I16" : "F16",
                                 shape, 2 * first, 2 * at);
        }
    len += (size_t)snprintf(header + len, sizeof(header) - len, "}");
    uint64_t prefix = len;
    FILE *file = fopen(path, "wb");
    fwrite(&prefix, sizeof(prefix), 1, file);
    fwrite(header, 1, len, file);
    fwrite(data, sizeof(*data), at, file);
    fclose(file);
    free(data);
}

static int failures;

static void expect(float got, float wanted, const char *what)
{
    if (got != wanted && failures++ < 10)
        printf("%s: %g, expected %g\n", what, (double)got, (double)wanted);
}

static void check_layer(const struct encoder_weights *w, int layer)
{
    const float *wqkv = w->wqkv, *bqkv = w->bqkv, *wo = w->wo, *w1 = w->w1, *w2 = w->w2;
    const float *gamma1 = w->gamma1, *beta1 = w->beta1, *beta2 = w->beta2;
    for (int o = 0; o < D; o++) {
        for (int part = 0; part < 3; part++) {
            expect(bqkv[part * D + o], value(layer, 2 * part + 1, o, 0), "bqkv");
            for (int i = 0; i < D; i++)
                expect(wqkv[i * 3 * D + part * D + o], value(layer, 2 * part, o, i), "wqkv");
        }
        for (int i = 0; i < D; i++)
            expect(wo[i * D + o], value(layer, 6, o, i), "wo");
        for (int i = 0; i < F; i++)
            expect(w2[i * D + o], value(layer, 12, o, i), "w2");
        expect(gamma1[o], value(layer, 8, o, 0), "gamma1");
        expect(beta1[o], value(layer, 9, o, 0), "beta1");
        expect(beta2[o], value(layer, 15, o, 0), "beta2");
    }
    for (int o = 0; o < F; o++)
        for (int i = 0; i < D; i++)
            expect(w1[i * F + o], value(layer, 10, o, i), "w1");
}

static void refuse(const char *path, struct fault fault, const char *says)
{
    struct weights w;
    write_model(path, &fault);
    if (weights_load(path, encoder_describe(), &w) == 0 || strstr(w.error, says) == NULL) {
        printf("not refused with '%s': %s\n", says, w.error);
        failures++;
    }
    weights_release(&w);
}

int main(int argc, char **argv)
{
    const struct fault none = {.missing = NULL};
    struct weights w;
    (void)argc;
    refuse(argv[1], (struct fault){.missing = "output.dense.bias"}, "output.dense.bias is missing");
    refuse(argv[1], (struct fault){.reshaped = "intermediate.dense.bias"},
           "intermediate.dense.bias has another shape");
    refuse(argv[1], (struct fault){.retyped = "output.dense.weight"},
           "output.dense.weight has another type");
    write_model(argv[1], &none);
    if (weights_load(argv[1], encoder_describe(), &w) != 0 || w.layers != LAYERS) {
        printf("%d layers: %s\n", w.layers, w.error);
        return EXIT_FAILURE;
    }
    for (int layer = 0; layer < LAYERS; layer++)
        check_layer(&w.list[layer], layer);
    weights_release(&w);
    return failures == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
