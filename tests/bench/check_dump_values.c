/* A reader of a dump: y of each real token follows from the files alone, in plain loops that know
 * nothing of the program's masks, lengths and inputs. */
#include "tests/bench/fixture.h"

#include <jansson.h>
#include <math.h>

static struct status st; /* of the call that a test is about */

/* ---- the files ------------------------------------------------------------------------------- */

struct array {
    struct buf bytes;
    struct npy npy;
};

static struct array array_read(const char *name)
{
    struct array a;
    char path[128];
    snprintf(path, sizeof(path), "dump/%s.npy", name);
    buf_init(&a.bytes);
    OK(file_read(test_path(path), 0, &a.bytes, &st));
    OK(npy_parse(a.bytes.ptr, a.bytes.len, &a.npy, &st));
    return a;
}

static const float *floats(const struct array *a)
{
    ck_assert_int_eq(a->npy.type, NPY_FLOAT32);
    return a->npy.data;
}

enum { WQKV, BQKV, WO, BO, GAMMA1, BETA1, W1, B1, W2, B2, GAMMA2, BETA2, WEIGHTS };
static const char *const names[WEIGHTS] = {"wqkv", "bqkv", "wo", "bo", "gamma1", "beta1",
                                           "w1",   "b1",   "w2", "b2", "gamma2", "beta2"};

/* Sizes, and one layer's weights. */
struct layer {
    int batch, seq, heads, width, hidden, ffn;
    double eps;
    struct array mask, weight[WEIGHTS];
};

static double number_of(const json_t *workload, const char *name)
{
    const json_t *value = json_object_get(workload, name);
    ck_assert_msg(json_is_number(value), "%s", name);
    return json_number_value(value);
}

static int read_sizes(struct layer *l, const struct array *x)
{
    json_t *workload = json_load_file(test_path("dump/workload.json"), 0, NULL);
    l->heads = (int)number_of(workload, "heads");
    l->eps = number_of(workload, "eps");
    int layers = (int)number_of(workload, "layers");
    json_decref(workload);
    l->batch = (int)x->npy.shape[0];
    l->seq = (int)x->npy.shape[1];
    l->hidden = (int)x->npy.shape[2];
    l->width = l->hidden / l->heads;
    return layers;
}

static void read_layer(struct layer *l, int layer)
{
    for (int i = 0; i < WEIGHTS; i++) {
        char name[32];
        snprintf(name, sizeof(name), "layer%d.%s", layer, names[i]);
        l->weight[i] = array_read(name);
    }
    l->ffn = (int)l->weight[W1].npy.shape[1];
}

static void release_layer(struct layer *l)
{
    for (int i = 0; i < WEIGHTS; i++)
        buf_release(&l->weight[i].bytes);
}

/* ---- the layer, a token at a time ------------------------------------------------------------ */

/* out (columns) = in (rows) @ weight (rows,columns) + bias (columns) */
static void project(const double *in, int rows, const struct array *weight,
                    const struct array *bias, int columns, double *out)
{
    for (int c = 0; c < columns; c++) {
        out[c] = floats(bias)[c];
        for (int r = 0; r < rows; r++)
            out[c] += in[r] * floats(weight)[r * columns + c];
    }
}

static void normalise(const struct layer *l, double *row, const struct array *gamma,
                      const struct array *beta)
{
    double mean = 0, variance = 0;
    for (int c = 0; c < l->hidden; c++)
        mean += row[c] / l->hidden;
    for (int c = 0; c < l->hidden; c++)
        variance += (row[c] - mean) * (row[c] - mean) / l->hidden;
    for (int c = 0; c < l->hidden; c++)
        row[c] = (row[c] - mean) / sqrt(variance + l->eps) * floats(gamma)[c] + floats(beta)[c];
}

static bool sees(const struct layer *l, int b, int i, int j)
{
    const unsigned char *keep = l->mask.npy.data;
    return keep[((l->mask.npy.ndim == 3 ? b * l->seq : 0) + i) * l->seq + j] != 0;
}

/* Query i of a head: the softmax of its products with the keys that it sees, times their values.
 * qkv: the sequence's (S,3D), q, k, v, each by heads. */
static void attend(const struct layer *l, const double *qkv, int b, int i, int head, double *out)
{
    const double *q = qkv + (size_t)i * 3 * l->hidden + head * l->width;
    double sum = 0;
    for (int c = 0; c < l->width; c++)
        out[c] = 0;
    for (int j = 0; j < l->seq; j++) {
        const double *k = qkv + (size_t)j * 3 * l->hidden + l->hidden + head * l->width;
        double dot = 0;
        for (int c = 0; c < l->width; c++)
            dot += q[c] * k[c];
        double e = sees(l, b, i, j) ? exp(dot / sqrt(l->width)) : 0;
        sum += e;
        for (int c = 0; c < l->width; c++)
            out[c] += e * k[l->hidden + c];
    }
    for (int c = 0; c < l->width && sum > 0; c++)
        out[c] /= sum;
}

/* What follows attention, for one token: x is its input and becomes its output. */
static void finish(const struct layer *l, const double *context, double *x)
{
    double *row = mem_alloc((size_t)l->hidden, sizeof(*row));
    double *wide = mem_alloc((size_t)l->ffn, sizeof(*wide));
    project(context, l->hidden, &l->weight[WO], &l->weight[BO], l->hidden, row);
    for (int c = 0; c < l->hidden; c++)
        row[c] += x[c];
    normalise(l, row, &l->weight[GAMMA1], &l->weight[BETA1]);
    project(row, l->hidden, &l->weight[W1], &l->weight[B1], l->ffn, wide);
    for (int c = 0; c < l->ffn; c++)
        wide[c] = wide[c] / 2 * (1 + erf(wide[c] / sqrt(2)));
    project(wide, l->ffn, &l->weight[W2], &l->weight[B2], l->hidden, x);
    for (int c = 0; c < l->hidden; c++)
        x[c] += row[c];
    normalise(l, x, &l->weight[GAMMA2], &l->weight[BETA2]);
    free(row);
    free(wide);
}

/* x: one sequence (S,D), which becomes the layer's output. */
static void run_layer(const struct layer *l, int b, double *x)
{
    double *qkv = mem_alloc((size_t)l->seq * 3 * l->hidden, sizeof(*qkv));
    double *context = mem_alloc((size_t)l->hidden, sizeof(*context));
    for (int i = 0; i < l->seq; i++)
        project(x + i * l->hidden, l->hidden, &l->weight[WQKV], &l->weight[BQKV], 3 * l->hidden,
                qkv + (size_t)i * 3 * l->hidden);
    for (int i = 0; i < l->seq; i++) {
        for (int h = 0; h < l->heads; h++)
            attend(l, qkv, b, i, h, context + h * l->width);
        finish(l, context, x + i * l->hidden);
    }
    free(qkv);
    free(context);
}

/* Whether token i of a sequence is real: it sees a key. */
static bool is_real(const struct layer *l, int b, int i)
{
    bool real = false;
    for (int j = 0; j < l->seq; j++)
        real |= sees(l, b, i, j);
    return real;
}

/* Compares y of the real tokens, zero for all others; returns the number of real tokens. */
static int compare(const struct layer *l, const double *x, const float *y)
{
    int real = 0;
    for (int row = 0; row < l->batch * l->seq; row++) {
        bool computed = is_real(l, row / l->seq, row % l->seq);
        real += computed;
        for (int c = row * l->hidden; c < (row + 1) * l->hidden; c++)
            ck_assert_msg(fabs(y[c] - (computed ? x[c] : 0)) < 1e-5, "token %d: %g, expected %g",
                          row, y[c], x[c]);
    }
    return real;
}

/* ---- the test -------------------------------------------------------------------------------- */

static const struct {
    const char *mask, *lengths;
    int ndim, real; /* of the mask; tokens */
    bool packed;
} cases[] = {
    {"full", NULL, 2, 15, false},           {"causal", NULL, 2, 15, false},
    {"full", "2,5,3", 3, 10, false},        {"causal", "5,1,4", 3, 10, false},
    {"sliding:w=1", "4,4,4", 3, 12, false}, {"causal", "5,1,4", 3, 10, true},
    {"full", "2,5,3", 3, 10, true},
};

static struct bench *open_case(int i)
{
    struct workload w = {.chain = &chain_bert,
                         .batch = 3,
                         .seq_len = 5,
                         .heads = 2,
                         .head_size = 4,
                         .layers = 2,
                         .eps = 1e-3};
    struct bench_options o = small_options(test_cache());
    struct bench *b;
    o.inputs.ranges = RANGES_WIDE;
    workload_ready(&w, cases[i].mask, cases[i].lengths, NULL);
    OK(bench_open(&o, &w, &b, &st));
    workload_release(&w);
    return b;
}

START_TEST(y_follows_from_the_files_alone)
{
    struct bench *b = open_case(_i);
    struct candidate c = candidate_of(b, _i % 2 == 0 ? "0-7,8-9,10-14" : "1-6,10-11");
    c.packed = cases[_i].packed;
    OK(bench_dump(b, &c, test_path("dump"), false, &st));
    bench_close(b);

    struct array x = array_read("x"), y = array_read("y");
    struct layer l = {.mask = array_read("mask")};
    int layers = read_sizes(&l, &x), elements = l.batch * l.seq * l.hidden;
    double *flow = mem_alloc((size_t)elements, sizeof(*flow));
    for (int i = 0; i < elements; i++)
        flow[i] = floats(&x)[i];
    for (int layer = 0; layer < layers; layer++) {
        read_layer(&l, layer);
        for (int row = 0; row < l.batch; row++)
            run_layer(&l, row, flow + row * l.seq * l.hidden);
        release_layer(&l);
    }
    ck_assert_int_eq(l.mask.npy.ndim, cases[_i].ndim);
    ck_assert_int_eq(compare(&l, flow, floats(&y)), cases[_i].real);
    free(flow);
    buf_release(&l.mask.bytes);
    buf_release(&x.bytes);
    buf_release(&y.bytes);
}
END_TEST

/* The segment of attention: q, k and v are the GEMM's result and the bias. */
START_TEST(attention_follows_from_its_files_alone)
{
    struct bench *b = open_case(_i);
    struct names files;
    struct candidate c = candidate_of(b, "1-6");
    OK(bench_dump_segment(b, &c.choices[1], test_path("dump"), false, &st));
    bench_close(b);
    OK(directory_list(test_path("dump"), &files, &st));
    ck_assert_int_eq(files.count, 5); /* these four and workload.json */
    names_release(&files);

    struct array in = array_read("qkv_gemm"), bias = array_read("layer0.bqkv"),
                 merged = array_read("merge_heads");
    struct layer l = {.mask = array_read("mask")};
    read_sizes(&l, &merged);
    int columns = 3 * l.hidden, rows = l.batch * l.seq;
    ck_assert_int_eq(in.npy.shape[2], columns);
    double *qkv = mem_alloc((size_t)(rows * columns), sizeof(*qkv));
    double *context = mem_alloc((size_t)(rows * l.hidden), sizeof(*context));
    for (int i = 0; i < rows * columns; i++)
        qkv[i] = (double)floats(&in)[i] + floats(&bias)[i % columns];
    for (int row = 0; row < rows; row++)
        for (int h = 0; h < l.heads; h++)
            attend(&l, qkv + (size_t)(row / l.seq) * l.seq * columns, row / l.seq, row % l.seq, h,
                   context + row * l.hidden + h * l.width);
    ck_assert_int_eq(compare(&l, context, floats(&merged)), cases[_i].real);
    free(qkv);
    free(context);
    buf_release(&l.mask.bytes);
    buf_release(&in.bytes);
    buf_release(&bias.bytes);
    buf_release(&merged.bytes);
}
END_TEST

/* The place is taken: what is there stays as it is, and nothing is left beside it. */
START_TEST(dump_is_whole_or_not_at_all)
{
    enum { FILES = 4 + 2 * WEIGHTS }; /* x, y, mask, the workload, and two layers' weights */
    static const char *const taken[] = {"place/taken", "place"};
    struct bench_options o = small_options(test_cache());
    struct bench *b = small_bench(&o);
    struct candidate c = candidate_of(b, "0-7,8-9,10-14");
    struct names found;
    OK(file_make_dirs(test_path("place/taken"), &st));
    write_text(test_path("place/taken/mine"), "");
    FAILS(bench_dump(b, &c, test_path("place/taken/"), false, &st), STATUS_ENVIRONMENT,
          "it holds 'mine'");
    for (int i = 0; i < 2; i++) {
        OK(directory_list(test_path(taken[i]), &found, &st));
        ck_assert_int_eq(found.count, 1);
        names_release(&found);
    }
    OK(bench_dump(b, &c, test_path("place/taken/"), true, &st));
    OK(directory_list(test_path("place/taken"), &found, &st));
    ck_assert_int_eq(found.count, 1 + FILES);
    names_release(&found);
    bench_close(b);
}
END_TEST

/* Only the directory that the worker writes to has to be UTF-8. */
START_TEST(dump_needs_a_path_that_can_travel)
{
    struct bench_options o = small_options(test_cache());
    struct bench *b = small_bench(&o);
    struct candidate c = candidate_of(b, "0-7,8-9,10-14");
    OK(bench_dump(b, &c, test_path("caf\xe9"), false, &st));
    FAILS(bench_dump(b, &c, test_path("caf\xe9/dump"), false, &st), STATUS_ENVIRONMENT,
          "is not UTF-8");
    bench_close(b);
}
END_TEST

SUITE("dump_values", test_dir_setup, test_dir_teardown,
      LOOP(y_follows_from_the_files_alone, 0, ARRAY_LEN(cases)),
      LOOP(attention_follows_from_its_files_alone, 0, ARRAY_LEN(cases)),
      ONCE(dump_is_whole_or_not_at_all), ONCE(dump_needs_a_path_that_can_travel))
