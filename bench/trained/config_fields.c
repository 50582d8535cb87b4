#include "bench/trained/config_int.h"

#include <limits.h>

/* Fields that change what layers compute, and the values with which they do not, in JSON.  Null, or
 * no field, is as good. */
static const struct {
    const char *field, *value;
} neutral[] = {
    {"feed_forward_type", "\"original\""},
    {"position_embedding_type", "\"absolute\""},
    {"rope_scaling", "{\"rope_type\": \"default\"}"},
    {"rotary_scaling_factor", "1.0"},
    {"rotary_emb_fraction", "1.0"},
    {"partial_rotary_factor", "1.0"},
    {"layer_norm_type", "\"layer_norm\""},
    {"scale_attn_weights", "true"},
    {"layer_norm_elementwise_affine", "true"},
    {"inner_group_num", "1"},
    {"relative_attention_num_buckets", "32"},
    {"relative_attention_max_distance", "128"},
};

#define PARALLEL "its attention and feed-forward network read the same input (a parallel residual)"
#define EXPERTS  "its feed-forward network is a mixture of experts"
#define CROSS    "its decoder attends to its encoder's output (cross-attention)"
#define RELATIVE "its scores add products of queries and keys with relative positions"

/* Types of models whose layers no chain computes, unless a field is false. */
static const struct {
    const char *type, *has, *unless;
} unfit[] = {
    {"deberta", RELATIVE, "relative_attention"},
    {"deberta-v2", RELATIVE, "relative_attention"},
    {"gptj", PARALLEL, NULL},
    {"codegen", PARALLEL, NULL},
    {"gpt_neox", PARALLEL, "use_parallel_residual"},
    {"falcon", PARALLEL, "parallel_attn"},
    {"phi", PARALLEL, NULL},
    {"gemma", "its norms multiply by 1 + weight", NULL},
    {"gemma2", "its branches end in norms, and its scores have a softcap", NULL},
    {"gemma3_text", "its branches end in norms, and its queries and keys have norms", NULL},
    {"qwen3", "its queries and keys have norms", NULL},
    {"qwen3_moe", EXPERTS, NULL},
    {"mixtral", EXPERTS, NULL},
    {"bart", CROSS, NULL},
    {"mbart", CROSS, NULL},
    {"marian", CROSS, NULL},
};

/* Parts of names of fields that change what layers compute unless they are null, false, 0 or empty.
 * What this may refuse without need is safer refused than ignored. */
/* clang-format off */
static const char *const suspect[] = {
    "rotary_emb_interleaved", "rotary_emb_scale", "logn", "softcap", "scale_attn_by", "qk_", "parallel",
    "experts", "moe_", "cross_attention", "use_alibi", "sliding_window", "local_attention", "layer_types",
    "causal", "is_decoder", "prenorm", "use_rms_norm", "apply_residual_connection_post",
    "adapter_attn_dim", "pruned_heads", "attn_scale", "pre_attn", "residual_scale", "multiplier",
};
/* clang-format on */

/* ---- fields ---------------------------------------------------------------------------------- */

int config_refuse(const struct config *c, const char *format, ...)
{
    SCOPED_BUF why = BUF_INIT;
    va_list list;
    va_start(list, format);
    buf_addv(&why, format, list);
    va_end(list);
    return status_set(c->st, STATUS_USAGE, "--model: '%s': %s", c->path, why.ptr);
}

const json_t *config_field(const json_t *fields, const char *const names[NAMES_MOST],
                           const char **name)
{
    for (int i = 0; i < NAMES_MOST && names[i] != NULL; i++) {
        const json_t *value = json_object_get(fields, names[i]);
        *name = names[i];
        if (value != NULL && !json_is_null(value))
            return value;
    }
    *name = names[0];
    return NULL;
}

int config_refuse_missing(const struct config *c, const char *const names[NAMES_MOST])
{
    SCOPED_BUF list = BUF_INIT;
    for (int i = 0; i < NAMES_MOST && names[i] != NULL; i++)
        buf_addf(&list, "%s'%s'", i > 0 ? ", or " : "", names[i]);
    return config_refuse(c, "it has no field %s", list.ptr);
}

int config_size(const struct config *c, const char *const names[NAMES_MOST], int otherwise,
                int *out)
{
    const char *name;
    const json_t *value = config_field(c->fields, names, &name);
    json_int_t n = json_integer_value(value);
    *out = value != NULL ? (int)n : otherwise;
    if (value == NULL && otherwise == 0)
        return config_refuse_missing(c, names);
    return value == NULL || (json_is_integer(value) && n > 0 && n <= INT_MAX)
               ? 0
               : config_refuse(c, "'%s' is not a number of at least 1", name);
}

int config_number(const struct config *c, const json_t *fields, const char *const names[NAMES_MOST],
                  double *out)
{
    const char *name;
    const json_t *value = config_field(fields, names, &name);
    if (value == NULL)
        return config_refuse_missing(c, names);
    if (!json_is_number(value))
        return config_refuse(c, "'%s' is not a number", name);
    *out = json_number_value(value);
    return 0;
}

bool config_is_true(const struct config *c, const char *name)
{
    return json_is_true(json_object_get(c->fields, name));
}

bool config_is_text(const struct config *c, const char *name, const char *text)
{
    const char *value = json_string_value(json_object_get(c->fields, name));
    return value != NULL && strcmp(value, text) == 0;
}

/* ---- what is not supported ------------------------------------------------------------------- */

int config_refuse_field(const struct config *c, const char *name, const json_t *value)
{
    SCOPED char *text = json_dumps(value, JSON_ENCODE_ANY | JSON_COMPACT);
    return config_refuse(
        c, "'%s' is %.200s, which changes what its layers compute and is not supported", name,
        text != NULL ? text : "?");
}

bool config_is_nothing(const json_t *value)
{
    return value == NULL || json_is_null(value) || json_is_false(value) ||
           (json_is_number(value) && json_number_value(value) == 0) ||
           (json_is_array(value) && json_array_size(value) == 0) ||
           (json_is_object(value) && json_object_size(value) == 0);
}

const char *config_unfit(const struct config *c, const char *type)
{
    for (size_t i = 0; i < ARRAY_LEN(unfit); i++)
        if (strcmp(type, unfit[i].type) == 0 &&
            !json_is_false(json_object_get(c->fields, unfit[i].unless)))
            return unfit[i].has;
    return NULL;
}

static bool is_suspect(const char *name)
{
    for (size_t i = 0; i < ARRAY_LEN(suspect); i++)
        if (strstr(name, suspect[i]) != NULL)
            return true;
    return false;
}

int config_check(const struct config *c)
{
    for (size_t i = 0; i < ARRAY_LEN(neutral); i++) {
        const json_t *value = json_object_get(c->fields, neutral[i].field);
        json_auto_t *wanted = json_loads(neutral[i].value, JSON_DECODE_ANY, NULL);
        bool right = value == NULL || json_is_null(value) || json_equal(value, wanted) ||
                     (json_is_number(value) && json_is_number(wanted) &&
                      json_number_value(value) == json_number_value(wanted));
        if (!right)
            return config_refuse_field(c, neutral[i].field, value);
    }
    for (void *i = json_object_iter(c->fields); i != NULL; i = json_object_iter_next(c->fields, i))
        if (is_suspect(json_object_iter_key(i)) && !config_is_nothing(json_object_iter_value(i)))
            return config_refuse_field(c, json_object_iter_key(i), json_object_iter_value(i));
    return 0;
}
