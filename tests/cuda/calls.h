/* Calls of an exported CUDA library on the stand-in of CUDA's runtime, and how they got into a
 * stream. */
#ifndef FUSEPLAN_TESTS_CUDA_CALLS_H
#define FUSEPLAN_TESTS_CUDA_CALLS_H

#include "library.h"

#include "tests/cuda/runtime/runtime.h"

static const int lengths[BATCH] = {77, 30}, others[BATCH] = {9, 100};
static struct encoder *handle;
static float *x, *want, *want_lengths, *want_others; /* results of direct launches */

static inline size_t bytes(void)
{
    return (size_t)(BATCH * SEQ_LEN * hidden()) * sizeof(float);
}

/* A call with memory of its own, which is enough for a smaller batch. */
static inline struct encoder_call begin(void)
{
    size_t all = encoder_workspace_bytes(BATCH, SEQ_LEN),
           less = encoder_workspace_bytes(1, SEQ_LEN);
    struct encoder_call c = {.batch = BATCH,
                             .seq_len = SEQ_LEN,
                             .x = device_new(bytes()),
                             .y = device_new(bytes()),
                             .workspace_bytes = all > less ? all : less};
    device_check(cudaMalloc(&c.workspace, c.workspace_bytes), "cannot allocate the workspace");
    device_write((void *)c.x, x, bytes());
    return c;
}

static inline bool same_rows(const float *a, const float *b, const int *real)
{
    for (int s = 0; s < BATCH; s++) {
        size_t at = (size_t)(s * SEQ_LEN * hidden());
        size_t n = (size_t)((real != NULL ? real[s] : SEQ_LEN) * hidden());
        if (memcmp(a + at, b + at, n * sizeof(float)) != 0)
            return false;
    }
    return true;
}

/* Whether rows past the real ones are zeros. */
static inline bool zeros_behind(const float *y, const int *real)
{
    for (int i = 0; real != NULL && i < BATCH * SEQ_LEN * hidden(); i++)
        if (i / hidden() % SEQ_LEN >= real[i / hidden() / SEQ_LEN] && y[i] != 0)
            return false;
    return true;
}

/* Runs a call, whose y and tensors in the workspace are NaN at first, and compares y. */
static inline bool is_right(const struct encoder_call *c, const float *wanted, const int *real)
{
    memset(c->y, 0xff, bytes());
    memset(c->workspace, 0xff, bytes_of_tensors(c->workspace_bytes));
    return encoder_run(handle, c) == ENCODER_OK && same_rows(c->y, wanted, real) &&
           zeros_behind(c->y, real);
}

/* Graphs launched, graphs made and single launches of what `call` does. */
static inline struct fake_counts since(struct fake_counts before)
{
    struct fake_counts now = fake_counts();
    now.enqueued -= before.enqueued;
    now.graph_launches -= before.graph_launches;
    now.instantiated -= before.instantiated;
    return now;
}

static inline bool went_directly(struct fake_counts before)
{
    struct fake_counts made = since(before);
    return made.enqueued > 1 && made.graph_launches == 0 && made.instantiated == 0;
}

/* By one launch of a graph that was there, after `launches` of lengths. */
static inline bool went_by_graph(struct fake_counts before, int launches)
{
    struct fake_counts made = since(before);
    return made.enqueued == launches && made.graph_launches == 1 && made.instantiated == 0;
}

/* What a call gives whose memory is new, and so goes directly: the one before keeps its own until
 * then, or they might have the same.  The caller frees. */
static inline float *compute(const int *of)
{
    static struct encoder_call last;
    struct encoder_call c = begin();
    struct fake_counts before = fake_counts();
    float *out = malloc(bytes());
    c.lengths = of;
    CHECK(encoder_run(handle, &c) == ENCODER_OK && went_directly(before));
    memcpy(out, c.y, bytes());
    call_delete(&last);
    last = c;
    return out;
}

static inline void open_handle(void)
{
    CHECK(encoder_create(&model, &handle) == ENCODER_OK);
}

/* No graph, executable or stream outlives its handle. */
static inline void close_handle(void)
{
    encoder_destroy(handle);
    struct fake_counts left = fake_counts();
    CHECK(left.graphs == 0 && left.executables == 0 && left.streams == 0);
}

#endif
