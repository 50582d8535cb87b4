/* The models alone: half of a batch are the plans that the regressor predicts to be fastest, half
 * those that the classifier is surest of. */
#include "search/search_int.h"

#include <math.h>
#include <stdlib.h>

/* Plans drawn uniformly, before the models learn. */
enum { LEARN_FROM = 12 };

static void add_smallest(const struct strategy_context *c, double *key, struct proposal *out)
{
    int best = -1;
    for (int i = 0; i < c->space_count; i++)
        if (!isnan(key[i]) && (best < 0 || key[i] < key[best]) && !proposal_has(out, c->space[i]))
            best = i;
    if (best >= 0)
        out->plans[out->count++] = c->space[best];
}

static int propose_by_models(const struct strategy_context *c, const struct model_data *data,
                             int max, struct proposal *out, struct status *st)
{
    struct model *model = NULL;
    double *ms = mem_alloc((size_t)c->space_count, sizeof(*ms));
    double *slow = mem_alloc((size_t)c->space_count, sizeof(*slow));
    const struct model_options options = {
        .features = FEATURES_PLAN, .seed = c->seed, .quantile = c->quantile};
    int result = model_train(&options, data, c->segments, &model, st);
    if (result == 0)
        result = model_predict(model, c->space, c->space_count, c->segments, ms, slow, st);
    for (int i = 0; i < c->space_count && result == 0; i++) {
        slow[i] = -slow[i]; /* the surest of high performance is the smallest */
        out->expected_ms = i == 0 ? ms[i] : fmin(out->expected_ms, ms[i]);
    }
    int count = max < c->space_count ? max : c->space_count;
    while (result == 0 && out->count < count)
        add_smallest(c, out->count % 2 == 0 ? ms : slow, out);
    model_free(model);
    free(ms);
    free(slow);
    return result;
}

int xgb_propose(const struct strategy_context *c, int max, struct proposal *out, struct status *st)
{
    struct model_data data = training_of(c->history);
    int result = 0;
    *out = (struct proposal){.expected_ms = NAN};
    if (data.count >= LEARN_FROM)
        result = propose_by_models(c, &data, max, out, st);
    else
        proposal_fill(c, max, out);
    model_data_release(&data);
    return result;
}
