#include "search/study_int.h"

/* Whether choice i is the first of its implementation, and so the default. */
static bool is_first(const struct choice *choices, int i)
{
    for (int before = 0; before < i; before++)
        if (choices[before].impl == choices[i].impl)
            return false;
    return true;
}

void segment_table_init(struct segment_table *t, const struct build_target *target)
{
    memset(t, 0, sizeof(*t));
    t->target = target->kind;
    t->chain = target->chain;
    t->precision = target->precision;
    for (int i = 0; i < SLOT_COUNT; i++) {
        t->times.ms[i] = NAN;
        struct slot *slot = &t->slots[i];
        struct segment s = slot_segment(i);
        bool handwritten = i == SLOT_HANDWRITTEN;
        slot->count = choices_for(target, s, handwritten, 0, NULL);
        SCOPED struct choice *choices = mem_alloc((size_t)slot->count + 1, sizeof(*choices));
        choices_for(target, s, handwritten, slot->count, choices);
        slot->attempts = mem_alloc((size_t)slot->count + 1, sizeof(*slot->attempts));
        for (int c = 0; c < slot->count; c++) {
            slot->attempts[c] = (struct attempt){.choice = choices[c],
                                                 .usual = is_first(choices, c),
                                                 .ms = NAN,
                                                 .least_ms = NAN,
                                                 .expected_ms = NAN};
        }
        if (slot->count == 0)
            status_set(&slot->reason, STATUS_UNFIT,
                       "the target has no implementation of this segment");
    }
}

void segment_table_release(struct segment_table *t)
{
    for (int i = 0; i < SLOT_COUNT; i++)
        free(t->slots[i].attempts);
    memset(t, 0, sizeof(*t));
}

void segment_table_restrict(struct segment_table *t, const struct build_target *target)
{
    for (int i = 0; i < SLOT_COUNT; i++) {
        struct slot *slot = &t->slots[i];
        const char *why;
        int kept = 0;
        for (int c = 0; c < slot->count; c++)
            if (choice_applicable(&slot->attempts[c].choice, target, &why))
                slot->attempts[kept++] = slot->attempts[c];
        slot->count = kept;
    }
}

/* The least time that is expected of a schedule of the attempt's implementation. */
static double least_expected(const struct slot *s, const struct attempt *a)
{
    double least = INFINITY;
    for (int i = 0; i < s->count; i++)
        if (s->attempts[i].choice.impl == a->choice.impl)
            least = fmin(least, s->attempts[i].expected_ms);
    return least;
}

/* Whether another implementation expects a time of the slot.  Then code that neither is expected to
 * take any time nor comes from a library loses: `generated` to the kernels for Hopper, by a fifth
 * at least in four spaces of an H200.  But that of a single operator says what segments of several
 * stages would take. */
static bool is_reserve(const struct slot *s, const struct attempt *a)
{
    bool rival = false;
    for (int i = 0; i < s->count; i++)
        rival |= s->attempts[i].usual && isfinite(s->attempts[i].expected_ms);
    return rival && a->usual && isnan(a->expected_ms) && !a->choice.impl->library &&
           a->choice.segment.first < a->choice.segment.last;
}

void segment_table_expect(struct segment_table *t, const struct workload *w)
{
    for (int i = 0; i < SLOT_COUNT; i++) {
        struct slot *s = &t->slots[i];
        for (int k = 0; k < s->count; k++)
            s->attempts[k].expected_ms = choice_expected_us(&s->attempts[k].choice, w) / 1000;
        for (int k = 0; k < s->count; k++) {
            struct attempt *a = &s->attempts[k];
            a->behind = a->expected_ms * 1000 > choice_far_behind_us(1000 * least_expected(s, a));
            a->reserve = is_reserve(s, a);
        }
    }
}

void segment_table_note(struct segment_table *t, int slot, int attempt, enum trial_status status,
                        double ms, const struct status *reason)
{
    struct slot *s = &t->slots[slot];
    struct attempt *a = &s->attempts[attempt];
    a->tried = true;
    a->failed_before = false;
    a->ms = status == TRIAL_OK ? ms : NAN;
    a->least_ms = status == TRIAL_FAILED ? NAN : ms;
    s->failed_utc[0] = '\0';
    if (status != TRIAL_OK) {
        s->reason = *reason;
    } else if (s->best == NULL || ms < t->times.ms[slot]) {
        s->best = a;
        t->times.ms[slot] = ms;
    }
}

int segment_table_failed(const struct segment_table *t, int out[SLOT_COUNT])
{
    int count = 0;
    for (int i = 0; i < SLOT_COUNT; i++) {
        bool failed = false;
        for (int k = 0; k < t->slots[i].count; k++)
            failed |= t->slots[i].attempts[k].failed_before;
        if (failed && out != NULL)
            out[count] = i;
        count += failed;
    }
    return count;
}

int segment_table_size(const struct segment_table *t)
{
    int count = 0;
    for (int i = 0; i < SLOT_COUNT; i++)
        count += t->slots[i].count;
    return count;
}

int segment_table_tried(const struct segment_table *t)
{
    int count = 0;
    for (int i = 0; i < SLOT_COUNT; i++)
        for (int k = 0; k < t->slots[i].count; k++)
            count += t->slots[i].attempts[k].tried;
    return count;
}

bool one_knob_apart(const struct choice *a, const struct choice *b)
{
    int differ = 0;
    for (int k = 0; k < a->impl->knob_count; k++)
        differ += a->schedule.pick[k] != b->schedule.pick[k];
    return a->impl == b->impl && differ == 1;
}

/* ---- what the database holds ----------------------------------------------------------------- */

int slot_attempt(const struct slot *slot, const struct choice *c)
{
    int i = 0;
    while (i < slot->count && !choice_equal(&slot->attempts[i].choice, c))
        i++;
    return i < slot->count ? i : -1;
}

/* Skips rows of implementations and schedules that the target lacks. */
static int read_row(void *ctx, const struct db_trial *row)
{
    struct segment_table *t = ctx;
    const struct db_choice *c = &row->choices[0];
    struct choice choice;
    struct status ignored = STATUS_INIT, reason = STATUS_INIT;
    if (choice_parse(t->target, t->chain, c->segment, c->impl, c->schedule, &choice, &ignored) != 0)
        return 0;
    int slot = slot_of(choice.segment, choice.impl->handwritten);
    int attempt = slot_attempt(&t->slots[slot], &choice);
    if (attempt < 0)
        return 0;
    if (t->retry_failed && row->status == TRIAL_FAILED) {
        t->slots[slot].attempts[attempt].failed_before = true;
        return 0;
    }
    enum status_code code = status_from_name(row->reason_code);
    bool ok = row->status == TRIAL_OK;
    if (!ok) /* another version may have stored an unknown code */
        status_set(&reason, code < STATUS_CODE_COUNT ? code : STATUS_UNFIT, "%s", row->reason);
    segment_table_note(t, slot, attempt, row->status, row->median_ms, &reason);
    snprintf(t->slots[slot].failed_utc, CLOCK_UTC_SIZE, "%s", row->stored_utc);
    return 0;
}

int segment_table_read(struct segment_table *t, struct db *db, int64_t study, struct status *st)
{
    return db_trials(db, study, DB_TRIAL_SEGMENT, read_row, t, st);
}

/* ---- what that says of plans ---------------------------------------------------------------- */

bool slot_failed(const struct slot *s)
{
    bool failed = s->best == NULL;
    for (int i = 0; i < s->count; i++)
        failed &= !s->attempts[i].usual || s->attempts[i].tried;
    return failed;
}

int additive_best(const struct plan *space, int space_count, const struct segment_times *times)
{
    int best = -1;
    double best_ms = INFINITY;
    for (int i = 0; i < space_count; i++) {
        double ms = additive_ms(times, space[i]);
        if (ms < best_ms) {
            best = i;
            best_ms = ms;
        }
    }
    return best;
}

/* Whether an untried default waits for no other one. */
static bool default_is_due(const struct slot *s, const struct attempt *a)
{
    bool others = s->best != NULL;
    for (int i = 0; i < s->count; i++)
        others |= s->attempts[i].usual && !s->attempts[i].tried && !s->attempts[i].reserve;
    return a->usual && !(a->reserve && others);
}

/* A step is not worth trying if the same step from another schedule led this far from the best, or
 * if so many steps that are expected to be faster led away from it. */
#define SLOW_STEP 1.2
enum { STEPS_AT_ONCE = 4 };

/* Whether the steps that are tried before this one, by their expected times, are enough for now. */
static bool comes_later(const struct slot *s, const struct attempt *a, const struct attempt *from)
{
    int before = 0;
    for (int i = 0; i < s->count; i++) {
        const struct attempt *b = &s->attempts[i];
        before += b->choice.impl == a->choice.impl && b->expected_ms > from->expected_ms &&
                  b->expected_ms < a->expected_ms &&
                  (b->tried || one_knob_apart(&b->choice, &from->choice));
    }
    return before >= STEPS_AT_ONCE;
}

bool step_is_due(const struct slot *s, const struct attempt *a, const struct attempt *from)
{
    if (a->tried || a->behind || !one_knob_apart(&a->choice, &from->choice) ||
        comes_later(s, a, from))
        return false;
    const int8_t *to = a->choice.schedule.pick;
    int knob = 0;
    while (to[knob] == from->choice.schedule.pick[knob])
        knob++;
    for (int i = 0; i < s->count; i++) {
        const struct attempt *same = &s->attempts[i];
        if (one_knob_apart(&same->choice, &a->choice) &&
            same->choice.schedule.pick[knob] == to[knob] && same->tried &&
            same->least_ms > SLOW_STEP * from->ms)
            return false;
    }
    return true;
}

bool attempt_is_due(const struct slot *s, const struct attempt *a, bool climb)
{
    bool step = climb && s->best != NULL && step_is_due(s, a, s->best);
    return !a->tried && (step || a->failed_before || default_is_due(s, a));
}

int expected_best(const struct segment_table *t, const struct plan *space, int space_count)
{
    struct segment_times expected = t->times;
    for (int i = 0; i < SLOT_COUNT; i++) {
        const struct slot *s = &t->slots[i];
        if (s->best == NULL && s->count > 0 && !s->attempts[0].tried)
            expected.ms[i] = s->attempts[0].expected_ms;
    }
    return additive_best(space, space_count, &expected);
}
