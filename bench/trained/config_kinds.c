#include "bench/trained/config_int.h"

/* Those of transformers' ModernBertConfig, for files that lack them. */
enum { LOCAL_ATTENTION = 128, GLOBAL_EVERY = 3 };
#define GLOBAL_THETA 160000.0
#define LOCAL_THETA  10000.0

static const char *const every_names[NAMES_MOST] = {"global_attn_every_n_layers"};
static const char *const width_names[NAMES_MOST] = {"local_attention"};

static bool is_global(const json_t *types, size_t layer)
{
    const char *type = json_string_value(json_array_get(types, layer));
    return type != NULL && strcmp(type, "full_attention") == 0;
}

/* From transformers 5 on layer_types lists the kind of each layer.  *every is 0 or 1 if all layers
 * are global. */
static int read_types(const struct config *c, int layers, int *every)
{
    const json_t *types = json_object_get(c->fields, "layer_types");
    size_t n = json_array_size(types), second = 1;
    if (!json_is_array(types))
        return config_size(c, every_names, GLOBAL_EVERY, every);
    if (n != (size_t)layers)
        return config_refuse(c, "'layer_types' has %d layers, and the model %d", (int)n, layers);
    while (second < n && !is_global(types, second))
        second++;
    for (size_t layer = 0; layer < n; layer++) {
        const char *type = json_string_value(json_array_get(types, layer));
        bool known =
            is_global(types, layer) || (type != NULL && strcmp(type, "sliding_attention") == 0);
        if (!known || is_global(types, layer) != (layer % second == 0))
            return config_refuse_field(c, "layer_types", types);
    }
    *every = second > 1 ? (int)second : 0;
    return 0;
}

/* From transformers 5 on rope_parameters has an object for each kind of layers. */
static int read_theta(const struct config *c, const char *kind, const char *old, double otherwise,
                      double *out)
{
    const json_t *all = json_object_get(c->fields, "rope_parameters");
    const json_t *parameters = json_object_get(all, kind);
    const char *type = json_string_value(json_object_get(parameters, "rope_type"));
    const json_t *theta = json_object_get(json_is_object(all) ? parameters : c->fields,
                                          json_is_object(all) ? "rope_theta" : old);
    if (json_is_object(all) &&
        (type == NULL || strcmp(type, "default") != 0 || json_object_size(parameters) != 2))
        return config_refuse_field(c, "rope_parameters", all);
    *out = theta == NULL ? otherwise : json_number_value(theta);
    return *out > 0 ? 0
                    : config_refuse(
                          c, "the base of rotary embeddings of '%s' is not a number above 0", kind);
}

int config_kinds(const struct config *c, struct model_config *out)
{
    int every = 0, width = 0;
    double global = 0, local = 0;
    if (read_types(c, out->layers, &every) != 0 ||
        config_size(c, width_names, LOCAL_ATTENTION, &width) != 0 ||
        read_theta(c, "full_attention", "global_rope_theta", GLOBAL_THETA, &global) != 0)
        return -1;
    if (every > 1 &&
        read_theta(c, "sliding_attention", "local_rope_theta", LOCAL_THETA, &local) != 0)
        return -1;
    out->rope_theta = global;
    if (every > 1) /* local_attention counts keys on both sides */
        out->local = (struct local){.every = every, .width = width / 2, .rope_theta = local};
    json_object_del(c->fields, "local_attention");
    json_object_del(c->fields, "layer_types");
    return 0;
}
