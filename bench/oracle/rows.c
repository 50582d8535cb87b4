#include "bench/oracle/oracle_int.h"

/* The first key from j on whose bit is `bit`; `length` if there is none. */
static int find_bit(const uint64_t *bits, int j, int length, bool bit)
{
    while (j < length) {
        uint64_t left = (bit ? bits[j / 64] : ~bits[j / 64]) >> j % 64;
        if (left != 0) {
            j += __builtin_ctzll(left);
            return j < length ? j : length;
        }
        j += 64 - j % 64;
    }
    return length;
}

static const uint64_t *mask_row(const struct workload *w, int b, int i)
{
    const struct mask *m = &w->mask;
    return m->bits + ((m->matrices == 1 ? 0 : (int64_t)b * m->seq_len) + i) * m->row_words;
}

bool oracle_next_kept(const struct workload *w, int b, int i, struct kept *run)
{
    const uint64_t *bits = mask_row(w, b, i);
    int length = oracle_length(w, b);
    run->begin = find_bit(bits, run->end, length, true);
    run->end = find_bit(bits, run->begin, length, false);
    return run->begin < length;
}

unsigned oracle_kept_keys(const struct workload *w, int b, int i, int first)
{
    const int left = oracle_length(w, b) - first, count = left < KEYS_AT_ONCE ? left : KEYS_AT_ONCE;
    return (unsigned)(mask_row(w, b, i)[first / 64] >> first % 64) &
           (ALL_KEPT >> (KEYS_AT_ONCE - count));
}

/* Of at most so many rows each. */
static int spans_of_length(int length, int rows)
{
    return (length + rows - 1) / rows;
}

static struct spans spans_new(const struct workload *w, int rows)
{
    size_t most = (size_t)w->batch * (size_t)spans_of_length(w->seq_len, rows);
    return (struct spans){.items = mem_alloc(most, sizeof(struct span))};
}

/* Adds span `index` of a batch row, of at most `most` rows; returns how many it has. */
static int add(struct spans *s, const struct workload *w, int batch_row, int most, int index)
{
    int first = index * most, left = oracle_length(w, batch_row) - first;
    int rows = left < most ? left : most;
    s->items[s->count++] = (struct span){.batch_row = batch_row, .first = first, .count = rows};
    return rows;
}

void spans_release(struct spans *s)
{
    free(s->items);
}

struct spans spans_all(const struct workload *w)
{
    struct spans s = spans_new(w, SPAN_ROWS);
    for (int b = 0; b < w->batch; b++)
        for (int i = 0; i < spans_of_length(oracle_length(w, b), SPAN_ROWS); i++)
            add(&s, w, b, SPAN_ROWS, i);
    return s;
}

/* Cuts a sequence into `wanted` parts and draws a span of each: of the first part the first, of the
 * last one the last. */
static int sample_sequence(struct spans *s, const struct workload *w, int batch_row, int wanted,
                           struct rng *draw)
{
    int64_t all = spans_of_length(oracle_length(w, batch_row), SAMPLED_ROWS);
    int rows = 0;
    for (int part = 0; part < wanted; part++) {
        int begin = (int)(all * part / wanted), end = (int)(all * (part + 1) / wanted);
        int drawn = begin + (int)rng_below(draw, (uint32_t)(end - begin));
        if (part == wanted - 1)
            drawn = end - 1;
        rows += add(s, w, batch_row, SAMPLED_ROWS, part == 0 ? 0 : drawn);
    }
    return rows;
}

struct spans spans_sample(const struct workload *w, int layer, uint64_t seed)
{
    enum { ROWS = 256, SPANS = ROWS / SAMPLED_ROWS + 1 }; /* the last span may be short */
    struct spans s = spans_new(w, SAMPLED_ROWS);
    struct rng draw = {seed + (uint64_t)layer};
    for (int i = 0, rows = 0; i < w->batch && rows < ROWS; i++) {
        int b = (layer + i) % w->batch, all = spans_of_length(oracle_length(w, b), SAMPLED_ROWS);
        rows += sample_sequence(&s, w, b, all < SPANS ? all : SPANS, &draw);
    }
    return s;
}
