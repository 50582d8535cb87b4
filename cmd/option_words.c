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
                                        [FORMAT_CSV] = "csv"};
    add_words(out, names, ARRAY_LEN(names));
}

void words_init(struct buf *out)
{
    add_words(out, ranges_names, RANGES_COUNT);
}

void words_feature(struct buf *out)
{
    static const char *const names[] = {[FEATURES_BITS] = "bits", [FEATURES_PLAN] = "plan"};
    add_words(out, names, ARRAY_LEN(names));
}

void words_rigor(struct buf *out)
{
    add_words(out, rigor_names, RIGOR_COUNT);
}

void words_target(struct buf *out)
{
    add_words(out, target_names, TARGET_COUNT);
}

void words_arch(struct buf *out)
{
    arch_words(" ", out);
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

void words_mask(struct buf *out)
{
    for (int i = 0; i < mask_kind_count(); i++) {
        const char *name, *usage, *summary;
        mask_kind_info(i, &name, &usage, &summary);
        buf_addf(out, "%s%s", i > 0 ? " " : "", name);
    }
}
