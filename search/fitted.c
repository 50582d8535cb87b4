/* Schedules fitted to a plan.
 *
 * A segment's fastest schedule alone may not be its fastest in a plan: there its weights come from
 * memory, and its launch begins beside the one in front of it.  So before the finals the fastest
 * plans try other schedules, one segment at a time, and keep those that make the plan faster.  The
 * finals time these plans both ways.  What wins is stored with its choices, and whoever runs the
 * plan later runs these. */
#include "search/search_int.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* A segment tries at most so many schedules, those that take at most so many times as long alone as
 * its fastest. */
enum { SCHEDULES_MOST = 6, ROUNDS_MOST = 3 };
#define SLOWER_ALONE 1.3

/* ---- what is known --------------------------------------------------------------------------- */

const struct candidate *fitted_find(const struct fitted_plans *p, struct plan plan)
{
    for (int i = 0; i < p->count; i++)
        if (plan_equal(p->items[i].plan, plan))
            return &p->items[i];
    return NULL;
}

static void keep(struct fitted_plans *p, const struct candidate *c)
{
    int i = 0;
    while (i < p->count && !plan_equal(p->items[i].plan, c->plan))
        i++;
    if (i == p->count)
        p->items = mem_resize(p->items, (size_t)++p->count, sizeof(*p->items));
    p->items[i] = *c;
}

void fitted_release(struct fitted_plans *p)
{
    free(p->items);
    *p = (struct fitted_plans){.count = 0};
}

struct reading {
    enum target_kind target;
    struct fitted_plans *out;
    char *comparison; /* the newest so far, owned */
};

/* Whether a row has a choice for each segment of its plan, and this version knows them. */
static bool choices_of(const struct db_trial *row, enum target_kind target, struct candidate *out)
{
    int slots[OP_COUNT];
    struct status other_version = STATUS_INIT;
    *out = (struct candidate){.plan = plan_from_value((unsigned)row->value),
                              .packed = row->packed != 0,
                              .count = row->choice_count};
    if (plan_slots(out->plan, slots) != out->count)
        return false;
    for (int i = 0; i < out->count; i++) {
        const struct db_choice *from = &row->choices[i];
        struct choice *c = &out->choices[i];
        if (choice_parse(target, from->segment, from->impl, from->schedule, c, &other_version) !=
                0 ||
            slot_of(c->segment, c->impl->handwritten) != slots[i])
            return false;
    }
    return true;
}

/* The rows of a comparison stand together, the newest last. */
static int read_final(void *ctx, const struct db_trial *row)
{
    struct reading *r = ctx;
    struct candidate c;
    if (strcmp(row->strategy, "bench") == 0 || row->status != TRIAL_OK)
        return 0;
    if (r->comparison == NULL || strcmp(r->comparison, row->comparison) != 0) {
        free(r->comparison);
        r->comparison = mem_strdup(row->comparison);
        r->out->count = 0;
    }
    if (choices_of(row, r->target, &c))
        keep(r->out, &c);
    return 0;
}

int fitted_read(struct db *db, int64_t study, enum target_kind target, struct fitted_plans *out,
                struct status *st)
{
    struct reading r = {.target = target, .out = out};
    *out = (struct fitted_plans){.count = 0};
    int result = db_trials(db, study, DB_TRIAL_FINAL, read_final, &r, st);
    free(r.comparison);
    return result;
}

/* ---- trying ---------------------------------------------------------------------------------- */

static int by_ms(const void *a, const void *b)
{
    const struct attempt *x = *(const struct attempt *const *)a,
                         *y = *(const struct attempt *const *)b;
    return x->ms != y->ms ? (x->ms > y->ms) - (x->ms < y->ms) : (x > y) - (x < y);
}

/* Writes a slot's schedules that are worth trying, the fastest alone first; returns how many. */
static int worth_trying(const struct slot *slot, const struct attempt *out[SCHEDULES_MOST])
{
    const struct attempt **all = mem_alloc((size_t)slot->count + 1, sizeof(*all));
    int count = 0;
    for (int i = 0; i < slot->count; i++) {
        const struct attempt *a = &slot->attempts[i];
        if (a->tried && slot->best != NULL && a->ms <= SLOWER_ALONE * slot->best->ms)
            all[count++] = a;
    }
    qsort(all, (size_t)count, sizeof(*all), by_ms);
    count = count < SCHEDULES_MOST ? count : SCHEDULES_MOST;
    memcpy(out, all, (size_t)count * sizeof(*all));
    free(all);
    return count;
}

struct trying {
    struct tuner *t;
    struct candidate now;
    struct interval ms; /* that it takes */
    double try_s;       /* the seconds of the slowest try */
};

static bool in_time(const struct trying *y)
{
    return y->t->clock() + y->try_s < stage2_end(y->t);
}

/* Times a candidate, and goes on with it if it is faster beyond the noise. */
static int try(struct trying *y, const struct candidate *c, bool *faster, struct status *st)
{
    struct trial trial;
    struct sampling how = sampling_search;
    double start = y->t->clock();
    how.censor_above_ms = isinf(y->ms.low) ? 0 : y->ms.low;
    if (bench_plan(y->t->bench, c, &how, &trial, st) != 0)
        return -1;
    y->try_s = fmax(y->try_s, y->t->clock() - start);
    *faster = trial.status == TRIAL_OK && !(trial.ms.high >= y->ms.low);
    if (*faster) {
        y->now = *c;
        y->ms = trial.ms;
    }
    trial_release(&trial);
    return 0;
}

/* Tries the other schedules of one segment. */
static int try_segment(struct trying *y, int segment, int slot, bool *faster, struct status *st)
{
    const struct attempt *worth[SCHEDULES_MOST];
    int count = worth_trying(&y->t->segments.slots[slot], worth);
    for (int i = 0; i < count && in_time(y); i++) {
        struct candidate other = y->now;
        bool kept;
        other.choices[segment] = worth[i]->choice;
        if (choice_equal(&other.choices[segment], &y->now.choices[segment]))
            continue;
        if (try(y, &other, &kept, st) != 0)
            return -1;
        *faster |= kept;
    }
    return 0;
}

/* Changes the schedules of one segment after another, until none makes the plan faster. */
static int fit(struct tuner *t, struct plan p, struct status *st)
{
    struct trying y = {.t = t, .ms = {INFINITY, INFINITY, INFINITY}};
    const struct candidate *before = fitted_find(&t->fitted, p);
    struct candidate usual;
    struct status fails = STATUS_INIT;
    int slots[OP_COUNT], count = plan_slots(p, slots);
    bool faster, again;
    if (tuner_candidate(t, p, &usual, &fails) != 0)
        return 0;
    if (try(&y, &usual, &faster, st) != 0 ||
        (before != NULL && !same_choices(before, &usual) && try(&y, before, &again, st) != 0))
        return -1;
    for (int round = 0; faster && round < ROUNDS_MOST; round++) {
        faster = false;
        for (int i = 0; i < count; i++)
            if (try_segment(&y, i, slots[i], &faster, st) != 0)
                return -1;
    }
    if (y.now.count > 0)
        keep(&t->fitted, &y.now);
    return 0;
}

int fit_schedules(struct tuner *t, const struct observation *plans, int count, struct status *st)
{
    int result = 0;
    if (count > 0)
        tuner_say(t, "trying other schedules in the fastest %d plan%s", count,
                  count == 1 ? "" : "s");
    for (int i = 0; i < count && result == 0 && t->clock() < stage2_end(t); i++) {
        tuner_step(t, PHASE_FINALS, i, count, NULL);
        result = fit(t, plans[i].plan, st);
    }
    return result;
}
