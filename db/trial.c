#include "db/db_int.h"

const char *const db_trial_kind_names[] = {
    [DB_TRIAL_SEGMENT] = "segment", [DB_TRIAL_PLAN] = "plan", [DB_TRIAL_FINAL] = "final"};

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

/* What the schema's CHECKs do not hold. */
static int check_choices(const struct db_trial *t, struct status *st)
{
    if (t->kind == DB_TRIAL_SEGMENT && t->choice_count != 1)
        return status_set(st, STATUS_DATABASE, "a segment's trial has %d choices, it must have one",
                          t->choice_count);
    if (t->kind != DB_TRIAL_SEGMENT && !covers_chain(t))
        return status_set(st, STATUS_DATABASE,
                          "the %d choices of plan %d do not cover operators 0..%d in order",
                          t->choice_count, t->value, OP_COUNT - 1);
    return 0;
}

/* Finds or adds the schedule of a choice. */
static int add_schedule(struct db *db, const struct db_choice *c, int64_t *id, struct status *st)
{
    struct query segment = query_start(db, SQL_SEGMENT_ADD);
    query_int(&segment, c->segment.first);
    query_int(&segment, c->segment.last);
    if (query_run(&segment, st) != 0)
        return -1;

    enum db_statement add_then_find[] = {SQL_SCHEDULE_ADD, SQL_SCHEDULE_FIND};
    int row = 0;
    for (size_t i = 0; i < ARRAY_LEN(add_then_find) && row >= 0; i++) {
        struct query q = query_start(db, add_then_find[i]);
        query_int(&q, c->segment.first);
        query_int(&q, c->segment.last);
        query_text(&q, c->impl);
        query_text(&q, c->schedule);
        row = query_one_int(&q, id, st);
    }
    return row < 0 ? -1 : 0;
}

/* The plan's row names its segments for people: "0-1 2-6 7 8-9 10-14". */
static int add_plan(struct db *db, const struct db_trial *t, struct status *st)
{
    struct buf text;
    buf_init(&text);
    for (int i = 0; i < t->choice_count; i++) {
        struct segment s = t->choices[i].segment;
        buf_addf(&text, "%s%d", i > 0 ? " " : "", s.first);
        if (s.last > s.first)
            buf_addf(&text, "-%d", s.last);
    }
    struct query q = query_start(db, SQL_PLAN_ADD);
    query_int(&q, t->value);
    query_text(&q, text.ptr);
    int result = query_run(&q, st);
    buf_release(&text);
    return result;
}

static int add_row(struct db *db, int64_t study, const struct db_trial *t, int64_t schedule,
                   struct status *st)
{
    char now[CLOCK_UTC_SIZE];
    struct query q = query_start(db, SQL_TRIAL_ADD);
    query_int(&q, study);
    if (t->search != NULL && t->search[0] != '\0')
        query_text(&q, t->search);
    else
        query_null(&q);
    query_text(&q, db_trial_kind_names[t->kind]);
    if (t->kind == DB_TRIAL_SEGMENT) {
        query_null(&q);
        query_int(&q, schedule);
    } else {
        query_int(&q, t->value);
        query_null(&q);
    }
    query_text(&q, trial_status_name(t->status));
    query_text(&q, t->reason_code);
    query_text(&q, t->reason);
    query_real(&q, t->median_ms);
    query_real(&q, t->ci_low_ms);
    query_real(&q, t->ci_high_ms);
    query_real(&q, t->build_s);
    query_real(&q, t->verify_s);
    query_real(&q, t->time_s);
    query_real(&q, t->error);
    query_int(&q, t->layers_timed);
    query_int(&q, t->sample_count);
    query_text(&q, t->comparison);
    query_text(&q, t->resources);
    query_text(&q, t->conditions);
    query_text(&q, clock_utc(now));
    return query_run(&q, st);
}

static int add_choice(struct db *db, int64_t trial, int64_t schedule, struct status *st)
{
    struct query q = query_start(db, SQL_CHOICE_ADD);
    query_int(&q, trial);
    query_int(&q, schedule);
    return query_run(&q, st);
}

static int add_sample(struct db *db, int64_t trial, int round, double ms, struct status *st)
{
    struct query q = query_start(db, SQL_SAMPLE_ADD);
    query_int(&q, trial);
    query_int(&q, round);
    query_real(&q, ms);
    return query_run(&q, st);
}

int db_trial_insert(struct db *db, int64_t study, const struct db_trial *t, struct status *st)
{
    int64_t schedules[OP_COUNT] = {0};
    if (check_choices(t, st) != 0)
        return -1;
    for (int i = 0; i < t->choice_count; i++)
        if (add_schedule(db, &t->choices[i], &schedules[i], st) != 0)
            return -1;
    if (t->kind != DB_TRIAL_SEGMENT && add_plan(db, t, st) != 0)
        return -1;
    if (add_row(db, study, t, schedules[0], st) != 0)
        return -1;

    if (sqlite3_changes(db->handle) == 0) /* another process was faster */
        return 0;
    int64_t trial = sqlite3_last_insert_rowid(db->handle);
    if (t->kind != DB_TRIAL_SEGMENT)
        for (int i = 0; i < t->choice_count; i++)
            if (add_choice(db, trial, schedules[i], st) != 0)
                return -1;
    if (t->kind == DB_TRIAL_FINAL)
        for (int i = 0; i < t->sample_count; i++)
            if (add_sample(db, trial, i, t->samples_ms[i], st) != 0)
                return -1;
    return 0;
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
        result = db_trial_insert(db, study, &trials[i], st);
    return db_end(db, result, st);
}

int db_choices_read(struct query *q, db_choice_row *keep, void *ctx, struct status *st)
{
    int row, count = 0, next = 0;
    while ((row = query_row(q, st)) > 0) {
        int64_t first = column_int(q, 0), last = column_int(q, 1);
        if (first < next || last < first || last >= OP_COUNT)
            break;
        next = (int)last + 1;
        keep(ctx, count++,
             &(struct db_choice){.segment = {(int8_t)first, (int8_t)last},
                                 .impl = column_text(q, 2),
                                 .schedule = column_text(q, 3)},
             q);
    }
    query_end(q);
    if (row > 0 || (row == 0 && count == 0))
        return status_set(st, STATUS_DATABASE,
                          "a trial in '%s' has choices that are no segments in order; 'fuseplan db "
                          "check' names it",
                          db_path(q->db));
    return row < 0 ? -1 : count;
}

/* The choices of one trial; the texts are its own. */
struct kept {
    struct db_choice choices[OP_COUNT];
    struct buf texts[2 * OP_COUNT];
};

static void keep_choice(void *ctx, int i, const struct db_choice *c, const struct query *q)
{
    (void)q;
    struct kept *k = ctx;
    struct buf *impl = &k->texts[2 * i], *knobs = impl + 1;
    buf_reset(impl);
    buf_reset(knobs);
    buf_adds(impl, c->impl);
    buf_adds(knobs, c->schedule);
    k->choices[i] = (struct db_choice){c->segment, impl->ptr, knobs->ptr};
}

enum { /* columns of SQL_TRIALS */
       COL_ID,
       COL_PLAN,
       COL_SCHEDULE,
       COL_STATUS,
       COL_REASON_CODE,
       COL_REASON,
       COL_MEDIAN,
       COL_CI_LOW,
       COL_CI_HIGH,
       COL_BUILD,
       COL_VERIFY,
       COL_TIME,
       COL_ERROR,
       COL_LAYERS,
       COL_SAMPLES,
       COL_COMPARISON,
       COL_RESOURCES,
       COL_CONDITIONS,
       COL_SEARCH,
       COL_STORED,
       COL_STRATEGY
};

static struct db_trial trial_of(const struct query *q, enum db_trial_kind kind)
{
    return (struct db_trial){
        .kind = kind,
        .value = kind == DB_TRIAL_SEGMENT ? -1 : (int)column_int(q, COL_PLAN),
        .status = trial_status_from_name(column_text(q, COL_STATUS)),
        .reason_code = column_text(q, COL_REASON_CODE),
        .reason = column_text(q, COL_REASON),
        .median_ms = column_real(q, COL_MEDIAN),
        .ci_low_ms = column_real(q, COL_CI_LOW),
        .ci_high_ms = column_real(q, COL_CI_HIGH),
        .build_s = column_real(q, COL_BUILD),
        .verify_s = column_real(q, COL_VERIFY),
        .time_s = column_real(q, COL_TIME),
        .error = column_real(q, COL_ERROR),
        .layers_timed = (int)column_int(q, COL_LAYERS),
        .sample_count = (int)column_int(q, COL_SAMPLES),
        .comparison = column_text(q, COL_COMPARISON),
        .resources = column_text(q, COL_RESOURCES),
        .conditions = column_text(q, COL_CONDITIONS),
        .search = column_text(q, COL_SEARCH),
        .stored_utc = column_text(q, COL_STORED),
        .strategy = column_text(q, COL_STRATEGY),
    };
}

static int walk(struct db *db, int64_t study, enum db_trial_kind kind, bool with_choices,
                db_trial_row *row, void *ctx, struct status *st)
{
    bool segment = kind == DB_TRIAL_SEGMENT;
    struct kept kept;
    for (size_t i = 0; i < ARRAY_LEN(kept.texts); i++)
        buf_init(&kept.texts[i]);

    int found;
    struct query q = query_start(db, SQL_TRIALS);
    query_int(&q, study);
    query_text(&q, db_trial_kind_names[kind]);
    while ((found = query_row(&q, st)) > 0) {
        struct db_trial t = trial_of(&q, kind);
        if (with_choices) {
            struct query of_trial = query_start(db, segment ? SQL_SCHEDULE : SQL_CHOICES);
            query_int(&of_trial, column_int(&q, segment ? COL_SCHEDULE : COL_ID));
            found = t.choice_count = db_choices_read(&of_trial, keep_choice, &kept, st);
            t.choices = kept.choices;
        }
        if (found < 0 || row(ctx, &t) != 0)
            break;
    }
    query_end(&q);

    for (size_t i = 0; i < ARRAY_LEN(kept.texts); i++)
        buf_release(&kept.texts[i]);
    return found < 0 ? -1 : 0;
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
