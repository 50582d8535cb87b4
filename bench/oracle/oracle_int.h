/* What the files of the oracle share. */
#ifndef FUSEPLAN_BENCH_ORACLE_INT_H
#define FUSEPLAN_BENCH_ORACLE_INT_H

#include "bench/oracle/oracle.h"

/* With fewer elements, starting threads takes longer than the work on them. */
enum { PARALLEL_ELEMENTS = 1 << 17 };

/* The real rows of a batch row; rows past them are padding. */
static inline int oracle_length(const struct workload *w, int batch_row)
{
    return w->lengths != NULL ? w->lengths[batch_row] : w->seq_len;
}

/* Whether query i of batch row b keeps key j. */
static inline bool oracle_keeps(const struct workload *w, int b, int i, int j)
{
    const struct mask *m = &w->mask;
    int64_t row = (m->matrices == 1 ? 0 : (int64_t)b * m->seq_len) + i;
    return j < oracle_length(w, b) && (m->bits[row * m->row_words + j / 64] >> j % 64 & 1) != 0;
}

/* ---- results.c: rows of tensors -------------------------------------------------------------- */

/* Where row `row` of a tensor lies: (B,S), (B,H,S) or (3,B,H,S). */
struct row_place {
    int batch_row, head, row;
};
struct row_place row_place_of(const struct workload *w, int tensor, int64_t row);

/* ---- operators.c ----------------------------------------------------------------------------- */

struct layer {
    const struct workload *w;
    const float *const *weight;
    double *const *tensor;
    uint16_t local; /* bits: tensors that hold only the span's rows, SPAN_ROWS of each head */
};

/* Computes the rows of a span of operator `op`'s output. */
typedef void oracle_operator(const struct layer *l, struct span s, int op);
extern oracle_operator *const oracle_operators[OP_COUNT];

#endif
