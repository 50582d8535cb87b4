/* What the files of db/ share: the connection, its cached statements, and the migrations. */
#pragma once

#include "db/db.h"

#include <sqlite3.h>

/* DB_APPLICATION_ID: "FusP", the application_id that marks a fuseplan database. */
enum { DB_APPLICATION_ID = 0x46757350, DB_BUSY_MS = 5000 };

/* ---- statements: prepared when first used, kept until the database is closed ----------------- */

enum db_statement {
#define X(id, sql) SQL_##id,
#include "db/statements_int.h"
#undef X
    SQL_COUNT
};

struct row_rule; /* rows_int.h */

struct db {
    sqlite3 *handle;
    char *path; /* as it was named */
    char *file; /* the same without links, which is what SQLite opens */
    sqlite3_stmt *statements[SQL_COUNT];
    const struct row_rule **rules[SQL_COUNT]; /* of the statements' columns, owned */
    struct listener listener;
    int precision; /* of the plans that are read */
};

enum { MOVED_PER_STEP = 1024 }; /* trials for each that the listener is told of */

/* ---- sql.c: running statements ------------------------------------------------------------------
 *
 * Call query_of, query_<type> for further parameters in order, query_row until it returns 0, and
 * query_end.  A query remembers its first failure, and the next query_row reports it, so that
 * query_of and the binding need no checks. */

struct query {
    struct db *db;
    sqlite3_stmt *stmt;
    const struct row_rule *const *rules;
    int bound, result;
};

struct query query_start(struct db *db, enum db_statement id); /* without parameters so far */

/* With the parameters as printf() would take them: %d, %jd of an int64_t, %g and %s. */
struct query query_of(struct db *db, enum db_statement id, const char *types, ...)
    PRINTF_LIKE(3, 4);
void query_int(struct query *q, int64_t value);
void query_real(struct query *q, double value); /* NaN: NULL */
void query_text(struct query *q,
                const char *value); /* null: ""; borrowed until query_end.  What is
                                       no UTF-8 or a control character is escaped */
void query_null(struct query *q);
void query_bytes(struct query *q, const char *text); /* as it is, for ROW_BYTES; borrowed */

/* 1: a row is there, and its values are what rows.c allows; 0: no more; -1: failed. */
int query_row(struct query *q, struct status *st);
void query_end(struct query *q);

/* A local query that ends where its scope does: SCOPED_QUERY q = query_of(db, SQL_INFO); */
#define SCOPED_QUERY SCOPED_BY(query_end) struct query

/* Runs a statement to its end and ends the query; 0 or -1. */
int query_run(struct query *q, struct status *st);
int query_run_of(struct db *db, enum db_statement id, struct status *st, const char *types, ...)
    PRINTF_LIKE(4, 5);

/* Reads the first column of the first row and ends the query; 1, 0 or -1 as query_row. */
int query_one_int(struct query *q, int64_t *out, struct status *st);
int query_one_int_of(struct db *db, enum db_statement id, int64_t *out, struct status *st,
                     const char *types, ...) PRINTF_LIKE(5, 6);

/* Columns of the current row; texts live until the next query_row. */
int64_t column_int(const struct query *q, int column);
double column_real(const struct query *q, int column); /* NULL: NaN */
const char *column_text(const struct query *q, int column);

int db_begin_read(struct db *db, struct status *st);
int db_begin_write(struct db *db, struct status *st);

/* Commits if result is 0, else rolls back.  Returns 0 if it has committed, else -1. */
int db_end(struct db *db, int result, struct status *st);

/* Puts what SQLite reported into st; returns -1.  result: its (extended) result code. */
int db_fail(sqlite3 *handle, const char *path, int result, struct status *st);

/* ---- pages.c: checksums of pages ------------------------------------------------------------- */

enum { PAGE_SUM_BYTES = 8 }; /* at the end of each page */

/* The name of the layer that opens files with checksums; other files it opens as SQLite does. */
const char *pages_layer(void);

/* The number, from 1, of the last page read that did not match its checksum; 0: none. */
int64_t pages_bad(sqlite3 *handle);

/* Whether the last file that SQLite wanted to make, such as the -shm, found no space or no inode.
 */
bool pages_no_room(void);

/* The first page of the file behind `page` that does not match its checksum, in use or not; 0:
 * none.  SQLite itself reads no free pages. */
int64_t pages_next_bad(sqlite3 *handle, int64_t page);

/* ---- schema.c: forward-only migrations ------------------------------------------------------- */

/* The first makes the version SCHEMA_FIRST, which is never left like this, and each further one
 * takes a database to the next version.  SCHEMA_OLDEST is the oldest one that is read. */
enum { SCHEMA_FIRST = 9, SCHEMA_OLDEST = 10 };
extern const char *const schema_migrations[];
extern const int schema_version; /* that the last one makes */

/* Brings an empty database, or one of the version `first` or later, which migrations[0] makes, to
 * the version `last` in one transaction, or leaves it as it was. */
int schema_migrate(sqlite3 *handle, const char *path, const char *const *migrations, int first,
                   int last, struct status *st);

/* ---- best.c ---------------------------------------------------------------------------------- */

/* db_best() without the choices and the counts, within the caller's transaction: fills *out, which
 * the caller releases, and the trial's id; 1, 0 or -1 as query_row. */
int db_winner(struct db *db, int64_t study, struct db_best *out, int64_t *trial, struct status *st);

/* ---- study.c --------------------------------------------------------------------------------- */

/* db_study() within the caller's transaction.  The earlier of two times of creation stays. */
int db_study_put(struct db *db, const struct db_workload *w, const struct db_target *t,
                 const char *protocol, const char *created_utc, int64_t *study, struct status *st);

/* ---- list.c ---------------------------------------------------------------------------------- */

/* db_list() without the best plans, within the caller's transaction.  row() may use db, but not
 * call db_studies(); its result other than 0 ends the walk as a failure. */
typedef int db_studies_row(void *ctx, struct db_listed *l, struct status *st);
int db_studies(struct db *db, db_studies_row *row, void *ctx, struct status *st);

/* ---- trial.c --------------------------------------------------------------------------------- */

/* Reads a trial's choices and ends the query, whose columns are first_op, last_op, impl, knobs and,
 * if ms is not null, the segment's time for ms.  Returns their number, 1..OP_COUNT, or -1.
 * STATUS_DATABASE if the database is damaged: the segments do not ascend.  Free the texts with
 * db_choices_release(). */
int db_choices_read(struct query *q, struct db_choice out[OP_COUNT], double *ms, struct status *st);
void db_choices_release(struct db_choice *choices, int count);

/* db_choices_read() of the trial that is the current row of SQL_TRIALS. */
int db_choices_of(const struct query *q, enum db_trial_kind kind, struct db_choice out[OP_COUNT],
                  struct status *st);

/* Reads a row of SQL_TRIALS, without choices and samples; refuses values that contradict each
 * other. */
int db_trial_of(const struct query *q, enum db_trial_kind kind, struct db_trial *out,
                struct status *st);

/* What of a trial contradicts itself, as "no median, but it is ok"; null: nothing. */
const char *db_trial_contradiction(const struct db_trial *t);

/* Stores what a trial refers to: its plan and its schedules, whose ids it gives in the order of the
 * choices; and then the trial itself, unless the study has one of this plan or schedule.  Both
 * within the caller's transaction. */
int db_trial_prepare(struct db *db, const struct db_trial *t, int64_t schedules[OP_COUNT],
                     struct status *st);
int db_trial_insert_as(struct db *db, int64_t study, const struct db_trial *t,
                       const int64_t schedules[OP_COUNT], struct status *st);

extern const char *const db_trial_kind_names[];

/* ---- failure.c ------------------------------------------------------------------------------- */

/* Moves the stored failure, if any, of a trial's plan or schedule to the table failure, where it
 * makes room for the trial.  A final displaces nothing. */
int db_failure_displace(struct db *db, int64_t study, const struct db_trial *t, int64_t schedule,
                        struct status *st);

/* ---- rows.c ---------------------------------------------------------------------------------- */

/* Whether a text has the form of a stored time: 2026-01-31T12:34:56.789Z. */
bool db_is_utc(const char *text);

/* ---- search.c -------------------------------------------------------------------------------- */

/* Reads a row of SQL_SEARCHES. */
struct db_search db_search_of(const struct query *q);

/* ---- put.c: results of another database or of a text, within the caller's transaction ----------
 */

/* STATUS_DATABASE if a search of this id belongs to another study. */
int db_search_put(struct db *db, int64_t study, const struct db_search *s, struct status *st);

/* Puts a trial, and counts what came of it: see struct db_moved. */
int db_trial_put(struct db *db, int64_t study, const struct db_trial *t, struct db_moved *moved,
                 struct status *st);

/* ---- network.c: file systems that hosts share ------------------------------------------------ */

/* The network file system that holds a path; null: none that is known to be one.  Hosts share no
 * memory for the index of a WAL there (https://sqlite.org/wal.html).  FUSE may be local. */
const char *db_network(const char *path);

/* STATUS_DATABASE if the directory of a database to write is on one. */
int db_refuse_network(const char *path, const char *dir, struct status *st);
