/* What the files of the oracle share. */
#ifndef FUSEPLAN_BENCH_ORACLE_INT_H
#define FUSEPLAN_BENCH_ORACLE_INT_H

#include "bench/oracle/oracle.h"

/* Real rows of a batch row: those past it are padding. */
int oracle_length(const struct workload *w, int batch_row);

/* ---- operators.c ----------------------------------------------------------------------------- */

/* Rows that share one reading of a weight matrix. */
enum { SPAN_ROWS = 4 };

/* Real rows first .. first+count-1 of one batch row: what a thread computes at a time. */
struct span {
    int batch_row, first, count;
};

struct layer {
    const struct workload *w;
    const float *const *weight;
    double *const *tensor;
};

/* Computes operator `op`'s output for the rows of a span, from what the chain's table says that it
 * reads. */
typedef void oracle_operator(const struct layer *l, struct span s, int op);
extern oracle_operator *const oracle_operators[OP_COUNT];

#endif
