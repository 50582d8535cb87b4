#include "bench/worker/worker_int.h"

/* ---- from cycles to nanoseconds ----------------------------------------------------------------
 *
 * Each multiprocessor counts cycles of its own.  Both clocks are read where a thread block begins.
 * A cycle is as long in all multiprocessors, and the GPU's clock is coarse: one length of a cycle
 * is fitted to all of these pairs, and to those of a multiprocessor when it began to count. */

struct clock { /* of a multiprocessor; means over its thread blocks */
    int count;
    unsigned long long origin; /* cycles are counted from here, where doubles are exact */
    double cycles, ns;
};

struct clocks {
    struct clock *of; /* (count) by multiprocessor, owned */
    size_t count;
    unsigned long long origin; /* of nanoseconds */
    double cycle_ns;
};

static double since(unsigned long long origin, unsigned long long time)
{
    return (double)(long long)(time - origin);
}

static struct clock *clock_of(struct clocks *c, const struct fp_stamps *b)
{
    if (b->multiprocessor >= c->count) {
        size_t count = (size_t)b->multiprocessor + 1;
        c->of = mem_resize(c->of, count, sizeof(*c->of));
        for (; c->count < count; c->count++)
            c->of[c->count] = (struct clock){0};
    }
    return &c->of[b->multiprocessor];
}

static void add_pair(struct clocks *c, const struct fp_stamps *b)
{
    struct clock *own = clock_of(c, b);
    if (own->count == 0)
        own->origin = b->at[FP_STAMP_BEGUN];
    if (c->origin == 0)
        c->origin = b->ns;
    const double n = ++own->count;
    own->cycles += (since(own->origin, b->at[FP_STAMP_BEGUN]) - own->cycles) / n;
    own->ns += (since(c->origin, b->ns) - own->ns) / n;
}

/* Least squares. */
static void clocks_fit(struct clocks *c, const struct launch_stamps *launches, int count)
{
    double xy = 0, xx = 0;
    *c = (struct clocks){.cycle_ns = 1};
    for (int i = 0; i < count; i++)
        for (int b = 0; b < launches[i].blocks; b++)
            add_pair(c, &launches[i].of_block[b]);
    for (int i = 0; i < count; i++)
        for (int b = 0; b < launches[i].blocks; b++) {
            const struct fp_stamps *block = &launches[i].of_block[b];
            const struct clock *own = clock_of(c, block);
            double x = since(own->origin, block->at[FP_STAMP_BEGUN]) - own->cycles;
            xy += x * (since(c->origin, block->ns) - own->ns);
            xx += x * x;
        }
    if (xx > 0)
        c->cycle_ns = xy / xx;
}

/* ---- from steps to phases -------------------------------------------------------------------- */

/* Nanoseconds at which a thread block came to a step; NaN if it did not. */
static double came_to(struct clocks *c, const struct fp_stamps *b, enum fp_stamp step)
{
    unsigned long long time = b->at[step];
    if (time == 0)
        return NAN;
    if (step == FP_STAMP_WAITED || step == FP_STAMP_FIRST)
        time = ~time;
    const struct clock *own = clock_of(c, b);
    return own->ns + (since(own->origin, time) - own->cycles) * c->cycle_ns;
}

/* The times of a launch's thread blocks at a step, at a share of their order; NaN where none came
 * to it.  Those that have no tile skip steps, and count at none. */
static double reached(struct clocks *c, const struct launch_stamps *l, enum fp_stamp step,
                      enum fp_stamp working, double share)
{
    SCOPED double *times = mem_alloc((size_t)l->blocks, sizeof(*times));
    size_t n = 0;
    for (int b = 0; b < l->blocks; b++)
        if (l->of_block[b].at[step] != 0 && l->of_block[b].at[working] != 0)
            times[n++] = came_to(c, &l->of_block[b], step);
    return n > 0 ? stats_quantile(times, n, share) : NAN;
}

/* front: when the kernel in front ended; NaN: none did.  Returns when this one did. */
static double divide(struct clocks *c, const struct launch_stamps *l, double front,
                     double us[STAMP_PHASES])
{
    const double sums = reached(c, l, FP_STAMP_SUMS, FP_STAMP_SUMS, 0.5);
    const enum fp_stamp working = isnan(sums) ? FP_STAMP_END : FP_STAMP_SUMS;
    const double waited = reached(c, l, FP_STAMP_WAITED, working, 0.5),
                 first = reached(c, l, FP_STAMP_FIRST, working, 0.5),
                 end = reached(c, l, FP_STAMP_END, working, 0.5),
                 last = reached(c, l, FP_STAMP_END, FP_STAMP_END, 1);
    if (isnan(front))
        front = reached(c, l, FP_STAMP_BEGUN, FP_STAMP_BEGUN, 0);
    us[STAMP_HAND_OVER] = (waited - front) / 1e3;
    us[STAMP_LOADS] = (first - waited) / 1e3;
    us[STAMP_PRODUCTS] = (sums - first) / 1e3;
    us[STAMP_EPILOGUE] = (end - sums) / 1e3;
    us[STAMP_UNDIVIDED] = isnan(sums) ? (end - waited) / 1e3 : NAN;
    us[STAMP_LAST_BLOCK] = (last - end) / 1e3;
    return last;
}

void stamps_times(const struct launch_stamps *launches, int count, double (*us)[STAMP_PHASES])
{
    struct clocks c;
    double front = NAN;
    clocks_fit(&c, launches, count);
    for (int i = 0; i < count; i++) {
        for (int phase = 0; phase < STAMP_PHASES; phase++)
            us[i][phase] = NAN;
        if (launches[i].blocks > 0)
            front = divide(&c, &launches[i], front, us[i]);
    }
    free(c.of);
}

/* ---- the request ----------------------------------------------------------------------------- */

#define PASSES ((size_t)30)

/* The medians of a part over all passes and all layers but the first third, in which caches and
 * clocks are not yet as later. */
static json_t *part_json(const struct program *p, int part, double (*us)[STAMP_PHASES])
{
    const int skipped = p->layers / 3;
    const size_t parts = (size_t)p->part_count, launches = (size_t)p->layers * parts;
    SCOPED double *all = mem_alloc(PASSES * (size_t)p->layers, sizeof(*all));
    json_t *out = json_array();
    for (int phase = 0; phase < STAMP_PHASES; phase++) {
        size_t n = 0;
        for (size_t pass = 0; pass < PASSES; pass++)
            for (int layer = skipped; layer < p->layers; layer++) {
                double one = us[pass * launches + (size_t)layer * parts + (size_t)part][phase];
                if (!isnan(one))
                    all[n++] = one;
            }
        json_array_append_new(out, n > 0 ? json_real(stats_quantile(all, n, 0.5)) : json_null());
    }
    return out;
}

static int take(struct worker *k, const struct program *p, json_t *reply, struct status *st)
{
    const int count = p->layers * p->part_count;
    SCOPED struct launch_stamps *launches = mem_alloc((size_t)count, sizeof(*launches));
    double(*us)[STAMP_PHASES] = mem_alloc(PASSES * (size_t)count, sizeof(*us));
    int result = 0;
    for (size_t pass = 0; pass < PASSES && result == 0; pass++) {
        worker_doing(k, "reading stamps");
        result = k->ops->stamps(p->replay, launches, st);
        if (result == 0)
            stamps_times(launches, count, us + pass * (size_t)count);
    }
    json_t *parts = json_array();
    for (int i = 0; i < p->part_count && result == 0; i++)
        json_array_append_new(parts, part_json(p, i, us));
    json_object_set_new(reply, "parts", parts);
    free(us);
    return result;
}

int worker_stamps(struct worker *k, const json_t *request, json_t *reply, struct status *st)
{
    struct program program;
    k->candidate = 0;
    int result = program_load(k, json_object_get(request, "candidate"), k->w.layers, &program, st);
    if (result == 0)
        result = verify_program(k, &program, 1, st);
    if (result == 0)
        result = take(k, &program, reply, st);
    program_release(k, &program);
    return result;
}
