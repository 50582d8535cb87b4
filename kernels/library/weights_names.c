/* Which tensors of a file are which, by the names of weights_families.c. */
#include "weights_int.h"

#include <stdio.h>
#include <stdlib.h>

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

/* ---- the model in the file ------------------------------------------------------------------- */

/* Layers of a family that begin with the same prefix, which ends in a dot or is empty. */
struct found {
    const struct family *family;
    const char *prefix;
    size_t len;
};

static bool has_name(const struct names *names, const char *name)
{
    size_t i = 0;
    while (i < names->count && strcmp(names->list[i].name, name) != 0)
        i++;
    return i < names->count;
}

/* Whether a model's layer 0 has a module. */
static bool has_module(const struct names *names, const struct found *model, enum module m)
{
    char name[1000];
    snprintf(name, sizeof(name), "%.*s%s0.%s.weight", (int)model->len, model->prefix,
             model->family->layers, model->family->modules[m]);
    return has_name(names, name);
}

/* Whether a model's first tensor has this name, of layers of a family. */
static bool is_first_of(const char *name, const struct family *family, struct found *out)
{
    char wanted[96];
    size_t len = strlen(name), tail = (size_t)snprintf(wanted, sizeof(wanted), "%s0.%s.weight",
                                                       family->layers, family->modules[QUERY]);
    *out = (struct found){family, name, len - tail};
    return len >= tail && strcmp(name + len - tail, wanted) == 0 &&
           (len == tail || name[len - tail - 1] == '.');
}

/* Layers that read another model's output beside their own are no encoder's. */
static bool is_decoder(const struct names *names, const struct found *model)
{
    char name[1000];
    int len = snprintf(name, sizeof(name), "%.*s%s0.encoder_attn.", (int)model->len, model->prefix,
                       model->family->layers);
    for (size_t i = 0; i < names->count; i++)
        if (strncmp(names->list[i].name, name, (size_t)len) == 0)
            return true;
    return false;
}

/* Whether this is the first tensor of layer 0.  Of the families for which it is, the one whose
 * feed-forward network is there too, else the first. */
static bool is_first(const struct names *names, const char *name, struct found *out)
{
    struct found found;
    bool any = false;
    for (int k = 0; k < weights_family_count; k++) {
        if (!is_first_of(name, &weights_families[k], &found) || is_decoder(names, &found))
            continue;
        bool whole = has_module(names, &found, FFN1);
        if (!any || whole)
            *out = found;
        if (whole)
            return true;
        any = true;
    }
    return any;
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
        const char *what = weights_other(names->list[i].name);
        if (what != NULL)
            return weights_refuse(f->error,
                                  "it has no layers of a known family: its tensor '%.*s' is %s",
                                  NAME(names->list[i].tensor), what);
    }
    const struct family *bert = &weights_families[0];
    return weights_refuse(f->error,
                          "it has no layer 0 of a known family: no name ends in '%s0.%s.weight', "
                          "as a BERT's, and none in another family's; name a whole file, or the "
                          "index of its shards",
                          bert->layers, bert->modules[QUERY]);
}

/* list: the prefixes found, quoted. */
static int find_model(const struct names *names, const char *prefix, struct weights_file *f,
                      struct found *out)
{
    char list[WEIGHTS_ERROR / 2] = "";
    size_t len = 0, count = 0, meant = 0;
    struct found found, last = {NULL, "", 0};
    for (size_t i = 0; i < names->count; i++) {
        if (!is_first(names, names->list[i].name, &found))
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
    const char *what = meant == 1 ? weights_other(out->prefix) : NULL;
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
    static const struct {
        const char *text;
        int part;
    } tails[] = {{".weight", 0},
                 {".bias", 1},
                 {".gamma", 0}, /* of norms, before 2020 */
                 {".beta", 1},
                 {".weight_scale", SCALE}, /* of others; of blocks: */
                 {".weight_scale_inv", SCALE},
                 {".input_scale", INPUT_SCALE}};
    enum { OF_NORMS = 2, OF_OTHERS = 4 };
    for (int m = 0; m < MODULES; m++) {
        const char *module = family->modules[m];
        size_t len = module != NULL ? strlen(module) : 0;
        if (module == NULL || strncmp(name, module, len) != 0)
            continue;
        if ((m == SCALE1 || m == SCALE2) && name[len] == '\0')
            return 2 * m;
        bool norm = m == NORM1 || m == NORM2;
        for (int i = 0; i < (norm ? OF_OTHERS : OF_OTHERS + 3); i++)
            if ((norm || i < OF_NORMS || i >= OF_OTHERS) && strcmp(name + len, tails[i].text) == 0)
                return 2 * m + tails[i].part;
    }
    return -1;
}

/* A tensor of the model that no layer has; null: it is none. */
static const struct safetensor **place_beside(const struct found *model, const char *name,
                                              struct weights_file *f)
{
    const struct family *family = model->family;
    for (int i = 0; i < FINALS_MOST && family->finals[i] != NULL; i++) {
        size_t len = strlen(family->finals[i]);
        if (strncmp(name, family->finals[i], len) == 0 && strcmp(name + len, ".weight") == 0)
            return &f->final[0];
        if (strncmp(name, family->finals[i], len) == 0 && strcmp(name + len, ".bias") == 0)
            return &f->final[1];
    }
    return family->buckets != NULL && strcmp(name, family->buckets) == 0 ? &f->buckets : NULL;
}

static bool is_ignored(const struct family *family, const char *name)
{
    for (int i = 0; i < IGNORED_MOST && family->ignored[i] != NULL; i++) {
        size_t len = strlen(family->ignored[i]);
        bool beginning = family->ignored[i][len - 1] == '.';
        if (strncmp(name, family->ignored[i], len) == 0 && (beginning || name[len] == '\0'))
            return true;
    }
    return false;
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

/* Where a tensor of the model belongs; null with *other: nowhere, and it is of another kind of
 * model. */
static const struct safetensor **find_place(const struct found *model, const char *name,
                                            struct weights_file *f, bool *other)
{
    const char *layers = model->family->layers, *rest = "";
    size_t stem = (size_t)(strchr(layers, '.') + 1 - layers);
    const struct safetensor **beside = place_beside(model, name, f);
    *other = false;
    if (beside != NULL || strncmp(name, layers, stem) != 0 || is_ignored(model->family, name))
        return beside;
    bool layered = strncmp(name, layers, strlen(layers)) == 0;
    long layer = layered ? read_layer(name + strlen(layers), f->file.count, &rest) : -1;
    int at = layer >= 0 ? place_of(model->family, rest) : -1;
    *other = at < 0 && (layer < 0 || !is_ignored(model->family, rest));
    if (at < 0)
        return NULL;
    f->layers = layer >= f->layers ? (int)layer + 1 : f->layers;
    return &f->tensors[layer * WEIGHTS_TENSORS + at];
}

/* Puts a tensor of the model into its place. */
static int place(const struct found *model, const struct named *n, struct weights_file *f)
{
    const char *name = n->name + model->len;
    bool other;
    if (strncmp(n->name, model->prefix, model->len) != 0)
        return 0;
    const struct safetensor **t = find_place(model, name, f, &other);
    if (other) {
        const char *what = weights_other(name);
        return weights_refuse(f->error, "tensor '%.*s' has no place in the layers of %s: it is %s",
                              NAME(n->tensor), model->family->name,
                              what != NULL ? what : "of a model that computes something else");
    }
    if (t != NULL && *t != NULL)
        return weights_refuse(f->error, "tensors '%.*s' and '%.*s' are the same weight", NAME(*t),
                              NAME(n->tensor));
    if (t != NULL)
        *t = n->tensor;
    return 0;
}

/* Whether any layer has this tensor. */
static bool some_have(const struct weights_file *f, int at)
{
    for (int layer = 0; layer < f->layers; layer++)
        if (f->tensors[layer * WEIGHTS_TENSORS + at] != NULL)
            return true;
    return false;
}

/* Whether all layers must have this tensor.  A linear module without a bias in any layer computes
 * what one with zeros does. */
static bool is_needed(const struct weights_file *f, int at)
{
    enum module m = (enum module)(at / 2);
    bool bias = at % 2 == 1, norm = m == NORM1 || m == NORM2;
    if (at >= SCALE || f->family->modules[m] == NULL || (bias && (m == SCALE1 || m == SCALE2)))
        return false;
    bool bare = (f->family->functions & ENCODER_RMS) != 0 || (f->family->traits & BARE_NORMS) != 0;
    return !bias || some_have(f, at) || (norm && !bare);
}

static int check_whole(const struct found *model, struct weights_file *f)
{
    const struct family *family = model->family;
    bool needed[WEIGHTS_TENSORS];
    for (int at = 0; at < WEIGHTS_TENSORS; at++)
        needed[at] = is_needed(f, at);
    for (int i = 0; i < f->layers * WEIGHTS_TENSORS; i++) {
        int layer = i / WEIGHTS_TENSORS, at = i % WEIGHTS_TENSORS;
        bool bare = layer == 0 && at / 2 == NORM1 && (family->traits & BARE_FIRST) != 0;
        const char *also = layer < f->layers - 1 ? ", and there are later layers" : "";
        if (at == 2 * NORM2 && !some_have(f, at))
            also = " in all layers, as where attention and feed-forward network read the same "
                   "input (a parallel residual), which no chain has";
        if (f->tensors[i] == NULL && needed[at] && !bare)
            return weights_refuse(
                f->error, "'%.*s%s%d.%s%s' is missing%s; name a whole file, or its shards' index",
                (int)model->len, model->prefix, family->layers, layer, family->modules[at / 2],
                at >= 2 * SCALE1 ? "" : (at % 2 == 0 ? ".weight" : ".bias"), also);
    }
    if (family->buckets != NULL && f->buckets == NULL)
        return weights_refuse(f->error,
                              "'%.*s%s' is missing; name a whole file, or the index of its shards",
                              (int)model->len, model->prefix, family->buckets);
    return 0;
}

int weights_find(const char *prefix, struct weights_file *f)
{
    struct names names = {.count = 0};
    struct found model = {&weights_families[0], "", 0};
    char *meant = prefix != NULL ? malloc(strlen(prefix) + 1) : NULL;
    int result = -1;
    if (meant != NULL)
        unwrap(prefix, strlen(prefix), meant);
    f->tensors = calloc(f->file.count * WEIGHTS_TENSORS + 1, sizeof(*f->tensors));
    if (f->tensors == NULL || (prefix != NULL && meant == NULL))
        weights_refuse(f->error, "out of memory");
    else if (read_names(f, &names) == 0)
        result = find_model(&names, meant, f, &model);
    f->family = model.family;
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
