/* The directory of generated files: what is in it already, and how the new files get there. */
#include "cmd/generate_int.h"

#include <float.h>
#include <sys/stat.h>

static const char manifest_name[] = "manifest.json";

char *place_directory(const struct options *o, struct status *st)
{
    if (o->output == NULL) {
        status_set(st, STATUS_USAGE, "no directory given; add -o DIR");
        return NULL;
    }
    char *dir = mem_strdup(o->output);
    for (size_t len = strlen(dir); len > 1 && dir[len - 1] == '/'; len--)
        dir[len - 1] = '\0';
    return dir;
}

/* ---- what is in the directory ---------------------------------------------------------------- */

/* The manifest of an earlier output; null if there is none. */
static json_t *earlier_manifest(const char *dir)
{
    SCOPED char *path = buf_text("%s/%s", dir, manifest_name);
    json_t *manifest = json_load_file(path, 0, NULL);
    const char *by = json_string_value(json_object_get(manifest, "generator"));
    if (by == NULL || strcmp(by, MANIFEST_GENERATOR) != 0) {
        json_decref(manifest);
        manifest = NULL;
    }
    return manifest;
}

/* Whether the Makefile links `name`.  library: the name of the one that it builds; null: it builds
 * a program. */
static bool is_linked(const char *library, const char *name)
{
    static const char *const endings[] = {".a", ".so", ".so.1"};
    if (library == NULL)
        return strcmp(name, "plan") == 0;
    size_t len = strlen(library);
    bool linked = strcmp(name, "example") == 0;
    for (size_t i = 0; i < ARRAY_LEN(endings) && !linked; i++)
        linked = strncmp(name, "lib", 3) == 0 && strncmp(name + 3, library, len) == 0 &&
                 strcmp(name + 3 + len, endings[i]) == 0;
    return linked;
}

/* Whether the Makefile builds `name`: a library or program, or the object of a source file. */
static bool is_built(const json_t *manifest, const char *name)
{
    size_t i, stem = strlen(name) > 2 ? strlen(name) - 2 : 0;
    const json_t *file, *files = json_object_get(manifest, "files");
    if (is_linked(json_string_value(json_object_get(manifest, "library")), name))
        return true;
    json_array_foreach(files, i, file)
    {
        const char *source = json_string_value(json_object_get(file, "name"));
        if (source != NULL && stem > 0 && strcmp(name + stem, ".o") == 0 &&
            strncmp(source, name, stem) == 0 &&
            (strcmp(source + stem, ".c") == 0 || strcmp(source + stem, ".cu") == 0))
            return true;
    }
    return false;
}

static bool has_hash(const char *path, const char *expected)
{
    SCOPED_BUF text = BUF_INIT;
    char hash[HASH_TEXT_SIZE];
    return file_read(path, 0, &text, STATUS_IGNORED) == 0 && expected != NULL &&
           strcmp(hash_text(text.ptr, text.len, hash), expected) == 0;
}

/* What Python keeps of the file that runs a library. */
static bool is_python_cache(const json_t *manifest, const struct stat *info, const char *name)
{
    return S_ISDIR(info->st_mode) && strcmp(name, "__pycache__") == 0 &&
           json_is_string(json_object_get(manifest, "library"));
}

/* Whether a file is as this command wrote it, or was built from its files. */
static bool is_ours(const json_t *manifest, const char *dir, const char *name)
{
    size_t i;
    const json_t *file, *files = json_object_get(manifest, "files");
    struct stat info;
    SCOPED char *path = buf_text("%s/%s", dir, name);
    if (files == NULL || lstat(path, &info) != 0)
        return false;
    if (!S_ISREG(info.st_mode) && !S_ISLNK(info.st_mode))
        return is_python_cache(manifest, &info, name);
    json_array_foreach(files, i, file)
    {
        const char *of = json_string_value(json_object_get(file, "name"));
        if (of != NULL && strcmp(of, name) == 0)
            return has_hash(path, json_string_value(json_object_get(file, "xxh3_128")));
    }
    return strcmp(name, manifest_name) == 0 || is_built(manifest, name);
}

int place_check(const char *dir, bool force, struct names *ours, struct status *st)
{
    SCOPED_BY(names_release) struct names all = {.count = 0}, others = {.count = 0};
    SCOPED_BUF text = BUF_INIT;
    *ours = (struct names){.count = 0};
    if (file_is_standard_output(dir))
        return status_set(st, STATUS_USAGE,
                          "--output: standard output takes one file, and these are several; name a "
                          "directory");
    scratch_sweep(dir);
    if (directory_list(dir, &all, st) != 0)
        return -1;
    json_auto_t *manifest = earlier_manifest(dir);
    for (int i = 0; i < all.count; i++)
        if (!file_is_temporary(all.items[i])) /* or it is another process's */
            names_add(is_ours(manifest, dir, all.items[i]) ? ours : &others, all.items[i]);
    if (others.count == 0 || force)
        return 0;
    names_text(&others, &text);
    return status_set(st, STATUS_USAGE,
                      "'%s' holds what fuseplan did not write or what was changed "
                      "since: %s; name a new directory, or add --force to keep other files "
                      "and replace changed ones",
                      dir, text.ptr);
}

/* ---- the new files --------------------------------------------------------------------------- */

static int write_file(const char *dir, const char *name, const char *text, size_t len,
                      struct status *st)
{
    SCOPED char *path = buf_text("%s/%s", dir, name);
    return file_write(path, text, len, st);
}

static int fill(const char *dir, const struct standalone *p, const json_t *manifest,
                struct status *st)
{
    for (int i = 0; i < p->count; i++)
        if (write_file(dir, p->files[i].name, p->files[i].text.ptr, p->files[i].text.len, st) != 0)
            return -1;
    SCOPED_BUF whole = BUF_INIT;
    json_add(manifest, JSON_INDENT(2) | JSON_REAL_PRECISION(DBL_DIG), &whole);
    buf_adds(&whole, "\n");
    return write_file(dir, manifest_name, whole.ptr, whole.len, st);
}

/* Removes what an earlier output has and the new one has not. */
static int remove_stale(const char *dir, const struct names *ours, const struct names *now,
                        struct status *st)
{
    for (int i = 0; i < ours->count; i++) {
        SCOPED char *path = buf_text("%s/%s", dir, ours->items[i]);
        if (!names_have(now, ours->items[i]) && file_remove_all(path, st) != 0)
            return -1;
    }
    return 0;
}

/* before: the signals that the caller had. */
static int run_finish(const struct finish *f, const char *at, const sigset_t *before,
                      struct status *st)
{
    sigset_t ignored;
    if (f == NULL)
        return 0;
    sigprocmask(SIG_SETMASK, before, NULL);
    int result = f->run(f->ctx, at, st);
    file_hold_signals(&ignored);
    return result;
}

int place_write(const char *dir, const struct names *ours, const struct standalone *p,
                const json_t *manifest, const struct finish *finish, struct status *st)
{
    struct fresh_dir s;
    struct names now = {.count = 0};
    sigset_t before;
    int result = -1;
    file_hold_signals(&before);
    if (fresh_dir_open(dir, &s, st) == 0) {
        if (fill(s.staging.dir, p, manifest, st) == 0 &&
            run_finish(finish, s.staging.dir, &before, st) == 0 &&
            directory_list(s.staging.dir, &now, st) == 0 && fresh_dir_commit(&s, true, st) == 0)
            result = remove_stale(s.dir, ours, &now, st);
        names_release(&now);
        fresh_dir_release(&s);
    }
    sigprocmask(SIG_SETMASK, &before, NULL);
    return result;
}
