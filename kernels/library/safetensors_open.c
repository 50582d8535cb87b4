/* Files, indexes of shards, and what a file is that is neither. */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include "safetensors_int.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

enum { INDEX_MOST = 16 << 20, SHARDS_MOST = 1000, SHARD_NAME_MOST = 255 };

static const char tail[] = ".safetensors", index_tail[] = ".safetensors.index.json";

/* ---- what else there is ---------------------------------------------------------------------- */

#define PYTORCH                                                                                    \
    ", as PyTorch writes .bin and .pt: save the model as safetensors, by "                         \
    "model.save_pretrained(DIR) or safetensors.torch.save_file"
#define ANOTHER ": name the model's safetensors file"
#define PAGE    "it is a web page, not the file: download the file itself"
#define TEXT    "it is a text, as a download that failed leaves: download the file again"

/* What files begin with that people take for this format, and what to do. */
static const struct {
    const char *bytes, *what;
} others[] = {
    {"version https://git-lfs",
     "it is a pointer of Git LFS, not the file: fetch that with 'git lfs pull'"},
    {"<", PAGE},
    {"PK\3\4", "it is a zip" PYTORCH},
    {"\x80\2", "it is a pickle" PYTORCH},
    {"\x80\3", "it is a pickle" PYTORCH},
    {"\x80\4", "it is a pickle" PYTORCH},
    {"\x80\5", "it is a pickle" PYTORCH},
    {"GGUF", "it is a GGUF file" ANOTHER},
    {"\x89HDF", "it is an HDF5 file, as TensorFlow writes" ANOTHER},
    {"\x93NUMPY", "it is a NumPy array" ANOTHER},
    {"\x1f\x8b", "it is packed by gzip: unpack it first"},
};

static size_t skip_mark(const unsigned char *bytes, size_t len)
{
    return len >= 3 && memcmp(bytes, "\xef\xbb\xbf", 3) == 0 ? 3 : 0;
}

/* What the file begins with behind a byte order mark and blanks.  Null if that says nothing: a
 * safetensors file has a '{' behind the length of its header. */
static const unsigned char *first_word(const unsigned char *bytes, size_t len)
{
    size_t at = skip_mark(bytes, len);
    while (at < len && bytes[at] != '\0' && strchr(" \t\r\n", bytes[at]) != NULL)
        at++;
    return at == len || (len > 8 && bytes[8] == '{') ? NULL : bytes + at;
}

static bool is_json(const unsigned char *bytes, size_t len)
{
    const unsigned char *word = first_word(bytes, len);
    return word != NULL && *word == '{';
}

/* The length of a header has no eight printable bytes. */
static bool is_text(const unsigned char *word, size_t left)
{
    enum { SURE = 8 };
    size_t printable = 0;
    while (printable < SURE && printable < left && word[printable] >= ' ' && word[printable] <= '~')
        printable++;
    return left > 0 && word[0] != '{' && printable == (left < SURE ? left : SURE);
}

/* Null if nothing is known. */
static const char *other_kind(const unsigned char *bytes, size_t len)
{
    const unsigned char *word = first_word(bytes, len);
    size_t left = word != NULL ? (size_t)(bytes + len - word) : 0;
    for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); i++)
        if (left >= strlen(others[i].bytes) &&
            memcmp(word, others[i].bytes, strlen(others[i].bytes)) == 0)
            return others[i].what;
    return is_text(word, left) ? TEXT : NULL;
}

static bool ends_with(const char *name, size_t len, const char *end)
{
    return len > strlen(end) && memcmp(name + len - strlen(end), end, strlen(end)) == 0;
}

/* Shards alone are of no use: their index is named. */
static int serves(const struct dirent *entry)
{
    size_t len = strlen(entry->d_name);
    return ends_with(entry->d_name, len, index_tail) ||
           (ends_with(entry->d_name, len, tail) && strstr(entry->d_name, "-of-") == NULL);
}

static int refuse_directory(const char *path, struct safetensors *out)
{
    enum { NAMED_MOST = 5 };
    struct dirent **list = NULL;
    char names[SAFETENSORS_ERROR / 2] = "";
    size_t len = 0;
    int count = scandir(path, &list, serves, alphasort);
    for (int i = 0; i < count; i++) {
        if (i < NAMED_MOST && len < sizeof(names))
            len += (size_t)snprintf(names + len, sizeof(names) - len, "%s'%s'", i > 0 ? ", " : "",
                                    list[i]->d_name);
        free(list[i]);
    }
    free(list);
    return count > 0 ? safetensors_refuse(out, "it is a directory; name a file in it: %s", names)
                     : safetensors_refuse(out, "it is a directory, and has no .safetensors file");
}

/* ---- bytes ----------------------------------------------------------------------------------- */

/* Maps a file, which safetensors_close() unmaps.  Without O_NONBLOCK a FIFO would wait. */
static int map_file(const char *path, struct safetensors *out)
{
    struct stat info;
    struct safetensors_map *maps = realloc(out->maps, (out->map_count + 1) * sizeof(*maps));
    if (maps == NULL)
        return safetensors_refuse(out, "out of memory");
    out->maps = maps;
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    if (fd < 0 || fstat(fd, &info) != 0 || !S_ISREG(info.st_mode) || info.st_size == 0) {
        int error = errno;
        if (fd >= 0)
            close(fd);
        return fd < 0                  ? safetensors_refuse(out, "%s", strerror(error))
               : S_ISDIR(info.st_mode) ? refuse_directory(path, out)
               : S_ISREG(info.st_mode) ? safetensors_refuse(out, "it is empty")
                                       : safetensors_refuse(out, "it is no regular file");
    }
    size_t len = (size_t)info.st_size;
    void *mapped = mmap(NULL, len, PROT_READ, MAP_PRIVATE, fd, 0);
    close(fd);
    if (mapped == MAP_FAILED)
        return safetensors_refuse(out, "%s", strerror(errno));
    maps[out->map_count++] = (struct safetensors_map){mapped, len};
    return 0;
}

/* Appends the tensors of the file that was mapped last. */
static int add_file(size_t number, struct safetensors *out)
{
    const struct safetensors_map *m = &out->maps[out->map_count - 1];
    struct safetensors part;
    int result = safetensors_parse(m->at, m->bytes, &part);
    const char *other = result != 0 ? other_kind(m->at, m->bytes) : NULL;
    if (result != 0) {
        safetensors_refuse(out, "%s", other != NULL ? other : part.error);
    } else if (part.count > 0) {
        size_t count = out->count + part.count;
        struct safetensor *more = realloc(out->tensors, count * sizeof(*more));
        if (more != NULL) {
            memcpy(more + out->count, part.tensors, part.count * sizeof(*more));
            for (size_t i = out->count; i < count; i++)
                more[i].file = number;
            out->tensors = more;
            out->count = count;
        } else {
            result = safetensors_refuse(out, "out of memory");
        }
    }
    safetensors_close(&part);
    return result;
}

/* ---- indexes --------------------------------------------------------------------------------- */

static bool is_shard(struct text t)
{
    return t.len <= SHARD_NAME_MOST && t.at[0] != '.' && ends_with(t.at, t.len, tail) &&
           memchr(t.at, '/', t.len) == NULL && memchr(t.at, '\\', t.len) == NULL;
}

/* {"tensor": "shard", ...} */
static const char *read_map(struct cursor *c, struct safetensors_index *out)
{
    struct text name, shard;
    if (!accept_next(c, '{'))
        return "its 'weight_map' is not an object";
    do {
        if (!read_key(c, &name) || !read_string(c, &shard))
            return "its 'weight_map' does not give each tensor the name of a file";
        if (!is_shard(shard))
            return "a shard is no .safetensors file in the directory of the index";
        if ((out->count & (out->count - 1)) == 0) {
            size_t room = out->count > 0 ? 2 * out->count : 1;
            struct safetensors_entry *more = realloc(out->entries, room * sizeof(*more));
            if (more == NULL)
                return "out of memory";
            out->entries = more;
        }
        out->entries[out->count++] =
            (struct safetensors_entry){name.at, shard.at, name.len, shard.len, 0};
    } while (accept_next(c, ','));
    return accept_next(c, '}') ? NULL : "its 'weight_map' is not an object";
}

static const char *read_index(struct cursor *c, struct safetensors_index *out)
{
    enum { METADATA = 1, MAP = 2 };
    unsigned seen = 0;
    struct text key;
    if (!accept_next(c, '{'))
        return "it is not a JSON object";
    do {
        if (!read_key(c, &key))
            return "it is not a JSON object";
        unsigned member = text_is(key, "metadata") ? METADATA : MAP;
        if ((member == MAP && !text_is(key, "weight_map")) || (seen & member) != 0)
            return "it is not 'metadata' and a 'weight_map', each once";
        seen |= member;
        if (member == METADATA && !safetensors_skip_object(c, true))
            return "its 'metadata' is not a flat object";
        const char *error = member == MAP ? read_map(c, out) : NULL;
        if (error != NULL)
            return error;
    } while (accept_next(c, ','));
    if ((seen & MAP) == 0 || !accept_next(c, '}'))
        return "it is not 'metadata' and a 'weight_map', each once";
    skip_blanks(c);
    return c->at == c->end ? NULL : "something stands behind its object";
}

int safetensors_index_parse(const void *bytes, size_t len, struct safetensors_index *out)
{
    struct cursor c = {(const char *)bytes + skip_mark(bytes, len), (const char *)bytes + len};
    *out = (struct safetensors_index){.count = 0};
    out->error = read_index(&c, out);
    return out->error == NULL ? 0 : -1;
}

void safetensors_index_release(struct safetensors_index *index)
{
    free(index->entries);
    *index = (struct safetensors_index){.count = 0};
}

/* ---- all of it ------------------------------------------------------------------------------- */

static int open_shard(const char *path, const struct safetensors_entry *e, struct safetensors *out)
{
    const char *slash = strrchr(path, '/');
    size_t dir = slash != NULL ? (size_t)(slash + 1 - path) : 0;
    char *shard = malloc(dir + e->shard_len + 1), why[SAFETENSORS_ERROR];
    if (shard == NULL)
        return safetensors_refuse(out, "out of memory");
    memcpy(shard, path, dir);
    memcpy(shard + dir, e->shard, e->shard_len);
    shard[dir + e->shard_len] = '\0';
    int result = map_file(shard, out) != 0 || add_file(e->file, out) != 0 ? -1 : 0;
    if (result != 0) {
        memcpy(why, out->error, sizeof(why));
        safetensors_refuse(out, "shard '%.120s': %.250s", shard + dir, why);
    }
    free(shard);
    return result;
}

static bool same_shard(const struct safetensors_entry *a, const struct safetensors_entry *b)
{
    return a->shard_len == b->shard_len && memcmp(a->shard, b->shard, a->shard_len) == 0;
}

/* Opens each shard once, at the first tensor that it holds. */
static int open_shards(const char *path, struct safetensors_index *index, struct safetensors *out)
{
    const struct safetensors_entry *shards[SHARDS_MOST];
    size_t count = 0;
    for (struct safetensors_entry *e = index->entries; e < index->entries + index->count; e++) {
        while (e->file < count && !same_shard(shards[e->file], e))
            e->file++;
        if (e->file < count)
            continue;
        if (count == SHARDS_MOST)
            return safetensors_refuse(out, "it names more than %d shards", SHARDS_MOST);
        shards[count++] = e;
        if (open_shard(path, e, out) != 0)
            return -1;
    }
    return 0;
}

/* Every tensor is where the index says, and it lists all. */
static int check_places(const struct safetensors_index *index, struct safetensors *out)
{
    for (size_t i = 0; i < index->count; i++) {
        const struct safetensors_entry *e = &index->entries[i];
        const struct safetensor *t =
            safetensors_find_text(out, (struct text){e->name, e->name_len});
        if (t == NULL || t->file != e->file)
            return safetensors_refuse(
                out, "tensor '%.*s' is not in '%.*s', where the index says that it is", NAME(e),
                (int)e->shard_len, e->shard);
    }
    if (out->count != index->count)
        return safetensors_refuse(out,
                                  "its shards hold %zu tensors, and it lists %zu: they do not "
                                  "belong together; download all of them again",
                                  out->count, index->count);
    return 0;
}

static int read_shards(const char *path, struct safetensors *out)
{
    const struct safetensors_map *m = &out->maps[0];
    struct safetensors_index index;
    int result = -1;
    if (m->bytes > INDEX_MOST)
        return safetensors_refuse(out, "it is JSON, and larger than an index of shards may be");
    if (safetensors_index_parse(m->at, m->bytes, &index) != 0)
        safetensors_refuse(out,
                           "it is JSON, and no index of shards: %s; name the model's safetensors "
                           "file, or its index, '*%s'",
                           index.error, index_tail);
    else if (open_shards(path, &index, out) == 0 && safetensors_sort(out) == 0)
        result = check_places(&index, out);
    safetensors_index_release(&index);
    return result;
}

int safetensors_open(const char *path, struct safetensors *out)
{
    *out = (struct safetensors){.count = 0};
    if (map_file(path, out) != 0)
        return -1;
    return is_json(out->maps[0].at, out->maps[0].bytes) ? read_shards(path, out) : add_file(0, out);
}

void safetensors_close(struct safetensors *f)
{
    for (size_t i = 0; i < f->map_count; i++)
        munmap(f->maps[i].at, f->maps[i].bytes);
    free(f->maps);
    free(f->tensors);
    *f = (struct safetensors){.count = 0};
}
