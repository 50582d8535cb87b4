/* Reads a file of tensors in the format safetensors: eight bytes with the length of a header, the
 * header in JSON, then the tensors' bytes, little-endian.
 *
 * The reader is strict: it takes a file whose tensors fill the bytes behind the header without
 * overlap and without a gap, each as large as its type and shape say, and refuses any other. */
#ifndef SAFETENSORS_H
#define SAFETENSORS_H

#include <stddef.h>
#include <stdint.h>

enum { SAFETENSORS_DIMS = 8 };

struct safetensor {
    const char *name; /* not ended by NUL; as in the header, escapes and all */
    size_t name_len;
    char dtype[8]; /* "F32" */
    int dims;
    uint64_t shape[SAFETENSORS_DIMS];
    uint64_t begin, end; /* in the data */
};

struct safetensors {
    struct safetensor *tensors; /* (count), owned: in the order of their data */
    size_t count;
    const unsigned char *data;
    void *mapped; /* of safetensors_open() */
    size_t mapped_bytes;
    char error[160]; /* why it was refused */
};

/* Reads `bytes`, which stay the caller's and must outlive *out.  0, or -1 with out->error.  Close
 * *out in any case. */
int safetensors_parse(const void *bytes, size_t len, struct safetensors *out);

/* The same of a file. */
int safetensors_open(const char *path, struct safetensors *out);
void safetensors_close(struct safetensors *f);

/* Null if there is no tensor of this name. */
const struct safetensor *safetensors_find(const struct safetensors *f, const char *name);

#endif
