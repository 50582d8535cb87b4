/* The section of base.h on NumPy's arrays.  Include base.h. */
#pragma once

#include "base/base.h"

/* ---- npy.c: NumPy arrays as bytes ------------------------------------------------------------ */

enum npy_type {
    NPY_BOOL,
    NPY_UINT8,
    NPY_UINT16,
    NPY_UINT32,
    NPY_UINT64,
    NPY_INT8,
    NPY_INT16,
    NPY_INT32,
    NPY_INT64,
    NPY_FLOAT16,
    NPY_FLOAT32,
    NPY_FLOAT64,
    NPY_BFLOAT16 /* as ml_dtypes writes it */
};
const char *npy_type_name(enum npy_type type); /* "bool", "uint8", "float32", ... */

struct npy {
    enum npy_type type;
    int ndim;
    int64_t shape[4];
    bool fortran_order;
    bool big_endian;
    const void *data; /* borrowed from the bytes parsed */
};

/* Takes format versions 1.0 to 3.0, with at most 4 dimensions and nothing after the data. */
int npy_parse(const void *bytes, size_t len, struct npy *out, struct status *st);

int64_t npy_count(const struct npy *a); /* its elements */

/* Element i in the order of the data. */
double npy_value(const struct npy *a, int64_t i);

/* Appends header (format version 1.0, C order) and data. */
void npy_write(enum npy_type type, int ndim, const int64_t *shape, const void *data,
               struct buf *out);
