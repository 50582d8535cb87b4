#include "cmd/sweep_int.h"

#include <limits.h>
#include <unistd.h>

/* Appends "DIR/I-of-N.HOST.RANDOM.ndjson". */
static void add_own_path(const struct options *o, struct buf *out)
{
    char host[65] = "";
    if (gethostname(host, sizeof(host) - 1) != 0)
        snprintf(host, sizeof(host), "host");
    host[strcspn(host, "./")] = '\0';
    buf_addf(out, "%s/%d-of-%d.%s.%016llx.ndjson", o->save, o->shard, o->shards, host,
             (unsigned long long)random_for_name());
}

/* The number N of a name "I-of-N.HOST.RANDOM.ndjson"; 0 if it is none. */
static int shards_of_name(const char *name)
{
    const char *of = strstr(name, "-of-");
    if (of == NULL || strspn(name, "0123456789") != (size_t)(of - name) ||
        !file_has_suffix(name, ".ndjson"))
        return 0;
    char *end;
    long shards = strtol(of + 4, &end, 10);
    return *end == '.' && shards > 0 && shards <= INT_MAX ? (int)shards : 0;
}

int saved_shards(const char *dir)
{
    SCOPED_BY(names_release) struct names names;
    int most = 1;
    if (directory_list(dir, &names, STATUS_IGNORED) != 0)
        return most;
    for (int i = 0; i < names.count; i++) {
        int shards = shards_of_name(names.items[i]);
        most = shards > most ? shards : most;
    }
    return most;
}

int texts_import(const char *dir, const char *prefix, struct db *db, struct status *st)
{
    SCOPED_BY(names_release) struct names names;
    int bad = 0;
    if (directory_list(dir, &names, st) != 0)
        return -1;
    for (int i = 0; i < names.count; i++) {
        if (strncmp(names.items[i], prefix, strlen(prefix)) != 0 ||
            !file_has_suffix(names.items[i], ".ndjson"))
            continue;
        SCOPED char *path = buf_text("%s/%s", dir, names.items[i]);
        const char *text = path;
        struct db_moved moved;
        struct status failed = STATUS_INIT;
        progress_step(NULL, &(struct step){"texts", i, names.count, NAN});
        if (db_import_check(text, &failed) != 0 || db_import(db, &text, 1, &moved, &failed) != 0) {
            status_prefix(&failed, "left out"); /* an error: --quiet does not hide it */
            progress_note(false, failed.message);
            bad++;
        }
    }
    return bad;
}

int saving_begin(const struct options *o, const char *db_file, struct saving *out,
                 struct status *st)
{
    struct buf text = BUF_INIT;
    SCOPED_BY(db_close_at) struct db *db = NULL;
    *out = (struct saving){.path = NULL};
    if (o->save == NULL)
        return 0;
    char prefix[32];
    snprintf(prefix, sizeof(prefix), "%d-of-%d.", o->shard, o->shards);
    add_own_path(o, &text);
    out->path = buf_detach(&text);
    return file_make_dirs(o->save, st) != 0 || db_open(db_file, DB_WRITE, &db, st) != 0 ||
                   texts_import(o->save, prefix, db, st) < 0
               ? -1
               : 0;
}

int saving_write(struct saving *s, const char *db_file, bool last, struct status *st)
{
    const double times = 20;
    double begin = clock_seconds();
    SCOPED_BUF text = BUF_INIT;
    SCOPED_BY(db_close_at) struct db *db = NULL;
    char hash[HASH_TEXT_SIZE];
    if (s->path == NULL || (last ? s->ended_s == 0 : begin < s->ended_s + times * s->took_s))
        return 0;
    int result = db_open(db_file, DB_READ, &db, st) != 0 ? -1 : db_export(db, &text, st);
    if (result == 0 && strcmp(hash_text(text.ptr, text.len, hash), s->hash) != 0) {
        result = file_write(s->path, text.ptr, text.len, st);
        if (result == 0)
            memcpy(s->hash, hash, sizeof(hash));
    }
    s->ended_s = clock_seconds();
    s->took_s = s->ended_s - begin;
    return result;
}

void saving_release(struct saving *s)
{
    free(s->path);
    s->path = NULL;
}
