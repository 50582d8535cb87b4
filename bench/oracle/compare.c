#include "bench/oracle/oracle_int.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { ROW_FACTOR = 8 }; /* a row's tolerance over the tensor's */

/* Squared norms over the elements that are compared, and their number. */
struct norms {
    double difference, reference;
    int64_t elements;
};

static int64_t columns_of(const struct workload *w, int tensor)
{
    if (tensor_layout(tensor) == LAYOUT_TOKENS)
        return dim_size(tensor_columns(tensor), w);
    return tensor_layout(tensor) == LAYOUT_SCORES ? w->seq_len : w->head_size;
}

/* The batch row that row `row` of a tensor belongs to: (B,S), (B,H,S) or (3,B,H,S). */
static int batch_row_of(const struct workload *w, int tensor, int64_t row)
{
    int64_t sequence = row / w->seq_len;
    return (int)(tensor_layout(tensor) == LAYOUT_TOKENS ? sequence
                                                        : sequence / w->heads % w->batch);
}

/* Whether what lies at masked positions is unspecified. */
static bool skips_masked(int tensor)
{
    return tensor_layout(tensor) == LAYOUT_SCORES && ops[tensor - 1].anchor != ANCHOR_SOFTMAX;
}

static struct norms row_norms(const struct workload *w, int tensor, int64_t row, const float *out,
                              const double *ref)
{
    int b = batch_row_of(w, tensor, row), i = (int)(row % w->seq_len);
    int length = oracle_length(w, b);
    struct norms n = {.elements = 0};
    if (i >= length)
        return n;
    bool skip_masked = skips_masked(tensor);
    int64_t columns = columns_of(w, tensor), first = row * columns;
    for (int64_t c = 0; c < columns; c++) {
        if (skip_masked && (c >= length || !mask_keep(&w->mask, b, i, (int)c)))
            continue;
        double r = ref[first + c], d = (double)out[first + c] - r;
        n.difference += d * d;
        n.reference += r * r;
        n.elements++;
    }
    return n;
}

/* sqrt(difference / reference); infinite if a number is not finite or the reference is 0. */
static double relative(double difference, double reference)
{
    if (difference == 0)
        return 0;
    double error = sqrt(difference / reference);
    return isfinite(error) ? error : INFINITY;
}

struct oracle_error oracle_compare(const struct workload *w, int tensor, const float *out,
                                   const double *ref)
{
    int64_t columns = columns_of(w, tensor), rows = tensor_elements(tensor, w) / columns;
    struct norms *norms = mem_alloc((size_t)rows, sizeof(*norms)), all = {.elements = 0};
#pragma omp parallel for if (rows * columns > PARALLEL_ELEMENTS)
    for (int64_t row = 0; row < rows; row++)
        norms[row] = row_norms(w, tensor, row, out, ref);
    for (int64_t row = 0; row < rows; row++) {
        all.difference += norms[row].difference;
        all.reference += norms[row].reference;
        all.elements += norms[row].elements;
    }

    struct oracle_error e = {.tensor = relative(all.difference, all.reference)};
    for (int64_t row = 0; row < rows; row++) {
        double share = (double)norms[row].elements / (double)all.elements;
        double error =
            relative(norms[row].difference, fmax(norms[row].reference, all.reference * share));
        if (error > e.worst_row) {
            e.worst_row = error;
            e.worst_index = row * columns;
        }
    }
    free(norms);
    return e;
}

/* Hashes what counts of `rows` rows of scores, which begin with row `first` of a batch row. */
static void hash_kept(const struct workload *w, int batch_row, int first, int rows, size_t bytes,
                      const char *at, char out[HASH_TEXT_SIZE])
{
    size_t columns = (size_t)w->seq_len, used = 0;
    int length = oracle_length(w, batch_row);
    char *kept = mem_alloc((size_t)rows * columns, bytes);
    for (int i = 0; i < rows; i++)
        for (int c = 0; c < length; c++)
            if (mask_keep(&w->mask, batch_row, first + i, c)) {
                memcpy(kept + used, at + ((size_t)i * columns + (size_t)c) * bytes, bytes);
                used += bytes;
            }
    hash_text(kept, used, out);
    free(kept);
}

char *result_hash(const struct workload *w, int tensor, int element_bytes, const void *stored,
                  char out[HASH_TEXT_SIZE])
{
    enum { SPAN = 64 }; /* rows that are hashed at a time */
    int64_t columns = columns_of(w, tensor), row_bytes = columns * element_bytes;
    int spans = (w->seq_len + SPAN - 1) / SPAN;
    int64_t count = tensor_elements(tensor, w) / columns / w->seq_len * spans;
    char(*hashes)[HASH_TEXT_SIZE] = mem_alloc((size_t)count, sizeof(*hashes));
#pragma omp parallel for if (count * SPAN * columns > PARALLEL_ELEMENTS)
    for (int64_t i = 0; i < count; i++) {
        int64_t sequence = i / spans;
        int b = batch_row_of(w, tensor, sequence * w->seq_len), first = (int)(i % spans) * SPAN;
        int left = oracle_length(w, b) - first, rows = left < SPAN ? left : SPAN;
        const char *at = (const char *)stored + (sequence * w->seq_len + first) * row_bytes;
        if (rows > 0 && skips_masked(tensor))
            hash_kept(w, b, first, rows, (size_t)element_bytes, at, hashes[i]);
        else if (rows > 0)
            hash_text(at, (size_t)(rows * row_bytes), hashes[i]);
    }
    hash_text(hashes, (size_t)count * sizeof(*hashes), out);
    free(hashes);
    return out;
}

bool oracle_accepts(struct oracle_error e, double tolerance)
{
    return e.tensor <= tolerance && e.worst_row <= ROW_FACTOR * tolerance;
}
