/* A recorded space as results in a database: docs/recorded-spaces.md says what stays unknown. */
#include "search/search_int.h"
#include "search/space_int.h"

#include <jansson.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

/* The order of what the file tells, as milliseconds before the time that it gives. */
struct order {
    int plans, older, newest, best; /* older: than the newest comparison; best: its plan trial */
    double threshold_us;            /* finals that are faster were not in the newest comparison */
};

/* From this version of the protocol on a search with lengths times packed tokens. */
enum { PROTOCOL_PACKED = 7 };

struct import {
    const struct recorded_space *space;
    enum target_kind kind;
    struct workload workload;
    struct order order;
    struct db_choice choices[SLOT_COUNT]; /* that plans run */
    char *defaults[SLOT_COUNT]; /* schedules of the choices that the file does not have, owned */
    struct db_choice *attempts; /* (attempt_count) owned */
    struct db_trial *trials;    /* (count) owned */
    struct db_choice (*of_plan)[OP_COUNT]; /* (space->count) owned */
    char **codes;                          /* (count) of failures, owned; null: it ran */
    int count;
    char utc[4][CLOCK_UTC_SIZE];
    char newest[64], older[64]; /* the texts of the comparisons */
};

static int bad_line(int line, struct status *st, const char *what)
{
    return status_set(st, STATUS_USAGE, "line %d: %s", line, what);
}

static const json_t *line_at(const struct import *m, int i)
{
    return json_array_get(m->space->lines, (size_t)i);
}

/* The header is line 1, the segments follow, then the plans. */
static int segment_count(const struct import *m)
{
    return (int)json_array_size(m->space->lines) - m->space->count;
}

static const json_t *plan_line(const struct import *m, int plan)
{
    return line_at(m, segment_count(m) + plan);
}

static double plan_us(const struct import *m, int plan, size_t at)
{
    const json_t *number = json_array_get(plan_line(m, plan), at);
    return json_is_number(number) ? json_number_value(number) : NAN;
}

/* NaN for a plan that did not run, or was not timed side by side. */
static double search_us(const struct import *m, int plan)
{
    bool ran = m->space->outcomes[plan].status == TRIAL_OK;
    return ran ? plan_us(m, plan, space_us_at(m->space)) : NAN;
}

static double again_us(const struct import *m, int plan)
{
    size_t at = space_us_at(m->space) + 3;
    return json_array_size(plan_line(m, plan)) == at + 3 ? plan_us(m, plan, at) : NAN;
}

/* ---- the header ------------------------------------------------------------------------------ */

static int utc_before(const char *utc, int ms, char out[CLOCK_UTC_SIZE])
{
    struct tm tm = {.tm_isdst = 0};
    char seconds[20];
    const char *rest = strptime(utc, "%Y-%m-%dT%H:%M:%S", &tm);
    if (strlen(utc) + 1 != CLOCK_UTC_SIZE || rest == NULL || *rest != '.')
        return -1;
    int64_t at_ms = (int64_t)timegm(&tm) * 1000 + strtol(rest + 1, NULL, 10) - ms;
    if (at_ms < 0)
        return -1;
    time_t whole = (time_t)(at_ms / 1000);
    gmtime_r(&whole, &tm);
    strftime(seconds, sizeof(seconds), "%Y-%m-%dT%H:%M:%S", &tm);
    snprintf(out, CLOCK_UTC_SIZE, "%s.%03uZ", seconds, (unsigned)(at_ms % 1000));
    return 0;
}

static int read_times(struct import *m, struct status *st)
{
    const char *utc = m->space->measured_utc;
    for (int i = 0; i < (int)ARRAY_LEN(m->utc); i++)
        if (utc_before(utc, i, m->utc[i]) != 0 || (i == 0 && strcmp(utc, m->utc[0]) != 0))
            return status_set(st, STATUS_USAGE,
                              "line 1: 'measured_utc' is '%.40s'; expected a time as "
                              "2026-01-31T12:34:56.789Z",
                              utc);
    snprintf(m->newest, sizeof(m->newest), "recorded %s", utc);
    snprintf(m->older, sizeof(m->older), "recorded before %s", utc);
    return 0;
}

static bool near(double a, double b)
{
    return fabs(a - b) <= 0.011 + 1e-8 * fabs(a);
}

/* Finds an order in which the database's best plan is that of the file: the winner of the newest
 * comparison, or a plan that the search timed later and that beats the winner's time there. */
static int find_order(struct import *m, struct status *st)
{
    const struct recorded_space *s = m->space;
    double median =
        json_number_value(json_object_get(json_object_get(s->header, "best"), "median_us"));
    double own = search_us(m, s->best), winner = again_us(m, s->best);
    bool compared = false;
    double later = INFINITY; /* the fastest that it can have beaten */
    for (int i = 0; i < s->count; i++) {
        compared = compared || !isnan(again_us(m, i));
        if (search_us(m, i) > own)
            later = fmin(later, again_us(m, i));
    }
    m->order = (struct order){.threshold_us = winner};
    if (!compared) {
        for (int i = 0; i < s->count; i++)
            if (search_us(m, i) < own)
                return bad_line(2 + segment_count(m) + i, st,
                                "the plan is faster than the best one that the header names");
    } else if (near(median, winner) || (near(median, own) && !isnan(winner) && isinf(later))) {
        m->order.plans = m->order.best = 2;
        m->order.older = 1;
    } else {
        m->order = (struct order){.plans = 3, .older = 2, .newest = 1, .threshold_us = later};
    }
    if (near(median, own) ? compared && isnan(winner) && isinf(later) : !near(median, winner))
        return status_set(st, STATUS_USAGE,
                          "line 1: the best plan, %u, took %g us by the header; expected a time of "
                          "its line, %g us or side by side %g us",
                          plan_value(s->plans[s->best]), median, own, winner);
    return 0;
}

static int read_header(struct import *m, struct status *st)
{
    const char *init =
        json_string_value(json_object_get(json_object_get(m->space->header, "inputs"), "init"));
    const json_t *seed = json_object_get(json_object_get(m->space->header, "inputs"), "seed");
    if (!json_is_integer(seed) || init == NULL ||
        (strcmp(init, "uniform") != 0 && strcmp(init, "wide") != 0 && strcmp(init, "notes") != 0))
        return bad_line(1, st, "'inputs' has a 'seed' and an 'init', which is uniform or wide");
    if (m->space->protocol[0] == '\0')
        return bad_line(1, st, "'protocol' is empty");
    return space_workload(m->space, &m->kind, &m->workload, st) != 0 || read_times(m, st) != 0
               ? -1
               : find_order(m, st);
}

/* ---- trials ---------------------------------------------------------------------------------- */

static struct db_trial *add_trial(struct import *m, enum db_trial_kind kind, int before)
{
    struct db_trial *t = &m->trials[m->count++];
    *t = (struct db_trial){.kind = kind,
                           .value = -1,
                           .packed = m->workload.lengths != NULL &&
                                     strtol(m->space->protocol, NULL, 10) >= PROTOCOL_PACKED,
                           .median_ms = NAN,
                           .ci_low_ms = NAN,
                           .ci_high_ms = NAN,
                           .build_s = NAN,
                           .verify_s = NAN,
                           .time_s = NAN,
                           .error = NAN,
                           .choice_count = 1,
                           .comparison = "",
                           .stored_utc = m->utc[before]};
    return t;
}

/* A reason is "code: message". */
static int take_reason(struct import *m, const json_t *text, int line, struct db_trial *t,
                       struct status *st)
{
    const char *reason = json_string_value(text), *colon = strstr(reason, ": ");
    if (colon == NULL || colon == reason)
        return bad_line(line, st, "the reason of a failure is 'code: message'");
    char *code = mem_strdup(reason);
    code[colon - reason] = '\0';
    m->codes[m->count - 1] = code;
    t->status = TRIAL_FAILED;
    t->reason_code = code;
    t->reason = colon + 2;
    return 0;
}

/* The default choice of each slot, which stands where the file has none. */
static void default_choices(struct import *m)
{
    const struct db_target *target = &m->space->target;
    struct build_target t =
        build_target_of(m->kind, target->capability, target->libraries[0] != '\0', &m->workload);
    for (int i = 0; i < SLOT_COUNT; i++) {
        struct choice c;
        struct buf text;
        m->choices[i] = (struct db_choice){slot_segment(i), "generated", ""};
        if (choices_for(&t, slot_segment(i), i == SLOT_HANDWRITTEN, 1, &c) == 0)
            continue;
        buf_init(&text);
        schedule_text(c.impl, &c.schedule, &text);
        m->defaults[i] = buf_detach(&text);
        m->choices[i] = (struct db_choice){slot_segment(i), c.impl->name, m->defaults[i]};
    }
}

/* The ends of the interval of an attempt's time: NaN in a file of version 1. */
static int set_ends(const struct import *m, int i, struct db_trial *t, struct status *st)
{
    const json_t *line = line_at(m, i);
    const json_t *low = json_object_get(line, "low_us"), *high = json_object_get(line, "high_us");
    if (low == NULL && high == NULL)
        return 0;
    if (!json_is_number(low) || !json_is_number(high))
        return bad_line(2 + i, st, "an interval has a 'low_us' and a 'high_us'");
    t->ci_low_ms = json_number_value(low) / 1e3;
    t->ci_high_ms = json_number_value(high) / 1e3;
    return t->ci_low_ms <= t->median_ms && t->median_ms <= t->ci_high_ms
               ? 0
               : bad_line(2 + i, st, "a median is outside its interval");
}

static int add_segment(struct import *m, int i, struct status *st)
{
    const struct recorded_attempt *a = &m->space->attempts[i];
    const json_t *line = line_at(m, i), *failed = json_object_get(line, "failed");
    struct db_trial *t = add_trial(m, DB_TRIAL_SEGMENT, m->order.plans);
    t->choices = &m->attempts[i];
    t->build_s = a->build_s;
    t->verify_s = a->verify_s;
    t->time_s = a->time_s;
    if (failed != NULL && a->impl == NULL) {
        m->attempts[i] = m->choices[a->slot];
        return take_reason(m, failed, 2 + i, t, st);
    }
    if (a->impl == NULL || a->impl[0] == '\0' || strchr(a->impl, ' ') != NULL ||
        a->schedule == NULL)
        return bad_line(2 + i, st, "a segment that ran has an 'implementation' and a 'schedule'");
    m->attempts[i] = (struct db_choice){slot_segment(a->slot), a->impl, a->schedule};
    if (slot_of_choice(m->kind, &m->attempts[i]) != a->slot)
        return status_set(st, STATUS_USAGE,
                          "line %d: '%.40s' and 'handwritten' contradict each other", 2 + i,
                          a->impl);
    if (m->space->fastest[a->slot] == a)
        m->choices[a->slot] = m->attempts[i];
    if (failed != NULL)
        return take_reason(m, failed, 2 + i, t, st);
    t->status = isnan(a->us) ? TRIAL_CENSORED : TRIAL_OK;
    t->median_ms = json_number_value(json_object_get(line, "us")) / 1e3;
    return set_ends(m, i, t, st);
}

static int set_interval(const struct import *m, int plan, size_t at, struct db_trial *t,
                        struct status *st)
{
    t->status = TRIAL_OK;
    t->median_ms = plan_us(m, plan, at) / 1e3;
    t->ci_low_ms = plan_us(m, plan, at + 1) / 1e3;
    t->ci_high_ms = plan_us(m, plan, at + 2) / 1e3;
    return t->ci_low_ms <= t->median_ms && t->median_ms <= t->ci_high_ms
               ? 0
               : bad_line(2 + segment_count(m) + plan, st,
                          "a median is outside its interval; expected median, low, high");
}

static void set_plan(struct import *m, int plan, struct db_trial *t)
{
    int slots[OP_COUNT];
    t->value = (int)plan_value(m->space->plans[plan]);
    t->choice_count = plan_slots(m->space->plans[plan], slots);
    for (int i = 0; i < t->choice_count; i++)
        m->of_plan[plan][i] = m->choices[slots[i]];
    t->choices = m->of_plan[plan];
}

static int add_plan(struct import *m, int plan, struct status *st)
{
    enum trial_status status = m->space->outcomes[plan].status;
    int line = 2 + segment_count(m) + plan;
    struct db_trial *t =
        add_trial(m, DB_TRIAL_PLAN, plan == m->space->best ? m->order.best : m->order.plans);
    set_plan(m, plan, t);
    t->time_s = m->space->seconds[plan]; /* of which building and verifying are a part */
    if (status == TRIAL_OK)
        return set_interval(m, plan, space_us_at(m->space), t, st);
    const size_t at = space_us_at(m->space);
    const json_t *word = json_array_get(plan_line(m, plan), at + 1);
    if (status == TRIAL_FAILED)
        return take_reason(m, word, line, t, st);
    if (strcmp(json_string_value(word), trial_status_name(TRIAL_CENSORED)) != 0)
        return bad_line(line, st, "a plan with one time is \"censored\"");
    t->status = TRIAL_CENSORED;
    t->median_ms = plan_us(m, plan, at) / 1e3;
    return 0;
}

static int add_final(struct import *m, int plan, struct status *st)
{
    bool older = again_us(m, plan) < m->order.threshold_us;
    if (isnan(again_us(m, plan)))
        return 0;
    struct db_trial *t = add_trial(m, DB_TRIAL_FINAL, older ? m->order.older : m->order.newest);
    t->comparison = older ? m->older : m->newest;
    set_plan(m, plan, t);
    return set_interval(m, plan, space_us_at(m->space) + 3, t, st);
}

/* Of equal times the database prefers what was stored first: the best plan. */
static int add_trials(struct import *m, struct status *st)
{
    const struct recorded_space *s = m->space;
    size_t most = json_array_size(s->lines) + (size_t)s->count;
    m->trials = mem_alloc(most, sizeof(*m->trials));
    m->codes = mem_alloc(most, sizeof(*m->codes));
    m->of_plan = mem_alloc((size_t)s->count, sizeof(*m->of_plan));
    m->attempts = mem_alloc((size_t)s->attempt_count + 1, sizeof(*m->attempts));
    default_choices(m);
    for (int i = 0; i < segment_count(m); i++)
        if (add_segment(m, i, st) != 0)
            return -1;
    int (*const steps[])(struct import *, int, struct status *) = {add_plan, add_final};
    for (size_t k = 0; k < ARRAY_LEN(steps); k++) {
        if (steps[k](m, s->best, st) != 0)
            return -1;
        for (int i = 0; i < s->count; i++)
            if (i != s->best && steps[k](m, i, st) != 0)
                return -1;
    }
    return 0;
}

/* ---- all of it ------------------------------------------------------------------------------- */

static int store(const struct import *m, struct db *db, struct db_moved *out, struct status *st)
{
    const json_t *inputs = json_object_get(m->space->header, "inputs");
    bool uniform = strcmp(json_string_value(json_object_get(inputs, "init")), "uniform") == 0;
    struct buf text;
    buf_init(&text);
    struct db_workload workload = db_workload_of(&m->workload, &text);
    workload.seed = (uint64_t)json_integer_value(json_object_get(inputs, "seed"));
    workload.init = uniform ? "uniform" : "wide";
    const struct db_record record = {.workload = &workload,
                                     .target = &m->space->target,
                                     .protocol = m->space->protocol,
                                     .created_utc = m->space->measured_utc,
                                     .count = m->count,
                                     .trials = m->trials};
    int result = db_record_add(db, &record, out, st);
    buf_release(&text);
    return result;
}

static void release(struct import *m)
{
    for (int i = 0; i < m->count; i++)
        free(m->codes[i]);
    for (int i = 0; i < SLOT_COUNT; i++)
        free(m->defaults[i]);
    free((void *)m->codes);
    free(m->trials);
    free(m->attempts);
    free((void *)m->of_plan);
    workload_release(&m->workload);
    free(m);
}

int space_import(const struct recorded_space *s, const char *db_path, struct db **db,
                 struct db_moved *out, struct status *st)
{
    struct import *m = mem_alloc(1, sizeof(*m));
    *m = (struct import){.space = s};
    int result =
        read_header(m, st) != 0 || add_trials(m, st) != 0 || db_open(db_path, DB_WRITE, db, st) != 0
            ? -1
            : store(m, *db, out, st);
    release(m);
    return result;
}
