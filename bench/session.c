#include "bench/bench_int.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

enum { COMPILE_LIMIT_S = 60, RUN_LIMIT_S = 30 };

/* No machine is slower.  The deadline in the worker grows with the workload's FLOPs at
 * this rate. */
#define SLOWEST_FLOPS 4e9

/* What is nearly done when a limit is over may end, so long as that takes such a share of it. */
#define LATE_SHARE 0.03

static double run_limit(const struct workload *w)
{
    double flops = segment_flops((struct segment){0, OP_COUNT - 1}, w);
    return RUN_LIMIT_S + flops * w->layers / SLOWEST_FLOPS;
}

/* All workers of a session read the same memory.  Its seals keep a candidate from changing it. */
static int share_masks(const struct workload *w, int *out, struct status *st)
{
    int fd = memfd_create("fuseplan-mask", MFD_CLOEXEC | MFD_ALLOW_SEALING);
    bool whole = fd >= 0;
    for (int kind = 0; whole && kind < workload_kinds(w); kind++) {
        const struct mask *m = &workload_of_kind(w, kind)->mask;
        whole = file_write_all(fd, m->bits, mask_bytes(m)) == 0;
    }
    *out = fd;
    if (whole &&
        fcntl(fd, F_ADD_SEALS, F_SEAL_SEAL | F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE) == 0)
        return 0;
    return status_set(st, STATUS_ENVIRONMENT, "cannot copy the attention mask for the worker: %s",
                      strerror(errno));
}

/* A verdict holds for one choice and its binary on one machine, workload, mask and set of inputs
 * and weights. */
static void name_verdicts(const struct workload *w, struct bench *b)
{
    SCOPED_BUF text = BUF_INIT;
    char bits[HASH_TEXT_SIZE];
    fingerprint_text(&b->toolchain.where, &text);
    json_auto_t *workload = message_of_workload(&b->w);
    SCOPED char *workload_text = json_dumps(workload, JSON_COMPACT | JSON_SORT_KEYS);
    buf_addf(&text, "%s\nseed=%llu ranges=%s", workload_text, (unsigned long long)b->inputs.seed,
             ranges_names[b->inputs.ranges]);
    for (int kind = 0; kind < workload_kinds(w); kind++) {
        const struct mask *m = &workload_of_kind(w, kind)->mask;
        buf_addf(&text, "\nmask=%s", hash_text(m->bits, mask_bytes(m), bits));
    }
    if (b->inputs.trained != NULL)
        buf_addf(&text, "\nweights=%s", trained_hash(b->inputs.trained, bits));
    if (b->inputs.calibration != NULL)
        buf_addf(&text, "\nscales=%s",
                 hash_text(b->calibration.scale,
                           (size_t)b->calibration.layers * sizeof(*b->calibration.scale), bits));
    hash_text(text.ptr, text.len, b->verdict_base);
}

/* Starts a worker and gives it the workload, of which it computes with the oracle what it can
 * without the device. */
static int begin_worker(struct bench *b, struct status *st)
{
    if (client_start(&b->client, b->target.kind, b->worker.ptr, b->mask_fd, st) != 0)
        return -1;
    json_auto_t *request =
        json_pack("{s:s, s:i, s:o, s:o, s:s, s:b}", "do", "begin", "target", (int)b->target.kind,
                  "inputs", message_of_inputs(b->inputs), "workload", message_of_workload(&b->w),
                  "token", b->client.token, "nice", bench_waits(b));
    SCOPED_BUF code = BUF_INIT;
    cache_dir(&b->cache, CACHE_BINARY, &code);
    if (b->confined)
        json_object_set_new(request, "code", json_string(code.ptr));
    if (b->writable != NULL)
        json_object_set_new(request, "writable", json_string(b->writable));
    json_auto_t *reply = NULL;
    int result = client_call(&b->client, request, b->client.limit_s, &reply, st);
    if (result != 0)
        client_stop(&b->client);
    b->client.kept_from = (unsigned)json_integer_value(json_object_get(reply, "kept_from"));
    return result;
}

static int open_device(struct bench *b, struct status *st)
{
    json_auto_t *request = json_pack("{s:s, s:i}", "do", "open", "device", b->target.device);
    json_auto_t *reply = NULL;
    int result = client_call(&b->client, request, b->client.limit_s, &reply, st);
    if (result != 0)
        client_stop(&b->client);
    /* A peak rate that the reply lacks stays unknown. */
    json_unpack(reply, "{s?F, s?F}", "flops_per_s", &b->limits.flops_per_s, "bytes_per_s",
                &b->limits.bytes_per_s);
    b->client.opened = result == 0;
    return result;
}

/* Opens the device, which takes about as long as a compiler does, unless it is another process's
 * turn there. */
static void open_early(struct bench *b)
{
    struct lock_wait none = {.stop = b->stop};
    int lock;
    if (lock_take(session_device(b), LOCK_TO_RUN, &none, &lock, STATUS_IGNORED) != 0)
        return;
    open_device(b, STATUS_IGNORED);
    lock_drop(lock);
}

/* Called where compilers run: starts the worker that bench_open() did not start or that has ended,
 * and opens a GPU.  Only the first time, when no call of a worker is under way: the call itself
 * notices the end of its worker. */
void session_begin_early(void *bench)
{
    struct bench *b = bench;
    if (b->began_early)
        return;
    b->began_early = true;
    if ((client_works(&b->client) || begin_worker(b, STATUS_IGNORED) == 0) && !b->client.opened &&
        b->ops->builds_beside && !bench_waits(b))
        open_early(b);
}

/* The worker is at work; see struct client. */
static bool build_meanwhile(void *ctx)
{
    struct bench *b = ctx;
    return builder_advance(&b->builder);
}

/* A CPU's worker runs candidates itself.  A GPU's does not, and its driver needs what a sandbox
 * would keep from it. */
static int open_places(struct bench *b, const struct bench_options *o, struct status *st)
{
    if (b->target.kind == TARGET_CPU && sandbox_wanted(&b->confined, st) != 0)
        return -1;
    if (cache_open(o->cache_dir, &b->cache, st) != 0)
        return -1;
    return worker_find(o->worker_path, &b->worker, st);
}

static int open_tools(struct bench *b, const struct bench_options *o, struct status *st)
{
    const struct toolchain_request request = {.device = b->target.device,
                                              .arch = o->arch,
                                              .compiler = o->compiler,
                                              .worker = b->worker.ptr,
                                              .no_device = o->builds_only && o->arch != 0,
                                              .stop = o->stop};
    if (b->ops->toolchain(&request, &b->cache, &b->toolchain, st) != 0)
        return -1;
    cache_trim(&b->cache);
    b->ops->fingerprint(b->target.device, &b->toolchain.where);
    struct build_target target = build_target_of(b->target.kind, b->toolchain.where.capability,
                                                 b->toolchain.where.libraries[0] != '\0', &b->w);
    target.precision = o->precision;
    b->builder = (struct builder){
        .cache = &b->cache,
        .toolchain = &b->toolchain,
        .target = target,
        .deadline_s = o->compile_deadline_s > 0 ? o->compile_deadline_s : COMPILE_LIMIT_S,
        .jobs = o->jobs > 0 ? o->jobs : cpu_threads(),
        .beside = b->ops->builds_beside,
        .stop = o->stop,
        .compiling = o->builds_only ? NULL : session_begin_early,
        .compiling_ctx = b,
        .listener = o->listener,
    };
    return 0;
}

static int open_trained(struct bench *b, const struct bench_options *o, const struct workload *w,
                        struct status *st)
{
    if (o->weights == NULL)
        return 0;
    if (trained_open(o->weights, o->prefix, &b->trained, st) != 0)
        return -1;
    b->inputs.trained = b->trained;
    if (trained_check(b->trained, w, st) != 0)
        return -1;
    if (o->calibration == NULL)
        return 0;
    b->inputs.calibration = &b->calibration;
    return calibration_open(o->calibration, b->trained, w, &b->calibration, st);
}

int bench_open(const struct bench_options *o, const struct workload *w, struct bench **out,
               struct status *st)
{
    *out = NULL;
    struct bench *b = mem_alloc(1, sizeof(*b));
    *b = (struct bench){
        .target = o->target,
        .inputs = o->inputs,
        .afresh = o->afresh,
        .stop = o->stop,
        .turn = o->turn,
        .mask_fd = -1,
        .client = {.channel = -1,
                   .until = INFINITY,
                   .stop = o->stop,
                   .event = request_event,
                   .meanwhile = build_meanwhile,
                   .ctx = b},
        .wait = {.stop = o->stop, .say = o->say, .ctx = o->say_ctx, .listener = o->listener},
        .until = INFINITY,
        .limits = {NAN, NAN}};
    buf_init(&b->worker);
    b->ops = target_ops_of(o->target.kind, st);
    if (b->ops == NULL || target_check_dtype(o->target.kind, w->dtype, st) != 0 ||
        (!o->builds_only && bench_check_memory(w, st) != 0) || open_trained(b, o, w, st) != 0 ||
        open_places(b, o, st) != 0 || share_masks(w, &b->mask_fd, st) != 0)
        goto fail;
    workload_copy(&b->w, w);
    b->client.max_memory_bytes = session_memory_bound(o->target.kind, w);
    b->client.limit_s = o->run_deadline_s > 0 ? o->run_deadline_s : run_limit(w);
    if (b->ops->builds_beside && !o->builds_only)
        begin_worker(b, STATUS_IGNORED); /* the oracle works while compilers are found */
    if (open_tools(b, o, st) != 0 || build_check(&b->builder.target, w, st) != 0)
        goto fail;
    b->builder.target.workload = &b->w;
#ifndef __SANITIZE_ADDRESS__ /* its library must be the first one */
    b->client.openmp = b->toolchain.openmp[0] != '\0' ? b->toolchain.openmp : NULL;
#endif
    name_verdicts(w, b);
    *out = b;
    return 0;
fail:
    bench_close(b);
    return -1;
}

void bench_close(struct bench *b)
{
    if (b == NULL)
        return;
    client_stop(&b->client);
    if (b->mask_fd >= 0)
        close(b->mask_fd);
    builder_release(&b->builder);
    toolchain_release(&b->toolchain);
    cache_release(&b->cache);
    buf_release(&b->worker);
    workload_release(&b->w);
    trained_close(b->trained);
    calibration_release(&b->calibration);
    free(b);
}

const struct fingerprint *bench_fingerprint(const struct bench *b)
{
    return &b->toolchain.where;
}

const struct build_target *bench_target(const struct bench *b)
{
    return &b->builder.target;
}

const struct workload *bench_workload(const struct bench *b)
{
    return &b->w;
}

struct inputs bench_inputs(const struct bench *b)
{
    return b->inputs;
}

void bench_limit(struct bench *b, double seconds)
{
    b->until = clock_seconds() + seconds;
    b->client.until = b->until + LATE_SHARE * seconds;
}

struct disturbance bench_disturbance(const struct bench *b)
{
    return b->disturbance;
}

struct limits bench_limits(const struct bench *b)
{
    return b->limits;
}

int bench_build(struct bench *b, const struct choice *choices, int count, struct status *results,
                struct status *st)
{
    return builder_build(&b->builder, choices, count, b->until, results, st);
}

bool bench_waits(const struct bench *b)
{
    return b->turn != NULL && b->turn->waits;
}

bool bench_builds_beside(const struct bench *b)
{
    return b->builder.beside;
}

double bench_oracle_left_seconds(const struct bench *b)
{
    return b->oracle_left_s;
}

double bench_build_seconds(struct bench *b, const struct choice *c)
{
    return builder_find(&b->builder, c)->build_s;
}

bool session_limit_over(const struct bench *b, const struct status *failed)
{
    return failed->code == STATUS_TIMEOUT && clock_seconds() > b->client.until;
}

int session_start_worker(struct bench *b, struct status *st)
{
    enum { TRIES = 2 }; /* something else may have killed the first one */
    struct status failed = STATUS_INIT;
    if (client_works(&b->client) && b->client.opened)
        return 0;
    for (int i = 0; i < TRIES; i++) {
        failed = STATUS_INIT;
        if ((client_works(&b->client) || begin_worker(b, &failed) == 0) &&
            open_device(b, &failed) == 0)
            return 0;
        if (failed.code != STATUS_LAUNCH)
            break;
    }
    /* No candidate has run, so none is at fault. */
    bool stopped = failed.code == STATUS_INTERRUPTED || session_limit_over(b, &failed);
    return status_set(st, stopped ? failed.code : STATUS_ENVIRONMENT,
                      "the worker '%s' does not start: %s", b->worker.ptr, failed.message);
}

int session_call(struct bench *b, json_t *request, json_t **reply, struct status *st)
{
    json_auto_t *taken = request;
    *reply = NULL;
    /* The oracle's layers, and of each candidate loading, verifying and timing. */
    const double most_s = (4 + 2 * b->candidates) * b->client.limit_s + b->candidates * b->timing_s;
    return session_start_worker(b, st) == 0 ? client_call(&b->client, taken, most_s, reply, st)
                                            : -1;
}
