/* What weights*.c share. */
#ifndef WEIGHTS_INT_H
#define WEIGHTS_INT_H

#include "safetensors_int.h"
#include "weights.h"

/* ---- weights_families.c ---------------------------------------------------------------------- */

/* A layer's modules.  Weight and bias of module m are the tensors 2m and 2m+1 of a layer, and
 * 2m+SCALE is what a weight of e4m3 is multiplied by. */
enum module {
    QUERY, /* or all three */
    KEY,
    VALUE,
    ATTENTION_OUT,
    NORM1, /* behind the attention, or before it */
    FFN1,
    FFN2,
    NORM2,       /* behind the feed-forward network, or before it */
    FFN1_FACTOR, /* of a gate in two tensors: what the activated is multiplied by */
    SCALE1,      /* LayerScale of the attention's output: a vector, and no bias */
    SCALE2,      /* and of the network's */
    MODULES,
    SCALE = 2 * MODULES,
    INPUT_SCALE /* which no library reads */
};

enum traits {
    SHARED_LAYERS = 1,      /* layer l of L is number l * groups / L of the file */
    PRE_OR_POST = 2,        /* the file does not say where norms stand */
    FINAL_SAYS_PRE = 4,     /* the last norm does, and is nowhere else */
    CONV1D = 8,             /* matrices are (in,out) */
    HEADS_OUTSIDE = 16,     /* rows of q, k and v are (H,3,W), not (3,H,W) */
    FEWER_KEY_HEADS = 32,   /* may have: each serves several heads of queries */
    UNSCALED = 64,          /* scores are not divided by sqrt(W) */
    SECOND_ACTIVATED = 128, /* of a gate in one tensor the second half */
    ALIBI_BOTH_WAYS = 256,  /* -slope * |i-j|, not slope * (j-i) */
    SCALED_ROTATIONS = 512, /* by a factor, which config.json says, if there is one */
    BARE_FIRST = 1024,      /* layer 0 has no first norm */
    BARE_NORMS = 2048       /* layernorms may lack their bias */
};

enum { FINALS_MOST = 2, IGNORED_MOST = 4 };

struct family {
    const char *name;             /* for people */
    const char *layers;           /* in front of a layer's number */
    const char *modules[MODULES]; /* behind it; null: there is none */
    unsigned functions;           /* enum weights_functions */
    unsigned traits;
    const char *finals[FINALS_MOST];   /* names of a last norm, if norms stand before */
    const char *buckets;               /* (32,H) of relative positions; null: ALiBi, if a bias */
    const char *ignored[IGNORED_MOST]; /* below the model or a layer; a dot ends a beginning */
};
extern const struct family weights_families[];
extern const int weights_family_count;

/* What a tensor's name says of its model; null: nothing. */
const char *weights_other(const char *name);

/* ---- weights_tensors.c -------------------------------------------------------------------------
 *
 * Checks shape and type of a tensor.  columns 0: a vector. */
int weights_check_tensor(const struct safetensor *t, size_t rows, size_t columns, char *error);
float weights_value(const struct safetensor *t, size_t i);

/* Of a matrix, which may have e4m3 and a scale; null: it has none.  by_input: it is (in,out). */
int weights_check_matrix(const struct safetensor *t, const struct safetensor *scale, size_t rows,
                         size_t columns, bool by_input, char *error);
int weights_check_scale(const struct safetensor *scale, size_t rows, size_t columns, bool by_input,
                        char *error);
float weights_scale(const struct safetensor *scale, const struct safetensor *t, size_t row,
                    size_t column);

/* "(3,4)", "(5,)" */
void weights_shape_text(const uint64_t *shape, int dims, char *out, size_t room);

/* ---- weights_names.c ------------------------------------------------------------------------- */

/* Sets an error of WEIGHTS_ERROR bytes, as safetensors_error(). */
int weights_refuse(char *error, const char *format, ...) __attribute__((format(printf, 2, 3)));

#endif
