/* Tensors of a file: their shapes and types, and values. */
#include "weights_int.h"

#include "elements.h"

#include <stdio.h>

/* ---- shapes ---------------------------------------------------------------------------------- */

/* The values' type; -1: a type that no library takes. */
static int dtype_of(const struct safetensor *t)
{
    return strcmp(t->dtype, "F32") == 0    ? ENCODER_FP32
           : strcmp(t->dtype, "F16") == 0  ? ENCODER_FP16
           : strcmp(t->dtype, "BF16") == 0 ? ENCODER_BF16
                                           : -1;
}

void weights_shape_text(const uint64_t *shape, int dims, char *out, size_t room)
{
    size_t len = (size_t)snprintf(out, room, "(");
    for (int d = 0; d < dims && len < room; d++)
        len += (size_t)snprintf(out + len, room - len, "%s%llu", d > 0 ? "," : "",
                                (unsigned long long)shape[d]);
    if (len < room)
        snprintf(out + len, room - len, "%s)", dims == 1 ? "," : "");
}

static int check_shape(const struct safetensor *t, const uint64_t *shape, int dims, char *error)
{
    char found[200], wanted[60];
    if (t->dims == dims && memcmp(t->shape, shape, (size_t)dims * sizeof(*shape)) == 0)
        return 0;
    weights_shape_text(t->shape, t->dims, found, sizeof(found));
    weights_shape_text(shape, dims, wanted, sizeof(wanted));
    return weights_refuse(error, "'%.*s' has the shape %s; expected %s", NAME(t), found, wanted);
}

static int refuse_type(const struct safetensor *t, const char *expected, char *error)
{
    return weights_refuse(error, "'%.*s' is of type %s; expected %s%s", NAME(t), t->dtype, expected,
                          t->dtype[0] != 'F' || t->dtype[1] == '8'
                              ? ": the model is quantised, save it without that"
                              : "");
}

int weights_check_tensor(const struct safetensor *t, size_t rows, size_t columns, char *error)
{
    const uint64_t shape[] = {rows, columns};
    if (check_shape(t, shape, columns > 0 ? 2 : 1, error) != 0)
        return -1;
    return dtype_of(t) >= 0 ? 0 : refuse_type(t, "F32, F16 or BF16", error);
}

static bool is_e4m3(const struct safetensor *t)
{
    return strcmp(t->dtype, "F8_E4M3") == 0;
}

float weights_value(const struct safetensor *t, size_t i)
{
    union {
        float single;
        uint16_t half;
    } stored = {0};
    if (is_e4m3(t))
        return element_from_e4m3(t->data[i]);
    enum encoder_dtype dtype = (enum encoder_dtype)dtype_of(t);
    size_t bytes = dtype == ENCODER_FP32 ? sizeof(stored.single) : sizeof(stored.half);
    memcpy(&stored, t->data + i * bytes, bytes); /* the file's are not aligned */
    return element_load(dtype, &stored, 0);
}

/* ---- matrices in e4m3 ------------------------------------------------------------------------ */

/* A scale is of the whole matrix; of a row, as compressed-tensors and ModelOpt have it; or of a
 * block of 128 rows and columns, as DeepSeek has it.  Each is a factor, whatever its name. */
enum { BLOCK = 128 };

/* How many scales stand below and beside one another; more than a matrix has: (0,0). */
static void scale_size(const struct safetensor *scale, uint64_t out[2])
{
    for (int d = 0; d < 2; d++)
        out[d] = scale->dims > 2 ? 0 : d < scale->dims ? scale->shape[d] : 1;
}

/* A matrix (in,out) has no rows of outputs. */
int weights_check_scale(const struct safetensor *scale, size_t rows, size_t columns, bool by_input,
                        char *error)
{
    uint64_t size[2];
    scale_size(scale, size);
    bool whole = size[0] == 1 && size[1] == 1, by_row = size[0] == rows && size[1] == 1;
    bool by_block = size[0] == (rows + BLOCK - 1) / BLOCK && /* sizes are ints */
                    size[1] == (columns + BLOCK - 1) / BLOCK;
    if (!whole && (by_input || (!by_row && !by_block)))
        return check_shape(scale, (const uint64_t[]){by_input ? 1 : rows, 1}, 2, error);
    return dtype_of(scale) >= 0 ? 0 : refuse_type(scale, "F32, F16 or BF16", error);
}

int weights_check_matrix(const struct safetensor *t, const struct safetensor *scale, size_t rows,
                         size_t columns, bool by_input, char *error)
{
    if (scale == NULL && is_e4m3(t))
        return weights_refuse(error, "'%.*s' is of type F8_E4M3, and '%.*s_scale' is missing",
                              NAME(t), NAME(t));
    if (scale == NULL)
        return weights_check_tensor(t, rows, columns, error);
    if (!is_e4m3(t))
        return refuse_type(t, "F8_E4M3, as it has a scale", error);
    return check_shape(t, (const uint64_t[]){rows, columns}, 2, error) != 0
               ? -1
               : weights_check_scale(scale, rows, columns, by_input, error);
}

float weights_scale(const struct safetensor *scale, const struct safetensor *t, size_t row,
                    size_t column)
{
    uint64_t size[2];
    scale_size(scale, size);
    size_t down = size[0] == 1 ? 0 : size[0] == t->shape[0] ? row : row / BLOCK;
    size_t across = size[1] == 1 ? 0 : column / BLOCK;
    return weights_value(scale, down * (size_t)size[1] + across);
}
