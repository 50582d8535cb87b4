/* accuracy: what a model loses by the types that plans store, on real weights and real inputs.
 *
 * The oracle runs the sentences through all layers exactly, and again with what a plan rounds
 * rounded; sums stay in double.  So it says what rounding costs, not what kernels add. */
#pragma once

#include "bench/oracle/oracle.h"

/* ---- accuracy.c ------------------------------------------------------------------------------ */

enum { ACCURACY_MAX = 10 };

/* Errors and cosines are NaN or infinite where a rounded value is one. */
struct accuracy {
    const char *precision;  /* "fp32", "fp16", "bf16", "fp8" */
    unsigned gemms;         /* bits: of e4m3 operands */
    const char *beside;     /* the type of all else */
    bool by_column;         /* their weights have a scale for each column */
    double *errors;         /* (layers), owned: ||out - exact|| / ||exact|| after each layer */
    double cosine_mean;     /* of the tokens' rows after the last layer to the exact ones */
    double cosine_least;    /* the least of them */
    double sentence_cosine; /* mean, of the means over each sentence's rows */
    double agreement;       /* of the 10 nearest sentences, the share that is the same; NaN: there
                               are no three sentences */
    double (*saturated)[GEMM_COUNT]; /* (layers), owned: shares of a GEMM's input beyond 448 *
                                        scale; 0 of GEMMs without e4m3 */
};

struct accuracy_list {
    int count;
    struct accuracy items[ACCURACY_MAX];
};

/* Runs fp32, fp16, bf16, and with a calibration fp8: each GEMM alone, all four, all four with
 * scales by column, and the GEMMs of `also`, unless these are among the others.  w: the model's
 * layers, checked; its dtype is what is beside e4m3, its batch and seq_len do not matter.  The
 * weights are those of in.trained, checked as all else.  Takes seconds for each 1000 tokens of a
 * small model: listener may be null. STATUS_USAGE if the mask does not fit the sentences.  Release
 * *out in any case. */
int accuracy_run(const struct workload *w, struct inputs in, const struct sentences *sentences,
                 const struct calibration *calibration, unsigned also,
                 const struct listener *listener, struct accuracy_list *out, struct status *st);
void accuracy_release(struct accuracy_list *list);

/* ---- neighbours.c ---------------------------------------------------------------------------- */

enum { NEIGHBOURS = 10 };

/* Finds the nearest other rows of each of n rows of length 1, by their product: (n,NEIGHBOURS)
 * numbers of rows, the nearest first, -1 where there are no more.  The caller frees. */
int *neighbours_find(const float *rows, int n, int columns);

/* The share of one's neighbours that are the other's too. */
double neighbours_agree(const int *one, const int *other, int n);
