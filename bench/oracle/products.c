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
enum { TILE_ROWS = 4, TILE_COLUMNS = 16, TILES = 2, TILE_DEPTH = 128, WIDE = TILE_COLUMNS / 2 };
typedef double wide __attribute__((vector_size(WIDE * sizeof(double)), aligned(sizeof(double))));

/* Whether the registers hold the sums of all rows of a tile; else they hold those of half. */
static bool holds_all(void)
{
#if defined(__x86_64__)
    return __builtin_cpu_supports("avx512f");
#else
    return false;
#endif
}

/* Adds to sums of TILE_COLUMNS columns of so many rows. */
PART void multiply_rows(int rows, const double *const *x, const double *right, int64_t stride,
                        int64_t depth, wide (*sums)[2])
{
    wide sum[TILE_ROWS][2];
    memcpy(sum, sums, (size_t)rows * sizeof(*sum));
    for (int64_t k = 0; k < depth; k++, right += stride) {
        wide low, high;
        memcpy(&low, right, sizeof(low));
        memcpy(&high, right + WIDE, sizeof(high));
#pragma GCC unroll 4
        for (int r = 0; r < rows; r++) {
            sum[r][0] += x[r][k] * low;
            sum[r][1] += x[r][k] * high;
        }
    }
    memcpy(sums, sum, (size_t)rows * sizeof(*sum));
}

/* The same of TILE_ROWS rows.  stride: from a row of `right` to the next. */
PART void multiply_tile(bool all, const double *const x[TILE_ROWS], const double *right,
                        int64_t stride, int64_t depth, wide sums[TILE_ROWS][2])
{
    enum { HALF = TILE_ROWS / 2 };
    if (all) {
        multiply_rows(TILE_ROWS, x, right, stride, depth, sums);
    } else {
        multiply_rows(HALF, x, right, stride, depth, sums);
        multiply_rows(HALF, x + HALF, right, stride, depth, sums + HALF);
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
PART void add_tile(bool all, const struct tile *t, const struct gemm_row *rows, int count)
{
    const double *x[TILE_ROWS];
    wide sum[TILE_ROWS][2] = {{{0}}};
    for (int r = 0; r < TILE_ROWS; r++) /* few rows: the last one again */
        x[r] = rows[r < count ? r : count - 1].in + t->at;
    for (int r = 0; r < TILE_ROWS && r < count && t->at > 0; r++)
        copy_sums(sum[r], rows[r].out + t->first, t->width);
    multiply_tile(all, x, t->of[0], TILE_COLUMNS, t->depth, sum);
    for (int r = 0; r < TILE_ROWS && r < count; r++)
        copy_sums(rows[r].out + t->first, sum[r], t->width);
}

/* TILES * TILE_COLUMNS columns of all rows, from column `first` on. */
FOR_EACH_FMA static void gemm_columns(bool all, const struct gemm_row *rows, int count,
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
                add_tile(all, &tiles[i], rows + begin, count - begin);
    }
}

void oracle_multiply(const struct gemm_row *rows, int count, const float *weight, int64_t depth,
                     int64_t columns, int threads)
{
    const bool all = holds_all();
#pragma omp parallel for schedule(dynamic) num_threads(threads) if (threads > 1)
    for (int64_t first = 0; first < columns; first += TILES * TILE_COLUMNS)
        gemm_columns(all, rows, count, weight, depth, columns, first);
}

/* ---- contexts -------------------------------------------------------------------------------- */

/* Adds to some columns, from `first` on, what keys begin..end-1 give. */
PART void add_keys(bool all, const double *const probs[TILE_ROWS], const double *values, int width,
                   struct kept keys, int first, double *const y[TILE_ROWS])
{
    const double *x[TILE_ROWS], *right = values + (ptrdiff_t)keys.begin * width + first;
    const int count = keys.end - keys.begin;
    wide sum[TILE_ROWS][2];
    for (int r = 0; r < TILE_ROWS; r++)
        x[r] = probs[r] + keys.begin;
    if (first + TILE_COLUMNS <= width) {
        for (int r = 0; r < TILE_ROWS; r++)
            copy_sums(sum[r], y[r] + first, TILE_COLUMNS);
        multiply_tile(all, x, right, width, count, sum);
        for (int r = 0; r < TILE_ROWS; r++)
            copy_sums(y[r] + first, sum[r], TILE_COLUMNS);
        return;
    }
    for (int r = 0; r < TILE_ROWS; r++)
        for (int k = 0; k < count; k++)
            for (int c = first; c < width; c++)
                y[r][c] += x[r][k] * right[(ptrdiff_t)k * width + c - first];
}

FOR_EACH_FMA static void add_all_keys(bool all, const double *const probs[TILE_ROWS],
                                      const double *values, int width, struct kept keys,
                                      double *const y[TILE_ROWS])
{
    for (int c = 0; c < width; c += TILE_COLUMNS)
        add_keys(all, probs, values, width, keys, c, y);
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
    const bool all = holds_all();
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
        add_all_keys(all, x, values, width, run, to);
}
