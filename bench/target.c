#include "bench/bench_int.h"

#include <assert.h>

/* One row a target.  dtypes has a bit for each enum dtype.  ops: null where this build lacks it. */
static const struct {
    const char *device_node; /* the target is the default where this file is; null: always */
    unsigned dtypes;
    enum dtype default_dtype;
    const struct target_ops *ops;
} targets[] = {
    [TARGET_CPU] = {NULL, 1u << DTYPE_FP32, DTYPE_FP32, &target_cpu},
    [TARGET_CUDA] = {"/dev/nvidiactl",
                     1u << DTYPE_FP32 | 1u << DTYPE_TF32 | 1u << DTYPE_FP16 | 1u << DTYPE_BF16,
                     DTYPE_FP16, &target_cuda},
};
static_assert(ARRAY_LEN(targets) == TARGET_COUNT, "a row for each target");

static enum target_kind default_target(void)
{
    int kind = TARGET_COUNT - 1;
    while (kind > 0 && (targets[kind].ops == NULL || !file_exists(targets[kind].device_node)))
        kind--;
    return (enum target_kind)kind;
}

int target_parse(const char *text, struct target_name *out, struct status *st)
{
    *out = (struct target_name){.kind = default_target()};
    if (text == NULL)
        return 0;
    size_t len = strcspn(text, ":");
    for (int kind = 0; kind < TARGET_COUNT; kind++) {
        if (strlen(target_names[kind]) != len || strncmp(target_names[kind], text, len) != 0)
            continue;
        out->kind = (enum target_kind)kind;
        if (text[len] == '\0')
            return 0;
        int64_t device;
        if (targets[kind].device_node == NULL)
            return status_set(st, STATUS_USAGE, "target '%s' has no device numbers; expected '%s'",
                              text, target_names[kind]);
        if (number_parse("the target's device number", text + len + 1, 0, 1023, &device, st) != 0)
            return -1;
        out->device = (int)device;
        return 0;
    }
    return status_set(st, STATUS_USAGE, "unknown target '%s'; expected cpu, cuda or cuda:N", text);
}

enum dtype target_default_dtype(enum target_kind kind)
{
    return targets[kind].default_dtype;
}

int target_check_dtype(enum target_kind kind, enum dtype dtype, struct status *st)
{
    if ((targets[kind].dtypes & 1u << dtype) != 0)
        return 0;
    SCOPED_BUF have = BUF_INIT;
    for (int i = 0; i < DTYPE_COUNT; i++)
        if ((targets[kind].dtypes & 1u << i) != 0)
            buf_addf(&have, "%s%s", have.len > 0 ? ", " : "", dtypes[i].name);
    return status_set(st, STATUS_USAGE, "the %s target has no element type %s; expected %s",
                      target_names[kind], dtypes[dtype].name, have.ptr);
}

const struct target_ops *target_ops_of(enum target_kind kind, struct status *st)
{
    if (targets[kind].ops == NULL)
        status_set(st, STATUS_ENVIRONMENT,
                   "this build has no %s target; use --target cpu or a build that has it",
                   target_names[kind]);
    return targets[kind].ops;
}
