/* Why a plan takes the time that it takes: its kernels beside the roofline, and its neighbours. */
#include "search/study_int.h"

const char *const time_source_names[TIME_SOURCE_COUNT] = {
    [TIME_UNKNOWN] = "unknown",   [TIME_PREDICTED] = "predicted", [TIME_SEARCHED] = "searched",
    [TIME_COMPARED] = "compared", [TIME_TRIED] = "tried",
};

/* ---- kernels --------------------------------------------------------------------------------- */

static void explain_kernel(const struct workload *w, const struct limits *rates,
                           struct explained_kernel *k)
{
    struct segment s = k->choice.segment;
    uint32_t stored = choice_tensors(&k->choice), own = 0;
    for (int op = s.first; op <= s.last; op++)
        own |= SET_OF(TENSOR_OF(op));
    k->work = segment_work(s, w, k->choice.schedule.precision);
    k->least_us = least_us(&k->work, rates, &k->memory_bound);
    k->reads = segment_inputs(w->chain, s);
    k->writes = segment_outputs(w->chain, s);
    k->passes = stored & ~k->writes;
    k->keeps = own & ~stored;
}

double explained_bytes(const struct explained_kernel *k, const struct workload *w, int tensor,
                       bool written)
{
    const double bytes = tensor_bytes(tensor, w);
    struct e4m3_use use;
    choice_e4m3(&k->choice, &use);
    if (written && use.out >= 0 && tensor == TENSOR_OF(k->choice.segment.last))
        return use.both ? 1.5 * bytes : bytes / 2;
    bool operand =
        !written && use.in >= 0 && w->chain->ops[chain_gemm(w->chain, use.in)].input == tensor;
    return operand ? bytes / 2 : bytes;
}

double explained_weight_bytes(const struct explained_kernel *k, const struct workload *w, int id)
{
    struct e4m3_use use;
    choice_e4m3(&k->choice, &use);
    bool operand =
        use.in >= 0 && w->chain->ops[chain_gemm(w->chain, use.in)].weight[ROLE_MATRIX] == id;
    return operand ? weight_bytes(id, w) / 2 : weight_bytes(id, w);
}

struct reading {
    enum target_kind target;
    struct candidate candidate;
    struct explanation *out;
};

/* Notes what a kernel took alone. */
static int read_alone(void *ctx, const struct db_trial *row)
{
    const struct reading *r = ctx;
    int i = candidate_find(&r->candidate, r->target, &row->choices[0]);
    if (i >= 0 && row->status == TRIAL_OK)
        r->out->kernels[i].us = row_us(row);
    return 0;
}

/* How the plan runs, and what its kernels took alone. */
static int choose_kernels(struct db *db, int64_t study, const struct build_target *target,
                          struct explanation *out, struct status *st)
{
    const struct choice_source from = {.db = db, .study = study, .target = target};
    struct reading r = {.target = target->kind, .out = out};
    if (study_candidate(&from, out->plan, &r.candidate, st) != 0)
        return -1;
    out->count = r.candidate.count;
    for (int i = 0; i < out->count; i++)
        out->kernels[i] = (struct explained_kernel){
            .choice = r.candidate.choices[i], .us = NO_INTERVAL, .plain_us = NAN};
    return db != NULL ? db_trials(db, study, DB_TRIAL_SEGMENT, read_alone, &r, st) : 0;
}

/* What the segments of kernels with e4m3 take without it. */
static int read_plain(struct db *db, int64_t study, const struct build_target *target,
                      struct explanation *out, struct status *st)
{
    struct segment_times times;
    struct build_target plain = *target;
    plain.precision = 0;
    if (db == NULL || target->precision == 0)
        return 0;
    if (study_segments(db, study, &plain, &times, st) != 0)
        return -1;
    for (int i = 0; i < out->count; i++) {
        const struct choice *c = &out->kernels[i].choice;
        if (c->schedule.precision != 0)
            out->kernels[i].plain_us = 1e3 * times.ms[slot_of(c->segment, c->impl->handwritten)];
    }
    return 0;
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
    struct segment_times times;
    *out = (struct explanation){.plan = p, .ms = NO_INTERVAL, .rates = {NAN, NAN}};
    for (int i = 0; i < SLOT_COUNT; i++)
        times.ms[i] = NAN;
    if (db != NULL && (study_segments(db, study, target, &times, st) != 0 ||
                       study_rates(db, study, &times, w, target->precision, &out->rates,
                                   &out->device_rates, st) != 0))
        return -1;
    if ((target->precision != 0 && plan_check(target, p, st) != 0) ||
        choose_kernels(db, study, target, out, st) != 0 ||
        read_plain(db, study, target, out, st) != 0)
        return -1;
    explain_kernels(w, out);
    return explain_neighbours(db, study, &times, w->layers, out, st);
}
