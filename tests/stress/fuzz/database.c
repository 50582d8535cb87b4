/* A database that another wrote: rows that hold anything, or pages with changed bytes, with or
 * without checksums that say so.  Every reader must refuse it or read it. */
#include "db/db_int.h"
#include "tests/stress/fuzz/fuzz.h"

#include <unistd.h>

/* ---- the database before --------------------------------------------------------------------- */

static void make_database(const char *path)
{
    static const char *const results = FUZZ_CORPUS "/import/results";
    SCOPED_BY(db_close_at) struct db *db;
    struct db_moved moved;
    struct status st = STATUS_INIT;
    const struct db_model model = {
        .name = "plans", .quantile = 0.1, .rows = "0101010101010101 1.5\n"};
    fuzz_require(db_open(path, DB_WRITE, &db, &st) == 0 &&
                     db_import(db, &results, 1, &moved, &st) == 0 && moved.added > 3 &&
                     db_model_put(db, &model, "{}", &st) == 0,
                 "a database can be made");
}

/* ---- damage ---------------------------------------------------------------------------------- */

enum { PAGE = 4096, TEXT_MOST = 64, CHANGES_MOST = 16 };

/* What a column may hold in place of what it should. */
static const char *const values[] = {"NULL",
                                     "-1",
                                     "0",
                                     "-100",
                                     "99",
                                     "65536",
                                     "4294967296",
                                     "9223372036854775807",
                                     "-9223372036854775808",
                                     "9e999",
                                     "-9e999",
                                     "''",
                                     "'x'",
                                     "CAST(x'ff1b5b' AS TEXT)",
                                     "hex(zeroblob(5000))",
                                     "'{\"baselines\":[99999999999,-1,\"x\"]}'",
                                     "'[[[[[[[['",
                                     "x'00ff'"};

/* @: a table. */
static const char *const changes[] = {
    "DELETE FROM @",
    "DELETE FROM @ WHERE rowid = 1",
    "DROP TABLE @",
    "ALTER TABLE @ RENAME TO gone",
    "ALTER TABLE @ RENAME TO gone; CREATE VIEW @ AS SELECT * FROM gone",
    "ALTER TABLE @ RENAME TO gone; CREATE VIEW @ AS SELECT * FROM @",
    "CREATE TRIGGER t AFTER INSERT ON @ BEGIN DELETE FROM trial; END",
    "CREATE TRIGGER t BEFORE UPDATE ON @ BEGIN SELECT RAISE(ABORT, 'no'); END",
    "CREATE INDEX i ON @ (rowid + 1)",
    "CREATE TABLE more AS SELECT * FROM @",
    "PRAGMA user_version = 1",
    "PRAGMA user_version = 2000000000",
    "PRAGMA application_id = 7"};

static sqlite3 *open_raw(const char *path)
{
    sqlite3 *handle;
    fuzz_require(sqlite3_open_v2(path, &handle, SQLITE_OPEN_READWRITE, pages_layer()) == SQLITE_OK,
                 "the database can be opened");
    sqlite3_exec(handle,
                 "PRAGMA foreign_keys = OFF; PRAGMA ignore_check_constraints = ON;"
                 "PRAGMA synchronous = OFF; PRAGMA journal_mode = OFF",
                 NULL, NULL, NULL);
    return handle;
}

/* Makes the tables of a database take any value in any column, as another program's might. */
static void damage_schema(const char *path)
{
    sqlite3 *handle = open_raw(path);
    fuzz_require(sqlite3_exec(handle,
                              "PRAGMA writable_schema = ON;"
                              "UPDATE sqlite_schema SET sql = replace(sql, ') STRICT', ')')",
                              NULL, NULL, NULL) == SQLITE_OK,
                 "the schema can be changed");
    sqlite3_close(handle);
}

/* The tables and columns of the schema, each "table" and "column" in turn. */
static const struct names *columns_once(sqlite3 *handle)
{
    static struct names all;
    sqlite3_stmt *stmt;
    if (all.count > 0)
        return &all;
    sqlite3_prepare_v2(handle,
                       "SELECT t.name, c.name FROM pragma_table_list AS t,"
                       " pragma_table_info(t.name) AS c WHERE t.schema = 'main'"
                       " AND t.name NOT LIKE 'sqlite%' ORDER BY 1, 2",
                       -1, &stmt, NULL);
    while (sqlite3_step(stmt) == SQLITE_ROW)
        for (int i = 0; i < 2; i++)
            names_add(&all, (const char *)sqlite3_column_text(stmt, i));
    sqlite3_finalize(stmt);
    return &all;
}

/* Binds a whole number, a real one, a text or a blob. */
static void bind_value(sqlite3_stmt *stmt, uint32_t kind, struct fuzz_bytes *in)
{
    uint64_t number = fuzz_take(in, 4);
    double real;
    if (kind < 160) {
        sqlite3_bind_int64(stmt, 1, (int64_t)number - 1000);
    } else if (kind < 192) {
        number |= (uint64_t)fuzz_take(in, 4) << 32;
        memcpy(&real, &number, sizeof(real));
        sqlite3_bind_double(stmt, 1, real);
    } else {
        size_t len = number % TEXT_MOST;
        len = len < in->left ? len : in->left;
        if (kind < 224)
            sqlite3_bind_text(stmt, 1, (const char *)in->at, (int)len, SQLITE_TRANSIENT);
        else
            sqlite3_bind_blob(stmt, 1, in->at, (int)len, SQLITE_TRANSIENT);
        in->at += len;
        in->left -= len;
    }
}

/* Sets a column of some rows or of all. */
static void change_value(sqlite3 *handle, const char *table, const char *column,
                         struct fuzz_bytes *in)
{
    uint32_t what = fuzz_take(in, 1), where = fuzz_take(in, 1);
    sqlite3_stmt *stmt = NULL;
    SCOPED_BUF sql = BUF_INIT;
    buf_addf(&sql, "UPDATE OR IGNORE \"%s\" SET \"%s\" = %s%s", table, column,
             what < 128 ? values[what % ARRAY_LEN(values)] : "?1",
             where % 2 == 0 ? "" : " WHERE rowid % 3 = ?2");
    if (sqlite3_prepare_v2(handle, sql.ptr, -1, &stmt, NULL) == SQLITE_OK) {
        sqlite3_bind_int(stmt, 2, (int)(where / 2 % 3));
        bind_value(stmt, what, in);
        sqlite3_step(stmt);
    }
    sqlite3_finalize(stmt);
}

static void change_table(sqlite3 *handle, const char *change, const char *table)
{
    SCOPED_BUF sql = BUF_INIT;
    for (const char *c = change; *c != '\0'; c++)
        if (*c == '@')
            buf_adds(&sql, table);
        else
            buf_add(&sql, c, 1);
    sqlite3_exec(handle, sql.ptr, NULL, NULL, NULL);
}

/* Changes values, and now and then a table, until the bytes end.  Checksums of pages are those of
 * the changed pages. */
static void damage_rows(const char *path, struct fuzz_bytes *in)
{
    sqlite3 *handle = open_raw(path);
    const struct names *columns = columns_once(handle);
    for (int i = 0; i < CHANGES_MOST && in->left > 0; i++) {
        uint32_t kind = fuzz_take(in, 1), at = fuzz_take(in, 1) % (uint32_t)(columns->count / 2);
        const char *table = columns->items[2 * at];
        if (kind < 224) {
            change_value(handle, table, columns->items[2 * at + 1], in);
            continue;
        }
        change_table(handle, changes[kind % ARRAY_LEN(changes)], table);
    }
    sqlite3_close(handle);
}

/* Changes bytes of a database in memory.  seal: nothing about a page says that it was changed. */
static void damage_bytes(struct buf *file, struct fuzz_bytes *in, bool seal)
{
    for (int i = 0; i < CHANGES_MOST && in->left > 0 && file->len > PAGE; i++) {
        size_t at = fuzz_take(in, 3) % file->len, page = at / PAGE * PAGE;
        file->ptr[at] ^= (char)fuzz_take(in, 1);
        if (seal && page + PAGE <= file->len) /* zeros stand for no checksum */
            memset(file->ptr + page + PAGE - PAGE_SUM_BYTES, 0, PAGE_SUM_BYTES);
    }
}

/* ---- readers --------------------------------------------------------------------------------- */

static int see_trial(void *ctx, const struct db_trial *t)
{
    fuzz_require(t->value >= -1 && t->value <= VALUE_MAX && t->choice_count <= OP_COUNT &&
                     t->sample_count >= 0,
                 "a trial that was read is within its bounds");
    for (int i = 0; i < t->choice_count; i++)
        fuzz_require(t->choices[i].segment.first >= 0 && t->choices[i].segment.last < OP_COUNT &&
                         t->choices[i].impl != NULL,
                     "so are its choices");
    return 0;
}

static void see_listed(void *ctx, const struct db_listed *l)
{
    fuzz_require(l->value >= -1 && l->value <= VALUE_MAX && l->workload.text != NULL,
                 "a study that was read is one");
}

static void see_workload(void *ctx, const struct db_workload *w, const char *kind)
{
    fuzz_require(w->text != NULL && kind != NULL, "so is a workload");
}

static void see_search(void *ctx, const struct db_search *s)
{
    fuzz_require(s->id != NULL && s->options != NULL, "so is a search");
}

static void see_value(void *ctx, int value)
{
    fuzz_require(value >= 0 && value <= VALUE_MAX, "so is a value");
}

static void see_problem(void *ctx, const char *problem)
{
    fuzz_require(utf8_is_plain(problem), "a problem can be printed");
}

static void read_all(struct db *db, int64_t study)
{
    struct db_best best;
    struct db_time time;
    struct db_info info;
    struct db_model model;
    SCOPED_BUF text = BUF_INIT, rows = BUF_INIT;
    int problems;
    for (int kind = DB_TRIAL_SEGMENT; kind <= DB_TRIAL_FINAL; kind++)
        db_trials(db, study, (enum db_trial_kind)kind, see_trial, NULL, STATUS_IGNORED);
    if (db_best(db, study, &best, STATUS_IGNORED) == 0)
        db_best_release(&best);
    db_time(db, study, 36507, "9b38128c", &time, STATUS_IGNORED);
    db_time_release(&time);
    db_list(db, see_listed, NULL, STATUS_IGNORED);
    db_workloads(db, see_workload, NULL, STATUS_IGNORED);
    db_searches(db, study, see_search, NULL, STATUS_IGNORED);
    db_plan_values(db, study, see_value, NULL, STATUS_IGNORED);
    if (db_model_get(db, "plans", &rows, &model, STATUS_IGNORED) == 0)
        fuzz_require(strlen(model.rows) == rows.len, "so is a model");
    if (db_export(db, &text, STATUS_IGNORED) == 0)
        fuzz_require(memchr(text.ptr, 0x1b, text.len) == NULL, "no escape leaves the database");
    db_compared(db, study, &text, STATUS_IGNORED);
    db_info(db, &info, STATUS_IGNORED);
    db_check(db, see_problem, NULL, &problems, STATUS_IGNORED);
}

/* ---- an input -------------------------------------------------------------------------------- */

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const char path[] = "t.db";
    static struct buf whole;
    struct fuzz_bytes in = {data, size};
    SCOPED_BUF file = BUF_INIT;
    struct db *db;
    struct status st = STATUS_INIT;
    if (fuzz_enter_dir()) {
        make_database(path);
        damage_schema(path);
        buf_init(&whole);
        fuzz_require(file_read(path, 0, &whole, &st) == 0, "it can be read");
    }
    uint32_t kind = fuzz_take(&in, 1);
    buf_add(&file, whole.ptr, whole.len);
    if (kind >= 128)
        damage_bytes(&file, &in, kind >= 192);
    fuzz_write(path, file.ptr, file.len);
    if (kind < 128)
        damage_rows(path, &in);
    if (db_open(path, DB_READ, &db, &st) == 0) {
        read_all(db, 1);
        db_close(db);
    }
    return 0;
}
