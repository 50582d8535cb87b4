#include "cmd/options_int.h"

static void add_words(struct buf *out, const char *const *words, int n)
{
    for (int i = 0; i < n; i++)
        buf_addf(out, "%s%s", i > 0 ? " " : "", words[i]);
}

void words_format(struct buf *out)
{
    static const char *const names[] = {[FORMAT_TABLE] = "table",
                                        [FORMAT_JSON] = "json",
                                        [FORMAT_NDJSON] = "ndjson",
                                        [FORMAT_CSV] = "csv",
                                        [FORMAT_MARKDOWN] = "markdown"};
    add_words(out, names, ARRAY_LEN(names));
}

void words_norm(struct buf *out)
{
    buf_adds(out, "post pre");
}

void words_norm_kind(struct buf *out)
{
    buf_adds(out, "layer rms");
}

void words_none(struct buf *out)
{
    buf_adds(out, "none");
}

/* In the order of their ids. */
void words_activation(struct buf *out)
{
    for (int id = FUNCTION_BIAS_GELU; op_functions[id].kind == KIND_ACTIVATION; id++)
        buf_addf(out, "%s%s", id > FUNCTION_BIAS_GELU ? " " : "", op_functions[id].name);
}

void words_init(struct buf *out)
{
    add_words(out, ranges_names, RANGES_COUNT);
}

void words_precision(struct buf *out)
{
    buf_adds(out, "fp16 fp8 ");
    add_words(out, gemm_names, GEMM_COUNT);
}

void words_rigor(struct buf *out)
{
    add_words(out, rigor_names, RIGOR_COUNT);
}

void words_op(struct buf *out)
{
    buf_adds(out, "attention");
}

void words_target(struct buf *out)
{
    add_words(out, target_names, TARGET_COUNT);
}

void words_arch(struct buf *out)
{
    arch_words(" ", out);
    buf_adds(out, " " CPU_ARCH_EXAMPLE);
}

void words_dtype(struct buf *out)
{
    for (int i = 0; i < DTYPE_COUNT; i++)
        buf_addf(out, "%s%s", i > 0 ? " " : "", dtypes[i].name);
}

void words_strategy(struct buf *out)
{
    for (int i = 0; i < strategy_count; i++)
        buf_addf(out, "%s%s", i > 0 ? " " : "", strategies[i].name);
}

void help_strategies(struct buf *out)
{
    buf_adds(out, "strategies:\n");
    for (int i = 0; i < strategy_count; i++)
        buf_addf(out, "  %-26s %s\n", strategies[i].name, strategies[i].summary);
}

void words_mask(struct buf *out)
{
    for (int i = 0; i < mask_kind_count(); i++) {
        const char *name, *usage;
        SCOPED_BUF summary = BUF_INIT;
        mask_kind_info(i, &name, &usage, &summary);
        buf_addf(out, "%s%s", i > 0 ? " " : "", name);
    }
}

void words_commands(struct buf *out)
{
    for (int i = 0; i < command_count; i++)
        buf_addf(out, "%s%s", i > 0 ? " " : "", commands[i]->name);
}

void words_join(const char *prefix, const char *const *list, int n, const char *last,
                struct buf *out)
{
    for (int i = 0; i < n; i++)
        buf_addf(out, "%s%s%s", i == 0 ? "" : i == n - 1 ? last : ", ", prefix, list[i]);
}

enum { WORDS_MAX = 80 };

/* How many words a list has; they lie in `text`. */
static int split_words(void (*words)(struct buf *words), struct buf *text,
                       const char *list[WORDS_MAX])
{
    char *rest;
    int n = 0;
    words(text);
    for (char *one = strtok_r(text->ptr, " ", &rest); one != NULL && n < WORDS_MAX;
         one = strtok_r(NULL, " ", &rest))
        list[n++] = one;
    return n;
}

void option_help(const struct option_info *info, struct buf *out)
{
    const char *at = strchr(info->help, '%');
    if (at == NULL) {
        buf_adds(out, info->help);
        return;
    }
    const char *list[WORDS_MAX];
    SCOPED_BUF text = BUF_INIT;
    int n = split_words(info->words, &text, list);
    buf_addf(out, "%.*s", (int)(at - info->help), info->help);
    words_join("", list, n, " or ", out);
    buf_adds(out, at + 1);
}

int words_find(const char *what, const char *word, void (*words)(struct buf *words),
               struct status *st)
{
    const char *list[WORDS_MAX];
    SCOPED_BUF text = BUF_INIT, all = BUF_INIT;
    int at = 0;
    int n = split_words(words, &text, list);
    while (at < n && strcmp(word, list[at]) != 0)
        at++;
    words_join("", list, n, " or ", &all);
    if (at == n) {
        const char *nearest = nearest_word(word, list, n);
        at = status_set(st, STATUS_USAGE, "unknown %s '%s'; %s%s%sexpected %s", what, word,
                        nearest != NULL ? "did you mean '" : "", nearest != NULL ? nearest : "",
                        nearest != NULL ? "'? " : "", all.ptr);
    }
    return at;
}
