/* Sums of products: what takes nearly all of the oracle's time.
 *
 * This file alone is compiled so that a product may join its sum, rounded once, where the CPU can:
 * with -ffp-contract=fast.  So sums have the same bits on all CPUs that can. */
#include "bench/oracle/oracle_int.h"

#include <limits.h>

#if defined(__x86_64__)
#define FOR_EACH_FMA __attribute__((target_clones("avx512f", "fma", "default")))
#else
#define FOR_EACH_FMA
#endif

/* Inlined: each clone has its own. */
#define PART static inline __attribute__((always_inline))

/* What is multiplied at a time: rows by columns, so many columns of a weight and numbers of each,
 * which stay in the nearest cache. */
enum { TILE_ROWS = 4, TILE_COLUMNS = 16, TILES = 2, TILE_DEPTH = 128 };

/* Whether the CPU has its registers. */
static bool has_avx512(void)
{
#if defined(__x86_64__)
    return __builtin_cpu_supports("avx512f");
#else
    return false;
#endif
}

typedef double wide
    __attribute__((vector_size(2 * LANES * sizeof(double)), aligned(sizeof(double))));

/* Adds to sums of TILE_COLUMNS columns of ROWS rows, which stay in registers. */
#define MULTIPLY(NAME, VECTOR, ROWS)                                                               \
    PART void NAME(const double *const *x, const double *right, int64_t stride, int64_t depth,     \
                   double(*sums)[TILE_COLUMNS])                                                    \
    {                                                                                              \
        enum { COUNT = TILE_COLUMNS * sizeof(double) / sizeof(VECTOR) };                           \
        VECTOR sum[ROWS][COUNT], part[COUNT];                                                      \
        memcpy(sum, sums, sizeof(sum));                                                            \
        for (int64_t k = 0; k < depth; k++, right += stride) {                                     \
            memcpy(part, right, sizeof(part));                                                     \
            _Pragma("GCC unroll 4") for (int r = 0; r < (ROWS); r++)                               \
                _Pragma("GCC unroll 4") for (int i = 0; i < COUNT; i++) sum[r][i] +=               \
                x[r][k] * part[i];                                                                 \
        }                                                                                          \
        memcpy(sums, sum, sizeof(sum));                                                            \
    }
enum { HALF = TILE_ROWS / 2 };
MULTIPLY(multiply_wide, wide, TILE_ROWS)
MULTIPLY(multiply_half, doubles, HALF)
#undef MULTIPLY

/* The same of TILE_ROWS rows.  stride: from a row of `right` to the next. */
PART void multiply_tile(bool avx512, const double *const x[TILE_ROWS], const double *right,
                        int64_t stride, int64_t depth, double sums[TILE_ROWS][TILE_COLUMNS])
{
    if (avx512) {
        multiply_wide(x, right, stride, depth, sums);
    } else {
        multiply_half(x, right, stride, depth, sums);
        multiply_half(x + HALF, right, stride, depth, sums + HALF);
    }
}

/* ---- GEMMs ----------------------------------------------------------------------------------- */

/* `width` columns of a weight, from column `first` on, and of these `depth` numbers from `at` on.
 */
struct tile {
    int64_t at, depth, first, width;
    double of[TILE_DEPTH][TILE_COLUMNS];
};

PART void fill_tile(struct tile *t, const float *weight, int64_t columns)
{
    for (int64_t k = 0; k < t->depth; k++) {
        const float *from = weight + (t->at + k) * columns + t->first;
        for (int c = 0; c < TILE_COLUMNS && t->width == TILE_COLUMNS; c++)
            t->of[k][c] = from[c];
        for (int c = 0; c < TILE_COLUMNS && t->width < TILE_COLUMNS; c++)
            t->of[k][c] = c < t->width ? from[c] : 0;
    }
}

PART void copy_sums(void *to, const void *from, int64_t width)
{
    if (width == TILE_COLUMNS)
        memcpy(to, from, TILE_COLUMNS * sizeof(double)); /* without a call */
    else
        memcpy(to, from, (size_t)width * sizeof(double));
}

/* Adds to the outputs of some rows. */
PART void add_tile(bool avx512, const struct tile *t, const struct gemm_row *rows, int count)
{
    const double *x[TILE_ROWS];
    double sum[TILE_ROWS][TILE_COLUMNS] = {{0}};
    for (int r = 0; r < TILE_ROWS; r++) /* few rows: the last one again */
        x[r] = rows[r < count ? r : count - 1].in + t->at;
    for (int r = 0; r < TILE_ROWS && r < count && t->at > 0; r++)
        copy_sums(sum[r], rows[r].out + t->first, t->width);
    multiply_tile(avx512, x, t->of[0], TILE_COLUMNS, t->depth, sum);
    for (int r = 0; r < TILE_ROWS && r < count; r++)
        copy_sums(rows[r].out + t->first, sum[r], t->width);
}

/* TILES * TILE_COLUMNS columns of all rows, from column `first` on. */
FOR_EACH_FMA static void gemm_columns(bool avx512, const struct gemm_row *rows, int count,
                                      const float *weight, int64_t depth, int64_t columns,
                                      int64_t first)
{
    struct tile tiles[TILES];
    for (int64_t at = 0; at < depth; at += TILE_DEPTH) {
        int used = 0;
        for (int64_t c = first; used < TILES && c < columns; c += TILE_COLUMNS) {
            struct tile *t = &tiles[used++];
            t->at = at;
            t->depth = depth - at < TILE_DEPTH ? depth - at : TILE_DEPTH;
            t->first = c;
            t->width = columns - c < TILE_COLUMNS ? columns - c : TILE_COLUMNS;
            fill_tile(t, weight, columns);
        }
        for (int begin = 0; begin < count; begin += TILE_ROWS)
            for (int i = 0; i < used; i++)
                add_tile(avx512, &tiles[i], rows + begin, count - begin);
    }
}

void oracle_multiply(const struct gemm_row *rows, int count, const float *weight, int64_t depth,
                     int64_t columns, int threads)
{
    const bool avx512 = has_avx512();
#pragma omp parallel for schedule(dynamic) num_threads(threads) if (threads > 1)
    for (int64_t first = 0; first < columns; first += TILES * TILE_COLUMNS)
        gemm_columns(avx512, rows, count, weight, depth, columns, first);
}

/* ---- contexts -------------------------------------------------------------------------------- */

/* Adds to some columns, from `first` on, what keys begin..end-1 give. */
PART void add_keys(bool avx512, const double *const probs[TILE_ROWS], const double *values,
                   int width, struct kept keys, int first, double *const y[TILE_ROWS])
{
    const double *x[TILE_ROWS], *right = values + (ptrdiff_t)keys.begin * width + first;
    const int count = keys.end - keys.begin;
    double sum[TILE_ROWS][TILE_COLUMNS];
    for (int r = 0; r < TILE_ROWS; r++)
        x[r] = probs[r] + keys.begin;
    if (first + TILE_COLUMNS <= width) {
        for (int r = 0; r < TILE_ROWS; r++)
            copy_sums(sum[r], y[r] + first, TILE_COLUMNS);
        multiply_tile(avx512, x, right, width, count, sum);
        for (int r = 0; r < TILE_ROWS; r++)
            copy_sums(y[r] + first, sum[r], TILE_COLUMNS);
        return;
    }
    for (int r = 0; r < TILE_ROWS; r++)
        for (int k = 0; k < count; k++)
            for (int c = first; c < width; c++)
                y[r][c] += x[r][k] * right[(ptrdiff_t)k * width + c - first];
}

FOR_EACH_FMA static void add_all_keys(bool avx512, const double *const probs[TILE_ROWS],
                                      const double *values, int width, struct kept keys,
                                      double *const y[TILE_ROWS])
{
    for (int c = 0; c < width; c += TILE_COLUMNS)
        add_keys(avx512, probs, values, width, keys, c, y);
}

/* Keys after run->end that some row of a span keeps. */
static bool next_of_any(const struct workload *w, struct span s, struct kept *run)
{
    struct kept any = {INT_MAX, 0};
    for (int r = 0; r < s.count; r++) {
        struct kept own = {0, run->end};
        if (oracle_next_kept(w, s.batch_row, s.first + r, &own) && own.begin < any.begin)
            any = own;
    }
    *run = any;
    return any.begin < any.end;
}

_Static_assert((int)SPAN_ROWS == (int)TILE_ROWS, "a row of a tile for each query of a span");

void oracle_context(const struct workload *w, struct span s, const double *const probs[SPAN_ROWS],
                    const double *values, double *const y[SPAN_ROWS])
{
    const bool avx512 = has_avx512();
    const int width = w->head_size;
    SCOPED double *room = mem_alloc((size_t)width, sizeof(*room));
    const double *x[TILE_ROWS];
    double *to[TILE_ROWS];
    for (int r = 0; r < TILE_ROWS; r++) { /* few rows: the last one again, elsewhere */
        x[r] = probs[r < s.count ? r : s.count - 1];
        to[r] = r < s.count ? y[r] : room;
        memset(to[r], 0, (size_t)width * sizeof(*to[r]));
    }
    for (struct kept run = {0, 0}; next_of_any(w, s, &run);)
        add_all_keys(avx512, x, values, width, run, to);
}
