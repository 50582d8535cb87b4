#include "bench/oracle/oracle_int.h"

enum { ROW_FACTOR = 8 }; /* a row's tolerance over the tensor's */

/* Squared norms over the elements that are compared, and their number. */
struct norms {
    double difference, reference;
    int64_t elements;
};

/* Whether what lies at masked positions is unspecified. */
static bool skips_masked(const struct chain *c, int tensor)
{
    return tensor_layout(c, tensor) == LAYOUT_SCORES && tensor_op(c, tensor)->kind != KIND_SOFTMAX;
}

static inline void add_squares(float out, float ref, double *difference, double *reference)
{
    const double r = ref, d = out - r;
    *difference += d * d;
    *reference += r * r;
}

/* Adds the squares of adjacent elements of a row; of few without vectors, whose sums would take
 * longest.  The sums' last bits depend on how many numbers a vector has. */
FOR_EACH_CPU static void add_norms(const float *out, const float *ref, int count, struct norms *n)
{
    double difference = 0, reference = 0;
    if (count < 16) {
        for (int i = 0; i < count; i++)
            add_squares(out[i], ref[i], &difference, &reference);
    } else {
#pragma omp simd reduction(+ : difference, reference)
        for (int i = 0; i < count; i++)
            add_squares(out[i], ref[i], &difference, &reference);
    }
    n->difference += difference;
    n->reference += reference;
    n->elements += count;
}

/* sqrt(difference / reference); infinite if a number is not finite or the reference is 0. */
static double relative(double difference, double reference)
{
    if (difference == 0)
        return 0;
    double error = sqrt(difference / reference);
    return isfinite(error) ? error : INFINITY;
}

static int64_t rows_of(const struct workload *w, int tensor)
{
    return tensor_elements(tensor, w) / tensor_row_columns(w, tensor);
}

void comparison_init(struct comparison *c, const struct oracle_results *right, int tensor)
{
    *c = (struct comparison){.right = right, .tensor = tensor};
    c->rows = mem_alloc((size_t)rows_of(right->w, tensor), sizeof(*c->rows));
}

static bool is_real(const struct oracle_results *r, struct row_place at)
{
    return r->real[(int64_t)at.batch_row * r->w->seq_len + at.row];
}

bool comparison_narrow(const struct comparison *c, struct rows *rows)
{
    int64_t begin = rows->first, end = rows->first + rows->count;
    const struct workload *w = c->right->w;
    while (begin < end && !is_real(c->right, row_place_of(w, c->tensor, begin)))
        begin++;
    while (begin < end && !is_real(c->right, row_place_of(w, c->tensor, end - 1)))
        end--;
    *rows = (struct rows){begin, end - begin};
    return begin < end;
}

/* Elements as stored, or codes of e4m3. */
struct stored {
    const char *at;
    float scale; /* of codes; else 0 */
};

static void prefetch(const void *at, int bytes)
{
    for (int i = 0; i < bytes; i += 64)
        __builtin_prefetch((const char *)at + i);
}

/* Compares adjacent elements of a row, whose first one is stored as element `first`; ref: of the
 * row.  What is a few pieces ahead comes from memory meanwhile. */
static void add_run(struct stored s, enum dtype dtype, int64_t first, const float *ref,
                    struct kept run, struct norms *n)
{
    enum { PIECE = 256, AHEAD = 4 * PIECE };
    const int bytes = s.scale == 0 ? dtypes[dtype].bytes : 1;
    float out[PIECE];
    for (int begin = run.begin; begin < run.end; begin += PIECE) {
        const int count = run.end - begin < PIECE ? run.end - begin : PIECE;
        const char *at = s.at + (first + begin) * bytes;
        prefetch(at + AHEAD * bytes, count * bytes);
        prefetch(ref + begin + AHEAD, count * (int)sizeof(*ref));
        if (s.scale == 0)
            elements_unpack(dtype, at, count, out);
        else
            for (int i = 0; i < count; i++)
                out[i] = e4m3_nearest((uint8_t)at[i], ref[begin + i] / s.scale) * s.scale;
        add_norms(out, ref + begin, count, n);
    }
}

static void add_rows(struct comparison *c, struct rows rows, struct stored stored)
{
    const struct oracle_results *right = c->right;
    enum dtype dtype = right->w->dtype;
    const bool skips = skips_masked(right->w->chain, c->tensor);
    int64_t columns = tensor_row_columns(right->w, c->tensor);
#pragma omp parallel if (rows.count * columns > PARALLEL_ELEMENTS)
    {
        SCOPED float *room = mem_alloc((size_t)columns, sizeof(*room));
#pragma omp for
        for (int64_t i = 0; i < rows.count; i++) {
            const struct rows row = {rows.first + i, 1};
            struct row_place at = row_place_of(right->w, c->tensor, row.first);
            if (!is_real(right, at))
                continue;
            const float *ref = oracle_results_rows(right, c->tensor, row, room);
            struct norms norms = {.elements = 0};
            struct kept run = {0, 0};
            if (!skips)
                add_run(stored, dtype, i * columns, ref, (struct kept){0, (int)columns}, &norms);
            else
                while (oracle_next_kept(right->w, at.batch_row, at.row, &run))
                    add_run(stored, dtype, i * columns, ref, run, &norms);
            c->rows[row.first] = norms;
        }
    }
}

void comparison_add(struct comparison *c, struct rows rows, const void *stored)
{
    add_rows(c, rows, (struct stored){.at = stored});
}

void comparison_add_e4m3(struct comparison *c, struct rows rows, const uint8_t *codes, float scale)
{
    add_rows(c, rows, (struct stored){(const char *)codes, scale});
}

struct oracle_error comparison_end(struct comparison *c)
{
    const struct norms *norms = c->rows;
    int64_t rows = rows_of(c->right->w, c->tensor);
    int64_t columns = tensor_row_columns(c->right->w, c->tensor);
    struct norms all = {.elements = 0};
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
    free(c->rows);
    *c = (struct comparison){.right = NULL};
    return e;
}

/* Hashes what counts of `rows` rows of scores, which begin with row `first` of a batch row. */
static void hash_kept(const struct workload *w, int batch_row, int first, int rows, size_t bytes,
                      const char *at, char out[HASH_TEXT_SIZE])
{
    size_t columns = (size_t)w->seq_len, used = 0;
    SCOPED char *kept = mem_alloc((size_t)rows * columns, bytes);
    for (int i = 0; i < rows; i++)
        for (struct kept run = {0, 0}; oracle_next_kept(w, batch_row, first + i, &run);) {
            size_t size = (size_t)(run.end - run.begin) * bytes;
            memcpy(kept + used, at + ((size_t)i * columns + (size_t)run.begin) * bytes, size);
            used += size;
        }
    hash_text(kept, used, out);
}

static int spans_of(const struct workload *w)
{
    return (w->seq_len + HASHED_ROWS - 1) / HASHED_ROWS;
}

static int64_t hashes_of(const struct workload *w, int tensor)
{
    return rows_of(w, tensor) / w->seq_len * spans_of(w);
}

bool result_hash_is_whole(const struct workload *w, int tensor)
{
    const int64_t pairs = (int64_t)w->batch * w->seq_len * w->seq_len;
    return !skips_masked(w->chain, tensor) || w->blocks.kept == pairs;
}

void result_hash_init(struct result_hash *h, const struct workload *w, int tensor)
{
    *h = (struct result_hash){.w = w, .tensor = tensor};
    h->spans = mem_alloc((size_t)hashes_of(w, tensor), sizeof(*h->spans));
}

void result_hash_add(struct result_hash *h, struct rows rows, const void *stored)
{
    const struct workload *w = h->w;
    int64_t columns = tensor_row_columns(w, h->tensor);
    int bytes = dtypes[w->dtype].bytes, spans = spans_of(w);
    int64_t last = rows.first + rows.count - 1;
    int64_t begin = rows.first / w->seq_len * spans + rows.first % w->seq_len / HASHED_ROWS;
    int64_t end = last / w->seq_len * spans + last % w->seq_len / HASHED_ROWS + 1;
#pragma omp parallel for if (rows.count * columns > PARALLEL_ELEMENTS)
    for (int64_t i = begin; i < end; i++) {
        int64_t row = i / spans * w->seq_len + i % spans * HASHED_ROWS;
        struct row_place at = row_place_of(w, h->tensor, row);
        int left = oracle_length(w, at.batch_row) - at.row;
        int count = left < HASHED_ROWS ? left : HASHED_ROWS;
        const char *from = (const char *)stored + (row - rows.first) * columns * bytes;
        if (count > 0 && skips_masked(h->w->chain, h->tensor))
            hash_kept(w, at.batch_row, at.row, count, (size_t)bytes, from, h->spans[i]);
        else if (count > 0)
            hash_text(from, (size_t)(count * columns * bytes), h->spans[i]);
    }
}

char *result_hash_end(struct result_hash *h, char out[HASH_TEXT_SIZE])
{
    hash_text(h->spans, (size_t)hashes_of(h->w, h->tensor) * sizeof(*h->spans), out);
    free(h->spans);
    *h = (struct result_hash){.w = NULL};
    return out;
}

bool oracle_accepts(struct oracle_error e, double tolerance)
{
    return e.tensor <= tolerance && e.worst_row <= ROW_FACTOR * tolerance;
}
