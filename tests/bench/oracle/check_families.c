/* Stacks of layers that HuggingFace computed, of each family of models: tests/data/families.py says
 * what is in the files, and computes the same.  Here the program reads a model's config.json and
 * its weights, and the oracle computes its layers. */
#include "tests/bench/oracle/layer_inputs.h"
#include "tests/bench/oracle/tensors.h"
#include "tests/workload.h"

#include <jansson.h>

#define ERROR_MAX 1e-5 /* of the largest value */

static const struct {
    const char *name, *chain;
    double eps, rope_theta; /* of their config.json, or of the model's code */
    const char *mask;
} families[] = {
    {"albert", "gelu_tanh", 0.01, 0, "full"},
    {"bert", "bert", 0.01, 0, "full"},
    {"bloom", "pre+gelu_tanh+bias", 0.01, 0, "causal"},
    {"clip-text", "pre+quick_gelu", 0.01, 0, "causal"},
    {"clip-vision", "pre+quick_gelu", 0.01, 0, "full"},
    {"deit", "pre", 0.01, 0, "full"},
    {"dinov2", "pre", 0.01, 0, "full"},
    {"dinov2-swiglu", "pre+silu+gate", 0.01, 0, "full"},
    {"distilbert", "bert", 1e-12, 0, "full"},
    {"electra", "bert", 0.01, 0, "full"},
    {"eurobert", "pre+rms+silu+gate+rope", 0.01, 100, "full"},
    {"gpt2", "pre+gelu_tanh", 0.01, 0, "causal"},
    {"gte", "gate+rope", 0.01, 100, "full"},
    {"jina-v2", "gate+bias", 0.01, 0, "full"},
    {"jina-v3", "rope", 0.01, 100, "full"},
    {"modernbert", "pre+gate+rope", 0.01, 100, "full"},
    {"mpnet", "bias", 0.01, 0, "full"},
    {"nomic", "silu+gate+rope", 0.01, 100, "full"},
    {"opt", "pre+relu", 1e-5, 0, "causal"},
    {"opt-post", "relu", 1e-5, 0, "causal"},
    {"roberta", "bert", 0.01, 0, "full"},
    {"siglip-vision", "pre+gelu_tanh", 0.01, 0, "full"},
    {"t5-relu", "pre+rms+relu+bias", 0.01, 0, "full"},
    {"t5-gated", "pre+rms+gelu_tanh+gate+bias+hidden", 0.01, 0, "full"},
    {"vit", "pre", 0.01, 0, "full"},
    {"wav2vec2", "bert", 0.01, 0, "full"},
    {"wav2vec2-stable", "pre", 0.01, 0, "full"},
    {"whisper", "pre", 1e-5, 0, "full"},
};

static void read_lengths(const struct safetensors *golden, struct workload *w)
{
    const struct safetensor *t = tensor_of(golden, "lengths");
    w->lengths = mem_alloc((size_t)w->batch, sizeof(*w->lengths));
    for (int b = 0; b < w->batch; b++) {
        int64_t length;
        memcpy(&length, t->data + (size_t)b * sizeof(length), sizeof(length));
        w->lengths[b] = (int)length;
    }
}

/* The workload that config.json and the golden input say. */
static void read_workload(const char *config, const struct safetensors *golden, struct workload *w)
{
    struct model_config c;
    const struct safetensor *x = tensor_of(golden, "x");
    workload_init(w);
    OK(model_config_read(config, &c, &st));
    w->chain = c.chain;
    w->batch = (int)x->shape[0];
    w->seq_len = (int)x->shape[1];
    w->layers = c.layers;
    w->heads = c.heads;
    w->head_size = c.head_size;
    w->hidden = c.hidden;
    w->ffn = c.ffn;
    w->eps = c.eps;
    w->rope_theta = c.rope_theta;
    w->rope_factor = c.rope_factor;
    ck_assert_int_eq(workload_hidden(w), (int)x->shape[2]);
    read_lengths(golden, w);
    if (c.local.every > 0) {
        char mask[32];
        snprintf(mask, sizeof(mask), "sliding:w=%d", c.local.width);
        OK(workload_add_local(w, mask, c.local.rope_theta, c.local.every, &st));
    }
    workload_ready(w, c.mask, NULL, NULL);
}

/* Puts what a layer hands on into the next one's inputs. */
static void carry(const struct workload *w, const struct oracle_layer *from, struct flow *to)
{
    for (int i = 0; i < w->chain->carried_count; i++) {
        const struct carried c = w->chain->carried[i];
        for (int64_t k = 0; k < tensor_elements(c.from, w); k++)
            to->tensor[c.to][k] = (float)from->tensor[c.from][k];
    }
}

/* The largest difference of real rows, relative to the largest value. */
static double difference(const struct workload *w, const struct safetensor *golden,
                         const float *computed)
{
    const int64_t columns = workload_hidden(w);
    double worst = 0, largest = 0;
    for (int b = 0; b < w->batch; b++)
        for (int64_t i = 0; i < length_of(w, b) * columns; i++) {
            int64_t at = (int64_t)b * w->seq_len * columns + i;
            float right;
            memcpy(&right, golden->data + (size_t)at * sizeof(right), sizeof(right));
            worst = fmax(worst, fabs((double)computed[at] - right));
            largest = fmax(largest, fabs((double)right));
        }
    return worst / largest;
}

static void check_output(const struct workload *w, const struct safetensors *golden,
                         const char *name, const float *computed, const char *family)
{
    const struct safetensor *t = tensor_of(golden, name);
    double error = t != NULL ? difference(w, t, computed) : 0;
    ck_assert_msg(error <= ERROR_MAX, "%s: %s is off by %g", family, name, error);
}

static void check_layers(const struct workload *w, const char *family,
                         const struct safetensors *golden)
{
    struct inputs in = {.seed = 1};
    struct layer_inputs layer = {.weight = {NULL}};
    OK(trained_open(path_of(UNPACKED, family, ".model.safetensors"), NULL,
                    (struct trained **)&in.trained, &st));
    OK(trained_check(in.trained, w, &st));
    flow_init(&layer.flow, w);
    memcpy(layer.flow.tensor[TENSOR_X], tensor_of(golden, "x")->data,
           (size_t)tensor_elements(TENSOR_X, w) * sizeof(float));
    if (layer.flow.tensor[TENSOR_N] != NULL)
        flow_normalise(w, in, &layer.flow);
    for (int id = 0; id < WEIGHT_MAX; id++)
        layer.weight[id] = mem_alloc((size_t)weight_elements(id, w), sizeof(float));
    for (int l = 0; l < w->layers; l++) {
        SCOPED_BY(oracle_layer_release) struct oracle_layer computed;
        for (int id = 0; id < WEIGHT_MAX; id++)
            inputs_weight(w, in, l, id, layer.weight[id]);
        layer_inputs_run(workload_of_layer(w, l), &layer, 1, &computed);
        carry(w, &computed, &layer.flow);
    }
    check_output(w, golden, "y", layer.flow.tensor[TENSOR_X], family);
    if (layer.flow.tensor[TENSOR_N] != NULL)
        check_output(w, golden, "yn", layer.flow.tensor[TENSOR_N], family);
    layer_inputs_release(&layer);
    trained_close((struct trained *)in.trained);
}

TEST_LOOP(layers_compute_what_huggingface_does, 0, ARRAY_LEN(families))
{
    const char *family = families[_i].name, *config = path_of(FAMILIES, family, "/config.json");
    SCOPED_BY(safetensors_close) struct safetensors golden;
    SCOPED_BY(workload_release) struct workload w;
    ck_assert_int_eq(safetensors_open(path_of(UNPACKED, family, ".golden.safetensors"), &golden),
                     0);
    read_workload(config, &golden, &w);
    ck_assert_str_eq(w.chain->name, families[_i].chain);
    ck_assert_double_eq(w.eps, families[_i].eps);
    ck_assert_double_eq(w.rope_theta, families[_i].rope_theta);
    SCOPED_BUF mask = BUF_INIT;
    mask_text(&w.mask_spec, &mask);
    ck_assert_str_eq(mask.ptr, families[_i].mask);
    ck_assert_double_eq(w.rope_factor, strcmp(family, "gte") == 0 ? 2 : 0);
    check_layers(&w, family, &golden);
}

/* What a file has other than the workload is said. */
static const struct {
    const char *family, *chain, *says;
} others[] = {
    {"vit", "bert",
     "its layers are those of ViT, with norms before attention and feed-forward network; expected "
     "layers without"},
    {"bert", "rope", "those of BERT, without rotary positions; expected layers with them"},
    {"t5-relu", "pre+relu+bias", "those of T5, with RMS norms; expected layers without"},
    {"nomic", "silu+rope", "those of nomic, with gates; expected layers without"},
    {"mpnet", "bert", "those of MPNet, with biases of scores; expected layers without"},
    {"t5-gated", "pre+rms+gelu_tanh+gate+bias",
     "SelfAttention.q.weight' has the shape (48,64); expected (64,64)"},
    {"opt", "relu", "those of OPT, with norms before"},
    {"opt-post", "pre+relu", "those of OPT, without norms before"},
    {"wav2vec2", "pre", "'encoder.layer_norm.weight', of the last norm, is missing"},
    {"gte", "gate+rope", "those of GTE, whose rotary embeddings may have a factor"},
};

TEST_LOOP(other_layers_are_refused, 0, ARRAY_LEN(others))
{
    SCOPED_BY(trained_close_at) struct trained *t;
    SCOPED_BY(workload_release) struct workload w = workload_sized(1, 1);
    w.chain = chain_find(others[_i].chain);
    w.heads = 4;
    w.head_size = 16;
    w.ffn = 64;
    w.layers = 2;
    OK(trained_open(path_of(UNPACKED, others[_i].family, ".model.safetensors"), NULL, &t, &st));
    FAILS(trained_check(t, &w, &st), STATUS_USAGE, others[_i].says);
}

/* Where layers are local is the workload's: a file does not say it. */
TEST_LOOP(local_layers_are_asked_for, 0, 2)
{
    SCOPED_BY(trained_close_at) struct trained *t;
    SCOPED_BY(workload_release) struct workload w = workload_sized(1, 1);
    w.chain = chain_find(_i == 0 ? "pre+gate+rope" : "pre+rms+silu+gate+rope");
    w.rope_theta = 100;
    w.layers = 2;
    if (_i == 1)
        OK(workload_add_local(&w, "causal", 100, 2, &st));
    OK(trained_open(path_of(UNPACKED, _i == 0 ? "modernbert" : "eurobert", ".model.safetensors"),
                    NULL, &t, &st));
    FAILS(trained_check(t, &w, &st), STATUS_USAGE,
          _i == 0 ? "those of ModernBERT, with local ones among them; expected layers without"
                  : "those of EuroBERT, without local ones among them; expected layers with them");
}

SUITE("families", NULL, NULL)
