#include "cmd/cmd.h"

/* Appends " -H 8" where a size is not the default. */
static void add_size(const char *option, int64_t size, int64_t usual, struct buf *out)
{
    if (size != usual)
        buf_addf(out, " %s %lld", option, (long long)size);
}

/* Appends the options of another chain than BERT's. */
static void add_chain(const struct workload *w, struct buf *out)
{
    const struct chain_functions f = chain_functions(w->chain);
    buf_addf(out, "%s%s", f.pre ? " --norm pre" : "", f.rms ? " --norm-kind rms" : "");
    if (f.activation != FUNCTION_BIAS_GELU)
        buf_addf(out, " --activation %s", op_functions[f.activation].name);
    buf_addf(out, "%s%s", f.gate ? " --gate" : "", f.score_bias ? " --score-bias" : "");
    if (f.rope) {
        buf_adds(out, " --rope ");
        rope_text(w->rope_theta, w->rope_factor, out);
    }
}

/* Appends the options of a second kind of layers. */
static void add_local(const struct workload *w, struct buf *out)
{
    if (w->local == NULL)
        return;
    buf_adds(out, " --local-mask ");
    mask_text(&w->local->mask_spec, out);
    if (w->rope_theta != w->local->rope_theta) {
        buf_adds(out, " --local-rope ");
        number_add(w->local->rope_theta, out);
    }
    buf_addf(out, " --global-every %d", w->every);
}

void known_options(const struct db_workload *w, const char *target_kind, struct buf *out)
{
    SCOPED_BY(workload_release) struct workload usual, parsed;
    struct target_name here;
    workload_init(&usual);
    bool reads = workload_parse(w->text, &parsed, STATUS_IGNORED) == 0;
    target_parse(NULL, &here, STATUS_IGNORED);
    buf_addf(out, "-b %lld -s %lld", (long long)w->batch, (long long)w->seq_len);
    if (strcmp(w->mask, "full") != 0) {
        buf_adds(out, " -m ");
        buf_add_word(out, w->mask);
    }
    add_size("-H", w->heads, usual.heads, out);
    add_size("-W", w->head_size, usual.head_size, out);
    add_size("-L", w->layers, usual.layers, out);
    add_size("--hidden", reads ? parsed.hidden : 0, 0, out);
    add_size("--ffn", w->ffn, 4 * (reads ? workload_hidden(&parsed) : w->heads * w->head_size),
             out);
    if (w->eps != usual.eps) {
        buf_adds(out, " --eps ");
        number_add(w->eps, out);
    }
    if (reads) {
        add_chain(&parsed, out);
        add_local(&parsed, out);
    }
    for (int kind = 0; kind < TARGET_COUNT; kind++)
        if (strcmp(target_kind, target_names[kind]) == 0 &&
            strcmp(w->dtype, dtypes[target_default_dtype((enum target_kind)kind)].name) != 0)
            buf_addf(out, " -t %s", w->dtype);
    if (strcmp(w->lengths, "full") != 0)
        buf_addf(out, " --lengths %s", w->lengths);
    if (strcmp(target_kind, target_names[here.kind]) != 0)
        buf_addf(out, " --target %s", target_kind);
    if (w->init != NULL && strcmp(w->init, ranges_names[0]) != 0)
        buf_addf(out, " --init %s", w->init);
}

/* ---- the end of a message -------------------------------------------------------------------- */

enum { NAMED_MAX = 5 };

struct naming {
    struct buf *names;
    int count;
};

static void add_name(void *ctx, const struct db_workload *w, const char *target_kind)
{
    struct naming *n = ctx;
    n->count++;
    if (n->count > NAMED_MAX)
        return;
    buf_adds(n->names, n->count == 1 ? "'" : ", '");
    known_options(w, target_kind, n->names);
    buf_adds(n->names, "'");
}

int known_refuse(struct db *db, const struct status *missing, struct status *st)
{
    SCOPED_BUF names = BUF_INIT;
    struct naming naming = {&names, 0};
    int result = db_workloads(db, add_name, &naming, st);
    if (result == 0)
        status_set(st, STATUS_NOT_FOUND, "%s%s%s%s", missing->message,
                   naming.count > 0 ? "; known are " : "", names.ptr,
                   naming.count > NAMED_MAX ? " and others" : "");
    return -1;
}
