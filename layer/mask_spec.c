#include "layer/mask_int.h"

static int param_count(const struct mask_kind *kind)
{
    int count = 0;
    while (count < MASK_PARAM_MAX && kind->params[count].key != NULL)
        count++;
    return count;
}

static const struct mask_kind *find_kind(const char *name)
{
    for (int k = 0; k < mask_kind_count(); k++)
        if (strcmp(mask_kinds[k].name, name) == 0)
            return &mask_kinds[k];
    return NULL;
}

static int refuse_kind(const char *name, struct status *st)
{
    int count = mask_kind_count();
    SCOPED const char **names = mem_alloc((size_t)count, sizeof(*names));
    SCOPED_BUF message = BUF_INIT;
    for (int k = 0; k < count; k++)
        names[k] = mask_kinds[k].name;
    const char *meant = nearest_word(name, names, count);
    buf_addf(&message, "unknown attention mask '%.80s'; ", name);
    if (meant != NULL)
        buf_addf(&message, "did you mean '%s'? ", meant);
    for (int k = 0; k < count; k++)
        buf_addf(&message, "%s%s", k == 0 ? "the masks are " : ", ", mask_kinds[k].usage);
    return status_set(st, STATUS_USAGE, "%s", message.ptr);
}

static int refuse_param(const struct mask_kind *kind, const char *text, struct status *st)
{
    if (kind->params[0].key == NULL)
        return status_set(st, STATUS_USAGE,
                          "attention mask '%s' takes no parameters, found '%.80s'", kind->name,
                          text);
    return status_set(
        st, STATUS_USAGE,
        "attention mask '%s' has no parameter '%.80s'; write it as %s (each may be left out)",
        kind->name, text, kind->usage);
}

/* Parses one "key=value"; text is cut at the '='. */
static int parse_param(char *text, struct mask_spec *out, struct status *st)
{
    const struct mask_kind *kind = out->kind;
    char *value = text;
    text = strsep(&value, "=");

    int p = 0, count = param_count(kind);
    while (p < count && strcmp(kind->params[p].key, text) != 0)
        p++;
    if (p == count)
        return refuse_param(kind, text, st);
    if (value == NULL)
        return status_set(st, STATUS_USAGE,
                          "attention mask '%s': parameter '%s' has no value; write it as %s",
                          kind->name, text, kind->usage);
    if (out->param[p] != MASK_PARAM_DEFAULT)
        return status_set(st, STATUS_USAGE, "attention mask '%s': parameter '%s' is given twice",
                          kind->name, text);
    if (number_parse(text, value, kind->params[p].lo, kind->params[p].hi, &out->param[p], st) != 0)
        return status_prefix(st, "attention mask '%s'", kind->name);
    return 0;
}

static int parse_params(char *text, struct mask_spec *out, struct status *st)
{
    for (char *param; (param = strsep(&text, ",")) != NULL;)
        if (parse_param(param, out, st) != 0)
            return -1;
    return 0;
}

int mask_parse(const char *text, struct mask_spec *out, struct status *st)
{
    *out = (struct mask_spec){.kind = NULL};
    for (int p = 0; p < MASK_PARAM_MAX; p++)
        out->param[p] = MASK_PARAM_DEFAULT;

    SCOPED char *name = mem_strdup(text);
    char *params = name;
    strsep(&params, ":");
    const struct mask_kind *kind = find_kind(name);
    out->kind = kind;

    int result = 0;
    if (kind == NULL)
        result = refuse_kind(name, st);
    else if (kind->row == NULL && (params == NULL || *params == '\0'))
        result = status_set(st, STATUS_USAGE, "attention mask '%.80s' names no file; write %s",
                            text, kind->usage);
    else if (kind->row == NULL)
        out->path = mem_strdup(params);
    else if (params != NULL)
        result = parse_params(params, out, st);
    if (result != 0)
        mask_spec_release(out);
    return result;
}

void mask_spec_release(struct mask_spec *spec)
{
    if (spec == NULL)
        return;
    free(spec->path);
    *spec = (struct mask_spec){.kind = NULL};
}

void mask_spec_copy(struct mask_spec *dst, const struct mask_spec *src)
{
    *dst = *src;
    if (src->path != NULL)
        dst->path = mem_strdup(src->path);
}

static int64_t floor_sqrt(int64_t n)
{
    int64_t root = 0;
    while ((root + 1) * (root + 1) <= n)
        root++;
    return root;
}

int mask_resolve(struct mask_spec *spec, int seq_len, struct status *st)
{
    if (seq_len < 1 || seq_len > SEQ_LEN_MAX)
        return status_set(st, STATUS_USAGE,
                          "an attention mask of sequence length %d cannot be built; give 1 to %d",
                          seq_len, SEQ_LEN_MAX);
    for (int p = 0; p < param_count(spec->kind); p++) {
        int64_t fallback = spec->kind->params[p].fallback;
        if (spec->param[p] == MASK_PARAM_DEFAULT)
            spec->param[p] = fallback == DEFAULT_ROOT      ? floor_sqrt(seq_len)
                             : fallback == DEFAULT_QUARTER ? seq_len / 4
                                                           : fallback;
    }
    return 0;
}

double mask_distance(const struct mask_spec *a, const struct mask_spec *b)
{
    double sum = 0;
    if (a->kind != b->kind || a->kind->row == NULL)
        return NAN;
    for (int p = 0; p < param_count(a->kind); p++)
        sum += fabs(log((double)(a->param[p] + 1) / (double)(b->param[p] + 1)));
    return sum;
}

void mask_text(const struct mask_spec *spec, struct buf *out)
{
    buf_adds(out, spec->kind->name);
    if (spec->kind->row == NULL)
        buf_addf(out, ":%s", spec->content_hash);
    for (int p = 0; p < param_count(spec->kind); p++)
        buf_addf(out, "%c%s=%lld", p == 0 ? ':' : ',', spec->kind->params[p].key,
                 (long long)spec->param[p]);
}
