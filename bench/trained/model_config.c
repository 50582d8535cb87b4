/* A model's config.json, as HuggingFace writes it: tables of models and of fields. */
#include "bench/trained/config_int.h"

#include <limits.h>
#include <sys/stat.h>
#include <unistd.h>

enum { CONFIG_MOST = 1 << 20 };

/* Those of transformers, which leaves them out of a config inside another. */
#define SIGLIP                                                                                     \
    "{\"hidden_size\": 768, \"num_hidden_layers\": 12, \"num_attention_heads\": 12, "              \
    "\"intermediate_size\": 3072, \"hidden_act\": \"gelu_pytorch_tanh\", \"layer_norm_eps\": "     \
    "1e-6}"
#define CLIP_VISION                                                                                \
    "{\"hidden_size\": 768, \"num_hidden_layers\": 12, \"num_attention_heads\": 12, "              \
    "\"intermediate_size\": 3072, \"hidden_act\": \"quick_gelu\", \"layer_norm_eps\": 1e-5}"
#define CLIP_TEXT                                                                                  \
    "{\"hidden_size\": 512, \"num_hidden_layers\": 12, \"num_attention_heads\": 8, "               \
    "\"intermediate_size\": 2048, \"hidden_act\": \"quick_gelu\", \"layer_norm_eps\": 1e-5}"

/* What a model_type computes.  Fields below say the activation, and more: see read_functions(). */
static const struct model {
    const char *type;
    const char *chain; /* its name, but for the activation */
    const char *mask;
    const char *otherwise; /* fields that a file may lack, or constants of the model's code */
} models[] = {
    {"bert", "bert", "full", "{}"},
    {"roberta", "bert", "full", "{}"},
    {"xlm-roberta", "bert", "full", "{}"},
    {"camembert", "bert", "full", "{}"},
    {"electra", "bert", "full", "{}"},
    {"distilbert", "bert", "full", "{\"layer_norm_eps\": 1e-12}"},
    {"albert", "bert", "full", "{}"},
    {"mpnet", "bias", "full", "{}"},
    {"jina_embeddings_v3", "rope", "full", "{}"},
    {"nomic_bert", "gate+rope", "full", "{}"},
    {"new", "gate+rope", "full", "{}"}, /* GTE */
    {"wav2vec2", "bert", "full", "{}"},
    {"hubert", "bert", "full", "{}"},
    {"vit", "pre", "full", "{}"},
    {"deit", "pre", "full", "{}"},
    {"dinov2", "pre", "full", "{}"},
    {"dinov2_with_registers", "pre", "full", "{}"},
    {"siglip_vision_model", "pre", "full", SIGLIP},
    {"siglip_text_model", "pre", "full", SIGLIP},
    {"clip_vision_model", "pre", "full", CLIP_VISION},
    {"clip_text_model", "pre", "causal", CLIP_TEXT},
    {"whisper", "pre", "full", "{\"layer_norm_eps\": 1e-5}"},
    {"modernbert", "pre+gate+rope", "full", "{}"},
    {"eurobert", "pre+rms+gate+rope", "full", "{}"},
    {"t5", "pre+rms+bias", "full", "{\"feed_forward_proj\": \"relu\"}"},
    {"mt5", "pre+rms+bias", "full", "{\"feed_forward_proj\": \"gated-gelu\"}"},
    {"gpt2", "pre", "causal", "{}"},
    {"bloom", "pre+bias", "causal", "{\"hidden_act\": \"gelu_new\"}"},
    {"opt", "bert", "causal", "{\"layer_norm_eps\": 1e-5, \"do_layer_norm_before\": true}"},
};

/* Names of one field, the first of which that is there counts. */
static const char *const hidden_names[NAMES_MOST] = {"hidden_size", "n_embd", "n_embed", "d_model",
                                                     "dim"};
static const char *const layers_names[NAMES_MOST] = {"num_hidden_layers", "n_layer", "n_layers",
                                                     "encoder_layers", "num_layers"};
static const char *const heads_names[NAMES_MOST] = {"num_attention_heads", "n_head", "n_heads",
                                                    "encoder_attention_heads", "num_heads"};
static const char *const head_size_names[NAMES_MOST] = {"head_dim", "d_kv"};
static const char *const ffn_names[NAMES_MOST] = {"intermediate_size", "n_inner",         "ffn_dim",
                                                  "hidden_dim",        "encoder_ffn_dim", "d_ff"};
static const char *const eps_names[NAMES_MOST] = {"norm_eps", "layer_norm_eps",
                                                  "layer_norm_epsilon", "rms_norm_eps"};
static const char *const theta_names[NAMES_MOST] = {"rope_theta", "rotary_emb_base"};
static const char *const activation_names[NAMES_MOST] = {
    "hidden_act", "activation_function", "activation", "feed_forward_proj", "hidden_activation"};

static const struct {
    const char *name;
    enum function_id function;
} activations[] = {
    {"gelu", FUNCTION_BIAS_GELU},
    {"gelu_python", FUNCTION_BIAS_GELU},
    {"gelu_new", FUNCTION_BIAS_GELU_TANH},
    {"gelu_fast", FUNCTION_BIAS_GELU_TANH},
    {"gelu_accurate", FUNCTION_BIAS_GELU_TANH},
    {"gelu_pytorch_tanh", FUNCTION_BIAS_GELU_TANH},
    {"quick_gelu", FUNCTION_BIAS_QUICK_GELU},
    {"relu", FUNCTION_BIAS_RELU},
    {"silu", FUNCTION_BIAS_SILU},
    {"swish", FUNCTION_BIAS_SILU},
    {"swiglu", FUNCTION_BIAS_SILU},
    {"gated-gelu", FUNCTION_BIAS_GELU_TANH}, /* T5's, for the sake of old files */
    {"gated-silu", FUNCTION_BIAS_SILU},
};

/* ---- reading --------------------------------------------------------------------------------- */

static int read_activation(const struct config *c, struct chain_functions *f)
{
    const char *name, *text;
    const json_t *value = config_field(c->fields, activation_names, &name);
    text = json_string_value(value);
    for (size_t i = 0; i < ARRAY_LEN(activations) && text != NULL; i++)
        if (strcmp(text, activations[i].name) == 0) {
            f->activation = activations[i].function;
            f->gate = f->gate || strncmp(text, "gated-", 6) == 0;
            return 0;
        }
    return value == NULL ? config_refuse_missing(c, activation_names)
                         : config_refuse_field(c, name, value);
}

/* GTE's own code has one scaling of rotary embeddings, with a factor; "mixed_b" makes it another.
 */
static void read_scaling(const struct config *c, const struct model *m, struct model_config *out)
{
    const json_t *scaling = json_object_get(c->fields, "rope_scaling");
    const char *type = json_string_value(json_object_get(scaling, "type"));
    const json_t *factor = json_object_get(scaling, "factor");
    if (strcmp(m->type, "new") != 0 || type == NULL || strcmp(type, "ntk") != 0 ||
        !(json_number_value(factor) > 0) || !config_is_nothing(json_object_get(scaling, "mixed_b")))
        return;
    out->rope_factor = json_number_value(factor);
    json_object_del(c->fields, "rope_scaling");
}

/* What fields say of a layer's functions.  Drops those that config_check() would refuse. */
static int read_functions(const struct config *c, const struct model *m, struct chain_functions *f)
{
    *f = chain_functions(chain_find(m->chain));
    if (read_activation(c, f) != 0)
        return -1;
    if (strcmp(m->type, "bert") == 0 && config_is_text(c, "position_embedding_type", "alibi") &&
        config_is_text(c, "feed_forward_type", "geglu")) { /* jina v2 */
        f->gate = f->score_bias = true;
        json_object_del(c->fields, "position_embedding_type");
        json_object_del(c->fields, "feed_forward_type");
    }
    if (strcmp(m->type, "nomic_bert") == 0 && json_object_get(c->fields, "activation_function"))
        f->gate = config_is_text(c, "activation_function", "swiglu"); /* in files of its own code */
    if (f->rope && (config_is_text(c, "position_embedding_type", "rope") ||
                    config_is_text(c, "position_embedding_type", "sans_pos"))) /* ModernBERT's */
        json_object_del(c->fields, "position_embedding_type");
    if (config_is_true(c, "use_swiglu_ffn")) {
        f->gate = true;
        f->activation = FUNCTION_BIAS_SILU;
    }
    f->pre = f->pre || config_is_true(c, "do_layer_norm_before") ||
             config_is_true(c, "do_stable_layer_norm");
    return config_check(c);
}

static int read_sizes(const struct config *c, const struct chain_functions *f,
                      struct model_config *out)
{
    int hidden = 0;
    if (config_size(c, hidden_names, 0, &hidden) != 0 ||
        config_size(c, layers_names, 0, &out->layers) != 0 ||
        config_size(c, heads_names, 0, &out->heads) != 0)
        return -1;
    const char *head_size_name;
    if (out->heads > 0 && hidden % out->heads != 0 &&
        config_field(c->fields, head_size_names, &head_size_name) == NULL)
        return config_refuse(c,
                             "its hidden size %d is no multiple of its %d heads, and no field '%s' "
                             "says how large a head is",
                             hidden, out->heads, head_size_names[0]);
    int even = out->heads > 0 ? hidden / out->heads : 0; /* it is */
    if (config_size(c, head_size_names, even, &out->head_size) != 0)
        return -1;
    out->hidden = (int64_t)out->heads * out->head_size != hidden ? hidden : 0;
    double ratio = json_number_value(json_object_get(c->fields, "mlp_ratio"));
    double ffn = hidden * (ratio > 0 && ratio < HEADS_MAX ? ratio : 4);
    if (config_is_true(c, "use_swiglu_ffn") && f->gate) /* DINOv2's */
        ffn = floor((floor(floor(ffn) * 2 / 3) + 7) / 8) * 8;
    return config_size(c, ffn_names, ffn < INT_MAX ? (int)ffn : INT_MAX, &out->ffn);
}

/* From transformers 5 on rope_parameters holds what were fields of their own. */
static int read_rope(const struct config *c, struct model_config *out)
{
    const json_t *parameters = json_object_get(c->fields, "rope_parameters");
    const json_t *kind = json_object_get(parameters, "rope_type");
    if (json_is_object(parameters) &&
        (!json_is_string(kind) || strcmp(json_string_value(kind), "default") != 0 ||
         json_object_size(parameters) > 2))
        return config_refuse_field(c, "rope_parameters", parameters);
    const json_t *fields = json_is_object(parameters) ? parameters : c->fields;
    const char *name;
    if (config_number(c, fields, theta_names, &out->rope_theta) != 0)
        return -1;
    config_field(fields, theta_names, &name);
    return out->rope_theta > 0
               ? 0
               : config_refuse(
                     c, "the base of its rotary embeddings, '%s', is %g; expected more than 0",
                     name, out->rope_theta);
}

static const struct model *find_model(const struct config *c)
{
    const char *type = json_string_value(json_object_get(c->fields, "model_type"));
    for (size_t i = 0; i < ARRAY_LEN(models) && type != NULL; i++)
        if (strcmp(type, models[i].type) == 0)
            return &models[i];
    const char *has = type != NULL ? config_unfit(c, type) : NULL;
    SCOPED_BUF known = BUF_INIT;
    for (size_t i = 0; i < ARRAY_LEN(models); i++)
        buf_addf(&known, "%s%s", i > 0 ? ", " : "", models[i].type);
    if (type == NULL)
        config_refuse(c, "it has no field 'model_type'");
    else if (has != NULL)
        config_refuse(c, "its model_type is '%s': %s, which no chain has; known are %s", type, has,
                      known.ptr);
    else
        config_refuse(
            c, "its model_type '%.80s' is %s; known are %s", type,
            json_object_get(c->fields, "vision_config") != NULL
                ? "of several models; choose one by ':vision_config' or ':text_config' behind "
                  "the name"
                : "not known",
            known.ptr);
    return NULL;
}

static int read_config(const struct config *c, struct model_config *out)
{
    struct chain_functions f;
    const struct model *m = find_model(c);
    if (m == NULL)
        return -1;
    json_auto_t *otherwise = json_loads(m->otherwise, 0, NULL);
    json_object_update_missing(c->fields, otherwise);
    read_scaling(c, m, out);
    if (strcmp(m->type, "modernbert") == 0 &&
        (config_size(c, layers_names, 0, &out->layers) != 0 || config_kinds(c, out) != 0))
        return -1;
    if (read_functions(c, m, &f) != 0 || read_sizes(c, &f, out) != 0 ||
        config_number(c, c->fields, eps_names, &out->eps) != 0)
        return -1;
    out->chain = chain_of(f);
    out->mask = m->mask;
    return f.rope && out->rope_theta == 0 ? read_rope(c, out) : 0;
}

static int parse(const char *path, const struct buf *text, const char *part,
                 struct model_config *out, struct status *st)
{
    json_error_t error;
    json_auto_t *whole = json_loadb(text->ptr, text->len, JSON_REJECT_DUPLICATES, &error);
    const struct config c = {path, part != NULL ? json_object_get(whole, part) : whole, st};
    if (json_is_object(c.fields))
        return read_config(&c, out);
    if (whole == NULL)
        return config_refuse(&c, "it is not a JSON object: %s; name config.json or its directory",
                             error.text);
    return part != NULL ? config_refuse(&c, "it has no object '%s'", part)
                        : config_refuse(&c, "it is not a JSON object");
}

/* ---- files ----------------------------------------------------------------------------------- */

/* Splits "PATH:vision_config".  *part: what follows the colon; null: nothing does.  Returns whether
 * the path is a directory; appends the path to out. */
static bool split(const char *path, const char **part, struct buf *out)
{
    struct stat info;
    const char *colon = strrchr(path, ':');
    *part = colon != NULL && strstr(colon, "_config") != NULL ? colon + 1 : NULL;
    buf_add(out, path, *part != NULL ? (size_t)(colon - path) : strlen(path));
    return stat(out->ptr, &info) == 0 && S_ISDIR(info.st_mode);
}

/* Says what is wanted, if the file is not there. */
static int refuse_file(const char *path, bool is_dir, struct status *st)
{
    if (access(path, F_OK) == 0)
        return status_prefix(st, "--model");
    *st = STATUS_INIT;
    return status_set(st, STATUS_USAGE,
                      "--model: %s '%s'; name the directory of a HuggingFace model, which has "
                      "config.json and model.safetensors, or a config.json; 'hf download NAME "
                      "config.json model.safetensors --local-dir DIR' fetches one",
                      is_dir ? "there is no file" : "there is no", path);
}

int model_config_read(const char *path, struct model_config *out, struct status *st)
{
    const char *part;
    SCOPED_BUF file = BUF_INIT, text = BUF_INIT;
    bool is_dir = split(path, &part, &file);
    if (is_dir)
        buf_adds(&file, "/config.json");
    *out = (struct model_config){.chain = NULL};
    return file_read(file.ptr, CONFIG_MOST, &text, st) != 0 ? refuse_file(file.ptr, is_dir, st)
                                                            : parse(file.ptr, &text, part, out, st);
}

char *model_weights(const char *path)
{
    static const char *const names[] = {"model.safetensors", "model.safetensors.index.json"};
    const char *part;
    char *found = NULL;
    SCOPED_BUF dir = BUF_INIT, file = BUF_INIT;
    bool is_dir = split(path, &part, &dir);
    for (size_t i = 0; i < ARRAY_LEN(names) && is_dir && found == NULL; i++) {
        buf_reset(&file);
        buf_addf(&file, "%s/%s", dir.ptr, names[i]);
        if (access(file.ptr, F_OK) == 0)
            found = mem_strdup(file.ptr);
    }
    return found;
}
