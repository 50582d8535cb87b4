/* A Gaussian posterior over the times of segments in a plan.
 *
 * A plan takes the sum of what its slots take in it.  A slot takes its time alone, times a factor
 * that is the same for all slots and one of its own, and a gap before its launch.  A slot that was
 * not timed alone takes what its operators take alone, changed by each boundary that it fuses and
 * by a term of its own.  All these are parameters with independent normal priors, and a plan's
 * measured time is their sum with a normal error.  So the posterior is normal too: its precision is
 * the prior's and the measured plans', and one Cholesky factor gives means and variances.
 *
 * Times are kept in units of the mean measured time. */
#include "model/model_int.h"

/* Standard deviations of the priors.  The deviations of the factor of all slots and of the gap are
 * wide: a few plans tell them.  A slot that was not timed is doubtful by a share of its expected
 * time. */
static const double common_sd = 0.15, gap_sd = 0.01, level_sd = 0.5, untimed_sd = 0.25;

/* How far a boundary that is fused moves an untimed slot, in units of the mean plan. */
static const double boundary_sd = 0.08;

/* A slot's own factor, and a plan's error, have unknown standard deviations: the pair is taken of
 * these under which the measured plans are most likely. */
static const double own_sds[] = {0.005, 0.01, 0.02, 0.04, 0.08, 0.16};
static const double misfits[] = {0.002, 0.004, 0.008, 0.016, 0.032, 0.064};
enum { OWN_FIRST = 2, MISFIT_FIRST = 1 }; /* where the search for the pair starts */

/* Parameters, before the parameters of slots. */
enum { COMMON, GAP, LEVEL, BOUNDARIES, SLOTS = BOUNDARIES + BOUNDARY_COUNT };
enum { PARAMETERS_MAX = SLOTS + SLOT_COUNT, TERMS_MAX = 4 + BOUNDARY_COUNT };

struct gaussian {
    double layers;               /* of a plan, about */
    double unit;                 /* ms */
    double prior[SLOT_COUNT];    /* expected without any plan, in units */
    bool timed[SLOT_COUNT];      /* it has a time alone */
    int own[SLOT_COUNT];         /* the parameter of a slot; -1: no measured plan has it */
    double own_sd, misfit;       /* of the priors above */
    int count;                   /* parameters */
    double sd[PARAMETERS_MAX];   /* of the priors */
    double mean[PARAMETERS_MAX]; /* of the posterior */
    double factor[PARAMETERS_MAX * PARAMETERS_MAX]; /* of its precision: lower triangle */
};

/* What a slot takes in a plan is its prior and a weighted sum of parameters. */
struct term {
    int parameter;
    double weight;
};

static int terms_of(const struct gaussian *g, int slot, struct term out[TERMS_MAX])
{
    struct segment s = slot_segment(slot);
    int n = 0;
    out[n++] = (struct term){GAP, 1};
    if (g->timed[slot]) {
        out[n++] = (struct term){COMMON, g->prior[slot]};
    } else {
        out[n++] = (struct term){LEVEL, (s.last - s.first + 1) / (double)OP_COUNT};
        for (int b = s.first; b < s.last; b++)
            out[n++] = (struct term){BOUNDARIES + b, 1};
    }
    if (g->own[slot] >= 0)
        out[n++] = (struct term){g->own[slot], g->prior[slot]};
    return n;
}

/* ---- the prior ------------------------------------------------------------------------------- */

static bool is_time(double ms)
{
    return isfinite(ms) && ms > 0;
}

/* Timed operators take their time alone.  Operators that were not timed share the rest of the mean
 * plan's time. */
static void operator_times(const struct gaussian *g, double op[OP_COUNT])
{
    double known = 0;
    int open = 0;
    for (int i = 0; i < OP_COUNT; i++) {
        int slot = slot_of((struct segment){(int8_t)i, (int8_t)i}, false);
        op[i] = g->timed[slot] ? g->prior[slot] : NAN;
        known += g->timed[slot] ? op[i] : 0;
        open += !g->timed[slot];
    }
    for (int i = 0; i < OP_COUNT; i++)
        if (isnan(op[i]))
            op[i] = fmax(1 - known, 0.1) / open;
}

static void set_prior(struct gaussian *g, const struct segment_times *alone)
{
    double op[OP_COUNT];
    for (int slot = 0; slot < SLOT_COUNT; slot++) {
        g->timed[slot] = alone != NULL && is_time(alone->ms[slot]);
        g->prior[slot] = g->timed[slot] ? g->layers * alone->ms[slot] / g->unit : 0;
    }
    operator_times(g, op);
    for (int slot = 0; slot < SLOT_COUNT; slot++) {
        struct segment s = slot_segment(slot);
        for (int i = s.first; i <= s.last && !g->timed[slot]; i++)
            g->prior[slot] += op[i];
    }
}

/* Gives each slot of a measured plan a parameter of its own. */
static void set_parameters(struct gaussian *g, const struct gaussian_data *d)
{
    g->count = SLOTS;
    for (int slot = 0; slot < SLOT_COUNT; slot++)
        g->own[slot] = -1;
    for (int i = 0; i < d->count; i++) {
        int slots[OP_COUNT], n = plan_slots(d->plans[i], slots);
        for (int k = 0; k < n; k++)
            if (g->own[slots[k]] < 0)
                g->own[slots[k]] = g->count++;
    }
}

static double own_sd_of(const struct gaussian *g, int slot)
{
    return g->timed[slot] ? g->own_sd : untimed_sd;
}

static void set_sds(struct gaussian *g)
{
    g->sd[COMMON] = common_sd;
    g->sd[GAP] = gap_sd;
    g->sd[LEVEL] = level_sd;
    for (int b = 0; b < BOUNDARY_COUNT; b++)
        g->sd[BOUNDARIES + b] = boundary_sd;
    for (int slot = 0; slot < SLOT_COUNT; slot++)
        if (g->own[slot] >= 0)
            g->sd[g->own[slot]] = own_sd_of(g, slot);
}

/* ---- the posterior --------------------------------------------------------------------------- */

/* A plan's time less its prior, as a sparse sum of parameters. */
struct row {
    int count, parameter[OP_COUNT + SLOTS];
    double weight[OP_COUNT + SLOTS], rest;
};

static void make_row(const struct gaussian *g, struct plan p, struct row *out)
{
    double dense[PARAMETERS_MAX] = {0};
    int slots[OP_COUNT], n = plan_slots(p, slots);
    out->rest = 0;
    for (int k = 0; k < n; k++) {
        struct term terms[TERMS_MAX];
        int count = terms_of(g, slots[k], terms);
        out->rest -= g->prior[slots[k]];
        for (int i = 0; i < count; i++)
            dense[terms[i].parameter] += terms[i].weight;
    }
    out->count = 0;
    for (int i = 0; i < g->count; i++)
        if (dense[i] != 0) {
            out->parameter[out->count] = i;
            out->weight[out->count++] = dense[i];
        }
}

/* Computes the posterior under g->own_sd and g->misfit.  Returns the logarithm of the likelihood of
 * the measured plans, up to a constant. */
static double condition(struct gaussian *g, const struct row *rows, const struct gaussian_data *d)
{
    int n = g->count;
    double log_likelihood = 0, column[PARAMETERS_MAX];
    set_sds(g);
    memset(g->factor, 0, (size_t)n * (size_t)n * sizeof(*g->factor));
    memset(g->mean, 0, sizeof(g->mean));
    for (int i = 0; i < n; i++) {
        g->factor[i * n + i] = 1 / (g->sd[i] * g->sd[i]);
        log_likelihood -= log(g->sd[i]);
    }
    for (int i = 0; i < d->count; i++) {
        const struct row *r = &rows[i];
        double y = d->ms[i] / g->unit, noise = d->noise != NULL ? d->noise[i] : 0;
        double rest = y + r->rest, variance = y * y * (g->misfit * g->misfit + noise * noise);
        for (int a = 0; a < r->count; a++) {
            double weight = r->weight[a] / variance;
            g->mean[r->parameter[a]] += weight * rest;
            for (int b = 0; b <= a; b++)
                g->factor[r->parameter[a] * n + r->parameter[b]] += weight * r->weight[b];
        }
        log_likelihood -= 0.5 * (log(variance) + rest * rest / variance);
    }
    cholesky(g->factor, column, n); /* the sum of a diagonal above 0 and squares has a factor */
    solve_lower(g->factor, n, g->mean);
    for (int i = 0; i < n; i++)
        log_likelihood += 0.5 * g->mean[i] * g->mean[i] - log(g->factor[i * n + i]);
    solve_upper(g->factor, n, g->mean);
    return log_likelihood;
}

/* ---- fitting --------------------------------------------------------------------------------- */

struct climb {
    struct gaussian *g;
    const struct row *rows;
    const struct gaussian_data *d;
    double known[ARRAY_LEN(own_sds)][ARRAY_LEN(misfits)]; /* likelihoods; NaN: not computed */
};

static double likelihood(struct climb *c, int own, int misfit)
{
    if (own < 0 || misfit < 0 || own >= (int)ARRAY_LEN(own_sds) ||
        misfit >= (int)ARRAY_LEN(misfits))
        return -INFINITY;
    if (isnan(c->known[own][misfit])) {
        c->g->own_sd = own_sds[own];
        c->g->misfit = misfits[misfit];
        c->known[own][misfit] = condition(c->g, c->rows, c->d);
    }
    return c->known[own][misfit];
}

/* Climbs from one pair to the likeliest of its neighbours until none is likelier. */
static void choose_sds(struct climb *c)
{
    static const int steps[][2] = {{1, 0}, {-1, 0}, {0, 1}, {0, -1}};
    int own = OWN_FIRST, misfit = MISFIT_FIRST;
    for (size_t i = 0; i < ARRAY_LEN(own_sds); i++)
        for (size_t k = 0; k < ARRAY_LEN(misfits); k++)
            c->known[i][k] = NAN;
    for (bool moved = true; moved;) {
        int best_own = own, best_misfit = misfit;
        for (size_t i = 0; i < ARRAY_LEN(steps); i++)
            if (likelihood(c, own + steps[i][0], misfit + steps[i][1]) >
                likelihood(c, best_own, best_misfit)) {
                best_own = own + steps[i][0];
                best_misfit = misfit + steps[i][1];
            }
        moved = own != best_own || misfit != best_misfit;
        own = best_own;
        misfit = best_misfit;
    }
    c->g->own_sd = own_sds[own];
    c->g->misfit = misfits[misfit];
}

static double mean_ms(const struct gaussian_data *d)
{
    double sum = 0;
    for (int i = 0; i < d->count; i++)
        sum += d->ms[i];
    return sum / d->count;
}

/* A plan has several layers, and a time alone is of one launch: the usual ratio of a plan's time to
 * the sum of its slots' times alone; 1 if no plan has such a sum. */
static double layers_of(const struct gaussian_data *d, const struct segment_times *alone)
{
    SCOPED double *ratios = mem_alloc((size_t)d->count + 1, sizeof(*ratios));
    size_t n = 0;
    for (int i = 0; i < d->count; i++) {
        double sum = additive_ms(alone, d->plans[i]);
        if (is_time(sum))
            ratios[n++] = d->ms[i] / sum;
    }
    return n > 0 ? stats_median(ratios, n).median : 1;
}

/* Without plans, times are in units of that of all operators alone. */
static void set_units(struct gaussian *g, const struct gaussian_data *d,
                      const struct segment_times *alone)
{
    double unfused = alone != NULL ? additive_ms(alone, plan_of(0, false)) : NAN;
    g->unit = d->count > 0 ? mean_ms(d) : is_time(unfused) ? unfused : 1;
    g->layers = alone != NULL ? layers_of(d, alone) : 1;
}

struct gaussian *gaussian_fit(const struct gaussian_data *d, const struct segment_times *alone)
{
    struct gaussian *g = mem_alloc(1, sizeof(*g));
    SCOPED struct row *rows = mem_alloc((size_t)d->count + 1, sizeof(*rows));
    struct climb climb = {.g = g, .rows = rows, .d = d};
    set_units(g, d, alone);
    set_prior(g, alone);
    set_parameters(g, d);
    for (int i = 0; i < d->count; i++)
        make_row(g, d->plans[i], &rows[i]);
    choose_sds(&climb);
    condition(g, rows, d);
    return g;
}

/* ---- what it says ---------------------------------------------------------------------------- */

void gaussian_times(const struct gaussian *g, struct segment_times *out)
{
    for (int slot = 0; slot < SLOT_COUNT; slot++) {
        struct term terms[TERMS_MAX];
        int count = terms_of(g, slot, terms);
        double sum = g->prior[slot];
        for (int i = 0; i < count; i++)
            sum += terms[i].weight * g->mean[terms[i].parameter];
        out->ms[slot] = g->unit * sum;
    }
}

double gaussian_sd(const struct gaussian *g, struct plan p)
{
    struct row row;
    double x[PARAMETERS_MAX] = {0}, variance = 0;
    int slots[OP_COUNT], n = plan_slots(p, slots);
    make_row(g, p, &row);
    for (int i = 0; i < row.count; i++)
        x[row.parameter[i]] = row.weight[i];
    solve_lower(g->factor, g->count, x);
    for (int i = 0; i < g->count; i++)
        variance += x[i] * x[i];
    for (int k = 0; k < n; k++)
        if (g->own[slots[k]] < 0)
            variance += pow(g->prior[slots[k]] * own_sd_of(g, slots[k]), 2);
    return g->unit * sqrt(variance);
}

double gaussian_misfit(const struct gaussian *g)
{
    return g->misfit;
}
