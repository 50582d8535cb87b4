/* What each column may hold: a database is data, which another program, a damaged disk or a
 * stranger may have written.  query_row() holds every row of every statement against these rules,
 * and db_check() every row that is stored; so no reader needs to, and a check finds what readers
 * refuse. */
#include "db/rows_int.h"

#include <ctype.h>

enum { ROWS_MAX = 1 << 24 }; /* of samples: more than anyone takes, few enough to be read */

/* In the order of the tables in docs/database.md.  A name of several tables means the same in each;
 * columns that differ are renamed where they are read. */
static const struct row_rule rules[] = {
    {"text", "workload", ROW_TEXT, 0, 0},
    {"batch", "workload", ROW_INT, 1, BATCH_MAX},
    {"seq_len", "workload", ROW_INT, 1, SEQ_LEN_MAX},
    {"heads", "workload", ROW_INT, 1, HEADS_MAX},
    {"head_size", "workload", ROW_INT, 1, HEAD_SIZE_MAX},
    {"ffn", "workload", ROW_INT, 1, FFN_MAX},
    {"layers", "workload", ROW_INT, 1, LAYERS_MAX},
    {"eps", "workload", ROW_EPS, 0, 0},
    {"dtype", "workload", ROW_TEXT, 0, 0},
    {"lengths", "workload", ROW_TEXT, 0, 0},
    {"mask", "workload", ROW_TEXT, 0, 0},
    {"chain", "workload", ROW_TEXT_OR_NONE, 0, 0},
    {"target_kind", "target", ROW_TARGET, 0, 0},
    {"device", "target", ROW_TEXT, 0, 0},
    {"uuid", "target", ROW_TEXT, 0, 0},
    {"capability", "target", ROW_TEXT, 0, 0},
    {"units", "target", ROW_INT, 0, INT32_MAX},
    {"driver", "target", ROW_TEXT, 0, 0},
    {"compiler", "target", ROW_TEXT, 0, 0},
    {"libraries", "target", ROW_TEXT, 0, 0},
    {"study", "study", ROW_INT, 1, INT64_MAX},
    {"protocol", "study", ROW_TEXT, 0, 0},
    {"seed", "study", ROW_INT, INT64_MIN, INT64_MAX},
    {"init", "study", ROW_TEXT, 0, 0},
    {"created_utc", "study", ROW_UTC, 0, 0},
    {"trials", "study", ROW_INT, 0, INT64_MAX},
    {"plans", "study", ROW_INT, 0, INT64_MAX},
    {"newest_utc", "trial", ROW_UTC_OR_NONE, 0, 0},
    {"search", "search", ROW_ID_OR_NONE, 0, 0},
    {"strategy", "search", ROW_TEXT_OR_NONE, 0, 0},
    {"options", "search", ROW_TEXT_OR_NONE, 0, 0},
    {"started_utc", "search", ROW_UTC, 0, 0},
    {"ended_utc", "search", ROW_UTC_OR_NONE, 0, 0},
    {"stopped_by", "search", ROW_TEXT_OR_NONE, 0, 0},
    {"first_op", "segment", ROW_INT, 0, OP_COUNT - 1},
    {"last_op", "segment", ROW_INT, 0, OP_COUNT - 1},
    {"schedule", "schedule", ROW_INT, 1, INT64_MAX},
    {"impl", "schedule", ROW_TEXT, 0, 0},
    {"knobs", "schedule", ROW_TEXT, 0, 0},
    {"plan", "trial", ROW_INT, 0, VALUE_MAX},
    {"its_plan", "trial", ROW_INT_OR_NONE, 0, VALUE_MAX}, /* as its kind demands */
    {"its_schedule", "trial", ROW_INT_OR_NONE, 1, INT64_MAX},
    {"value", "plan", ROW_INT, 0, VALUE_MAX},
    {"segments", "plan", ROW_TEXT, 0, 0},
    {"trial", "trial", ROW_INT, 1, INT64_MAX},
    {"kind", "trial", ROW_KIND, 0, 0},
    {"status", "trial", ROW_STATUS, 0, 0},
    {"reason_code", "trial", ROW_TEXT, 0, 0},
    {"reason", "trial", ROW_TEXT, 0, 0},
    {"median_ms", "trial", ROW_TIME_OR_NONE, 0, 0},
    {"own_ms", "trial", ROW_TIME_OR_NONE, 0, 0},
    {"ci_low_ms", "trial", ROW_REAL_OR_NONE, 0, 0},
    {"ci_high_ms", "trial", ROW_REAL_OR_NONE, 0, 0},
    {"build_s", "trial", ROW_REAL_OR_NONE, 0, 0},
    {"verify_s", "trial", ROW_REAL_OR_NONE, 0, 0},
    {"time_s", "trial", ROW_REAL_OR_NONE, 0, 0},
    {"relative_error", "trial", ROW_ERROR_OR_NONE, 0, 0},
    {"layers_timed", "trial", ROW_INT, 0, LAYERS_MAX},
    {"sample_count", "trial", ROW_INT, 0, ROWS_MAX},
    {"comparison", "trial", ROW_TEXT, 0, 0},
    {"resources", "trial", ROW_TEXT, 0, 0},
    {"conditions", "trial", ROW_TEXT, 0, 0},
    {"stored_utc", "trial", ROW_UTC, 0, 0},
    {"packed", "trial", ROW_INT, 0, 1},
    {"precision", "trial", ROW_INT, 0, GEMM_ALL},
    {"round", "sample", ROW_INT, 0, ROWS_MAX},
    {"ms", "sample", ROW_TIME, 0, 0},
    {"model", "model", ROW_INT, 1, INT64_MAX},
    {"name", "model", ROW_TEXT, 0, 0},
    {"features", "model", ROW_INT, 0, INT32_MAX},
    {"quantile", "model", ROW_REAL_OR_NONE, 0, 0},
    {"rows", "model", ROW_BYTES, 0, 0},
    {"report", "model", ROW_TEXT, 0, 0},
    {"trained_utc", "model", ROW_UTC, 0, 0},
};

/* What is expected, for messages; of ROW_INT the range says more. */
static const struct {
    const char *expected;
    int type;  /* SQLite's */
    bool none; /* null is allowed */
} types[] = {
    [ROW_INT] = {"a whole number", SQLITE_INTEGER, false},
    [ROW_INT_OR_NONE] = {"a whole number", SQLITE_INTEGER, true},
    [ROW_EPS] = {"a number from 1e-37 to 1", SQLITE_FLOAT, false},
    [ROW_REAL_OR_NONE] = {"a finite number that is not negative", SQLITE_FLOAT, true},
    [ROW_TIME] = {"a finite time above 0", SQLITE_FLOAT, false},
    [ROW_TIME_OR_NONE] = {"a finite time above 0", SQLITE_FLOAT, true},
    [ROW_ERROR_OR_NONE] = {"a number that is not negative", SQLITE_FLOAT, true},
    [ROW_TEXT] = {"a text in UTF-8 without control characters", SQLITE_TEXT, false},
    [ROW_TEXT_OR_NONE] = {"a text in UTF-8 without control characters", SQLITE_TEXT, true},
    [ROW_BYTES] = {"a text", SQLITE_TEXT, false},
    [ROW_ID_OR_NONE] = {"1 to 32 characters", SQLITE_TEXT, true},
    [ROW_UTC] = {"a time as 2026-01-31T12:34:56.789Z", SQLITE_TEXT, false},
    [ROW_UTC_OR_NONE] = {"a time as 2026-01-31T12:34:56.789Z", SQLITE_TEXT, true},
    [ROW_TARGET] = {"cpu or cuda", SQLITE_TEXT, false},
    [ROW_KIND] = {"segment, plan or final", SQLITE_TEXT, false},
    [ROW_STATUS] = {"ok, censored or failed", SQLITE_TEXT, false},
};

/* ---- one value ------------------------------------------------------------------------------- */

bool db_is_utc(const char *text)
{
    static const char form[CLOCK_UTC_SIZE] = "dddd-dd-ddTdd:dd:dd.dddZ";
    for (int i = 0; i < CLOCK_UTC_SIZE; i++)
        if (form[i] == 'd' ? isdigit((unsigned char)text[i]) == 0 : text[i] != form[i])
            return false;
    return true;
}

static bool is_text(sqlite3_stmt *stmt, int column, const char *text)
{
    return strlen(text) == (size_t)sqlite3_column_bytes(stmt, column) && utf8_is_plain(text);
}

static bool text_fits(enum row_type type, sqlite3_stmt *stmt, int column)
{
    const char *text = (const char *)sqlite3_column_text(stmt, column);
    if (text == NULL) /* memory ran out; SQLite tells the next time it is called */
        return false;
    switch (type) {
    case ROW_BYTES:
        return true;
    case ROW_ID_OR_NONE:
        return text[0] != '\0' && strlen(text) < HASH_TEXT_SIZE && is_text(stmt, column, text);
    case ROW_UTC:
        return db_is_utc(text);
    case ROW_UTC_OR_NONE:
        return text[0] == '\0' || db_is_utc(text);
    case ROW_TARGET:
        return strcmp(text, "cpu") == 0 || strcmp(text, "cuda") == 0;
    case ROW_KIND:
        for (int kind = DB_TRIAL_SEGMENT; kind <= DB_TRIAL_FINAL; kind++)
            if (strcmp(text, db_trial_kind_names[kind]) == 0)
                return true;
        return false;
    case ROW_STATUS:
        return strcmp(text, trial_status_name(trial_status_from_name(text))) == 0;
    default:
        return is_text(stmt, column, text);
    }
}

bool row_takes_integer(const struct row_rule *r, int64_t value)
{
    return r->least <= value && value <= r->most;
}

bool row_takes_real(const struct row_rule *r, double value)
{
    if (r->type == ROW_EPS)
        return value >= EPS_MIN && value <= EPS_MAX;
    bool time = r->type == ROW_TIME || r->type == ROW_TIME_OR_NONE;
    return value >= 0 && (value > 0 || !time) && (isfinite(value) || r->type == ROW_ERROR_OR_NONE);
}

static bool fits(const struct row_rule *r, sqlite3_stmt *stmt, int column)
{
    int found = sqlite3_column_type(stmt, column);
    if (found == SQLITE_NULL)
        return types[r->type].none;
    if (found != types[r->type].type)
        return false;
    if (found == SQLITE_INTEGER)
        return row_takes_integer(r, sqlite3_column_int64(stmt, column));
    if (found == SQLITE_FLOAT)
        return row_takes_real(r, sqlite3_column_double(stmt, column));
    return found != SQLITE_TEXT || text_fits(r->type, stmt, column);
}

/* ---- rows ------------------------------------------------------------------------------------ */

const struct row_rule *row_rule_of(const char *column)
{
    for (size_t i = 0; i < ARRAY_LEN(rules); i++)
        if (strcmp(rules[i].column, column) == 0)
            return &rules[i];
    return NULL;
}

const struct row_rule **row_rules_of(sqlite3_stmt *stmt)
{
    int count = sqlite3_column_count(stmt);
    const struct row_rule **out = mem_alloc((size_t)count + 1, sizeof(*out));
    for (int i = 0; i < count; i++)
        out[i] = row_rule_of(sqlite3_column_name(stmt, i));
    return out;
}

void row_expected(const struct row_rule *r, struct buf *out)
{
    if (types[r->type].type == SQLITE_INTEGER && r->most < INT64_MAX)
        buf_addf(out, "%lld to %lld", (long long)r->least, (long long)r->most);
    else
        buf_adds(out, types[r->type].expected);
}

static bool is_table(const char *name)
{
    static const char *const tables[] = {"workload", "target", "study", "search", "segment",
                                         "schedule", "plan",   "trial", "model",  "failure"};
    for (size_t i = 0; i < ARRAY_LEN(tables); i++)
        if (strcmp(tables[i], name) == 0)
            return true;
    return false;
}

/* "table 'trial', trial 5: 'plan' is 99999, expected 0 to 65535".  The first column of most
 * statements names the row. */
static void describe(const struct row_rule *r, sqlite3_stmt *stmt, int column, struct buf *out)
{
    bool blob = sqlite3_column_type(stmt, column) == SQLITE_BLOB; /* before it becomes a text */
    const char *value = (const char *)sqlite3_column_text(stmt, column);
    buf_addf(out, "table '%s', ", r->table);
    if (column > 0 && is_table(sqlite3_column_name(stmt, 0))) {
        const char *row = (const char *)sqlite3_column_text(stmt, 0);
        buf_addf(out, "%s %.40s: ", sqlite3_column_name(stmt, 0), row != NULL ? row : "");
    }
    bool its = strncmp(r->column, "its_", strlen("its_")) == 0;
    buf_addf(out, "'%s' is ", r->column + (its ? strlen("its_") : 0));
    if (blob)
        buf_adds(out, "a blob");
    else
        buf_addf(out, value != NULL ? "'%.60s'" : "%s", value != NULL ? value : "missing");
    buf_adds(out, ", expected ");
    row_expected(r, out);
}

bool row_fits(const struct row_rule *const *columns, sqlite3_stmt *stmt, struct buf *why)
{
    int count = sqlite3_column_count(stmt);
    for (int i = 0; i < count; i++)
        if (columns[i] != NULL && !fits(columns[i], stmt, i)) {
            SCOPED_BUF raw = BUF_INIT;
            describe(columns[i], stmt, i, &raw);
            utf8_mend(raw.ptr);
            utf8_escape(raw.ptr, why);
            return false;
        }
    return true;
}

int row_refused(const struct db *db, const char *why, struct status *st)
{
    return status_set(st, STATUS_DATABASE,
                      "database '%s' holds what no fuseplan stores: %s: 'fuseplan db check' names "
                      "all such rows: remove them with sqlite3, or move the file away to start "
                      "afresh",
                      db->path, why);
}
