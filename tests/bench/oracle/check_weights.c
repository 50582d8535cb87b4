/* Files of weights: which are read, and what is said of the others. */
#include "bench/trained/trained.h"
#include "tests/bench/oracle/tensors.h"
#include "tests/workload.h"

#include <fnmatch.h>

/* A family's model with changes; says: why it is refused. */
struct file {
    const char *family, *prefix; /* of all names */
    const char *also, *says;     /* a tensor more */
    const char *type;            /* of that tensor, if another one than F32 */
    const char *twice, *lost;    /* another prefix; a pattern of the names that it lacks */
    const char *wanted;          /* the prefix asked for */
};

/* Appends a tensor's entry to a header, and its bytes. */
static void add_tensor(const struct safetensor *t, const char *prefix, const char *name,
                       const char *type, struct buf *header, struct buf *data)
{
    buf_addf(header, "%s\"%s%s\":{\"dtype\":\"%s\",\"shape\":[", header->len > 0 ? "," : "{",
             prefix, name, type != NULL ? type : "F32");
    for (int d = 0; d < t->dims; d++)
        buf_addf(header, "%s%d", d > 0 ? "," : "", (int)t->shape[d]);
    buf_addf(header, "],\"data_offsets\":[%zu,%zu]}", data->len,
             data->len + (size_t)(t->end - t->begin));
    buf_add(data, (const char *)t->data, (size_t)(t->end - t->begin));
}

static const char *write_model(const char *name, const struct file *file)
{
    struct safetensors f;
    SCOPED_BUF header = BUF_INIT, data = BUF_INIT;
    ck_assert_int_eq(safetensors_open(path_of(UNPACKED, file->family, ".model.safetensors"), &f),
                     0);
    for (size_t i = 0; i < f.count; i++) {
        char tensor[200];
        snprintf(tensor, sizeof(tensor), "%.*s", NAME(&f.tensors[i]));
        if (file->lost != NULL && fnmatch(file->lost, tensor, 0) == 0)
            continue;
        add_tensor(&f.tensors[i], file->prefix, tensor, NULL, &header, &data);
        if (file->twice != NULL)
            add_tensor(&f.tensors[i], file->twice, tensor, NULL, &header, &data);
    }
    if (file->also != NULL)
        add_tensor(&f.tensors[0], "", file->also, file->type, &header, &data);
    safetensors_close(&f);
    const char *path = test_path(name);
    write_tensors(path, &header, &data);
    return path;
}

#define FIRST "encoder.layer.0.attention.self.query."

static const struct file models[] = {
    {"bert", "bert.", NULL, NULL, .wanted = "bert"},
    {"bert", "bert.", FIRST "weight", NULL, .wanted = "bert"},
    {"bert", "bert.", FIRST "weight",
     .says = "several models; choose one with --prefix, of 'bert.', '.'"},
    {"bert", "bert.", NULL, "no layers have the prefix 'roberta'; it has layers with 'bert.'",
     .wanted = "roberta"},
    {"bert", "roberta.", NULL, NULL, .wanted = "roberta."},
    {"bert", "0.auto_model.", .says = NULL},
    {"bert", "module._orig_mod.bert.", NULL, NULL, .wanted = "bert"},
    {"bert", "base_model.model.encoder.", .says = NULL},
    {"bert", "", NULL, NULL, .wanted = ".", .lost = "*.attention.self.key.bias"},
    {"bert", "", NULL, "1.attention.self.key.bias' is missing", .lost = "*.1.*.self.key.bias"},
    {"bert", "", NULL, "'encoder.layer.1.output.dense.bias' is missing",
     .lost = "encoder.layer.1.output.dense.bias"},
    {"bert", "", NULL, "weight' is missing in all layers, as where attention",
     .lost = "encoder.layer.?.output.LayerNorm.weight"},
    {"bert", "", "encoder.layer.2.output.dense.bias",
     "'encoder.layer.1.attention.self.query.weight' is missing, and there are later layers",
     .lost = "encoder.layer.1.*"},
    {"bert", "", "embeddings.position_ids", .says = NULL},
    {"bert", "", "lm_head.layer_norm.weight", .says = NULL},
    {"bert", "model.deberta.", .says = "'model.deberta.' is of DeBERTa"},
    {"bert", "roformer.", .says = "'roformer.' is of RoFormer"},
    {"bert", "nezha.", .says = "'nezha.' is of NEZHA"},
    {"bert", "x.y", .says = "no layer 0 of a known family: no name ends in 'encoder.layer.0."},
    {"bert", "", "module." FIRST "weight", .says = "' are the same weight"},
    {"bert", "", FIRST "lora_A.weight",
     .says = "query.lora_A.weight' has no place in the layers of BERT: it is of a LoRA"},
    {"bert", "x.y", FIRST "base_layer.weight", .says = "is below an adapter that is not merged"},
    {"bert", "", FIRST "SCB", .says = "it is of quantised weights"},
    {"bert", "", "encoder.relative_attention_bias.weight",
     .says = "it is a bias by position, as MPNet"},
    {"bert", "x.y", "encoder.layer.0.attention.attn.q.weight",
     .says = "'encoder.layer.0.attention.attn.k.weight' is missing"},
    {"bert", "", "encoder.rel_embeddings.weight", .says = "it is of DeBERTa"},
    {"bert", "x.y", "encoder.layer.0.attention.self.pos_proj.weight", .says = "is of DeBERTa"},
    {"bert", "x.y", "transformer.h.0.mlp.fc_in.weight", .says = "is of GPT-J"},
    {"bert", "x.y", "gpt_neox.layers.0.attention.dense.weight", .says = "is of GPT-NeoX"},
    {"bert", "x.y", "embed_in.weight", .says = "is of GPT-NeoX"},
    {"bert", "x.y", "transformer.h.0.ln_attn.weight", .says = "is of Falcon"},
    {"bert", "", "encoder.layer.0.attention.self.rotary_emb.inv_freq",
     .says = "of rotary positions"},
    {"bert", "", "encoder.layer.1.mlp.gated_layers.weight", .says = "it is of a gated MLP"},
    {"bert", "", "encoder.layer.1.attention.LayerNorm.weight", .says = "computes something else"},
    {"bert", "", "encoder.layer.01.output.dense.bias", .says = "no place in the layers of BERT"},
    {"bert", "", "encoder.layer.4294967297.output.dense.bias",
     .says = "no place in the layers of BERT"},
    {"distilbert", "distilbert.", .says = NULL},
    {"whisper", "model.", "model.encoder.conv1.weight", .says = NULL},
    {"whisper", "model.", "model.encoder.layers.0.fc3.weight",
     .says = "layers.0.fc3.weight' has no place in the layers of Whisper"},
    {"whisper", "model.", "model.encoder.layernorm_embedding.weight", .says = "it is of BART"},
    {"gpt2", "transformer.", "transformer.h.1.attn.bias", .says = NULL},
    {"gpt2", "", "h.1.attn.masked_bias", .says = NULL},
    {"gpt2", "", "h.1.attn.masked_bias2", .says = "has no place in the layers of GPT-2"},
    {"gpt2", "", "h.1.crossattention.c_attn.weight", .says = "of a decoder's attention"},
    {"clip-vision", "vision_model.", NULL,
     "several models; choose one with --prefix, of 'text_model.', 'vision_model.'",
     .twice = "text_model."},
    {"clip-vision", "vision_model.", NULL, NULL, .wanted = "vision_model", .twice = "text_model."},
    {"t5-relu", "", "decoder.block.0.layer.0.SelfAttention.q.weight", .says = NULL},
    {"eurobert", "model.", "model.layers.0.self_attn.q_norm.weight",
     .says = "norm of queries and keys"},
    {"eurobert", "", "layers.0.post_feedforward_layernorm.weight",
     .says = "it is of branches that end in norms, as Gemma 2's"},
    {"eurobert", "", "layers.0.mlp.experts.0.gate_proj.weight", .says = "mixture of experts"},
    {"eurobert", "", "layers.0.block_sparse_moe.gate.weight", .says = "mixture of experts"},
    {"eurobert", "", "layers.0.mlp.gate.weight", .says = "mixture of experts"},
    {"nomic", "", "encoder.layers.1.mlp.experts.mlp.w1", .says = "of a mixture of experts"},
    {"wav2vec2", "wav2vec2.", "wav2vec2.encoder.pos_conv_embed.conv.bias", .says = NULL},
    {"wav2vec2", "", "encoder.layers.0.adapter_layer.norm.weight", .says = "of an adapter"},
    /* Whisper's decoder has OPT's names, and reads the encoder's output beside its own. */
    {"opt", "model.", .says = NULL},
    {"opt", "model.", "model.decoder.layers.0.encoder_attn.q_proj.weight",
     .says = "of a decoder's attention"},
};

static struct workload workload_with(const char *chain)
{
    struct workload w = workload_sized(1, 1);
    w.chain = chain_find(chain);
    w.heads = 3;
    w.head_size = 16;
    w.ffn = 64;
    w.layers = 2;
    return w;
}

TEST_LOOP(layers_of_whole_models_are_found, 0, ARRAY_LEN(models))
{
    const struct file *f = &models[_i];
    const char *path = write_model("model.safetensors", f);
    SCOPED_BY(trained_close_at) struct trained *t;
    SCOPED_BY(workload_release) struct workload w = workload_with("bert");
    if (f->says != NULL) {
        FAILS(trained_open(path, f->wanted, &t, &st), STATUS_USAGE, f->says);
        return;
    }
    OK(trained_open(path, f->wanted, &t, &st));
    if (strcmp(f->family, "bert") == 0)
        OK(trained_check(t, &w, &st));
}

/* What a file lacks of a workload's layers.  Ones and zeros in place of a last norm would be
 * silently wrong. */
static const struct {
    const char *chain;
    struct file file;
} lacking[] = {
#define NO_NORM(chain, family, tensor)                                                             \
    {                                                                                              \
        chain,                                                                                     \
        {                                                                                          \
            family, "", NULL, "'" tensor "', of the last norm, is missing", .lost = tensor         \
        }                                                                                          \
    }
    NO_NORM("pre", "vit", "layernorm.weight"),
    NO_NORM("pre", "vit", "layernorm.bias"),
    NO_NORM("pre+silu+gate", "dinov2-swiglu", "layernorm.weight"),
    NO_NORM("pre+quick_gelu", "clip-vision", "post_layernorm.bias"),
    NO_NORM("pre", "whisper", "encoder.layer_norm.bias"),
    NO_NORM("pre+gelu_tanh", "gpt2", "ln_f.bias"),
    NO_NORM("pre+gelu_tanh+bias", "bloom", "ln_f.weight"),
    NO_NORM("pre+relu", "opt", "decoder.final_layer_norm.bias"),
    NO_NORM("pre+rms+relu+bias", "t5-relu", "encoder.final_layer_norm.weight"),
#define OTHER(tensor, type, says)                                                                  \
    {                                                                                              \
        "bert",                                                                                    \
        {                                                                                          \
            "bert", "", tensor, says, type, .lost = tensor                                         \
        }                                                                                          \
    }
    OTHER("encoder.layer.1.intermediate.dense.bias", "F32",
          "intermediate.dense.bias' has the shape (48,); expected (64,)"),
    OTHER("encoder.layer.1.output.dense.weight", "F32",
          "output.dense.weight' has the shape (48,); expected (48,64)"),
    OTHER("encoder.layer.1.output.dense.bias", "I32",
          "output.dense.bias' is of type I32; expected F32, F16 or BF16: the model is quantised"),
};

TEST_LOOP(tensors_are_those_of_the_workload, 0, ARRAY_LEN(lacking))
{
    SCOPED_BY(trained_close_at) struct trained *t;
    SCOPED_BY(workload_release) struct workload w = workload_with(lacking[_i].chain);
    OK(trained_open(write_model("model.safetensors", &lacking[_i].file), NULL, &t, &st));
    FAILS(trained_check(t, &w, &st), STATUS_USAGE, lacking[_i].file.says);
}

/* What is no file of tensors. */
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

TEST_LOOP(other_files_are_refused, 0, ARRAY_LEN(others))
{
    struct trained *t;
    const char *path = test_path("other");
    OK(file_write(path, others[_i].bytes, others[_i].len, &st));
    FAILS(trained_open(path, NULL, &t, &st), STATUS_USAGE, others[_i].says);
}

#define POOLER                                                                                     \
    "\x39\0\0\0\0\0\0\0{\"pooler\":{\"dtype\":\"U8\",\"shape\":[],\"data_offsets\":[0,1]}}x"

/* An index of two shards, of which the second one's tensor is said to be in `where`.  It lists the
 * first one's tensors from number `first` on. */
static const char *write_shards(const char *where, size_t first)
{
    static const struct file bert = {"bert", "", .says = NULL};
    struct safetensors f;
    SCOPED_BUF index = BUF_INIT;
    ck_assert_int_eq(safetensors_open(write_model("a.safetensors", &bert), &f), 0);
    buf_adds(&index, "\xef\xbb\xbf{\"metadata\": {\"total_size\": 1e3, \"x\": \"y\"}, "
                     "\"weight_map\": {");
    for (size_t i = first; i < f.count; i++)
        buf_addf(&index, "\"%.*s\": \"a.safetensors\", ", NAME(&f.tensors[i]));
    buf_addf(&index, "\"pooler\": \"%s\"}}\n", where);
    safetensors_close(&f);
    OK(file_write(test_path("b.safetensors"), POOLER, sizeof(POOLER) - 1, &st));
    write_text(test_path("model.index"), index.ptr);
    return test_path("model.index");
}

TEST(shards_are_one_model)
{
    SCOPED_BY(trained_close_at) struct trained *t;
    FAILS(trained_open(write_shards("a.safetensors", 0), NULL, &t, &st), STATUS_USAGE,
          "'pooler' is not in 'a.safetensors', where the index");
    FAILS(trained_open(test_dir, NULL, &t, &st), STATUS_USAGE,
          "it is a directory; name a file in it: 'a.safetensors', 'b.safetensors'");
    FAILS(trained_open(write_shards("b.safetensors", 1), NULL, &t, &st), STATUS_USAGE,
          "tensors, and it lists");
    OK(trained_open(write_shards("b.safetensors", 0), NULL, &t, &st));
}

SUITE("weights", test_dir_setup, test_dir_teardown)
