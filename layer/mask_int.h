/* The table of masks, in mask.c; mask_spec.c parses their names and parameters, mask_bits.c builds
 * their bits; mask_file.c says what to do with an array that is no mask. */
#pragma once

#include "layer/layer.h"

struct mask_param {
    const char *key;
    int64_t lo, hi;
    int64_t fallback; /* its default: a number, DEFAULT_ROOT or DEFAULT_QUARTER */
};

enum { DEFAULT_ROOT = -1, DEFAULT_QUARTER = -2 }; /* floor(sqrt(S)), floor(S/4) */

struct mask_kind {
    const char *name, *usage, *summary;
    /* Sets the bits of the keys that query row i keeps; row has seq_len bits, all 0 before.  Null:
     * the mask comes from a file. */
    void (*row)(uint64_t *row, int64_t i, int64_t seq_len, const int64_t *param);
    struct mask_param params[MASK_PARAM_MAX]; /* ends at a null key */
};

/* Whether an array is of a type and a shape that a mask may have.  STATUS_USAGE if not, with what
 * makes a mask of it. */
int mask_file_check(const struct npy *a, int batch, int seq_len, struct status *st);

extern const struct mask_kind mask_kinds[]; /* mask_kind_count() of them */
