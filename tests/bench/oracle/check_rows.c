/* Which rows are computed. */
#include "tests/bench/oracle/layer_inputs.h"
#include "tests/workload.h"

enum { ROWS = 256 };

static const struct {
    int batch, seq_len;
    const char *lengths;
    int sequences; /* that a sample is of */
} cases[] = {
    {1, 1, NULL, 1},        {1, 7, NULL, 1},          {3, 128, NULL, 2},  {4, 256, NULL, 1},
    {2, 1023, NULL, 1},     {8, 300, NULL, 1},        {2, 4096, NULL, 1}, {3, 70, NULL, 3},
    {3, 300, "300,1,9", 3}, {2, 2048, "257,2048", 1},
};

static void prepare(struct workload *w, int index)
{
    *w = (struct workload){.chain = &chain_bert,
                           .batch = cases[index].batch,
                           .seq_len = cases[index].seq_len,
                           .heads = 1,
                           .head_size = 1,
                           .ffn = 1,
                           .layers = 3,
                           .eps = 1e-5};
    workload_ready(w, "causal", cases[index].lengths, NULL);
}

/* Counts how often each row is in a span; spans are of real rows. */
static int *count_rows(const struct workload *w, const struct spans *spans)
{
    int *times = mem_alloc((size_t)w->batch * (size_t)w->seq_len, sizeof(*times));
    for (int i = 0; i < spans->count; i++) {
        struct span s = spans->items[i];
        ck_assert(s.count >= 1 && s.count <= SPAN_ROWS);
        ck_assert(s.first >= 0 && s.first + s.count <= length_of(w, s.batch_row));
        for (int row = s.first; row < s.first + s.count; row++)
            times[s.batch_row * w->seq_len + row]++;
    }
    return times;
}

TEST_LOOP(all_real_rows_are_there_once, 0, ARRAY_LEN(cases))
{
    SCOPED_BY(workload_release) struct workload w;
    prepare(&w, _i);
    SCOPED_BY(spans_release) struct spans spans = spans_all(&w);
    SCOPED int *times = count_rows(&w, &spans);
    for (int b = 0; b < w.batch; b++)
        for (int i = 0; i < w.seq_len; i++)
            ck_assert_int_eq(times[b * w.seq_len + i], i < length_of(&w, b));
}

/* A sample of enough rows, each once; of each sequence the first and the last, and no long gap. */
TEST_LOOP(samples_are_spread, 0, ARRAY_LEN(cases))
{
    SCOPED_BY(workload_release) struct workload w;
    prepare(&w, _i);
    for (int layer = 1; layer < 12; layer++) {
        SCOPED_BY(spans_release) struct spans spans = spans_sample(&w, layer, 7);
        int *times = count_rows(&w, &spans), rows = 0, real = 0, sequences = 0;
        for (int b = 0; b < w.batch; b++) {
            const int *row = times + b * w.seq_len;
            int length = length_of(&w, b), gap = 0,
                most = 2 * length / (ROWS / SAMPLED_ROWS) + SAMPLED_ROWS;
            real += length;
            sequences += row[0];
            for (int i = 0; i < length && row[0] != 0; i++) {
                ck_assert_int_le(row[i], 1);
                rows += row[i];
                gap = row[i] != 0 ? 0 : gap + 1;
                ck_assert_int_le(gap, most);
            }
            ck_assert_int_eq(row[length - 1], row[0]);
        }
        ck_assert_int_ge(rows, real < ROWS ? real : ROWS);
        if (w.lengths == NULL)
            ck_assert_int_eq(sequences, cases[_i].sequences);
        ck_assert_int_eq(times[layer % w.batch * w.seq_len], 1);
        free(times);
    }
}

/* Another sequence and other rows in another layer, other rows with another seed, else the same. */
TEST(samples_are_drawn)
{
    SCOPED_BY(workload_release) struct workload w;
    prepare(&w, 6);
    SCOPED_BY(spans_release)
    struct spans a = spans_sample(&w, 1, 7), b = spans_sample(&w, 3, 7), c = spans_sample(&w, 1, 8),
                 again = spans_sample(&w, 1, 7);
    size_t bytes = (size_t)a.count * sizeof(*a.items);
    ck_assert_int_eq(a.items[0].batch_row, 1);
    ck_assert_mem_ne(a.items, b.items, bytes);
    ck_assert_mem_ne(a.items, c.items, bytes);
    ck_assert_mem_eq(a.items, again.items, bytes);
}

/* The output of a layer on some rows; 0 elsewhere. */
static struct oracle_results output_of(const struct workload *w, const struct layer_inputs *in,
                                       const struct spans *spans)
{
    struct oracle_results r;
    oracle_results_init(&r, w, 1u << TENSOR_OF(14), spans);
    const struct oracle_taker taker = oracle_results_taker(&r);
    oracle_layer_run(w, &in->flow, (const float *const *)in->weight, spans, NULL, 2, &taker);
    return r;
}

/* _i: a layer, which decides on the sequence.  Rows do not depend on the others that
 * are computed. */
TEST_LOOP(few_rows_are_those_of_all, 0, 2)
{
    SCOPED_BY(workload_release)
    struct workload w = {.chain = &chain_bert,
                         .batch = 2,
                         .seq_len = 40,
                         .heads = 2,
                         .head_size = 8,
                         .ffn = 20,
                         .layers = 1,
                         .eps = 1e-5};
    workload_ready(&w, "dilated", "40,37", NULL);
    SCOPED_BY(layer_inputs_release)
    struct layer_inputs in = layer_inputs_draw(&w, (struct inputs){.seed = 1}, 0);
    SCOPED_BY(spans_release) struct spans all = spans_all(&w), some = spans_sample(&w, _i, 1);
    struct span *first = some.items;
    some.count = first->count = 1;
    SCOPED_BY(oracle_results_release) struct oracle_results every = output_of(&w, &in, &all);
    SCOPED_BY(oracle_results_release) struct oracle_results one = output_of(&w, &in, &some);
    for (int64_t i = 0; i < tensor_elements(TENSOR_OF(14), &w); i++) {
        int64_t row = i / workload_hidden(&w);
        bool computed = row == first->batch_row * w.seq_len + first->first;
        ck_assert_float_eq(one.tensor[TENSOR_OF(14)][i],
                           computed ? every.tensor[TENSOR_OF(14)][i] : 0);
    }
}

SUITE("rows", NULL, NULL)
