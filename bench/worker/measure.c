#include "bench/worker/worker_int.h"

/* Whether the first layers have as many of each kind as all have, in proportion. */
static bool is_mixed_alike(const struct workload *w, int64_t layers)
{
    return layers * workload_global_layers(w, w->layers) ==
           (int64_t)workload_global_layers(w, (int)layers) * w->layers;
}

/* Between two of its uses, a weight leaves the cache if the other weights and the tensors fill it.
 * Only tensors that every plan touches count, so that all plans are timed alike: x, the two that
 * layers alternate between, and q, k and v.  The time of a layer is the mean of all. */
int layers_to_time(const struct workload *w, int64_t cache_bytes)
{
    int64_t tensors = 6 * tensor_elements(TENSOR_X, w); /* three, and q, k and v */
    int64_t layer = 0, bytes = dtypes[w->dtype].bytes;
    for (int i = 0; i < WEIGHT_MAX; i++)
        layer += w->chain->weights[i].table ? 0 : weight_elements(i, w);
    int64_t layers = 2; /* one layer's output is the next one's input */
    while (layers < w->layers &&
           ((layers * layer + tensors) * bytes <= cache_bytes || !is_mixed_alike(w, layers)))
        layers++;
    return layers < w->layers ? (int)layers : w->layers;
}

/* A program being measured. */
struct subject {
    struct worker *worker;
    struct program program;
    struct trial *trial;
    int candidate;
    int repeats;
    double taken_s[SAMPLES_AT_ONCE]; /* samples taken ahead */
    int taken, used;
    struct rng draw;  /* of the samples whose result is compared */
    double skipped_s; /* the time of a skipped sample, which the next sample adds to its own */
};

static double seconds_since(double start)
{
    return clock_seconds() - start;
}

static void fail(struct subject *s, const struct status *st)
{
    s->trial->status = TRIAL_FAILED;
    s->trial->reason = *st;
    if (st->code == STATUS_WRONG)
        tensors_refill(&s->worker->tensors, &s->worker->reference.in[0]);
}

/* Frees the tensors that an unfit candidate has allocated.  Tensors of earlier requests and copies
 * of the oracle's may have left too little memory: these are freed, the former only by the first
 * candidate of a request, and it tries again, so that it fails for its own needs only. */
static int load_program(struct subject *s, const json_t *candidate, int layers, struct status *st)
{
    struct tensors *tensors = &s->worker->tensors;
    uint32_t in_use = s->candidate > 0 ? tensors_held(tensors) : 0;
    for (bool again = s->candidate == 0;; again = false) {
        if (program_load(s->worker, candidate, layers, &s->program, st) == 0)
            return 0;
        if (st->code != STATUS_UNFIT)
            return -1;
        program_release(s->worker, &s->program);
        tensors_trim(tensors, in_use);
        if (!tensors_forget(tensors) && !again)
            return -1;
        *st = STATUS_INIT;
    }
}

static void load_and_verify(struct subject *s, const json_t *candidate, int layers,
                            const struct sampling *how)
{
    struct worker *k = s->worker;
    struct status st = STATUS_INIT;
    double start = clock_seconds();
    k->candidate = s->candidate;
    int result = load_program(s, candidate, layers, &st);
    s->program.all_rows = how->all_rows;
    if (result != 0 ||
        verify_program(k, &s->program, how->all_layers ? layers : workload_kinds(&k->w), &st) != 0)
        fail(s, &st);
    if (s->program.alone && s->program.replay != NULL && k->ops->resources != NULL)
        k->ops->resources(s->program.replay, &s->trial->resources);
    s->trial->layers_timed = layers;
    s->trial->error = s->program.error;
    s->trial->verify_s = seconds_since(start);
}

/* A shorter replay is repeated within one sample, so that the clock and the call do not show. */
#define SAMPLE_LEAST_S 200e-6

/* Of a longer sample the host's time, some 10 us, is 0.3 % at most. */
#define SAMPLE_LONG_S 4e-3

/* Samples to skip: the first of several may include the host's time, see `undisturbed`. */
static int lead(const struct subject *s)
{
    return s->worker->ops->undisturbed && s->program.once_s < SAMPLE_LONG_S ? 1 : 0;
}

/* How many times a sample repeats a replay that takes once_s. */
static int repeats_for(double once_s)
{
    enum { REPEATS_MAX = 1000 };
    double repeats = once_s > 0 ? ceil(SAMPLE_LEAST_S / once_s) : REPEATS_MAX;
    return repeats < REPEATS_MAX ? (int)repeats : REPEATS_MAX;
}

static int calibrate(struct subject *s, struct status *st)
{
    const struct worker *k = s->worker;
    double seconds[2] = {s->program.once_s};
    s->repeats = 1;
    if (k->ops->undisturbed && seconds[0] > 2 * SAMPLE_LEAST_S) /* even without the host's share */
        return 0;
    if (k->ops->time(s->program.replay, 1, lead(s) + 1, seconds, st) != 0)
        return -1;
    s->repeats = repeats_for(seconds[lead(s)]);
    return 0;
}

/* The comparing of results may take this share of the samples' time. */
#define LOOKS_SHARE 0.05

/* Draws whether the result of `count` samples is compared. */
static bool looks(struct subject *s, int count)
{
    double each_s = s->taken > 0 ? s->taken_s[s->taken - 1] : s->program.once_s * s->repeats;
    return rng_unit(&s->draw) * s->program.look_s < LOOKS_SHARE * each_s * count;
}

/* Before samples whose result is compared: a fault of every k-th run would keep step with samples
 * of k repeats if nothing ran between them. */
static int prepare_look(struct subject *s, struct status *st)
{
    struct worker *k = s->worker;
    struct program *p = &s->program;
    if (s->repeats > 1 && rng_below(&s->draw, 2) == 0 &&
        k->ops->run(p->replay, 0, p->layers * p->part_count, st) != 0)
        return -1;
    verify_spoil_result(k, p);
    return 0;
}

static int take_samples(struct subject *s, int ahead, struct status *st)
{
    struct worker *k = s->worker;
    int skipped = lead(s), count = k->ops->undisturbed ? skipped + ahead : 1;
    if (count > SAMPLES_AT_ONCE)
        count = SAMPLES_AT_ONCE;
    bool look = looks(s, count);
    if (look && prepare_look(s, st) != 0)
        return -1;
    s->taken = count;
    s->used = skipped;
    if (k->ops->time(s->program.replay, s->repeats, count, s->taken_s, st) != 0 ||
        (look && verify_result(k, &s->program, "while timed", st) != 0))
        return -1;
    s->skipped_s = skipped > 0 ? s->taken_s[0] : 0;
    return 0;
}

/* A sample may be too short because clocks were low during calibration, or the host's time was in
 * it.  Then samples of more repeats are taken. */
static int take_long_samples(struct subject *s, int ahead, struct status *st)
{
    if (take_samples(s, ahead, st) != 0)
        return -1;
    int repeats = repeats_for(s->taken_s[s->used] / s->repeats);
    if (repeats <= 2 * s->repeats)
        return 0;
    s->repeats = repeats;
    return take_samples(s, ahead, st);
}

/* Times the timed layers.  *ms is scaled to all layers, or to one for a segment alone. */
static int sample(void *ctx, int ahead, double *seconds, double *ms, struct status *st)
{
    struct subject *s = ctx;
    const struct program *p = &s->program;
    if ((s->repeats == 0 && calibrate(s, st) != 0) ||
        (s->used == s->taken && take_long_samples(s, ahead, st) != 0)) {
        fail(s, st); /* at once, because other candidates go on */
        return -1;
    }
    double kept_s = s->taken_s[s->used++];
    *seconds = s->skipped_s + kept_s;
    s->skipped_s = 0;
    *ms = kept_s * 1e3 / s->repeats / p->layers * (p->alone ? 1 : s->worker->w.layers);
    return 0;
}

/* Subjects while they are timed. */
struct timing {
    struct contender *contenders;
    int count;
    const struct sampling *how;
};

static void beat_sample(void *ctx, int contender)
{
    enum { EVERY_S = 1 }; /* often enough for any deadline, too rare to disturb */
    const struct timing *timing = ctx;
    struct subject *s = timing->contenders[contender].ctx;
    struct worker *k = s->worker;
    if (k->candidate == s->candidate && seconds_since(k->last_beat_s) < EVERY_S)
        return;
    k->candidate = s->candidate;
    struct sampling_progress so_far =
        sampling_progress(timing->contenders, timing->count, timing->how);
    worker_timing(k, &so_far);
}

static void time_subjects(struct subject *subjects, int n, const struct sampling *how,
                          uint64_t shuffle)
{
    struct worker *k = subjects[0].worker;
    SCOPED struct contender *contenders = mem_alloc((size_t)n, sizeof(*contenders));
    int count = 0;
    for (int i = 0; i < n; i++) {
        struct subject *s = &subjects[i];
        if (s->trial->status == TRIAL_OK)
            contenders[count++] =
                (struct contender){.sample = sample,
                                   .ctx = s,
                                   .trial = s->trial,
                                   .verify_s = s->program.once_s + s->program.look_s};
    }
    for (int i = 0; i < count; i++)
        verify_spoil(k, &((const struct subject *)contenders[i].ctx)->program);
    const struct warm_up warm = worker_warm_up(k);
    struct timing timing = {contenders, count, how};
    if (how->max_samples > 0 && k->ops->watch != NULL)
        k->ops->watch(k->device);
    measure(contenders, count, how, &warm, shuffle, beat_sample, &timing);
    k->last_run_s = clock_seconds();
    struct conditions now = {.known = false};
    if (how->max_samples > 0 && k->ops->conditions != NULL)
        k->ops->conditions(k->device, &now);
    for (int i = 0; i < count; i++) {
        struct subject *s = contenders[i].ctx;
        struct status st = STATUS_INIT;
        s->trial->conditions = now;
        s->trial->time_s = contenders[i].elapsed_s;
        k->candidate = s->candidate;
        if (s->trial->status != TRIAL_FAILED && verify_again(k, &s->program, count == 1, &st) != 0)
            fail(s, &st);
    }
}

int worker_measure(struct worker *k, const json_t *request, json_t *reply, struct status *st)
{
    struct sampling how;
    double start = clock_seconds();
    if (message_to_sampling(json_object_get(request, "sampling"), &how, st) != 0)
        return -1;
    if (k->ops->undisturbed && !how.all_layers)
        how.min_seconds = 0;
    const json_t *candidates = json_object_get(request, "candidates");
    worker_note_use(k, request);
    uint64_t shuffle = (uint64_t)json_integer_value(json_object_get(request, "shuffle"));
    int n = (int)json_array_size(candidates), layers = k->w.layers;
    if (!how.all_layers)
        layers = layers_to_time(&k->w, k->ops->cache_bytes(k->device));
    SCOPED struct subject *subjects = mem_alloc((size_t)n, sizeof(*subjects));
    SCOPED struct trial *trials = mem_alloc((size_t)n, sizeof(*trials));
    if (n > 1)
        tensors_trim(&k->tensors, 0); /* together the candidates need all the memory there is */
    for (int i = 0; i < n; i++) {
        subjects[i] = (struct subject){
            .worker = k, .trial = &trials[i], .candidate = i, .draw = {shuffle + (uint64_t)i + 1}};
        load_and_verify(&subjects[i], json_array_get(candidates, (size_t)i), layers, &how);
    }
    sampling_spend(&how, seconds_since(start));
    if (n > 0 && how.max_samples > 0)
        time_subjects(subjects, n, &how, shuffle);
    json_t *out = json_array();
    for (int i = 0; i < n; i++) {
        json_array_append_new(out, message_of_trial(&trials[i]));
        program_release(k, &subjects[i].program);
        trial_release(&trials[i]);
    }
    if (k->ops->undisturbed && !how.all_layers) /* a search, whose finals need them */
        reference_start_samples(&k->reference);
    json_object_set_new(reply, "trials", out);
    json_object_set_new(reply, "oracle_left_s", json_real(reference_left_s(&k->reference)));
    return 0;
}
