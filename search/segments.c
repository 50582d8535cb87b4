/* Stage 1: which choice runs each segment fastest, alone. */
#include "search/search_int.h"

#include <limits.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Choices built at a time where a deadline may cut the work short, for each core: few enough that
 * what was built is timed in time, enough that the last compiler keeps few cores waiting. */
enum { CHUNK_PER_CORE = 4 };

struct segment slot_segment(int slot)
{
    return slot == SLOT_HANDWRITTEN ? (struct segment){2, 6} : segment_at(slot);
}

void segment_table_init(struct segment_table *t, enum target_kind target)
{
    memset(t, 0, sizeof(*t));
    t->times.handwritten_ms = NAN;
    for (int i = 0; i < SEGMENT_COUNT; i++)
        t->times.ms[i] = NAN;
    for (int i = 0; i < SLOT_COUNT; i++) {
        struct slot *slot = &t->slots[i];
        struct segment s = slot_segment(i);
        bool handwritten = i == SLOT_HANDWRITTEN;
        slot->count = choices_for(target, s, handwritten, 0, NULL);
        struct choice *choices = mem_alloc((size_t)slot->count + 1, sizeof(*choices));
        choices_for(target, s, handwritten, slot->count, choices);
        slot->attempts = mem_alloc((size_t)slot->count + 1, sizeof(*slot->attempts));
        for (int c = 0; c < slot->count; c++)
            slot->attempts[c].choice = choices[c];
        free(choices);
        if (slot->count == 0)
            status_set(&slot->reason, STATUS_UNFIT, "the target has no implementation of it");
    }
}

void segment_table_release(struct segment_table *t)
{
    for (int i = 0; i < SLOT_COUNT; i++)
        free(t->slots[i].attempts);
    memset(t, 0, sizeof(*t));
}

static double *slot_ms(struct segment_table *t, int slot)
{
    return slot == SLOT_HANDWRITTEN ? &t->times.handwritten_ms : &t->times.ms[slot];
}

static void note_ok(struct segment_table *t, int slot, int attempt, double ms)
{
    struct slot *s = &t->slots[slot];
    s->attempts[attempt].tried = true;
    double *best_ms = slot_ms(t, slot);
    if (s->best && ms >= *best_ms)
        return;
    s->best = &s->attempts[attempt].choice;
    *best_ms = ms;
}

static void note_unusable(struct segment_table *t, int slot, int attempt, enum status_code code,
                          const char *message)
{
    struct slot *s = &t->slots[slot];
    s->attempts[attempt].tried = true;
    s->reason = STATUS_INIT;
    status_set(&s->reason, code, "%s", message);
}

/* ---- what the database holds ------------------------------------------------------------------
 */

static int find_attempt(const struct slot *slot, const struct db_choice *c)
{
    int found = -1;
    struct buf text;
    buf_init(&text);
    for (int i = 0; i < slot->count && found < 0; i++) {
        const struct choice *choice = &slot->attempts[i].choice;
        if (strcmp(choice->impl->name, c->impl) != 0)
            continue;
        buf_reset(&text);
        schedule_text(choice->impl, &choice->schedule, &text);
        if (strcmp(text.ptr, c->schedule) == 0)
            found = i;
    }
    buf_release(&text);
    return found;
}

/* Rows of implementations or schedules that exist no more are passed over. */
static int read_row(void *ctx, const struct db_trial *row)
{
    struct segment_table *t = ctx;
    const struct db_choice *c = &row->choices[0];
    int slot = segment_index((struct segment){(int8_t)c->first, (int8_t)c->last});
    int attempt = find_attempt(&t->slots[slot], c);
    if (attempt < 0 && c->first == 2 && c->last == 6) {
        slot = SLOT_HANDWRITTEN;
        attempt = find_attempt(&t->slots[slot], c);
    }
    if (attempt < 0)
        return 0;
    if (strcmp(row->status, "ok") == 0)
        note_ok(t, slot, attempt, row->median_ms);
    else
        note_unusable(t, slot, attempt, status_from_name(row->reason_code), row->reason);
    return 0;
}

int segment_table_read(struct segment_table *t, struct db *db, int64_t study, struct status *st)
{
    return db_trials(db, study, DB_TRIAL_SEGMENT, read_row, t, st);
}

/* ---- plans from slots -------------------------------------------------------------------------
 */

int plan_slots(struct plan p, int out[OP_COUNT])
{
    struct segment segments[OP_COUNT];
    int count = plan_segments(p, segments);
    for (int i = 0; i < count; i++) {
        bool attention = segments[i].first == 2 && segments[i].last == 6;
        out[i] = attention && p.handwritten ? (int)SLOT_HANDWRITTEN : segment_index(segments[i]);
    }
    return count;
}

static const struct choice *next_untried(const struct slot *s)
{
    for (int i = 0; i < s->count; i++)
        if (!s->attempts[i].tried)
            return &s->attempts[i].choice;
    return NULL;
}

bool slot_failed(const struct slot *s)
{
    return !s->best && !next_untried(s);
}

int segment_table_candidate(const struct segment_table *t, struct plan p, struct candidate *out,
                            struct status *st)
{
    int slots[OP_COUNT], rc = 0;
    int count = plan_slots(p, slots);
    *out = (struct candidate){.plan = p};
    for (int i = 0; i < count; i++) {
        const struct slot *s = &t->slots[slots[i]];
        const struct choice *choice = s->best ? s->best : next_untried(s);
        if (!choice) {
            struct segment bad = slot_segment(slots[i]);
            rc = status_set(st, s->reason.code, "ops %d-%d fail alone: %s", bad.first, bad.last,
                            s->reason.message);
            choice = s->count > 0 ? &s->attempts[0].choice : NULL;
        }
        if (choice)
            out->choices[out->count++] = *choice;
    }
    return rc;
}

/* ---- building and timing ----------------------------------------------------------------------
 */

struct job {
    int slot, attempt;
};

static void build_tick(void *ctx, int done, int total)
{
    tuner_tick(ctx, "building segments: %d of %d", done, total);
}

static int time_job(struct tuner *t, struct job j, const struct status *built, struct status *st)
{
    struct segment_table *table = &t->segments;
    struct candidate c = {.count = 1, .choices = {table->slots[j.slot].attempts[j.attempt].choice}};
    struct trial trial = {.status = TRIAL_FAILED, .reason = *built};
    struct sampling how = sampling_search;
    if (table->slots[j.slot].best)
        how.censor_above_ms = HOPELESS_RATIO * *slot_ms(table, j.slot);
    int rc = 0;
    if (built->code == STATUS_OK)
        rc = bench_segment(t->bench, &c.choices[0], &how, &trial, st);
    if (rc == 0)
        rc = trial_store(t->db, t->study, DB_TRIAL_SEGMENT, &c, &trial, t->search_id, st);
    if (rc == 0 && trial.status == TRIAL_OK)
        note_ok(table, j.slot, j.attempt, trial.ms.median);
    else if (rc == 0)
        note_unusable(table, j.slot, j.attempt, trial.reason.code, trial.reason.message);
    trial_release(&trial);
    return rc;
}

static int run_chunk(struct tuner *t, const struct job *jobs, int count, double deadline,
                     struct status *st)
{
    struct choice *choices = mem_alloc((size_t)count, sizeof(*choices));
    struct status *built = mem_alloc((size_t)count, sizeof(*built));
    for (int i = 0; i < count; i++)
        choices[i] = t->segments.slots[jobs[i].slot].attempts[jobs[i].attempt].choice;
    int rc = bench_build(t->bench, choices, count, built, build_tick, t, st);
    for (int i = 0; i < count && rc == 0 && clock_seconds() < deadline; i++) {
        tuner_tick(t, "timing segments: %d of %d", i + 1, count);
        rc = time_job(t, jobs[i], &built[i], st);
    }
    free(choices);
    free(built);
    return rc;
}

/* What was not tried of the slots: the defaults, or all else. */
static int collect(const struct segment_table *t, const int *slots, int count, bool defaults,
                   struct job *out)
{
    int n = 0;
    for (int i = 0; i < count; i++) {
        const struct slot *s = &t->slots[slots[i]];
        for (int a = defaults ? 0 : 1; a < (defaults ? s->count > 0 : s->count); a++)
            if (!s->attempts[a].tried)
                out[n++] = (struct job){slots[i], a};
    }
    return n;
}

int tune_slots(struct tuner *t, const int *slots, int count, double deadline, struct status *st)
{
    int chunk = isinf(deadline) ? INT_MAX : CHUNK_PER_CORE * (int)sysconf(_SC_NPROCESSORS_ONLN);
    int attempts = 0, rc = 0;
    for (int i = 0; i < count; i++)
        attempts += t->segments.slots[slots[i]].count;
    struct job *jobs = mem_alloc((size_t)attempts + 1, sizeof(*jobs));
    for (int pass = 0; pass < 2 && rc == 0; pass++) {
        int n = collect(&t->segments, slots, count, pass == 0, jobs);
        for (int at = 0, size; at < n && rc == 0 && clock_seconds() < deadline; at += size) {
            size = n - at < chunk ? n - at : chunk;
            rc = run_chunk(t, jobs + at, size, deadline, st);
        }
    }
    free(jobs);
    return rc;
}
