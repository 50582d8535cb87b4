#include "db/rows_int.h"

/* Each statement returns one problem a row.  Some repeat a CHECK of the schema, to name the row:
 * SQLite's own check names only the table, so db_check() switches CHECKs off.  What single values
 * may be is not among them: see `tables`. */
static const char *const rules[] = {
    "SELECT 'file structure: ' || replace(integrity_check, char(10), ' ') FROM "
    "pragma_integrity_check"
    " WHERE integrity_check <> 'ok'",

    "SELECT format('%s row %s refers to a row of %s that is missing', \"table\","
    " coalesce(rowid, '(without id)'), parent) FROM pragma_foreign_key_check",

    "SELECT format('segment %d covers operators %d..%d, in descending order', id, first_op,"
    " last_op) FROM segment WHERE last_op < first_op",

    "SELECT format('trial %d of kind %s names %s plan and %s schedule', id, kind,"
    " iif(plan IS NULL, 'no', 'a'), iif(schedule IS NULL, 'no', 'a')) FROM trial"
    " WHERE (kind = 'segment') <> (plan IS NULL) OR (kind = 'segment') = (schedule IS NULL)",

    "SELECT format('trial %d is ok but has no median', id) FROM trial"
    " WHERE status = 'ok' AND median_ms IS NULL",

    "SELECT format('trial %d has a median of %g ms outside its interval %g..%g', id, median_ms,"
    " ci_low_ms, ci_high_ms) FROM trial WHERE median_ms < ci_low_ms OR median_ms > ci_high_ms",

    "SELECT format('trial %d failed without a reason', id) FROM trial"
    " WHERE status = 'failed' AND reason_code = ''",

    "SELECT format('study %d has %d trials of kind plan of plan %d', study, count(*), plan)"
    " FROM trial WHERE kind = 'plan' GROUP BY study, plan, precision HAVING count(*) > 1",

    "SELECT format('study %d has %d trials of kind segment of schedule %d', study, count(*),"
    " schedule) FROM trial WHERE kind = 'segment' GROUP BY study, schedule HAVING count(*) > 1",

    "SELECT format('trial %d belongs to another study than its search', trial.id) FROM trial"
    " JOIN search ON search.id = trial.search WHERE search.study <> trial.study",

    "SELECT format('study %d counts %d trials and %d plans, %d and %d are stored', id, trials, "
    "plans,"
    " stored, stored_plans) FROM (SELECT id, trials, plans,"
    "  (SELECT count(*) FROM trial WHERE study = study.id) AS stored,"
    "  (SELECT count(*) FROM trial WHERE study = study.id AND kind = 'plan') AS stored_plans"
    "  FROM study) WHERE trials <> stored OR plans <> stored_plans",

    "SELECT format('trial %d has %d samples stored, %d expected', id, stored, expected) FROM"
    " (SELECT id, iif(kind = 'final', sample_count, 0) AS expected,"
    "  (SELECT count(*) FROM sample WHERE trial = trial.id) AS stored FROM trial)"
    " WHERE stored <> expected",

    "SELECT format('trial %d has a median of %.9g ms, its samples one of %.9g', id, median_ms,"
    " found) FROM trial JOIN (SELECT trial, avg(ms) AS found FROM"
    "  (SELECT trial, ms, count(*) OVER (PARTITION BY trial) AS samples,"
    "   row_number() OVER (PARTITION BY trial ORDER BY ms) AS place FROM sample)"
    "  WHERE place IN ((samples + 1) / 2, (samples + 2) / 2) GROUP BY trial) ON trial = id"
    " WHERE abs(found / median_ms - 1) > 1e-6",

    "SELECT format('trial %d has samples of rounds %d..%d, not 0..%d', trial, min(round),"
    " max(round), count(*) - 1) FROM sample GROUP BY trial"
    " HAVING min(round) <> 0 OR max(round) <> count(*) - 1",

    /* 15 powers of two add up to 2^15 - 1 only if each is there once. */
    "SELECT format('the choices of trial %d do not cover operators 0..14 once each', trial.id)"
    " FROM trial LEFT JOIN choice ON choice.trial = trial.id"
    " LEFT JOIN schedule ON schedule.id = choice.schedule"
    " LEFT JOIN segment ON segment.id = schedule.segment"
    " WHERE trial.kind <> 'segment' GROUP BY trial.id"
    " HAVING total(last_op - first_op + 1) <> 15"
    " OR total((1 << (last_op + 1)) - (1 << first_op)) <> 32767",

    "SELECT format('trial %d has choices, but is of a segment', trial.id) FROM trial"
    " JOIN choice ON choice.trial = trial.id WHERE kind = 'segment' GROUP BY trial.id",

    "SELECT format('the choices of trial %d are the segments %s, its plan %d has %s', id, chosen,"
    " plan, segments) FROM (SELECT trial.id, trial.plan, plan.segments,"
    "  (SELECT group_concat(text, ' ') FROM"
    "   (SELECT iif(first_op = last_op, first_op, first_op || '-' || last_op) AS text FROM choice"
    "    JOIN schedule ON schedule.id = choice.schedule"
    "    JOIN segment ON segment.id = schedule.segment"
    "    WHERE choice.trial = trial.id ORDER BY first_op)) AS chosen"
    "  FROM trial JOIN plan ON plan.value = trial.plan) WHERE chosen <> segments",
};

/* Tables whose rows are held against the rules of rows.c; the first column names the row. */
static const char *const tables[] = {
    "SELECT id AS workload, " WORKLOAD_COLUMNS ", chain FROM workload",
    "SELECT id AS target, kind AS target_kind, " TARGET_COLUMNS " FROM target",
    "SELECT id AS study, protocol, seed, init, created_utc, trials, plans FROM study",
    "SELECT id AS search, study, strategy, options, started_utc, ended_utc, stopped_by"
    " FROM search",
    "SELECT id AS segment, first_op, last_op FROM segment",
    "SELECT id AS schedule, impl, knobs FROM schedule",
    "SELECT value, segments FROM plan",
    "SELECT id AS trial, study, kind, plan AS its_plan, schedule AS its_schedule, status,"
    " " TRIAL_COLUMNS " FROM trial",
    "SELECT trial, round, ms FROM sample",
    "SELECT id AS failure, study, search, kind, plan AS its_plan, schedule AS its_schedule,"
    " reason_code, reason, build_s, verify_s, time_s, relative_error, conditions, stored_utc,"
    " precision FROM failure",
    "SELECT id AS model, name, features, seed, quantile, rows, report, trained_utc FROM model",
};

struct checking {
    struct db *db;
    db_check_row *row;
    void *ctx;
    int *problems;
};

static void report(const struct checking *c, const char *problem)
{
    c->row(c->ctx, problem);
    ++*c->problems;
}

/* Damage is a problem of the file; any other failure keeps the check from being made. */
static int report_failure(const struct checking *c, int result, struct status *st)
{
    struct status said = STATUS_INIT;
    bool damaged = result == SQLITE_IOERR_DATA || (result & 0xff) == SQLITE_CORRUPT;
    db_fail(c->db->handle, c->db->path, result, damaged ? &said : st);
    if (damaged)
        report(c, said.message);
    return damaged ? 0 : -1;
}

static void report_row(const struct checking *c, sqlite3_stmt *stmt)
{
    const char *problem = (const char *)sqlite3_column_text(stmt, 0);
    SCOPED_BUF escaped = BUF_INIT; /* it may quote what is stored */
    utf8_escape(problem != NULL ? problem : "", &escaped);
    report(c, escaped.ptr);
}

static void check_row(const struct checking *c, const struct row_rule *const *columns,
                      sqlite3_stmt *stmt)
{
    SCOPED_BUF why = BUF_INIT;
    if (!row_fits(columns, stmt, &why))
        report(c, why.ptr);
}

/* Runs a statement: each of its rows is a problem, or of a table to be checked. */
static int run(const struct checking *c, const char *sql, bool is_table, struct status *st)
{
    sqlite3_stmt *stmt = NULL;
    int result = sqlite3_prepare_v2(c->db->handle, sql, -1, &stmt, NULL);
    if (result != SQLITE_OK)
        return report_failure(c, result, st);
    SCOPED const struct row_rule **columns = row_rules_of(stmt);
    while ((result = sqlite3_step(stmt)) == SQLITE_ROW)
        if (is_table)
            check_row(c, columns, stmt);
        else
            report_row(c, stmt);
    sqlite3_finalize(stmt);
    return result == SQLITE_DONE ? 0 : report_failure(c, result, st);
}

enum { STEPS = ARRAY_LEN(rules) + ARRAY_LEN(tables) };

static void tell(const struct db *db, size_t done)
{
    step_tell(&db->listener, &(struct step){"rules", (int64_t)done, STEPS, NAN});
}

/* Whether the file holds all: what is still in the WAL may have been cut off while it was copied.
 */
static bool is_complete(struct db *db)
{
    int frames = 0, copied = 0;
    int result =
        sqlite3_wal_checkpoint_v2(db->handle, "main", SQLITE_CHECKPOINT_PASSIVE, &frames, &copied);
    return result == SQLITE_OK && frames == copied;
}

/* Pages that are free are read by no rule.  What is wrong with others was told before. */
static void check_free_pages(const struct checking *c)
{
    SCOPED_BUF text = BUF_INIT;
    for (int64_t page = 0; (page = pages_next_bad(c->db->handle, page)) > 0;) {
        buf_reset(&text);
        buf_addf(&text,
                 "page %lld does not match its checksum; nothing is stored in it, but check the "
                 "disk: 'sqlite3 FILE VACUUM' removes the page",
                 (long long)page);
        report(c, text.ptr);
    }
}

static int run_rules(const struct checking *c, bool complete, struct status *st)
{
    for (size_t i = 0; i < ARRAY_LEN(rules); i++) {
        tell(c->db, i);
        if (run(c, rules[i], false, st) != 0)
            return -1;
        if (i == 0 && *c->problems > 0) /* a damaged file makes the other rules meaningless */
            return 0;
        if (i == 0 && complete)
            check_free_pages(c);
    }
    for (size_t i = 0; i < ARRAY_LEN(tables); i++) {
        tell(c->db, ARRAY_LEN(rules) + i);
        if (run(c, tables[i], true, st) != 0)
            return -1;
    }
    return 0;
}

int db_check(struct db *db, db_check_row *row, void *ctx, int *problems, struct status *st)
{
    const struct checking c = {db, row, ctx, problems};
    *problems = 0;
    sqlite3_exec(db->handle, "PRAGMA ignore_check_constraints = ON", NULL, NULL, NULL);
    bool complete = is_complete(db);
    int result = db_begin_read(db, st);
    if (result == 0) {
        result = run_rules(&c, complete, st);
        db_end(db, -1,
               &(struct status){0}); /* SQLite has ended it already if the file is damaged */
    }
    sqlite3_exec(db->handle, "PRAGMA ignore_check_constraints = OFF", NULL, NULL, NULL);
    return result;
}
