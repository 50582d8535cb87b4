#include "bench/worker/worker_int.h"

#include <sys/resource.h>
#include <unistd.h>

enum { BEAT_MS = 1000 };

void reference_init(struct reference *r, const struct workload *w, struct inputs inputs)
{
    *r = (struct reference){.w = w,
                            .inputs = inputs,
                            .beat_ms = BEAT_MS,
                            .lock = PTHREAD_MUTEX_INITIALIZER,
                            .end = PTHREAD_COND_INITIALIZER};
    r->sampled = workload_kinds(w) - 1;
    r->in = mem_alloc((size_t)w->layers + 1, sizeof(*r->in));
    r->layer = mem_alloc((size_t)w->layers, sizeof(*r->layer));
    r->sample = mem_alloc((size_t)w->layers, sizeof(*r->sample));
    inputs_flow(w, inputs, &r->in[0]);
}

/* Seconds that this process has used of all cores.  The clock on the wall would count the compilers
 * that run beside layer 0, and nothing runs beside the samples. */
static double busy_seconds(void)
{
    struct timespec now;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
    return ((double)now.tv_sec + 1e-9 * (double)now.tv_nsec) / cpu_threads();
}

/* Of a later layer the oracle computes the keys and values of a sequence, a quarter of its work,
 * and some 256 rows of the rest. */
static double sampled_share(const struct workload *w)
{
    double rows = 0.25 * w->seq_len + 256;
    return fmin(rows / (double)workload_tokens(w), 1);
}

/* Computes tensors (bits) of a layer from its inputs.  threads: 0 for all cores. */
static void run_layer(struct reference *r, int layer, const struct flow *in, uint32_t tensors,
                      const struct spans *spans, int threads, struct oracle_results *out)
{
    const struct workload *w = workload_of_layer(r->w, layer);
    const struct rounding *rounding = r->rounding != NULL ? &r->rounding[layer] : NULL;
    float *weight[WEIGHT_MAX];
    double start = busy_seconds();
    inputs_weights(w, r->inputs, layer, rounding, false, weight);
    double drawn = busy_seconds();
    oracle_results_init(out, w, tensors, spans);
    const struct oracle_taker taker = oracle_results_taker(out);
    oracle_layer_run(w, in, (const float *const *)weight, spans, rounding, threads, &taker);
    weights_release(weight);
    if (layer == 0)
        r->sample_s = drawn - start + sampled_share(w) * (busy_seconds() - drawn);
}

/* Computes all rows of a layer, and the next one's inputs. */
static void run_whole(struct reference *r, int layer)
{
    const struct chain *c = r->w->chain;
    const uint32_t all = (SET_OF(TENSOR_COUNT) - 1) & ~chain_inputs(c); /* these are kept apart */
    struct oracle_results *out = &r->layer[layer];
    struct flow *next = &r->in[layer + 1];
    SCOPED_BY(spans_release) struct spans spans = spans_all(r->w);
    const bool first = layer < workload_kinds(r->w) && r->rounding == NULL; /* of its kind */
    run_layer(r, layer, &r->in[layer], first ? all : chain_carried(c), &spans, 0, out);
    flow_init(next, r->w);
    for (int i = 0; i < c->carried_count; i++)
        elements_round(r->w->dtype, out->tensor[c->carried[i].from],
                       tensor_elements(c->carried[i].to, r->w), next->tensor[c->carried[i].to]);
}

static void *run_next(void *ctx)
{
    enum { NICENESS = 10 };
    struct reference *r = ctx;
    if (r->nice && r->known == 0)
        setpriority(PRIO_PROCESS, (id_t)gettid(), NICENESS); /* and of the threads that it starts */
    run_whole(r, r->known);
    pthread_mutex_lock(&r->lock);
    r->ended = true;
    pthread_cond_signal(&r->end);
    pthread_mutex_unlock(&r->lock);
    return NULL;
}

void reference_start(struct reference *r)
{
    r->ended = false;
    r->running = pthread_create(&r->thread, NULL, run_next, r) == 0;
}

bool reference_computes(struct reference *r)
{
    pthread_mutex_lock(&r->lock);
    bool computes = r->running && !r->ended;
    pthread_mutex_unlock(&r->lock);
    return computes;
}

/* Waits for the thread that computes the next layer.  Not by the time of day, which may be set. */
static void wait_for_next(struct reference *r, void (*beat)(void *ctx, int layer), void *ctx)
{
    for (bool ended = false; !ended;) {
        const struct timespec until = clock_after(r->beat_ms * 1e-3);
        int waited = 0;
        beat(ctx, r->known);
        pthread_mutex_lock(&r->lock);
        while (!r->ended && waited != ETIMEDOUT)
            waited = pthread_cond_clockwait(&r->end, &r->lock, CLOCK_MONOTONIC, &until);
        ended = r->ended;
        pthread_mutex_unlock(&r->lock);
    }
    pthread_join(r->thread, NULL);
    r->running = false;
}

/* ---- samples --------------------------------------------------------------------------------- */

/* The least layer without a sample; L if there is none. */
static int next_sample(struct reference *r)
{
    pthread_mutex_lock(&r->lock);
    int layer = r->sampled + 1;
    pthread_mutex_unlock(&r->lock);
    return layer;
}

static bool is_stopped(struct reference *r)
{
    pthread_mutex_lock(&r->lock);
    bool stopped = r->stopped;
    pthread_mutex_unlock(&r->lock);
    return stopped;
}

static void run_sample(struct reference *r, int layer, int threads)
{
    SCOPED_BY(spans_release) struct spans spans = spans_sample(r->w, layer, r->inputs.seed);
    run_layer(r, layer, &r->in[1], chain_carried(r->w->chain), &spans, threads, &r->sample[layer]);
    pthread_mutex_lock(&r->lock);
    r->sampled = layer;
    pthread_mutex_unlock(&r->lock);
}

static void *run_samples(void *ctx)
{
    struct reference *r = ctx;
    int threads = cpu_threads() / 4;
    for (int l; !is_stopped(r) && (l = next_sample(r)) < r->w->layers;)
        run_sample(r, l, threads > 1 ? threads : 1);
    return NULL;
}

void reference_start_samples(struct reference *r)
{
    if (r->known == 0 || r->sampling || next_sample(r) >= r->w->layers)
        return;
    r->stopped = false;
    r->sampling = pthread_create(&r->sampler, NULL, run_samples, r) == 0;
}

/* Waits for the layer that the sampler is at. */
static void stop_sampler(struct reference *r)
{
    if (!r->sampling)
        return;
    pthread_mutex_lock(&r->lock);
    r->stopped = true;
    pthread_mutex_unlock(&r->lock);
    pthread_join(r->sampler, NULL);
    r->sampling = false;
}

/* Takes over from the sampler: all cores take less time than a quarter. */
static void need_samples(struct reference *r, int layers, void (*beat)(void *ctx, int layer),
                         void *ctx)
{
    if (r->sampling)
        beat(ctx, next_sample(r));
    stop_sampler(r);
    for (int l; (l = next_sample(r)) < layers;) {
        beat(ctx, l);
        run_sample(r, l, 0);
    }
}

void reference_release(struct reference *r)
{
    if (r->running) /* it writes to what is freed */
        pthread_join(r->thread, NULL);
    stop_sampler(r);
    r->known += r->running;
    for (int l = 0; r->w != NULL && l < r->w->layers; l++) {
        oracle_results_release(&r->layer[l]);
        oracle_results_release(&r->sample[l]);
    }
    for (int l = 0; r->in != NULL && l <= r->known; l++)
        flow_release(&r->in[l]);
    free(r->in);
    free(r->layer);
    free(r->sample);
    *r = (struct reference){0};
}

void reference_need(struct reference *r, int layers, bool all_rows,
                    void (*beat)(void *ctx, int layer), void *ctx)
{
    const int kinds = workload_kinds(r->w), whole = all_rows || layers < kinds ? layers : kinds;
    for (; r->known < whole; r->known++) {
        if (!r->running)
            reference_start(r);
        if (r->running)
            wait_for_next(r, beat, ctx);
        else
            run_whole(r, r->known); /* there is no room for a thread */
    }
    if (!all_rows && next_sample(r) < layers)
        need_samples(r, layers, beat, ctx);
}

double reference_left_s(struct reference *r)
{
    return (r->w->layers - next_sample(r)) * r->sample_s;
}

const struct flow *reference_input(const struct reference *r, int layer, bool all_rows)
{
    return &r->in[layer == 0 || all_rows ? layer : 1];
}

const struct oracle_results *reference_output(const struct reference *r, int layer, bool all_rows)
{
    return layer < workload_kinds(r->w) || all_rows ? &r->layer[layer] : &r->sample[layer];
}
