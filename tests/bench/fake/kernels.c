#include "tests/bench/fake/kernels.h"

#include "bench/oracle/oracle_int.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

/* ---- segments -------------------------------------------------------------------------------- */

/* The bits that the block lists keep. */
static void unpack_mask(const struct fp_blocks *m, int seq_len, struct mask *out)
{
    *out = (struct mask){.seq_len = seq_len, .matrices = m->lists, .row_words = m->blocks};
    size_t list_words = (size_t)seq_len * (size_t)m->blocks;
    out->bits = mem_alloc((size_t)m->lists * list_words, sizeof(*out->bits));
    for (int list = 0; list < m->lists; list++)
        for (int i = 0; i < seq_len; i++) {
            uint64_t *row = out->bits + (size_t)list * list_words + (size_t)(i * m->blocks);
            int block = list * m->blocks + i / FP_BLOCK;
            for (int e = m->start[block]; e < m->start[block + 1]; e++)
                row[m->key_block[e]] =
                    m->bits[e] < 0 ? UINT64_MAX : m->words[m->bits[e] * FP_BLOCK + i % FP_BLOCK];
        }
}

static const struct chain *chain(void)
{
    const char *name = getenv("FAKE_CHAIN");
    return name != NULL ? chain_find(name) : &chain_bert;
}

static struct workload workload_of(const struct fp_args *a)
{
    struct workload w = {.chain = chain(),
                         .batch = a->batch,
                         .seq_len = a->seq_len,
                         .heads = a->heads,
                         .head_size = a->head_size,
                         .hidden = a->hidden,
                         .ffn = a->ffn,
                         .layers = 1,
                         .eps = a->eps,
                         .lengths = (int *)(uintptr_t)a->lengths};
    unpack_mask(&a->mask, a->seq_len, &w.mask);
    return w;
}

/* Where a row of a tensor begins; -1: nowhere, as it is padding of a packed one. */
static int64_t row_begin(const struct fp_args *a, const struct workload *w, int t, int64_t row,
                         int64_t columns)
{
    int b = (int)(row / w->seq_len), i = (int)(row % w->seq_len);
    if (a->offset == NULL || tensor_layout(w->chain, t) != LAYOUT_TOKENS)
        return row * columns;
    return i < oracle_length(w, b) ? (a->offset[b] + i) * columns : -1;
}

/* Whether a row is that of a real token; rows of other tensors count as such. */
static bool is_real(const struct workload *w, int t, int64_t row)
{
    return tensor_layout(w->chain, t) != LAYOUT_TOKENS ||
           (int)(row % w->seq_len) < oracle_length(w, (int)(row / w->seq_len));
}

/* Copies from a tensor as kernels have it, or to it; that of the oracle has all rows.  Kernels may
 * write anything to rows of padding: NaN. */
static void copy(const struct fp_args *a, const struct workload *w, int t, bool out, double *tensor)
{
    int64_t columns = tensor_row_columns(w, t), rows = tensor_elements(t, w) / columns;
    for (int64_t row = 0; row < rows; row++, tensor += columns) {
        int64_t begin = row_begin(a, w, t, row, columns);
        float *place = begin >= 0 ? (float *)a->tensor[t] + begin : NULL;
        for (int64_t c = 0; place != NULL && c < columns; c++)
            if (out)
                place[c] = is_real(w, t, row) ? (float)tensor[c] : NAN;
            else
                tensor[c] = place[c];
    }
}

/* Tensors that are given are read before and written after; the others exist in between. */
static void run_segment(const struct fp_args *a, int first, int last, bool half)
{
    struct workload w = workload_of(a);
    uint32_t inputs = segment_inputs(w.chain, (struct segment){first, last});
    double *tensor[TENSOR_COUNT] = {NULL};
    struct layer l = {.w = &w, .weight = (const float *const *)a->weight, .tensor = tensor};
    for (int t = 0; t < TENSOR_COUNT; t++) {
        bool input = (inputs & 1u << t) != 0;
        if (input || (t > first && t <= last + 1))
            tensor[t] = mem_alloc((size_t)tensor_elements(t, &w), sizeof(**tensor));
        if (input && a->tensor[t] != NULL)
            copy(a, &w, t, false, tensor[t]);
    }
    for (int op = first; op <= last; op++)
        for (int b = 0; b < w.batch; b++)
            for (int i = 0; i < oracle_length(&w, b); i++)
                oracle_operator_run(&l, (struct span){b, i, 1}, op);
    for (int t = 0; t < TENSOR_COUNT; t++) {
        if (a->tensor[t] != NULL && t > (half ? last : first) && t <= last + 1)
            copy(a, &w, t, true, tensor[t]);
        free(tensor[t]);
    }
    free(w.mask.bits);
}

/* ---- faults ---------------------------------------------------------------------------------- */

static bool is(const struct fake_code *c, const char *kind)
{
    return strcmp(c->kind, kind) == 0;
}

static void compute(struct fake_code *c, const struct fp_args *a)
{
    float *out = a->tensor[c->last + 1], old = out[0];
    unsigned *sync = a->sync;
    bool late = ++c->runs > c->rested_runs, marked = sync[0] != 0;
    sync[0] = is(c, "messy");
    if (late && is(c, "lazy"))
        return;
    run_segment(a, c->first, c->last, late && is(c, "half"));
    for (int i = 0; i < WEIGHT_MAX && is(c, "vandal"); i++)
        if (a->weight[i] != NULL)
            *(float *)(uintptr_t)a->weight[i] = 1;
    if (marked || is(c, "messy") || is(c, "vandal") || is(c, "wrong") || (late && is(c, "tired")) ||
        (c->runs > 1 && is(c, "fickle")))
        out[0] += 1;
    else if (is(c, "stale") && !isnan(old))
        out[0] += old;
}

static const char *fault_notes(void)
{
    const char *path = getenv("FAKE_GPU_FAULTS");
    return path != NULL ? path : "/dev/null";
}

static int fault(void)
{
    FILE *notes = fopen(fault_notes(), "a");
    if (notes != NULL) {
        fputc('x', notes);
        fclose(notes);
    }
    return ILLEGAL_ADDRESS;
}

int fake_code_run(struct fake_code *c, const struct fp_args *a)
{
    if (is(c, "waking") && c->runs < c->rested_runs)
        nanosleep(&(struct timespec){.tv_nsec = 2000000}, NULL);
    if (is(c, "fault"))
        return fault();
    while (is(c, "hang"))
        pause();
    if (!is(c, "nothing"))
        compute(c, a);
    return 0;
}
