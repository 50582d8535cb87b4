#include "codegen/codegen.h"

#include "kernels/cuda/joined.h"

const char *const target_names[] = {[TARGET_CPU] = "cpu", [TARGET_CUDA] = "cuda"};
_Static_assert(ARRAY_LEN(target_names) == TARGET_COUNT, "one name a target");

/* Whether one launch serves tiles of the covers of all kinds of layers, or a mask is not built. */
static bool has_covers(const struct workload *w)
{
    if (w->blocks.start == NULL)
        return true;
    return w->cover.parts > 0 && (w->local == NULL || w->local->cover.parts == w->cover.parts);
}

/* Whether each kind's mask is a band so narrow that a tile of joined rows has room for its keys. */
static bool has_bands(const struct workload *w)
{
    for (int kind = 0; kind < workload_kinds(w) && w->blocks.start != NULL; kind++) {
        const struct workload *of = workload_of_kind(w, kind);
        if (!of->blocks.has_band ||
            fp_joined_entries(of->blocks.band[0], of->blocks.band[1]) > TILE_HEAD)
            return false;
    }
    return true;
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
                                 .joined = has_bands(w),
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

/* Whether segments that have choices make up a plan. */
static bool has_plan(const struct build_target *t)
{
    bool reached[OP_COUNT + 1] = {true};
    for (int end = 1; end <= OP_COUNT; end++)
        for (int first = 0; first < end && !reached[end]; first++) {
            struct choice c;
            struct segment s = {(int8_t)first, (int8_t)(end - 1)};
            reached[end] = reached[first] && choices_for(t, s, false, 1, &c) > 0;
        }
    return reached[OP_COUNT];
}

/* Appends the size that decides on Hopper whether a GEMM in e4m3 has kernels, and what it misses:
 * e4m3 is read and stored in groups of 16 columns, and behind a norm in panels of 64.  w: null if
 * the sizes are unknown. */
static void add_size(const struct build_target *t, const struct workload *w, int gemm,
                     struct buf *out)
{
    if (w == NULL || t->arch != CUDA_ARCH_HOPPER || dtypes[t->dtype].bytes != 2 ||
        gemm >= GEMM_COUNT)
        return;
    const struct {
        const char *name;
        int size, step;
    } sizes[GEMM_COUNT] = {[GEMM_QKV] = {"hidden size", workload_hidden(w), 64},
                           [GEMM_OUT] = {"head size", w->head_size, 16},
                           [GEMM_FFN1] = {"hidden size", workload_hidden(w), 64},
                           [GEMM_FFN2] = {"ffn", w->ffn, 16}};
    buf_addf(out, " with %s %d", sizes[gemm].name, sizes[gemm].size);
    if (sizes[gemm].size % sizes[gemm].step != 0)
        buf_addf(out, ", no multiple of %d", sizes[gemm].step);
}

/* A failure names the first GEMM in e4m3 that no plan runs, else all of them. */
static int check_precision(const struct build_target *t, const struct workload *w,
                           struct status *st)
{
    struct build_target one = *t;
    SCOPED_BUF gemms = BUF_INIT, size = BUF_INIT;
    bool found = true;
    for (int g = 0; g <= GEMM_COUNT && found; g++) {
        buf_reset(&gemms);
        one.precision = g < GEMM_COUNT ? t->precision & 1u << g : t->precision;
        precision_text(one.precision, "", &gemms);
        found = one.precision == 0 || has_plan(&one);
        if (!found)
            add_size(t, w, g, &size);
    }
    if (!found) {
        if (t->arch != 0) {
            buf_adds(&gemms, " on ");
            arch_name(t->arch, &gemms);
        }
        status_set(st, STATUS_UNFIT,
                   "the %s target has no kernels for %s in e4m3%s; without --precision all GEMMs "
                   "are in %s",
                   target_names[t->kind], gemms.ptr, size.ptr, dtypes[t->dtype].name);
    }
    return found ? 0 : -1;
}

int build_check(const struct build_target *t, const struct workload *w, struct status *st)
{
    const char *why;
    const struct choice whole = {
        .chain = t->chain, .segment = {0, OP_COUNT - 1}, .impl = impl_find(t->kind, "generated")};
    if (t->kind == TARGET_CUDA && check_cuda(t, w, st) != 0)
        return -1;
    struct build_target plain = *t;
    plain.precision = 0;
    if (choice_applicable(&whole, &plain, &why))
        return t->precision != 0 ? check_precision(t, w, st) : 0;
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
