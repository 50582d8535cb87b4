#include "tests/stress/soak.h"

#include <jansson.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* What the lane's compiler plants: segments that fail, and how. */
static const struct {
    const char *segment, *reason;
    bool always;
} planted[] = {{"8-9", "launch", true},
               {"11-12", "wrong", true},
               {"6-7", "compile", true},
               {"12-13", "timeout", false}};

void complain(struct account *a, const char *fmt, ...)
{
    va_list args;
    a->complaints++;
    printf("WRONG: ");
    va_start(args, fmt);
    vprintf(fmt, args);
    va_end(args);
    puts("");
    fflush(stdout);
}

void account_release(struct account *a)
{
    sqlite3_close(a->db);
    a->db = NULL;
}

static bool opened(struct account *a, const char *path)
{
    enum { WAIT_MS = 10000 };
    if (a->db != NULL || !file_exists(path))
        return a->db != NULL;
    if (sqlite3_open_v2(path, &a->db, SQLITE_OPEN_READONLY, NULL) != SQLITE_OK)
        give_up("'%s': %s", path, sqlite3_errmsg(a->db));
    sqlite3_busy_timeout(a->db, WAIT_MS);
    sqlite3_stmt *s;
    bool made = sqlite3_prepare_v2(a->db, "SELECT 1 FROM failure", -1, &s, NULL) == SQLITE_OK;
    sqlite3_finalize(s);
    if (!made) /* somebody is about to */
        account_release(a);
    return made;
}

static sqlite3_stmt *prepared(struct account *a, const char *sql)
{
    sqlite3_stmt *s;
    if (sqlite3_prepare_v2(a->db, sql, -1, &s, NULL) != SQLITE_OK)
        give_up("%s: %s", sql, sqlite3_errmsg(a->db));
    return s;
}

static bool stepped(struct account *a, sqlite3_stmt *s)
{
    int result = sqlite3_step(s);
    if (result != SQLITE_ROW && result != SQLITE_DONE)
        give_up("%s: %s", sqlite3_sql(s), sqlite3_errmsg(a->db));
    return result == SQLITE_ROW;
}

/* A column's text; never null. */
static const char *text_of(sqlite3_stmt *s, int column)
{
    const char *text = (const char *)sqlite3_column_text(s, column);
    return text != NULL ? text : "";
}

/* Whether a list such as "0-7 8-9 10" has a segment. */
static bool has_segment(const char *list, const char *segment)
{
    size_t len = strlen(segment);
    for (const char *at = list; *at != '\0'; at += strcspn(at, " "), at += *at == ' ')
        if (strncmp(at, segment, len) == 0 && (at[len] == ' ' || at[len] == '\0'))
            return true;
    return false;
}

/* Columns of trials: id, kind, status, reason_code, reason, segments, layers, row. */
enum { ID, KIND, STATUS, CODE, REASON, SEGMENTS, LAYERS, ROW };
static const char trials[] =
    "SELECT trial.id, kind, trial.status, reason_code, reason,"
    "  coalesce(plan.segments, CASE first_op WHEN last_op THEN first_op"
    "    ELSE first_op || '-' || last_op END),"
    "  layers, printf('%d %d %s %d %d %s %s %.17g %s', trial.id, study, kind, trial.plan,"
    "    trial.schedule, trial.status, reason, median_ms, stored_utc)"
    " FROM trial JOIN study ON study.id = study JOIN workload ON workload.id = workload"
    " LEFT JOIN plan ON plan.value = trial.plan LEFT JOIN schedule ON schedule.id = trial.schedule"
    " LEFT JOIN segment ON segment.id = schedule.segment"
    " WHERE trial.id > ? AND trial.id <= ? ORDER BY trial.id";

static uint64_t hash_row(sqlite3_stmt *s, uint64_t hash)
{
    return hash_number(sqlite3_column_text(s, ROW), (size_t)sqlite3_column_bytes(s, ROW), hash);
}

/* The steady lane has one layer and no planted faults; the other one has two. */
static void judge(struct account *a, sqlite3_stmt *s)
{
    bool failed = strcmp(text_of(s, STATUS), "failed") == 0, expected = false, right = false;
    for (size_t i = 0;
         i < ARRAY_LEN(planted) && a->planted && sqlite3_column_int(s, LAYERS) == FAULTY_LAYERS;
         i++)
        if (has_segment(text_of(s, SEGMENTS), planted[i].segment)) {
            expected = expected || planted[i].always;
            right = right || strcmp(text_of(s, CODE), planted[i].reason) == 0;
        }
    a->failed += failed;
    if (failed && !right)
        complain(a, "trial %s failed, and nothing was planted: %s %s: %s: %s", text_of(s, ID),
                 text_of(s, KIND), text_of(s, SEGMENTS), text_of(s, CODE), text_of(s, REASON));
    if (expected && !failed)
        complain(a, "trial %s has a planted fault and is %s: %s", text_of(s, ID),
                 text_of(s, STATUS), text_of(s, SEGMENTS));
}

void account_take(struct account *a, const char *db)
{
    if (!opened(a, db))
        return;
    sqlite3_stmt *s = prepared(a, trials);
    sqlite3_bind_int64(s, 1, a->last_id);
    sqlite3_bind_int64(s, 2, INT64_MAX);
    while (stepped(a, s)) {
        int64_t id = sqlite3_column_int64(s, ID);
        if (id != a->last_id + 1)
            complain(a, "after trial %lld comes trial %lld", (long long)a->last_id, (long long)id);
        a->last_id = id;
        a->trials++;
        a->of_layers[sqlite3_column_int(s, LAYERS) == FAULTY_LAYERS ? FAULTY_LAYERS
                                                                    : STEADY_LAYERS]++;
        a->hash = hash_row(s, a->hash);
        judge(a, s);
    }
    sqlite3_finalize(s);
}

void account_whole(struct account *a)
{
    if (a->db == NULL)
        return;
    uint64_t hash = 0;
    int64_t count = 0;
    sqlite3_stmt *s = prepared(a, trials);
    sqlite3_bind_int64(s, 1, 0);
    sqlite3_bind_int64(s, 2, a->last_id);
    for (; stepped(a, s); count++)
        hash = hash_row(s, hash);
    sqlite3_finalize(s);
    if (hash != a->hash || count != a->trials)
        complain(a, "%lld trials were stored, and %lld are there, not all as they were",
                 (long long)a->trials, (long long)count);
}

static void take_event(struct account *a, struct report *r, const char *line)
{
    const char *status;
    int value;
    json_t *event = json_loads(line, 0, NULL), *plan = json_object_get(event, "plan");
    if (plan != NULL && json_unpack(plan, "{s:i, s:s}", "value", &value, "status", &status) == 0 &&
        value >= 0 && value < PLANS) {
        if (r->count[value]++ > 0 && r->once)
            complain(a, "plan %d was measured twice", value);
        r->failed[value] = strcmp(status, "failed") == 0;
        r->ms[value] = json_number_value(json_object_get(plan, "ms"));
        r->total++;
        a->reported++;
    }
    json_decref(event);
}

void report_read(struct account *a, struct report *r, const char *events)
{
    struct buf text;
    struct status ignored = STATUS_INIT;
    buf_init(&text);
    file_read(events, 0, &text, &ignored);
    char *line = text.ptr;
    for (char *end; (end = strchr(line, '\n')) != NULL; line = end + 1) {
        *end = '\0';
        if (strstr(line, "\"event\":\"plan\"") != NULL)
            take_event(a, r, line);
    }
    buf_release(&text);
}

void report_match(struct account *a, const struct report *r, int seq_len, int layers, int untold)
{
    if (a->db == NULL)
        return;
    int stored = 0, missing = 0;
    sqlite3_stmt *s = prepared(
        a, "SELECT trial.plan, trial.status, median_ms FROM trial JOIN study ON study.id = study"
           " JOIN workload ON workload.id = workload"
           " WHERE kind = 'plan' AND layers = ?1 AND (?2 = 0 OR seq_len = ?2)");
    sqlite3_bind_int(s, 1, layers);
    sqlite3_bind_int(s, 2, seq_len);
    int *found = mem_alloc(PLANS, sizeof(*found));
    while (stepped(a, s)) {
        int value = sqlite3_column_int(s, 0);
        bool failed = strcmp(text_of(s, 1), "failed") == 0;
        double ms = sqlite3_column_double(s, 2);
        stored++;
        found[value]++;
        if (!r->once || r->count[value] == 0)
            continue;
        if (failed != r->failed[value] || (!failed && fabs(ms / r->ms[value] - 1) > 1e-6))
            complain(a, "plan %d of %d tokens was reported as %g ms and is stored as %g ms (%s)",
                     value, seq_len, r->ms[value], ms, text_of(s, 1));
    }
    sqlite3_finalize(s);
    for (int i = 0; i < PLANS; i++)
        missing += r->count[i] > found[i] ? r->count[i] - found[i] : 0;
    free(found);
    if (missing > 0)
        complain(a, "%d plans of %d tokens were reported and are not stored", missing, seq_len);
    if (stored - (r->total - missing) > untold)
        complain(a, "%d plans of %d tokens are stored, %d were reported, %d may have gone untold",
                 stored, seq_len, r->total, untold);
}
