#include "bench/oracle/oracle_int.h"

#include <omp.h>

/* The spans of a chunk run operator by operator, so that a GEMM reads its weights once for all. But
 * scores are large: the operators from the first scores to the context run one after another on a
 * head of a span, on scores that belong to the thread, and head after head, so that a cache holds
 * the keys and values. */
enum { CHUNK_SPANS = 40 }; /* whole blocks of a GEMM's rows */

struct run {
    const struct workload *w;
    const float *const *weight;
    const struct flow *in;
    uint32_t reads; /* tensors of `in` */
    const struct oracle_taker *out;
    const struct rounding *rounding;
    double *qkv;  /* of all rows, because queries read other rows' keys: see is_whole() */
    double *keys; /* of these, as scores are computed from them */
    int chunk_spans;
    double *chunk[TENSOR_COUNT]; /* (chunk_spans) of span_elements() each; null of scores and qkv */
    double **scores;             /* (threads) the three tensors of a head of a span */
    int threads;
};

/* Whether a tensor is in memory of all rows. */
static bool is_whole(const struct workload *w, int tensor)
{
    return tensor_layout(w->chain, tensor) == LAYOUT_QKV_HEADS;
}

/* Elements of a tensor in a span; of scores in one head. */
static size_t span_elements(const struct workload *w, int tensor)
{
    enum layout layout = tensor_layout(w->chain, tensor);
    size_t heads = layout == LAYOUT_TOKENS || layout == LAYOUT_SCORES ? 1 : (size_t)w->heads;
    return SPAN_ROWS * heads * (size_t)tensor_row_columns(w, tensor);
}

/* The tensors as operators on span `index` of a chunk see them. */
static void place_tensors(const struct run *r, int index, int thread, double *tensor[TENSOR_COUNT])
{
    double *scores = r->scores[thread];
    for (int t = 0; t < TENSOR_COUNT; t++) {
        size_t elements = span_elements(r->w, t);
        if (is_whole(r->w, t)) {
            tensor[t] = r->qkv;
        } else if (tensor_layout(r->w->chain, t) == LAYOUT_SCORES) {
            tensor[t] = scores;
            scores += elements;
        } else {
            tensor[t] = r->chunk[t] + (size_t)index * elements;
        }
    }
}

/* Rounds the rows of a span as they are stored, and hands them out if they are wanted. */
static void finish(const struct run *r, const struct layer *l, struct span s, int t)
{
    const struct workload *w = r->w;
    enum layout layout = tensor_layout(w->chain, t);
    bool by_head = layout != LAYOUT_TOKENS, whole = is_whole(w, t);
    int begin = by_head ? l->head : 0, groups = by_head ? (whole ? 3 * w->heads : l->heads) : 1;
    int64_t columns = tensor_row_columns(w, t);
    for (int g = begin; g < begin + groups; g++) {
        int64_t part = g / w->heads, head = g % w->heads;
        int64_t sequence =
            by_head ? (part * w->batch + s.batch_row) * w->heads + head : s.batch_row;
        int64_t first = sequence * w->seq_len + s.first;
        int64_t in_span = (layout == LAYOUT_SCORES ? g - begin : g) * SPAN_ROWS;
        double *values = l->tensor[t] + (whole ? first : in_span) * columns;
        round_stored(r->rounding, t, s.count * columns, values);
        if ((r->out->tensors >> t & 1) != 0)
            r->out->take(r->out->ctx, t, (struct rows){first, s.count}, values);
    }
    if (whole)
        oracle_tile_keys(l, s, t);
}

/* The layer as operators see it on span `index` of a chunk. */
static struct layer place_layer(const struct run *r, int index, int thread,
                                double *tensor[TENSOR_COUNT])
{
    struct layer l = {.w = r->w,
                      .weight = r->weight,
                      .tensor = tensor,
                      .keys = r->keys,
                      .heads = r->w->heads,
                      .rounding = r->rounding};
    for (int t = 0; t < TENSOR_COUNT; t++)
        l.local |= is_whole(r->w, t) ? 0 : SET_OF(t);
    place_tensors(r, index, thread, tensor);
    return l;
}

/* Operators on heads head .. head+heads-1 of a span. */
static void run_span(const struct run *r, struct span s, int index, int head, int heads, int first,
                     int last)
{
    double *tensor[TENSOR_COUNT];
    struct layer l = place_layer(r, index, omp_get_thread_num(), tensor);
    l.head = head;
    l.heads = heads;
    for (int op = first; op <= last; op++) {
        oracle_operator_run(&l, s, op);
        finish(r, &l, s, TENSOR_OF(op));
    }
}

static void run_gemm(const struct run *r, const struct span *s, int count, int op)
{
    SCOPED double *(*tensor)[TENSOR_COUNT] = mem_alloc((size_t)count, sizeof(*tensor));
    SCOPED struct layer *layers = mem_alloc((size_t)count, sizeof(*layers));
    for (int i = 0; i < count; i++)
        layers[i] = place_layer(r, i, 0, tensor[i]);
    oracle_gemm_run(layers, s, count, op, r->threads);
#pragma omp parallel for schedule(dynamic) num_threads(r->threads)
    for (int i = 0; i < count; i++)
        finish(r, &layers[i], s[i], TENSOR_OF(op));
}

static void read_input(const struct run *r, int t, struct span s, int index, bool hands_out)
{
    int64_t columns = tensor_row_columns(r->w, t);
    int64_t first = (int64_t)s.batch_row * r->w->seq_len + s.first;
    const float *from = r->in->tensor[t] + first * columns;
    double *to = r->chunk[t] + (size_t)index * span_elements(r->w, t);
    for (int64_t i = 0; i < s.count * columns; i++)
        to[i] = from[i];
    round_stored(r->rounding, t, s.count * columns, to);
    if (hands_out && (r->out->tensors >> t & 1) != 0)
        r->out->take(r->out->ctx, t, (struct rows){first, s.count}, to);
}

/* The operators that run one after another on a head: up to the one that leaves no scores. */
static int last_together(const struct chain *c, int op)
{
    while (c->ops[op].layout == LAYOUT_SCORES)
        op++;
    return op;
}

static void run_rows(const struct run *r, const struct spans *spans, int first_op, int last_op)
{
    for (int begin = 0; begin < spans->count; begin += r->chunk_spans) {
        const struct span *s = spans->items + begin;
        int left = spans->count - begin, count = left < r->chunk_spans ? left : r->chunk_spans;
        for (int t = 0; t < TENSOR_COUNT; t++) {
            if ((r->reads >> t & 1) == 0)
                continue;
#pragma omp parallel for num_threads(r->threads)
            for (int i = 0; i < count; i++)
                read_input(r, t, s[i], i, first_op == 0);
        }
        for (int op = first_op, last; op <= last_op; op = last + 1) {
            last = last_together(r->w->chain, op);
            if (r->w->chain->ops[op].kind == KIND_GEMM) {
                run_gemm(r, s, count, op);
                continue;
            }
            const int heads = last > op ? 1 : r->w->heads; /* at a time */
#pragma omp parallel for schedule(dynamic) collapse(2) num_threads(r->threads)
            for (int h = 0; h < r->w->heads; h += heads)
                for (int i = 0; i < count; i++)
                    run_span(r, s[i], i, h, heads, op, last);
        }
    }
}

static int threads_for(const struct workload *w)
{
    enum { PARALLEL_MULTIPLICATIONS = 1 << 20 }; /* fewer take less time than starting threads */
    int64_t multiplications = workload_tokens(w) * dim_size(DIM_D, w) * dim_size(DIM_3D, w);
    return multiplications > PARALLEL_MULTIPLICATIONS ? cpu_threads() : 1;
}

static void run_init(struct run *r)
{
    size_t scores = 0;
    for (int t = 0; t < TENSOR_COUNT; t++)
        if (is_whole(r->w, t))
            r->qkv = mem_alloc((size_t)tensor_elements(t, r->w), sizeof(double));
        else if (tensor_layout(r->w->chain, t) == LAYOUT_SCORES)
            scores += span_elements(r->w, t);
        else
            r->chunk[t] =
                mem_alloc((size_t)r->chunk_spans * span_elements(r->w, t), sizeof(double));
    r->keys = oracle_keys_new(r->w);
    r->scores = mem_alloc((size_t)r->threads, sizeof(*r->scores));
    for (int i = 0; i < r->threads; i++)
        r->scores[i] = mem_alloc(scores, sizeof(double));
}

static void run_release(struct run *r)
{
    for (int t = 0; t < TENSOR_COUNT; t++)
        free(r->chunk[t]);
    for (int i = 0; i < r->threads; i++)
        free(r->scores[i]);
    free(r->scores);
    free(r->qkv);
    free(r->keys);
}

/* All rows of the sequences that `some` is of: attention reads their keys and values. */
static struct spans whole_sequences(const struct workload *w, const struct spans *some)
{
    SCOPED bool *wanted = mem_alloc((size_t)w->batch, sizeof(*wanted));
    for (int i = 0; i < some->count; i++)
        wanted[some->items[i].batch_row] = true;
    struct spans all = spans_all(w);
    int kept = 0;
    for (int i = 0; i < all.count; i++)
        if (wanted[all.items[i].batch_row])
            all.items[kept++] = all.items[i];
    all.count = kept;
    return all;
}

void oracle_layer_run(const struct workload *w, const struct flow *in, const float *const *weight,
                      const struct spans *spans, const struct rounding *rounding, int threads,
                      const struct oracle_taker *out)
{
    int last_before = 0; /* the operator that gives q, k and v */
    while (!is_whole(w, TENSOR_OF(last_before)))
        last_before++;
    struct run r = {.w = w,
                    .weight = weight,
                    .in = in,
                    .reads = chain_inputs(w->chain),
                    .out = out,
                    .rounding = rounding,
                    .threads = threads > 0 ? threads : threads_for(w)};
    SCOPED_BY(spans_release) struct spans before = whole_sequences(w, spans);
    r.chunk_spans = before.count < CHUNK_SPANS ? before.count : CHUNK_SPANS;
    run_init(&r);
    run_rows(&r, &before, 0, last_before);
    run_rows(&r, spans, last_before + 1, OP_COUNT - 1);
    run_release(&r);
}

void oracle_segment_run(const struct workload *w, struct segment s, const struct flow *in,
                        const float *const *weight, const struct rounding *rounding,
                        const struct oracle_taker *out)
{
    SCOPED_BY(spans_release) struct spans all = spans_all(w);
    struct run r = {.w = w,
                    .weight = weight,
                    .in = in,
                    .reads = segment_inputs(w->chain, s),
                    .out = out,
                    .rounding = rounding,
                    .threads = threads_for(w),
                    .chunk_spans = all.count < CHUNK_SPANS ? all.count : CHUNK_SPANS};
    run_init(&r);
    run_rows(&r, &all, s.first, s.last);
    run_release(&r);
}
