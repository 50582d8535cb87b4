/* On a CPU compilers and measurements take turns.  On a GPU the compilers run ahead while the
 * device verifies and times: an attempt waits for its own build alone. */
#include "search/replay_int.h"

#include <math.h>

static void pay_attempt(struct replay_clock *c, const struct recorded_attempt *a)
{
    c->built_s += a->build_s;
    if (c->space->target == TARGET_CUDA)
        c->now_s = fmax(c->now_s, c->built_s);
    else
        c->now_s += a->build_s;
    c->now_s += a->device_s;
}

/* The attempts of some slots, in the order in which they were recorded. */
static void pay(struct replay_clock *c, const int *slots, int count)
{
    bool due[SLOT_COUNT] = {false}, any = false;
    for (int i = 0; i < count; i++) {
        due[slots[i]] = !c->paid[slots[i]];
        any = any || due[slots[i]];
        c->paid[slots[i]] = true;
    }
    for (int i = 0; i < c->space->attempt_count && any; i++)
        if (due[c->space->attempts[i].slot])
            pay_attempt(c, &c->space->attempts[i]);
}

/* Without segment times each slot is built once, by its fastest choice. */
static void pay_builds(struct replay_clock *c, const int *slots, int count)
{
    for (int i = 0; i < count; i++) {
        int fastest = c->space->fastest[slots[i]];
        if (!c->paid[slots[i]] && fastest >= 0)
            c->now_s += c->space->attempts[fastest].build_s;
        c->paid[slots[i]] = true;
    }
}

void replay_clock_stage1(struct replay_clock *c)
{
    int slots[SLOT_COUNT];
    for (int i = 0; i < SLOT_COUNT; i++)
        slots[i] = i;
    if (c->alone)
        pay(c, slots, SLOT_COUNT);
}

double replay_clock_plan(struct replay_clock *c, int index)
{
    int slots[OP_COUNT], count = plan_slots(c->space->plans[index], slots);
    if (c->alone)
        pay(c, slots, count);
    else
        pay_builds(c, slots, count);
    c->now_s += c->space->seconds[index];
    return c->now_s;
}
