/* What earlier searches of a study leave to the next one. */
#include "search/tuner_int.h"

#include <inttypes.h>
#include <jansson.h>

const char *const rigor_names[RIGOR_COUNT] = {
    [RIGOR_MEASURE] = "measure", [RIGOR_EXHAUSTIVE] = "exhaustive"};

struct reader {
    const struct tune_options *o;
    unsigned precision;
    struct past *out;
};

bool search_chose_plans(const struct db_search *s, unsigned precision)
{
    json_auto_t *options = json_loads(s->options, 0, NULL);
    json_int_t found = json_integer_value(json_object_get(options, "precision"));
    return strcmp(s->strategy, "bench") != 0 && strcmp(s->strategy, STRATEGY_AGAIN) != 0 &&
           strcmp(s->strategy, "precisions") != 0 && found == (json_int_t)precision;
}

/* Whether a search that its time limit ended had at least as much time for the same work.  An
 * exhaustive search is never done before its space is. */
static bool spent_our_time(const struct tune_options *o, const struct db_search *s)
{
    const struct search_options *ours = &o->search;
    if (o->rigor != RIGOR_MEASURE || ours->time_limit_s <= 0 ||
        strcmp(s->stopped_by, search_stop_names[STOP_TIME]) != 0 ||
        strcmp(s->strategy, ours->strategy->name) != 0)
        return false;
    json_auto_t *options = json_loads(s->options, 0, NULL);
    int lo = -1, hi = -1;
    double limit_s = 0, quantile = 0;
    json_int_t seed = 0;
    bool known = json_unpack(options, "{s:[ii], s:F, s:F, s:I}", "space", &lo, &hi, "time_limit_s",
                             &limit_s, "quantile", &quantile, "seed", &seed) == 0;
    return known && lo == (int)ours->space_lo && hi == (int)ours->space_hi &&
           limit_s >= ours->time_limit_s && quantile == ours->quantile &&
           (uint64_t)seed == ours->seed;
}

void past_options(const struct tune_options *o, unsigned precision, struct buf *out)
{
    const struct search_options *s = &o->search;
    buf_adds(out, "{");
    if (precision != 0)
        buf_addf(out, "\"precision\": %u, ", precision);
    buf_addf(out,
             "\"rigor\": \"%s\", \"space\": [%u, %u], \"budget\": %d, \"seed\": %" PRIu64
             ", \"time_limit_s\": ",
             rigor_names[o->rigor], s->space_lo, s->space_hi, s->budget, s->seed);
    number_add(s->time_limit_s, out);
    buf_adds(out, ", \"quantile\": ");
    number_add(s->quantile, out);
    buf_adds(out, ", \"baselines\": [");
    baselines_text(&o->baselines, out);
    buf_adds(out, "]}");
}

static void read_search(void *ctx, const struct db_search *s)
{
    const struct reader *r = ctx;
    if (!search_chose_plans(s, r->precision))
        return;
    r->out->searched = true;
    r->out->time_spent |= spent_our_time(r->o, s);
}

int past_read(struct db *db, int64_t study, const struct tune_options *o, unsigned precision,
              struct past *out, struct status *st)
{
    struct reader r = {.o = o, .precision = precision, .out = out};
    *out = (struct past){.searched = false};
    return db_searches(db, study, read_search, &r, st);
}
