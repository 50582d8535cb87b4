/* Runs the library's only plan on drawn inputs and prints the time of one pass through all layers.
 * With the name of a file as argument it writes the output there, a NumPy array (B,S,D); with that
 * of a second one its norm, of layers whose norms stand before.
 *
 * Value i of array a is drawn uniformly in middle +- range from splitmix64(seed + a * 2^40 + i),
 * and so is the same everywhere; drawn.h has seed, ranges and lengths. */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include "arguments.h"
#include "drawn.h"
#include "elements.h"

#include <stdbool.h>

enum { WEIGHTS = sizeof(struct encoder_weights) / sizeof(void *) };
enum { SCORE_BIAS = 13, ARRAY_X = 15, ARRAYS_PER_LAYER = 16 };
enum { SAMPLES_MIN = 11, SAMPLES_MAX = 1001 };
static const double warm_up_ms = 500, timing_ms = 2000;

static struct encoder *encoder;
static struct encoder_call call;

static void check(int status)
{
    if (status == ENCODER_OK)
        return;
    fprintf(stderr, "plan: %s: %s\n", encoder_status_text(status), encoder_message());
    exit(EXIT_FAILURE);
}

/* ---- inputs ---------------------------------------------------------------------------------- */

static void *allocate(size_t bytes)
{
    void *memory = malloc(bytes > 0 ? bytes : 1);
    if (memory == NULL) {
        fprintf(stderr, "plan: out of memory: an array needs %zu bytes\n", bytes);
        exit(EXIT_FAILURE);
    }
    return memory;
}

static uint64_t splitmix64(uint64_t x)
{
    x += 0x9E3779B97F4A7C15u;
    x = (x ^ x >> 30) * 0xBF58476D1CE4E5B9u;
    x = (x ^ x >> 27) * 0x94D049BB133111EBu;
    return x ^ x >> 31;
}

/* The caller frees. */
static void *draw(enum encoder_dtype dtype, uint64_t array, double middle, double range, size_t n)
{
    void *out = allocate(n * sizeof(float));
    uint64_t first = drawn_seed + (array << 40);
#pragma omp parallel for
    for (size_t i = 0; i < n; i++) {
        double unit = (double)(splitmix64(first + i) >> 11) * 0x1p-53;
        element_store(dtype, out, i, (float)(middle + (2 * unit - 1) * range));
    }
    return out;
}

static size_t columns(void)
{
    return (size_t)encoder_describe()->hidden;
}

static void create(void)
{
    const struct encoder_info *l = encoder_describe();
    void **arrays = allocate((size_t)l->layers * WEIGHTS * sizeof(*arrays));
    struct encoder_weights *w = allocate((size_t)l->layers * sizeof(*w));
    for (int layer = 0; layer < l->layers; layer++) {
        void **a = arrays + layer * WEIGHTS;
        for (int i = 0; i < WEIGHTS; i++)
            a[i] = draw(l->dtype, (uint64_t)(layer * ARRAYS_PER_LAYER + i), drawn_weights[i].middle,
                        drawn_weights[i].range, drawn_weights[i].elements);
        memcpy(&w[layer], a, sizeof(w[layer]));
    }
    /* The norm before the first layer has ones and zeros. */
    bool pre = (l->functions & ENCODER_PRE) != 0;
    void *first_gamma = pre ? draw(l->dtype, 0, 1, 0, columns()) : NULL;
    float *score_bias = draw(ENCODER_FP32, SCORE_BIAS, drawn_weights[SCORE_BIAS].middle,
                             drawn_weights[SCORE_BIAS].range, drawn_weights[SCORE_BIAS].elements);
    const struct encoder_model model = {.heads = l->heads,
                                        .head_size = l->head_size,
                                        .ffn = l->ffn,
                                        .dtype = l->dtype,
                                        .layers = l->layers,
                                        .eps = l->eps,
                                        .weights = w,
                                        .first_gamma = first_gamma,
                                        .rope_theta = l->rope_theta,
                                        .score_bias = score_bias,
                                        .hidden = l->hidden,
                                        .rope_factor = l->rope_factor,
                                        .local_rope_theta = l->local_rope_theta};
    check(encoder_create(&model, &encoder));
    for (int i = 0; i < l->layers * WEIGHTS; i++)
        free(arrays[i]);
    free(arrays);
    free(w);
    free(first_gamma);
    free(score_bias);
}

/* Elements of x, and of y. */
static size_t elements(void)
{
    return (size_t)call.batch * (size_t)call.seq_len * columns();
}

static void prepare(void)
{
    const struct encoder_plan *p = encoder_plan_at(0);
    call.batch = p->batch;
    call.seq_len = p->seq_len;
    call.lengths = drawn_lengths;
    size_t bytes = elements() * (size_t)encoder_describe()->element_bytes;
    void *x = draw(encoder_describe()->dtype, ARRAY_X, 0, 0.4, elements()),
         *on_device = device_new(bytes);
    device_write(on_device, x, bytes);
    free(x);
    call.x = on_device;
    call.y = device_new(bytes);
    if ((encoder_describe()->functions & ENCODER_PRE) != 0)
        call.yn = device_new(bytes);
    call.workspace_bytes = encoder_workspace_bytes(call.batch, call.seq_len);
    call.workspace = device_new(call.workspace_bytes);
    create();
}

/* ---- time and output ------------------------------------------------------------------------- */

static void pass(void *stream)
{
    call.stream = stream;
    check(encoder_run(encoder, &call));
}

static int by_value(const void *a, const void *b)
{
    double left = *(const double *)a, right = *(const double *)b;
    return (left > right) - (left < right);
}

/* y or yn as fp32; *mean_square: of the real tokens, equal for all plans up to rounding.  The
 * caller frees. */
static float *download(const void *from, double *mean_square)
{
    enum encoder_dtype dtype = encoder_describe()->dtype;
    size_t n = elements(), rows = (size_t)call.batch * (size_t)call.seq_len, real = rows;
    size_t bytes = n * (size_t)encoder_describe()->element_bytes;
    void *stored = allocate(bytes);
    float *y = allocate(n * sizeof(*y));
    double sum = 0;
    device_read(stored, from, bytes);
    for (size_t i = 0; i < n; i++) {
        y[i] = element_load(dtype, stored, i);
        sum += (double)y[i] * y[i];
    }
    free(stored);
    for (int b = 0; drawn_lengths != NULL && b < call.batch; b++)
        real -= (size_t)(call.seq_len - drawn_lengths[b]);
    *mean_square = sum / (double)(real * (n / rows));
    return y;
}

int main(int argc, char **argv)
{
    static double samples[SAMPLES_MAX];
    double ms = 0, mean_square;
    int n = 0;
    const char *paths[OUTPUTS];
    output_paths(argc, argv, paths);
    device_begin(argv);
    FILE *out = output_open(paths[0]), *norm = output_open(paths[1]);
    FILE *report = out == stdout || norm == stdout ? stderr : stdout;
    prepare();
    while (ms < warm_up_ms)
        ms += device_time(pass);
    for (ms = 0; n < SAMPLES_MIN || (n < SAMPLES_MAX && ms < timing_ms); n++) {
        samples[n] = device_time(pass);
        ms += samples[n];
    }
    qsort(samples, (size_t)n, sizeof(*samples), by_value);
    fprintf(report, "plan %d: %.4f ms, the median of %d passes through %d layers (%.4f to %.4f)\n",
            encoder_plan_at(0)->value, samples[n / 2], n, encoder_describe()->layers, samples[0],
            samples[n - 1]);
    float *y = download(call.y, &mean_square);
    fprintf(report, "mean square of the output: %.6f\n", mean_square);
    if (out != NULL)
        output_write(out, paths[0], y);
    free(y);
    if (norm != NULL) {
        y = download(call.yn, &mean_square);
        output_write(norm, paths[1], y);
        free(y);
    }
    device_delete((void *)call.x);
    device_delete(call.y);
    device_delete(call.yn);
    device_delete(call.workspace);
    encoder_destroy(encoder);
    return report_end(report);
}
