/* Files of tensors: those of tests/data/families/, and new ones. */
#ifndef FUSEPLAN_TESTS_TENSORS_H
#define FUSEPLAN_TESTS_TENSORS_H

#include "kernels/library/safetensors_int.h"
#include "tests/suite.h"

/* A file of a family: FOLDER/NAME<tail>. */
static inline const char *path_of(const char *folder, const char *family, const char *tail)
{
    static char paths[2][512];
    static int turn;
    char *path = paths[turn++ % 2];
    snprintf(path, sizeof(paths[0]), "%s/%s%s", folder, family, tail);
    return path;
}

static inline const struct safetensor *tensor_of(const struct safetensors *f, const char *name)
{
    return safetensors_find_text(f, (struct text){name, strlen(name)});
}

/* header: that of a file but for its last brace. */
static inline void write_tensors(const char *path, struct buf *header, const struct buf *data)
{
    SCOPED_BUF whole = BUF_INIT;
    buf_adds(header, "}");
    uint64_t len = header->len;
    buf_add(&whole, (const char *)&len, sizeof(len));
    buf_add(&whole, header->ptr, header->len);
    buf_add(&whole, data->ptr, data->len);
    OK(file_write(path, whole.ptr, whole.len, &st));
}

#endif
