/* The choices that the table of implementations has for a segment. */
#include "codegen/codegen_int.h"

/* That of the first values of all knobs. */
static struct choice begin_with(const struct impl *impl, const struct build_target *t,
                                struct segment s)
{
    const unsigned precision = t->precision & segment_gemms(t->chain, s);
    return (struct choice){.chain = t->chain,
                           .segment = s,
                           .impl = impl,
                           .schedule = {.precision = (uint8_t)precision}};
}

/* The first choice that is applicable; false if none is. */
static bool first_choice(const struct impl *impl, const struct build_target *t, struct segment s,
                         struct choice *out)
{
    const char *why;
    *out = begin_with(impl, t, s);
    do
        if (choice_applicable(out, t, &why))
            return true;
    while (schedule_next(impl, &out->schedule));
    return false;
}

static bool serves(const struct impl *impl, const struct build_target *t, struct segment s,
                   bool handwritten)
{
    struct choice first;
    return impl->target == t->kind && impl->handwritten == handwritten &&
           first_choice(impl, t, s, &first);
}

static bool any_serves(const struct build_target *t, struct segment s, bool handwritten)
{
    for (int i = 0; i < impl_count; i++)
        if (serves(&impls[i], t, s, handwritten))
            return true;
    return false;
}

static struct choice default_of(const struct impl *impl, const struct build_target *t,
                                struct segment s)
{
    struct choice c = begin_with(impl, t, s), best;
    double least = INFINITY;
    const char *why;
    first_choice(impl, t, s, &best);
    if (impl->expected_us == NULL || t->workload == NULL)
        return best;
    do {
        double us = choice_applicable(&c, t, &why) ? choice_expected_us(&c, t->workload) : NAN;
        if (us < least) {
            least = us;
            best = c;
        }
    } while (schedule_next(impl, &c.schedule));
    return best;
}

int choices_for(const struct build_target *t, struct segment s, bool handwritten, int max,
                struct choice *out)
{
    struct choice defaults[IMPLS_MAX];
    int served = 0;
    bool alone = t->precision != 0 && segment_is_attention(s); /* no other one stands for it */
    handwritten = handwritten && (alone || any_serves(t, s, true));
    for (int i = 0; i < impl_count; i++)
        if (serves(&impls[i], t, s, handwritten)) {
            defaults[served] = default_of(&impls[i], t, s);
            if (served < max)
                out[served] = defaults[served];
            served++;
        }
    int count = served;
    for (int i = 0; i < served; i++) {
        struct choice c = begin_with(defaults[i].impl, t, s);
        const char *why;
        do
            if (!choice_equal(&c, &defaults[i]) && choice_applicable(&c, t, &why) && count++ < max)
                out[count - 1] = c;
        while (schedule_next(c.impl, &c.schedule));
    }
    return count;
}

int plan_check(const struct build_target *t, struct plan p, struct status *st)
{
    struct segment segments[OP_COUNT];
    struct choice c;
    int count = plan_segments(p, segments), i = 0;
    while (i < count && choices_for(t, segments[i], p.handwritten, 1, &c) > 0)
        i++;
    if (i == count)
        return 0;
    SCOPED_BUF precision = BUF_INIT;
    precision_text(t->precision, dtypes[t->dtype].name, &precision);
    return status_set(
        st, STATUS_UNFIT,
        "plan %u has no kernel for operators %d-%d where the precision is %s; 'default' "
        "names a plan that has",
        plan_value(p), segments[i].first, segments[i].last, precision.ptr);
}

static double default_us(const struct build_target *t, struct segment s)
{
    struct choice c;
    return choices_for(t, s, false, 1, &c) > 0 ? choice_expected_us(&c, t->workload) : NAN;
}

bool plan_expected(const struct build_target *t, struct plan *out)
{
    double least[OP_COUNT + 1] = {0}; /* of the operators before this one */
    uint16_t fused[OP_COUNT + 1] = {0};
    for (int end = 1; end <= OP_COUNT; end++) {
        least[end] = INFINITY;
        for (int first = 0; first < end; first++) {
            double us =
                least[first] + default_us(t, (struct segment){(int8_t)first, (int8_t)(end - 1)});
            if (!(us < least[end]))
                continue;
            least[end] = us;
            fused[end] = (uint16_t)(fused[first] | ((1U << (end - 1)) - (1U << first)));
        }
    }
    *out = plan_of(fused[OP_COUNT], false);
    return least[OP_COUNT] < INFINITY;
}

/* A stored schedule must have every knob: another version of the program wrote one that
 * lacks any. */
static bool is_written_so(const struct choice *c, const char *schedule)
{
    SCOPED_BUF text = BUF_INIT;
    schedule_text(c->impl, &c->schedule, &text);
    return strcmp(text.ptr, schedule) == 0;
}

int choice_parse(enum target_kind target, const struct chain *chain, struct segment s,
                 const char *impl, const char *schedule, struct choice *out, struct status *st)
{
    struct choice c = {.chain = chain, .segment = s, .impl = impl_find(target, impl)};
    *out = (struct choice){.impl = NULL};
    if (s.first < 0 || s.first > s.last || s.last >= OP_COUNT)
        return status_set(st, STATUS_USAGE, "operators %d-%d are not a segment", s.first, s.last);
    if (c.impl == NULL)
        return status_set(st, STATUS_NOT_FOUND, "target %s has no implementation '%s'",
                          target_names[target], impl);
    if (schedule_parse(c.impl, schedule, &c.schedule, st) != 0)
        return -1;
    if (!is_written_so(&c, schedule))
        return status_set(st, STATUS_USAGE, "'%s' does not give all knobs of %s in order", schedule,
                          impl);
    *out = c;
    return 0;
}
