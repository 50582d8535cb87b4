#include "codegen/codegen.h"

#include <stdlib.h>
#include <string.h>

const char *const target_names[] = {[TARGET_CPU] = "cpu", [TARGET_CUDA] = "cuda"};
_Static_assert(ARRAY_LEN(target_names) == TARGET_COUNT, "one name a target");

/* Whether one launch serves tiles of the covers of all kinds of layers, or a mask is not built. */
static bool has_covers(const struct workload *w)
{
    if (w->blocks.start == NULL)
        return true;
    return w->cover.parts > 0 && (w->local == NULL || w->local->cover.parts == w->cover.parts);
}

struct build_target build_target_of(enum target_kind kind, const char *capability, bool library,
                                    const struct workload *w)
{
    static const char prefix[] = "sm_";
    bool gpu = strncmp(capability, prefix, strlen(prefix)) == 0;
    return (struct build_target){.chain = w->chain,
                                 .kind = kind,
                                 .dtype = w->dtype,
                                 .head_size = w->head_size,
                                 .arch =
                                     gpu ? (int)strtol(capability + strlen(prefix), NULL, 10) : 0,
                                 .library = kind == TARGET_CUDA && library,
                                 .ordered = has_covers(w),
                                 .workload = w};
}

static int check_cuda(const struct build_target *t, const struct workload *w, struct status *st)
{
    enum { HEAD_MOST = 256 };
    const int step = chain_functions(w->chain).rope ? 16 : 8; /* 16 bytes lie in one half */
    if (w->head_size % step != 0 || w->head_size > HEAD_MOST)
        return status_set(st, STATUS_USAGE,
                          "the cuda target has no code for head size %d%s; expected a multiple of "
                          "%d up to %d",
                          w->head_size, step == 16 ? " with rotary embeddings" : "", step,
                          HEAD_MOST);
    if (workload_hidden(w) % 8 != 0)
        return status_set(
            st, STATUS_USAGE,
            "the cuda target has no code for hidden size %d; expected a multiple of 8",
            workload_hidden(w));
    if (w->ffn % 8 != 0)
        return status_set(st, STATUS_USAGE,
                          "the cuda target has no code for ffn %d; expected a multiple of 8",
                          w->ffn);
    if (t->arch != 0 && t->arch < CUDA_ARCH_MIN)
        return status_set(st, STATUS_ENVIRONMENT,
                          "the cuda target has no code for sm_%d; expected sm_%d or later", t->arch,
                          CUDA_ARCH_MIN);
    return 0;
}

int build_check(const struct build_target *t, const struct workload *w, struct status *st)
{
    const char *why;
    const struct choice whole = {
        t->chain, {0, OP_COUNT - 1}, impl_find(t->kind, "generated"), {{0}}};
    if (t->kind == TARGET_CUDA && check_cuda(t, w, st) != 0)
        return -1;
    if (choice_applicable(&whole, t, &why))
        return 0;
    if (t->kind == TARGET_CPU)
        return status_set(st, STATUS_UNFIT, "the cpu target has no code for chain %s: %s",
                          t->chain->name, why);
    return status_set(st, STATUS_UNFIT,
                      "the cuda target has no code for head size %d in %s on sm_%d: %s",
                      w->head_size, dtypes[t->dtype].name, t->arch, why);
}

void build_options(const struct build_target *t, struct buf *out)
{
    if (t->kind != TARGET_CUDA)
        return;
    buf_adds(out, "-arch=");
    arch_name(t->arch, out);
}
