/* What the files of the oracle share. */
#ifndef FUSEPLAN_BENCH_ORACLE_INT_H
#define FUSEPLAN_BENCH_ORACLE_INT_H

#include "bench/oracle/oracle.h"

/* With fewer elements, starting threads takes longer than the work on them. */
enum { PARALLEL_ELEMENTS = 1 << 17 };

/* A function with this is compiled for each kind of CPU; a call takes the best one for this CPU.
 * All compute the same bits, because -ffp-contract=off joins no product with a sum; but see
 * products.c and compare.c. */
#if defined(__x86_64__)
#define FOR_EACH_CPU __attribute__((target_clones("avx512f", "avx2", "default")))
#else
#define FOR_EACH_CPU
#endif

/* A vector of LANES numbers, which a processor adds at once; needs no more alignment than one. */
enum { LANES = 4 };
typedef double doubles
    __attribute__((vector_size(LANES * sizeof(double)), aligned(sizeof(double)), may_alias));

/* The real rows of a batch row; rows past them are padding. */
static inline int oracle_length(const struct workload *w, int batch_row)
{
    return w->lengths != NULL ? w->lengths[batch_row] : w->seq_len;
}

/* Adjacent keys that a query keeps: begin..end-1. */
struct kept {
    int begin, end;
};

/* Finds the kept keys of query i of batch row b that come after run->end, as long as they are
 * adjacent.  Begin with {0, 0}; false: there are no more. */
bool oracle_next_kept(const struct workload *w, int b, int i, struct kept *run);

/* Bit j: whether query i of batch row b keeps key first+j; first is a multiple of KEYS_AT_ONCE.
 * Scores are computed for so many keys at a time. */
enum { KEYS_AT_ONCE = 16 };
#define ALL_KEPT (~0u >> (32 - KEYS_AT_ONCE))
unsigned oracle_kept_keys(const struct workload *w, int b, int i, int first);

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
    double *keys;    /* of all heads, as oracle_scores() reads them */
    uint32_t local;  /* the tensors that hold only the span's rows, SPAN_ROWS of each head */
    int head, heads; /* operators from the first scores to the context compute so many heads from
                        this one on; scores are of these alone */
    const struct rounding *rounding; /* null: nothing is rounded */
};

/* Computes the rows of a span of operator `op`'s output. */
typedef void oracle_operator(const struct layer *l, struct span s, int op);
oracle_operator oracle_operator_run;

/* Room for l->keys, and the copy of a span's rows from tensor `qkv`, before their scores. */
double *oracle_keys_new(const struct workload *w);
void oracle_tile_keys(const struct layer *l, struct span s, int qkv);

/* The same of a GEMM and of many spans, which read each weight from the cache; layers: of each
 * span, which differ in what `tensor` points at. */
void oracle_gemm_run(const struct layer *layers, const struct span *spans, int count, int op,
                     int threads);

/* ---- products.c ------------------------------------------------------------------------------ */

/* A row of a GEMM's input, and where its output goes. */
struct gemm_row {
    const double *in;
    double *out;
};

/* out (count,columns) = in (count,depth) @ weight (depth,columns) */
void oracle_multiply(const struct gemm_row *rows, int count, const float *weight, int64_t depth,
                     int64_t columns, int threads);

/* y (S) = q (W) @ keys (S,W)^T / sqrt(W) of kept pairs, of the queries of a span in one head.
 * keys: in tiles of (W,KEYS_AT_ONCE), where oracle_tile_key() puts key j. */
void oracle_tile_key(const double *key, int width, int j, double *keys);
void oracle_scores(const struct workload *w, struct span s, const double *const q[SPAN_ROWS],
                   const double *keys, double *const y[SPAN_ROWS]);

/* y (W) = probs (S) @ values (S,W), likewise. */
void oracle_context(const struct workload *w, struct span s, const double *const probs[SPAN_ROWS],
                    const double *values, double *const y[SPAN_ROWS]);

/* ---- rounding.c -------------------------------------------------------------------------------
 */

/* Rounds a tensor's values if it is stored; rounding may be null. */
void round_stored(const struct rounding *rounding, int tensor, int64_t n, double *values);

/* ---- functions.c ----------------------------------------------------------------------------- */

double oracle_activate(enum function_id activation, double x);

double oracle_largest(const double *x, int n);

/* y = exp(x - max), none of x above max; returns the sum. */
double oracle_exps(const double *x, int n, double max, double *y);

/* A row of n columns normalised, before gamma and beta; out may be x. */
void oracle_normalise(enum function_id norm, const double *x, int n, double eps, double *out);

#endif
