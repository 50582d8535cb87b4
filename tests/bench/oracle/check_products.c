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
} gemms[] = {{1, 1, 1}, {4, 128, 32}, {7, 129, 63}, {9, 300, 69}, {2, 256, 65}, {139, 5, 150}};

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

enum { S = 21 };

static double dot(const double *x, ptrdiff_t apart_x, const double *y, ptrdiff_t apart_y, int n)
{
    double sum = 0;
    for (int i = 0; i < n; i++)
        sum += x[i * apart_x] * y[i * apart_y];
    return sum;
}

/* Heads of whole tiles, of part of one, and of all parts. */
static const int widths[] = {64, 5, 53};

TEST_LOOP(scores_and_contexts_are_of_kept_keys, 0, ARRAY_LEN(widths))
{
    const int width = widths[_i];
    SCOPED_BY(workload_release) struct workload w = workload_sized(1, S);
    w.heads = 2;
    w.head_size = width;
    workload_ready(&w, "strided", NULL, NULL);
    SCOPED_BY(spans_release) struct spans spans = spans_all(&w);
    double scores[S][S] = {{0}};
    SCOPED double *q = mem_alloc(S * (size_t)width, sizeof(*q));
    SCOPED double *keys = mem_alloc(S * (size_t)width, sizeof(*keys));
    SCOPED double *tiles = oracle_keys_new(&w);
    SCOPED double *y = mem_alloc(S * (size_t)width, sizeof(*y));
    for (int i = 0; i < S * width; i++) {
        q[i] = drawn((uint64_t)i);
        keys[i] = drawn((uint64_t)i + 1000000);
    }
    for (int j = 0; j < S; j++)
        oracle_tile_key(keys + j * width, width, j, tiles);
    for (int i = 0; i < spans.count; i++) {
        const double *from[SPAN_ROWS], *probs[SPAN_ROWS];
        double *of[SPAN_ROWS], *to[SPAN_ROWS];
        for (int r = 0; r < spans.items[i].count; r++) {
            const int row = spans.items[i].first + r;
            from[r] = q + row * width;
            probs[r] = of[r] = scores[row];
            to[r] = y + row * width;
        }
        oracle_scores(&w, spans.items[i], from, tiles, of);
        oracle_context(&w, spans.items[i], probs, keys, to); /* any values */
    }
    for (int i = 0; i < S; i++) {
        double right[S] = {0};
        for (struct kept run = {0, 0}; oracle_next_kept(&w, 0, i, &run);)
            for (int j = run.begin; j < run.end; j++)
                right[j] = dot(q + i * width, 1, keys + j * width, 1, width) / sqrt(width);
        for (int j = 0; j < S; j++)
            ck_assert_double_eq_tol(scores[i][j], right[j], 1e-13);
        for (int c = 0; c < width; c++)
            ck_assert_double_eq_tol(y[i * width + c], dot(right, 1, keys + c, width, S), 1e-13);
    }
}

SUITE("oracle/products", NULL, NULL)
