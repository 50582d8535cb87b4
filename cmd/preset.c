/* Presets: known encoders. */
#include "cmd/options_int.h"

static const struct local modernbert = {64, 10000, 3};

/* Of the models' published configurations. */
static const struct preset {
    const char *name;
    int layers, heads, head_size, ffn;
    double eps;
    const char *chain; /* its name */
    double rope;
    const char *mask;
    int hidden;                /* 0: heads * head_size */
    const struct local *local; /* null: all layers are of one kind */
} presets[] = {
    {"bert-tiny", 2, 2, 64, 512, 1e-12, "bert", 0, "full", 0, NULL},
    {"bert-mini", 4, 4, 64, 1024, 1e-12, "bert", 0, "full", 0, NULL},
    {"bert-small", 4, 8, 64, 2048, 1e-12, "bert", 0, "full", 0, NULL},
    {"bert-medium", 8, 8, 64, 2048, 1e-12, "bert", 0, "full", 0, NULL},
    {"bert-base", 12, 12, 64, 3072, 1e-12, "bert", 0, "full", 0, NULL},
    {"bert-large", 24, 16, 64, 4096, 1e-12, "bert", 0, "full", 0, NULL},
    {"distilbert", 6, 12, 64, 3072, 1e-12, "bert", 0, "full", 0, NULL},
    {"roberta-base", 12, 12, 64, 3072, 1e-5, "bert", 0, "full", 0, NULL},
    {"roberta-large", 24, 16, 64, 4096, 1e-5, "bert", 0, "full", 0, NULL},
    {"xlm-roberta-base", 12, 12, 64, 3072, 1e-5, "bert", 0, "full", 0, NULL},
    {"xlm-roberta-large", 24, 16, 64, 4096, 1e-5, "bert", 0, "full", 0, NULL},
    {"electra-small", 12, 4, 64, 1024, 1e-12, "bert", 0, "full", 0, NULL},
    {"electra-base", 12, 12, 64, 3072, 1e-12, "bert", 0, "full", 0, NULL},
    {"minilm-l6", 6, 12, 32, 1536, 1e-12, "bert", 0, "full", 0, NULL},
    {"minilm-l12", 12, 12, 32, 1536, 1e-12, "bert", 0, "full", 0, NULL},
    {"mpnet-base", 12, 12, 64, 3072, 1e-5, "bias", 0, "full", 0, NULL},
    {"nomic-v1.5", 12, 12, 64, 3072, 1e-12, "silu+gate+rope", 1000, "full", 0, NULL},
    {"gte-base", 12, 12, 64, 3072, 1e-12, "gate+rope", 500000, "full", 0, NULL},
    {"gte-large", 24, 16, 64, 4096, 1e-12, "gate+rope", 160000, "full", 0, NULL},
    {"jina-v2-base", 12, 12, 64, 3072, 1e-12, "gate+bias", 0, "full", 0, NULL},
    {"jina-v3", 24, 16, 64, 4096, 1e-5, "rope", 20000, "full", 0, NULL},
    {"eurobert-210m", 12, 12, 64, 3072, 1e-5, "pre+rms+silu+gate+rope", 250000, "full", 0, NULL},
    {"modernbert-base", 22, 12, 64, 1152, 1e-5, "pre+gate+rope", 160000, "full", 0, &modernbert},
    {"modernbert-large", 28, 16, 64, 2624, 1e-5, "pre+gate+rope", 160000, "full", 0, &modernbert},
    {"vit-base", 12, 12, 64, 3072, 1e-12, "pre", 0, "full", 0, NULL},
    {"vit-large", 24, 16, 64, 4096, 1e-12, "pre", 0, "full", 0, NULL},
    {"vit-huge", 32, 16, 80, 5120, 1e-12, "pre", 0, "full", 0, NULL},
    {"deit-base", 12, 12, 64, 3072, 1e-12, "pre", 0, "full", 0, NULL},
    {"dinov2-small", 12, 6, 64, 1536, 1e-6, "pre", 0, "full", 0, NULL},
    {"dinov2-base", 12, 12, 64, 3072, 1e-6, "pre", 0, "full", 0, NULL},
    {"dinov2-large", 24, 16, 64, 4096, 1e-6, "pre", 0, "full", 0, NULL},
    {"dinov2-giant", 40, 24, 64, 4096, 1e-6, "pre+silu+gate", 0, "full", 0, NULL},
    {"siglip-base", 12, 12, 64, 3072, 1e-6, "pre+gelu_tanh", 0, "full", 0, NULL},
    {"siglip-so400m", 27, 16, 72, 4304, 1e-6, "pre+gelu_tanh", 0, "full", 0, NULL},
    {"clip-b32-vision", 12, 12, 64, 3072, 1e-5, "pre+quick_gelu", 0, "full", 0, NULL},
    {"clip-b32-text", 12, 8, 64, 2048, 1e-5, "pre+quick_gelu", 0, "causal", 0, NULL},
    {"clip-l14-vision", 24, 16, 64, 4096, 1e-5, "pre+quick_gelu", 0, "full", 0, NULL},
    {"clip-l14-text", 12, 12, 64, 3072, 1e-5, "pre+quick_gelu", 0, "causal", 0, NULL},
    {"clip-h14-vision", 32, 16, 80, 5120, 1e-5, "pre", 0, "full", 0, NULL},
    {"whisper-tiny", 4, 6, 64, 1536, 1e-5, "pre", 0, "full", 0, NULL},
    {"whisper-base", 6, 8, 64, 2048, 1e-5, "pre", 0, "full", 0, NULL},
    {"whisper-small", 12, 12, 64, 3072, 1e-5, "pre", 0, "full", 0, NULL},
    {"whisper-medium", 24, 16, 64, 4096, 1e-5, "pre", 0, "full", 0, NULL},
    {"whisper-large", 32, 20, 64, 5120, 1e-5, "pre", 0, "full", 0, NULL},
    {"wav2vec2-base", 12, 12, 64, 3072, 1e-5, "bert", 0, "full", 0, NULL},
    {"wav2vec2-large", 24, 16, 64, 4096, 1e-5, "pre", 0, "full", 0, NULL},
    {"gpt2", 12, 12, 64, 3072, 1e-5, "pre+gelu_tanh", 0, "causal", 0, NULL},
    {"gpt2-medium", 24, 16, 64, 4096, 1e-5, "pre+gelu_tanh", 0, "causal", 0, NULL},
    {"opt-125m", 12, 12, 64, 3072, 1e-5, "pre+relu", 0, "causal", 0, NULL},
    {"bloom-560m", 24, 16, 64, 4096, 1e-5, "pre+gelu_tanh+bias", 0, "causal", 0, NULL},
    {"t5-small", 6, 8, 64, 2048, 1e-6, "pre+rms+relu+bias", 0, "full", 0, NULL},
    {"t5-base", 12, 12, 64, 3072, 1e-6, "pre+rms+relu+bias", 0, "full", 0, NULL},
    {"flan-t5-small", 8, 6, 64, 1024, 1e-6, "pre+rms+gelu_tanh+gate+bias", 0, "full", 512, NULL},
    {"flan-t5-base", 12, 12, 64, 2048, 1e-6, "pre+rms+gelu_tanh+gate+bias", 0, "full", 0, NULL},
};

void words_preset(struct buf *out)
{
    for (size_t i = 0; i < ARRAY_LEN(presets); i++)
        buf_addf(out, "%s%s", i > 0 ? " " : "", presets[i].name);
}

/* *out has no chain if neither option is given. */
static int read_model(const struct options *o, struct model_config *out, struct status *st)
{
    const struct preset *p = &presets[o->preset];
    *out = (struct model_config){.chain = NULL};
    if (options_has(o, OPT(PRESET)) && options_has(o, OPT(MODEL)))
        return status_set(st, STATUS_USAGE,
                          "--preset and --model are given at once; give one of them");
    if (options_has(o, OPT(MODEL)))
        return model_config_read(o->model, out, st);
    if (options_has(o, OPT(PRESET)))
        *out = (struct model_config){.chain = chain_find(p->chain),
                                     .layers = p->layers,
                                     .heads = p->heads,
                                     .head_size = p->head_size,
                                     .ffn = p->ffn,
                                     .eps = p->eps,
                                     .rope_theta = p->rope,
                                     .mask = p->mask,
                                     .hidden = p->hidden};
    if (options_has(o, OPT(PRESET)) && p->local != NULL)
        out->local = *p->local;
    return 0;
}

int preset_apply(struct options *o, struct status *st)
{
    struct model_config m;
    if (read_model(o, &m, st) != 0)
        return -1;
    if (m.chain == NULL)
        return 0;
    const struct chain_functions f = chain_functions(m.chain);
    o->layers = options_has(o, OPT(LAYERS)) ? o->layers : m.layers;
    o->heads = options_has(o, OPT(HEADS)) ? o->heads : m.heads;
    o->head_size = options_has(o, OPT(HEAD_SIZE)) ? o->head_size : m.head_size;
    o->hidden = options_has(o, OPT(HIDDEN)) ? o->hidden : m.hidden;
    o->ffn = options_has(o, OPT(FFN)) ? o->ffn : m.ffn;
    o->eps = options_has(o, OPT(EPS)) ? o->eps : m.eps;
    o->mask = options_has(o, OPT(MASK)) ? o->mask : m.mask;
    o->norm = options_has(o, OPT(NORM)) ? o->norm : f.pre;
    o->norm_kind = options_has(o, OPT(NORM_KIND)) ? o->norm_kind : f.rms;
    o->activation =
        options_has(o, OPT(ACTIVATION)) ? o->activation : (int)f.activation - FUNCTION_BIAS_GELU;
    o->rope = options_has(o, OPT(ROPE)) ? o->rope : m.rope_theta;
    o->rope_factor = options_has(o, OPT(ROPE)) ? o->rope_factor : m.rope_factor;
    o->local_width = options_has(o, OPT(LOCAL_MASK)) || m.local.every == 0 ? -1 : m.local.width;
    o->local_rope = options_has(o, OPT(LOCAL_ROPE)) ? o->local_rope : m.local.rope_theta;
    o->global_every = options_has(o, OPT(GLOBAL_EVERY)) ? o->global_every : m.local.every;
    o->gate = options_has(o, OPT(GATE)) ? o->gate : f.gate;
    o->score_bias = options_has(o, OPT(SCORE_BIAS)) ? o->score_bias : f.score_bias;
    return 0;
}

const struct chain *chain_from_options(const struct options *o)
{
    const struct chain_functions f = {.pre = o->norm == 1,
                                      .rms = o->norm_kind == 1,
                                      .activation =
                                          (enum function_id)(FUNCTION_BIAS_GELU + o->activation),
                                      .gate = o->gate,
                                      .rope = o->rope > 0,
                                      .score_bias = o->score_bias};
    return chain_of(f);
}
