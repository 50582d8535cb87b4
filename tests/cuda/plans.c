/* Builds and verifies plans on a GPU end to end: values drawn from 0..65535, each segment by an
 * implementation drawn from those that serve it.
 *
 * Prints a line for each failure and one that sums up; exits 1 where anything failed. */
#include "request.h"

static const char usage[] = "usage: cuda_plans " REQUEST_USAGE "  -n N     how many values (300)\n"
                            "  -s N     seed that draws them (1)\n"
                            "  -v N     this value alone, each segment by its default choice\n"
                            "  -m       time each plan, too\n";

static int values = 300, only = -1;
static bool measures;
static struct rng rng = {.state = 1};

static void option(int letter, const char *value)
{
    if (letter == 'm')
        measures = true;
    else if (letter == 'v')
        only = read_number("-v", value);
    else if (letter == 'n')
        values = read_number("-n", value);
    else
        rng.state = (uint64_t)read_number("-s", value);
}

/* False if a segment has no choice in the target's precision. */
static bool draw_candidate(const struct build_target *t, struct plan p, struct candidate *out)
{
    struct segment segments[OP_COUNT];
    *out = (struct candidate){
        .plan = p, .precision = t->precision, .count = plan_segments(p, segments)};
    for (int i = 0; i < out->count; i++) {
        enum { MAX = 8 };
        struct choice choices[MAX];
        int n = only >= 0 ? choices_for(t, segments[i], p.handwritten, 1, choices)
                          : list_segment(t, segments[i], p.handwritten, MAX, choices);
        if (n == 0)
            return false;
        if (only >= 0)
            n = 1; /* of as many as there are the first one was asked for */
        out->choices[i] = choices[rng_below(&rng, (uint32_t)n)];
    }
    return true;
}

/* Draws values until one has choices for all of its segments. */
static void draw(const struct build_target *t, struct candidate *out)
{
    enum { TRIES = 100000 };
    struct status st = STATUS_INIT;
    for (int i = 0; i < (only < 0 ? TRIES : 1); i++)
        if (draw_candidate(
                t, plan_from_value(only < 0 ? rng_below(&rng, VALUE_MAX + 1) : (unsigned)only),
                out))
            return;
    status_set(&st, STATUS_UNFIT, "no plan found whose segments all have this precision");
    give_up(&st);
}

/* Compiles what all of them need at once. */
static void build(struct bench *b, const struct candidate *candidates, int count)
{
    struct status st = STATUS_INIT;
    SCOPED struct choice *choices = mem_alloc((size_t)count * OP_COUNT, sizeof(*choices));
    int n = 0;
    for (int i = 0; i < count; i++)
        for (int k = 0; k < candidates[i].count; k++)
            choices[n++] = candidates[i].choices[k];
    if (bench_build(b, choices, n, NULL, &st) != 0)
        give_up(&st);
}

/* Whether it is right; its error in *worst where that is larger.  Prints microseconds of a layer
 * and their interval if it is timed. */
static bool verify(struct bench *b, const char *name, int layers, const struct candidate *c,
                   double *worst)
{
    const struct sampling verify_only = {.all_layers = true, .all_rows = true};
    const struct sampling *how = measures ? &sampling_search : &verify_only;
    struct status st = STATUS_INIT;
    SCOPED_BY(trial_release) struct trial t;
    if (bench_plan(b, c, how, &t, &st) != 0)
        give_up(&st);
    bool right = t.status == TRIAL_OK;
    if (!right)
        printf("FAILED: %s: plan %u: %s\n", name, plan_value(c->plan), t.reason.message);
    else if (t.error > *worst)
        *worst = t.error;
    if (right && measures)
        printf("time,%s,%u,%.2f,%.2f,%.2f\n", name, plan_value(c->plan), t.ms.median * 1e3 / layers,
               t.ms.low * 1e3 / layers, t.ms.high * 1e3 / layers);
    return right;
}

int main(int argc, char **argv)
{
    static bool seen[VALUE_MAX + 1];
    struct status st = STATUS_INIT;
    SCOPED_BY(request_release) struct request r;
    SCOPED_BY(bench_close_at) struct bench *b;
    int distinct = 0, failed = 0;
    double worst = 0;
    request_read(&r, argc, argv, usage, "n:s:v:m", option);
    values = only < 0 ? values : 1;
    if (bench_open(&r.options, &r.workload, &b, &st) != 0)
        give_up(&st);
    SCOPED struct candidate *candidates = mem_alloc((size_t)values, sizeof(*candidates));
    const struct build_target target = request_target(&r, b);
    for (int i = 0; i < values; i++) {
        draw(&target, &candidates[i]);
        distinct += !seen[plan_value(candidates[i].plan)];
        seen[plan_value(candidates[i].plan)] = true;
    }
    double start = clock_seconds(), build_s;
    build(b, candidates, values);
    build_s = seconds_since(start);
    start = clock_seconds();
    for (int i = 0; i < values; i++)
        failed += !verify(b, r.name, r.workload.layers, &candidates[i], &worst);
    printf("%s, %d layers: %d values, %d distinct plans, %d failed, largest error %.2g; built in "
           "%.1f s, verified in %.1f s\n",
           r.name, r.workload.layers, values, distinct, failed, worst, build_s,
           seconds_since(start));
    return failed > 0 ? EXIT_FAILURE : EXIT_SUCCESS;
}
