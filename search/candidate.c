/* How a plan runs. */
#include "search/study_int.h"

/* ---- how plans ran side by side ------------------------------------------------------------- */

const struct candidate *fitted_find(const struct fitted_plans *p, struct plan plan)
{
    for (int i = 0; i < p->count; i++)
        if (plan_equal(p->items[i].plan, plan))
            return &p->items[i];
    return NULL;
}

void fitted_keep(struct fitted_plans *p, const struct candidate *c)
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
    const struct build_target *target;
    struct fitted_plans *out;
    char *comparison; /* the newest so far, owned */
};

/* Reads a choice for each segment of out->plan; -1 with the reason if one is missing, or this
 * version does not know it. */
static int read_choices(const struct db_choice *from, int count, const struct build_target *target,
                        struct candidate *out, struct status *st)
{
    int slots[OP_COUNT];
    out->count = count;
    if (plan_slots(out->plan, slots) != count)
        return status_set(st, STATUS_UNFIT, "a segment has no choice");
    for (int i = 0; i < count; i++) {
        struct choice *c = &out->choices[i];
        if (choice_parse(target->kind, target->chain, from[i].segment, from[i].impl,
                         from[i].schedule, c, st) != 0)
            return -1;
        if (slot_of(c->segment, c->impl->handwritten) != slots[i])
            return status_set(st, STATUS_UNFIT, "%s runs no segment of the plan", from[i].impl);
    }
    return 0;
}

int candidate_find(const struct candidate *c, enum target_kind target,
                   const struct db_choice *stored)
{
    struct choice choice;
    if (c->count > 0 && choice_parse(target, c->choices[0].chain, stored->segment, stored->impl,
                                     stored->schedule, &choice, STATUS_IGNORED) == 0)
        for (int i = 0; i < c->count; i++)
            if (choice_equal(&c->choices[i], &choice))
                return i;
    return -1;
}

int candidate_of_best(const struct db_best *b, const struct build_target *target,
                      struct candidate *out, struct status *st)
{
    *out = (struct candidate){.plan = plan_from_value((unsigned)b->value),
                              .packed = b->packed,
                              .precision = b->precision};
    if (read_choices(b->choices, b->choice_count, target, out, st) != 0)
        return -1;
    for (int i = 0; i < out->count; i++) {
        const char *why;
        struct segment s = out->choices[i].segment;
        if (!choice_applicable(&out->choices[i], target, &why))
            return status_set(st, STATUS_UNFIT, "ops %d-%d do not run by %s here: %s", s.first,
                              s.last, out->choices[i].impl->name, why);
    }
    return 0;
}

/* The rows of a comparison stand together, the newest last. */
static int read_final(void *ctx, const struct db_trial *row)
{
    struct reading *r = ctx;
    struct candidate c = {.plan = plan_from_value((unsigned)row->value),
                          .packed = row->packed != 0,
                          .precision = (unsigned)row->precision};
    if (strcmp(row->strategy, "bench") == 0 || row->status != TRIAL_OK)
        return 0;
    if (r->comparison == NULL || strcmp(r->comparison, row->comparison) != 0) {
        free(r->comparison);
        r->comparison = mem_strdup(row->comparison);
        r->out->count = 0;
    }
    if (read_choices(row->choices, row->choice_count, r->target, &c, STATUS_IGNORED) == 0)
        fitted_keep(r->out, &c);
    return 0;
}

int fitted_read(struct db *db, int64_t study, const struct build_target *target,
                struct fitted_plans *out, struct status *st)
{
    struct reading r = {.target = target, .out = out};
    *out = (struct fitted_plans){.count = 0};
    int result = db_trials(db, study, DB_TRIAL_FINAL, read_final, &r, st);
    free(r.comparison);
    return result;
}

/* ---- what runs a segment that was not timed ------------------------------------------------- */

/* What kind of work a slot does: that of its stage, or of several ones. */
static int kind_of(const struct segment_table *t, int slot)
{
    enum stage_kind kinds[OP_COUNT];
    return segment_stages(t->target, t->chain, slot_segment(slot), kinds) == 1 ? (int)kinds[0] : -1;
}

/* Whether an implementation's best time in a slot is less than that of another one, which may have
 * failed. */
static bool won(const struct slot *s, const struct impl *impl)
{
    bool rival = false;
    for (int i = 0; i < s->count; i++)
        rival |= s->attempts[i].tried && s->attempts[i].choice.impl != impl;
    return rival && s->best != NULL && s->best->choice.impl == impl;
}

/* In how many slots of a kind an implementation won. */
static int wins(const struct segment_table *t, int kind, const struct impl *impl)
{
    int count = 0;
    for (int i = 0; i < SLOT_COUNT; i++)
        count += won(&t->slots[i], impl) && kind_of(t, i) == kind;
    return count;
}

/* The untried default of the implementation that won most often at such slots; null: none
 * is left. */
static const struct attempt *untried_default(const struct segment_table *t, int slot)
{
    const struct slot *s = &t->slots[slot];
    const struct attempt *found = NULL;
    int most = -1, kind = kind_of(t, slot);
    for (int i = 0; s->attempts != NULL && i < s->count; i++) {
        const struct attempt *a = &s->attempts[i];
        if (!a->usual || a->tried || wins(t, kind, a->choice.impl) <= most)
            continue;
        most = wins(t, kind, a->choice.impl);
        found = a;
    }
    return found;
}

/* ---- a plan ---------------------------------------------------------------------------------- */

static int refuse_segment(int slot, const struct slot *s, struct status *st)
{
    struct segment bad = slot_segment(slot);
    bool stored = s->failed_utc[0] != '\0';
    return status_set(st, s->reason.code, "ops %d-%d fail alone%s%s: %s", bad.first, bad.last,
                      stored ? ", at " : "", s->failed_utc, s->reason.message);
}

int plan_candidate(const struct segment_table *t, const struct fitted_plans *fitted, struct plan p,
                   struct candidate *out, struct status *st)
{
    const struct candidate *known = fitted != NULL ? fitted_find(fitted, p) : NULL;
    int slots[OP_COUNT], result = 0;
    int count = plan_slots(p, slots);
    *out = (struct candidate){.plan = p, .packed = t->packed, .precision = t->precision};
    for (int i = 0; i < count; i++) {
        const struct slot *s = &t->slots[slots[i]];
        /* What was chosen for the segment in a comparison, if its attempts have that. */
        const int at = known != NULL ? slot_attempt(s, &known->choices[i]) : -1;
        const struct attempt *attempt = at >= 0           ? &s->attempts[at]
                                        : s->best != NULL ? s->best
                                                          : untried_default(t, slots[i]);
        if (attempt == NULL) {
            result = refuse_segment(slots[i], s, st);
            attempt = &s->attempts[0];
        }
        if (s->count > 0)
            out->choices[out->count++] = attempt->choice;
    }
    return result;
}

int study_candidate(const struct choice_source *from, struct plan p, struct candidate *out,
                    struct status *st)
{
    SCOPED_BY(segment_table_release) struct segment_table table;
    SCOPED_BY(fitted_release) struct fitted_plans fitted = {.count = 0};
    struct status fails = STATUS_INIT; /* whoever runs it reports the failure */
    segment_table_init(&table, from->target);
    table.retry_failed = from->retry_failed;
    for (int i = 0; from->archs != NULL && i < from->archs->count; i++) {
        struct build_target further = *from->target;
        further.arch = from->archs->arch[i];
        segment_table_restrict(&table, &further);
    }
    if (from->db != NULL &&
        (segment_table_read(&table, from->db, from->study, st) != 0 ||
         (!from->alone && fitted_read(from->db, from->study, from->target, &fitted, st) != 0)))
        return -1;
    plan_candidate(&table, &fitted, p, out, &fails);
    return 0;
}
