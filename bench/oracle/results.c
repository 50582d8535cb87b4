#include "bench/oracle/oracle_int.h"

#include <assert.h>

int64_t tensor_row_columns(const struct workload *w, int tensor)
{
    if (tensor_layout(w->chain, tensor) == LAYOUT_TOKENS)
        return dim_size(tensor_columns(w->chain, tensor), w);
    return tensor_layout(w->chain, tensor) == LAYOUT_SCORES ? w->seq_len : w->head_size;
}

struct row_place row_place_of(const struct workload *w, int tensor, int64_t row)
{
    int64_t sequence = row / w->seq_len;
    struct row_place at = {.batch_row = (int)sequence, .row = (int)(row % w->seq_len)};
    if (tensor_layout(w->chain, tensor) != LAYOUT_TOKENS) {
        at.batch_row = (int)(sequence / w->heads % w->batch);
        at.head = (int)(sequence % w->heads);
    }
    return at;
}

/* Whether only the kept elements of a tensor are stored. */
static bool is_compact(const struct oracle_results *r, int tensor)
{
    return tensor_layout(r->w->chain, tensor) == LAYOUT_SCORES;
}

/* Where the elements of a row begin: those of batch rows, heads and rows before it come first. */
static int64_t kept_before(const struct oracle_results *r, struct row_place at)
{
    const int64_t *kept = r->kept + (int64_t)at.batch_row * r->w->seq_len;
    int64_t head = kept[r->w->seq_len] - kept[0];
    return kept[0] * r->w->heads + head * at.head + kept[at.row] - kept[0];
}

/* Whether rows are stored without gaps. */
static bool keep_all(const struct oracle_results *r, int tensor, struct rows rows)
{
    for (int64_t i = 0; i < rows.count; i++) {
        struct row_place at = row_place_of(r->w, tensor, rows.first + i);
        const int64_t *kept = r->kept + (int64_t)at.batch_row * r->w->seq_len + at.row;
        if (kept[1] - kept[0] < r->w->seq_len)
            return false;
    }
    return true;
}

/* Counts the pairs that the rows keep. */
static void count_kept(struct oracle_results *r)
{
    const struct workload *w = r->w;
    int64_t rows = (int64_t)w->batch * w->seq_len;
    r->kept = mem_alloc((size_t)rows + 1, sizeof(*r->kept));
#pragma omp parallel for if (rows * w->seq_len > PARALLEL_ELEMENTS)
    for (int64_t row = 0; row < rows; row++)
        for (struct kept run = {0, 0};
             r->real[row] &&
             oracle_next_kept(w, (int)(row / w->seq_len), (int)(row % w->seq_len), &run);)
            r->kept[row + 1] += run.end - run.begin;
    for (int64_t row = 0; row < rows; row++)
        r->kept[row + 1] += r->kept[row];
}

/* The tensor whose memory holds this one too; itself if none does.  The mask only drops scores that
 * are not stored. */
static int stored_as(const struct oracle_results *r, int tensor)
{
    const struct op *op = tensor_op(r->w->chain, tensor);
    bool masks = op != NULL && op->function == FUNCTION_MASK;
    return masks && r->tensor[op->input] != NULL ? op->input : tensor;
}

void oracle_results_init(struct oracle_results *r, const struct workload *w, uint32_t tensors,
                         const struct spans *spans)
{
    *r = (struct oracle_results){.w = w};
    r->real = mem_alloc((size_t)w->batch * (size_t)w->seq_len, sizeof(*r->real));
    for (int i = 0; i < spans->count; i++) {
        struct span s = spans->items[i];
        memset(r->real + (int64_t)s.batch_row * w->seq_len + s.first, true, (size_t)s.count);
    }
    for (int t = 0; t < TENSOR_COUNT; t++) {
        if ((tensors >> t & 1) == 0)
            continue;
        if (is_compact(r, t) && r->kept == NULL)
            count_kept(r);
        if (stored_as(r, t) != t) {
            r->tensor[t] = r->tensor[stored_as(r, t)];
            continue;
        }
        int64_t n = is_compact(r, t) ? r->kept[(int64_t)w->batch * w->seq_len] * w->heads
                                     : tensor_elements(t, w);
        r->tensor[t] =
            mem_alloc((size_t)n + 1, sizeof(*r->tensor[t])); /* a mask may keep nothing */
    }
}

void oracle_results_release(struct oracle_results *r)
{
    for (int t = TENSOR_COUNT - 1; t >= 0; t--) /* the others' memory is of a tensor before */
        if (r->tensor[t] != NULL && stored_as(r, t) == t)
            free(r->tensor[t]);
    free(r->real);
    free(r->kept);
    *r = (struct oracle_results){.w = NULL};
}

static void take(void *ctx, int tensor, struct rows rows, const double *values)
{
    struct oracle_results *r = ctx;
    int64_t columns = tensor_row_columns(r->w, tensor);
    if (!is_compact(r, tensor)) {
        float *to = r->tensor[tensor] + rows.first * columns;
        for (int64_t i = 0; i < rows.count * columns; i++)
            to[i] = (float)values[i];
        return;
    }
    for (int64_t i = 0; i < rows.count; i++, values += columns) {
        struct row_place at = row_place_of(r->w, tensor, rows.first + i);
        float *to = r->tensor[tensor] + kept_before(r, at);
        for (struct kept run = {0, 0}; oracle_next_kept(r->w, at.batch_row, at.row, &run);)
            for (int c = run.begin; c < run.end; c++)
                *to++ = (float)values[c];
    }
}

struct oracle_taker oracle_results_taker(struct oracle_results *r)
{
    struct oracle_taker taker = {.take = take, .ctx = r};
    for (int t = 0; t < TENSOR_COUNT; t++)
        taker.tensors |= r->tensor[t] != NULL && stored_as(r, t) == t ? SET_OF(t) : 0;
    return taker;
}

static void spread_row(const struct oracle_results *r, int tensor, int64_t row, float *out)
{
    struct row_place at = row_place_of(r->w, tensor, row);
    const float *from = r->tensor[tensor] + kept_before(r, at);
    memset(out, 0, (size_t)r->w->seq_len * sizeof(*out));
    if (!r->real[(int64_t)at.batch_row * r->w->seq_len + at.row])
        return;
    for (struct kept run = {0, 0}; oracle_next_kept(r->w, at.batch_row, at.row, &run);) {
        memcpy(out + run.begin, from, (size_t)(run.end - run.begin) * sizeof(*out));
        from += run.end - run.begin;
    }
}

const float *oracle_results_rows(const struct oracle_results *r, int tensor, struct rows rows,
                                 float *room)
{
    int64_t columns = tensor_row_columns(r->w, tensor);
    assert(r->tensor[tensor] != NULL);
    if (!is_compact(r, tensor))
        return r->tensor[tensor] + rows.first * columns;
    if (keep_all(r, tensor, rows))
        return r->tensor[tensor] + kept_before(r, row_place_of(r->w, tensor, rows.first));
    if (rows.count == 1) { /* a team within another takes longer than a row */
        spread_row(r, tensor, rows.first, room);
        return room;
    }
#pragma omp parallel for if (rows.count * columns > PARALLEL_ELEMENTS)
    for (int64_t i = 0; i < rows.count; i++)
        spread_row(r, tensor, rows.first + i, room + i * columns);
    return room;
}
