/* What the files of accuracy share. */
#pragma once

#include "bench/accuracy/accuracy.h"

struct kind {
    const char *name; /* null: exact */
    enum dtype dtype; /* of one without GEMMs in e4m3 */
    unsigned gemms;
    bool by_column;
};

/* One of the kinds: what it has computed so far. */
struct variant {
    const struct kind *kind;
    enum dtype dtype; /* of all that is not e4m3 */
    struct flow flow;
    float *pooled; /* (sentences, columns): the mean of each sentence's rows, of length 1 */
    double *off;   /* (layers) squares of the differences */
    double cosines, least;
    int64_t (*beyond)[GEMM_COUNT], (*seen)[GEMM_COUNT]; /* (layers) */
};

struct run {
    const struct workload *model;
    struct inputs in;
    const struct sentences *sentences;
    const struct calibration *calibration;
    struct kind also;                          /* beside those of accuracy.c */
    int *order;                                /* sentences, the longest first */
    int64_t *places;                           /* their first rows, by sentence */
    struct workload w;                         /* of a group */
    int first;                                 /* its first sentence in the order */
    struct variant variants[ACCURACY_MAX + 1]; /* (count), the first of which is exact */
    int count;
    double *norms;                   /* (layers) squares of the exact values */
    const struct listener *listener; /* may be null */
    double begun_s;
    int64_t done; /* tokens times layers */
};

/* ---- compare.c: after a layer, and at the end --------------------------------------------------
 */

/* Adds the squares of what the exact layer hands on, of chains that normalise before normalised. */
void add_norms(struct run *r, int layer);

/* Adds the squares of a variant's differences to it; after the last layer cosines, too. */
void compare_rows(struct run *r, struct variant *v, int layer);

/* Sets the means of the group's sentences. */
void pool(struct run *r, struct variant *v);

/* nearest: the exact sentences' neighbours. */
void summarise(const struct run *r, const struct variant *v, const int *nearest,
               struct accuracy *a);
