#include "search/space_int.h"

#include <zlib.h>

/* gzip's own header and trailer around deflate's data. */
enum { GZIP_WINDOW = 15 + 16, CHUNK = 65536, BEST_MEMORY = 9 };

void gzip_pack(const void *data, size_t len, struct buf *out)
{
    z_stream z = {.next_in = (Bytef *)(uintptr_t)data, .avail_in = (uInt)len};
    unsigned char chunk[CHUNK];
    int result = deflateInit2(&z, Z_BEST_COMPRESSION, Z_DEFLATED, GZIP_WINDOW, BEST_MEMORY,
                              Z_DEFAULT_STRATEGY);
    while (result == Z_OK) {
        z.next_out = chunk;
        z.avail_out = CHUNK;
        result = deflate(&z, Z_FINISH);
        buf_add(out, chunk, CHUNK - z.avail_out);
    }
    deflateEnd(&z);
}

int gzip_unpack(const void *data, size_t len, size_t max_bytes, struct buf *out, struct status *st)
{
    z_stream z = {.next_in = (Bytef *)(uintptr_t)data, .avail_in = (uInt)len};
    unsigned char chunk[CHUNK];
    int result = inflateInit2(&z, GZIP_WINDOW);
    while (result == Z_OK && out->len <= max_bytes) {
        z.next_out = chunk;
        z.avail_out = CHUNK;
        result = inflate(&z, Z_NO_FLUSH);
        buf_add(out, chunk, CHUNK - z.avail_out);
    }
    const char *why = z.msg;
    inflateEnd(&z);
    if (result == Z_STREAM_END)
        return 0;
    if (result == Z_BUF_ERROR)
        return status_set(st, STATUS_USAGE, "it ends early, after %zu bytes", len);
    if (result == Z_OK)
        return status_set(st, STATUS_USAGE, "it unpacks to more than %zu bytes", max_bytes);
    return status_set(st, STATUS_USAGE, "it is no gzip file or a damaged one: %s",
                      why != NULL ? why : "its data cannot be unpacked");
}
