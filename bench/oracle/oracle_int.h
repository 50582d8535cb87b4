/* What the files of the oracle share. */
#ifndef FUSEPLAN_BENCH_ORACLE_INT_H
#define FUSEPLAN_BENCH_ORACLE_INT_H

#include "bench/oracle/oracle.h"

/* With fewer elements, starting threads takes longer than the work on them. */
enum { PARALLEL_ELEMENTS = 1 << 17 };

/* The real rows of a batch row; rows past them are padding. */
int oracle_length(const struct workload *w, int batch_row);

/* ---- operators.c ----------------------------------------------------------------------------- */

/* Rows of a span: a weight matrix is read once for all of them. */
enum { SPAN_ROWS = 4 };

/* Real rows first .. first+count-1 of one batch row, which one thread computes at a time. */
struct span {
    int batch_row, first, count;
};

struct layer {
    const struct workload *w;
    const float *const *weight;
    double *const *tensor;
};

/* Computes the rows of a span of operator `op`'s output. */
typedef void oracle_operator(const struct layer *l, struct span s, int op);
extern oracle_operator *const oracle_operators[OP_COUNT];

#endif
