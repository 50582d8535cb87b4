/* Sums of products: what takes nearly all of the oracle's time.
 *
 * This file alone is compiled so that a product may join its sum, rounded once, where the CPU can:
 * with -ffp-contract=fast.  So sums have the same bits on all CPUs that can. */
#include "bench/oracle/oracle_int.h"

#if defined(__x86_64__)
#define FOR_EACH_FMA __attribute__((target_clones("avx512f", "fma", "default")))
#else
#define FOR_EACH_FMA
#endif

/* Inlined: each clone has its own. */
#define PART static inline __attribute__((always_inline))

/* What is multiplied at a time: rows by columns, and so many numbers of each, which stay in the
 * nearest cache.  A CPU without AVX-512 has the registers for PART_ROWS. */
enum { TILE_ROWS = 8, TILE_COLUMNS = 16, TILE_DEPTH = 256, PART_ROWS = 2 };

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

/* Adds to sums, which stay in registers.  stride: from a row of `right` to the next.  A copy of
 * `part` would go through memory. */
#define MULTIPLY(NAME, VECTOR, ROWS)                                                               \
    PART void NAME(const double *const *x, const double *right, int64_t stride, int64_t depth,     \
                   double(*sums)[TILE_COLUMNS])                                                    \
    {                                                                                              \
        enum { COUNT = TILE_COLUMNS * sizeof(double) / sizeof(VECTOR) };                           \
        VECTOR sum[ROWS][COUNT];                                                                   \
        memcpy(sum, sums, sizeof(sum));                                                            \
        for (int64_t k = 0; k < depth; k++, right += stride) {                                     \
            const VECTOR *part = (const VECTOR *)right;                                            \
            _Pragma("GCC unroll 8") for (int i = 0; i < COUNT; i++)                                \
                _Pragma("GCC unroll 8") for (int r = 0; r < (ROWS); r++) sum[r][i] +=              \
                x[r][k] * part[i];                                                                 \
        }                                                                                          \
        memcpy(sums, sum, sizeof(sum));                                                            \
    }
MULTIPLY(multiply_wide, wide, TILE_ROWS)
MULTIPLY(multiply_part, doubles, PART_ROWS)
#undef MULTIPLY

PART void multiply_tile(bool avx512, const double *const x[TILE_ROWS], const double *right,
                        int64_t stride, int64_t depth, double (*sums)[TILE_COLUMNS])
{
    if (avx512)
        multiply_wide(x, right, stride, depth, sums);
    else
        for (int r = 0; r < TILE_ROWS; r += PART_ROWS)
            multiply_part(x + r, right, stride, depth, sums + r);
}

/* ---- GEMMs ----------------------------------------------------------------------------------- */

/* What a thread computes at a time: so many rows and tiles of columns.  Rows are read from far
 * caches once for all its tiles, which the second cache holds. */
enum { BLOCK_ROWS = 128, BLOCK_TILES = 8 };

/* `width` columns of a weight, from column `first` on, and of these `depth` numbers from `at` on.
 */
struct tile {
    double of[TILE_DEPTH][TILE_COLUMNS];
    int64_t at, depth, first, width;
} __attribute__((aligned(64))); /* no vector lies in two lines of a cache */

static int64_t at_most(int64_t most, int64_t n)
{
    return n < most ? n : most;
}

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

/* The columns of a block, from column `first` on. */
FOR_EACH_FMA static void gemm_block(bool avx512, const struct gemm_row *rows, int count,
                                    const float *weight, int64_t depth, int64_t columns,
                                    int64_t first)
{
    struct tile tiles[BLOCK_TILES];
    for (int64_t at = 0; at < depth; at += TILE_DEPTH) {
        int used = 0;
        for (int64_t c = first; c < columns && used < BLOCK_TILES; c += TILE_COLUMNS) {
            struct tile *t = &tiles[used++];
            t->at = at;
            t->depth = at_most(TILE_DEPTH, depth - at);
            t->first = c;
            t->width = at_most(TILE_COLUMNS, columns - c);
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
#pragma omp parallel for schedule(dynamic) collapse(2) num_threads(threads) if (threads > 1)
    for (int64_t first = 0; first < columns; first += BLOCK_TILES * TILE_COLUMNS)
        for (int begin = 0; begin < count; begin += BLOCK_ROWS)
            gemm_block(avx512, rows + begin, (int)at_most(BLOCK_ROWS, count - begin), weight, depth,
                       columns, first);
}

/* ---- scores ---------------------------------------------------------------------------------- */

_Static_assert((int)KEYS_AT_ONCE == (int)TILE_COLUMNS, "a column for each key");

/* Writes those that are kept: bit j is of key j. */
PART void keep_scores(const double dot[KEYS_AT_ONCE], unsigned kept, double root, double *y)
{
    for (int j = 0; j < KEYS_AT_ONCE && kept == ALL_KEPT; j++)
        y[j] = dot[j] / root;
    for (int j = 0; j < KEYS_AT_ONCE && kept != ALL_KEPT; j++)
        if ((kept >> j & 1) != 0)
            y[j] = dot[j] / root;
}

/* Of a tile of keys, from key `first` on, and TILE_ROWS queries, from row `begin` of a span on. */
PART void multiply_keys(bool avx512, const struct workload *w, struct span s, int begin,
                        const double *const q[SPAN_ROWS], const double *keys, int first,
                        double root, double *const y[SPAN_ROWS])
{
    const double *x[TILE_ROWS];
    double dot[TILE_ROWS][TILE_COLUMNS] = {{0}};
    unsigned kept[TILE_ROWS], any = 0;
    for (int r = 0; r < TILE_ROWS; r++) {
        const int row = (int)at_most(s.count - 1, begin + r); /* few rows: the last one again */
        x[r] = q[row];
        any |= kept[r] = oracle_kept_keys(w, s.batch_row, s.first + row, first);
    }
    if (any == 0)
        return;
    multiply_tile(avx512, x, keys, TILE_COLUMNS, w->head_size, dot);
    for (int r = 0; r < TILE_ROWS && begin + r < s.count; r++)
        keep_scores(dot[r], kept[r], root, y[begin + r] + first);
}

FOR_EACH_FMA static void multiply_all_keys(bool avx512, const struct workload *w, struct span s,
                                           const double *const q[SPAN_ROWS], const double *keys,
                                           double *const y[SPAN_ROWS])
{
    const double root = sqrt(w->head_size);
    for (int first = 0; first < oracle_length(w, s.batch_row); first += KEYS_AT_ONCE)
        for (int begin = 0; begin < s.count; begin += TILE_ROWS)
            multiply_keys(avx512, w, s, begin, q, keys + (ptrdiff_t)first * w->head_size, first,
                          root, y);
}

void oracle_tile_key(const double *key, int width, int j, double *keys)
{
    double *to = keys + (ptrdiff_t)(j - j % KEYS_AT_ONCE) * width + j % KEYS_AT_ONCE;
    for (int c = 0; c < width; c++)
        to[c * KEYS_AT_ONCE] = key[c];
}

void oracle_scores(const struct workload *w, struct span s, const double *const q[SPAN_ROWS],
                   const double *keys, double *const y[SPAN_ROWS])
{
    multiply_all_keys(has_avx512(), w, s, q, keys, y);
}

/* ---- contexts -------------------------------------------------------------------------------- */

/* Adds to TILE_COLUMNS columns, from `first` on, what some keys give. */
PART void add_keys(bool avx512, const double *const x[TILE_ROWS], const double *right, int width,
                   int count, int first, double *const y[TILE_ROWS])
{
    double sum[TILE_ROWS][TILE_COLUMNS];
    for (int r = 0; r < TILE_ROWS; r++)
        copy_sums(sum[r], y[r] + first, TILE_COLUMNS);
    multiply_tile(avx512, x, right + first, width, count, sum);
    for (int r = 0; r < TILE_ROWS; r++)
        copy_sums(y[r] + first, sum[r], TILE_COLUMNS);
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
        add_keys(avx512, x, right, width, count, c, y);
    for (int r = 0; r < TILE_ROWS && c < width; r++)
        for (int k = 0; k < count; k++)
            for (int last = c; last < width; last++)
                y[r][last] += x[r][k] * right[(ptrdiff_t)k * width + last];
}

static bool any_keeps(const struct workload *w, struct span s, int first)
{
    for (int r = 0; r < s.count; r++)
        if (oracle_kept_keys(w, s.batch_row, s.first + r, first) != 0)
            return true;
    return false;
}

/* Keys after run->end, in tiles of which rows of a span keep some; at most TILE_DEPTH, which stay
 * near for all rows. */
static bool next_of_any(const struct workload *w, struct span s, struct kept *run)
{
    const int length = oracle_length(w, s.batch_row);
    int j = run->end;
    while (j < length && !any_keeps(w, s, j))
        j += KEYS_AT_ONCE;
    for (run->begin = j; j < run->begin + TILE_DEPTH && j < length && any_keeps(w, s, j);)
        j += KEYS_AT_ONCE;
    run->end = (int)at_most(length, j);
    return run->begin < length;
}

_Static_assert((int)SPAN_ROWS % (int)TILE_ROWS == 0, "whole tiles of a span's rows");

void oracle_context(const struct workload *w, struct span s, const double *const probs[SPAN_ROWS],
                    const double *values, double *const y[SPAN_ROWS])
{
    const bool avx512 = has_avx512();
    const int width = w->head_size;
    SCOPED double *room = mem_alloc((size_t)width, sizeof(*room));
    const double *x[SPAN_ROWS];
    double *to[SPAN_ROWS];
    for (int r = 0; r < SPAN_ROWS; r++) { /* few rows: the last one again, elsewhere */
        x[r] = probs[r < s.count ? r : s.count - 1];
        to[r] = r < s.count ? y[r] : room;
        memset(to[r], 0, (size_t)width * sizeof(*to[r]));
    }
    for (struct kept run = {0, 0}; next_of_any(w, s, &run);)
        for (int begin = 0; begin < s.count; begin += TILE_ROWS)
            add_all_keys(avx512, x + begin, values, width, run, to + begin);
}
