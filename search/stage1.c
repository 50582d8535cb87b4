/* Stage 1: which choice runs each segment alone fastest.
 *
 * It times segments with the defaults of their implementations, best first: best_first.c says which
 * ones.  Then it climbs: it changes one knob of a segment's best schedule at a time, as long as
 * that helps.  It climbs only the segments of the plan whose additive time would be smallest if the
 * segments not climbed yet gained as much as the others have.  It ends when the segments of that
 * plan are all timed and climbed, however small the hopes of the others are taken to be. */
#include "search/best_first_int.h"
#include "search/tuner_int.h"

#include <limits.h>

/* With a deadline, at most so many choices for each core are built at a time: few, so that what was
 * built is timed before the deadline, but enough that few cores wait for the last compiler. */
enum { CHUNK_PER_CORE = 4 };

/* Jobs that are reported as one. */
struct job_list {
    struct job *jobs; /* (count + ahead) owned */
    int count;
    int ahead; /* jobs behind these that are built where a core would be idle */
    enum tune_phase phase;
    deadline *until;
};

/* ---- building and timing --------------------------------------------------------------------- */

static int time_job(struct tuner *t, struct job j, const struct status *built, struct status *st)
{
    const struct slot *slot = &t->segments.slots[j.slot];
    struct candidate c = {
        .packed = t->segments.packed, .count = 1, .choices = {slot->attempts[j.attempt].choice}};
    SCOPED_BY(trial_release) struct trial trial = {.status = TRIAL_FAILED, .reason = *built};
    trial.build_s = bench_build_seconds(t->bench, &c.choices[0]);
    struct sampling how = sampling_search;
    if (slot->best != NULL)
        how.censor_above_ms = HOPELESS_RATIO * slot->best->ms;
    if ((built->code == STATUS_OK &&
         bench_segment(t->bench, &c.choices[0], c.packed, &how, &trial, st) != 0) ||
        trial_store(t->db, t->study, DB_TRIAL_SEGMENT, &c, &trial, t->search_id, st) != 0)
        return -1;
    segment_table_note(&t->segments, j.slot, j.attempt, trial.status, trial.ms.median,
                       &trial.reason);
    return 0;
}

/* How many choices to have built while so many of `behind` are timed: more where cores would be
 * idle, and all where compilers run beside the timing. */
static int to_build(const struct tuner *t, int count, int behind)
{
    int cores = cpu_threads();
    if (bench_builds_beside(t->bench))
        return behind;
    return count < cores ? (cores < behind ? cores : behind) : count;
}

/* What run_chunk() has left to do: the first `count` jobs are to be timed, and the others built. */
struct chunk {
    const struct job_list *list;
    int done; /* of the list */
    struct job *jobs;
    struct choice *choices; /* of the jobs */
    struct built *built;    /* likewise */
    int count, builds;
};

/* Drops job i, which was timed. */
static void drop(struct chunk *c, int i)
{
    size_t behind = (size_t)(--c->builds - i);
    memmove(c->jobs + i, c->jobs + i + 1, behind * sizeof(*c->jobs));
    memmove(c->choices + i, c->choices + i + 1, behind * sizeof(*c->choices));
    memmove(c->built + i, c->built + i + 1, behind * sizeof(*c->built));
    c->count--;
}

/* Times those that are built, as long as there is time. */
static int time_built(struct tuner *t, struct chunk *c, struct status *st)
{
    for (int i = 0; i < c->count && t->clock() + t->slowest.time_s < c->list->until(t);) {
        if (!c->built[i].done) {
            i++;
            continue;
        }
        double begin = t->clock();
        if (time_job(t, c->jobs[i], &c->built[i].status, st) != 0)
            return -1;
        t->slowest.time_s = fmax(t->slowest.time_s, t->clock() - begin);
        drop(c, i);
        tuner_step(t, c->list->phase, ++c->done, c->list->count, NULL);
    }
    return 0;
}

/* Builds and times so many jobs; builds more of those behind them than it times. */
static int run_chunk(struct tuner *t, const struct job_list *list, int from, int count,
                     struct status *st)
{
    struct chunk c = {.list = list,
                      .done = from,
                      .count = count,
                      .builds = to_build(t, count, list->count + list->ahead - from)};
    int result = 0;
    c.jobs = mem_alloc((size_t)c.builds, sizeof(*c.jobs));
    c.choices = mem_alloc((size_t)c.builds, sizeof(*c.choices));
    c.built = mem_alloc((size_t)c.builds, sizeof(*c.built));
    for (int i = 0; i < c.builds; i++) {
        c.jobs[i] = list->jobs[from + i];
        c.choices[i] = t->segments.slots[c.jobs[i].slot].attempts[c.jobs[i].attempt].choice;
    }
    tuner_step(t, list->phase, from, list->count, NULL);
    for (int before = -1; c.count > 0 && before != c.count && result == 0;) {
        double start = t->clock();
        int ready = 0;
        before = c.count;
        result = bench_build_some(t->bench, c.choices, c.count, c.builds - c.count,
                                  list->until(t) - start, c.built, st);
        for (int i = 0; i < c.builds; i++)
            ready += c.built[i].done;
        t->slowest.build_s = fmax(t->slowest.build_s, (t->clock() - start) / fmax(ready, 1));
        if (result == 0)
            result = time_built(t, &c, st);
    }
    free(c.jobs);
    free(c.choices);
    free(c.built);
    return result;
}

/* How many choices to build and time next, of so many: as many as fit before the deadline, and
 * first one for each core, which shows how long that takes. */
static int chunk_in_time(const struct tuner *t, int open, deadline *until)
{
    double each_s = t->slowest.build_s + t->slowest.time_s, left_s = until(t) - t->clock();
    int cores = cpu_threads();
    int most = t->slowest.time_s > 0 ? CHUNK_PER_CORE * cores : cores;
    if (isinf(left_s))
        return open;
    if (left_s <= 0)
        return 0;
    if (open < most)
        most = open;
    return left_s < most * each_s ? (int)(left_s / each_s) : most;
}

bool stage1_goes_on(const struct tuner *t)
{
    return chunk_in_time(t, 1, stage1_end) > 0;
}

bool choices_may_change(const struct tuner *t)
{
    return is_exhaustive(t) && !stage1_goes_on(t);
}

static int run_jobs(struct tuner *t, const struct job_list *list, struct status *st)
{
    for (int at = 0, size; at < list->count; at += size) {
        size = chunk_in_time(t, list->count - at, list->until);
        if (size == 0)
            return 0;
        if (run_chunk(t, list, at, size, st) != 0)
            return -1;
    }
    return 0;
}

/* ---- what to try next ------------------------------------------------------------------------ */

/* Writes the attempts of a slot that are worth trying, unless out is null; returns how many. */
static int jobs_of(const struct segment_table *t, int slot, bool climb, struct job *out)
{
    const struct slot *s = &t->slots[slot];
    int n = 0;
    for (int i = 0; i < s->count; i++)
        if (attempt_is_due(s, &s->attempts[i], climb)) {
            if (out != NULL)
                out[n] = (struct job){slot, i};
            n++;
        }
    return n;
}

static bool climbed(const struct segment_table *t, int slot)
{
    return jobs_of(t, slot, true, NULL) == 0;
}

static bool has_default(const struct tuner *t, const struct job_list *list)
{
    const struct slot *slots = t->segments.slots;
    for (int i = 0; i < list->count; i++)
        if (slots[list->jobs[i].slot].attempts[list->jobs[i].attempt].usual)
            return true;
    return false;
}

static void learn(const struct tuner *t, struct best_first *b);

/* Where compilers run while the device works, they go on with what is likely to be timed next. */
static void add_likely(const struct tuner *t, struct job_list *list)
{
    struct best_first b;
    if (!bench_builds_beside(t->bench))
        return;
    best_first_init(&b, &t->segments, t->space, t->space_count, t->o->search.seed);
    learn(t, &b);
    list->ahead =
        add_likely_jobs(&b, &t->segments, &t->o->baselines, list->jobs, list->count + list->ahead) -
        list->count;
}

/* As time_slots().  The defaults of `ahead` slots behind these are built where cores are idle. */
static int time_and_build(struct tuner *t, const int *slots, int count, int ahead, bool climb,
                          deadline *until, struct status *st)
{
    SCOPED struct job *jobs =
        mem_alloc((size_t)segment_table_size(&t->segments) + 1, sizeof(*jobs));
    struct job_list list = {.jobs = jobs, .until = until};
    do {
        list.count = list.ahead = 0;
        for (int i = 0; i < count; i++)
            list.count += jobs_of(&t->segments, slots[i], climb, list.jobs + list.count);
        for (int i = count; i < count + ahead; i++)
            list.ahead +=
                jobs_of(&t->segments, slots[i], false, list.jobs + list.count + list.ahead);
        add_likely(t, &list);
        list.phase = has_default(t, &list) ? PHASE_SEGMENTS : PHASE_SCHEDULES;
        if (run_jobs(t, &list, st) != 0)
            return -1;
    } while (list.count > 0 && chunk_in_time(t, 1, until) > 0);
    return 0;
}

int time_slots(struct tuner *t, const int *slots, int count, bool climb, deadline *until,
               struct status *st)
{
    return time_and_build(t, slots, count, 0, climb, until, st);
}

/* ---- stage 1 --------------------------------------------------------------------------------- */

/* The time of a segment's best choice over its default's: the mean over the climbed segments. */
static double usual_gain(const struct segment_table *t)
{
    double sum = 0;
    int count = 0;
    for (int i = 0; i < SLOT_COUNT; i++) {
        const struct slot *s = &t->slots[i];
        if (s->best == NULL || s->count < 2 || isnan(s->attempts[0].ms) || !climbed(t, i))
            continue;
        sum += s->best->ms / s->attempts[0].ms;
        count++;
    }
    return count > 0 ? sum / count : 1;
}

/* What is known, as if each segment not climbed yet had the usual gain. */
static void learn(const struct tuner *t, struct best_first *b)
{
    const struct segment_table *table = &t->segments;
    double gain = usual_gain(table);
    for (int i = 0; i < SLOT_COUNT; i++) {
        b->failed[i] = slot_failed(&table->slots[i]);
        b->parts.ms[i] = part_ms(table, i);
        b->known.ms[i] = table->times.ms[i] * (climbed(table, i) ? 1 : gain);
    }
}

int stage1_build_ahead(struct tuner *t, const struct candidate *first, struct status *st)
{
    size_t most = OP_COUNT + (size_t)segment_table_size(&t->segments);
    SCOPED struct job *jobs = mem_alloc(most, sizeof(*jobs));
    struct job_list list = {.jobs = jobs};
    SCOPED struct choice *choices = mem_alloc(most, sizeof(*choices));
    SCOPED struct built *built = mem_alloc(most, sizeof(*built));
    add_likely(t, &list);
    memcpy(choices, first->choices, (size_t)first->count * sizeof(*choices));
    for (int i = 0; i < list.ahead; i++)
        choices[first->count + i] =
            t->segments.slots[list.jobs[i].slot].attempts[list.jobs[i].attempt].choice;
    return list.ahead == 0 ? 0
                           : bench_build_some(t->bench, choices, first->count, list.ahead,
                                              stage1_end(t) - t->clock(), built, st);
}

/* Operators alone first, as then every plan can be hoped for, and the other slots that do not
 * wait.  Each time more is known of the others. */
static int time_first_slots(struct tuner *t, struct best_first *b, struct status *st)
{
    int slots[SLOT_COUNT], sure, count = slots_timed_first(b, &sure, slots), alone = 0;
    while (alone < sure && slot_segment(slots[alone]).first == slot_segment(slots[alone]).last)
        alone++;
    if (time_and_build(t, slots, alone, count - alone, false, stage1_end, st) != 0)
        return -1;
    for (int left = INT_MAX;; left = count) {
        learn(t, b);
        count = slots_timed_first(b, &sure, slots);
        if (count == 0 || count >= left || !stage1_goes_on(t))
            return 0;
        if (time_slots(t, slots, sure > 0 ? sure : count, false, stage1_end, st) != 0)
            return -1;
    }
}

/* Every slot of the space's plans, as all will be measured.  Short segments first: more plans
 * consist of them, should the time run out. */
static int time_all(struct tuner *t, struct status *st)
{
    int slots[SLOT_COUNT], count = 0, of_plan[OP_COUNT];
    bool wanted[SLOT_COUNT] = {false};
    for (int p = 0; p < t->space_count; p++)
        for (int n = plan_slots(t->space[p], of_plan); n > 0; n--)
            wanted[of_plan[n - 1]] = true;
    for (int length = 1; length <= OP_COUNT; length++)
        for (int i = 0; i < SLOT_COUNT; i++)
            if (wanted[i] && slot_segment(i).last - slot_segment(i).first + 1 == length)
                slots[count++] = i;
    return time_slots(t, slots, count, false, stage1_end, st);
}

/* Times and climbs the plan of the least hoped sum until it is the same one. */
static int follow_hope(struct tuner *t, struct best_first *b, double share, struct status *st)
{
    int cores = cpu_threads(), result = 0;
    while (result == 0 && stage1_goes_on(t) && !machine_is_crowded(t)) {
        int slots[SLOT_COUNT], first, plan;
        learn(t, b);
        double least = least_share(b, share);
        int count = slots_wanted(b, least, cores, &first, slots);
        if (count > 0) {
            result = time_and_build(t, slots, first, count - first, false, stage1_end, st);
            continue;
        }
        if ((plan = plan_wanted(b, least)) < 0)
            break;
        count = plan_slots(t->space[plan], slots);
        bool done = true;
        for (int i = 0; i < count; i++)
            done &= climbed(&t->segments, slots[i]);
        if (done)
            break;
        result = time_slots(t, slots, count, true, stage1_end, st);
    }
    return result;
}

/* Times some slots that are not wanted.  One that beats its hope makes others wanted. */
static int audit(struct tuner *t, struct best_first *b, double share, struct status *st)
{
    int slots[AUDITED];
    learn(t, b);
    if (time_slots(t, slots, slots_audited(b, slots), false, stage1_end, st) != 0)
        return -1;
    return follow_hope(t, b, share, st);
}

int stage1(struct tuner *t, struct status *st)
{
    static const double shares[] = {1, 0.95, 0.9};
    struct best_first b;
    int before = segment_table_tried(&t->segments);
    best_first_init(&b, &t->segments, t->space, t->space_count, t->o->search.seed);
    learn(t, &b);
    if ((is_exhaustive(t) ? time_all(t, st) : time_first_slots(t, &b, st)) != 0)
        return -1;
    for (size_t i = 0; i < (t->taught ? 1 : ARRAY_LEN(shares)); i++)
        if (follow_hope(t, &b, shares[i], st) != 0)
            return -1;
    bool audited = t->taught || model_knows(&b) || /* by near workloads, or by whole spaces */
                   (t->past.searched &&            /* by the search before this one */
                    segment_table_tried(&t->segments) == before);
    if (!audited && !machine_is_crowded(t) && audit(t, &b, shares[ARRAY_LEN(shares) - 1], st) != 0)
        return -1;
    return bench_build_some(t->bench, NULL, 0, 0, 0, NULL, st); /* plans need no more of them */
}
