#include "bench/oracle/oracle_int.h"

#include <stdlib.h>
#include <string.h>

int oracle_length(const struct workload *w, int batch_row)
{
    return w->lengths != NULL ? w->lengths[batch_row] : w->seq_len;
}

/* Cuts all real rows into spans; the caller frees them. */
static struct span *cut_rows(const struct workload *w, int *count)
{
    int per_batch_row = (w->seq_len + SPAN_ROWS - 1) / SPAN_ROWS;
    struct span *spans = mem_alloc((size_t)w->batch * (size_t)per_batch_row, sizeof(*spans));
    *count = 0;
    for (int b = 0; b < w->batch; b++)
        for (int first = 0, length = oracle_length(w, b); first < length; first += SPAN_ROWS) {
            int rows = length - first < SPAN_ROWS ? length - first : SPAN_ROWS;
            spans[(*count)++] = (struct span){.batch_row = b, .first = first, .count = rows};
        }
    return spans;
}

static int threads_for(const struct workload *w)
{
    enum { PARALLEL_MULTIPLICATIONS = 1 << 20 }; /* fewer take less time than starting threads */
    int64_t multiplications = workload_tokens(w) * weight_elements(WEIGHT_WQKV, w);
    return multiplications > PARALLEL_MULTIPLICATIONS ? cpu_threads() : 1;
}

void oracle_layer_run(const struct workload *w, const double *x, const float *const *weight,
                      int threads, struct oracle_layer *out)
{
    struct layer l = {.w = w, .weight = weight, .tensor = out->tensor};
    int64_t hidden = workload_hidden(w);
    int count;
    struct span *spans = cut_rows(w, &count);
    for (int t = 0; t < TENSOR_COUNT; t++)
        out->tensor[t] = mem_alloc((size_t)tensor_elements(t, w), sizeof(double));
    for (int i = 0; i < count; i++) {
        int64_t at = ((int64_t)spans[i].batch_row * w->seq_len + spans[i].first) * hidden;
        memcpy(out->tensor[TENSOR_X] + at, x + at, (size_t)(spans[i].count * hidden) * sizeof(*x));
    }

    for (int op = 0; op < OP_COUNT; op++) {
#pragma omp parallel for schedule(dynamic) num_threads(threads > 0 ? threads : threads_for(w))
        for (int i = 0; i < count; i++)
            oracle_operators[op](&l, spans[i], op);
    }
    free(spans);
}

void oracle_layer_release(struct oracle_layer *l)
{
    if (l == NULL)
        return;
    for (int t = 0; t < TENSOR_COUNT; t++) {
        free(l->tensor[t]);
        l->tensor[t] = NULL;
    }
}
