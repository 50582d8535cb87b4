/* Commands of one workload, run for each of several batch sizes and sequence lengths. */
#include "cmd/options_int.h"
#include "cmd/plans.h"

#include <malloc.h>

int each_check(const struct options *o, const struct command *c, struct status *st)
{
    const struct {
        const struct numbers *sizes;
        const char *name;
    } lists[] = {{&o->batches, "--batch"}, {&o->seq_lens, "--seq-len"}};
    for (size_t i = 0; i < ARRAY_LEN(lists); i++)
        if (lists[i].sizes->count > 1 && !c->each)
            return status_set(st, STATUS_USAGE, "%s: %d sizes are given, and %s takes one",
                              lists[i].name, lists[i].sizes->count, c->name);
    if (o->format == FORMAT_MARKDOWN && !c->each)
        return status_set(st, STATUS_USAGE,
                          "--format markdown is of search, query, bench and ship, not of %s",
                          c->name);
    int workloads = options_workloads(o);
    if (workloads > 1 && options_has(o, OPT(DUMP)))
        return status_set(st, STATUS_USAGE,
                          "--dump writes one workload, and %d are asked for; give one batch size "
                          "and one sequence length",
                          workloads);
    return 0;
}

struct options each_part(const struct options *o, int part)
{
    struct options one = *o;
    one.batch = o->batches.items[part / o->seq_lens.count];
    one.seq_len = o->seq_lens.items[part % o->seq_lens.count];
    one.texts[OPTION_BATCH] = one.texts[OPTION_SEQ_LEN] = NULL; /* the lists */
    return one;
}

bool each_whole(const struct options *o)
{
    (void)o;
    return true;
}

/* Finds a size that is refused, before anything is done for the first one. */
static int check_workloads(const struct options *o, struct status *st)
{
    for (int i = 0; i < options_workloads(o); i++) {
        struct options one = each_part(o, i);
        struct target_name target;
        SCOPED_BY(workload_release) struct workload w;
        one.given |= OPT(QUIET); /* notes come with the measurement */
        if (workload_from_options(&one, false, &target, &w, st) != 0)
            return status_prefix(st, "batch %d, seq-len %d", one.batch, one.seq_len);
    }
    return 0;
}

/* Limits a workload to its share of the time that is left for it and those that follow.  What a
 * workload leaves goes to the next ones. */
static void share_time(const struct options *o, double begun, int left, struct options *one)
{
    const double least = 0.1; /* for who answers from the database */
    double share = (o->total_time_s - (clock_seconds() - begun)) / left;
    if (o->total_time_s > 0 && (o->time_limit_s <= 0 || share < o->time_limit_s))
        one->time_limit_s = share > least ? share : least;
}

int each_workload(const struct options *o, const char *command, each_step *step, void *ctx,
                  struct status *st)
{
    int parts = options_workloads(o), worst = EXIT_SUCCESS;
    double begun = clock_seconds();
    if (parts <= 1) {
        struct options one = *o;
        share_time(o, begun, 1, &one);
        return step(ctx, &one, st);
    }
    for (int i = 0; i < parts; i++) {
        struct options one = each_part(o, i);
        struct status failure = STATUS_INIT;
        share_time(o, begun, parts - i, &one);
        int code = step(ctx, &one, &failure);
        if (code < 0) {
            fprintf(stderr, "fuseplan %s: batch %d, seq-len %d: %s\n", command, one.batch,
                    one.seq_len, failure.message);
            code = exit_code_of(&failure);
        }
        if (code != EXIT_SUCCESS && code != EXIT_NO_RESULT && code != EXIT_REGRESSION)
            return code;
        worst = code > worst ? code : worst;
        malloc_trim(0); /* the models of many workloads leave the heap in pieces */
    }
    return worst;
}

static int run_part(void *ctx, const struct options *one, struct status *st)
{
    const struct command *c = ctx;
    if (options_workloads(one) > 1)
        output_part(one);
    return c->run(one, st);
}

int each_run(const struct options *o, const struct command *c, struct status *st)
{
    int parts = options_workloads(o);
    if (parts > 1 && check_workloads(o, st) != 0)
        return -1;
    if (c->whole != NULL && c->whole(o))
        return c->run(o, st);
    if (parts > 1)
        output_parts_begin(o->format);
    int code = each_workload(o, c->name, run_part, (void *)(uintptr_t)c, st);
    if (parts > 1)
        output_parts_end();
    sizes_end(o);
    return code;
}
