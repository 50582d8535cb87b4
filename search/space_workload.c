/* The workload in the header of a recorded space. */
#include "search/space_int.h"

#include <jansson.h>
#include <string.h>

static void add_lengths(const json_t *lengths, struct buf *out)
{
    for (size_t i = 0; i < json_array_size(lengths); i++)
        buf_addf(out, "%s%lld", i > 0 ? "," : "",
                 (long long)json_integer_value(json_array_get(lengths, i)));
    if (!json_is_array(lengths))
        buf_adds(out, "full");
}

int space_workload(const struct recorded_space *s, enum target_kind *kind, struct workload *out,
                   struct status *st)
{
    json_int_t batch, seq_len, heads, head_size, ffn, layers;
    double eps;
    const char *dtype, *mask, *target;
    json_t *lengths;
    json_error_t error;
    struct buf text;
    if (json_unpack_ex(json_object_get(s->header, "workload"), &error, 0,
                       "{sI sI sI sI sI sI sF ss ss ss so}", "batch", &batch, "seq_len", &seq_len,
                       "heads", &heads, "head_size", &head_size, "ffn", &ffn, "layers", &layers,
                       "eps", &eps, "dtype", &dtype, "mask", &mask, "target", &target, "lengths",
                       &lengths) != 0)
        return status_set(st, STATUS_USAGE, "line 1: workload: %s", error.text);
    for (*kind = TARGET_CPU; *kind < TARGET_COUNT; (*kind)++)
        if (strcmp(target_names[*kind], target) == 0)
            break;
    if (*kind == TARGET_COUNT || strcmp(target, s->target.kind) != 0)
        return status_set(st, STATUS_USAGE,
                          "line 1: the workload is for '%.40s', measured on '%.40s'; expected cpu "
                          "or cuda, and the same twice",
                          target, s->target.kind);
    buf_init(&text);
    buf_addf(&text, "b=%lld s=%lld h=%lld w=%lld f=%lld l=%lld eps=", (long long)batch,
             (long long)seq_len, (long long)heads, (long long)head_size, (long long)ffn,
             (long long)layers);
    number_add(eps, &text);
    buf_addf(&text, " dtype=%s lengths=", dtype);
    add_lengths(lengths, &text);
    buf_addf(&text, " mask=%s", mask);
    int result = workload_parse(text.ptr, out, st);
    buf_release(&text);
    return result == 0 ? 0 : status_prefix(st, "line 1");
}
