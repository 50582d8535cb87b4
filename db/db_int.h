/* What the files of db/ share: the connection, its cached statements, and the migrations. */
#ifndef FUSEPLAN_DB_INT_H
#define FUSEPLAN_DB_INT_H

#include "db/db.h"

#include <sqlite3.h>

/* "FusP": PRAGMA application_id, by which a fuseplan database is told from others. */
enum { DB_APPLICATION_ID = 0x46757350, DB_BUSY_MS = 5000 };

/* ---- statements: prepared when first used, kept until the database is closed ----------------- */

enum db_statement {
#define X(id, sql) SQL_##id,
#include "db/statements_int.h"
#undef X
    SQL_COUNT
};

struct db {
    sqlite3 *handle;
    char *path;
    sqlite3_stmt *statements[SQL_COUNT];
};

/* ---- sql.c: running statements ------------------------------------------------------------------
 *
 * query_start, one query_<type> a parameter in order, query_row until it returns 0, query_end.  A
 * failure is remembered: the next query_row returns it, so that binding needs no checks. */

struct query {
    struct db *db;
    sqlite3_stmt *stmt;
    int bound, result;
};

struct query query_start(struct db *db, enum db_statement id);
void query_int(struct query *q, int64_t value);
void query_real(struct query *q, double value);      /* NaN: NULL */
void query_text(struct query *q, const char *value); /* null: ""; borrowed until query_end */
void query_null(struct query *q);
void query_blob(struct query *q, const void *bytes, size_t len);

/* 1: a row is there; 0: no more; -1: failed. */
int query_row(struct query *q, struct status *st);
void query_end(struct query *q);

/* Runs to the end and ends it; -1 on failure. */
int query_run(struct query *q, struct status *st);

/* The first column of the first row, then ends; 1, 0 or -1 as query_row. */
int query_one_int(struct query *q, int64_t *out, struct status *st);

/* Columns of the current row; texts live until the next query_row. */
int64_t column_int(const struct query *q, int column);
double column_real(const struct query *q, int column); /* NULL: NaN */
const char *column_text(const struct query *q, int column);

int db_begin_read(struct db *db, struct status *st);
int db_begin_write(struct db *db, struct status *st);

/* Commits where result is 0, else rolls back; returns -1 where either failed. */
int db_end(struct db *db, int result, struct status *st);

/* Says in st what SQLite reported; returns -1.  result is its (extended) result code. */
int db_fail(sqlite3 *handle, const char *path, int result, struct status *st);

/* ---- schema.c: forward-only migrations ------------------------------------------------------- */

/* migrations[v] takes a database of version v to version v + 1. */
extern const char *const schema_migrations[];
extern const int schema_version; /* their number */

/* Brings the database to version `count` in one transaction, or leaves it as it was. */
int schema_migrate(sqlite3 *handle, const char *path, const char *const *migrations, int count,
                   struct status *st);

/* ---- trial.c --------------------------------------------------------------------------------- */

/* Reads the rows of a trial's choices, first_op, last_op, impl, knobs in front, to the end and ends
 * the query.  keep() takes each one, at most OP_COUNT; the texts live until it returns.  Returns
 * how many there are, -1 on a failure.  A damaged database, in which they are no segments that
 * follow each other, is STATUS_DATABASE. */
typedef void db_choice_row(void *ctx, int i, const struct db_choice *c, const struct query *q);
int db_choices_read(struct query *q, db_choice_row *keep, void *ctx, struct status *st);

/* db_trial_add without its transaction, for many trials in one. */
int db_trial_insert(struct db *db, int64_t study, const struct db_trial *t, struct status *st);

extern const char *const db_trial_kind_names[];

#endif
