/* Files config.json that are refused; check_families.c reads those of families. */
#include "bench/trained/trained.h"
#include "tests/suite.h"

#include <jansson.h>

/* Fields that change what layers compute, of which the config of a family has another value. */
static const struct {
    const char *family, *field, *value, *says;
} configs[] = {
    {"bert", "model_type", "\"deberta\"",
     "'deberta': its scores add products of queries and keys with relative positions"},
    {"bert", "model_type", "\"gptj\"",
     "'gptj': its attention and feed-forward network read the same input"},
    {"bert", "model_type", "\"gemma2\"",
     "'gemma2': its branches end in norms, and its scores have a softcap"},
    {"bert", "model_type", "\"qwen3\"",
     "'qwen3': its queries and keys have norms, which no chain has; known are bert"},
    {"bert", "model_type", "\"mixtral\"", "'mixtral': its feed-forward network is a mixture of"},
    {"bert", "model_type", "\"bart\"", "'bart': its decoder attends to its encoder's output"},
    {"gpt2", "model_type", "\"falcon\"", "'falcon': its attention and feed-forward"},
    {"gpt2", "model_type", "\"gpt_neox\"", "'gpt_neox' is not known"}, /* and not parallel */
    {"bert", "model_type", "\"longformer\"", "'longformer' is not known; known are bert, roberta"},
    {"modernbert", "layer_types",
     "[\"full_attention\", \"full_attention\", \"sliding_attention\", \"sliding_attention\"]",
     "'layer_types' is"},
    {"modernbert", "layer_types",
     "[\"sliding_attention\", \"full_attention\", \"sliding_attention\", \"full_attention\"]",
     "'layer_types' is"},
    {"modernbert", "layer_types",
     "[\"full_attention\", \"chunked_attention\", \"full_attention\", \"full_attention\"]",
     "'layer_types' is"},
    {"modernbert", "layer_types", "[\"full_attention\", \"sliding_attention\"]",
     "'layer_types' has 2 layers"},
    {"modernbert", "rope_parameters", "{\"full_attention\": {\"rope_type\": \"yarn\"}}",
     "'rope_parameters' is"},
    {"modernbert", "local_attention", "\"16\"", "'local_attention' is not a number"},
    {"bert", "model_type", "null", "it has no field 'model_type'"},
    {"bert", "hidden_act", "\"mish\"", "'hidden_act' is \"mish\", which changes what"},
    {"bert", "hidden_act", "null", "it has no field 'hidden_act'"},
    {"bert", "position_embedding_type", "\"relative_key\"", "'position_embedding_type' is"},
    {"bert", "is_decoder", "true", "'is_decoder' is true"},
    {"bert", "add_cross_attention", "true", "'add_cross_attention' is true"},
    {"bert", "num_attention_heads", "0", "'num_attention_heads' is not a number of at least 1"},
    {"bert", "num_hidden_layers", "\"2\"", "'num_hidden_layers' is not a number of at least 1"},
    {"bert", "intermediate_size", "1e99", "'intermediate_size' is not a number of at least 1"},
    {"bert", "layer_norm_eps", "null", "it has no field 'norm_eps', or 'layer_norm_eps'"},
    {"jina-v2", "feed_forward_type", "\"reglu\"", "'feed_forward_type' is \"reglu\""},
    {"gte", "logn_attention_scale", "true", "'logn_attention_scale' is true"},
    {"gte", "rope_scaling", "{\"type\": \"linear\", \"factor\": 2.0}", "'rope_scaling' is"},
    {"gte", "rope_scaling", "{\"type\": \"ntk\", \"factor\": 2.0, \"mixed_b\": 0.5}",
     "'rope_scaling' is"},
    {"nomic", "rope_scaling", "{\"type\": \"ntk\", \"factor\": 2.0}", "'rope_scaling' is"},
    {"nomic", "moe_every_n_layers", "2", "'moe_every_n_layers' is 2"},
    {"nomic", "rope_parameters", "{\"rope_type\": \"yarn\", \"rope_theta\": 100.0}",
     "'rope_parameters' is {\"rope_type\":\"yarn\""},
    {"nomic", "rope_parameters", "{\"rope_type\": \"default\"}", "it has no field 'rope_theta'"},
    {"gte", "rope_scaling", "{\"type\": \"ntk\", \"factor\": 0}", "'rope_scaling' is"},
    {"gte", "rope_theta", "0", "the base of its rotary embeddings, 'rope_theta', is 0; expected"},
    {"nomic", "rope_parameters", "{\"rope_type\": \"default\", \"rope_theta\": -1000.0}",
     "is -1000; expected more than 0"},
    {"bert", "num_attention_heads", "7", "is no multiple of its 7 heads, and no field 'head_dim'"},
    {"jina-v3", "logn_attention_scale", "true", "'logn_attention_scale' is true"},
    {"eurobert", "attn_logit_softcapping", "50.0", "'attn_logit_softcapping' is 50.0"},
    {"eurobert", "use_qk_norm", "true", "'use_qk_norm' is true"},
    {"bert", "attention_multiplier", "0.5", "'attention_multiplier' is 0.5"},
    {"bert", "query_pre_attn_scalar", "256", "'query_pre_attn_scalar' is 256"}, /* Gemma's */
    {"vit", "residual_scale", "0.5", "'residual_scale' is 0.5"},
    {"eurobert", "num_experts", "8", "'num_experts' is 8"},
    {"gpt2", "scale_attn_by_inverse_layer_idx", "true", "'scale_attn_by_inverse_layer_idx' is"},
    {"gpt2", "use_parallel_residual", "true", "'use_parallel_residual' is true"},
    {"t5-relu", "relative_attention_max_distance", "64", "'relative_attention_max_distance' is 64"},
};

TEST_LOOP(fields_that_change_layers_are_refused, 0, ARRAY_LEN(configs))
{
    struct model_config c;
    char path[512];
    snprintf(path, sizeof(path), "%s/%s/config.json", FAMILIES, configs[_i].family);
    json_auto_t *fields = json_load_file(path, 0, NULL);
    json_object_set_new(fields, "use_parallel_residual",
                        json_false()); /* as if it were not there */
    ck_assert_int_eq(json_object_set_new(fields, configs[_i].field,
                                         json_loads(configs[_i].value, JSON_DECODE_ANY, NULL)),
                     0);
    ck_assert_int_eq(json_dump_file(fields, test_path("config.json"), JSON_ENCODE_ANY), 0);
    FAILS(model_config_read(test_path("config.json"), &c, &st), STATUS_USAGE, configs[_i].says);
}

/* nomic's own code has gates with swiglu alone; that of transformers, which writes hidden_act,
 * always. */
TEST_LOOP(an_activation_of_nomics_own_code_says_whether_there_are_gates, 0, 2)
{
    static const char *const chains[][2] = {{"swiglu", "silu+gate+rope"}, {"gelu", "rope"}};
    struct model_config c;
    json_auto_t *fields = json_load_file(FAMILIES "/nomic/config.json", 0, NULL);
    json_object_del(fields, "hidden_act");
    json_object_set_new(fields, "activation_function", json_string(chains[_i][0]));
    ck_assert_int_eq(json_dump_file(fields, test_path("config.json"), 0), 0);
    OK(model_config_read(test_path("config.json"), &c, &st));
    ck_assert_str_eq(c.chain->name, chains[_i][1]);
}

static struct model_config modernbert_of(const json_t *fields)
{
    struct model_config c;
    ck_assert_int_eq(json_dump_file(fields, test_path("config.json"), 0), 0);
    OK(model_config_read(test_path("config.json"), &c, &st));
    return c;
}

/* Files of transformers 4 have numbers where later ones have lists, and may lack any. */
TEST(modernberts_layers_are_of_two_kinds)
{
    json_auto_t *fields = json_load_file(FAMILIES "/modernbert/config.json", 0, NULL);
    json_object_set_new(fields, "position_embedding_type", json_string("sans_pos")); /* mmBERT's */
    struct model_config c = modernbert_of(fields);
    ck_assert_int_eq(c.local.width, 8);
    ck_assert_int_eq(c.local.every, 3);
    ck_assert_double_eq(c.rope_theta, 100);
    ck_assert_double_eq(c.local.rope_theta, 50);
    json_object_del(fields, "layer_types");
    json_object_del(fields, "rope_parameters");
    json_object_del(fields, "local_attention");
    c = modernbert_of(fields);
    ck_assert_int_eq(c.local.width, 64);
    ck_assert_int_eq(c.local.every, 3);
    ck_assert_double_eq(c.rope_theta, 160000);
    ck_assert_double_eq(c.local.rope_theta, 10000);
    json_object_set_new(fields, "quantization_config",
                        json_pack("{ss}", "quant_method", "fp8")); /* weights are judged */
    json_object_set_new(fields, "global_attn_every_n_layers", json_integer(2));
    json_object_set_new(fields, "local_rope_theta", json_real(160000));
    c = modernbert_of(fields);
    ck_assert_int_eq(c.local.every, 2);
    ck_assert_double_eq(c.local.rope_theta, 160000);
    json_object_set_new(fields, "local_attention", json_integer(1)); /* a token alone */
    ck_assert_int_eq(modernbert_of(fields).local.width, 0);
    ck_assert_int_eq(modernbert_of(fields).local.every, 2);
    json_object_set_new(fields, "global_attn_every_n_layers", json_integer(1));
    ck_assert_int_eq(modernbert_of(fields).local.every, 0);
}

SUITE("model_config", test_dir_setup, test_dir_teardown)
