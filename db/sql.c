#include "db/rows_int.h"

#include <assert.h>
#include <sys/stat.h>
#include <unistd.h>

static const char *const sql_text[SQL_COUNT] = {
#define X(id, sql) [SQL_##id] = (sql),
#include "db/statements_int.h"
#undef X
};

static_assert(DB_BUSY_MS == 5000, "the message of SQLITE_BUSY says 5 s");

/* What a failure means to the user, and what the user can do. */
static const struct {
    int code;
    const char *means;
} meanings[] = {
    {SQLITE_BUSY, "is locked by another process; waited 5 s: let that process finish or stop it, "
                  "then try again"},
    {SQLITE_FULL, "cannot grow: free disk space and inodes, or keep the database elsewhere with "
                  "--db or FUSEPLAN_DB"},
    {SQLITE_READONLY, "cannot be written: change its permissions or its directory's, or name "
                      "another file with --db or FUSEPLAN_DB"},
    {SQLITE_PERM, "cannot be opened: change its permissions, or name another file with --db or "
                  "FUSEPLAN_DB"},
    {SQLITE_CANTOPEN, "cannot be opened: check the permissions of the file and its directory, or "
                      "name another file with --db or FUSEPLAN_DB"},
    {SQLITE_IOERR_DATA, /* of pages.c; before the other failures to read */
     "is damaged: move it away to start afresh; 'sqlite3 FILE .dump' saves what can be read; "
     "if another program wrote to it, 'sqlite3 FILE VACUUM' renews the checksums"},
    {SQLITE_IOERR, "cannot be read or written: check the disk, its free space and the limits on "
                   "file sizes, or name another file with --db or FUSEPLAN_DB"},
    {SQLITE_NOTADB, "is not a fuseplan database: name another file with --db or FUSEPLAN_DB"},
    {SQLITE_CORRUPT,
     "is damaged: move it away to start afresh; 'sqlite3 FILE .dump' saves what can "
     "be read"},
};

static const char *meaning_of(int result)
{
    for (size_t i = 0; i < ARRAY_LEN(meanings); i++)
        if (meanings[i].code == result ||
            meanings[i].code == (result & 0xff)) /* the primary code of an extended one */
            return meanings[i].means;
    return "cannot be used";
}

/* What else the file is, if that is known: "; it holds results as text: ...". */
static void add_kind(const char *path, struct buf *out)
{
    enum { LINE_MOST = 256 };
    char line[LINE_MOST];
    const char *what = NULL;
    int fd = file_open(path, STATUS_IGNORED);
    ssize_t len = fd >= 0 ? read(fd, line, sizeof(line)) : 0;
    if (fd >= 0)
        close(fd);
    if (len > 0 && file_kind(line, (size_t)len, &what) != FILE_DATABASE && what != NULL)
        buf_addf(out, "; %s", what);
}

/* A pipe in the place of one of SQLite's own files, which pages.c does not open; appends its path.
 */
static bool find_pipe(sqlite3 *handle, struct buf *path)
{
    static const char *const suffixes[] = {"-journal", "-wal", "-shm"};
    const char *file = handle != NULL ? sqlite3_db_filename(handle, "main") : NULL;
    struct stat info;
    for (size_t i = 0; i < ARRAY_LEN(suffixes) && file != NULL; i++) {
        buf_reset(path);
        buf_addf(path, "%s%s", file, suffixes[i]);
        if (lstat(path->ptr, &info) == 0 && S_ISFIFO(info.st_mode))
            return true;
    }
    return false;
}

int db_fail(sqlite3 *handle, const char *path, int result, struct status *st)
{
    int error = handle != NULL ? sqlite3_system_errno(handle) : 0;
    if (result == SQLITE_IOERR_DATA)
        return status_set(st, STATUS_DATABASE,
                          "database '%s' %s (page %lld does not match its checksum)", path,
                          meaning_of(result), (long long)pages_bad(handle));
    if ((result & 0xff) == SQLITE_CANTOPEN && pages_no_room())
        error = ENOSPC;
    bool system =
        error != 0 && ((result & 0xff) == SQLITE_IOERR || (result & 0xff) == SQLITE_CANTOPEN);
    SCOPED_BUF pipe = BUF_INIT;
    if ((result & 0xff) == SQLITE_CANTOPEN && find_pipe(handle, &pipe))
        status_set(st, STATUS_DATABASE,
                   "database '%s' cannot be opened: '%s' is a pipe, where SQLite keeps a file: "
                   "remove it, or name another file with --db or FUSEPLAN_DB",
                   path, pipe.ptr);
    const char *detail = system           ? strerror(error)
                         : handle != NULL ? sqlite3_errmsg(handle)
                                          : sqlite3_errstr(result);
    bool full = system && (error == ENOSPC || error == EDQUOT);
    SCOPED_BUF kind = BUF_INIT;
    if (result == SQLITE_NOTADB)
        add_kind(path, &kind);
    return status_set(st, STATUS_DATABASE, "database '%s' %s (%s)%s", path,
                      meaning_of(full ? SQLITE_FULL : result), detail,
                      kind.len > 0 ? kind.ptr : "");
}

struct query query_start(struct db *db, enum db_statement id)
{
    sqlite3_stmt **stmt = &db->statements[id];
    int result = SQLITE_OK;
    if (*stmt == NULL)
        result =
            sqlite3_prepare_v3(db->handle, sql_text[id], -1, SQLITE_PREPARE_PERSISTENT, stmt, NULL);
    if (*stmt != NULL && db->rules[id] == NULL)
        db->rules[id] = row_rules_of(*stmt);
    return (struct query){.db = db, .stmt = *stmt, .rules = db->rules[id], .result = result};
}

/* Keeps the first failure: after a failed prepare every bind fails too, as a misuse. */
static void bound(struct query *q, int result)
{
    if (q->result == SQLITE_OK)
        q->result = result;
}

void query_int(struct query *q, int64_t value)
{
    bound(q, sqlite3_bind_int64(q->stmt, ++q->bound, value));
}

void query_real(struct query *q, double value)
{
    bound(q, sqlite3_bind_double(q->stmt, ++q->bound, value));
}

void query_text(struct query *q, const char *value)
{
    int at = ++q->bound;
    if (value == NULL || utf8_is_plain(value)) {
        bound(q, sqlite3_bind_text(q->stmt, at, value != NULL ? value : "", -1, SQLITE_STATIC));
        return;
    }
    SCOPED_BUF escaped = BUF_INIT;
    utf8_escape(value, &escaped);
    bound(q, sqlite3_bind_text(q->stmt, at, escaped.ptr, -1, SQLITE_TRANSIENT));
}

void query_null(struct query *q)
{
    bound(q, sqlite3_bind_null(q->stmt, ++q->bound));
}

void query_bytes(struct query *q, const char *text)
{
    bound(q, sqlite3_bind_text(q->stmt, ++q->bound, text != NULL ? text : "", -1, SQLITE_STATIC));
}

static struct query query_of_v(struct db *db, enum db_statement id, const char *types, va_list args)
{
    struct query q = query_start(db, id);
    for (const char *type = types; (type = strchr(type, '%')) != NULL; type++)
        switch (type[1]) {
        case 'd':
            query_int(&q, va_arg(args, int));
            break;
        case 'j':
            query_int(&q, va_arg(args, int64_t));
            break;
        case 'g':
            query_real(&q, va_arg(args, double));
            break;
        default:
            query_text(&q, va_arg(args, const char *));
        }
    return q;
}

struct query query_of(struct db *db, enum db_statement id, const char *types, ...)
{
    va_list args;
    va_start(args, types);
    struct query q = query_of_v(db, id, types, args);
    va_end(args);
    return q;
}

static int check_row(const struct query *q, struct status *st)
{
    SCOPED_BUF why = BUF_INIT;
    return row_fits(q->rules, q->stmt, &why) ? 0 : row_refused(q->db, why.ptr, st);
}

int query_row(struct query *q, struct status *st)
{
    if (q->result == SQLITE_OK) {
        int result = sqlite3_step(q->stmt);
        if (result == SQLITE_ROW)
            return check_row(q, st) == 0 ? 1 : -1;
        if (result == SQLITE_DONE)
            return 0;
        q->result = result;
    }
    return db_fail(q->db->handle, q->db->path, q->result, st);
}

void query_end(struct query *q)
{
    if (q->stmt == NULL)
        return;
    sqlite3_reset(q->stmt);
    sqlite3_clear_bindings(q->stmt);
}

int query_run(struct query *q, struct status *st)
{
    int row;
    while ((row = query_row(q, st)) > 0)
        ;
    query_end(q);
    return row;
}

int query_run_of(struct db *db, enum db_statement id, struct status *st, const char *types, ...)
{
    va_list args;
    va_start(args, types);
    struct query q = query_of_v(db, id, types, args);
    va_end(args);
    return query_run(&q, st);
}

int query_one_int(struct query *q, int64_t *out, struct status *st)
{
    int row = query_row(q, st);
    if (row > 0)
        *out = column_int(q, 0);
    query_end(q);
    return row;
}

int query_one_int_of(struct db *db, enum db_statement id, int64_t *out, struct status *st,
                     const char *types, ...)
{
    va_list args;
    va_start(args, types);
    struct query q = query_of_v(db, id, types, args);
    va_end(args);
    return query_one_int(&q, out, st);
}

int64_t column_int(const struct query *q, int column)
{
    return sqlite3_column_int64(q->stmt, column);
}

double column_real(const struct query *q, int column)
{
    return sqlite3_column_type(q->stmt, column) == SQLITE_NULL
               ? NAN
               : sqlite3_column_double(q->stmt, column);
}

const char *column_text(const struct query *q, int column)
{
    const unsigned char *text = sqlite3_column_text(q->stmt, column);
    return text != NULL ? (const char *)text : "";
}

int db_begin_read(struct db *db, struct status *st)
{
    struct query q = query_start(db, SQL_BEGIN_READ);
    return query_run(&q, st);
}

int db_begin_write(struct db *db, struct status *st)
{
    struct query q = query_start(db, SQL_BEGIN_WRITE);
    return query_run(&q, st);
}

int db_end(struct db *db, int result, struct status *st)
{
    if (result == 0) {
        struct query commit = query_start(db, SQL_COMMIT);
        result = query_run(&commit, st);
    }
    if (sqlite3_get_autocommit(db->handle) == 0) { /* some failures roll back by themselves */
        struct query rollback = query_start(db, SQL_ROLLBACK);
        query_run(&rollback, STATUS_IGNORED);
    }
    return result;
}
