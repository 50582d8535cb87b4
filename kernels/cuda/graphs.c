/* How a call's work gets into its stream: launch by launch, or as a CUDA graph of all launches.
 *
 * Launching kernel by kernel keeps the host for some microseconds each.  So a handle keeps graphs
 * of the calls that come again: of the same size with the same addresses, as memory allocators hand
 * them out.  A graph is recorded when its addresses come for the second time, so that callers with
 * ever new ones pay for none. */
#include "launch.h"

#include <pthread.h>
#include <stdlib.h>

enum {
    GRAPHS = 8, /* of a handle */
    SEEN = 32,  /* addresses that came once */
    IDLE = 64   /* calls without a graph after which another one may take its place */
};

/* What a recorded graph depends on. */
struct key {
    int plan, batch, seq_len;
    bool padded;
    const void *x, *device_lengths, *device_mask;
    void *y, *yn, *outputs, *workspace;
};

struct recorded {
    struct key key;
    cudaGraphExec_t graph; /* null: none yet */
    bool busy;             /* a thread records or launches it, without the lock */
    unsigned long used;    /* in this call of all */
};

struct graphs {
    pthread_mutex_t lock; /* of all that follows */
    struct recorded list[GRAPHS];
    struct key seen[SEEN];
    int next_seen;
    unsigned long calls;
    bool off; /* one could not be recorded: record no more */
};

int encoder_graphs_open(struct graphs **out)
{
    *out = calloc(1, sizeof(**out));
    if (*out == NULL)
        return encoder_fail(ENCODER_NO_MEMORY, "out of memory");
    pthread_mutex_init(&(*out)->lock, NULL);
    return ENCODER_OK;
}

void encoder_graphs_close(struct graphs *g)
{
    if (g == NULL)
        return;
    for (int i = 0; i < GRAPHS; i++)
        if (g->list[i].graph != NULL)
            cudaGraphExecDestroy(g->list[i].graph);
    pthread_mutex_destroy(&g->lock);
    free(g);
}

/* ---- which graph ----------------------------------------------------------------------------- */

static bool same(const struct key *a, const struct key *b)
{
    return a->x == b->x && a->y == b->y && a->yn == b->yn && a->outputs == b->outputs &&
           a->workspace == b->workspace && a->device_lengths == b->device_lengths &&
           a->device_mask == b->device_mask && a->plan == b->plan && a->batch == b->batch &&
           a->seq_len == b->seq_len && a->padded == b->padded;
}

static bool was_seen(struct graphs *g, const struct key *k)
{
    for (int i = 0; i < SEEN; i++)
        if (same(&g->seen[i], k))
            return true;
    g->seen[g->next_seen] = *k;
    g->next_seen = (g->next_seen + 1) % SEEN;
    return false;
}

/* An empty place, else that of the graph used longest ago, if that is long; null: there is none. */
static struct recorded *find_place(struct graphs *g)
{
    struct recorded *oldest = NULL;
    for (int i = 0; i < GRAPHS; i++) {
        struct recorded *r = &g->list[i];
        if (!r->busy && r->graph == NULL)
            return r;
        if (!r->busy && g->calls - r->used > IDLE && (oldest == NULL || r->used < oldest->used))
            oldest = r;
    }
    return oldest;
}

/* The place of the call's graph, the caller's alone until give_back(); null: the call does without.
 * *record: the place is the caller's to fill. */
static struct recorded *take(struct graphs *g, const struct key *k, bool *record)
{
    struct recorded *found = NULL;
    *record = false;
    pthread_mutex_lock(&g->lock);
    g->calls++;
    for (int i = 0; i < GRAPHS && found == NULL; i++)
        if ((g->list[i].busy || g->list[i].graph != NULL) && same(&g->list[i].key, k))
            found = &g->list[i];
    if (found == NULL && !g->off && was_seen(g, k)) {
        found = find_place(g);
        *record = found != NULL;
    } else if (found != NULL && found->busy)
        found = NULL; /* another thread has the same addresses at the moment */
    if (found != NULL) {
        found->key = *k;
        found->busy = true;
        found->used = g->calls;
    }
    pthread_mutex_unlock(&g->lock);
    return found;
}

static void give_back(struct graphs *g, struct recorded *r)
{
    pthread_mutex_lock(&g->lock);
    r->busy = false;
    g->off = g->off || r->graph == NULL;
    pthread_mutex_unlock(&g->lock);
}

/* ---- recording ------------------------------------------------------------------------------- */

/* The work of a call as a graph; null where CUDA refuses it. */
static cudaGraph_t capture(const struct run *r, cudaStream_t stream)
{
    struct run work = *r;
    cudaGraph_t out = NULL;
    work.stream = stream;
    if (cudaStreamBeginCapture(stream, cudaStreamCaptureModeRelaxed) != cudaSuccess)
        return NULL;
    int status = encoder_work(&work);
    if (cudaStreamEndCapture(stream, &out) != cudaSuccess)
        return NULL;
    if (status == ENCODER_OK)
        return out;
    cudaGraphDestroy(out);
    return NULL;
}

/* Puts the call's graph into a place, instead of the one that is there.  The caller's stream may be
 * one that cannot be captured, so another is.  Other threads may capture streams of theirs, in
 * which CUDA would refuse what a recording needs unless this thread is relaxed about it. */
static void record(const struct run *r, struct recorded *to)
{
    enum cudaStreamCaptureMode mode = cudaStreamCaptureModeRelaxed;
    cudaStream_t stream = NULL;
    cudaGraph_t graph = NULL;
    cudaThreadExchangeStreamCaptureMode(&mode);
    if (to->graph != NULL)
        cudaGraphExecDestroy(to->graph); /* CUDA waits with that until it has run */
    to->graph = NULL;
    if (cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking) == cudaSuccess) {
        graph = capture(r, stream);
        cudaStreamDestroy(stream);
    }
    if (graph != NULL) {
        if (cudaGraphInstantiate(&to->graph, graph, 0) != cudaSuccess)
            to->graph = NULL;
        cudaGraphDestroy(graph);
    }
    cudaThreadExchangeStreamCaptureMode(&mode);
    if (to->graph == NULL)
        cudaGetLastError(); /* the call can do without a graph */
}

/* ---- a call ---------------------------------------------------------------------------------- */

/* A stream that the caller captures takes single launches; so does one of which CUDA cannot say. */
static bool is_captured(cudaStream_t stream)
{
    enum cudaStreamCaptureStatus now = cudaStreamCaptureStatusNone;
    cudaError_t error = cudaStreamIsCapturing(stream, &now);
    if (error != cudaSuccess)
        cudaGetLastError();
    return error != cudaSuccess || now != cudaStreamCaptureStatusNone;
}

static int check_device(const struct run *r)
{
    int device = -1, status = encoder_check(cudaGetDevice(&device), "cannot use a GPU");
    if (status == ENCODER_OK && device != r->e->device->number)
        status = encoder_fail(ENCODER_BAD_ARGUMENT,
                              "the current device is %d; the handle was created on %d", device,
                              r->e->device->number);
    return status;
}

int encoder_submit(struct run *r)
{
    struct graphs *g = r->e->device->graphs;
    const struct encoder_call *c = r->call;
    const struct key key = {r->index, c->batch,          c->seq_len,     r->padded,
                            c->x,     c->device_lengths, c->device_mask, c->y,
                            c->yn,    c->outputs,        c->workspace};
    struct recorded *place = NULL;
    bool new = false;
    int status = check_device(r);
    if (status == ENCODER_OK && r->padded && c->device_lengths == NULL && c->device_mask == NULL)
        status = encoder_lengths_take(r);
    if (status != ENCODER_OK)
        return status;
    if (!encoder_rows_given(r) && !is_captured((cudaStream_t)r->stream))
        place = take(g, &key, &new);
    if (place == NULL)
        return encoder_work(r);
    if (new)
        record(r, place);
    cudaError_t error = cudaSuccess;
    bool recorded = place->graph != NULL;
    if (recorded)
        error = cudaGraphLaunch(place->graph, (cudaStream_t)r->stream);
    give_back(g, place);
    return recorded ? encoder_check(error, "cannot launch a graph") : encoder_work(r);
}
