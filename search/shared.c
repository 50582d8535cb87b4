/* Segment times that studies of other workloads share with this one.
 *
 * A segment's time depends on no more than its operators read.  Token-wise operators depend on the
 * number of rows, those that split and merge heads on batch and sequence length too, and those that
 * touch scores on the mask.  So a second mask needs few segments of its own. */
#include "search/tuner_int.h"

/* So many are timed again before any is taken.  Times of different hours that differ by no more
 * than this share are the same. */
enum { TIMED_AGAIN = 2 };
#define SAME 0.02

/* A time that differs is taken anew, so many times in all and after a pause: the plan that ran
 * before may have heated a GPU, which lowers its clock for some tenths of a second. */
enum { TRIES = 3 };
#define PAUSE_S 0.1

/* ---- on what a time depends ------------------------------------------------------------------ */

/* On what the time of a segment depends at most, beside the sizes of a layer. */
enum dependence { ON_TOKENS, ON_LENGTHS, ON_MASK };

static enum dependence of_tensor(const struct chain *c, int tensor)
{
    switch (tensor_layout(c, tensor)) {
    case LAYOUT_TOKENS:
        return ON_TOKENS;
    case LAYOUT_SCORES:
        return ON_MASK;
    default:
        return ON_LENGTHS;
    }
}

static enum dependence segment_dependence(const struct chain *c, struct segment s)
{
    enum dependence most = ON_TOKENS;
    for (int op = s.first; op <= s.last; op++)
        for (int tensor = 0; tensor < TENSOR_COUNT; tensor++)
            if (tensor == TENSOR_OF(op) || (op_tensors(&c->ops[op]) >> tensor & 1) != 0)
                most = of_tensor(c, tensor) > most ? of_tensor(c, tensor) : most;
    return most;
}

static bool same_lengths(const struct workload *a, const struct workload *b)
{
    if (a->batch != b->batch || a->seq_len != b->seq_len ||
        (a->lengths == NULL) != (b->lengths == NULL))
        return false;
    return a->lengths == NULL ||
           memcmp(a->lengths, b->lengths, (size_t)a->batch * sizeof(*a->lengths)) == 0;
}

/* Some implementations compute the rows of padding too, so with lengths the tokens do not tell how
 * many rows there are. */
static bool same_tokens(const struct workload *a, const struct workload *b)
{
    if (a->lengths != NULL || b->lengths != NULL)
        return same_lengths(a, b);
    return workload_tokens(a) == workload_tokens(b);
}

bool same_layers(const struct workload *a, const struct workload *b)
{
    return a->chain == b->chain && a->heads == b->heads && a->head_size == b->head_size &&
           a->hidden == b->hidden && a->ffn == b->ffn && a->layers == b->layers &&
           a->eps == b->eps && a->dtype == b->dtype;
}

bool segment_shared(struct segment s, const struct workload *a, const struct workload *b)
{
    if (!same_layers(a, b))
        return false;
    switch (segment_dependence(a->chain, s)) {
    case ON_TOKENS:
        return same_tokens(a, b);
    case ON_LENGTHS:
        return same_lengths(a, b);
    case ON_MASK:
        break;
    }
    return false;
}

/* ---- what other studies know ----------------------------------------------------------------- */

struct beside {
    int64_t study;
    struct workload workload;
};

struct found {
    int slot, attempt;
    struct db_trial row; /* its texts are owned, its choice is that of the attempt */
};

struct shared {
    struct tuner *t;
    struct beside *beside; /* (beside_count) owned */
    int beside_count;
    const struct workload *of; /* the one that is being read */
    struct found *found;       /* (count) owned, each attempt once */
    int count;
};

static void note_study(void *ctx, int64_t study, const char *workload_text)
{
    struct shared *s = ctx;
    struct beside b = {.study = study};
    if (workload_parse(workload_text, &b.workload, STATUS_IGNORED) != 0 || /* another version's */
        !same_tokens(&b.workload, bench_workload(s->t->bench))) {
        workload_release(&b.workload);
        return;
    }
    s->beside = mem_resize(s->beside, (size_t)s->beside_count + 1, sizeof(*s->beside));
    s->beside[s->beside_count++] = b;
}

static bool is_found(const struct shared *s, int slot, int attempt)
{
    for (int i = 0; i < s->count; i++)
        if (s->found[i].slot == slot && s->found[i].attempt == attempt)
            return true;
    return false;
}

static int note_trial(void *ctx, const struct db_trial *row)
{
    struct shared *s = ctx;
    const struct segment_table *table = &s->t->segments;
    const struct db_choice *c = &row->choices[0];
    struct choice choice;
    if (row->status != TRIAL_OK ||
        !segment_shared(c->segment, bench_workload(s->t->bench), s->of) ||
        choice_parse(table->target, table->chain, c->segment, c->impl, c->schedule, &choice,
                     STATUS_IGNORED) != 0)
        return 0;
    int slot = slot_of(choice.segment, choice.impl->handwritten);
    int attempt = slot_attempt(&table->slots[slot], &choice);
    if (attempt < 0 || table->slots[slot].attempts[attempt].tried || is_found(s, slot, attempt))
        return 0;
    s->found = mem_room(s->found, (size_t)s->count, sizeof(*s->found));
    struct found *f = &s->found[s->count++];
    *f = (struct found){.slot = slot, .attempt = attempt, .row = *row};
    f->row.resources = mem_strdup(row->resources);
    f->row.conditions = mem_strdup(row->conditions);
    return 0;
}

static int find(struct shared *s, struct status *st)
{
    if (db_studies_beside(s->t->db, s->t->study, note_study, s, st) != 0)
        return -1;
    for (int i = 0; i < s->beside_count; i++) {
        s->of = &s->beside[i].workload;
        if (db_trials(s->t->db, s->beside[i].study, DB_TRIAL_SEGMENT, note_trial, s, st) != 0)
            return -1;
    }
    return 0;
}

static void release(struct shared *s)
{
    for (int i = 0; i < s->beside_count; i++)
        workload_release(&s->beside[i].workload);
    for (int i = 0; i < s->count; i++) {
        free((char *)s->found[i].row.resources);
        free((char *)s->found[i].row.conditions);
    }
    free(s->beside);
    free(s->found);
}

/* ---- whether they hold here ------------------------------------------------------------------ */

static struct candidate candidate_of(const struct tuner *t, const struct found *f)
{
    return (struct candidate){.packed = t->segments.packed,
                              .count = 1,
                              .choices = {t->segments.slots[f->slot].attempts[f->attempt].choice}};
}

static bool agrees(const struct trial *now, const struct db_trial *then)
{
    bool overlap = now->ms.low <= then->ci_high_ms && then->ci_low_ms <= now->ms.high;
    return now->status == TRIAL_OK &&
           (overlap || fabs(now->ms.median / then->median_ms - 1) <= SAME);
}

static void say_refused(const struct tuner *t, const struct choice *c, const struct trial *now,
                        double then_ms)
{
    SCOPED_BUF took = BUF_INIT;
    if (now->status == TRIAL_OK)
        buf_addf(&took, "take %.2f us", 1e3 * now->ms.median);
    else
        buf_addf(&took, "fail (%s)", now->reason.message);
    tuner_say(t,
              "note: ops %d-%d %s, and took %.2f us in a search of another workload; no segment "
              "times are taken from there",
              c->segment.first, c->segment.last, took.ptr, 1e3 * then_ms);
}

/* Times a segment again and stores that.  *holds: it took the same time. */
static int time_again(struct tuner *t, const struct found *f, bool *holds, struct status *st)
{
    const struct timespec pause = {.tv_nsec = (long)(PAUSE_S * 1e9)};
    struct candidate c = candidate_of(t, f);
    SCOPED_BY(trial_release) struct trial trial = {.status = TRIAL_OK};
    *holds = false;
    for (int i = 0; i < TRIES && !*holds && trial.status == TRIAL_OK; i++) {
        if (i > 0)
            nanosleep(&pause, NULL);
        trial_release(&trial);
        trial = (struct trial){.status = TRIAL_FAILED, .reason = STATUS_INIT};
        if (bench_segment(t->bench, &c.choices[0], c.packed, &sampling_search, &trial, st) != 0)
            return -1;
        *holds = agrees(&trial, &f->row);
    }
    int result = trial_store(t->db, t->study, DB_TRIAL_SEGMENT, &c, &trial, t->search_id, st);
    if (!*holds)
        say_refused(t, &c.choices[0], &trial, f->row.median_ms);
    segment_table_note(&t->segments, f->slot, f->attempt, trial.status, trial.ms.median,
                       &trial.reason);
    return result;
}

/* Draws which are timed again, and moves them to the front. */
static void draw(struct shared *s)
{
    struct rng r = {.state = splitmix64(s->t->o->search.seed)};
    for (int i = 0; i < TIMED_AGAIN; i++) {
        int other = i + (int)rng_below(&r, (uint32_t)(s->count - i));
        struct found f = s->found[i];
        s->found[i] = s->found[other];
        s->found[other] = f;
    }
}

static int take(struct tuner *t, struct found *f, struct status *st)
{
    const struct status none = STATUS_INIT;
    const struct choice *c = &t->segments.slots[f->slot].attempts[f->attempt].choice;
    SCOPED_BUF schedule = BUF_INIT;
    schedule_text(c->impl, &c->schedule, &schedule);
    const struct db_choice choice = {
        .segment = c->segment, .impl = c->impl->name, .schedule = schedule.ptr};
    struct db_trial row = f->row;
    row.choices = &choice;
    row.reason_code = row.reason = row.comparison = "";
    row.search = t->search_id;
    row.stored_utc = NULL;
    int result = db_trial_add(t->db, t->study, &row, st);
    if (result == 0)
        segment_table_note(&t->segments, f->slot, f->attempt, TRIAL_OK, row.median_ms, &none);
    return result;
}

static int take_if_they_hold(struct shared *s, struct status *st)
{
    bool holds = true;
    draw(s);
    for (int i = 0; i < TIMED_AGAIN && holds; i++)
        if (time_again(s->t, &s->found[i], &holds, st) != 0)
            return -1;
    for (int i = TIMED_AGAIN; i < s->count && holds; i++)
        if (take(s->t, &s->found[i], st) != 0)
            return -1;
    if (holds)
        tuner_say(
            s->t,
            "took %d segment times from searches of other workloads; %d that were timed again "
            "agree",
            s->count - TIMED_AGAIN, (int)TIMED_AGAIN);
    return 0;
}

int take_shared(struct tuner *t, struct status *st)
{
    SCOPED_BY(release) struct shared s = {.t = t};
    if (find(&s, st) != 0)
        return -1;
    return s.count > TIMED_AGAIN ? take_if_they_hold(&s, st) : 0;
}
