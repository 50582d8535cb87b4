#include "codegen/cuda_int.h"

#include <stdlib.h>
#include <string.h>

const char *const target_names[] = {[TARGET_CPU] = "cpu", [TARGET_CUDA] = "cuda"};
_Static_assert(ARRAY_LEN(target_names) == TARGET_COUNT, "one name a target");

/* ---- what code is compiled for -------------------------------------------------------------- */

struct build_target build_target_of(enum target_kind kind, const char *capability,
                                    const struct workload *w)
{
    static const char prefix[] = "sm_";
    bool gpu = strncmp(capability, prefix, strlen(prefix)) == 0;
    return (struct build_target){.kind = kind,
                                 .dtype = w->dtype,
                                 .head_size = w->head_size,
                                 .arch =
                                     gpu ? (int)strtol(capability + strlen(prefix), NULL, 10) : 0};
}

int build_check(const struct build_target *t, const struct workload *w, struct status *st)
{
    const char *why;
    if (t->kind == TARGET_CPU)
        return 0;
    if (w->head_size != 16 && w->head_size != 32 && w->head_size != 64 && w->head_size != 128)
        return status_set(
            st, STATUS_USAGE,
            "the cuda target has no code for head size %d; expected 16, 32, 64 or 128",
            w->head_size);
    if (w->ffn % 8 != 0)
        return status_set(st, STATUS_USAGE,
                          "the cuda target has no code for ffn %d; expected a multiple of 8",
                          w->ffn);
    if (t->arch != 0 && t->arch < CUDA_ARCH_MIN)
        return status_set(st, STATUS_ENVIRONMENT,
                          "the cuda target has no code for sm_%d; expected sm_%d or later", t->arch,
                          CUDA_ARCH_MIN);
    const struct choice whole = {{0, OP_COUNT - 1}, impl_find(t->kind, "generated"), {{0}}};
    if (!choice_applicable(&whole, t, &why))
        return status_set(st, STATUS_UNFIT,
                          "the cuda target has no code for head size %d in %s on sm_%d: %s",
                          w->head_size, dtypes[t->dtype].name, t->arch, why);
    return 0;
}

void build_options(const struct build_target *t, struct buf *out)
{
    if (t->kind == TARGET_CUDA)
        arch_options(&(struct arch_list){1, {t->arch}}, out);
}

/* ---- the CPU's generated code --------------------------------------------------------------- */

static int cpu_stages(const struct choice *c, struct stage out[OP_COUNT])
{
    return lower_segment(c->segment, (enum lowering)c->schedule.pick[CPU_KNOB_LOWERING], out);
}

static uint16_t cpu_tensors(const struct choice *c)
{
    struct stage stages[OP_COUNT];
    uint16_t tensors = 0;
    for (int i = cpu_stages(c, stages) - 1; i >= 0; i--)
        tensors |= stages[i].stores;
    return tensors;
}

/* Lowering makes a difference where some stage of one lowering is none of the other. */
static bool lowerings_differ(struct segment s)
{
    struct stage tiled[OP_COUNT], rowwise[OP_COUNT];
    return lower_segment(s, LOWERING_TILED, tiled) != lower_segment(s, LOWERING_ROWWISE, rowwise);
}

static bool any_gemm(const struct stage *stages, int count, bool in_tiles)
{
    for (int i = 0; i < count; i++)
        if (stage_has(&stages[i], ANCHOR_GEMM) && (!in_tiles || stages[i].kind == STAGE_GEMM))
            return true;
    return false;
}

bool refuse(const char **why, const char *reason)
{
    *why = reason;
    return false;
}

static bool cpu_applicable(const struct choice *c, const struct build_target *t, const char **why)
{
    (void)t;
    const int8_t *pick = c->schedule.pick;
    struct stage stages[OP_COUNT];
    int count = cpu_stages(c, stages);
    if (pick[CPU_KNOB_LOWERING] != 0 && !lowerings_differ(c->segment))
        return refuse(why, "both lowerings give this segment the same stages");
    if (pick[CPU_KNOB_ROW_BLOCK] != 0 && !any_gemm(stages, count, false))
        return refuse(why, "row_block is of GEMMs, and this segment has none");
    if (pick[CPU_KNOB_COL_BLOCK] != 0 && !any_gemm(stages, count, true))
        return refuse(why, "col_block is of GEMMs cut into tiles, and this segment has none");
    return true;
}

/* ---- hand-written attention ----------------------------------------------------------------- */

static bool handwritten_applicable(const struct choice *c, const struct build_target *t,
                                   const char **why)
{
    (void)t;
    struct segment s = c->segment;
    struct plan only = {.fused = (uint16_t)(((1u << (s.last - s.first)) - 1) << s.first)};
    return plan_has_attention_segment(only) ||
           refuse(why, "the hand-written attention runs ops 2-6, no more and no less");
}

static uint16_t handwritten_tensors(const struct choice *c)
{
    return segment_outputs(c->segment);
}

/* ---- the table ------------------------------------------------------------------------------ */

/* Of CUDA's `generated` and `hopper`. */
#define CUDA_COMMON_KNOBS                                                                          \
    [CUDA_KNOB_SPLIT] = {.name = "split",                                                          \
                         .compile_time = true,                                                     \
                         .count = 4,                                                               \
                         .values = {1, 2, 4, 8}},                                                  \
    [CUDA_KNOB_NORM] = {.name = "norm",                                                            \
                        .compile_time = true,                                                      \
                        .count = 2,                                                                \
                        .values = {CUDA_NORM_BARRIER, CUDA_NORM_STRIP},                            \
                        .labels = {"barrier", "strip"}},                                           \
    [CUDA_KNOB_RESIDENT] = {                                                                       \
        .name = "resident", .compile_time = true, .count = 3, .values = {1, 3, 4}}

const struct impl impls[] = {
    {.name = "generated",
     .target = TARGET_CPU,
     .summary = "C with OpenMP: OpenBLAS on tiles with fused epilogues, attention in key blocks",
     .applicable = cpu_applicable,
     .tensors = cpu_tensors,
     .emit = emit_cpu_generated,
     .knob_count = 3,
     .knobs = {[CPU_KNOB_LOWERING] = {.name = "lowering",
                                      .compile_time = true,
                                      .count = 2,
                                      .values = {LOWERING_TILED, LOWERING_ROWWISE},
                                      .labels = {"tiled", "rowwise"}},
               [CPU_KNOB_ROW_BLOCK] = {.name = "row_block", .count = 3, .values = {256, 128, 64}},
               [CPU_KNOB_COL_BLOCK] = {.name = "col_block",
                                       .count = 3,
                                       .values = {0, 384, 192},
                                       .labels = {"even", "384", "192"}}}},
    {.name = "handwritten",
     .target = TARGET_CPU,
     .handwritten = true,
     .summary = "C with OpenMP: attention over gathered keys, 16 query rows at a time",
     .applicable = handwritten_applicable,
     .tensors = handwritten_tensors,
     .emit = emit_cpu_handwritten},
    {.name = "generated",
     .target = TARGET_CUDA,
     .summary = "mma.sync GEMMs with fused epilogues, attention in key blocks; sm_80 and later",
     .applicable = cuda_applicable,
     .tensors = cuda_tensors,
     .emit = emit_cuda_generated,
     .launch = cuda_launch,
     .knob_count = CUDA_KNOB_COUNT,
     .knobs = {[CUDA_KNOB_TILE] = {.name = "tile",
                                   .compile_time = true,
                                   .count = 6,
                                   .values = {CUDA_TILE_64X64, CUDA_TILE_128X96, CUDA_TILE_128X128,
                                              CUDA_TILE_128X192, CUDA_TILE_128X64, CUDA_TILE_32X64},
                                   .labels = {"64x64", "128x96", "128x128", "128x192", "128x64",
                                              "32x64"}},
               CUDA_COMMON_KNOBS}},
    {.name = "hopper",
     .target = TARGET_CUDA,
     .summary = "the same with warpgroup products; sm_90a, fp16 and bf16",
     .applicable = cuda_hopper_applicable,
     .tensors = cuda_tensors,
     .emit = emit_cuda_generated,
     .launch = cuda_launch,
     .knob_count = CUDA_KNOB_COUNT,
     .knobs = {[CUDA_KNOB_TILE] = {.name = "tile",
                                   .compile_time = true,
                                   .count = 5,
                                   .values = {CUDA_TILE_HOPPER_128X192, CUDA_TILE_HOPPER_256X128,
                                              CUDA_TILE_HOPPER_192X128, CUDA_TILE_HOPPER_128X128,
                                              CUDA_TILE_HOPPER_64X64},
                                   .labels = {"128x192", "256x128", "192x128", "128x128", "64x64"}},
               CUDA_COMMON_KNOBS}},
    {.name = "handwritten",
     .target = TARGET_CUDA,
     .handwritten = true,
     .summary = "attention in registers: warps share the keys of 16 query rows, or 64 rows",
     .applicable = handwritten_applicable,
     .tensors = handwritten_tensors,
     .emit = emit_cuda_handwritten,
     .launch = cuda_launch_handwritten,
     .knob_count = 1,
     .knobs = {[CUDA_HAND_KNOB_WARPS] = {.name = "warps",
                                         .compile_time = true,
                                         .count = 2,
                                         .values = {CUDA_HAND_KEYS, CUDA_HAND_ROWS},
                                         .labels = {"keys", "rows"}}}},
    {.name = "library",
     .target = TARGET_CUDA,
     .library = true,
     .summary = "cuBLASLt: a GEMM with its bias, residual or GELU in the epilogue",
     .applicable = cuda_library_applicable,
     .tensors = cuda_library_tensors,
     .emit = emit_cuda_library,
     .knob_count = 1,
     .knobs = {[CUDA_LIBRARY_KNOB_ALGORITHM] = {.name = "algorithm",
                                                .count = 8,
                                                .values = {0, 1, 2, 3, 4, 5, 6, 7}}}},
};
const int impl_count = ARRAY_LEN(impls);

const struct impl *impl_find(enum target_kind target, const char *name)
{
    for (int i = 0; i < impl_count; i++)
        if (impls[i].target == target && strcmp(impls[i].name, name) == 0)
            return &impls[i];
    return NULL;
}

/* ---- schedules ------------------------------------------------------------------------------ */

/* The next schedule, as a counter whose first knob turns slowest; false after the last. */
static bool next_schedule(const struct impl *impl, struct schedule *sch)
{
    for (int k = impl->knob_count - 1; k >= 0; k--) {
        if (++sch->pick[k] < impl->knobs[k].count)
            return true;
        sch->pick[k] = 0;
    }
    return false;
}

static void label_text(const struct knob *knob, int pick, struct buf *out)
{
    if (knob->labels[pick])
        buf_adds(out, knob->labels[pick]);
    else
        buf_addf(out, "%d", knob->values[pick]);
}

void schedule_text(const struct impl *impl, const struct schedule *s, struct buf *out)
{
    for (int k = 0; k < impl->knob_count; k++) {
        buf_addf(out, "%s%s=", k > 0 ? " " : "", impl->knobs[k].name);
        label_text(&impl->knobs[k], s->pick[k], out);
    }
}

static int pick_find(const struct knob *knob, const char *text, size_t len)
{
    struct buf label;
    int found = -1;
    buf_init(&label);
    for (int i = 0; i < knob->count && found < 0; i++) {
        buf_reset(&label);
        label_text(knob, i, &label);
        if (label.len == len && memcmp(label.ptr, text, len) == 0)
            found = i;
    }
    buf_release(&label);
    return found;
}

static int knob_find(const struct impl *impl, const char *name, size_t len)
{
    for (int k = 0; k < impl->knob_count; k++)
        if (strlen(impl->knobs[k].name) == len && memcmp(impl->knobs[k].name, name, len) == 0)
            return k;
    return -1;
}

int schedule_parse(const struct impl *impl, const char *text, struct schedule *out,
                   struct status *st)
{
    *out = (struct schedule){0};
    struct schedule parsed = {0};
    for (const char *p = text; *p;) {
        size_t len = strcspn(p, " "), name = strcspn(p, "= ");
        int knob = knob_find(impl, p, name);
        if (name == len || knob < 0)
            return status_set(st, STATUS_USAGE, "'%.*s' is no knob of %s with its value", (int)len,
                              p, impl->name);
        int pick = pick_find(&impl->knobs[knob], p + name + 1, len - name - 1);
        if (pick < 0)
            return status_set(st, STATUS_USAGE, "knob %s of %s has no value '%.*s'",
                              impl->knobs[knob].name, impl->name, (int)(len - name - 1),
                              p + name + 1);
        parsed.pick[knob] = (int8_t)pick;
        p += len + (p[len] == ' ');
    }
    *out = parsed;
    return 0;
}

/* ---- choices -------------------------------------------------------------------------------- */

static bool serves(const struct impl *impl, const struct build_target *t, struct segment s,
                   bool handwritten)
{
    const struct choice plain = {.segment = s, .impl = impl};
    const char *why;
    return impl->target == t->kind && impl->handwritten == handwritten &&
           choice_applicable(&plain, t, &why);
}

static bool any_serves(const struct build_target *t, struct segment s, bool handwritten)
{
    for (int i = 0; i < impl_count; i++)
        if (serves(&impls[i], t, s, handwritten))
            return true;
    return false;
}

struct choice_list {
    const struct build_target *target;
    struct choice *out;
    int count, max;
};

static void add_choice(struct choice_list *list, const struct choice *c)
{
    const char *why;
    if (!choice_applicable(c, list->target, &why))
        return;
    if (list->count < list->max)
        list->out[list->count] = *c;
    list->count++;
}

int choices_for(const struct build_target *t, struct segment s, bool handwritten, int max,
                struct choice *out)
{
    struct choice_list list = {.target = t, .out = out, .max = max};
    handwritten = handwritten && any_serves(t, s, true);
    for (int i = 0; i < impl_count; i++)
        if (serves(&impls[i], t, s, handwritten))
            add_choice(&list, &(struct choice){.segment = s, .impl = &impls[i]});
    for (int i = 0; i < impl_count; i++) {
        struct choice c = {.segment = s, .impl = &impls[i]};
        if (serves(c.impl, t, s, handwritten))
            while (next_schedule(c.impl, &c.schedule))
                add_choice(&list, &c);
    }
    return list.count;
}

bool choice_equal(const struct choice *a, const struct choice *b)
{
    return a->segment.first == b->segment.first && a->segment.last == b->segment.last &&
           a->impl == b->impl && memcmp(&a->schedule, &b->schedule, sizeof(a->schedule)) == 0;
}

int choice_knob(const struct choice *c, const char *knob)
{
    int k = knob_find(c->impl, knob, strlen(knob));
    return k < 0 ? 0 : c->impl->knobs[k].values[c->schedule.pick[k]];
}

uint16_t choice_tensors(const struct choice *c)
{
    return c->impl->tensors(c);
}

bool choice_applicable(const struct choice *c, const struct build_target *t, const char **why)
{
    return c->impl->applicable(c, t, why);
}

void choice_emit(const struct choice *c, const struct build_target *t, struct buf *out)
{
    c->impl->emit(c, t, out);
}

void choice_launch(const struct choice *c, const struct workload *w, struct cuda_launch *out)
{
    c->impl->launch(c, w, out);
}

void candidate_default(const struct build_target *t, struct plan p, struct candidate *out)
{
    struct segment segments[OP_COUNT];
    *out = (struct candidate){.plan = p, .count = plan_segments(p, segments)};
    for (int i = 0; i < out->count; i++)
        choices_for(t, segments[i], p.handwritten, 1, &out->choices[i]);
}

void choice_symbol(const struct choice *c, struct buf *out)
{
    buf_addf(out, "segment_%02d_%02d_", c->segment.first, c->segment.last);
    add_op_names(c->segment.first, c->segment.last, "_", out);
    if (c->impl != impl_find(c->impl->target, "generated"))
        buf_addf(out, "_%s", c->impl->name);
    for (int k = 0; k < c->impl->knob_count; k++) {
        const struct knob *knob = &c->impl->knobs[k];
        int pick = c->schedule.pick[k];
        if (knob->compile_time && pick != 0) {
            buf_addf(out, "_%s", knob->labels[pick] ? "" : knob->name);
            label_text(knob, pick, out);
        }
    }
}
