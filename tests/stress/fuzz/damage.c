#include "tests/stress/fuzz/damage.h"

#include "db/db_int.h"

#include <stdlib.h>
#include <string.h>

enum { PAGE = 4096, TEXT_MOST = 64 };

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

void damage_schema(const char *path)
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
    struct buf sql;
    buf_init(&sql);
    buf_addf(&sql, "UPDATE OR IGNORE \"%s\" SET \"%s\" = %s%s", table, column,
             what < 128 ? values[what % ARRAY_LEN(values)] : "?1",
             where % 2 == 0 ? "" : " WHERE rowid % 3 = ?2");
    if (sqlite3_prepare_v2(handle, sql.ptr, -1, &stmt, NULL) == SQLITE_OK) {
        sqlite3_bind_int(stmt, 2, (int)(where / 2 % 3));
        bind_value(stmt, what, in);
        sqlite3_step(stmt);
    }
    sqlite3_finalize(stmt);
    buf_release(&sql);
}

static void change_table(sqlite3 *handle, const char *change, const char *table)
{
    struct buf sql;
    buf_init(&sql);
    for (const char *c = change; *c != '\0'; c++)
        if (*c == '@')
            buf_adds(&sql, table);
        else
            buf_add(&sql, c, 1);
    sqlite3_exec(handle, sql.ptr, NULL, NULL, NULL);
    buf_release(&sql);
}

void damage_rows(const char *path, struct fuzz_bytes *in, int most)
{
    sqlite3 *handle = open_raw(path);
    const struct names *columns = columns_once(handle);
    for (int i = 0; i < most && in->left > 0; i++) {
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

void damage_bytes(struct buf *file, struct fuzz_bytes *in, int most, bool seal)
{
    for (int i = 0; i < most && in->left > 0 && file->len > PAGE; i++) {
        size_t at = fuzz_take(in, 3) % file->len, page = at / PAGE * PAGE;
        file->ptr[at] ^= (char)fuzz_take(in, 1);
        if (seal && page + PAGE <= file->len) /* zeros stand for no checksum */
            memset(file->ptr + page + PAGE - PAGE_SUM_BYTES, 0, PAGE_SUM_BYTES);
    }
}
