/* Reads files of tensors in the format safetensors: eight bytes with the length of a header, the
 * header in JSON, then the tensors' bytes, little-endian.
 *
 * The reader is strict: it takes a file whose tensors fill the bytes behind the header without
 * overlap and without a gap, each as large as its type and shape say, and refuses any other. */
#ifndef SAFETENSORS_H
#define SAFETENSORS_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

enum { SAFETENSORS_DIMS = 8, SAFETENSORS_ERROR = 400 };

struct safetensor {
    const char *name; /* not ended by NUL; as in the header, escapes and all */
    size_t name_len;
    char dtype[8]; /* "F32" */
    int dims;
    uint64_t shape[SAFETENSORS_DIMS];
    uint64_t begin, end;       /* in the data of its file */
    const unsigned char *data; /* (end - begin), not aligned */
    size_t file;               /* which of an index's files */
};

struct safetensors_map {
    void *at;
    size_t bytes;
};

struct safetensors {
    struct safetensor *tensors; /* (count), owned: by name, each of which is there once */
    size_t count;
    struct safetensors_map *maps; /* (map_count), owned: what safetensors_open() read */
    size_t map_count;
    char error[SAFETENSORS_ERROR]; /* why it was refused, in printable ASCII */
};

/* ---- safetensors.c: one file's bytes --------------------------------------------------------- */

/* Reads `bytes`, which stay the caller's and must outlive *out.  0, or -1 with out->error.  Close
 * *out in any case. */
int safetensors_parse(const void *bytes, size_t len, struct safetensors *out);

/* ---- safetensors_open.c: files --------------------------------------------------------------- */

/* Reads a file, or the files that an index of shards (model.safetensors.index.json) names, which
 * are in the index's directory.  The error says what else a file is: a pickle, a web page, ...  0
 * or -1.
 */
int safetensors_open(const char *path, struct safetensors *out);
void safetensors_close(struct safetensors *f);

/* Which shard holds which tensor. */
struct safetensors_index {
    struct safetensors_entry {
        const char *name, *shard; /* neither ended by NUL */
        size_t name_len, shard_len;
        size_t file; /* for safetensors_open() */
    } * entries;     /* (count), owned */
    size_t count;
    const char *error; /* why it was refused, a literal */
};

/* Reads an index; the names of shards are names of files in its directory.  `bytes` stay the
 * caller's and must outlive *out.  0, or -1 with out->error.  Release *out in any case. */
int safetensors_index_parse(const void *bytes, size_t len, struct safetensors_index *out);
void safetensors_index_release(struct safetensors_index *index);

#ifdef __cplusplus
}
#endif

#endif
