#include "layer/layer.h"

void lengths_text(const struct workload *w, struct buf *out)
{
    if (w->lengths == NULL)
        buf_adds(out, "full");
    for (int b = 0; w->lengths != NULL && b < w->batch; b++)
        buf_addf(out, b == 0 ? "%d" : ",%d", w->lengths[b]);
}

void rope_text(double theta, double factor, struct buf *out)
{
    number_add(theta, out);
    if (factor > 0) {
        buf_adds(out, ":");
        number_add(factor, out);
    }
}

void chain_text(const struct workload *w, struct buf *out)
{
    buf_adds(out, w->chain->name);
    if (w->rope_theta > 0) {
        buf_adds(out, " rope=");
        rope_text(w->rope_theta, w->rope_factor, out);
    }
    if (w->hidden != 0)
        buf_addf(out, " hidden=%d", w->hidden);
    if (w->local == NULL)
        return;
    buf_adds(out, " local=");
    mask_text(&w->local->mask_spec, out);
    if (w->local->rope_theta > 0) {
        buf_adds(out, " local_rope=");
        number_add(w->local->rope_theta, out);
    }
    buf_addf(out, " every=%d", w->every);
}

void workload_text(const struct workload *w, struct buf *out)
{
    buf_addf(out, "b=%d s=%d h=%d w=%d f=%d l=%d eps=", w->batch, w->seq_len, w->heads,
             w->head_size, w->ffn, w->layers);
    number_add(w->eps, out);
    buf_addf(out, " dtype=%s lengths=", dtypes[w->dtype].name);
    lengths_text(w, out);
    buf_adds(out, " mask=");
    mask_text(&w->mask_spec, out);
    if (w->chain != &chain_bert || w->local != NULL) { /* other texts are older than chains */
        buf_adds(out, " chain=");
        chain_text(w, out);
    }
}

/* ---- reading it back ------------------------------------------------------------------------- */

/* Takes the next word, which must be "key=...", off the text; null if it is another. */
static char *take(char **text, const char *key)
{
    char *word = strsep(text, " ");
    size_t len = strlen(key);
    return word != NULL && strncmp(word, key, len) == 0 && word[len] == '=' ? word + len + 1 : NULL;
}

static int take_size(char **text, const char *key, int *out, struct status *st)
{
    int64_t value = 0;
    const char *word = take(text, key);
    int result = word != NULL ? number_parse(key, word, 1, INT32_MAX, &value, st)
                              : status_set(st, STATUS_USAGE, "it lacks '%s='", key);
    *out = (int)value;
    return result;
}

static int take_dtype(char **text, enum dtype *out, struct status *st)
{
    const char *word = take(text, "dtype");
    *out = word != NULL ? dtype_from_name(word) : DTYPE_COUNT;
    return *out != DTYPE_COUNT ? 0 : status_set(st, STATUS_USAGE, "it names no dtype");
}

static int take_lengths(char **text, struct workload *w, struct status *st)
{
    const char *word = take(text, "lengths");
    if (word == NULL)
        return status_set(st, STATUS_USAGE, "it lacks 'lengths='");
    return strcmp(word, "full") == 0 ? 0 : workload_parse_lengths(w, word, st);
}

/* Of a file's mask the text has the hash alone. */
static int take_mask(char **text, struct mask_spec *out, struct status *st)
{
    const char *word = take(text, "mask");
    if (word == NULL)
        return status_set(st, STATUS_USAGE, "it lacks 'mask='");
    if (mask_parse(word, out, st) != 0)
        return -1;
    if (out->path != NULL)
        snprintf(out->content_hash, sizeof(out->content_hash), "%s", out->path);
    return 0;
}

int rope_parse(const char *what, const char *text, double *theta, double *factor, struct status *st)
{
    SCOPED char *copy = mem_strdup(text);
    char *colon = strchr(copy, ':');
    if (colon != NULL)
        *colon = '\0';
    *factor = 0;
    if (number_parse_double(what, copy, ROPE_THETA_MIN, ROPE_THETA_MAX, theta, st) != 0)
        return -1;
    return colon == NULL ? 0 : number_parse_double(what, colon + 1, 1, ROPE_FACTOR_MAX, factor, st);
}

/* Nothing more, or a second kind of layers. */
static int take_local(char **text, struct workload *w, struct status *st)
{
    double theta = 0;
    int every;
    if (*text == NULL)
        return 0;
    const char *mask = take(text, "local");
    if (mask == NULL)
        return status_set(st, STATUS_USAGE, "it goes on after its chain");
    const char *rope = w->rope_theta > 0 ? take(text, "local_rope") : "1";
    if (rope == NULL)
        return status_set(st, STATUS_USAGE, "it lacks 'local_rope=' behind its attention mask");
    if (number_parse_double("local_rope", rope, ROPE_THETA_MIN, ROPE_THETA_MAX, &theta, st) != 0 ||
        take_size(text, "every", &every, st) != 0)
        return -1;
    if (*text != NULL)
        return status_set(st, STATUS_USAGE, "it goes on after its kinds of layers");
    return workload_add_local(w, mask, theta, every, st);
}

/* Nothing more, or the name of another chain than BERT's, or what BERT's layers do not have. */
static int take_chain(char **text, struct workload *w, struct status *st)
{
    if (*text == NULL)
        return 0;
    const char *rest = *text, *name = take(text, "chain");
    if (name == NULL)
        return status_set(st, STATUS_USAGE, "it goes on after its attention mask: '%.80s'", rest);
    w->chain = chain_find(name);
    if (w->chain == NULL || (w->chain == &chain_bert && *text == NULL))
        return status_set(st, STATUS_USAGE, "there is no other chain '%.80s'", name);
    const struct chain_functions f = chain_functions(w->chain);
    const char *theta = f.rope ? take(text, "rope") : NULL;
    if (f.rope && theta == NULL)
        return status_set(st, STATUS_USAGE, "it lacks 'rope=' behind its chain");
    if (f.rope && rope_parse("rope", theta, &w->rope_theta, &w->rope_factor, st) != 0)
        return -1;
    if (f.hidden && take_size(text, "hidden", &w->hidden, st) != 0)
        return -1;
    if ((int64_t)w->heads * w->head_size == w->hidden)
        return status_set(st, STATUS_USAGE, "its hidden size is that of its heads");
    return take_local(text, w, st);
}

static int parse(char *text, struct workload *w, struct status *st)
{
    const struct {
        const char *key;
        int *size;
    } sizes[] = {{"b", &w->batch},     {"s", &w->seq_len}, {"h", &w->heads},
                 {"w", &w->head_size}, {"f", &w->ffn},     {"l", &w->layers}};
    for (size_t i = 0; i < ARRAY_LEN(sizes); i++)
        if (take_size(&text, sizes[i].key, sizes[i].size, st) != 0)
            return -1;
    const char *eps = take(&text, "eps");
    if (eps == NULL)
        return status_set(st, STATUS_USAGE, "it lacks 'eps='");
    if (number_parse_double("eps", eps, EPS_MIN, EPS_MAX, &w->eps, st) != 0 ||
        take_dtype(&text, &w->dtype, st) != 0 || take_lengths(&text, w, st) != 0 ||
        take_mask(&text, &w->mask_spec, st) != 0 || take_chain(&text, w, st) != 0)
        return -1;
    return workload_check(w, st);
}

int workload_parse(const char *text, struct workload *out, struct status *st)
{
    SCOPED char *copy = mem_strdup(text);
    *out = (struct workload){.chain = &chain_bert};
    int result = parse(copy, out, st);
    if (result != 0)
        status_prefix(st, "'%.200s' is not a workload", text);
    return result;
}
