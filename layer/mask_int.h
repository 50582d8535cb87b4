/* What mask.c (the table) shares with mask_spec.c (names and parameters) and mask_bits.c
 * (building). */
#ifndef FUSEPLAN_LAYER_MASK_INT_H
#define FUSEPLAN_LAYER_MASK_INT_H

#include "layer/layer.h"

struct mask_param {
    const char *key;
    int64_t lo, hi;
    int64_t fallback; /* a number, DEFAULT_ROOT or DEFAULT_QUARTER */
};

enum { DEFAULT_ROOT = -1, DEFAULT_QUARTER = -2 }; /* floor(sqrt(S)), floor(S/4) */

struct mask_kind {
    const char *name, *usage, *summary;
    struct mask_param params[MASK_PARAM_MAX]; /* ends at a null key */
    /* Sets the bits that query row i keeps of a cleared row of seq_len bits; null: from a file. */
    void (*row)(uint64_t *row, int64_t i, int64_t seq_len, const int64_t *param);
};

extern const struct mask_kind mask_kinds[]; /* mask_kind_count() of them */

#endif
