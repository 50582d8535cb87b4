#include "db/rows_int.h"
#include "db/text_int.h"

#include <assert.h>

const char *const db_trial_kind_names[] = {
    [DB_TRIAL_SEGMENT] = "segment", [DB_TRIAL_PLAN] = "plan", [DB_TRIAL_FINAL] = "final"};

struct interval db_trial_ms(const struct db_trial *t)
{
    return (struct interval){t->median_ms, t->ci_low_ms, t->ci_high_ms};
}

static bool covers_chain(const struct db_trial *t)
{
    int next = 0;
    for (int i = 0; i < t->choice_count; i++) {
        struct segment s = t->choices[i].segment;
        if (s.first != next || s.last < next)
            return false;
        next = s.last + 1;
    }
    return next == OP_COUNT;
}

/* The rules that the schema's CHECKs cannot state. */
static int check_choices(const struct db_trial *t, struct status *st)
{
    if (t->kind == DB_TRIAL_SEGMENT && t->choice_count != 1)
        return status_set(st, STATUS_DATABASE, "a segment trial has %d choices; it must have one",
                          t->choice_count);
    if (t->kind != DB_TRIAL_SEGMENT && !covers_chain(t))
        return status_set(st, STATUS_DATABASE,
                          "the %d choices of plan %d do not cover operators 0..%d in order",
                          t->choice_count, t->value, OP_COUNT - 1);
    return 0;
}

/* The schedule of a choice, with its segment: found or added. */
static int add_schedule(struct db *db, const struct db_choice *c, int64_t *id, struct status *st)
{
    int first = c->segment.first, last = c->segment.last;
    int found = query_one_int_of(db, SQL_SCHEDULE_FIND, id, st, "%d %d %s %s", first, last, c->impl,
                                 c->schedule);
    if (found != 0)
        return found > 0 ? 0 : -1;
    if (query_run_of(db, SQL_SEGMENT_ADD, st, "%d %d", first, last) != 0 ||
        query_run_of(db, SQL_SCHEDULE_ADD, st, "%d %d %s %s", first, last, c->impl, c->schedule) !=
            0)
        return -1;
    *id = sqlite3_last_insert_rowid(db->handle);
    return 0;
}

/* Adds the row of a trial's plan, which spells its segments for people: "0-1 2-6 7 8-9 10-14". */
static int add_plan(struct db *db, const struct db_trial *t, struct status *st)
{
    SCOPED_BUF text = BUF_INIT;
    char range[12];
    for (int i = 0; i < t->choice_count; i++)
        buf_addf(&text, "%s%s", i > 0 ? " " : "", segment_text(t->choices[i].segment, range));
    return query_run_of(db, SQL_PLAN_ADD, st, "%d %s", t->value, text.ptr);
}

/* What was stored later counts as newer, though the clock may have gone back in between. */
static int time_of(struct db *db, int64_t study, const struct db_trial *t, char out[CLOCK_UTC_SIZE],
                   struct status *st)
{
    char now[CLOCK_UTC_SIZE]; /* which SQLite may give back as it is */
    if (t->stored_utc != NULL && t->stored_utc[0] != '\0') {
        snprintf(out, CLOCK_UTC_SIZE, "%s", t->stored_utc);
        return 0;
    }
    SCOPED_QUERY q = query_of(db, SQL_TRIAL_UTC, "%jd %s", study, clock_utc(now));
    int found = query_row(&q, st);
    if (found > 0)
        snprintf(out, CLOCK_UTC_SIZE, "%s", column_text(&q, 0));
    return found < 0 ? -1 : 0;
}

static int add_row(struct db *db, int64_t study, const struct db_trial *t, int64_t schedule,
                   struct status *st)
{
    char utc[CLOCK_UTC_SIZE];
    if (time_of(db, study, t, utc, st) != 0)
        return -1;
    struct db_trial dated = *t;
    dated.stored_utc = utc;
    struct query q = query_of(db, SQL_TRIAL_ADD, "%jd %s", study, db_trial_kind_names[t->kind]);
    if (t->kind == DB_TRIAL_SEGMENT) {
        query_null(&q);
        query_int(&q, schedule);
    } else {
        query_int(&q, t->value);
        query_null(&q);
    }
    query_text(&q, trial_status_name(t->status));
    text_fields_bind(&q, &text_trial, &dated);
    return query_run(&q, st);
}

static_assert(OP_COUNT == 15, "SQL_CHOICES_ADD takes 15 schedules");

static int add_choices(struct db *db, int64_t trial, const int64_t schedules[OP_COUNT], int count,
                       struct status *st)
{
    struct query q = query_of(db, SQL_CHOICES_ADD, "%jd", trial);
    for (int i = 0; i < count; i++)
        query_int(&q, schedules[i]);
    return query_run(&q, st);
}

int db_trial_prepare(struct db *db, const struct db_trial *t, int64_t schedules[OP_COUNT],
                     struct status *st)
{
    if (check_choices(t, st) != 0)
        return -1;
    for (int i = 0; i < t->choice_count; i++)
        if (add_schedule(db, &t->choices[i], &schedules[i], st) != 0)
            return -1;
    return t->kind != DB_TRIAL_SEGMENT ? add_plan(db, t, st) : 0;
}

int db_trial_insert_as(struct db *db, int64_t study, const struct db_trial *t,
                       const int64_t schedules[OP_COUNT], struct status *st)
{
    if (add_row(db, study, t, schedules[0], st) != 0)
        return -1;
    if (sqlite3_changes(db->handle) == 0) /* another process stored it first */
        return 0;
    int64_t trial = sqlite3_last_insert_rowid(db->handle);
    if (t->kind != DB_TRIAL_SEGMENT && add_choices(db, trial, schedules, t->choice_count, st) != 0)
        return -1;
    if (t->kind == DB_TRIAL_FINAL)
        for (int i = 0; i < t->sample_count; i++)
            if (query_run_of(db, SQL_SAMPLE_ADD, st, "%jd %d %g", trial, i, t->samples_ms[i]) != 0)
                return -1;
    return 0;
}

static int insert(struct db *db, int64_t study, const struct db_trial *t, struct status *st)
{
    int64_t schedules[OP_COUNT] = {0};
    return db_trial_prepare(db, t, schedules, st) != 0 ||
                   db_failure_displace(db, study, t, schedules[0], st) != 0
               ? -1
               : db_trial_insert_as(db, study, t, schedules, st);
}

int db_trial_add(struct db *db, int64_t study, const struct db_trial *t, struct status *st)
{
    return db_trials_add(db, study, t, 1, st);
}

int db_trials_add(struct db *db, int64_t study, const struct db_trial *trials, int count,
                  struct status *st)
{
    if (db_begin_write(db, st) != 0)
        return -1;
    int result = 0;
    for (int i = 0; i < count && result == 0; i++)
        result = insert(db, study, &trials[i], st);
    return db_end(db, result, st);
}

int db_choices_read(struct query *q, struct db_choice out[OP_COUNT], double *ms, struct status *st)
{
    int row, count = 0, next = 0;
    while ((row = query_row(q, st)) > 0) {
        int64_t first = column_int(q, 0), last = column_int(q, 1);
        if (first < next || last < first)
            break;
        next = (int)last + 1;
        if (ms != NULL)
            ms[count] = column_real(q, 4);
        out[count++] = (struct db_choice){.segment = {(int8_t)first, (int8_t)last},
                                          .impl = mem_strdup(column_text(q, 2)),
                                          .schedule = mem_strdup(column_text(q, 3))};
    }
    query_end(q);
    if (row == 0 && count > 0)
        return count;
    if (row >= 0)
        status_set(
            st, STATUS_DATABASE,
            "the choices of a trial in '%s' are not segments in ascending order; 'fuseplan db "
            "check' names the trial",
            db_path(q->db));
    db_choices_release(out, count);
    return -1;
}

int db_choices_of(const struct query *q, enum db_trial_kind kind, struct db_choice out[OP_COUNT],
                  struct status *st)
{
    bool segment = kind == DB_TRIAL_SEGMENT;
    struct query of_trial = query_of(q->db, segment ? SQL_SCHEDULE : SQL_CHOICES, "%jd",
                                     column_int(q, segment ? 2 : 0));
    return db_choices_read(&of_trial, out, NULL, st);
}

void db_choices_release(struct db_choice *choices, int count)
{
    for (int i = 0; i < count; i++) {
        free((char *)choices[i].impl);
        free((char *)choices[i].schedule);
    }
}

const char *db_trial_contradiction(const struct db_trial *t)
{
    if (t->status == TRIAL_OK && isnan(t->median_ms))
        return "no median, but it is ok";
    if (t->status == TRIAL_FAILED && t->reason_code[0] == '\0')
        return "no reason, but it failed";
    if (t->median_ms < t->ci_low_ms || t->median_ms > t->ci_high_ms)
        return "a median outside its interval";
    return NULL;
}

/* What the rules of single values cannot say of a row of SQL_TRIALS. */
static const char *contradiction(const struct query *q, const struct db_trial *t)
{
    bool segment = t->kind == DB_TRIAL_SEGMENT;
    if ((sqlite3_column_type(q->stmt, 1) == SQLITE_NULL) != segment)
        return segment ? "a plan, but it is of a segment" : "no plan";
    if ((sqlite3_column_type(q->stmt, 2) == SQLITE_NULL) == segment)
        return segment ? "no schedule" : "a schedule, but it is of a plan";
    return db_trial_contradiction(t);
}

int db_trial_of(const struct query *q, enum db_trial_kind kind, struct db_trial *out,
                struct status *st)
{
    *out = (struct db_trial){.kind = kind,
                             .value = kind == DB_TRIAL_SEGMENT ? -1 : (int)column_int(q, 1),
                             .status = trial_status_from_name(column_text(q, 3)),
                             .strategy = column_text(q, 22)};
    text_fields_read(q, 4, &text_trial, out);
    const char *what = contradiction(q, out);
    if (what == NULL)
        return 0;
    char why[120];
    snprintf(why, sizeof(why), "table 'trial', trial %lld has %s", (long long)column_int(q, 0),
             what);
    return row_refused(q->db, why, st);
}

static int walk(struct db *db, int64_t study, enum db_trial_kind kind, bool with_choices,
                db_trial_row *row, void *ctx, struct status *st)
{
    int found;
    SCOPED_QUERY q = query_of(db, SQL_TRIALS, "%jd %s", study, db_trial_kind_names[kind]);
    query_null(&q);
    query_int(&q, db->precision);
    while ((found = query_row(&q, st)) > 0) {
        struct db_choice choices[OP_COUNT] = {{.impl = NULL}};
        struct db_trial t;
        if (db_trial_of(&q, kind, &t, st) != 0)
            return -1;
        t.choices = choices;
        if (with_choices && (t.choice_count = db_choices_of(&q, kind, choices, st)) < 0)
            return -1;
        bool ended = row(ctx, &t) != 0;
        db_choices_release(choices, t.choice_count);
        if (ended)
            return 0;
    }
    return found;
}

int db_trials(struct db *db, int64_t study, enum db_trial_kind kind, db_trial_row *row, void *ctx,
              struct status *st)
{
    return walk(db, study, kind, true, row, ctx, st);
}

int db_trial_times(struct db *db, int64_t study, enum db_trial_kind kind, db_trial_row *row,
                   void *ctx, struct status *st)
{
    return walk(db, study, kind, false, row, ctx, st);
}
