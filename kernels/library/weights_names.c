/* Names of tensors in files of HuggingFace's models: a table with a row for each family. */
#include "weights_int.h"

#include <stdio.h>
#include <stdlib.h>

/* To add a family whose layers compute what a BERT's do: its row. */
static const struct family {
    const char *layers;           /* in front of a layer's number */
    const char *modules[MODULES]; /* behind it */
} families[] = {
    /* BERT, RoBERTa, XLM-R, CamemBERT, ELECTRA */
    {"encoder.layer.",
     {[QUERY] = "attention.self.query",
      [KEY] = "attention.self.key",
      [VALUE] = "attention.self.value",
      [ATTENTION_OUT] = "attention.output.dense",
      [NORM1] = "attention.output.LayerNorm",
      [FFN1] = "intermediate.dense",
      [FFN2] = "output.dense",
      [NORM2] = "output.LayerNorm"}},
    /* DistilBERT */
    {"transformer.layer.",
     {[QUERY] = "attention.q_lin",
      [KEY] = "attention.k_lin",
      [VALUE] = "attention.v_lin",
      [ATTENTION_OUT] = "attention.out_lin",
      [NORM1] = "sa_layer_norm",
      [FFN1] = "ffn.lin1",
      [FFN2] = "ffn.lin2",
      [NORM2] = "output_layer_norm"}},
};
enum { FAMILIES = sizeof(families) / sizeof(families[0]) };

/* Components of names that say what else a model has.  The first row that fits is named. */
static const struct {
    const char *part, *what;
} others[] = {
    {"lora_A", "of a LoRA adapter that is not merged: call merge_and_unload() and save the model"},
    {"lora_B", "of a LoRA adapter that is not merged: call merge_and_unload() and save the model"},
    {"base_layer",
     "below an adapter that is not merged: call merge_and_unload() and save the model"},
    {"SCB", "of quantised weights: load the model without quantization_config and save it"},
    {"absmax", "of quantised weights: load the model without quantization_config and save it"},
    {"qweight", "of quantised weights: load the model without quantization_config and save it"},
    {"weight_scale",
     "of quantised weights: load the model without quantization_config and save it"},
    {"relative_attention_bias", "a bias by position, as MPNet and T5 have"},
    {"attention.attn.q", "of MPNet, whose attention has a bias by position"},
    {"mpnet", "of MPNet, whose attention has a bias by position"},
    {"deberta", "of DeBERTa, whose attention has positions of its own"},
    {"yoso", "of YOSO, whose attention is another one"},
    {"mra", "of MRA, whose attention is another one"},
    {"nystromformer", "of Nystromformer, whose attention is another one"},
    {"nezha", "of NEZHA, whose attention has relative positions"},
    {"roformer", "of rotary positions"},
    {"distance_embedding", "of attention by relative positions"},
    {"rel_embeddings", "of DeBERTa, whose attention has positions of its own"},
    {"pos_key_proj", "of DeBERTa, whose attention has positions of its own"},
    {"query_proj", "of DeBERTa, whose attention has positions of its own"},
    {"rotary_emb", "of rotary positions"},
    {"rotary_embeddings", "of rotary positions"},
    {"albert_layer_groups", "of ALBERT, whose layers share weights"},
    {"Wqkv", "of rotary positions, as nomic, jina v3 and ModernBERT have"},
    {"qkv_proj", "of rotary positions and a gated MLP, as GTE has"},
    {"gated_layers", "of a gated MLP"},
    {"up_gate_proj", "of a gated MLP"},
    {"gate_proj", "of a gated MLP"},
    {"crossattention", "of a decoder's attention to another model"},
    {"layernorm_before", "of a norm before the attention, as ViT has"},
    {"attention.attention.query", "of ViT or DINOv2, which have their norms before"},
    {"self_attn", "of another kind of model, as CLIP, Whisper, OPT and BART are"},
    {"c_attn", "of GPT-2"},
    {"query_key_value", "of BLOOM"},
    {"SelfAttention", "of T5"},
};

struct named {
    const char *name; /* without wrappers */
    const struct safetensor *tensor;
};

struct names {
    struct named *list; /* (count) */
    char *texts;
    size_t count;
};

int weights_refuse(char *error, const char *format, ...)
{
    va_list list;
    va_start(list, format);
    int result = safetensors_error(error, WEIGHTS_ERROR, format, list);
    va_end(list);
    return result;
}

/* ---- names ----------------------------------------------------------------------------------- */

/* Copies a name without the components that wrappers of PyTorch add anywhere: 'module' of its
 * parallel models, '_orig_mod' of compiled models.  Returns the end of the copy. */
static char *unwrap(const char *name, size_t len, char *out)
{
    static const char *const wrappers[] = {"module", "_orig_mod"};
    const char *end = name + len;
    bool dotted = false;
    while (name < end) {
        const char *dot = memchr(name, '.', (size_t)(end - name));
        size_t part = (size_t)((dot != NULL ? dot : end) - name);
        bool wraps = false;
        for (int i = 0; i < 2; i++)
            wraps = wraps || (part == strlen(wrappers[i]) && memcmp(name, wrappers[i], part) == 0);
        if (!wraps) {
            if (dotted)
                *out++ = '.';
            dotted = true;
            memcpy(out, name, part);
            out += part;
        }
        name += part + (dot != NULL);
    }
    *out = '\0';
    return out;
}

static int read_names(struct weights_file *f, struct names *out)
{
    size_t bytes = 1;
    for (size_t i = 0; i < f->file.count; i++)
        bytes += f->file.tensors[i].name_len + 1;
    out->list = malloc((f->file.count + 1) * sizeof(*out->list));
    out->texts = malloc(bytes);
    if (out->list == NULL || out->texts == NULL)
        return weights_refuse(f->error, "out of memory");
    char *at = out->texts;
    for (size_t i = 0; i < f->file.count; i++) {
        const struct safetensor *t = &f->file.tensors[i];
        out->list[out->count++] = (struct named){at, t};
        at = unwrap(t->name, t->name_len, at) + 1;
    }
    return 0;
}

/* Whether `part` is a component of the name, or several in a row. */
static bool has_part(const char *name, const char *part)
{
    size_t len = strlen(part);
    for (const char *at = name; (at = strstr(at, part)) != NULL; at++)
        if ((at == name || at[-1] == '.') && (at[len] == '\0' || at[len] == '.'))
            return true;
    return false;
}

/* What a tensor's name says of its model; null: nothing. */
static const char *other_of(const char *name)
{
    for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); i++)
        if (has_part(name, others[i].part))
            return others[i].what;
    return NULL;
}

/* ---- the model in the file ------------------------------------------------------------------- */

/* Layers of a family that begin with the same prefix, which ends in a dot or is empty. */
struct found {
    const struct family *family;
    const char *prefix;
    size_t len;
};

/* Whether this is the first tensor of layer 0. */
static bool is_first(const char *name, const struct family *family, struct found *out)
{
    char wanted[96];
    size_t len = strlen(name), tail = (size_t)snprintf(wanted, sizeof(wanted), "%s0.%s.weight",
                                                       family->layers, family->modules[QUERY]);
    *out = (struct found){family, name, len - tail};
    return len >= tail && strcmp(name + len - tail, wanted) == 0 &&
           (len == tail || name[len - tail - 1] == '.');
}

/* Whether the caller means this prefix, unwrapped, with or without its dot; null: any. */
static bool is_meant(const struct found *found, const char *prefix)
{
    size_t len = found->len > 0 ? found->len - 1 : 0;
    return prefix == NULL || (strncmp(prefix, found->prefix, len) == 0 &&
                              (prefix[len] == '\0' || (len > 0 && strcmp(prefix + len, ".") == 0)));
}

static int refuse_none(struct weights_file *f, const struct names *names)
{
    for (size_t i = 0; i < names->count; i++) {
        const char *what = other_of(names->list[i].name);
        if (what != NULL)
            return weights_refuse(
                f->error, "it has no layers of a BERT or DistilBERT: its tensor '%.*s' is %s",
                NAME(names->list[i].tensor), what);
    }
    return weights_refuse(
        f->error,
        "it has no layer 0 of a BERT or DistilBERT: no name ends in '%s0.%s.weight' or "
        "'%s0.%s.weight'; name a whole file, or the index of its shards",
        families[0].layers, families[0].modules[QUERY], families[1].layers,
        families[1].modules[QUERY]);
}

/* list: the prefixes found, quoted. */
static int find_model(const struct names *names, const char *prefix, struct weights_file *f,
                      struct found *out)
{
    char list[WEIGHTS_ERROR / 2] = "";
    size_t len = 0, count = 0, meant = 0;
    struct found found, last = {NULL, "", 0};
    for (size_t i = 0; i < names->count; i++)
        for (int k = 0; k < FAMILIES; k++) {
            if (!is_first(names->list[i].name, &families[k], &found))
                continue;
            if (last.family == found.family && last.len == found.len &&
                memcmp(last.prefix, found.prefix, found.len) == 0)
                continue; /* the same by a wrapped name, which is refused later */
            last = found;
            if (len < sizeof(list))
                len += (size_t)snprintf(list + len, sizeof(list) - len, "%s'%.*s'",
                                        count > 0 ? ", " : "", (int)(found.len > 0 ? found.len : 1),
                                        found.len > 0 ? found.prefix : ".");
            count++;
            if (!is_meant(&found, prefix))
                continue;
            meant++;
            *out = found;
        }
    const char *what = meant == 1 ? other_of(out->prefix) : NULL;
    if (what != NULL)
        return weights_refuse(f->error, "'%.*s' is %s", (int)out->len, out->prefix, what);
    if (meant == 1)
        return 0;
    if (count == 0)
        return refuse_none(f, names);
    return meant > 1 ? weights_refuse(
                           f->error, "it has several models; choose one with --prefix, of %s", list)
                     : weights_refuse(f->error,
                                      "no layers have the prefix '%.80s'; it has layers with %s",
                                      prefix, list);
}

/* ---- its layers ------------------------------------------------------------------------------ */

/* The place of a name behind a layer's number in the row of the table of tensors; -1: none. */
static int place_of(const struct family *family, const char *name)
{
    static const char *const tails[] = {".weight", ".bias", ".gamma",
                                        ".beta"}; /* older: before 2020 */
    for (int m = 0; m < MODULES; m++) {
        size_t len = strlen(family->modules[m]);
        if (strncmp(name, family->modules[m], len) != 0)
            continue;
        for (int i = 0; i < (m == NORM1 || m == NORM2 ? 4 : 2); i++)
            if (strcmp(name + len, tails[i]) == 0)
                return 2 * m + i % 2;
    }
    return -1;
}

/* Reads "12." of "12.output"; *rest is what follows.  -1: there is no number below `most`. */
static long read_layer(const char *name, size_t most, const char **rest)
{
    char *end;
    if (*name < '0' || *name > '9' || (*name == '0' && name[1] != '.'))
        return -1;
    unsigned long layer = strtoul(name, &end, 10);
    *rest = end + 1;
    return *end == '.' && layer < most ? (long)layer : -1;
}

/* Puts a tensor of the model into its place; what has none belongs to another kind of model. */
static int place(const struct found *model, const struct named *n, struct weights_file *f)
{
    const char *layers = model->family->layers, *name = n->name + model->len, *rest = NULL;
    size_t stem = (size_t)(strchr(layers, '.') + 1 - layers);
    if (strncmp(n->name, model->prefix, model->len) != 0 || strncmp(name, layers, stem) != 0)
        return 0;
    bool layered = strncmp(name, layers, strlen(layers)) == 0;
    long layer = layered ? read_layer(name + strlen(layers), f->file.count, &rest) : -1;
    int at = layer >= 0 ? place_of(model->family, rest) : -1;
    if (at < 0) {
        const char *what = other_of(name);
        return weights_refuse(f->error, "tensor '%.*s' has no place in a BERT's layers: it is %s",
                              NAME(n->tensor),
                              what != NULL ? what : "of a model that computes something else");
    }
    const struct safetensor **t = &f->tensors[layer * WEIGHTS_TENSORS + at];
    if (*t != NULL)
        return weights_refuse(f->error, "tensors '%.*s' and '%.*s' are the same weight", NAME(*t),
                              NAME(n->tensor));
    *t = n->tensor;
    f->layers = layer >= f->layers ? (int)layer + 1 : f->layers;
    return 0;
}

/* A key's bias adds the same to all scores of a query, which the softmax takes out again.  So a
 * model that has none computes what one with zeros does. */
static bool has_key_bias(const struct weights_file *f)
{
    for (int layer = 0; layer < f->layers; layer++)
        if (f->tensors[layer * WEIGHTS_TENSORS + 2 * KEY + 1] != NULL)
            return true;
    return false;
}

static int check_whole(const struct found *model, struct weights_file *f)
{
    int unused = has_key_bias(f) ? -1 : 2 * KEY + 1;
    for (int i = 0; i < f->layers * WEIGHTS_TENSORS; i++) {
        int layer = i / WEIGHTS_TENSORS, at = i % WEIGHTS_TENSORS;
        if (f->tensors[i] == NULL && at != unused)
            return weights_refuse(f->error,
                                  "'%.*s%s%d.%s.%s' is missing%s; name a whole file, or the index "
                                  "of its shards",
                                  (int)model->len, model->prefix, model->family->layers, layer,
                                  model->family->modules[at / 2], at % 2 == 0 ? "weight" : "bias",
                                  layer < f->layers - 1 ? ", and there are later layers" : "");
    }
    return 0;
}

int weights_find(const char *prefix, struct weights_file *f)
{
    struct names names = {.count = 0};
    struct found model = {&families[0], "", 0};
    char *meant = prefix != NULL ? malloc(strlen(prefix) + 1) : NULL;
    int result = -1;
    if (meant != NULL)
        unwrap(prefix, strlen(prefix), meant);
    f->tensors = calloc(f->file.count * WEIGHTS_TENSORS + 1, sizeof(*f->tensors));
    if (f->tensors == NULL || (prefix != NULL && meant == NULL))
        weights_refuse(f->error, "out of memory");
    else if (read_names(f, &names) == 0)
        result = find_model(&names, meant, f, &model);
    for (size_t i = 0; i < names.count && result == 0; i++)
        result = place(&model, &names.list[i], f);
    if (result == 0)
        result = check_whole(&model, f);
    free(names.list);
    free(names.texts);
    free(meant);
    return result;
}

int weights_open(const char *path, const char *prefix, struct weights_file *out)
{
    *out = (struct weights_file){.layers = 0};
    if (safetensors_open(path, &out->file) != 0)
        return weights_refuse(out->error, "%s", out->file.error);
    return weights_find(prefix, out);
}

void weights_close(struct weights_file *f)
{
    free((void *)f->tensors);
    safetensors_close(&f->file);
    *f = (struct weights_file){.layers = 0};
}
