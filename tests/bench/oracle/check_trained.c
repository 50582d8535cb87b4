#include "bench/oracle/oracle.h"
#include "bench/trained/trained.h"
#include "bench/wire/wire.h"
#include "tests/suite.h"

/* A model of one layer, D = 4 and F = 8, whose element (o, i) of tensor t is t + o / 8 + i / 64. */
enum { D = 4, F = 8 };

static const struct {
    const char *name;
    int out, in; /* in 0: a vector */
} tensors[] = {
    {"attention.self.query.weight", D, D},
    {"attention.self.query.bias", D, 0},
    {"attention.self.key.weight", D, D},
    {"attention.self.key.bias", D, 0},
    {"attention.self.value.weight", D, D},
    {"attention.self.value.bias", D, 0},
    {"attention.output.dense.weight", D, D},
    {"attention.output.dense.bias", D, 0},
    {"attention.output.LayerNorm.weight", D, 0},
    {"attention.output.LayerNorm.bias", D, 0},
    {"intermediate.dense.weight", F, D},
    {"intermediate.dense.bias", F, 0},
    {"output.dense.weight", D, F},
    {"output.dense.bias", D, 0},
    {"output.LayerNorm.weight", D, 0},
    {"output.LayerNorm.bias", D, 0},
};

static const char *path;
static struct workload w;
static struct status st;

static float value(int tensor, int o, int i)
{
    return (float)tensor + (float)o / 8 + (float)i / 64;
}

/* shift: added to all elements. */
static void write_model(float shift)
{
    struct buf header, data;
    buf_init(&header);
    buf_init(&data);
    for (int t = 0; t < (int)ARRAY_LEN(tensors); t++) {
        int in = tensors[t].in;
        size_t first = data.len;
        for (int o = 0; o < tensors[t].out; o++)
            for (int i = 0; i < (in > 0 ? in : 1); i++) {
                float x = value(t, o, i) + shift;
                buf_add(&data, (const char *)&x, sizeof(x));
            }
        buf_addf(&header, "%s\"encoder.layer.0.%s\":{\"dtype\":\"F32\",\"shape\":[%d",
                 t == 0 ? "{" : ",", tensors[t].name, tensors[t].out);
        if (in > 0)
            buf_addf(&header, ",%d", in);
        buf_addf(&header, "],\"data_offsets\":[%zu,%zu]}", first, data.len);
    }
    buf_adds(&header, "}");
    uint64_t prefix = header.len;
    struct buf whole;
    buf_init(&whole);
    buf_add(&whole, (const char *)&prefix, sizeof(prefix));
    buf_add(&whole, header.ptr, header.len);
    buf_add(&whole, data.ptr, data.len);
    OK(file_write(path, whole.ptr, whole.len, &st));
    buf_release(&whole);
    buf_release(&data);
    buf_release(&header);
}

static void setup(void)
{
    test_dir_setup();
    path = test_path("model.safetensors");
    write_model(0);
    w = (struct workload){.chain = &chain_bert,
                          .batch = 1,
                          .seq_len = 2,
                          .heads = 2,
                          .head_size = 2,
                          .ffn = F,
                          .layers = 1,
                          .eps = 1e-5,
                          .dtype = DTYPE_FP32};
}

START_TEST(weights_are_those_of_the_file)
{
    struct inputs in = {.seed = 1};
    float wqkv[D * 3 * D], w1[D * F], beta2[D];
    OK(trained_open(path, NULL, (struct trained **)&in.trained, &st));
    OK(trained_check(in.trained, &w, &st));
    inputs_weight(&w, in, 0, WEIGHT_WQKV, wqkv);
    inputs_weight(&w, in, 0, WEIGHT_W1, w1);
    inputs_weight(&w, in, 0, WEIGHT_BETA2, beta2);
    for (int i = 0; i < D; i++) {
        for (int c = 0; c < 3 * D; c++)
            ck_assert_float_eq(wqkv[i * 3 * D + c], value(2 * (c / D), c % D, i));
        for (int c = 0; c < F; c++)
            ck_assert_float_eq(w1[i * F + c], value(10, c, i));
        ck_assert_float_eq(beta2[i], value(15, i, 0));
    }
    w.dtype = DTYPE_BF16;
    inputs_weight(&w, in, 0, WEIGHT_W1, w1);
    ck_assert_float_eq(w1[F], element_round(DTYPE_BF16, value(10, 0, 1)));
    ck_assert_float_ne(w1[F], value(10, 0, 1));
    trained_close((struct trained *)in.trained);
}
END_TEST

/* Weights of a type that holds fewer: with fp32 a value is accepted that fp16 makes infinite. */
START_TEST(values_that_are_not_finite_are_refused)
{
    struct trained *t;
    write_model(7e4f);
    OK(trained_open(path, NULL, &t, &st));
    OK(trained_check(t, &w, &st));
    w.dtype = DTYPE_FP16;
    FAILS(trained_check(t, &w, &st), STATUS_USAGE,
          "self.query.weight' is 70000 at (0,0), which is infinite in fp16");
    trained_close(t);
}
END_TEST

/* The worker gets the path in JSON.  A link stays one, because shards are beside it. */
START_TEST(path_that_is_not_utf8_is_refused)
{
    struct trained *t;
    char latin1[256], *link = mem_strdup(test_path("link"));
    snprintf(latin1, sizeof(latin1), "%s", test_path("mod\xe8le"));
    ck_assert_int_eq(rename(path, latin1), 0);
    ck_assert_int_eq(symlink(latin1, link), 0);
    FAILS(trained_open(latin1, NULL, &t, &st), STATUS_USAGE, "is not UTF-8; name another");
    ck_assert_ptr_null(t);
    OK(trained_open(link, NULL, &t, &st));
    ck_assert_str_eq(strrchr(trained_path(t), '/'), "/link");
    trained_close(t);
    free(link);
}
END_TEST

START_TEST(the_worker_reads_the_same_file)
{
    float scale[2][GEMM_COUNT] = {{1, 0.5f, 0.25f, 2}, {1, 4, 0x1p-20f, 8}};
    const struct calibration c = {.layers = 2, .scale = scale};
    struct inputs in = {.seed = 3, .calibration = &c}, back;
    char hash[HASH_TEXT_SIZE], other[HASH_TEXT_SIZE];
    struct trained *t;
    OK(trained_open(path, ".", &t, &st));
    in.trained = t;
    json_t *m = message_of_inputs(in);
    OK(message_to_inputs(m, &back, &st));
    ck_assert_str_eq(trained_path(back.trained), trained_path(t));
    ck_assert_str_eq(trained_prefix(back.trained), ".");
    ck_assert_str_eq(trained_hash(back.trained, other), trained_hash(t, hash));
    ck_assert_int_eq(back.calibration->layers, 2);
    ck_assert_mem_eq(back.calibration->scale, scale, sizeof(scale));
    inputs_release(&back);
    json_decref(m);
    in.calibration = NULL;
    m = message_of_inputs(in);
    OK(message_to_inputs(m, &back, &st));
    ck_assert_ptr_null(back.calibration);
    inputs_release(&back);
    trained_close(t);
    write_model(1);
    FAILS(message_to_inputs(m, &back, &st), STATUS_ENVIRONMENT,
          "have changed since they were read");
    json_decref(m);
    OK(trained_open(path, NULL, &t, &st));
    ck_assert_str_ne(trained_hash(t, other), hash);
    trained_close(t);
}
END_TEST

/* The fingerprint adds up what weights are, in whatever order: of one bit more it is another. */
START_TEST(a_calibration_is_of_its_weights)
{
    struct trained *t;
    char first[FINGERPRINT_SIZE], other[FINGERPRINT_SIZE];
    struct calibration c = {.path = (char *)"c.json", .layers = 1, .scale = mem_alloc(1, 16)};
    OK(trained_open(path, NULL, &t, &st));
    OK(trained_check(t, &w, &st));
    c.model = trained_fingerprint(t, &w, first);
    ck_assert_uint_eq(strlen(first), 16);
    OK(calibration_check(&c, t, &w, &st));
    c.layers = 2;
    FAILS(calibration_check(&c, t, &w, &st), STATUS_USAGE, "it has 2 layers, and the model 1");
    c.layers = 1;
    trained_close(t);

    uint64_t sum = 0;
    for (int id = 0; id < WEIGHT_GAMMA2; id++) {
        int64_t n = weight_elements(id, &w);
        float *values = mem_alloc((size_t)n, sizeof(*values));
        struct inputs in = {.seed = 0};
        OK(trained_open(path, NULL, &t, &st));
        in.trained = t;
        inputs_weight(&w, in, 0, id, values);
        for (int64_t i = n; i-- > 0;) {
            uint16_t bits;
            elements_pack(DTYPE_FP16, &values[i], 1, &bits);
            sum += bits * splitmix64(((uint64_t)id << 40) + (uint64_t)i);
        }
        trained_close(t);
        free(values);
    }
    snprintf(other, sizeof(other), "%016llx", (unsigned long long)sum);
    ck_assert_str_eq(first, other);

    write_model(1);
    OK(trained_open(path, NULL, &t, &st));
    FAILS(calibration_check(&c, t, &w, &st), STATUS_USAGE, "of another model");
    trained_close(t);
    free(c.scale);
}
END_TEST

SUITE("trained", setup, test_dir_teardown, ONCE(weights_are_those_of_the_file),
      ONCE(values_that_are_not_finite_are_refused), ONCE(path_that_is_not_utf8_is_refused),
      ONCE(the_worker_reads_the_same_file), ONCE(a_calibration_is_of_its_weights))
