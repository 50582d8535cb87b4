/* Why a plan takes the time that it takes: its kernels beside the roofline (Williams, Waterman,
 * Patterson 2009), and its neighbours. */
#include "search/search_int.h"

#include <math.h>
#include <string.h>

const char *const time_source_names[TIME_SOURCE_COUNT] = {
    [TIME_UNKNOWN] = "unknown",   [TIME_PREDICTED] = "predicted", [TIME_SEARCHED] = "searched",
    [TIME_COMPARED] = "compared", [TIME_TRIED] = "tried",
};

static const struct interval unknown_ms = {NAN, NAN, NAN};

/* ---- kernels --------------------------------------------------------------------------------- */

/* The stored choice of a slot; the default one if there is none that this version knows. */
static struct choice choice_of_slot(const struct slot_record *known,
                                    const struct build_target *target, const struct choice *usual)
{
    struct choice c = *usual;
    struct status other_version = STATUS_INIT;
    if (known->impl != NULL && choice_parse(target->kind, usual->segment, known->impl,
                                            known->schedule, &c, &other_version) != 0)
        c = *usual;
    return c;
}

static void explain_kernel(const struct workload *w, const struct limits *rates,
                           struct explained_kernel *k)
{
    struct segment s = k->choice.segment;
    uint16_t stored = choice_tensors(&k->choice), own = 0;
    for (int op = s.first; op <= s.last; op++)
        own |= (uint16_t)(1u << TENSOR_OF(op));
    k->flops = segment_flops(s, w);
    k->bytes = segment_bytes(s, w);
    double compute = 1e6 * k->flops / rates->flops_per_s;
    double memory = 1e6 * k->bytes / rates->bytes_per_s;
    k->memory_bound = memory >= compute;
    k->least_us = isnan(compute) || isnan(memory) ? NAN : fmax(compute, memory);
    k->reads = segment_inputs(s);
    k->writes = segment_outputs(s);
    k->passes = stored & (uint16_t)~k->writes;
    k->keeps = own & (uint16_t)~stored;
}

/* The choices of a plan and what they took alone. */
static void choose_kernels(const struct slot_record slots[SLOT_COUNT],
                           const struct build_target *target, struct explanation *out)
{
    struct candidate usual;
    int at[OP_COUNT];
    candidate_default(target, out->plan, &usual);
    plan_slots(out->plan, at);
    out->count = usual.count;
    for (int i = 0; i < out->count; i++) {
        const struct slot_record *known = &slots[at[i]];
        out->kernels[i] =
            (struct explained_kernel){.choice = choice_of_slot(known, target, &usual.choices[i]),
                                      .us = known->impl != NULL ? known->us : unknown_ms};
    }
}

struct reading {
    enum target_kind target;
    struct explanation *out;
};

/* Notes what a kernel took alone. */
static int read_alone(void *ctx, const struct db_trial *row)
{
    const struct reading *r = ctx;
    const struct db_choice *from = &row->choices[0];
    struct choice c;
    struct status other_version = STATUS_INIT;
    if (row->status != TRIAL_OK ||
        choice_parse(r->target, from->segment, from->impl, from->schedule, &c, &other_version) != 0)
        return 0;
    for (int i = 0; i < r->out->count; i++)
        if (choice_equal(&r->out->kernels[i].choice, &c))
            r->out->kernels[i].us = row_us(row);
    return 0;
}

/* Takes the choices with which the plan ran in a search's newest comparison, if it was there. */
static int take_fitted(struct db *db, int64_t study, enum target_kind target,
                       struct explanation *out, struct status *st)
{
    struct reading r = {target, out};
    struct fitted_plans fitted;
    int result = fitted_read(db, study, target, &fitted, st);
    const struct candidate *c = fitted_find(&fitted, out->plan);
    for (int i = 0; result == 0 && c != NULL && i < out->count; i++)
        out->kernels[i] = (struct explained_kernel){.choice = c->choices[i], .us = unknown_ms};
    if (result == 0 && c != NULL)
        result = db_trials(db, study, DB_TRIAL_SEGMENT, read_alone, &r, st);
    fitted_release(&fitted);
    return result;
}

static void explain_kernels(const struct workload *w, struct explanation *out)
{
    for (int i = 0; i < out->count; i++) {
        explain_kernel(w, &out->rates, &out->kernels[i]);
        out->sum_us += out->kernels[i].us.median;
        out->least_us += out->kernels[i].least_us;
    }
}

/* ---- the plan -------------------------------------------------------------------------------- */

int explain_plan(struct db *db, int64_t study, const struct build_target *target,
                 const struct workload *w, struct plan p, struct explanation *out,
                 struct status *st)
{
    struct slot_record slots[SLOT_COUNT];
    int result = 0;
    *out = (struct explanation){.plan = p, .ms = unknown_ms, .rates = {NAN, NAN}};
    memset(slots, 0, sizeof(slots));
    if (db != NULL && (slot_records_read(db, study, target->kind, slots, st) != 0 ||
                       study_rates(db, study, slots, w, &out->rates, &out->device_rates, st) != 0))
        result = -1;
    if (result == 0)
        choose_kernels(slots, target, out);
    if (result == 0 && db != NULL)
        result = take_fitted(db, study, target->kind, out, st);
    if (result == 0) {
        explain_kernels(w, out);
        result = explain_neighbours(db, study, slots, w->layers, out, st);
    }
    slot_records_release(slots);
    return result;
}
