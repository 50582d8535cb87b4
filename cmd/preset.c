/* Presets: the shapes of known encoders. */
#include "cmd/options_int.h"

/* Of the models' published configurations. */
static const struct preset {
    const char *name;
    int layers, heads, head_size, ffn;
    double eps;
} presets[] = {
    {"bert-tiny", 2, 2, 64, 512, 1e-12},       {"bert-mini", 4, 4, 64, 1024, 1e-12},
    {"bert-small", 4, 8, 64, 2048, 1e-12},     {"bert-medium", 8, 8, 64, 2048, 1e-12},
    {"bert-base", 12, 12, 64, 3072, 1e-12},    {"bert-large", 24, 16, 64, 4096, 1e-12},
    {"distilbert", 6, 12, 64, 3072, 1e-12},    {"roberta-base", 12, 12, 64, 3072, 1e-5},
    {"roberta-large", 24, 16, 64, 4096, 1e-5}, {"electra-small", 12, 4, 64, 1024, 1e-12},
    {"minilm-l6", 6, 12, 32, 1536, 1e-12},     {"minilm-l12", 12, 12, 32, 1536, 1e-12},
};

void words_preset(struct buf *out)
{
    for (size_t i = 0; i < ARRAY_LEN(presets); i++)
        buf_addf(out, "%s%s", i > 0 ? " " : "", presets[i].name);
}

void preset_apply(struct options *o)
{
    if (!options_has(o, OPT(PRESET)))
        return;
    const struct preset *p = &presets[o->preset];
    o->layers = options_has(o, OPT(LAYERS)) ? o->layers : p->layers;
    o->heads = options_has(o, OPT(HEADS)) ? o->heads : p->heads;
    o->head_size = options_has(o, OPT(HEAD_SIZE)) ? o->head_size : p->head_size;
    o->eps = options_has(o, OPT(EPS)) ? o->eps : p->eps;
    if (!options_has(o, OPT(FFN)))
        o->ffn = p->ffn;
}
