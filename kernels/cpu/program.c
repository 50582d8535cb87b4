/* Runs a plan's segments layer after layer on drawn inputs and prints the time of one pass.  With
 * the name of a file as argument it writes the output there, a NumPy array (B,S,D).
 *
 * plan.h and plan.c say which plan, workload and segments.  Value i of array a is drawn uniformly
 * in middle +- range from splitmix64(seed + a * 2^40 + i), and so is the same everywhere. */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#define PLAN_ABOUT                                                                                 \
    "It runs a thread a core, bound to it, as fuseplan measures; taskset(1) chooses the cores.\n"  \
    "OMP_NUM_THREADS and the like are not used.\n\n"

#include "arguments.h"
#include "threads.h"

#include <time.h>

enum { TENSORS = 16, WEIGHTS = 12, ARRAY_X = 15, ARRAYS_PER_LAYER = 16, ALIGNMENT = 64 };
enum { X = 0, Y = TENSORS - 1 };
enum { SAMPLES_MIN = 11, SAMPLES_MAX = 1001 };
static const double warm_up_s = 0.5, timing_s = 2;

static float *allocate(long elements)
{
    void *memory = NULL;
    size_t bytes = (size_t)(elements > 0 ? elements : 1) * sizeof(float);
    if (posix_memalign(&memory, ALIGNMENT, bytes) != 0) {
        fprintf(stderr, "out of memory: a tensor needs %zu bytes\n", bytes);
        exit(1);
    }
    memset(memory, 0, bytes);
    return memory;
}

static uint64_t splitmix64(uint64_t x)
{
    x += 0x9E3779B97F4A7C15u;
    x = (x ^ x >> 30) * 0xBF58476D1CE4E5B9u;
    x = (x ^ x >> 27) * 0x94D049BB133111EBu;
    return x ^ x >> 31;
}

static void draw(uint64_t array, double middle, double range, long n, float *out)
{
    uint64_t first = plan_seed + (array << 40);
#pragma omp parallel for
    for (long i = 0; i < n; i++) {
        double unit = (double)(splitmix64(first + (uint64_t)i) >> 11) * 0x1p-53;
        out[i] = (float)(middle + (2 * unit - 1) * range);
    }
}

/* Tensors between the segments of one layer; the layer's input and output alternate. */
static float *tensors[TENSORS], *x, *flow[2];
static float *weights[LAYERS][WEIGHTS];

static void prepare(void)
{
    for (int t = 1; t < Y; t++)
        if (plan_tensor_elements[t] > 0)
            tensors[t] = allocate(plan_tensor_elements[t]);
    x = allocate(plan_tensor_elements[X]);
    flow[0] = allocate(plan_tensor_elements[Y]);
    flow[1] = allocate(plan_tensor_elements[Y]);
    draw(ARRAY_X, 0, 0.4, plan_tensor_elements[X], x);
    for (int l = 0; l < LAYERS; l++)
        for (int i = 0; i < WEIGHTS; i++) {
            const struct plan_weight *w = &plan_weights[i];
            weights[l][i] = allocate(w->elements);
            draw((uint64_t)(l * ARRAYS_PER_LAYER + i), w->middle, w->range, w->elements,
                 weights[l][i]);
        }
}

/* One pass through all layers; returns the last one's output. */
static const float *pass(void)
{
    struct fp_args a = {.batch = BATCH,
                        .seq_len = SEQ_LEN,
                        .heads = HEADS,
                        .head_size = HEAD_SIZE,
                        .ffn = FFN,
                        .eps = plan_eps,
                        .lengths = plan_lengths,
                        .mask = plan_mask};
    memcpy(a.tensor, tensors, sizeof(tensors));
    a.tensor[Y] = x;
    for (int l = 0; l < LAYERS; l++) {
        a.tensor[X] = a.tensor[Y];
        a.tensor[Y] = flow[l % 2];
        for (int i = 0; i < WEIGHTS; i++)
            a.weight[i] = weights[l][i];
        for (int s = 0; s < SEGMENTS; s++) {
            memcpy(a.knob, plan_segments[s].knob, sizeof(a.knob));
            plan_segments[s].run(&a);
        }
    }
    return a.tensor[Y];
}

static double seconds(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

static int by_value(const void *a, const void *b)
{
    double left = *(const double *)a, right = *(const double *)b;
    return (left > right) - (left < right);
}

/* The mean square of the real tokens' output: equal for all plans up to rounding. */
static double mean_square(const float *y)
{
    double sum = 0;
    long n = 0;
    for (int b = 0; b < BATCH; b++) {
        int length = plan_lengths != NULL ? plan_lengths[b] : SEQ_LEN;
        const float *row = y + (long)b * SEQ_LEN * HEADS * HEAD_SIZE;
        for (long i = 0; i < (long)length * HEADS * HEAD_SIZE; i++, n++)
            sum += (double)row[i] * row[i];
    }
    return sum / (double)n;
}

/* OpenMP reads its settings before main(), so the program starts itself again with them. */
static void set_threads(char **argv)
{
    if (fp_threads_are_set(environ))
        return;
    for (char **variable = environ; *variable != NULL; variable++)
        if (fp_is_about_threads(*variable))
            fprintf(stderr, "plan: '%s' is not used; taskset(1) chooses the cores\n", *variable);
    fp_unbind();
    execve("/proc/self/exe", argv, fp_thread_environment(environ, omp_get_num_procs(), true));
    fprintf(stderr, "plan: cannot start again with a thread a core: %s\n", strerror(errno));
    exit(EXIT_FAILURE);
}

int main(int argc, char **argv)
{
    static double samples[SAMPLES_MAX];
    int n = 0;
    const char *path = output_path(argc, argv);
    set_threads(argv);
    FILE *out = output_open(path), *report = out == stdout ? stderr : stdout;
    prepare();
    const float *y = pass();
    double start = seconds();
    while (seconds() - start < warm_up_s)
        y = pass();
    start = seconds();
    while (n < SAMPLES_MIN || (n < SAMPLES_MAX && seconds() - start < timing_s)) {
        double before = seconds();
        y = pass();
        samples[n++] = 1e3 * (seconds() - before);
    }
    qsort(samples, (size_t)n, sizeof(*samples), by_value);
    fprintf(report, "plan %d: %.3f ms, the median of %d passes through %d layers (%.3f to %.3f)\n",
            PLAN_VALUE, samples[n / 2], n, LAYERS, samples[0], samples[n - 1]);
    fprintf(report, "mean square of the output: %.6f\n", mean_square(y));
    if (out != NULL)
        output_write(out, path, y);
    return report_end(report);
}
