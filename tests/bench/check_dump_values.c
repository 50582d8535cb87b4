/* A reader of a dump: y of each real token follows from the files alone, by the oracle, which is
 * told no lengths and no inputs. */
#include "bench/oracle/oracle_int.h"
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

/* The layers of a dump: sizes from workload.json, all else from the arrays. */
struct reader {
    struct workload w;
    struct array mask, weight[WEIGHT_MAX];
    const float *values[WEIGHT_MAX];
    double *tensor[TENSOR_COUNT];
};

static double number_of(const json_t *workload, const char *name)
{
    const json_t *value = json_object_get(workload, name);
    ck_assert_msg(json_is_number(value), "%s", name);
    return json_number_value(value);
}

/* flow (B,S,D): its shape is the workload's. */
static void open_dump(struct reader *r, const struct array *flow)
{
    json_t *sizes = json_load_file(test_path("dump/workload.json"), 0, NULL);
    *r = (struct reader){.mask = array_read("mask")};
    r->w = (struct workload){.chain = &chain_bert,
                             .batch = (int)flow->npy.shape[0],
                             .seq_len = (int)flow->npy.shape[1],
                             .heads = (int)number_of(sizes, "heads"),
                             .layers = (int)number_of(sizes, "layers"),
                             .eps = number_of(sizes, "eps")};
    r->w.head_size = (int)flow->npy.shape[2] / r->w.heads;
    json_decref(sizes);
    workload_ready(&r->w, "file:mask.npy", NULL, &r->mask.bytes);
    for (int t = 0; t < TENSOR_COUNT; t++)
        r->tensor[t] = mem_alloc((size_t)tensor_elements(t, &r->w), sizeof(double));
}

static void close_dump(struct reader *r)
{
    for (int t = 0; t < TENSOR_COUNT; t++)
        free(r->tensor[t]);
    buf_release(&r->mask.bytes);
    workload_release(&r->w);
}

static void read_weight(struct reader *r, int layer, int id)
{
    char name[32];
    snprintf(name, sizeof(name), "layer%d.%s", layer, r->w.chain->weights[id].name);
    r->weight[id] = array_read(name);
    ck_assert_int_eq(npy_count(&r->weight[id].npy), weight_elements(id, &r->w));
    r->values[id] = floats(&r->weight[id]);
}

/* Operators first..last by the oracle, a row at a time, all rows of them. */
static void run_operators(struct reader *r, int first, int last)
{
    const struct layer l = {.w = &r->w, .weight = r->values, .tensor = r->tensor};
    for (int op = first; op <= last; op++)
        for (int row = 0; row < r->w.batch * r->w.seq_len; row++)
            oracle_operator_run(&l, (struct span){row / r->w.seq_len, row % r->w.seq_len, 1}, op);
}

/* Compares the rows of real tokens, which see a key; all others are zero.  Returns how many are
 * real. */
static int compare(const struct reader *r, const double *expected, const float *y)
{
    int real = 0, columns = r->w.heads * r->w.head_size;
    for (int row = 0; row < r->w.batch * r->w.seq_len; row++) {
        struct kept run = {0, 0};
        bool computed = oracle_next_kept(&r->w, row / r->w.seq_len, row % r->w.seq_len, &run);
        real += computed;
        for (int c = row * columns; c < (row + 1) * columns; c++)
            ck_assert_msg(fabs(y[c] - (computed ? expected[c] : 0)) < 1e-5,
                          "token %d: %g, expected %g", row, y[c], expected[c]);
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
    o.inputs.ranges = RANGES_WIDE;
    workload_ready(&w, cases[i].mask, cases[i].lengths, NULL);
    return bench_of(&o, &w);
}

START_TEST(y_follows_from_the_files_alone)
{
    struct bench *b = open_case(_i);
    struct candidate c = candidate_of(b, _i % 2 == 0 ? "0-7,8-9,10-14" : "1-6,10-11");
    c.packed = cases[_i].packed;
    OK(bench_dump(b, &c, test_path("dump"), false, &st));
    bench_close(b);

    struct array x = array_read("x"), y = array_read("y");
    struct reader r;
    open_dump(&r, &x);
    for (int64_t i = 0; i < npy_count(&x.npy); i++)
        r.tensor[OP_COUNT][i] = floats(&x)[i];
    for (int layer = 0; layer < r.w.layers; layer++) {
        memcpy(r.tensor[0], r.tensor[OP_COUNT], (size_t)npy_count(&x.npy) * sizeof(double));
        for (int id = 0; id < r.w.chain->weight_count; id++)
            read_weight(&r, layer, id);
        run_operators(&r, 0, OP_COUNT - 1);
        for (int id = 0; id < r.w.chain->weight_count; id++)
            buf_release(&r.weight[id].bytes);
    }
    ck_assert_int_eq(r.mask.npy.ndim, cases[_i].ndim);
    ck_assert_int_eq(compare(&r, r.tensor[OP_COUNT], floats(&y)), cases[_i].real);
    close_dump(&r);
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

    struct array in = array_read("qkv_gemm"), merged = array_read("merge_heads");
    struct reader r;
    open_dump(&r, &merged);
    read_weight(&r, 0, WEIGHT_BQKV);
    for (int64_t i = 0; i < npy_count(&in.npy); i++)
        r.tensor[1][i] = floats(&in)[i];
    run_operators(&r, 1, 6);
    ck_assert_int_eq(compare(&r, r.tensor[7], floats(&merged)), cases[_i].real);
    close_dump(&r);
    buf_release(&r.weight[WEIGHT_BQKV].bytes);
    buf_release(&in.bytes);
    buf_release(&merged.bytes);
}
END_TEST

/* The place is taken: what is there stays as it is, and nothing is left beside it. */
START_TEST(dump_is_whole_or_not_at_all)
{
    enum { FILES = 4 + 2 * WEIGHT_MAX }; /* x, y, mask, the workload, and two layers' weights */
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
