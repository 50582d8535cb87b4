/* A reader of a dump: y of each real token follows from the files alone. */
#include "tests/bench/dump_reader.h"

static struct status st; /* of the call that a test is about */

/* ---- the test -------------------------------------------------------------------------------- */

#define ALL "pre+rms+silu+gate+rope+bias"

static const struct {
    const char *mask, *lengths;
    int ndim, real; /* of the mask; tokens */
    bool packed;
    const char *chain;
    const char *local; /* the mask of layer 1; null: as layer 0 */
} cases[] = {
    {"full", NULL, 2, 15, false, "bert", NULL},
    {"causal", NULL, 2, 15, false, "bert", NULL},
    {"full", "2,5,3", 3, 10, false, "bert", NULL},
    {"causal", "5,1,4", 3, 10, false, "bert", NULL},
    {"sliding:w=1", "4,4,4", 3, 12, false, "bert", NULL},
    {"causal", "5,1,4", 3, 10, true, "bert", NULL},
    {"full", "2,5,3", 3, 10, true, "bert", NULL},
    {"full", NULL, 2, 15, false, ALL, NULL},
    {"causal", "5,1,4", 3, 10, true, ALL, NULL},
    {"sliding:w=1", "4,4,4", 3, 12, false, "rms+silu+rope", NULL},
    {"causal", NULL, 2, 15, false, "bert", "full"},
    {"full", "2,5,3", 3, 10, true, ALL, "sliding:w=1"},
};

static struct bench *open_case(int i)
{
    struct workload w = {.chain = chain_find(cases[i].chain),
                         .batch = 3,
                         .seq_len = 5,
                         .heads = 2,
                         .head_size = 4,
                         .layers = 2,
                         .eps = 1e-3,
                         .rope_theta = 100};
    struct bench_options o = small_options(test_cache());
    struct bench *b;
    o.inputs.ranges = RANGES_WIDE;
    if (cases[i].local != NULL)
        OK(workload_add_local(&w, cases[i].local, 10, 2, &st));
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

    struct array x = array_read("x");
    struct layer l = {.batch = 0};
    int layers = read_sizes(&l, &x);
    size_t sequence = (size_t)l.seq * (size_t)l.hidden;
    double *flow = flow_read("x"), *norm = flow_read(l.pre ? "n" : "x");
    for (int layer = 0; layer < layers; layer++) {
        read_layer(&l, layer);
        for (int row = 0; row < l.batch; row++)
            run_layer(&l, row, flow + (size_t)row * sequence, norm + (size_t)row * sequence);
        release_layer(&l);
    }
    ck_assert_int_eq(l.mask.npy.ndim, cases[_i].ndim);
    ck_assert_int_eq(compare(&l, flow, "y"), cases[_i].real);
    if (l.pre)
        ck_assert_int_eq(compare(&l, norm, "yn"), cases[_i].real);
    free(flow);
    free(norm);
    release_tables(&l);
    buf_release(&x.bytes);
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
    const struct chain_functions f = chain_functions(chain_find(cases[_i].chain));
    /* q, k and v, their bias, the result and workload.json; tables, and what each kind has */
    const int kinds = cases[_i].local != NULL ? 2 : 1;
    ck_assert_int_eq(files.count, 4 + (f.score_bias ? 1 : 0) + kinds * (f.rope ? 3 : 1));
    names_release(&files);

    struct array in = array_read("qkv_gemm"), bias = array_read("layer0.bqkv"),
                 merged = array_read("merge_heads");
    struct layer l = {.batch = 0};
    read_sizes(&l, &merged);
    int columns = 3 * l.hidden, rows = l.batch * l.seq;
    ck_assert_int_eq(in.npy.shape[2], columns);
    double *qkv = mem_alloc((size_t)(rows * columns), sizeof(*qkv));
    double *context = mem_alloc((size_t)(rows * l.hidden), sizeof(*context));
    for (int i = 0; i < rows * columns; i++)
        qkv[i] = (double)floats(&in)[i] + floats(&bias)[i % columns];
    for (int row = 0; row < rows; row++) {
        rotate(&l, row % l.seq, qkv + (size_t)row * columns);
        rotate(&l, row % l.seq, qkv + (size_t)row * columns + l.hidden);
    }
    for (int row = 0; row < rows; row++)
        for (int h = 0; h < l.heads; h++)
            attend(&l, qkv + (size_t)(row / l.seq) * l.seq * columns, row / l.seq, row % l.seq, h,
                   context + row * l.hidden + h * l.width);
    ck_assert_int_eq(compare(&l, context, "merge_heads"), cases[_i].real);
    free(qkv);
    free(context);
    release_tables(&l);
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
