/* Sums of products, beside loops that take one product after another. */
#include "bench/oracle/oracle_int.h"
#include "tests/workload.h"

static double drawn(uint64_t i)
{
    return (double)(splitmix64(i) >> 11) * 0x1p-53 - 0.5;
}

/* Whole and short tiles: of rows, of columns and of depth. */
static const struct {
    size_t count, depth, columns;
} gemms[] = {{1, 1, 1}, {4, 128, 16}, {7, 129, 31}, {9, 300, 37}, {2, 256, 33}};

TEST_LOOP(gemms_sum_all_products, 0, ARRAY_LEN(gemms))
{
    const size_t count = gemms[_i].count, depth = gemms[_i].depth, columns = gemms[_i].columns;
    SCOPED double *in = mem_alloc(count * depth, sizeof(*in));
    SCOPED double *out = mem_alloc(count * columns, sizeof(*out));
    SCOPED float *weight = mem_alloc(depth * columns, sizeof(*weight));
    SCOPED struct gemm_row *rows = mem_alloc(count, sizeof(*rows));
    for (size_t i = 0; i < count * depth; i++)
        in[i] = drawn(i);
    for (size_t i = 0; i < depth * columns; i++)
        weight[i] = (float)drawn(i + 1000000);
    for (size_t r = 0; r < count; r++)
        rows[r] = (struct gemm_row){in + r * depth, out + r * columns};
    for (int threads = 1; threads <= 2; threads++) {
        memset(out, 0xff, count * columns * sizeof(*out));
        oracle_multiply(rows, (int)count, weight, (int64_t)depth, (int64_t)columns, threads);
        for (size_t r = 0; r < count; r++)
            for (size_t c = 0; c < columns; c++) {
                double sum = 0;
                for (size_t k = 0; k < depth; k++)
                    sum += in[r * depth + k] * (double)weight[k * columns + c];
                ck_assert_double_eq_tol(out[r * columns + c], sum, 1e-13);
            }
    }
}

/* Heads of whole tiles, of part of one, and of both. */
static const int widths[] = {64, 5, 40};

TEST_LOOP(contexts_sum_kept_keys, 0, ARRAY_LEN(widths))
{
    enum { S = 21 };
    const int width = widths[_i];
    struct workload w;
    workload_init(&w);
    w.batch = 1;
    w.seq_len = S;
    w.heads = 2;
    w.head_size = width;
    workload_ready(&w, "strided", NULL, NULL);
    struct spans spans = spans_all(&w);
    double probs[S][S] = {{0}};
    SCOPED double *values = mem_alloc(S * (size_t)width, sizeof(*values));
    SCOPED double *y = mem_alloc(S * (size_t)width, sizeof(*y));
    for (int i = 0; i < S * width; i++)
        values[i] = drawn((uint64_t)i);
    for (int i = 0; i < S; i++)
        for (struct kept run = {0, 0}; oracle_next_kept(&w, 0, i, &run);)
            for (int j = run.begin; j < run.end; j++)
                probs[i][j] = drawn((uint64_t)i * S + (uint64_t)j);
    for (int i = 0; i < spans.count; i++) {
        const double *of[SPAN_ROWS];
        double *to[SPAN_ROWS];
        for (int r = 0; r < spans.items[i].count; r++) {
            of[r] = probs[spans.items[i].first + r];
            to[r] = y + (spans.items[i].first + r) * width;
        }
        oracle_context(&w, spans.items[i], of, values, to);
    }
    for (int i = 0; i < S; i++)
        for (int c = 0; c < width; c++) {
            double sum = 0;
            for (int j = 0; j < S; j++)
                sum += probs[i][j] * values[j * width + c];
            ck_assert_double_eq_tol(y[i * width + c], sum, 1e-13);
        }
    free(spans.items);
    workload_release(&w);
}

SUITE("oracle/products", NULL, NULL)
