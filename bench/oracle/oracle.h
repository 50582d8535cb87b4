/* The oracle: the chain in plain loops, in double, one function an operator.
 *
 * It defines what is right.  It serves verification and tests; no target runs it to compute. */
#ifndef FUSEPLAN_BENCH_ORACLE_H
#define FUSEPLAN_BENCH_ORACLE_H

#include "layer/layer.h"

/* ---- oracle.c, operators.c: one layer -----------------------------------------------------------
 *
 * Padded rows of all tensors hold 0.  Scores (op 2) are computed for all real keys; from op 3 on
 * masked positions hold 0. */
struct oracle_layer {
    double *tensor[TENSOR_COUNT]; /* in the chain's layouts; owned */
};

/* Allocates and computes all 16 tensors of a layer from its input x (B,S,D) and its weights, in the
 * chain's order and shapes, already rounded to the workload's type.  w's mask must be built.
 * threads: how many to use, 0: as many as pay; the result does not depend on it. */
void oracle_layer_run(const struct workload *w, const double *x, const float *const *weight,
                      int threads, struct oracle_layer *out);
void oracle_layer_release(struct oracle_layer *l);

/* ---- compare.c: a target's tensor against the oracle's ------------------------------------------
 *
 * An error is ||out-ref|| / ||ref||, of the tensor and of each row (the last axis).  Padded rows
 * are left out, and masked positions after ops 2 and 3.  A row's ||ref|| counts as no less than the
 * tensor's average for as many elements, because a single score near 0 owes its size to
 * cancellation.  A NaN or infinity is an infinite error. */
struct oracle_error {
    double tensor;       /* of the whole tensor */
    double worst_row;    /* the largest of a row */
    int64_t worst_index; /* that row's first element */
};
struct oracle_error oracle_compare(const struct workload *w, int tensor, const float *out,
                                   const double *ref);

/* tensor <= tolerance and worst_row <= 8 * tolerance. */
bool oracle_accepts(struct oracle_error e, double tolerance);

/* Hashes a tensor as stored, in elements of element_bytes.  What oracle_compare() leaves out does
 * not count.  Returns out. */
char *result_hash(const struct workload *w, int tensor, int element_bytes, const void *stored,
                  char out[HASH_TEXT_SIZE]);

/* ---- elements.c: fp32 and the stored types ------------------------------------------------------
 *
 * fp16 and bf16 take 2 bytes; tf32 is stored as fp32 with 13 bits of its fraction 0.  Rounding is
 * to nearest, ties to even; what is too large for fp16 becomes infinite. */
float element_round(enum dtype dtype, float value);
void elements_pack(enum dtype dtype, const float *from, int64_t n, void *to);
void elements_unpack(enum dtype dtype, const void *from, int64_t n, float *to);
void elements_narrow(const double *from, int64_t n, float *to);

/* ---- inputs.c: the same inputs and weights everywhere -------------------------------------------
 *
 * Element i of array a of layer l is drawn as splitmix64(seed + (l * 16 + a) * 2^40 + i), its upper
 * 53 bits scaled to u in [0,1), then middle + (2u - 1) * range in double, rounded to fp32, then to
 * dtype.  a = 0..11: the weights in the chain's order, as weight_drawn() says; x is array 15 of
 * layer 0, 0 +- 0.4. */
void inputs_weight(const struct workload *w, struct inputs in, int layer, enum weight_id id,
                   float *out);
void inputs_x(const struct workload *w, struct inputs in, float *out);

#endif
