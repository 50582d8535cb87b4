#include "codegen/codegen_int.h"

#include <math.h>
#include <string.h>

/* The first choice that is applicable; false if none is. */
static bool first_choice(const struct impl *impl, const struct build_target *t, struct segment s,
                         struct choice *out)
{
    const char *why;
    *out = (struct choice){.chain = t->chain, .segment = s, .impl = impl};
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

double choice_expected_us(const struct choice *c, const struct workload *w)
{
    return c->impl->expected_us != NULL ? c->impl->expected_us(c, w) : NAN;
}

static struct choice default_of(const struct impl *impl, const struct build_target *t,
                                struct segment s)
{
    struct choice c = {.chain = t->chain, .segment = s, .impl = impl}, best;
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
    handwritten = handwritten && any_serves(t, s, true);
    for (int i = 0; i < impl_count; i++)
        if (serves(&impls[i], t, s, handwritten)) {
            defaults[served] = default_of(&impls[i], t, s);
            if (served < max)
                out[served] = defaults[served];
            served++;
        }
    int count = served;
    for (int i = 0; i < served; i++) {
        struct choice c = {.chain = t->chain, .segment = s, .impl = defaults[i].impl};
        const char *why;
        do
            if (!choice_equal(&c, &defaults[i]) && choice_applicable(&c, t, &why) && count++ < max)
                out[count - 1] = c;
        while (schedule_next(c.impl, &c.schedule));
    }
    return count;
}

bool choice_equal(const struct choice *a, const struct choice *b)
{
    return a->segment.first == b->segment.first && a->segment.last == b->segment.last &&
           a->impl == b->impl && memcmp(&a->schedule, &b->schedule, sizeof(a->schedule)) == 0;
}

bool same_choices(const struct candidate *a, const struct candidate *b)
{
    bool same = plan_equal(a->plan, b->plan) && a->count == b->count;
    for (int i = 0; i < a->count && same; i++)
        same = choice_equal(&a->choices[i], &b->choices[i]);
    return same;
}

/* A stored schedule must have every knob: another version of the program wrote one that
 * lacks any. */
static bool is_written_so(const struct choice *c, const char *schedule)
{
    struct buf text;
    buf_init(&text);
    schedule_text(c->impl, &c->schedule, &text);
    bool same = strcmp(text.ptr, schedule) == 0;
    buf_release(&text);
    return same;
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

int choice_value(const struct choice *c, int knob)
{
    return c->impl->knobs[knob].values[c->schedule.pick[knob]];
}

int choice_knob(const struct choice *c, const char *knob)
{
    int k = knob_find(c->impl, knob, strlen(knob));
    return k < 0 ? 0 : choice_value(c, k);
}

bool choice_turns(const struct choice *c, int knob)
{
    return c->schedule.pick[knob] != 0;
}

uint32_t choice_tensors(const struct choice *c)
{
    return c->impl->tensors != NULL ? c->impl->tensors(c) : SET_OF(TENSOR_OF(c->segment.last));
}

static bool has_function(const struct impl *impl, const struct op *op)
{
    return (impl->kinds >> op->kind & 1) != 0 &&
           (impl->kernels & op_functions[op->function].kernels) != 0;
}

/* Whether every weight that its function can have is there, or can be left out. */
static bool has_weights(const struct impl *impl, const struct op *op)
{
    for (int role = 0; role < ROLE_COUNT; role++)
        if (op->weight[role] == WEIGHT_NONE &&
            (op_functions[op->function].roles & ~impl->without & 1u << role) != 0)
            return false;
    return true;
}

bool choice_applicable(const struct choice *c, const struct build_target *t, const char **why)
{
    if (!c->impl->applicable(c, t, why))
        return false;
    for (int i = c->segment.first; i <= c->segment.last; i++) {
        const struct op *op = &c->chain->ops[i];
        if (!has_function(c->impl, op))
            return inapplicable(why, "it has no kernel of an operator's function");
        if (!has_weights(c->impl, op))
            return inapplicable(why, "its kernel needs a weight that an operator lacks");
    }
    return (segment_outputs(c->chain, c->segment) & ~choice_tensors(c)) == 0 ||
           inapplicable(why, "it does not store every tensor that others read");
}

void choice_emit(const struct choice *c, const struct build_target *t, struct buf *out)
{
    c->impl->emit(c, t, out);
}

void choice_launch(const struct choice *c, const struct workload *w, struct cuda_launch *out)
{
    c->impl->launch(c, w, out);
}

void choice_symbol(const struct choice *c, struct buf *out)
{
    buf_adds(out, "segment_");
    if (c->impl->add_name != NULL) {
        c->impl->add_name(c, out);
    } else {
        buf_addf(out, "%02d_%02d_", c->segment.first, c->segment.last);
        add_op_names(c->chain, c->segment.first, c->segment.last, "_", out);
    }
    if (c->impl != impl_find(c->impl->target, "generated"))
        buf_addf(out, "_%s", c->impl->name);
    for (int k = 0; k < c->impl->knob_count; k++) {
        const struct knob *knob = &c->impl->knobs[k];
        if (knob->compile_time && choice_turns(c, k)) {
            int pick = c->schedule.pick[k];
            buf_addf(out, "_%s", knob->labels[pick] != NULL ? "" : knob->name);
            knob_label(knob, pick, out);
        }
    }
}
