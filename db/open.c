#include "db/db_int.h"

#include <ctype.h>
#include <sys/stat.h>
#include <unistd.h>

char *db_place(const char *path)
{
    if (path == NULL)
        path = variable_value("FUSEPLAN_DB");
    if (path != NULL)
        return mem_strdup(path);

    SCOPED char *dir = file_user_dir(NULL, "FUSEPLAN_DB", "XDG_DATA_HOME", ".local/share");
    return buf_text("%s/fuseplan.db", dir);
}

/* An absolute path as a URI (RFC 3986), so that no character of it means anything to SQLite. */
static void add_uri(struct buf *uri, const char *path, const char *query)
{
    buf_adds(uri, "file://");
    for (const unsigned char *c = (const unsigned char *)path; *c != '\0'; c++)
        if (isalnum(*c) || strchr("/._-", *c) != NULL)
            buf_addf(uri, "%c", *c);
        else
            buf_addf(uri, "%%%02X", *c);
    buf_adds(uri, query);
}

static int check_path(const char *path, enum db_mode mode, struct status *st)
{
    struct stat info;
    if (path[0] == '\0')
        return status_set(st, STATUS_USAGE,
                          "the database's path is empty: give the path of a file");
    if (stat(path, &info) == 0)
        return S_ISREG(info.st_mode)
                   ? 0
                   : status_set(st, STATUS_DATABASE, "database '%s' is %s: give the path of a file",
                                path, file_mode_name(info.st_mode));
    bool missing = errno == ENOENT;
    if (missing && lstat(path, &info) == 0 && S_ISLNK(info.st_mode)) /* else just made */
        return status_set(st, STATUS_DATABASE, "database '%s' cannot be opened: %s", path,
                          FILE_DANGLES);
    if (!missing)
        return status_set(st, STATUS_DATABASE,
                          "database '%s' cannot be opened: %s: check the path and the permissions "
                          "of its directories, or name another file with --db or FUSEPLAN_DB",
                          path, strerror(errno));
    return mode == DB_WRITE ? 0
                            : status_set(st, STATUS_NOT_FOUND,
                                         "there is no database at '%s' yet: 'fuseplan search' "
                                         "makes one",
                                         path);
}

/* The caller frees. */
static char *parent_of(const char *path)
{
    const char *slash = strrchr(path, '/');
    if (slash == NULL)
        return mem_strdup(".");
    char *dir = mem_strdup(path);
    dir[slash == path ? 1 : slash - path] = '\0';
    return dir;
}

/* Runs before SQLite opens the file: SQLite reports neither the file or directory nor the cause. */
static int check_writable(const char *path, const char *what, struct status *st)
{
    if (access(path, W_OK) == 0)
        return 0;
    return status_set(st, STATUS_DATABASE,
                      "%s '%s' cannot be written: %s: change its permissions, or name another file "
                      "with --db or FUSEPLAN_DB",
                      what, path, strerror(errno));
}

static int make_writable(const char *path, struct status *st)
{
    SCOPED char *dir = parent_of(path);
    if (file_make_dirs(dir, st) != 0)
        return status_prefix(st, "database '%s'", path);
    if (db_refuse_network(path, dir, st) != 0 ||
        (file_exists(path) && check_writable(path, "database", st) != 0))
        return -1;
    return check_writable(dir, "the database's directory", st);
}

/* What the file says of itself.  SQLite reads the file here for the first time. */
struct identity {
    int application_id, version, objects;
};

static int identify(sqlite3 *handle, struct identity *out)
{
    sqlite3_stmt *stmt = NULL;
    *out = (struct identity){0};
    int result =
        sqlite3_prepare_v2(handle,
                           "SELECT application_id, user_version, (SELECT count(*) FROM"
                           " sqlite_schema) FROM pragma_application_id, pragma_user_version",
                           -1, &stmt, NULL);
    if (result == SQLITE_OK)
        result = sqlite3_step(stmt);
    if (result == SQLITE_ROW) {
        *out = (struct identity){sqlite3_column_int(stmt, 0), sqlite3_column_int(stmt, 1),
                                 sqlite3_column_int(stmt, 2)};
        result = SQLITE_OK;
    }
    sqlite3_finalize(stmt);
    return result;
}

static bool is_empty(const struct identity *i)
{
    return i->application_id == 0 && i->version == 0 && i->objects == 0;
}

static int check_identity(const char *path, const struct identity *i, struct status *st)
{
    if (i->application_id != DB_APPLICATION_ID && !is_empty(i))
        return status_set(st, STATUS_DATABASE,
                          "database '%s' belongs to another application (application_id 0x%08x): "
                          "name another file with --db or FUSEPLAN_DB",
                          path, (unsigned)i->application_id);
    if (i->version > schema_version)
        return status_set(st, STATUS_DATABASE,
                          "database '%s' has schema version %d, from a newer fuseplan; this one "
                          "knows up to %d: use the newer one, or name another file with --db or "
                          "FUSEPLAN_DB",
                          path, i->version, schema_version);
    if (i->version < SCHEMA_OLDEST && (i->version != 0 || i->objects > 0))
        return status_set(st, STATUS_DATABASE,
                          "database '%s' has schema version %d; expected %d to %d: fuseplan 0.2.0 "
                          "brings an older file up to date, 'PRAGMA user_version' sets that of the "
                          "file from which one was saved; or name another file with --db or "
                          "FUSEPLAN_DB",
                          path, i->version, SCHEMA_OLDEST, schema_version);
    return 0;
}

/* A file of another's is data: nothing that its schema says may do more than read it, and a page
 * that contradicts itself is an error.  No text or model comes near LENGTH_MAX. */
static void distrust(sqlite3 *handle)
{
    enum { LENGTH_MAX = 256 << 20 };
    sqlite3_db_config(handle, SQLITE_DBCONFIG_DEFENSIVE, 1, NULL);
    sqlite3_db_config(handle, SQLITE_DBCONFIG_TRUSTED_SCHEMA, 0, NULL);
    sqlite3_limit(handle, SQLITE_LIMIT_LENGTH, LENGTH_MAX);
    sqlite3_exec(handle, "PRAGMA cell_size_check = ON", NULL, NULL, NULL);
}

/* Finds out which file it is: of one that does not exist yet the directory does.  SQLite follows no
 * link from there on. */
static int resolve(struct db *db, struct status *st)
{
    db->file = realpath(db->path, NULL);
    if (db->file == NULL)
        db->file = file_absolute(db->path);
    return db->file != NULL ? 0
                            : status_set(st, STATUS_DATABASE, "database '%s' cannot be opened: %s",
                                         db->path, strerror(errno));
}

/* Opens the file and reads its identity; returns SQLite's code. */
static int open_handle(struct db *db, const char *uri_query, int flags, struct identity *identity)
{
    SCOPED_BUF uri = BUF_INIT;
    int result = sqlite3_initialize();
    if (result != SQLITE_OK)
        return result;
    add_uri(&uri, db->file, uri_query);
    result = sqlite3_open_v2(uri.ptr, &db->handle,
                             flags | SQLITE_OPEN_URI | SQLITE_OPEN_NOMUTEX | SQLITE_OPEN_NOFOLLOW,
                             pages_layer());
    if (result != SQLITE_OK)
        return result;
    distrust(db->handle);
    sqlite3_extended_result_codes(db->handle, 1);
    sqlite3_busy_timeout(db->handle, DB_BUSY_MS);
    return identify(db->handle, identity);
}

/* SQLite writes files beside a database in WAL mode even to read it.  If it cannot, or on a
 * network file system must not, and there is no WAL, then no process is writing and the file alone
 * holds everything. */
static bool is_immutable(const char *path)
{
    SCOPED char *wal = buf_text("%s-wal", path);
    SCOPED char *dir = parent_of(path);
    bool writable = access(path, W_OK) == 0 && access(dir, W_OK) == 0;
    return !file_exists(wal) && (!writable || db_network(path) != NULL);
}

/* A file with pages and nothing in them belongs to a log that was not copied with it. */
static int refuse_empty(const char *path, struct status *st)
{
    struct stat info;
    if (stat(path, &info) != 0 || info.st_size == 0)
        return status_set(st, STATUS_NOT_FOUND,
                          "database '%s' is empty: 'fuseplan search' fills it", path);
    return status_set(st, STATUS_NOT_FOUND,
                      "database '%s' is empty: if it is a copy, what the original holds is in the "
                      "file '-wal' beside that: copy both, or let 'fuseplan db merge' read the "
                      "original",
                      path);
}

static int open_read(struct db *db, struct status *st)
{
    /* Opened for writing if the system allows it, so that the last process to close the database
     * can remove the -wal and -shm files that reading makes.  query_only forbids all changes. */
    struct identity identity;
    if (resolve(db, st) != 0)
        return -1;
    int result = is_immutable(db->file)
                     ? open_handle(db, "?immutable=1", SQLITE_OPEN_READONLY, &identity)
                     : open_handle(db, "", SQLITE_OPEN_READWRITE, &identity);
    if (result != SQLITE_OK)
        return db_fail(db->handle, db->path, result, st);
    if (check_identity(db->path, &identity, st) != 0)
        return -1;
    if (is_empty(&identity))
        return refuse_empty(db->path, st);
    if (identity.version < schema_version)
        return status_set(
            st, STATUS_DATABASE,
            "database '%s' has schema version %d, this fuseplan reads %d: any command "
            "that stores, as 'fuseplan search', brings it up to date",
            db->path, identity.version, schema_version);
    result = sqlite3_exec(db->handle, "PRAGMA query_only = ON", NULL, NULL, NULL);
    return result == SQLITE_OK ? 0 : db_fail(db->handle, db->path, result, st);
}

/* The change to WAL needs an exclusive lock, for which SQLite does not wait, so that of two
 * processes that create a database at once one may find it busy. */
static int enter_wal(sqlite3 *handle)
{
    double deadline = clock_seconds() + DB_BUSY_MS / 1000.0;
    int result;
    while (((result = sqlite3_exec(handle, "PRAGMA journal_mode = WAL", NULL, NULL, NULL)) &
            0xff) == SQLITE_BUSY &&
           clock_seconds() < deadline)
        sqlite3_sleep(5);
    return result;
}

/* Pages of a file that is empty get room for checksums as it is filled; pages of any other file
 * that lacks it are written anew, once. */
static int make_room(struct db *db, bool empty, struct status *st)
{
    int bytes = PAGE_SUM_BYTES; /* in: wanted; out: what the file has */
    int result = sqlite3_file_control(db->handle, "main", SQLITE_FCNTL_RESERVE_BYTES, &bytes);
    if (result == SQLITE_OK && !empty && bytes < PAGE_SUM_BYTES)
        result = sqlite3_exec(db->handle, "VACUUM", NULL, NULL, NULL);
    return result == SQLITE_OK ? 0 : db_fail(db->handle, db->path, result, st);
}

static int open_write(struct db *db, struct status *st)
{
    if (make_writable(db->path, st) != 0 || resolve(db, st) != 0)
        return -1;
    struct identity identity;
    int result = open_handle(db, "", SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE, &identity);
    if (result != SQLITE_OK)
        return db_fail(db->handle, db->path, result, st);
    if (check_identity(db->path, &identity, st) != 0)
        return -1;
    bool empty = is_empty(&identity);
    if (empty && make_room(db, empty, st) != 0)
        return -1;

    /* With a WAL, NORMAL keeps every commit if a process dies.  A power cut may undo the newest
     * commits as a whole, whose trials a search measures again.  FULL would wait for the disk
     * after each trial. */
    result = enter_wal(db->handle);
    if (result == SQLITE_OK)
        result = sqlite3_exec(db->handle, "PRAGMA synchronous = NORMAL; PRAGMA foreign_keys = ON",
                              NULL, NULL, NULL);
    if (result != SQLITE_OK)
        return db_fail(db->handle, db->path, result, st);
    if (identity.version < schema_version && schema_migrate(db->handle, db->path, schema_migrations,
                                                            SCHEMA_FIRST, schema_version, st) != 0)
        return -1;
    return empty ? 0 : make_room(db, empty, st);
}

int db_open(const char *path, enum db_mode mode, struct db **out, struct status *st)
{
    *out = NULL;
    struct db *db = mem_alloc(1, sizeof(*db));
    db->path = db_place(path);
    if (check_path(db->path, mode, st) != 0 ||
        (mode == DB_READ ? open_read(db, st) : open_write(db, st)) != 0) {
        db_close(db);
        return -1;
    }
    *out = db;
    return 0;
}

int db_open_scratch(struct db **out, struct status *st)
{
    *out = NULL;
    struct db *db = mem_alloc(1, sizeof(*db));
    db->path = mem_strdup("scratch");
    int result =
        sqlite3_open_v2("", &db->handle, SQLITE_OPEN_READWRITE | SQLITE_OPEN_NOMUTEX, NULL);
    if (result == SQLITE_OK)
        result = sqlite3_extended_result_codes(db->handle, 1);
    if (result != SQLITE_OK)
        db_fail(db->handle, db->path, result, st);
    if (result != SQLITE_OK || schema_migrate(db->handle, db->path, schema_migrations, SCHEMA_FIRST,
                                              schema_version, st) != 0) {
        db_close(db);
        return -1;
    }
    *out = db;
    return 0;
}

void db_close(struct db *db)
{
    if (db == NULL)
        return;
    for (int i = 0; i < SQL_COUNT; i++) {
        sqlite3_finalize(db->statements[i]);
        free((void *)db->rules[i]);
    }
    sqlite3_close(db->handle);
    free(db->path);
    free(db->file);
    free(db);
}

const char *db_path(const struct db *db)
{
    return db->path;
}

void db_set_precision(struct db *db, unsigned precision)
{
    db->precision = (int)precision;
}

void db_listen(struct db *db, struct listener listener)
{
    db->listener = listener;
}
