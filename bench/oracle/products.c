/* Sums of products: what takes nearly all of the oracle's time.
 *
 * This file alone is compiled so that a product may join its sum, rounded once, where the CPU can:
 * with -ffp-contract=fast.  So sums have the same bits on all CPUs that can. */
#include "bench/oracle/oracle_int.h"

#include <limits.h>

/* FOR_EACH_FMA_256: for vectors of 256 bits, which avx512f alone multiplies and adds apart. */
#if defined(__x86_64__)
#define FOR_EACH_FMA     __attribute__((target_clones("avx512f", "fma", "default")))
#define FOR_EACH_FMA_256 __attribute__((target_clones("fma", "default")))
#else
#define FOR_EACH_FMA
#define FOR_EACH_FMA_256
#endif

/* Inlined: each clone has its own. */
#define PART static inline __attribute__((always_inline))

/* What is multiplied at a time: rows by columns, and so many numbers of each, which stay in the
 * nearest cache.  A CPU without AVX-512 has the registers for PART_ROWS by PART_COLUMNS. */
enum { TILE_ROWS = 4, TILE_COLUMNS = 32, TILE_DEPTH = 128, PART_ROWS = 2, PART_COLUMNS = 16 };

static bool has_avx512(void)
{
#if defined(__x86_64__)
    return __builtin_cpu_supports("avx512f");
#else
    return false;
#endif
}

typedef double wide
    __attribute__((vector_size(2 * LANES * sizeof(double)), aligned(sizeof(double)), may_alias));

/* Adds to sums, which stay in registers, TILE_COLUMNS apart.  stride: from a row of `right` to the
 * next.  A copy of `part` would go through memory. */
#define MULTIPLY(NAME, VECTOR, ROWS, COLUMNS)                                                      \
    PART void NAME(const double *const *x, const double *right, int64_t stride, int64_t depth,     \
                   double *sums)                                                                   \
    {                                                                                              \
        enum { COUNT = (COLUMNS) * sizeof(double) / sizeof(VECTOR) };                              \
        VECTOR sum[ROWS][COUNT];                                                                   \
        for (int r = 0; r < (ROWS); r++)                                                           \
            memcpy(sum[r], sums + r * TILE_COLUMNS, sizeof(sum[r]));                               \
        for (int64_t k = 0; k < depth; k++, right += stride) {                                     \
            const VECTOR *part = (const VECTOR *)right;                                            \
            _Pragma("GCC unroll 4") for (int i = 0; i < COUNT; i++)                                \
                _Pragma("GCC unroll 4") for (int r = 0; r < (ROWS); r++) sum[r][i] +=              \
                x[r][k] * part[i];                                                                 \
        }                                                                                          \
        for (int r = 0; r < (ROWS); r++)                                                           \
            memcpy(sums + r * TILE_COLUMNS, sum[r], sizeof(sum[r]));                               \
    }
MULTIPLY(multiply_wide, wide, TILE_ROWS, TILE_COLUMNS)
MULTIPLY(multiply_narrow, wide, TILE_ROWS, PART_COLUMNS)
MULTIPLY(multiply_part, doubles, PART_ROWS, PART_COLUMNS)
#undef MULTIPLY

/* Of TILE_ROWS rows and `columns` columns: PART_COLUMNS or TILE_COLUMNS. */
PART void multiply_tile(bool avx512, const double *const x[TILE_ROWS], const double *right,
                        int64_t stride, int64_t depth, int columns, double *sums)
{
    if (avx512 && columns == TILE_COLUMNS) {
        multiply_wide(x, right, stride, depth, sums);
    } else if (avx512) {
        multiply_narrow(x, right, stride, depth, sums);
    } else {
        for (int c = 0; c < columns; c += PART_COLUMNS)
            for (int r = 0; r < TILE_ROWS; r += PART_ROWS)
                multiply_part(x + r, right + c, stride, depth, sums + r * TILE_COLUMNS + c);
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
    multiply_tile(avx512, x, t->of[0], TILE_COLUMNS, t->depth, TILE_COLUMNS, sum[0]);
    for (int r = 0; r < TILE_ROWS && r < count; r++)
        copy_sums(rows[r].out + t->first, sum[r], t->width);
}

/* TILE_COLUMNS columns of all rows, from column `first` on. */
FOR_EACH_FMA static void gemm_columns(bool avx512, const struct gemm_row *rows, int count,
                                      const float *weight, int64_t depth, int64_t columns,
                                      int64_t first)
{
    struct tile t;
    t.first = first;
    t.width = columns - first < TILE_COLUMNS ? columns - first : TILE_COLUMNS;
    for (t.at = 0; t.at < depth; t.at += TILE_DEPTH) {
        t.depth = depth - t.at < TILE_DEPTH ? depth - t.at : TILE_DEPTH;
        fill_tile(&t, weight, columns);
        for (int begin = 0; begin < count; begin += TILE_ROWS)
            add_tile(avx512, &t, rows + begin, count - begin);
    }
}

void oracle_multiply(const struct gemm_row *rows, int count, const float *weight, int64_t depth,
                     int64_t columns, int threads)
{
    const bool avx512 = has_avx512();
#pragma omp parallel for schedule(dynamic) num_threads(threads) if (threads > 1)
    for (int64_t first = 0; first < columns; first += TILE_COLUMNS)
        gemm_columns(avx512, rows, count, weight, depth, columns, first);
}

/* ---- scores ---------------------------------------------------------------------------------- */

_Static_assert((int)SPAN_ROWS == (int)LANES, "a number for each query of a span");

/* The queries of a span, (W), times each of some keys. */
PART void multiply_keys(const doubles *q, const double *const k[KEYS_AT_ONCE], int width,
                        doubles out[KEYS_AT_ONCE])
{
    doubles dot[KEYS_AT_ONCE] = {{0}};
    for (int c = 0; c < width; c++)
#pragma GCC unroll 8
        for (int j = 0; j < KEYS_AT_ONCE; j++)
            dot[j] += q[c] * k[j][c];
    memcpy(out, dot, sizeof(dot));
}

/* Writes those that are kept: bit j of kept[r] is of query r and key j. */
PART void keep_scores(const doubles dot[KEYS_AT_ONCE], const unsigned kept[SPAN_ROWS], int first,
                      double root, double *const y[SPAN_ROWS])
{
    for (int r = 0; r < SPAN_ROWS; r++)
        for (int j = 0; j < KEYS_AT_ONCE; j++)
            if ((kept[r] >> j & 1) != 0)
                y[r][first + j] = dot[j][r] / root;
}

FOR_EACH_FMA_256 void oracle_scores(const struct workload *w, struct span s,
                                    const double *const q[SPAN_ROWS], const double *keys,
                                    double *const y[SPAN_ROWS])
{
    const int width = w->head_size, length = oracle_length(w, s.batch_row);
    const double root = sqrt(width);
    SCOPED doubles *across = mem_alloc((size_t)width, sizeof(*across));
    for (int c = 0; c < width; c++)
        for (int r = 0; r < s.count; r++)
            across[c][r] = q[r][c];
    for (int first = 0; first < length; first += KEYS_AT_ONCE) {
        unsigned kept[SPAN_ROWS] = {0}, any = 0;
        const double *k[KEYS_AT_ONCE];
        doubles dot[KEYS_AT_ONCE];
        for (int r = 0; r < s.count; r++)
            any |= kept[r] = oracle_kept_keys(w, s.batch_row, s.first + r, first);
        if (any == 0)
            continue;
        for (int j = 0; j < KEYS_AT_ONCE; j++) /* few keys: the last one again */
            k[j] = keys + (ptrdiff_t)(first + j < length ? first + j : length - 1) * width;
        multiply_keys(across, k, width, dot);
        keep_scores(dot, kept, first, root, y);
    }
}

/* ---- contexts -------------------------------------------------------------------------------- */

/* Adds to `columns` columns, from `first` on, what keys begin..end-1 give. */
PART void add_keys(bool avx512, const double *const x[TILE_ROWS], const double *right, int width,
                   int count, int first, int columns, double *const y[TILE_ROWS])
{
    double sum[TILE_ROWS][TILE_COLUMNS];
    for (int r = 0; r < TILE_ROWS; r++)
        copy_sums(sum[r], y[r] + first, columns);
    multiply_tile(avx512, x, right, width, count, columns, sum[0]);
    for (int r = 0; r < TILE_ROWS; r++)
        copy_sums(y[r] + first, sum[r], columns);
}

FOR_EACH_FMA static void add_all_keys(bool avx512, const double *const probs[TILE_ROWS],
                                      const double *values, int width, struct kept keys,
                                      double *const y[TILE_ROWS])
{
    const double *x[TILE_ROWS], *right = values + (ptrdiff_t)keys.begin * width;
    const int count = keys.end - keys.begin;
    int c = 0;
    for (int r = 0; r < TILE_ROWS; r++)
        x[r] = probs[r] + keys.begin;
    for (; c + TILE_COLUMNS <= width; c += TILE_COLUMNS)
        add_keys(avx512, x, right + c, width, count, c, TILE_COLUMNS, y);
    for (; c + PART_COLUMNS <= width; c += PART_COLUMNS)
        add_keys(avx512, x, right + c, width, count, c, PART_COLUMNS, y);
    for (int r = 0; r < TILE_ROWS && c < width; r++)
        for (int k = 0; k < count; k++)
            for (int last = c; last < width; last++)
                y[r][last] += x[r][k] * right[(ptrdiff_t)k * width + last];
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
