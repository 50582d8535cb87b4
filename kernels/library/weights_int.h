/* What weights.c and weights_names.c share. */
#ifndef WEIGHTS_INT_H
#define WEIGHTS_INT_H

#include "safetensors_int.h"
#include "weights.h"

/* A layer's modules.  Weight and bias of module m are the tensors 2m and 2m+1 of a layer. */
enum module { QUERY, KEY, VALUE, ATTENTION_OUT, NORM1, FFN1, FFN2, NORM2, MODULES };

/* Sets an error of WEIGHTS_ERROR bytes, as safetensors_error(). */
int weights_refuse(char *error, const char *format, ...) __attribute__((format(printf, 2, 3)));

#endif
