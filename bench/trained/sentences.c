#include "bench/trained/trained.h"

#include "kernels/library/safetensors_int.h"

#include <limits.h>

static const struct safetensor *find(const struct safetensors *f, const char *name,
                                     const char *dtype, int dims)
{
    const struct safetensor *t = safetensors_find_text(f, (struct text){name, strlen(name)});
    return t != NULL && strcmp(t->dtype, dtype) == 0 && t->dims == dims ? t : NULL;
}

/* Sets lengths, and what follows from them; false if they are not those of the rows. */
static bool read_lengths(const struct safetensor *lengths, uint64_t tokens, struct sentences *out)
{
    out->count = (int)lengths->shape[0];
    out->lengths = mem_alloc((size_t)out->count, sizeof(*out->lengths));
    memcpy(out->lengths, lengths->data, (size_t)out->count * sizeof(*out->lengths));
    for (int i = 0; i < out->count; i++) {
        if (out->lengths[i] < 1)
            return false;
        out->tokens += out->lengths[i];
        out->longest = out->lengths[i] > out->longest ? out->lengths[i] : out->longest;
    }
    return (uint64_t)out->tokens == tokens;
}

static const char *read_arrays(const struct safetensors *f, struct sentences *out)
{
    const struct safetensor *rows = find(f, "rows", "F32", 2),
                            *lengths = find(f, "lengths", "I32", 1);
    if (rows == NULL || lengths == NULL || f->count != 2)
        return "it has not the two tensors that fuseplan.write_rows() of Python writes: rows, F32 "
               "(tokens,D), and lengths, I32 (sentences)";
    if (lengths->shape[0] < 1 || lengths->shape[0] > INT_MAX || rows->shape[1] > INT_MAX)
        return "it has no sentences, or too many";
    out->columns = (int)rows->shape[1];
    if (!read_lengths(lengths, rows->shape[0], out))
        return "its lengths are not numbers of 1 or more whose sum is the number of its rows";
    float *values = mem_alloc((size_t)out->tokens * (size_t)out->columns, sizeof(*values));
    out->rows = values;
    memcpy(values, rows->data, rows->end - rows->begin);
    for (int64_t i = 0; i < out->tokens * out->columns; i++)
        if (!isfinite(values[i]))
            return "its rows hold a NaN or an infinity";
    return NULL;
}

int sentences_read(const char *path, struct sentences *out, struct status *st)
{
    SCOPED_BY(safetensors_close) struct safetensors file;
    *out = (struct sentences){.count = 0};
    const char *error = safetensors_open(path, &file) != 0 ? file.error : read_arrays(&file, out);
    return error == NULL
               ? 0
               : status_set(st, STATUS_USAGE, "--input: cannot read '%s': %s", path, error);
}

void sentences_release(struct sentences *s)
{
    free(s->lengths);
    free((void *)s->rows);
    *s = (struct sentences){.count = 0};
}
