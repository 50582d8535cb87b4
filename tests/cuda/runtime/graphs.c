/* Streams and graphs of the stand-in.  Work runs at once, in the thread that enqueues it; that of a
 * captured stream is kept, and runs when its graph is launched. */
#include "tests/cuda/runtime/runtime.h"

#include "base/base.h"

#include <pthread.h>

struct graph {
    struct work *items;
    int count;
};

struct graph_exec {
    struct graph graph;
    bool launching;
};

struct stream {
    struct graph *captured; /* null: it is not captured */
    enum cudaStreamCaptureMode mode;
};

static _Atomic enum fake_failure failure;
static _Atomic bool resting;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* of what follows */
static struct fake_counts counts;
static int global_captures;

static pthread_mutex_t device = PTHREAD_MUTEX_INITIALIZER; /* one thing runs at a time */

static _Thread_local int own_captures; /* that are not relaxed */
static _Thread_local enum cudaStreamCaptureMode thread_mode = cudaStreamCaptureModeGlobal;

static void add(int *count, int by)
{
    pthread_mutex_lock(&lock);
    *count += by;
    pthread_mutex_unlock(&lock);
}

struct fake_counts fake_counts(void)
{
    pthread_mutex_lock(&lock);
    struct fake_counts now = counts;
    pthread_mutex_unlock(&lock);
    return now;
}

void fake_fail(enum fake_failure what)
{
    failure = what;
}

void fake_compute(bool on)
{
    resting = !on;
}

cudaError_t unsafe_call(void)
{
    pthread_mutex_lock(&lock);
    bool refused =
        thread_mode != cudaStreamCaptureModeRelaxed &&
        (own_captures > 0 || (thread_mode == cudaStreamCaptureModeGlobal && global_captures > 0));
    pthread_mutex_unlock(&lock);
    return refused ? cudaErrorStreamCaptureUnsupported : cudaSuccess;
}

/* ---- work ------------------------------------------------------------------------------------ */

static void execute(const struct work *w)
{
    if (resting)
        return;
    pthread_mutex_lock(&device);
    if (w->stub != NULL)
        w->stub->run(w->stub, w->argument);
    else
        memmove(w->to, w->from, w->bytes);
    pthread_mutex_unlock(&device);
}

cudaError_t enqueue(cudaStream_t stream, struct work w)
{
    struct graph *captured = stream != NULL ? stream->captured : NULL;
    if (captured == NULL) {
        add(&counts.enqueued, 1);
        execute(&w);
        free(w.argument);
        return cudaSuccess;
    }
    captured->items =
        mem_resize(captured->items, (size_t)captured->count + 1, sizeof(*captured->items));
    captured->items[captured->count++] = w;
    return cudaSuccess;
}

cudaError_t launch_stub(const struct stub *stub, const void *argument, cudaStream_t stream)
{
    struct work w = {.stub = stub};
    if (failure == FAIL_LAUNCH)
        return cudaErrorUnknown;
    w.argument = mem_alloc(1, stub->bytes);
    memcpy(w.argument, argument, stub->bytes);
    return enqueue(stream, w);
}

/* ---- streams --------------------------------------------------------------------------------- */

cudaError_t cudaStreamCreateWithFlags(cudaStream_t *out, unsigned flags)
{
    *out = NULL;
    if (unsafe_call() != cudaSuccess)
        return cudaErrorStreamCaptureUnsupported;
    *out = mem_alloc(1, sizeof(**out));
    **out = (struct stream){.captured = NULL};
    add(&counts.streams, 1);
    return cudaSuccess;
}

cudaError_t cudaStreamDestroy(cudaStream_t stream)
{
    add(&counts.streams, -1);
    free(stream);
    return cudaSuccess;
}

cudaError_t cudaStreamSynchronize(cudaStream_t stream)
{
    return stream != NULL && stream->captured != NULL ? cudaErrorStreamCaptureUnsupported
                                                      : cudaSuccess;
}

cudaError_t cudaStreamIsCapturing(cudaStream_t stream, enum cudaStreamCaptureStatus *out)
{
    *out = stream != NULL && stream->captured != NULL ? cudaStreamCaptureStatusActive
                                                      : cudaStreamCaptureStatusNone;
    return cudaSuccess;
}

cudaError_t cudaThreadExchangeStreamCaptureMode(enum cudaStreamCaptureMode *mode)
{
    enum cudaStreamCaptureMode before = thread_mode;
    thread_mode = *mode;
    *mode = before;
    return cudaSuccess;
}

static void count_capture(enum cudaStreamCaptureMode mode, int by)
{
    own_captures += mode != cudaStreamCaptureModeRelaxed ? by : 0;
    add(&global_captures, mode == cudaStreamCaptureModeGlobal ? by : 0);
}

/* The default stream cannot be captured. */
cudaError_t cudaStreamBeginCapture(cudaStream_t stream, enum cudaStreamCaptureMode mode)
{
    if (stream == NULL || stream->captured != NULL || failure == FAIL_CAPTURE)
        return cudaErrorStreamCaptureUnsupported;
    stream->captured = mem_alloc(1, sizeof(*stream->captured));
    *stream->captured = (struct graph){.count = 0};
    stream->mode = mode;
    count_capture(mode, 1);
    add(&counts.graphs, 1);
    return cudaSuccess;
}

cudaError_t cudaStreamEndCapture(cudaStream_t stream, cudaGraph_t *out)
{
    *out = stream->captured;
    stream->captured = NULL;
    count_capture(stream->mode, -1);
    return cudaSuccess;
}

/* ---- graphs ---------------------------------------------------------------------------------- */

static void release(struct graph *g)
{
    for (int i = 0; i < g->count; i++)
        free(g->items[i].argument);
    free(g->items);
}

/* A copy: the graph may be destroyed before. */
cudaError_t cudaGraphInstantiate(cudaGraphExec_t *out, cudaGraph_t graph, unsigned long long flags)
{
    *out = NULL;
    if (unsafe_call() != cudaSuccess || failure == FAIL_INSTANTIATE)
        return cudaErrorMemoryAllocation;
    struct graph_exec *e = mem_alloc(1, sizeof(*e));
    *e = (struct graph_exec){.graph = {NULL, graph->count}};
    e->graph.items = mem_alloc((size_t)graph->count, sizeof(*e->graph.items));
    for (int i = 0; i < graph->count; i++) {
        struct work *w = &e->graph.items[i];
        *w = graph->items[i];
        if (w->stub == NULL)
            continue;
        w->argument = mem_alloc(1, w->stub->bytes);
        memcpy(w->argument, graph->items[i].argument, w->stub->bytes);
    }
    add(&counts.instantiated, 1);
    add(&counts.executables, 1);
    *out = e;
    return cudaSuccess;
}

cudaError_t cudaGraphDestroy(cudaGraph_t graph)
{
    release(graph);
    free(graph);
    add(&counts.graphs, -1);
    return cudaSuccess;
}

cudaError_t cudaGraphExecDestroy(cudaGraphExec_t graph)
{
    release(&graph->graph);
    free(graph);
    add(&counts.executables, -1);
    return cudaSuccess;
}

/* CUDA does not allow two threads to launch one graph at once. */
cudaError_t cudaGraphLaunch(cudaGraphExec_t graph, cudaStream_t stream)
{
    if ((stream != NULL && stream->captured != NULL) || failure == FAIL_GRAPH_LAUNCH)
        return cudaErrorUnknown;
    pthread_mutex_lock(&lock);
    bool twice = graph->launching;
    graph->launching = true;
    counts.graph_launches++;
    pthread_mutex_unlock(&lock);
    if (twice)
        return cudaErrorUnknown;
    for (int i = 0; i < graph->graph.count; i++)
        execute(&graph->graph.items[i]);
    pthread_mutex_lock(&lock);
    graph->launching = false;
    pthread_mutex_unlock(&lock);
    return cudaSuccess;
}
