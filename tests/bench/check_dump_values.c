/* The files of a dump: inputs, weights and masks as the oracle has them, in the layouts that
 * readers expect, and what the oracle computes from them. */
#include "tests/bench/fixture.h"
#include "tests/bench/oracle/layer_inputs.h"

/* ---- a file ---------------------------------------------------------------------------------- */

/* Rows, each of so many columns, by name; the last part of a shape. */
static void check_file(const char *name, int64_t rows, int64_t columns, const double *values)
{
    SCOPED_BUF bytes = BUF_INIT;
    struct npy npy;
    char path[128];
    snprintf(path, sizeof(path), "dump/%s.npy", name);
    OK(file_read(test_path(path), 0, &bytes, &st));
    OK(npy_parse(bytes.ptr, bytes.len, &npy, &st));
    ck_assert_int_eq(npy.type, NPY_FLOAT32);
    ck_assert_int_eq(npy.shape[npy.ndim - 1], columns);
    ck_assert_int_eq(npy_count(&npy), rows * columns);
    const float *found = npy.data;
    for (int64_t i = 0; i < rows * columns; i++)
        ck_assert_msg(fabs((double)found[i] - values[i]) < 1e-5, "%s, %lld: %g, expected %g", name,
                      (long long)i, (double)found[i], values[i]);
}

static const char *kind_name(const struct workload *w, const char *name, int kind, char out[16])
{
    snprintf(out, 16, w->local != NULL ? "%s%d" : "%s", name, kind);
    return out;
}

/* A pair is kept by the mask, and both of its tokens are real. */
static void check_mask(const struct workload *w, int kind, int ndim, int real)
{
    SCOPED_BUF bytes = BUF_INIT;
    struct npy npy;
    char name[16], path[128];
    const struct workload *of = workload_of_kind(w, kind);
    int s = w->seq_len, seen = 0;
    snprintf(path, sizeof(path), "dump/%s.npy", kind_name(w, "mask", kind, name));
    OK(file_read(test_path(path), 0, &bytes, &st));
    OK(npy_parse(bytes.ptr, bytes.len, &npy, &st));
    ck_assert_int_eq(npy.ndim, ndim);
    const unsigned char *keep = npy.data;
    for (int row = 0; row < w->batch * s; row++) {
        int b = row / s, i = row % s, length = length_of(w, b), kept = 0;
        for (int j = 0; j < s; j++) {
            bool wanted = i < length && j < length && mask_keep(&of->mask, b, i, j);
            ck_assert_int_eq(keep[((ndim == 3 ? b * s : 0) + i) * s + j], wanted);
            kept += wanted;
        }
        seen += kept > 0;
    }
    ck_assert_int_eq(seen, real);
}

/* Of gates the file has the activated columns first, memory has them in pairs.  Rotations are two
 * files. */
static void check_weight(const struct workload *w, int layer, int id, const float *values)
{
    const struct weight *weight = &w->chain->weights[id];
    int64_t columns = dim_size(weight->cols, w), elements = weight_elements(id, w),
            parts = weight->draw == WEIGHT_ROTATION ? 2 : 1;
    SCOPED double *wanted = mem_alloc((size_t)elements, sizeof(*wanted));
    char name[32], of_kind[16];
    snprintf(name, sizeof(name), "layer%d.%s", layer, weight->name);
    for (int64_t i = 0, half = columns / 2; i < elements; i++) {
        int64_t c = i % columns;
        bool pairs = weight->cols == DIM_2F || parts == 2;
        wanted[parts == 2 ? c % 2 * elements / 2 + i / 2
               : pairs    ? i - c + c % 2 * half + c / 2
                          : i] = values[i];
    }
    for (int64_t part = 0; part < parts; part++)
        check_file(parts == 2      ? kind_name(w, part == 0 ? "rope_cos" : "rope_sin",
                                               layer_kind(w, layer), of_kind)
                   : weight->table ? weight->name
                                   : name,
                   elements / columns, columns / parts, wanted + part * elements / 2);
}

/* A layer's weights of a set, from the same draws; returns how many files they are. */
static int check_weights(const struct workload *w, int layer, uint32_t set,
                         const struct layer_inputs *in)
{
    int files = 0;
    for (int id = 0; id < WEIGHT_MAX; id++) {
        const struct weight *weight = &w->chain->weights[id];
        if (weight->name == NULL || (set >> id & 1) == 0)
            continue;
        check_weight(w, layer, id, in->weight[id]);
        files += weight->draw == WEIGHT_ROTATION ? 2 : 1;
    }
    return files;
}

/* ---- the tests ------------------------------------------------------------------------------- */

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

static const struct inputs wide = {.seed = 1, .ranges = RANGES_WIDE};

/* The workload has its mask, which a session has not. */
static struct bench *open_case(int i, struct workload *w)
{
    *w = (struct workload){.chain = chain_find(cases[i].chain),
                           .batch = 3,
                           .seq_len = 5,
                           .heads = 2,
                           .head_size = 4,
                           .layers = 2,
                           .eps = 1e-3,
                           .rope_theta = 100};
    struct bench_options o = small_options(test_cache());
    struct bench *b;
    o.inputs = wide;
    if (cases[i].local != NULL)
        OK(workload_add_local(w, cases[i].local, 10, 2, &st));
    workload_ready(w, cases[i].mask, cases[i].lengths, NULL);
    OK(bench_open(&o, w, &b, &st));
    return b;
}

/* What layer 0 gets. */
static void check_flow(const struct workload *w, const struct flow *flow)
{
    for (int i = 0; i < w->chain->carried_count; i++) {
        int t = w->chain->carried[i].to;
        int64_t columns = tensor_row_columns(w, t), elements = tensor_elements(t, w);
        SCOPED double *wanted = mem_alloc((size_t)elements, sizeof(*wanted));
        for (int64_t e = 0; e < elements; e++)
            wanted[e] = flow->tensor[t][e];
        check_file(tensor_name(w->chain, t), elements / columns, columns, wanted);
    }
}

/* A layer as the oracle has it, whose inputs become its outputs. */
static void run_layer(const struct workload *w, int layer, struct layer_inputs *in,
                      struct oracle_layer *out)
{
    const struct workload *of = workload_of_layer(w, layer);
    layer_inputs_run(of, in, 1, out);
    for (int i = 0; i < w->chain->carried_count; i++) {
        int from = w->chain->carried[i].from, to = w->chain->carried[i].to;
        for (int64_t e = 0; e < tensor_elements(to, w); e++)
            in->flow.tensor[to][e] = (float)out->tensor[from][e];
    }
}

TEST_LOOP(y_follows_from_the_inputs, 0, ARRAY_LEN(cases))
{
    SCOPED_BY(workload_release) struct workload own;
    SCOPED_BY(bench_close_at) struct bench *b = open_case(_i, &own);
    const struct workload *w = &own;
    struct candidate c = candidate_of(b, _i % 2 == 0 ? "0-7,8-9,10-14" : "1-6,10-11");
    struct layer_inputs first = layer_inputs_draw(w, wide, 0);
    struct oracle_layer out;
    c.packed = cases[_i].packed;
    OK(bench_dump(b, &c, test_path("dump"), false, &st));
    for (int kind = 0; kind < workload_kinds(w); kind++)
        check_mask(w, kind, cases[_i].ndim, cases[_i].real);
    check_flow(w, &first.flow);
    for (int layer = 0; layer < w->layers; layer++) {
        struct layer_inputs in = layer_inputs_draw(w, wide, layer);
        check_weights(w, layer, UINT32_MAX, &in);
        for (int t = 0; t < TENSOR_COUNT; t++)
            if (first.flow.tensor[t] != NULL)
                memcpy(in.flow.tensor[t], first.flow.tensor[t],
                       (size_t)tensor_elements(t, w) * sizeof(float));
        run_layer(w, layer, &in, &out);
        layer_inputs_release(&first);
        first = in;
        if (layer + 1 < w->layers)
            oracle_layer_release(&out);
    }
    for (int i = 0; i < w->chain->carried_count; i++) {
        int from = w->chain->carried[i].from, to = w->chain->carried[i].to;
        check_file(to == TENSOR_X ? "y" : "yn", (int64_t)w->batch * w->seq_len, workload_hidden(w),
                   out.tensor[from]);
    }
    oracle_layer_release(&out);
    layer_inputs_release(&first);
}

/* The segment of attention: the GEMM's result and the weights, and what follows. */
TEST_LOOP(attention_follows_from_its_inputs, 0, ARRAY_LEN(cases))
{
    SCOPED_BY(workload_release) struct workload own;
    SCOPED_BY(bench_close_at) struct bench *b = open_case(_i, &own);
    const struct workload *w = &own;
    SCOPED_BY(names_release) struct names files;
    struct candidate c = candidate_of(b, "1-6");
    const struct segment s = c.choices[1].segment;
    SCOPED_BY(layer_inputs_release) struct layer_inputs in = layer_inputs_draw(w, wide, 0);
    SCOPED_BY(oracle_layer_release) struct oracle_layer out;
    OK(bench_dump_segment(b, &c.choices[1], test_path("dump"), false, &st));
    layer_inputs_run(w, &in, 1, &out);
    uint32_t tensors = segment_inputs(w->chain, s) | segment_outputs(w->chain, s);
    int count = 1 + check_weights(w, 0, segment_weights(w->chain, s), &in); /* workload.json */
    for (int t = 0; t < TENSOR_COUNT; t++) {
        if ((tensors >> t & 1) == 0)
            continue;
        int64_t columns = tensor_row_columns(w, t);
        check_file(tensor_name(w->chain, t), tensor_elements(t, w) / columns, columns,
                   out.tensor[t]);
        count++;
    }
    for (int kind = 0; kind < workload_kinds(w); kind++, count++)
        check_mask(w, kind, cases[_i].ndim, cases[_i].real);
    if (w->local != NULL && chain_functions(w->chain).rope)
        count += 2; /* rotations of the other kind */
    OK(directory_list(test_path("dump"), &files, &st));
    ck_assert_int_eq(files.count, count);
}

/* The place is taken: what is there stays as it is, and nothing is left beside it. */
TEST(dump_is_whole_or_not_at_all)
{
    enum { FILES = 4 + 2 * 12 }; /* x, y, mask, the workload, and two layers' weights */
    static const char *const taken[] = {"place/taken", "place"};
    struct bench_options o = small_options(test_cache());
    SCOPED_BY(bench_close_at) struct bench *b = small_bench(&o);
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
}

TEST(dump_needs_a_path_that_can_travel)
{
    struct bench_options o = small_options(test_cache());
    SCOPED_BY(bench_close_at) struct bench *b = small_bench(&o);
    struct candidate c = candidate_of(b, "0-7,8-9,10-14");
    FAILS(bench_dump(b, &c, test_path("caf\xe9"), false, &st), STATUS_ENVIRONMENT, "is not UTF-8");
    ck_assert(!file_exists(test_path("caf\xe9")));
}

SUITE("dump_values", test_dir_setup, test_dir_teardown)
