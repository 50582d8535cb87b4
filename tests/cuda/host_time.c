/* host_time ROUNDS: how long calls of an exported CUDA library keep the host, for each of its
 * plans. device.sh builds it with the library.  It prints medians of ROUNDS calls each: at rest,
 * where the GPU has ended all work before the call, and busy, where it still works on a call
 * before.  Those are so few that no launch waits for room in a queue. */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include "encoder.h"
#include "host.h"

#include <stdbool.h>
#include <time.h>

enum { ROUNDS_MAX = 10000, BACK_TO_BACK = 50, BUSY = 6 }; /* BUSY: calls between two waits */
enum { STEP = 256 };                                      /* bytes from one y to the next */

static struct encoder *handle;
static struct encoder_call call;
static cudaStream_t stream;
static cudaGraphExec_t graph;
static int rounds;

static void check(int status)
{
    if (status == ENCODER_OK)
        return;
    fprintf(stderr, "host_time: %s: %s\n", encoder_status_text(status), encoder_message());
    exit(EXIT_FAILURE);
}

/* All weights are zeros. */
static void create(void)
{
    enum { LAYERS_MAX = 1000 };
    static struct encoder_weights weights[LAYERS_MAX];
    const struct encoder_info *l = encoder_describe();
    size_t d = (size_t)l->heads * (size_t)l->head_size, f = (size_t)l->ffn;
    void *zeros = device_new(d * (3 * d > f ? 3 * d : f) * (size_t)l->element_bytes);
    for (int i = 0; i < LAYERS_MAX; i++)
        weights[i] = (struct encoder_weights){zeros, zeros, zeros, zeros, zeros, zeros,
                                              zeros, zeros, zeros, zeros, zeros, zeros};
    const struct encoder_model model = {.heads = l->heads,
                                        .head_size = l->head_size,
                                        .ffn = l->ffn,
                                        .dtype = l->dtype,
                                        .layers = l->layers < LAYERS_MAX ? l->layers : LAYERS_MAX,
                                        .eps = l->eps,
                                        .on_device = 1,
                                        .weights = weights};
    check(encoder_create(&model, &handle));
    device_delete(zeros);
}

/* ---- what is timed --------------------------------------------------------------------------- */

static void run_again(int round)
{
    (void)round;
    check(encoder_run(handle, &call));
}

static void run_elsewhere(int round)
{
    struct encoder_call c = call;
    c.y = (char *)call.y + (size_t)(round + 1) * STEP;
    check(encoder_run(handle, &c));
}

static void launch_graph(int round)
{
    (void)round;
    device_check(cudaGraphLaunch(graph, stream), "cannot launch the graph");
}

static void capture(void)
{
    cudaGraph_t captured;
    device_check(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal), "cannot capture");
    run_again(0);
    device_check(cudaStreamEndCapture(stream, &captured), "cannot capture");
    device_check(cudaGraphInstantiate(&graph, captured, 0), "cannot make a graph");
    device_check(cudaGraphDestroy(captured), "cannot make a graph");
}

static double now_us(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return 1e6 * (double)t.tv_sec + 1e-3 * (double)t.tv_nsec;
}

static int by_value(const void *a, const void *b)
{
    double left = *(const double *)a, right = *(const double *)b;
    return (left > right) - (left < right);
}

static void finish(void)
{
    device_check(cudaStreamSynchronize(stream), "the work failed");
}

static double timed(void (*function)(int round), int round)
{
    double began = now_us();
    function(round);
    return now_us() - began;
}

/* busy: the GPU works on a call before, else it has ended all work. */
static double kept(void (*function)(int round), bool busy)
{
    static double us[ROUNDS_MAX];
    for (int i = 0; i < rounds; i++) {
        if (!busy || i % BUSY == 0)
            finish();
        if (busy && i % BUSY == 0)
            function(i);
        us[i] = timed(function, i);
    }
    qsort(us, (size_t)rounds, sizeof(*us), by_value);
    return us[rounds / 2];
}

static double call_to_call(void (*function)(int round))
{
    int calls = BACK_TO_BACK < rounds ? BACK_TO_BACK : rounds;
    finish();
    double began = now_us();
    for (int i = 0; i < calls; i++)
        function(i);
    finish();
    return (now_us() - began) / calls;
}

static void print(const char *what, void (*function)(int round))
{
    for (int i = 0; i < 3; i++) /* the second call records a graph */
        function(-1);
    double rest = kept(function, false), busy = kept(function, true);
    printf(
        "  %-38s keeps the host %7.1f us at rest, %7.1f us busy; back to back one every %8.1f us\n",
        what, rest, busy, call_to_call(function));
}

/* Three quarters of each sequence are real. */
static void print_plan(const struct encoder_plan *p)
{
    const struct encoder_info *l = encoder_describe();
    size_t bytes = (size_t)p->batch * (size_t)p->seq_len * (size_t)l->heads * (size_t)l->head_size *
                   (size_t)l->element_bytes;
    size_t lengths_bytes = (size_t)p->batch * sizeof(int);
    int *lengths = malloc(lengths_bytes), *on_device = device_new(lengths_bytes);
    for (int b = 0; lengths != NULL && b < p->batch; b++)
        lengths[b] = (3 * p->seq_len + 3) / 4;
    device_write(on_device, lengths, lengths_bytes);
    call = (struct encoder_call){.batch = p->batch, .seq_len = p->seq_len, .stream = stream};
    call.x = device_new(bytes);
    call.y = device_new(bytes + (size_t)(rounds + 1) * STEP);
    call.workspace_bytes = encoder_workspace_bytes(p->batch, p->seq_len);
    call.workspace = device_new(call.workspace_bytes);
    device_check(cudaDeviceSynchronize(), "cannot prepare");
    printf("plan %d, (%d,%d), %d layers of %d launches:\n", p->value, p->batch, p->seq_len,
           l->layers, p->kernels);
    print("a call", run_again);
    print("a call with new memory each time", run_elsewhere);
    call.lengths = lengths;
    print("a call with lengths", run_again);
    call.lengths = NULL;
    call.device_lengths = on_device;
    print("a call with lengths on the device", run_again);
    call.device_lengths = NULL;
    capture();
    print("a launch of a graph that captured it", launch_graph);
    device_check(cudaGraphExecDestroy(graph), "cannot end");
    device_delete((void *)call.x);
    device_delete(call.y);
    device_delete(call.workspace);
    device_delete(on_device);
    free(lengths);
}

int main(int argc, char **argv)
{
    rounds = argc == 2 ? atoi(argv[1]) : 0;
    if (rounds < 1 || rounds > ROUNDS_MAX) {
        fprintf(stderr, "usage: host_time ROUNDS\n");
        return 2;
    }
    device_begin(argv);
    device_check(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking), "cannot use a GPU");
    create();
    for (int i = 0; i < encoder_describe()->plans; i++)
        print_plan(encoder_plan_at(i));
    device_check(cudaStreamDestroy(stream), "cannot end");
    encoder_destroy(handle);
    return EXIT_SUCCESS;
}
