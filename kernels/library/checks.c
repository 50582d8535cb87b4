/* Errors, and what a run refuses: arguments, memory that overlaps, a process that was forked. */
#include "plan.h"

#include <stdarg.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* ---- errors ---------------------------------------------------------------------------------- */

static _Thread_local char message[256];

int encoder_fail(enum encoder_status status, const char *format, ...)
{
    va_list list;
    va_start(list, format);
    vsnprintf(message, sizeof(message), format, list);
    va_end(list);
    return status;
}

const char *encoder_message(void)
{
    return message;
}

const char *encoder_status_text(int status)
{
    static const char *const texts[] = {
        [ENCODER_OK] = "done",
        [ENCODER_BAD_ARGUMENT] = "an argument is wrong",
        [ENCODER_NO_PLAN] = "no plan is large enough",
        [ENCODER_NO_MEMORY] = "out of memory",
        [ENCODER_NO_DEVICE] = "there is no usable device",
        [ENCODER_WRONG_DEVICE] = "the library has no code for this device",
        [ENCODER_OLD_DRIVER] = "the driver is too old",
        [ENCODER_DEVICE_FAILED] = "the device failed",
        [ENCODER_FORKED] = "the process was forked from one that used the library",
    };
    bool known = status >= 0 && status < (int)(sizeof(texts) / sizeof(texts[0]));
    return known ? texts[status] : "an unknown status";
}

/* ---- processes ------------------------------------------------------------------------------- */

/* The process that started OpenMP's threads, or used a GPU, for the library; 0: none did. */
static atomic_int owner;

int encoder_start(void)
{
    int self = (int)getpid(), before = 0;
    if (atomic_compare_exchange_strong(&owner, &before, self) || before == self)
        return ENCODER_OK;
    return encoder_fail(ENCODER_FORKED,
                        "process %d used the library before process %d was forked, and neither "
                        "OpenMP's threads nor CUDA outlive a fork; fork before that, or start the "
                        "process by exec, as Python's 'spawn' does",
                        before, self);
}

bool encoder_is_forked(void)
{
    int process = atomic_load(&owner);
    return process != 0 && process != (int)getpid();
}

/* ---- a call's arguments ---------------------------------------------------------------------- */

struct memory {
    const char *name;
    const void *at; /* may be null */
    size_t bytes;
};

static bool overlap(const struct memory *a, const struct memory *b)
{
    uintptr_t first = (uintptr_t)a->at, second = (uintptr_t)b->at;
    return first <= second ? second - first < a->bytes : first - second < b->bytes;
}

/* workspace_bytes: the bytes that the run uses. */
static int check_overlaps(const struct encoder *e, const struct encoder_call *c,
                          size_t workspace_bytes)
{
    const struct encoder_info *l = &encoder_library;
    size_t tokens = (size_t)c->batch * (size_t)c->seq_len,
           bytes = tokens * (size_t)l->hidden * (size_t)l->element_bytes,
           lengths_bytes = (size_t)c->batch * sizeof(int);
    enum { WRITTEN = 4, ALL = 8 };
    const struct memory all[ALL] = {{"output y", c->y, bytes},
                                    {"workspace", c->workspace, workspace_bytes},
                                    {"output yn", c->yn, bytes},
                                    {"outputs", c->outputs, bytes * (size_t)(e->layers - 1)},
                                    {"input x", c->x, bytes},
                                    {"lengths", c->lengths, lengths_bytes},
                                    {"device_lengths", c->device_lengths, lengths_bytes},
                                    {"device_mask", c->device_mask, tokens * sizeof(long long)}};
    for (int i = 0; i < WRITTEN; i++)
        for (int k = i + 1; k < ALL; k++)
            if (all[i].at != NULL && all[k].at != NULL && overlap(&all[i], &all[k]))
                return encoder_fail(ENCODER_BAD_ARGUMENT,
                                    "the %s (%zu bytes at %p) and the %s (%zu bytes at %p) "
                                    "overlap; give each memory of its own",
                                    all[i].name, all[i].bytes, all[i].at, all[k].name, all[k].bytes,
                                    all[k].at);
    return ENCODER_OK;
}

static int check_lengths(const struct encoder_call *c)
{
    if ((c->lengths != NULL) + (c->device_lengths != NULL) + (c->device_mask != NULL) > 1)
        return encoder_fail(ENCODER_BAD_ARGUMENT, "two of lengths, device_lengths and device_mask "
                                                  "are given at once; give one of them");
    for (int b = 0; b < c->batch && c->lengths != NULL; b++)
        if (c->lengths[b] < 1 || c->lengths[b] > c->seq_len)
            return encoder_fail(ENCODER_BAD_ARGUMENT,
                                "length %d is %d; expected 1 to the sequence length %d", b,
                                c->lengths[b], c->seq_len);
    return ENCODER_OK;
}

bool encoder_has(unsigned function)
{
    return (encoder_library.functions & function) != 0;
}

int encoder_kinds(void)
{
    return encoder_library.global_every > 0 ? 2 : 1;
}

int encoder_kind(int layer)
{
    const int every = encoder_library.global_every;
    return every > 0 && layer % every != 0;
}

void *encoder_carve(struct carving *c, size_t bytes)
{
    enum { ALIGNMENT = 256 };
    void *at = c->base != NULL ? c->base + c->used : NULL;
    c->used += (bytes + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
    return at;
}

bool encoder_on_cpu(void)
{
    return strcmp(encoder_library.target, "cpu") == 0;
}

int encoder_check_eps(const char *whose, double eps)
{
    static const double min = 1e-37, max = 1; /* kernels take it as a float */
    if (eps >= min && eps <= max)
        return ENCODER_OK;
    return encoder_fail(ENCODER_BAD_ARGUMENT,
                        "the %s has eps %g; expected a number from %g to %g, such as 1e-12", whose,
                        eps, min, max);
}

/* Of a GPU alone. */
static int check_target(const struct encoder_call *c)
{
    if (!encoder_on_cpu() ||
        (c->device_lengths == NULL && c->device_mask == NULL && c->stream == NULL))
        return ENCODER_OK;
    return encoder_fail(ENCODER_BAD_ARGUMENT, "%s given to a library for CPUs; give %s",
                        c->stream != NULL        ? "a stream is"
                        : c->device_mask != NULL ? "a device_mask is"
                                                 : "device_lengths are",
                        c->stream != NULL ? "null" : "lengths");
}

int encoder_check_call(const struct encoder *e, const struct encoder_call *c)
{
    if (e == NULL || c == NULL || c->x == NULL || c->y == NULL || c->workspace == NULL)
        return encoder_fail(ENCODER_BAD_ARGUMENT, "the %s is null",
                            e == NULL      ? "handle"
                            : c == NULL    ? "call"
                            : c->x == NULL ? "input x"
                            : c->y == NULL ? "output y"
                                           : "workspace");
    if (c->batch < 1 || c->seq_len < 1)
        return encoder_fail(ENCODER_BAD_ARGUMENT, "the batch is (%d, %d); expected positive sizes",
                            c->batch, c->seq_len);
    if (c->yn != NULL && !encoder_has(ENCODER_PRE))
        return encoder_fail(ENCODER_BAD_ARGUMENT,
                            "yn is given, and the layers hand on no norm; give null");
    int status = check_lengths(c);
    return status == ENCODER_OK ? check_target(c) : status;
}

int encoder_check_memory(const struct encoder *e, const struct encoder_call *c,
                         const struct encoder_plan *p, size_t needed)
{
    enum { ALIGNMENT = 16 };
    if (needed == 0)
        return encoder_fail(ENCODER_NO_PLAN, "no plan is as large as batch %d, sequence length %d",
                            c->batch, c->seq_len);
    if (c->workspace_bytes < needed)
        return encoder_fail(ENCODER_BAD_ARGUMENT, "the workspace has %zu bytes; it needs %zu",
                            c->workspace_bytes, needed);
    if (((uintptr_t)c->x | (uintptr_t)c->y | (uintptr_t)c->yn | (uintptr_t)c->outputs |
         (uintptr_t)c->workspace) %
            ALIGNMENT !=
        0)
        return encoder_fail(ENCODER_BAD_ARGUMENT,
                            "x, y, yn, outputs or the workspace is not aligned to %d bytes",
                            ALIGNMENT);
    if (c->device_mask != NULL && p->packed == 0)
        return encoder_fail(
            ENCODER_BAD_ARGUMENT,
            "device_mask is given, and the plan for batch %d, sequence length %d is "
            "not packed; give device_lengths, or export with --packed",
            c->batch, c->seq_len);
    return check_overlaps(e, c, needed);
}
