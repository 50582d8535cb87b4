#include "bench/oracle/oracle.h"
#include "bench/trained/trained.h"
#include "bench/wire/wire.h"
#include "tests/bench/oracle/tensors.h"

/* A model of one layer, D = 4 and F = 136, whose element (o, i) of tensor t is t + o / 8 + i / 64.
 */
enum { D = 4, F = 136 };

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
    {"attention.output.LayerNorm.gamma", D, 0}, /* the older name */
    {"attention.output.LayerNorm.beta", D, 0},
    {"intermediate.dense.weight", F, D},
    {"intermediate.dense.bias", F, 0},
    {"output.dense.weight", D, F},
    {"output.dense.bias", D, 0},
    {"output.LayerNorm.weight", D, 0},
    {"output.LayerNorm.bias", D, 0},
};

static const char *path;
static struct workload w;
static float value(int tensor, int o, int i)
{
    return (float)tensor + (float)o / 8 + (float)i / 64;
}

/* Codes of e4m3 in place of values, and the scales of a matrix. */
struct scaling {
    const char *tail;  /* behind "weight"; null: values */
    int rows, columns; /* that share a scale; 0: all of them */
    int dims;          /* of the scales */
    const char *type;
    int lacks; /* the tensor whose scale is missing; -1: of none */
};
static const struct scaling unquantised = {.tail = NULL};

static uint8_t code(int tensor, int o, int i)
{
    return (uint8_t)((tensor * 7 + o * 5 + i * 3) % 0x7f | (o + i) % 2 << 7);
}

static float added; /* to all scales */

static float scale(int tensor, int down, int across)
{
    return 0.01f * (float)(tensor + 1) + 0.003f * (float)down + 0.5f * (float)across + added;
}

static void add_header(struct buf *header, const char *name, const char *tail, const char *type,
                       const char *shape, size_t first, size_t end)
{
    buf_addf(header,
             "%s\"encoder.layer.0.%s%s\":{\"dtype\":\"%s\",\"shape\":[%s],"
             "\"data_offsets\":[%zu,%zu]}",
             header->len == 0 ? "{" : ",", name, tail, type, shape, first, end);
}

static void add_scales(int t, const struct scaling *s, struct buf *header, struct buf *data)
{
    const int out = tensors[t].out, in = tensors[t].in;
    const int down = s->rows > 0 ? (out + s->rows - 1) / s->rows : 1;
    const int across = s->columns > 0 ? (in + s->columns - 1) / s->columns : 1;
    const size_t first = data->len;
    const float input_scale = 0.01f * (float)(t + 1);
    char shape[40], input[80];
    for (int i = 0; i < down * across; i++) {
        float x = scale(t, i / across, i % across);
        buf_add(data, (const char *)&x, sizeof(x));
    }
    snprintf(shape, sizeof(shape), s->dims > 1 ? "%d,%d" : "%d", down, across);
    shape[s->dims > 0 ? sizeof(shape) - 1 : 0] = '\0';
    add_header(header, tensors[t].name, s->tail, s->type, shape, first, data->len);
    snprintf(input, sizeof(input), "%.*s", (int)strlen(tensors[t].name) - 6, tensors[t].name);
    buf_add(data, (const char *)&input_scale, sizeof(input_scale));
    add_header(header, input, "input_scale", "F32", "", data->len - 4, data->len);
}

static const struct type {
    enum dtype dtype;
    const char *name;
    size_t bytes;
} types[] = {{DTYPE_FP32, "F32", 4}, {DTYPE_FP16, "F16", 2}, {DTYPE_BF16, "BF16", 2}};

static const struct type *stored = &types[0]; /* of all tensors */
static int damaged = -1;                      /* the tensor whose element (2,3) or (2,) is nan */

static void add_tensor(int t, float shift, const struct scaling *s, struct buf *header,
                       struct buf *data)
{
    const int out = tensors[t].out, in = tensors[t].in;
    const bool codes = s->tail != NULL && in > 0;
    const size_t first = data->len;
    char shape[40];
    for (int i = 0; i < out * (in > 0 ? in : 1); i++) {
        int row = in > 0 ? i / in : i, column = in > 0 ? i % in : 0;
        float x = value(t, row, column) + shift;
        uint8_t byte = code(t, row, column), bytes[sizeof(x)];
        if (t == damaged && row == 2 && column == (in > 0 ? 3 : 0))
            x = NAN;
        elements_pack(stored->dtype, &x, 1, bytes);
        buf_add(data, codes ? (const char *)&byte : (const char *)bytes, codes ? 1 : stored->bytes);
    }
    snprintf(shape, sizeof(shape), in > 0 ? "%d,%d" : "%d", out, in);
    add_header(header, tensors[t].name, "", codes ? "F8_E4M3" : stored->name, shape, first,
               data->len);
    if (codes && t != s->lacks)
        add_scales(t, s, header, data);
}

/* shift: added to all elements. */
static void write_scaled(float shift, const struct scaling *s)
{
    SCOPED_BUF header = BUF_INIT, data = BUF_INIT;
    for (int t = 0; t < (int)ARRAY_LEN(tensors); t++)
        add_tensor(t, shift, s, &header, &data);
    write_tensors(path, &header, &data);
}

static void write_model(float shift)
{
    write_scaled(shift, &unquantised);
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

TEST_LOOP(weights_are_those_of_the_file, 0, ARRAY_LEN(types))
{
    struct inputs in = {.seed = 1};
    float wqkv[D * 3 * D], w1[D * F], gamma1[D], beta1[D], beta2[D];
    const enum dtype dtype = types[_i].dtype;
    stored = &types[_i];
    write_model(0);
    OK(trained_open(path, NULL, (struct trained **)&in.trained, &st));
    OK(trained_check(in.trained, &w, &st));
    inputs_weight(&w, in, 0, WEIGHT_WQKV, wqkv);
    inputs_weight(&w, in, 0, WEIGHT_W1, w1);
    inputs_weight(&w, in, 0, WEIGHT_GAMMA1, gamma1);
    inputs_weight(&w, in, 0, WEIGHT_BETA1, beta1);
    inputs_weight(&w, in, 0, WEIGHT_BETA2, beta2);
    for (int i = 0; i < D; i++) {
        for (int c = 0; c < 3 * D; c++)
            ck_assert_float_eq(wqkv[i * 3 * D + c],
                               element_round(dtype, value(2 * (c / D), c % D, i)));
        for (int c = 0; c < F; c++)
            ck_assert_float_eq(w1[i * F + c], element_round(dtype, value(10, c, i)));
        ck_assert_float_eq(gamma1[i], element_round(dtype, value(8, i, 0)));
        ck_assert_float_eq(beta1[i], element_round(dtype, value(9, i, 0)));
        ck_assert_float_eq(beta2[i], element_round(dtype, value(15, i, 0)));
    }
    w.dtype = DTYPE_BF16;
    inputs_weight(&w, in, 0, WEIGHT_W1, w1);
    ck_assert_float_eq(w1[F], element_round(DTYPE_BF16, value(10, 0, 1)));
    ck_assert_float_ne(w1[F], value(10, 0, 1));
    trained_close((struct trained *)in.trained);
}

/* What tools write: a scale of the matrix, of each row, or of blocks. */
static const struct scaling scalings[] = {
    {"_scale", 0, 0, 0, "F32", -1},         {"_scale", 0, 0, 1, "F32", -1},
    {"_scale", 1, 0, 2, "F32", -1},         {"_scale", 1, 0, 1, "F32", -1},
    {"_scale_inv", 128, 128, 2, "F32", -1},
};

TEST_LOOP(codes_of_e4m3_are_multiplied_by_their_scales, 0, ARRAY_LEN(scalings))
{
    const struct scaling *s = &scalings[_i];
    struct inputs in = {.seed = 1};
    float wqkv[D * 3 * D], w1[D * F], w2[F * D];
    const int rows = s->rows > 0 ? s->rows : F, columns = s->columns > 0 ? s->columns : F;
    write_scaled(0, s);
    OK(trained_open(path, NULL, (struct trained **)&in.trained, &st));
    OK(trained_check(in.trained, &w, &st));
    inputs_weight(&w, in, 0, WEIGHT_WQKV, wqkv);
    inputs_weight(&w, in, 0, WEIGHT_W1, w1);
    inputs_weight(&w, in, 0, WEIGHT_W2, w2);
    for (int i = 0; i < D; i++) {
        for (int c = 0; c < 3 * D; c++)
            ck_assert_float_eq(wqkv[i * 3 * D + c], e4m3_unpack(code(2 * (c / D), c % D, i)) *
                                                        scale(2 * (c / D), c % D / rows, 0));
        for (int c = 0; c < F; c++) {
            ck_assert_float_eq(w1[i * F + c], e4m3_unpack(code(10, c, i)) * scale(10, c / rows, 0));
            ck_assert_float_eq(w2[c * D + i],
                               e4m3_unpack(code(12, i, c)) * scale(12, i / rows, c / columns));
        }
    }
    trained_close((struct trained *)in.trained);
}

/* The input_scale of the value's module is the largest of q, k and v. */
TEST(a_calibration_may_be_the_weights_own)
{
    struct trained *t;
    struct calibration c;
    char hash[HASH_TEXT_SIZE];
    write_scaled(0, &scalings[0]);
    OK(trained_open(path, NULL, &t, &st));
    OK(calibration_open("weights", t, &w, &c, &st));
    OK(calibration_check(&c, t, &w, &st));
    ck_assert_str_eq(c.hash, trained_hash(t, hash));
    for (int g = 0; g < GEMM_COUNT; g++) {
        const float input_scale = (float[]){0.05f, 0.07f, 0.11f, 0.13f}[g];
        ck_assert_float_eq(c.scale[0][g], e4m3_input_scale(E4M3_MOST * input_scale));
    }
    calibration_release(&c);
    trained_close(t);

    write_model(0);
    OK(trained_open(path, NULL, &t, &st));
    FAILS(calibration_open("weights", t, &w, &c, &st), STATUS_USAGE,
          "'encoder.layer.0.attention.self.query.weight' has no input_scale");
    calibration_release(&c);
    trained_close(t);
    FAILS(calibration_open("weights", NULL, &w, &c, &st), STATUS_USAGE, "no weights are given");
    calibration_release(&c);
}

static const struct {
    struct scaling scaling;
    const char *says;
} unscaled[] = {
    {{"_scale", 0, 0, 0, "F32", 6},
     "'encoder.layer.0.attention.output.dense.weight' is of type F8_E4M3, and "
     "'encoder.layer.0.attention.output.dense.weight_scale' is missing"},
    {{"_scale", 2, 0, 2, "F32", -1},
     "self.query.weight_scale' has the shape (2,1); expected (4,1)"},
    {{"_scale", 1, 1, 2, "F32", -1},
     "self.query.weight_scale' has the shape (4,4); expected (4,1)"},
    {{"_scale", 1, 0, 2, "U32", -1},
     "self.query.weight_scale' is of type U32; expected F32, F16 or BF16"},
    {{"_zero_point", 0, 0, 0, "F32", -1},
     "output.dense.weight_zero_point' has no place in the layers of BERT"},
};

TEST_LOOP(codes_without_their_scales_are_refused, 0, ARRAY_LEN(unscaled))
{
    SCOPED_BY(trained_close_at) struct trained *t;
    write_scaled(0, &unscaled[_i].scaling);
    if (trained_open(path, NULL, &t, &st) == 0)
        trained_check(t, &w, &st);
    ck_assert_int_eq(st.code, STATUS_USAGE);
    ck_assert_msg(strstr(st.message, unscaled[_i].says) != NULL, "%s", st.message);
}

/* The scale is named, and not the codes that it multiplies. */
TEST(scales_that_are_not_finite_are_refused)
{
    SCOPED_BY(trained_close_at) struct trained *t;
    added = INFINITY;
    write_scaled(0, &scalings[2]);
    added = 0;
    if (trained_open(path, NULL, &t, &st) == 0)
        trained_check(t, &w, &st);
    ck_assert_int_eq(st.code, STATUS_USAGE);
    ck_assert_msg(strstr(st.message, "self.query.weight_scale' is inf for element (0,0)") != NULL,
                  "%s", st.message);
}

/* Weights of a type that holds fewer: with fp32 a value is accepted that fp16 makes infinite. */
TEST(values_that_are_not_finite_are_refused)
{
    SCOPED_BY(trained_close_at) struct trained *t;
    write_model(7e4f);
    OK(trained_open(path, NULL, &t, &st));
    OK(trained_check(t, &w, &st));
    w.dtype = DTYPE_FP16;
    FAILS(trained_check(t, &w, &st), STATUS_USAGE,
          "self.query.weight' is 70000 at (0,0), which is infinite in fp16");
}

TEST_LOOP(damaged_values_are_named, 12, 14)
{
    SCOPED_BY(trained_close_at) struct trained *t;
    damaged = _i;
    write_model(0);
    OK(trained_open(path, NULL, &t, &st));
    FAILS(trained_check(t, &w, &st), STATUS_USAGE,
          damaged == 12
              ? "'encoder.layer.0.output.dense.weight' is nan at (2,3): the file is damaged"
              : "'encoder.layer.0.output.dense.bias' is nan at (2,): the file is damaged");
}

/* The worker gets the path in JSON.  A link stays one, because shards are beside it. */
TEST(path_that_is_not_utf8_is_refused)
{
    SCOPED_BY(trained_close_at) struct trained *t;
    char latin1[256], *link = mem_strdup(test_path("link"));
    snprintf(latin1, sizeof(latin1), "%s", test_path("mod\xe8le"));
    ck_assert_int_eq(rename(path, latin1), 0);
    ck_assert_int_eq(symlink(latin1, link), 0);
    FAILS(trained_open(latin1, NULL, &t, &st), STATUS_USAGE, "is not UTF-8; name another");
    ck_assert_ptr_null(t);
    OK(trained_open(link, NULL, &t, &st));
    ck_assert_str_eq(strrchr(trained_path(t), '/'), "/link");
    free(link);
}

TEST(the_worker_reads_the_same_file)
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

/* The fingerprint adds up what weights are, in whatever order: of one bit more it is another, and
 * in bf16. */
TEST_LOOP(a_calibration_is_of_its_weights, 0, 2)
{
    static const enum dtype halves[] = {DTYPE_FP16, DTYPE_BF16};
    struct trained *t;
    char first[FINGERPRINT_SIZE], other[FINGERPRINT_SIZE];
    struct calibration c = {.path = (char *)"c.json", .layers = 1, .scale = mem_alloc(1, 16)};
    OK(trained_open(path, NULL, &t, &st));
    OK(trained_check(t, &w, &st));
    w.dtype = halves[_i];
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
        SCOPED float *values = mem_alloc((size_t)n, sizeof(*values));
        struct inputs in = {.seed = 0};
        OK(trained_open(path, NULL, &t, &st));
        in.trained = t;
        inputs_weight(&w, in, 0, id, values);
        for (int64_t i = n; i-- > 0;) {
            uint16_t bits;
            elements_pack(halves[_i], &values[i], 1, &bits);
            sum += bits * splitmix64(((uint64_t)id << 40) + (uint64_t)i);
        }
        trained_close(t);
    }
    snprintf(other, sizeof(other), "%016llx", (unsigned long long)sum);
    ck_assert_str_eq(first, other);

    write_model(1);
    OK(trained_open(path, NULL, &t, &st));
    FAILS(calibration_check(&c, t, &w, &st), STATUS_USAGE, "of another model");
    trained_close(t);
    free(c.scale);
}

SUITE("trained", setup, test_dir_teardown)
