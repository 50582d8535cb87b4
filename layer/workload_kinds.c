/* Layers of two kinds. */
#include "layer/layer.h"

int workload_add_local(struct workload *w, const char *mask, double rope_theta, int every,
                       struct status *st)
{
    struct mask_spec spec;
    if (mask_parse(mask, &spec, st) != 0)
        return -1;
    if (w->local == NULL)
        w->local = mem_alloc(1, sizeof(*w->local));
    else
        workload_release(w->local);
    *w->local = (struct workload){.mask_spec = spec, .rope_theta = rope_theta};
    w->every = every;
    return 0;
}

int layer_kind(const struct workload *w, int layer)
{
    return w->local != NULL && layer % w->every != 0;
}

const struct workload *workload_of_kind(const struct workload *w, int kind)
{
    return kind == 0 ? w : w->local;
}

const struct workload *workload_of_layer(const struct workload *w, int layer)
{
    return workload_of_kind(w, layer_kind(w, layer));
}

bool segment_has_kinds(const struct workload *w, struct segment s)
{
    const struct chain *c = w->chain;
    for (int op = s.first; op <= s.last && w->local != NULL; op++) {
        int table = c->ops[op].weight[ROLE_TABLE];
        if (c->ops[op].layout == LAYOUT_SCORES || c->ops[op].kind == KIND_CONTEXT ||
            (table != WEIGHT_NONE && c->weights[table].draw == WEIGHT_ROTATION))
            return true;
    }
    return false;
}

int workload_global_layers(const struct workload *w, int layers)
{
    return w->local != NULL ? (layers + w->every - 1) / w->every : layers;
}

double workload_mean(const struct workload *w, const double *of_kind)
{
    if (w->local == NULL)
        return of_kind[0];
    int global = workload_global_layers(w, w->layers);
    return (global * of_kind[0] + (w->layers - global) * of_kind[1]) / w->layers;
}

double workload_pairs(const struct workload *w)
{
    double pairs[KINDS_MAX];
    for (int kind = 0; kind < workload_kinds(w); kind++)
        pairs[kind] = (double)workload_of_kind(w, kind)->blocks.kept;
    return workload_mean(w, pairs);
}
