/* Power that is cut.  All that SQLite does to a database's files while trials are stored is
 * recorded below it, and then done again up to each write: the database must open, be whole, and
 * hold every commit that was on the disk.  Without a sync the disk may have kept any of
 * the writes. */
#include "tests/db/fixture.h"

enum { TRIALS = 12, FILES = 3, OPEN_MOST = 8 };
#ifdef __SANITIZE_ADDRESS__
enum { APART = 4 }; /* cuts that are looked at: the others run the same code */
#else
enum { APART = 1 };
#endif

/* ---- recording ------------------------------------------------------------------------------- */

enum action { WRITE, TRUNCATE, SYNC, DELETE, COMMIT };

struct event {
    enum action action;
    int file; /* of names[] */
    int64_t at;
    int len;
    char *data; /* (len) owned */
};

static const char *const names[FILES] = {"", "-wal", "-journal"};
static struct event *events;
static int event_count;
static bool recording;

struct opened {
    sqlite3_file *file;
    int name;
    const sqlite3_io_methods *real;
    sqlite3_io_methods mine;
};
static struct opened opened[OPEN_MOST];
static sqlite3_vfs recorder, *system_vfs;

static void add_event(enum action action, int file, int64_t at, const void *data, int len)
{
    if (!recording)
        return;
    events = mem_resize(events, (size_t)event_count + 1, sizeof(*events));
    events[event_count++] = (struct event){action, file, at, len, mem_alloc((size_t)len + 1, 1)};
    if (len > 0)
        memcpy(events[event_count - 1].data, data, (size_t)len);
}

static struct opened *entry_of(const sqlite3_file *file)
{
    int i = 0;
    while (i < OPEN_MOST && opened[i].file != file)
        i++;
    ck_assert_int_lt(i, OPEN_MOST);
    return &opened[i];
}

static int name_of(const char *path)
{
    for (int i = FILES - 1; i >= 0; i--) {
        size_t len = strlen(path), end = strlen(names[i]);
        if (len >= end && strcmp(path + len - end, names[i]) == 0)
            return i;
    }
    return 0;
}

static int record_write(sqlite3_file *file, const void *data, int len, sqlite3_int64 at)
{
    const struct opened *o = entry_of(file);
    add_event(WRITE, o->name, at, data, len);
    return o->real->xWrite(file, data, len, at);
}

static int record_truncate(sqlite3_file *file, sqlite3_int64 size)
{
    const struct opened *o = entry_of(file);
    add_event(TRUNCATE, o->name, size, NULL, 0);
    return o->real->xTruncate(file, size);
}

static int record_sync(sqlite3_file *file, int flags)
{
    const struct opened *o = entry_of(file);
    add_event(SYNC, o->name, 0, NULL, 0);
    return recording ? o->real->xSync(file, flags) : SQLITE_OK; /* the checks need none */
}

static int record_close(sqlite3_file *file)
{
    struct opened *o = entry_of(file);
    o->file = NULL;
    return o->real->xClose(file);
}

static int record_open(sqlite3_vfs *vfs, const char *path, sqlite3_file *file, int flags, int *out)
{
    int result = system_vfs->xOpen(system_vfs, path, file, flags, out);
    if (result != SQLITE_OK)
        return result;
    struct opened *o = entry_of(NULL);
    *o = (struct opened){file, name_of(path), file->pMethods, *file->pMethods};
    o->mine.xWrite = record_write;
    o->mine.xTruncate = record_truncate;
    o->mine.xSync = record_sync;
    o->mine.xClose = record_close;
    file->pMethods = &o->mine;
    return SQLITE_OK;
}

static int record_delete(sqlite3_vfs *vfs, const char *path, int sync)
{
    add_event(DELETE, name_of(path), 0, NULL, 0);
    return system_vfs->xDelete(system_vfs, path, sync);
}

/* Stores trials one by one, with a checkpoint now and then, as a long search has them. */
static void record(void)
{
    int64_t study;
    system_vfs = sqlite3_vfs_find(NULL);
    recorder = *system_vfs;
    recorder.pNext = NULL;
    recorder.zName = "recorder";
    recorder.xOpen = record_open;
    recorder.xDelete = record_delete;
    sqlite3_vfs_register(&recorder,
                         1); /* before the first use of pages_layer(), which lies on it */
    recording = true;
    struct db *db = open_fresh(&study);
    for (int i = 0; i < TRIALS; i++) {
        struct db_trial trial = plan_trial(i, 2);
        OK(db_trial_add(db, study, &trial, &st));
        add_event(COMMIT, 0, 0, NULL, 0);
        if (i % 5 == 4)
            exec_sql(db->handle, "PRAGMA wal_checkpoint(TRUNCATE)");
    }
    db_close(db);
    recording = false;
}

/* ---- replaying ------------------------------------------------------------------------------- */

struct disk {
    struct buf files[FILES];
    bool there[FILES];
};

/* Does the first `len` bytes of a write, or what else the event is. */
static void apply(struct disk *d, const struct event *e, int len)
{
    struct buf *f = &d->files[e->file];
    static const char zeros[4096];
    if (e->action == WRITE) {
        d->there[e->file] = true;
        while (f->len < (size_t)e->at + (size_t)len) {
            size_t more = (size_t)e->at + (size_t)len - f->len;
            buf_add(f, zeros, more < sizeof(zeros) ? more : sizeof(zeros));
        }
        memcpy(f->ptr + e->at, e->data, (size_t)len);
    } else if (e->action == TRUNCATE && (size_t)e->at < f->len) {
        f->len = (size_t)e->at;
    } else if (e->action == DELETE) {
        d->there[e->file] = false;
        buf_reset(f);
    }
}

static void write_disk(const struct disk *d, const char *path)
{
    for (int i = 0; i < FILES; i++) {
        char name[300];
        snprintf(name, sizeof(name), "%s%s", path, names[i]);
        unlink(name);
        if (!d->there[i])
            continue;
        FILE *out = fopen(name, "w"); /* not file_write(), which syncs */
        ck_assert_ptr_nonnull(out);
        ck_assert_uint_eq(fwrite(d->files[i].ptr, 1, d->files[i].len, out), d->files[i].len);
        ck_assert_int_eq(fclose(out), 0);
    }
    char shared[300];
    snprintf(shared, sizeof(shared), "%s-shm", path);
    unlink(shared);
}

/* Opens what the disk holds, as a search would. */
static void check_disk(const struct disk *d, int cut, int least)
{
    SCOPED_BY(db_close_at) struct db *db = NULL;
    const char *path = test_path("cut.db");
    if (cut % APART != 0)
        return;
    write_disk(d, path);
    st = STATUS_INIT;
    int result = db_open(path, DB_WRITE, &db, &st);
    ck_assert_msg(result == 0, "cut at %d: %s", cut, st.message);
    assert_whole(db);
    int found = count_sql(db->handle, "SELECT count(*) FROM trial");
    ck_assert_msg(found >= least && count_sql(db->handle, "SELECT coalesce(max(plan) + 1, 0) FROM"
                                                          " trial") == found,
                  "cut at %d: %d trials, %d were stored", cut, found, least);
}

static void disk_release(struct disk *d)
{
    for (int i = 0; i < FILES; i++)
        buf_release(&d->files[i]);
}

static struct disk disk_new(void)
{
    struct disk d = {.there = {false}};
    for (int i = 0; i < FILES; i++)
        buf_init(&d.files[i]);
    return d;
}

/* A process that is killed, or power that fails on a disk that writes in order: every write up to
 * the cut is there, half of the one at it, and no commit before it may be lost. */
TEST(cut_after_each_write)
{
    SCOPED_BY(disk_release) struct disk d = disk_new();
    int commits = 0;
    record();
    ck_assert_int_gt(event_count, 100);
    for (int cut = 0; cut < event_count; cut++) {
        const struct event *e = &events[cut];
        commits += e->action == COMMIT;
        if (e->action == WRITE && e->len > 1) {
            apply(&d, e, e->len / 2);
            check_disk(&d, cut, commits);
        }
        apply(&d, e, e->len);
        if (e->action != SYNC && e->action != COMMIT)
            check_disk(&d, cut, commits);
    }
    ck_assert_int_eq(commits, TRIALS);
}

/* The last sync of the event's file before the cut, or -1. */
static int last_sync(int file, int cut)
{
    int at = cut;
    while (at >= 0 && !(events[at].action == SYNC && events[at].file == file))
        at--;
    return at;
}

/* Commits that the disk has for sure: those before the last sync of the WAL. */
static int commits_synced(int cut)
{
    int commits = 0;
    for (int i = 0, end = last_sync(1, cut); i < end; i++)
        commits += events[i].action == COMMIT;
    return commits;
}

/* A disk that writes in any order: of what no sync has followed, any write may be missing. */
TEST(unsynced_writes_may_be_missing)
{
    struct rng rng = {.state = splitmix64(0)};
    record();
    for (int cut = 0; cut < event_count; cut++) {
        if (events[cut].action != WRITE)
            continue;
        SCOPED_BY(disk_release) struct disk d = disk_new();
        int synced[FILES];
        for (int f = 0; f < FILES; f++)
            synced[f] = last_sync(f, cut);
        for (int i = 0; i <= cut; i++)
            if (events[i].action != WRITE || i < synced[events[i].file] || rng_below(&rng, 2) == 0)
                apply(&d, &events[i], events[i].len);
        check_disk(&d, cut, commits_synced(cut));
    }
}

SUITE("db/power", memory_dir_setup, test_dir_teardown)
