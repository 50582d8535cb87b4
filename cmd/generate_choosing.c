/* What is generated: a plan and its schedules for each workload. */
#include "bench/oracle/oracle.h"
#include "cmd/generate_int.h"
#include "cmd/options_int.h"
#include "cmd/plans.h"

/* The workload without lengths: a call gives them. */
static void drop_lengths(const struct workload *w, struct workload *full)
{
    *full = *w;
    full->lengths = NULL;
    if (w->lengths == NULL)
        return;
    block_lists_build(&w->mask, w->batch, NULL, &full->blocks);
    cover_build(&w->mask, w->batch, NULL, &full->blocks, &full->cover);
    if (w->local == NULL)
        return;
    full->local = mem_alloc(1, sizeof(*full->local));
    drop_lengths(w->local, full->local);
}

static void release_full(const struct workload *w, struct workload *full)
{
    if (w->lengths == NULL)
        return;
    block_lists_release(&full->blocks);
    cover_release(&full->cover);
    if (w->local == NULL)
        return;
    release_full(w->local, full->local);
    free(full->local);
}

/* The operand's plan for one workload: of EITHER_WORD the default plan where nothing is known. */
static int choose_plan(const struct options *o, struct best_plan *best, struct plan *out,
                       struct status *st)
{
    if (strcmp(o->operands[0], EITHER_WORD) != 0)
        return session_best(o, SCOPE_KNOWN, best, st) != 0
                   ? -1
                   : plan_from_text(o, o->operands[0], best, out, st);
    struct options one = *o;
    struct status missing = STATUS_INIT;
    one.operands = (const char *[]){BEST_WORD};
    if (session_best(&one, SCOPE_KNOWN, best, &missing) == 0)
        return plan_from_text(o, BEST_WORD, best, out, st);
    if (missing.code == STATUS_NOT_FOUND)
        return plan_from_text(o, DEFAULT_WORD, best, out, st);
    *st = missing;
    return -1;
}

/* Notes of a plan that is the same for all sizes come with the first one. */
static int open_part(const struct options *o, struct choosing *c, struct chosen *part,
                     struct status *st)
{
    struct options one = *o;
    if (part != c->parts && strncmp(o->operands[0], BEST_WORD, strlen(BEST_WORD)) != 0)
        one.given |= OPT(QUIET);
    struct best_plan best;
    if (choose_plan(&one, &best, &part->plan, st) != 0 ||
        workload_from_options(o, true, &c->target, &part->workload, st) != 0)
        return -1;
    part->padded = best.padded;
    part->median_ms = best.known ? best.median_ms : NAN;
    drop_lengths(&part->workload, &part->full);
    part->opened = true;
    return 0;
}

static int by_tokens(const void *a, const void *b)
{
    const struct workload *x = &((const struct chosen *)a)->workload,
                          *y = &((const struct chosen *)b)->workload;
    int64_t left = (int64_t)x->batch * x->seq_len, right = (int64_t)y->batch * y->seq_len;
    return left != right ? (left > right) - (left < right) : x->batch - y->batch;
}

int choosing_check_precision(const struct options *o, struct status *st)
{
    if ((o->precision != 0) == (o->calibration != NULL))
        return 0;
    return status_set(st, STATUS_USAGE,
                      o->precision != 0
                          ? "--precision: a library has the scales of its model; add --calibration "
                            "FILE, which fuseplan.calibrate() of Python writes"
                          : "--calibration has scales of e4m3; add --precision, or leave it out");
}

static void set_scales(struct choosing *c)
{
    c->scales = (struct standalone_scales){.layers = c->calibration.layers,
                                           .model = strtoull(c->calibration.model, NULL, 16),
                                           .in = c->calibration.scale};
}

/* Reads the scales, and checks that they are of the model's weights, if these are known. */
static int open_scales(const struct options *o, struct choosing *c, struct status *st)
{
    const struct workload *w = &c->parts[0].workload;
    SCOPED_BY(trained_close_at) struct trained *t = NULL;
    if (o->calibration == NULL)
        return 0;
    SCOPED char *own = o->weights == NULL && o->model != NULL ? model_weights(o->model) : NULL;
    const char *weights = own != NULL ? own : o->weights;
    if ((weights != NULL &&
         (trained_open(weights, o->prefix, &t, st) != 0 || trained_check(t, w, st) != 0)) ||
        calibration_open(o->calibration, t, w, &c->calibration, st) != 0)
        return -1;
    set_scales(c);
    return 0;
}

int choosing_open(const struct options *o, struct choosing *out, struct status *st)
{
    int parts = options_workloads(o);
    *out =
        (struct choosing){.count = parts > 1 ? parts : 1}; /* without sizes one that is refused */
    out->parts = mem_alloc((size_t)out->count, sizeof(*out->parts));
    memset(out->parts, 0, (size_t)out->count * sizeof(*out->parts));
    for (int i = 0; i < out->count; i++) {
        struct options one = parts > 1 ? each_part(o, i) : *o;
        if (open_part(&one, out, &out->parts[i], st) != 0)
            return out->count > 1
                       ? status_prefix(st, "batch %d, seq-len %d", one.batch, one.seq_len)
                       : -1;
    }
    qsort(out->parts, (size_t)out->count, sizeof(*out->parts), by_tokens);
    return open_scales(o, out, st);
}

/* Chooses the architectures: --arch, else the device's own, else two that most GPUs run; of a CPU
 * --arch, else processors like this machine's.  Default schedules are those for the tokens that the
 * plan computes. */
static int choose_archs(const struct options *o, struct choosing *c, const struct chosen *part,
                        struct status *st)
{
    const struct workload *w = part->padded ? &part->full : &part->workload;
    struct build_target *build = &c->build;
    struct arch_list *archs = &c->archs;
    if (c->target.kind == TARGET_CPU) {
        *build = target_build(c->target, w);
        build->precision = o->precision;
        c->processors = o->arch != NULL ? o->arch : "native";
        return build_check(build, &part->workload, st) != 0
                   ? -1
                   : cpu_check_processors(c->processors, st);
    }
    if (archs_from_options(o, c->target.kind, archs, st) != 0)
        return -1;
    *build = archs->count > 0 ? build_target_of(c->target.kind, "", true, w)
                              : target_build(c->target, w);
    build->precision = o->precision;
    if (archs->count == 0 && build->arch != 0)
        *archs = (struct arch_list){1, {build->arch}};
    else if (archs->count == 0 && o->precision != 0)
        *archs = (struct arch_list){1, {CUDA_ARCH_HOPPER}};
    else if (archs->count == 0)
        *archs = (struct arch_list){2, {CUDA_ARCH_MIN, CUDA_ARCH_HOPPER}};
    for (int i = 0; i < archs->count; i++) {
        build->arch = archs->arch[i];
        if (build_check(build, &part->workload, st) != 0)
            return -1;
    }
    build->arch = arch_common(archs);
    return 0;
}

int choosing_schedules(const struct options *o, struct choosing *c, struct status *st)
{
    for (int i = 0; i < c->count; i++)
        if (choose_archs(o, c, &c->parts[i], st) != 0 ||
            schedules_choose(o, c, &c->parts[i], st) != 0)
            return -1;
    for (int i = 0; i < c->count; i++) {
        const struct chosen *part = &c->parts[i];
        c->parts[i].schedules.candidate.packed =
            options_has(o, OPT(PACKED)) || (part->workload.lengths != NULL && !part->padded);
    }
    return 0;
}

void choosing_draw_scales(const struct drawing *from, struct choosing *c)
{
    const struct inputs drawn = {.seed = from->seed, .ranges = from->ranges};
    scales_draw(&c->parts[0].workload, drawn, &c->calibration);
    set_scales(c);
}

struct standalone_spec choosing_spec(struct choosing *c, const char *name,
                                     const struct drawing *inputs)
{
    c->plans = mem_resize(c->plans, (size_t)c->count, sizeof(*c->plans));
    for (int i = 0; i < c->count; i++)
        c->plans[i] = (struct standalone_plan){.workload = &c->parts[i].workload,
                                               .full = &c->parts[i].full,
                                               .candidate = &c->parts[i].schedules.candidate,
                                               .measured_on = c->parts[i].schedules.measured > 0
                                                                  ? c->parts[i].schedules.device
                                                                  : NULL};
    return (struct standalone_spec){.target = c->build,
                                    .archs = c->archs,
                                    .processors = c->processors,
                                    .name = name,
                                    .plans = c->plans,
                                    .count = c->count,
                                    .scales = c->scales.layers > 0 ? &c->scales : NULL,
                                    .inputs = inputs};
}

void choosing_note(const struct options *o, const struct choosing *c)
{
    for (int i = 0; i < c->count; i++) {
        const struct workload *w = &c->parts[i].workload;
        if (c->count > 1)
            note(o, "batch %d, seq-len %d:", w->batch, w->seq_len);
        schedules_note(o, c, &c->parts[i]);
    }
}

void choosing_close(struct choosing *c)
{
    for (int i = 0; i < c->count; i++) {
        struct chosen *part = &c->parts[i];
        if (part->opened)
            release_full(&part->workload, &part->full);
        schedules_release(&part->schedules);
        workload_release(&part->workload);
    }
    calibration_release(&c->calibration);
    free(c->parts);
    free(c->plans);
}
