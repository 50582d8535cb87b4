#include "bench/worker/worker_int.h"

#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

/* ---- begin, open ----------------------------------------------------------------------------- */

/* The mask stays mapped as long as this process lives. */
static int read_workload(struct worker *k, const json_t *request, struct status *st)
{
    struct stat info;
    void *bits = MAP_FAILED;
    if (fstat(k->mask_fd, &info) == 0)
        bits = mmap(NULL, (size_t)info.st_size, PROT_READ, MAP_PRIVATE, k->mask_fd, 0);
    if (bits == MAP_FAILED)
        return status_set(st, STATUS_LAUNCH, "cannot read the attention mask: %s", strerror(errno));
    return message_to_workload(json_object_get(request, "workload"), bits, &k->w, st);
}

/* JSON has no NaN: an unknown value is left out. */
static void add_limit(json_t *reply, const char *name, double value)
{
    if (isfinite(value))
        json_object_set_new(reply, name, json_real(value));
}

static void add_limits(struct worker *k, json_t *reply)
{
    struct limits limits;
    if (k->ops->limits == NULL)
        return;
    k->ops->limits(k->device, &limits);
    add_limit(reply, "flops_per_s", limits.flops_per_s);
    add_limit(reply, "bytes_per_s", limits.bytes_per_s);
}

static const struct device_ops *const devices[TARGET_COUNT] = {
    [TARGET_CPU] = &device_cpu,
    [TARGET_CUDA] = &device_cuda,
};

/* Confines this process if the request names the directory of the code that it is to run. */
static unsigned confine(const json_t *request)
{
    const char *code = json_string_value(json_object_get(request, "code"));
    const char *writable = json_string_value(json_object_get(request, "writable"));
    return code != NULL ? sandbox_enter(code, writable) : 0; /* doctor says where it cannot */
}

/* Takes the workload and starts the oracle, while the parent builds what will run. */
static int do_begin(struct worker *k, const json_t *request, json_t *reply, struct status *st)
{
    k->target = (enum target_kind)json_integer_value(json_object_get(request, "target"));
    int result = message_to_inputs(json_object_get(request, "inputs"), &k->inputs, st);
    json_object_set_new(reply, "kept_from", json_integer(confine(request)));
    if (result != 0 || read_workload(k, request, st) != 0)
        return -1;
    reference_init(&k->reference, &k->w, k->inputs);
    k->reference.nice = json_is_true(json_object_get(request, "nice"));
    reference_start(&k->reference);
    k->ops = devices[k->target];
    if (k->reference.nice && k->ops->start != NULL)
        k->ops->start();
    return 0;
}

static int do_open(struct worker *k, const json_t *request, json_t *reply, struct status *st)
{
    int index = (int)json_integer_value(json_object_get(request, "device"));
    if (k->ops->open(index, &k->w, &k->device, st) != 0 ||
        tensors_init(&k->tensors, &k->w, k->ops, k->device, k->inputs, st) != 0)
        return -1;
    add_limits(k, reply);
    return 0;
}

/* ---- dump ------------------------------------------------------------------------------------ */

/* Of a candidate that is verified first: all layers of a plan, or if not the whole is asked for,
 * because it was verified before, layer 0. */
static int do_dump(struct worker *k, const json_t *request, json_t *reply, struct status *st)
{
    (void)reply;
    struct program program;
    k->candidate = 0;
    tensors_trim(&k->tensors, 0);
    int result = program_load(k, json_object_get(request, "candidate"), k->w.layers, &program, st);
    const char *dir = json_string_value(json_object_get(request, "dir"));
    bool whole = json_is_true(json_object_get(request, "whole"));
    program.all_rows = whole;
    if (result == 0)
        result = verify_program(k, &program, whole ? k->w.layers : 1, st);
    if (result == 0)
        result = dump_program(k, &program, dir, whole, st);
    else if (st->code == STATUS_WRONG)
        tensors_refill(&k->tensors, &k->reference.in[0]);
    program_release(k, &program);
    return result;
}

/* ---- serve ----------------------------------------------------------------------------------- */

static const struct {
    const char *name;
    int (*run)(struct worker *k, const json_t *request, json_t *reply, struct status *st);
} requests[] = {
    {"begin", do_begin}, {"open", do_open},         {"measure", worker_measure},
    {"dump", do_dump},   {"stamps", worker_stamps},
};

static void serve(struct worker *k, const json_t *request)
{
    struct status st = STATUS_INIT;
    json_t *reply = json_pack("{s:b}", "reply", 1);
    const char *name = json_string_value(json_object_get(request, "do"));
    const char *token = json_string_value(json_object_get(request, "token"));
    if (token != NULL)
        snprintf(k->token, sizeof(k->token), "%s", token);
    size_t i = 0;
    while (i < ARRAY_LEN(requests) && (name == NULL || strcmp(requests[i].name, name) != 0))
        i++;
    if (i == ARRAY_LEN(requests))
        status_set(&st, STATUS_LAUNCH, "unexpected request '%s'", name != NULL ? name : "");
    else
        requests[i].run(k, request, reply, &st);
    json_object_set_new(reply, "code", json_string(status_name(st.code)));
    json_object_set_new(reply, "message", json_string(st.message));
    worker_say(k, reply);
}

int worker_serve(int channel, int mask_fd)
{
    struct worker k = {.channel = channel, .mask_fd = mask_fd};
    SCOPED_BUF received = BUF_INIT;
    char chunk[16384];
    int taken = 0;
    ssize_t n;
    while (taken >= 0 &&
           ((n = recv(channel, chunk, sizeof(chunk), 0)) > 0 || (n < 0 && errno == EINTR))) {
        json_t *request;
        buf_add(&received, chunk, n > 0 ? (size_t)n : 0);
        while ((taken = message_take(&received, &request)) > 0) {
            serve(&k, request);
            json_decref(request);
        }
    }
    program_forget(&k);
    reference_release(&k.reference);
    verify_e4m3_release(&k);
    tensors_release(&k.tensors);
    if (k.ops != NULL)
        k.ops->close(k.device);
    workload_release(&k.w);
    inputs_release(&k.inputs);
    return taken < 0 ? EXIT_FAILURE : EXIT_SUCCESS;
}
