/* search, continued: which GEMMs have operands of e4m3. */
#pragma once

#include "search/tune.h"

/* ---- precision.c -------------------------------------------------------------------------------
 *
 * What each precision loses, by precision: the norm of the error after the last layer over that of
 * the exact rows.  NaN where it was not measured. */
struct precision_errors {
    double measured[GEMM_ALL + 1];
};

/* The measured error; else the root of the sum of the squares of its GEMMs' own errors, which are
 * nearly independent (docs/results.md); NaN if one of them was not measured. */
double precision_error(const struct precision_errors *e, unsigned precision);

/* Reads what `fuseplan accuracy -t DTYPE --format json` printed: one scale a tensor.  STATUS_USAGE
 * if it is not that, or lacks a GEMM alone. */
int precision_errors_read(const char *path, enum dtype dtype, struct precision_errors *out,
                          struct status *st);

/* Whether the target has code for the workload in a precision. */
bool precision_has_plans(const struct build_target *t, unsigned precision);

/* Writes those precisions of at most this error that the target has plans for and that are in no
 * other such, and returns their number: a plan seldom loses by a further GEMM. */
int precisions_within(const struct precision_errors *e, double most, const struct build_target *t,
                      unsigned out[GEMM_ALL]);

/* Drops the plans that the target has no kernels for in its precision, and returns how many are
 * left. */
int plans_possible(const struct build_target *t, struct plan *plans, int count);

/* What the last compare_precisions() of a study was told; NaN where that is nothing. */
int precision_errors_stored(struct db *db, int64_t study, struct precision_errors *out,
                            struct status *st);

/* Times the best plan known of each precision side by side, with plans whose GEMMs have none in
 * e4m3: the best one and the baselines.  Stores all as finals, and what the precisions lose.
 * STATUS_NOT_FOUND where no plan without e4m3 is known.  Leaves the database at the precision of
 * bench's target. */
int compare_precisions(struct bench *b, struct db *db, const unsigned *precisions, int count,
                       const struct baselines *baselines, const struct precision_errors *errors,
                       struct status *st);
