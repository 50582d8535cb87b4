/* What rows may hold: the rules that each value is held against where it is read. */
#pragma once

#include "db/db_int.h"

enum row_type {
    ROW_INT, /* within least..most */
    ROW_INT_OR_NONE,
    ROW_EPS,          /* EPS_MIN..EPS_MAX */
    ROW_REAL_OR_NONE, /* finite, not negative */
    ROW_TIME,         /* finite, above 0 */
    ROW_TIME_OR_NONE,
    ROW_ERROR_OR_NONE, /* not negative; may be infinite */
    ROW_TEXT,          /* UTF-8 without control characters */
    ROW_TEXT_OR_NONE,
    ROW_BYTES, /* text in any encoding */
    ROW_ID_OR_NONE,
    ROW_UTC,
    ROW_UTC_OR_NONE, /* may be empty too */
    ROW_TARGET,
    ROW_KIND,
    ROW_STATUS
};

struct row_rule {
    const char *column, *table;
    enum row_type type;
    int64_t least, most; /* of ROW_INT */
};

/* The rule of a column that a statement gives this name; null: there is none. */
const struct row_rule *row_rule_of(const char *column);

/* Whether a column of numbers takes a value that is to be stored; and what it takes,
 * for messages. */
bool row_takes_integer(const struct row_rule *r, int64_t value);
bool row_takes_real(const struct row_rule *r, double value);
void row_expected(const struct row_rule *r, struct buf *out);

/* The rules of a statement's columns; the caller frees the array. */
const struct row_rule **row_rules_of(sqlite3_stmt *stmt);

/* Whether the statement's current row fits; if not, appends which value does not. */
bool row_fits(const struct row_rule *const *columns, sqlite3_stmt *stmt, struct buf *why);

/* Reports a row that does not fit; returns -1. */
int row_refused(const struct db *db, const char *why, struct status *st);
