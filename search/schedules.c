/* Schedules in plans.
 *
 * A segment's fastest schedule alone may not be its fastest in a plan: there its weights come from
 * memory, and its launch begins beside the one in front of it.  So before the finals the fastest
 * plans try other schedules, one segment at a time, side by side with those that they run, and keep
 * those that make the plan faster.  The finals time these plans both ways.  What wins is stored
 * with its choices, and whoever runs the plan later runs these. */
#include "search/tuner_int.h"

/* A segment tries at most so many schedules, those that take at most so many times as long alone as
 * its fastest.  What a plan changes on a GPU is some microseconds of each launch, and a share that
 * the clock makes: a schedule that is further behind alone is none that wins in a plan. */
enum { SCHEDULES_MOST = 6, ROUNDS_MOST = 3 };
#define SLOWER_ALONE       1.3
#define SLOWER_ALONE_CUDA  1.05
#define SLOWER_ALONE_BY_MS 0.002

/* Each way of a plan has as many samples as passes through all layers would take so long, at most
 * so many.  A sample runs fewer layers.  A plan goes on with a way that takes at most this share of
 * its time. */
enum { SAMPLES_MOST = 50 };
#define SECONDS_OF_PASSES 0.02
#define FASTER_BELOW      0.999

/* A way that takes more than so many times what its plan took is given up, and a plan that takes as
 * many times what the fastest one takes goes on with the way that it begins with. */
#define FAR_SLOWER 1.03

/* ---- trying ---------------------------------------------------------------------------------- */

static int by_ms(const void *a, const void *b)
{
    const struct attempt *x = *(const struct attempt *const *)a,
                         *y = *(const struct attempt *const *)b;
    return x->ms != y->ms ? (x->ms > y->ms) - (x->ms < y->ms) : (x > y) - (x < y);
}

static double most_alone_ms(enum target_kind target, double fastest_ms)
{
    const double most = SLOWER_ALONE * fastest_ms;
    return target == TARGET_CUDA ? fmin(most, SLOWER_ALONE_CUDA * fastest_ms + SLOWER_ALONE_BY_MS)
                                 : most;
}

/* Writes a slot's schedules that are worth trying, the fastest alone first; returns how many. */
static int worth_trying(const struct segment_table *t, int slot,
                        struct attempt *out[SCHEDULES_MOST])
{
    const struct slot *s = &t->slots[slot];
    SCOPED struct attempt **all = mem_alloc((size_t)s->count + 1, sizeof(*all));
    int count = 0;
    for (int i = 0; i < s->count; i++) {
        struct attempt *a = &s->attempts[i];
        if (a->tried && !a->slows && s->best != NULL &&
            a->ms <= most_alone_ms(t->target, s->best->ms))
            all[count++] = a;
    }
    qsort(all, (size_t)count, sizeof(*all), by_ms);
    count = count < SCHEDULES_MOST ? count : SCHEDULES_MOST;
    memcpy(out, all, (size_t)count * sizeof(*all));
    return count;
}

struct trying {
    struct tuner *t;
    double each_s;           /* the seconds that a way took at most to be verified and timed */
    int count, kept, failed; /* of all plans: the times that one ran with another schedule of one
                                segment, how many of these it went on with, how many failed */
    /* Of the plan at hand. */
    struct candidate now; /* of no choices: it did not run yet */
    double ms;            /* that it took when it was timed last */
};

static bool in_time(const struct trying *y, int ways)
{
    return y->t->clock() + ways * y->each_s < stage2_end(y->t);
}

static struct sampling fit_sampling(const struct trying *y)
{
    struct sampling how = sampling_search;
    double samples = fmin(SECONDS_OF_PASSES * 1000 / y->ms, SAMPLES_MOST);
    how.min_samples = how.max_samples = (int)fmax(samples, SAMPLES_OF_AN_INTERVAL);
    how.beside_first = y->now.count > 0;
    how.censor_above_ms = how.beside_first ? FAR_SLOWER * y->ms : 0;
    return how;
}

/* The first trial is of the way that the plan ran before; `of` is what the others ran. */
static void note_tries(struct trying *y, const struct trial *trials, struct attempt *const *of,
                       int count, bool faster)
{
    y->count += count - 1;
    y->kept += faster;
    for (int i = 1; i < count; i++) {
        const enum trial_status status = trials[i].status;
        y->failed += status == TRIAL_FAILED;
        if (trials[0].status == TRIAL_OK) /* else it is not known what slowed both */
            of[i]->slows = (status == TRIAL_OK || status == TRIAL_CENSORED) &&
                           times_ratio(&trials[i], &trials[0]).low > 1;
    }
}

/* Whether a way is certainly faster than the present one.  That one may have been given up because
 * the machine became slower, which says nothing of it. */
static bool beats(const struct trial *way, const struct trial *present)
{
    return present->status == TRIAL_FAILED ||
           (present->status == TRIAL_OK && times_ratio(way, present).high < FASTER_BELOW);
}

/* Times ways of a plan side by side and goes on with the fastest.  If the first of them is the
 * present one, another one, by the schedule of `of`, must be certainly faster: else it stays. */
static int compare(struct trying *y, const struct candidate *ways, struct attempt *const *of,
                   int count, bool *faster, struct status *st)
{
    struct trial trials[1 + SCHEDULES_MOST];
    struct sampling how = fit_sampling(y);
    double start = y->t->clock();
    if (bench_compare(y->t->bench, ways, count, &how, trials, st) != 0)
        return -1;
    y->each_s = fmax(y->each_s, (y->t->clock() - start) / count);
    const struct trial *fastest = trial_fastest(trials, count, NULL), *first = &trials[0];
    bool begins = y->now.count == 0;
    *faster = fastest != NULL && fastest != first && (begins || beats(fastest, first));
    const struct trial *next = *faster ? fastest : first;
    if (!begins)
        note_tries(y, trials, of, count, *faster);
    if (next->status == TRIAL_OK) {
        y->now = ways[next - trials];
        y->ms = next->ms.median;
    } else {
        y->ms *= FAR_SLOWER; /* the machine became slower */
    }
    for (int i = 0; i < count; i++)
        trial_release(&trials[i]);
    return 0;
}

/* Tries the other schedules of one segment. */
static int try_segment(struct trying *y, int segment, int slot, bool *faster, struct status *st)
{
    struct attempt *worth[SCHEDULES_MOST], *of[1 + SCHEDULES_MOST] = {NULL};
    struct candidate ways[1 + SCHEDULES_MOST] = {y->now};
    int count = worth_trying(&y->t->segments, slot, worth), all = 1;
    for (int i = 0; i < count; i++) {
        if (choice_equal(&worth[i]->choice, &y->now.choices[segment]))
            continue;
        ways[all] = y->now;
        of[all] = worth[i];
        ways[all++].choices[segment] = worth[i]->choice;
    }
    return all > 1 && in_time(y, all) ? compare(y, ways, of, all, faster, st) : 0;
}

/* Gives a plan the schedules of another one, where both have a segment. */
static void take_schedules(struct candidate *to, const struct candidate *from)
{
    for (int i = 0; i < to->count; i++) {
        struct choice *c = &to->choices[i];
        for (int k = 0; k < from->count; k++) {
            const struct choice *other = &from->choices[k];
            if (slot_of(c->segment, c->impl->handwritten) ==
                slot_of(other->segment, other->impl->handwritten))
                *c = *other;
        }
    }
}

enum { WAYS_MOST = 4 };

static void add_way(struct candidate out[WAYS_MOST], int *count, const struct candidate *way)
{
    for (int i = 0; i < *count; i++)
        if (same_choices(&out[i], way))
            return;
    out[*count] = *way;
    out[(*count)++].packed = out[0].packed;
}

/* Writes the ways in which a plan may run: each segment by its fastest schedule alone; as an
 * earlier search fitted it; as it ran before any segment was timed; with the schedules of `beside`,
 * which may be null.  Returns how many; 0 if a segment fails. */
static int known_ways(const struct tuner *t, struct plan p, const struct candidate *beside,
                      struct candidate out[WAYS_MOST])
{
    const struct candidate *earlier = fitted_find(&t->fitted, p);
    struct candidate as_beside;
    int count = 1;
    if (plan_candidate(&t->segments, NULL, p, &out[0], STATUS_IGNORED) != 0)
        return 0;
    if (earlier != NULL)
        add_way(out, &count, earlier);
    if (t->first.ran && plan_equal(t->first.candidate.plan, p))
        add_way(out, &count, &t->first.candidate);
    if (beside != NULL) {
        as_beside = out[0];
        take_schedules(&as_beside, beside);
        add_way(out, &count, &as_beside);
    }
    return count;
}

/* Changes the schedules of one segment after another, until all were tried since the last change.
 */
static int change(struct trying *y, struct status *st)
{
    int slots[OP_COUNT], segments = plan_slots(y->now.plan, slots);
    for (int i = 0, since = 0; i < ROUNDS_MOST * segments && since < segments; i++, since++) {
        bool faster = false;
        if (try_segment(y, i % segments, slots[i % segments], &faster, st) != 0)
            return -1;
        if (faster)
            since = 0;
    }
    return 0;
}

/* beside: a plan to which schedules were fitted, or null.  *least_ms: of the plans so far. */
static int fit(struct trying *y, const struct observation *plan, const struct candidate *beside,
               double *least_ms, struct status *st)
{
    struct candidate ways[WAYS_MOST];
    bool faster;
    int count = known_ways(y->t, plan->plan, beside, ways);
    y->now = (struct candidate){.count = 0};
    y->ms = plan->outcome.ms;
    if (count > 0 && in_time(y, count) && compare(y, ways, NULL, count, &faster, st) != 0)
        return -1;
    if (y->now.count == 0)
        return 0;
    if (y->ms <= FAR_SLOWER * *least_ms && change(y, st) != 0)
        return -1;
    *least_ms = fmin(*least_ms, y->ms);
    fitted_keep(&y->t->fitted, &y->now);
    return 0;
}

int fit_schedules(struct tuner *t, const struct observation *plans, int count, struct status *st)
{
    int result = 0;
    double least_ms = INFINITY;
    struct trying y = {.t = t};
    bool no_finals = isfinite(t->end) && stage2_end(t) >= t->end; /* plans get all of the time */
    if (count == 0 || no_finals || machine_is_crowded(t))
        return 0;
    tuner_say(t, "trying other schedules in the fastest %d plan%s", count, count == 1 ? "" : "s");
    for (int i = 0; i < count && result == 0 && t->clock() < stage2_end(t); i++) {
        const struct candidate *first = i > 0 ? fitted_find(&t->fitted, plans[0].plan) : NULL;
        tuner_step(t, PHASE_FINALS, i, count, NULL);
        result = fit(&y, &plans[i], first, &least_ms, st);
    }
    if (y.count > 0 && result == 0)
        tuner_say(t, "other schedules ran %d time%s: %d made a plan faster, %d failed", y.count,
                  y.count == 1 ? "" : "s", y.kept, y.failed);
    return result;
}
