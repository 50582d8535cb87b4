/* Which slots are worth timing, the most promising first.
 *
 * Most segments of several stages take longer than their stages do alone.  So a slot for which
 * there is nothing else is not timed at first: it *hopes* for a share of its best split, which is
 * the least sum of times known that covers its operators.  A slot is wanted if it is in the plan of
 * the least hoped sum. */
#include "search/best_first_int.h"

#include <float.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* A hope that only equals the sum of times known is no reason to time a slot. */
#define TIE 1e-9

/* ---- splits ---------------------------------------------------------------------------------- */

static double split_of(const struct covers *c, int slot)
{
    struct segment s = slot_segment(slot);
    return c->split[s.first][s.last];
}

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
        b->known.ms[i] = NAN;
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

/* The times known, and the hopes of the slots not timed: 0 where no sum covers the operators. */
static void hoped_times(const struct best_first *b, double share, struct segment_times *out)
{
    struct covers covers;
    find_covers(&b->known, &covers);
    *out = b->known;
    for (int i = 0; i < SLOT_COUNT; i++) {
        double split = split_of(&covers, i);
        if (is_open(b, i)) /* what nothing is known of is timed first */
            out->ms[i] = isinf(split) ? 0 : share * (1 + TIE) * split;
    }
}

double least_share(const struct best_first *b, double share)
{
    struct covers covers;
    find_covers(&b->known, &covers);
    for (int i = 0; i < SLOT_COUNT; i++) {
        double split = split_of(&covers, i); /* infinite where an operator failed alone */
        if (b->waits[i] && !isnan(b->known.ms[i]) && isfinite(split))
            share = fmin(share, b->known.ms[i] / split);
    }
    return share;
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

int slots_timed_first(const struct best_first *b, int out[SLOT_COUNT])
{
    struct ranked items[SLOT_COUNT];
    struct covers covers;
    int count = 0;
    find_covers(&b->known, &covers);
    for (int i = 0; i < SLOT_COUNT; i++) {
        struct segment s = slot_segment(i);
        double alone = s.first == s.last ? INFINITY : fmin(split_of(&covers, i), DBL_MAX);
        if (is_open(b, i) && !b->waits[i])
            items[count++] = (struct ranked){i, hands_scores(b->chain, i) ? INFINITY : -alone};
    }
    return sorted(items, count, out);
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
        struct covers covers;
        find_covers(&then.known, &covers);
        before = count;
        for (int i = 0; i < n; i++)
            if (is_open(&then, slots[i])) {
                double split = split_of(&covers, slots[i]);
                out[count++] = slots[i];
                then.known.ms[slots[i]] = split; /* if it disappoints */
                then.failed[slots[i]] = isinf(split);
            }
        if (before == 0)
            *first = count;
    }
    return count;
}

int slots_audited(const struct best_first *b, int out[AUDITED])
{
    struct ranked items[SLOT_COUNT];
    int order[SLOT_COUNT], count = 0;
    for (int i = 0; i < SLOT_COUNT; i++)
        if (is_open(b, i) && b->waits[i])
            items[count++] =
                (struct ranked){i, (double)splitmix64(splitmix64(b->seed) + (uint64_t)i)};
    sorted(items, count, order);
    count = count < AUDITED ? count : (int)AUDITED;
    memcpy(out, order, (size_t)count * sizeof(*out));
    return count;
}
