/* weights.c FILE: writes a made-up BERT to FILE under HuggingFace's names, and loads it as the
 * exported example does. */
#include "weights.h"

#include "elements.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { LAYERS = 2, D = 16, F = 64, TENSORS = 16, HEADER_MOST = 1 << 16 };

static const struct tensor {
    const char *name;
    int out, in; /* in 0: a vector */
} tensors[TENSORS] = {
    {"attention.self.query.weight", D, D},
    {"attention.self.query.bias", D, 0},
    {"attention.self.key.weight", D, D},
    {"attention.self.key.bias", D, 0},
    {"attention.self.value.weight", D, D},
    {"attention.self.value.bias", D, 0},
    {"attention.output.dense.weight", D, D},
    {"attention.output.dense.bias", D, 0},
    {"attention.output.LayerNorm.gamma", D, 0}, /* the older name */
    {"attention.output.LayerNorm.beta", D, 0},
    {"intermediate.dense.weight", F, D},
    {"intermediate.dense.bias", F, 0},
    {"output.dense.weight", D, F},
    {"output.dense.bias", D, 0},
    {"output.LayerNorm.weight", D, 0},
    {"output.LayerNorm.bias", D, 0},
};

/* DistilBERT's names, in the same order. */
static const char *const distilbert[TENSORS] = {
    "attention.q_lin.weight",   "attention.q_lin.bias",   "attention.k_lin.weight",
    "attention.k_lin.bias",     "attention.v_lin.weight", "attention.v_lin.bias",
    "attention.out_lin.weight", "attention.out_lin.bias", "sa_layer_norm.weight",
    "sa_layer_norm.bias",       "ffn.lin1.weight",        "ffn.lin1.bias",
    "ffn.lin2.weight",          "ffn.lin2.bias",          "output_layer_norm.weight",
    "output_layer_norm.bias"};

/* Element (o, i) of a tensor: different for each, and exact in fp16. */
static float value(int layer, int tensor, int o, int i)
{
    return (float)((layer * 31 + tensor * 7 + o * 5 + i * 3) % 1024) / 64;
}

/* What a file has other than a BertModel of two layers in fp16, without a prefix. */
struct file {
    const char *prefix;
    bool distilbert;
    const char *missing;    /* a tensor of layer 1 that it lacks */
    const char *lost;       /* one that all layers lack */
    const char *reshaped;   /* one that is a column longer */
    const char *retyped;    /* one of another type, */
    const char *type;       /* this */
    const char *poisoned;   /* one that holds, at element (2,3) or (2,), */
    uint16_t poison;        /* this */
    const char *also;       /* the name of a tensor more, of one element */
    const char *also_twice; /* another one */
    int second;             /* the number of the second layer, less 1 */
};

static bool is(const char *name, const char *faulty, int layer)
{
    return faulty != NULL && layer == 1 && strcmp(name, faulty) == 0;
}

struct writer {
    char header[HEADER_MOST];
    uint16_t data[LAYERS * 2 * (4 * D * D + 2 * D * F + 20 * D)];
    size_t len, at; /* in both */
};

static void add_tensor(struct writer *w, const char *name, const char *type, int out, int in)
{
    char shape[32];
    size_t end = w->at + (size_t)out * (size_t)(in > 0 ? in : 1);
    snprintf(shape, sizeof(shape), in > 0 ? "%d,%d" : "%d", out, in);
    w->len +=
        (size_t)snprintf(w->header + w->len, sizeof(w->header) - w->len,
                         ",\"%s\":{\"dtype\":\"%s\",\"shape\":[%s],\"data_offsets\":[%zu,%zu]}",
                         name, type, shape, 2 * w->at, 2 * end);
}

static void add_layer(struct writer *w, const struct file *f, int layer)
{
    for (int t = 0; t < TENSORS; t++) {
        const struct tensor *x = &tensors[t];
        char name[128];
        int out = x->out + is(x->name, f->reshaped, layer), columns = x->in > 0 ? x->in : 1;
        uint16_t *data = w->data + w->at;
        if (is(x->name, f->missing, layer) || (f->lost != NULL && strcmp(x->name, f->lost) == 0))
            continue;
        snprintf(name, sizeof(name), "%s%s.layer.%d.%s", f->prefix != NULL ? f->prefix : "",
                 f->distilbert ? "transformer" : "encoder", layer > 0 ? layer + f->second : 0,
                 f->distilbert ? distilbert[t] : x->name);
        add_tensor(w, name, is(x->name, f->retyped, layer) ? f->type : "F16", out, x->in);
        for (int i = 0; i < out * columns; i++)
            data[i] = element_to_fp16(value(layer, t, i / columns, i % columns));
        if (is(x->name, f->poisoned, layer))
            data[2 * columns + (x->in > 0 ? 3 : 0)] = f->poison;
        w->at += (size_t)(out * columns);
    }
}

static void write_model(const char *path, const struct file *f)
{
    static struct writer w;
    w.at = 0;
    w.len = (size_t)snprintf(w.header, sizeof(w.header), "{\"__metadata__\":{\"format\":\"pt\"}");
    for (int layer = 0; layer < LAYERS; layer++)
        add_layer(&w, f, layer);
    for (int i = 0; i < 2; i++) {
        const char *also = i == 0 ? f->also : f->also_twice;
        if (also != NULL)
            add_tensor(&w, also, "F16", 1, 0);
        w.at += also != NULL;
    }
    w.len += (size_t)snprintf(w.header + w.len, sizeof(w.header) - w.len, "}");
    uint64_t prefix = w.len;
    FILE *file = fopen(path, "wb");
    fwrite(&prefix, sizeof(prefix), 1, file);
    fwrite(w.header, 1, w.len, file);
    fwrite(w.data, sizeof(*w.data), w.at, file);
    fclose(file);
}

static int failures;

static void expect(float got, float wanted, const char *what)
{
    if (got != wanted && failures++ < 10)
        printf("%s: %g, expected %g\n", what, (double)got, (double)wanted);
}

static void check_layer(const struct encoder_weights *w, int layer, bool key_bias)
{
    const float *wqkv = w->wqkv, *bqkv = w->bqkv, *wo = w->wo, *w1 = w->w1, *w2 = w->w2;
    const float *gamma1 = w->gamma1, *beta1 = w->beta1, *beta2 = w->beta2;
    for (int o = 0; o < D; o++) {
        for (int part = 0; part < 3; part++) {
            expect(bqkv[part * D + o],
                   part == 1 && !key_bias ? 0 : value(layer, 2 * part + 1, o, 0), "bqkv");
            for (int i = 0; i < D; i++)
                expect(wqkv[i * 3 * D + part * D + o], value(layer, 2 * part, o, i), "wqkv");
        }
        for (int i = 0; i < D; i++)
            expect(wo[i * D + o], value(layer, 6, o, i), "wo");
        for (int i = 0; i < F; i++)
            expect(w2[i * D + o], value(layer, 12, o, i), "w2");
        expect(gamma1[o], value(layer, 8, o, 0), "gamma1");
        expect(beta1[o], value(layer, 9, o, 0), "beta1");
        expect(beta2[o], value(layer, 15, o, 0), "beta2");
    }
    for (int o = 0; o < F; o++)
        for (int i = 0; i < D; i++)
            expect(w1[i * F + o], value(layer, 10, o, i), "w1");
}

/* Files that are read.  wanted: the prefix asked for. */
static const struct {
    struct file file;
    const char *wanted;
} good[] = {
    {{.prefix = NULL}, NULL},
    {{.prefix = "bert."}, "bert"},
    {{.prefix = "roberta."}, "roberta."},
    {{.prefix = "distilbert.", .distilbert = true}, NULL},
    {{.prefix = "0.auto_model."}, NULL},
    {{.prefix = "module._orig_mod.bert."}, "bert"},
    {{.prefix = "base_model.model.encoder."}, NULL},
    {{.lost = "attention.self.key.bias"}, "."},
    {{.prefix = "bert.", .also = "encoder.layer.0.attention.self.query.weight"}, "bert"},
    {{.also = "embeddings.position_ids", .also_twice = "lm_head.layer_norm.weight"}, NULL},
};

#define FIRST      "encoder.layer.0.attention.self.query."
#define FIRST_NAME FIRST "weight"

/* Files that are refused, and what the message says. */
static const struct {
    struct file file;
    const char *says;
} bad[] = {
    {{.missing = "output.dense.bias"}, "'encoder.layer.1.output.dense.bias' is missing"},
    {{.missing = "attention.self.key.bias"}, "1.attention.self.key.bias' is missing"},
    {{.lost = "output.LayerNorm.weight"}, "weight' is missing in all layers, as where attention"},
    {{.second = 1},
     "'encoder.layer.1.attention.self.query.weight' is missing, and there are later layers"},
    {{.reshaped = "intermediate.dense.bias"}, "bias' has the shape (65,); expected (64,)"},
    {{.reshaped = "output.dense.weight"}, "weight' has the shape (17,64); expected (16,64)"},
    {{.retyped = "output.dense.weight", .type = "I16"}, "weight' is of type I16; expected F32"},
    {{.poisoned = "output.dense.weight", .poison = 0x7e00},
     "'encoder.layer.1.output.dense.weight' is nan at (2,3): the file is damaged"},
    {{.poisoned = "output.dense.bias", .poison = 0xfc00}, "output.dense.bias' is -inf at (2,)"},
    {{.prefix = "model.deberta."}, "'model.deberta.' is of DeBERTa"},
    {{.prefix = "roformer."}, "'roformer.' is of RoFormer"},
    {{.prefix = "nezha."}, "'nezha.' is of NEZHA"},
    {{.prefix = "x.y"}, "it has no layer 0 of a known family: no name ends in 'encoder.layer.0."},
    {{.prefix = "bert.", .also = FIRST_NAME},
     "several models; choose one with --prefix, of 'bert.', '.'"},
    {{.also = "module." FIRST_NAME}, "' are the same weight"},
    {{.also = FIRST "lora_A.weight"},
     "query.lora_A.weight' has no place in the layers of BERT: it is of a LoRA"},
    {{.prefix = "x.y", .also = FIRST "base_layer.weight"},
     "is below an adapter that is not merged"},
    {{.also = FIRST "SCB"}, "it is of quantised weights"},
    {{.also = "encoder.relative_attention_bias.weight"}, "it is a bias by position, as MPNet"},
    {{.prefix = "x.y", .also = "encoder.layer.0.attention.attn.q.weight"},
     "'encoder.layer.0.attention.attn.k.weight' is missing"},
    {{.also = "encoder.rel_embeddings.weight"}, "it is of DeBERTa"},
    {{.prefix = "x.y", .also = "encoder.layer.0.attention.self.pos_proj.weight"}, "is of DeBERTa"},
    {{.prefix = "x.y", .also = "transformer.h.0.mlp.fc_in.weight"}, "is of GPT-J"},
    {{.prefix = "x.y", .also = "gpt_neox.layers.0.attention.dense.weight"}, "is of GPT-NeoX"},
    {{.prefix = "x.y", .also = "embed_in.weight"}, "is of GPT-NeoX"},
    {{.prefix = "x.y", .also = "transformer.h.0.ln_attn.weight"}, "is of Falcon"},
    {{.also = "encoder.layer.0.attention.self.rotary_emb.inv_freq"}, "it is of rotary positions"},
    {{.also = "encoder.layer.1.mlp.gated_layers.weight"}, "it is of a gated MLP"},
    {{.also = "encoder.layer.1.attention.LayerNorm.weight"},
     "it is of a model that computes something else"},
    {{.also = "encoder.layer.01.output.dense.bias"}, "no place in the layers of BERT"},
    {{.also = "encoder.layer.4294967297.output.dense.bias"}, "no place in the layers of BERT"},
};

static void accept_file(const char *path, const struct file *file, const char *wanted)
{
    struct weights w;
    write_model(path, file);
    if (weights_load(path, wanted, encoder_describe(), &w) != 0 || w.layers != LAYERS) {
        printf("prefix '%s': %d layers: %s\n", file->prefix, w.layers, w.error);
        failures++;
    }
    for (int layer = 0; layer < w.layers && w.error[0] == '\0'; layer++)
        check_layer(&w.list[layer], layer, file->lost == NULL);
    weights_release(&w);
}

static void refuse_file(const char *path, const char *wanted, const struct encoder_info *as,
                        const char *says)
{
    struct weights w;
    if (weights_load(path, wanted, as, &w) == 0 || strstr(w.error, says) == NULL) {
        printf("not refused with '%s': %s\n", says, w.error);
        failures++;
    }
    weights_release(&w);
}

/* What is no file of tensors, and what the message says. */
static const struct {
    const char *bytes;
    size_t len;
    const char *says;
} others[] = {
    {"", 0, "it is empty"},
    {"\71\0\0", 3, "8 bytes expected, found 3"},
    {"\71\0\0\0\0\0\0\0{", 9, "have 57 bytes; the format has at most 100000000, the file 1"},
    {"\71\0\0\0\0\0\0\0{\"pooler\":{\"dtype\":\"U8\",\"shape\":[],\"data_offsets\":[0,1]}}", 65,
     "take 1 bytes, and 0 are in the file: it is truncated; fetch it again"},
    {"version https://git-lfs.github.com/spec/v1\noid sha256:0\n", 57, "git lfs pull"},
    {"\n<!DOCTYPE html><html>", 22, "it is a web page"},
    {"<HTML><head>", 12, "it is a web page"},
    {"Invalid username or password.", 29, "it is a text, as a download that failed leaves"},
    {"no", 2, "it is a text"},
    {"PK\3\4\24\0\0\0\0\0", 10, "it is a zip, as PyTorch writes"},
    {"\x80\2}q\0.......", 12, "it is a pickle, as PyTorch writes"},
    {"GGUF\3\0\0\0\0\0", 10, "it is a GGUF file"},
    {"{\"hidden_size\": 768}", 20, "it is JSON, and no index of shards"},
    {"{\"weight_map\": {\"a\": \"../b.safetensors\"}}", 41, "a shard is no .safetensors file"},
    {"{\"weight_map\": {\"a\": \"/b.safetensors\"}}", 39, "a shard is no .safetensors file"},
    {"{\"weight_map\": {\"a\": \"b.bin\"}}", 30, "a shard is no .safetensors file"},
    {"{\"weight_map\": {\"a\": \"none.safetensors\"}}", 41,
     "shard 'none.safetensors': No such file"},
};

static void write_text(const char *path, const char *bytes, size_t len)
{
    FILE *file = fopen(path, "wb");
    fwrite(bytes, 1, len, file);
    fclose(file);
}

/* An index of two shards, of which the second one's tensor is said to be in `where`.  It lists the
 * tensors from number `first` on. */
static void write_shards(const char *where, int first)
{
    char index[HEADER_MOST];
    size_t len = (size_t)snprintf(
        index, sizeof(index),
        "\xef\xbb\xbf{\"metadata\": {\"total_size\": 1e3, \"x\": \"y\"}, \"weight_map\": {");
    for (int i = first; i < LAYERS * TENSORS; i++)
        len += (size_t)snprintf(index + len, sizeof(index) - len,
                                "\"encoder.layer.%d.%s\": \"a.safetensors\", ", i / TENSORS,
                                tensors[i % TENSORS].name);
    len += (size_t)snprintf(index + len, sizeof(index) - len, "\"pooler\": \"%s\"}}\n", where);
    write_text("model.index", index, len);
    write_model("a.safetensors", &(struct file){.prefix = NULL});
    write_text(
        "b.safetensors",
        "\x39\0\0\0\0\0\0\0{\"pooler\":{\"dtype\":\"U8\",\"shape\":[],\"data_offsets\":[0,1]}}x",
        66);
}

int main(int argc, char **argv)
{
    const char *path = argv[1];
    struct encoder_info half = *encoder_describe();
    struct weights w;
    (void)argc;
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        write_model(path, &bad[i].file);
        refuse_file(path, NULL, encoder_describe(), bad[i].says);
    }
    for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); i++) {
        write_text(path, others[i].bytes, others[i].len);
        refuse_file(path, NULL, encoder_describe(), others[i].says);
    }
    /* 1e6, which fp16 cannot hold. */
    half.dtype = ENCODER_FP16;
    half.element_bytes = 2;
    write_model(path, &(struct file){.poisoned = "output.dense.bias",
                                     .poison = 0x4974,
                                     .retyped = "output.dense.bias",
                                     .type = "BF16"});
    refuse_file(path, NULL, &half,
                "output.dense.bias' is 999424 at (2,), which is infinite in fp16");
    write_model(path, &(struct file){.prefix = "bert."});
    refuse_file(path, "roberta", encoder_describe(),
                "no layers have the prefix 'roberta'; it has layers with 'bert.'");
    write_shards("a.safetensors", 0);
    refuse_file("model.index", NULL, encoder_describe(),
                "'pooler' is not in 'a.safetensors', where the index");
    refuse_file(".", NULL, encoder_describe(),
                "it is a directory; name a file in it: 'a.safetensors', 'b.safetensors'");
    write_shards("b.safetensors", 1);
    refuse_file("model.index", NULL, encoder_describe(), "tensors, and it lists");
    write_shards("b.safetensors", 0);
    if (weights_load("model.index", NULL, encoder_describe(), &w) != 0 || w.layers != LAYERS) {
        printf("shards: %s\n", w.error);
        failures++;
    }
    weights_release(&w);
    for (size_t i = sizeof(good) / sizeof(good[0]); i-- > 0;)
        accept_file(path, &good[i].file, good[i].wanted);
    return failures == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
