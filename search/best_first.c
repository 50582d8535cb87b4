/* Which slots are worth timing, the most promising first.
 *
 * Most segments of several stages take longer than their stages do alone.  So a slot for which
 * there is nothing else is not timed at first: it *hopes* for a share of its best split, which is
 * the least sum of times that covers its operators.  A slot is wanted if it is in the plan of the
 * least hoped sum. */
#include "search/best_first_int.h"

#include <float.h>

/* A hope that only equals the sum of times known is no reason to time a slot. */
#define TIE 1e-9

/* Operators that join in one stage took 0.35 of the sum of their times at least in four spaces of
 * an H200.  What is expected of a plan may be off by the rest. */
#define JOINED     0.3
#define FAR_BEHIND 1.1

/* ---- hopes ----------------------------------------------------------------------------------- */

/* Whether generated code alone serves a slot, and runs it in several stages. */
static bool waits(const struct segment_table *t, int slot)
{
    enum stage_kind kinds[OP_COUNT];
    const struct impl *generated = impl_find(t->target, "generated");
    for (int i = 0; i < t->slots[slot].count; i++)
        if (t->slots[slot].attempts[i].choice.impl != generated)
            return false;
    return segment_stages(t->target, t->chain, slot_segment(slot), kinds) > 1;
}

void best_first_init(struct best_first *b, const struct segment_table *t, const struct plan *space,
                     int space_count, uint64_t seed)
{
    *b = (struct best_first){
        .chain = t->chain, .space = space, .space_count = space_count, .seed = seed};
    for (int i = 0; i < SLOT_COUNT; i++) {
        const struct slot *s = &t->slots[i];
        b->known.ms[i] = b->parts.ms[i] = NAN;
        b->expected.ms[i] = s->count > 0 ? s->attempts[0].expected_ms : NAN;
        b->waits[i] = waits(t, i);
    }
    for (int i = 0; i < space_count; i++) {
        int slots[OP_COUNT], count = plan_slots(space[i], slots);
        for (int k = 0; k < count; k++)
            b->used[slots[k]] = true;
    }
}

static bool is_open(const struct best_first *b, int slot)
{
    return b->used[slot] && !b->failed[slot] && isnan(b->known.ms[slot]);
}

/* Generated code of several stages has its own code for GEMMs: it takes about as long as that does
 * alone, and not as a library does. */
double part_ms(const struct segment_table *t, int slot)
{
    const struct slot *s = &t->slots[slot];
    const struct impl *generated = impl_find(t->target, "generated");
    struct segment of = slot_segment(slot);
    bool gemm = false;
    for (int op = of.first; op <= of.last; op++)
        gemm |= t->chain->ops[op].kind == KIND_GEMM;
    if (!gemm)
        return t->times.ms[slot];
    double least = INFINITY;
    for (int i = 0; i < s->count; i++)
        if (s->attempts[i].choice.impl == generated && s->attempts[i].tried)
            least = fmin(least, s->attempts[i].least_ms);
    return isinf(least) ? NAN : least;
}

struct splits {
    struct covers known, parts;
    struct covers plans; /* times that are expected count as known */
};

static void find_splits(const struct best_first *b, struct splits *out)
{
    struct segment_times times = b->known;
    find_covers(&b->known, &out->known);
    find_covers(&b->parts, &out->parts);
    for (int i = 0; i < SLOT_COUNT; i++)
        if (is_open(b, i))
            times.ms[i] = b->expected.ms[i];
    find_covers(&times, &out->plans);
}

/* The least sum that a slot is compared with; infinite where none covers its operators. */
static double split_of(const struct best_first *b, const struct splits *splits, int slot)
{
    struct segment s = slot_segment(slot);
    double parts = splits->parts.split[s.first][s.last];
    return b->waits[slot] && isfinite(parts) ? parts : splits->known.split[s.first][s.last];
}

/* What an open slot may take. */
static double hope_of(const struct best_first *b, const struct splits *splits, int slot,
                      double share)
{
    double split = split_of(b, splits, slot);
    if (b->waits[slot])
        return share * (1 + TIE) * split;
    return isnan(b->expected.ms[slot]) ? JOINED * split : b->expected.ms[slot];
}

/* The times known, and the hopes of the slots not timed: 0 where no sum covers the operators. */
static void hoped_times(const struct best_first *b, double share, struct segment_times *out)
{
    struct splits splits;
    find_splits(b, &splits);
    *out = b->known;
    for (int i = 0; i < SLOT_COUNT; i++)
        if (is_open(b, i)) {
            double hope = hope_of(b, &splits, i, share);
            out->ms[i] = isinf(hope) ? 0 : hope; /* what nothing is known of is timed first */
        }
}

double least_share(const struct best_first *b, double share)
{
    struct splits splits;
    find_splits(b, &splits);
    for (int i = 0; i < SLOT_COUNT; i++) {
        double split = split_of(b, &splits, i); /* infinite where an operator failed alone */
        if (b->waits[i] && !isnan(b->known.ms[i]) && isfinite(split))
            share = fmin(share, b->known.ms[i] / split);
    }
    return share;
}

/* How many times the least sum the plans with an open slot take at least, if it takes what it hopes
 * for; NaN: too little is known. */
static double behind(const struct best_first *b, const struct splits *splits, int slot,
                     double share)
{
    struct segment s = slot_segment(slot);
    const struct covers *c = &splits->plans;
    double least = c->ms[0][OP_COUNT - 1];
    double ms = hope_of(b, splits, slot, share) + (s.first > 0 ? c->ms[0][s.first - 1] : 0) +
                (s.last < OP_COUNT - 1 ? c->ms[s.last + 1][OP_COUNT - 1] : 0);
    return isfinite(ms) && isfinite(least) ? ms / least : NAN;
}

/* ---- what to time ---------------------------------------------------------------------------- */

struct ranked {
    int slot;
    double key;
};

static int by_key(const void *a, const void *b)
{
    const struct ranked *x = a, *y = b;
    return x->key != y->key ? (x->key > y->key) - (x->key < y->key) : x->slot - y->slot;
}

static int sorted(struct ranked *items, int count, int *out)
{
    qsort(items, (size_t)count, sizeof(*items), by_key);
    for (int i = 0; i < count; i++)
        out[i] = items[i].slot;
    return count;
}

/* Whether a segment reads or writes scores, which are by far the largest tensors: it takes the
 * longest to verify, and is in no fast plan of a long sequence. */
static bool hands_scores(const struct chain *c, int slot)
{
    struct segment s = slot_segment(slot);
    uint32_t ends = segment_inputs(c, s) | segment_outputs(c, s);
    for (int t = 0; t < TENSOR_COUNT; t++)
        if ((ends >> t & 1) != 0 && tensor_layout(c, t) == LAYOUT_SCORES)
            return true;
    return false;
}

int slots_timed_first(const struct best_first *b, int *sure, int out[SLOT_COUNT])
{
    struct ranked items[SLOT_COUNT], unsure[SLOT_COUNT];
    struct splits splits;
    int count = 0, more = 0;
    find_splits(b, &splits);
    for (int i = 0; i < SLOT_COUNT; i++) {
        struct segment s = slot_segment(i);
        bool single = s.first == s.last;
        if (!is_open(b, i) || b->waits[i])
            continue;
        double alone = single ? INFINITY : fmin(split_of(b, &splits, i), DBL_MAX);
        double ratio = single ? 1 : behind(b, &splits, i, 1);
        struct ranked item = {i, hands_scores(b->chain, i) ? INFINITY : -alone};
        if (isnan(ratio))
            unsure[more++] = item;
        else if (ratio <= FAR_BEHIND)
            items[count++] = item;
    }
    *sure = sorted(items, count, out);
    return count + sorted(unsure, more, out + count);
}

int plan_wanted(const struct best_first *b, double share)
{
    struct segment_times hoped;
    hoped_times(b, share, &hoped);
    return additive_best(b->space, b->space_count, &hoped);
}

int slots_wanted(const struct best_first *b, double share, int most, int *first,
                 int out[SLOT_COUNT])
{
    struct best_first then = *b;
    int count = 0, before = -1;
    *first = 0;
    while (count < most && count > before) {
        int slots[OP_COUNT], plan = plan_wanted(&then, share);
        int n = plan < 0 ? 0 : plan_slots(b->space[plan], slots);
        struct splits splits;
        find_splits(&then, &splits);
        before = count;
        for (int i = 0; i < n; i++)
            if (is_open(&then, slots[i])) {
                double split = split_of(&then, &splits, slots[i]);
                out[count++] = slots[i];
                then.known.ms[slots[i]] = split; /* if it disappoints */
                then.failed[slots[i]] = isinf(split);
            }
        if (before == 0)
            *first = count;
    }
    return count;
}

bool model_knows(const struct best_first *b)
{
    return additive_best(b->space, b->space_count, &b->expected) >= 0;
}

int slots_audited(const struct best_first *b, int out[AUDITED])
{
    struct ranked items[SLOT_COUNT];
    struct splits splits;
    int order[SLOT_COUNT], count = 0;
    find_splits(b, &splits);
    for (int i = 0; i < SLOT_COUNT; i++)
        if (is_open(b, i) && b->waits[i] && behind(b, &splits, i, 0.5) < 1)
            items[count++] =
                (struct ranked){i, (double)splitmix64(splitmix64(b->seed) + (uint64_t)i)};
    sorted(items, count, order);
    count = count < AUDITED ? count : (int)AUDITED;
    memcpy(out, order, (size_t)count * sizeof(*out));
    return count;
}
