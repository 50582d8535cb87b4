/* The oracle: the chain in plain loops, in double, one function an operator.
 *
 * It defines what is right.  No target calls it on its own path; it serves verification and tests.
 */
#ifndef FUSEPLAN_BENCH_ORACLE_H
#define FUSEPLAN_BENCH_ORACLE_H

#include "codegen/codegen.h"

/* All tensors of one layer, in the chain's layouts; tensor[t] null where not asked for.  Padded
 * rows and masked positions hold 0. */
struct oracle_layer {
    double *tensor[TENSOR_COUNT];
};

/* Allocates and computes all 16 tensors of a layer from its input x (B,S,D) and weights (the
 * chain's order and shapes, as stored, so already rounded to the workload's type).  w's mask must
 * be built. threads: how many to use; 0: all cores. */
void oracle_layer_run(const struct workload *w, const double *x, const float *const *weight,
                      int threads, struct oracle_layer *out);
void oracle_layer_release(struct oracle_layer *l);

/* Compares a target's tensor with the oracle's: ||out-ref|| / ||ref|| over the tensor and over each
 * row (the last axis), padded rows and masked positions of (B,H,S,S) tensors left out.  A NaN or
 * infinity is an infinite error. */
struct oracle_error {
    double tensor;       /* over the whole tensor */
    double worst_row;    /* the largest over rows */
    int64_t worst_index; /* of that row's first element */
};
struct oracle_error oracle_compare(const struct workload *w, int tensor, const float *out,
                                   const double *ref);

/* tensor <= tolerance and worst_row <= 8 * tolerance. */
bool oracle_accepts(struct oracle_error e, double tolerance);

/* ---- inputs.c: the same inputs and weights everywhere -------------------------------------------
 *
 * Element i of array a of layer l is drawn as splitmix64(seed + (l * 16 + a) * 2^40 + i), its upper
 * 53 bits scaled to [0,1), then to the array's range; a = 0..11: the weights in the chain's order;
 * x is array 15 of layer 0. `notes`: every array uniform in +-0.4.  Values are rounded to dtype. */
void inputs_weight(const struct workload *w, uint64_t seed, bool notes, int layer,
                   enum weight_id id, float *out);
void inputs_x(const struct workload *w, uint64_t seed, bool notes, float *out);

#endif
