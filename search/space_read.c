/* The lines of a recorded space: docs/recorded-spaces.md describes the format. */
#include "search/search_int.h"
#include "search/space_int.h"

#include <jansson.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

struct reader {
    struct recorded_space *out;
    const char *next;         /* the lines not read yet */
    int line;                 /* of the last one read, from 1 */
    int attempts;             /* how many lines of segments the header promises */
    int promised;             /* how many lines of plans it promises */
    bool in_space[PLAN_KEYS]; /* whether the plan of a key is in lo..hi */
    double *search_us;        /* (promised) in the order of the lines; NaN if the plan failed */
    double *again_us;         /* (promised) NaN if the plan was not timed again */
    json_int_t best;          /* the value of the best plan known */
};

static int bad(struct reader *r, struct status *st, const char *what)
{
    return status_set(st, STATUS_USAGE, "line %d: %s", r->line, what);
}

/* The next line as JSON; the caller releases it. */
static int take_line(struct reader *r, json_t **out, struct status *st)
{
    const char *end = strchr(r->next, '\n');
    *out = NULL;
    r->line++;
    if (end == NULL)
        return bad(r, st, "the file ends before it; it was cut short");
    json_error_t error;
    *out = json_loadb(r->next, (size_t)(end - r->next), 0, &error);
    r->next = end + 1;
    return *out != NULL
               ? 0
               : status_set(st, STATUS_USAGE, "line %d is not JSON: %s", r->line, error.text);
}

/* ---- the header ------------------------------------------------------------------------------ */

static int check_format(json_t *header, int *out, struct status *st)
{
    const char *format = json_string_value(json_object_get(header, "format"));
    json_int_t version = json_integer_value(json_object_get(header, "version"));
    if (format == NULL || strcmp(format, SPACE_FORMAT) != 0)
        return status_set(st, STATUS_USAGE, "its format is '%s', expected '%s'",
                          format != NULL ? format : "", SPACE_FORMAT);
    if (version != SPACE_VERSION_1 && version != SPACE_VERSION)
        return status_set(st, STATUS_USAGE, "its version is %lld, this fuseplan reads %d and %d%s",
                          (long long)version, SPACE_VERSION_1, SPACE_VERSION,
                          version > SPACE_VERSION ? "; use a newer fuseplan" : "");
    *out = (int)version;
    return 0;
}

static int read_target(json_t *target, struct db_target *t, struct status *st)
{
    json_int_t units;
    json_error_t error;
    if (json_unpack_ex(target, &error, 0, "{ss ss ss ss sI ss ss ss}", "kind", &t->kind, "device",
                       &t->device, "uuid", &t->uuid, "capability", &t->capability, "units", &units,
                       "driver", &t->driver, "compiler", &t->compiler, "libraries",
                       &t->libraries) != 0)
        return status_set(st, STATUS_USAGE, "line 1: target: %s", error.text);
    t->units = units;
    return 0;
}

/* Checks the counts, which sizes and indices rely on. */
static int read_counts(struct reader *r, json_t *header, struct status *st)
{
    json_int_t lo, hi, attempts, plans;
    json_error_t error;
    bool first = r->out->version == SPACE_VERSION_1;
    if (json_unpack_ex(header, &error, 0, "{s[II!] s{sI sI} s{sI}}", "space", &lo, &hi, "counts",
                       first ? "segments" : "attempts", &attempts, "plans", &plans, "best", "value",
                       &r->best) != 0)
        return status_set(st, STATUS_USAGE, "line 1: %s", error.text);
    if (lo < 0 || hi < lo || hi > VALUE_MAX || plans < 1 || plans > PLAN_SPACE || attempts < 0 ||
        attempts > (first ? SLOT_COUNT : ATTEMPTS_MAX))
        return bad(r, st, "its space or its numbers of plans and segments are out of range");
    r->out->lo = (unsigned)lo;
    r->out->hi = (unsigned)hi;
    r->attempts = (int)attempts;
    r->promised = (int)plans;
    struct plan space[PLAN_SPACE];
    int count = plan_space(r->out->lo, r->out->hi, space);
    for (int i = 0; i < count; i++)
        r->in_space[plan_key(space[i])] = true;
    return 0;
}

static int read_header(struct reader *r, struct status *st)
{
    struct recorded_space *out = r->out;
    json_t *workload, *target;
    json_error_t error;
    if (take_line(r, &out->header, st) != 0 || check_format(out->header, &out->version, st) != 0)
        return -1;
    if (json_unpack_ex(out->header, &error, 0, "{so so ss ss}", "workload", &workload, "target",
                       &target, "protocol", &out->protocol, "measured_utc",
                       &out->measured_utc) != 0)
        return status_set(st, STATUS_USAGE, "line 1: %s", error.text);
    if (read_counts(r, out->header, st) != 0)
        return -1;
    out->workload = json_dumps(workload, JSON_COMPACT);
    return read_target(target, &out->target, st);
}

/* ---- segments -------------------------------------------------------------------------------- */

/* Reads a number of seconds, or null for unknown ones. */
static int read_seconds(struct reader *r, const json_t *number, double *out, struct status *st)
{
    *out = json_is_null(number) ? NAN : json_number_value(number);
    if (!json_is_null(number) && !(json_is_number(number) && *out >= 0))
        return bad(r, st, "its seconds are not 0 or more, nor null");
    return 0;
}

static int read_times_of_attempt(struct reader *r, const json_t *line, struct recorded_attempt *out,
                                 struct status *st)
{
    const json_t *us = json_object_get(line, "us");
    const json_t *reason = json_object_get(line, "failed");
    bool failed = json_is_string(reason);
    if ((reason != NULL && !failed) || failed == json_is_number(us) ||
        (us != NULL && !(json_number_value(us) > 0)))
        return bad(r, st, "a segment has a time above 0 or the reason why it failed");
    bool ran = !failed && !json_is_true(json_object_get(line, "censored"));
    out->us = ran ? json_number_value(us) : NAN;
    out->build_s = out->verify_s = out->time_s = NAN;
    if (r->out->version == SPACE_VERSION_1)
        return 0;
    return read_seconds(r, json_object_get(line, "build_s"), &out->build_s, st) != 0 ||
                   read_seconds(r, json_object_get(line, "verify_s"), &out->verify_s, st) != 0 ||
                   read_seconds(r, json_object_get(line, "time_s"), &out->time_s, st) != 0
               ? -1
               : 0;
}

/* A file of version 1 has a line for each segment, one of version 2 for each of its choices. */
static bool on_a_line_before(const struct recorded_space *s, const struct recorded_attempt *new)
{
    for (int i = 0; i < s->attempt_count; i++) {
        const struct recorded_attempt *a = &s->attempts[i];
        if (a->slot == new->slot &&
            (s->version == SPACE_VERSION_1 ||
             (strcmp(a->impl, new->impl) == 0 && strcmp(a->schedule, new->schedule) == 0)))
            return true;
    }
    return false;
}

/* Adds the attempt to the space. */
static void take_attempt(struct recorded_space *s, const struct recorded_attempt *new)
{
    struct recorded_attempt *a = &s->attempts[s->attempt_count++];
    const struct recorded_attempt **fastest = &s->fastest[new->slot];
    *a = *new;
    s->has_seconds &= isfinite(a->build_s + a->verify_s + a->time_s);
    if (!isnan(a->us) && (*fastest == NULL || a->us < (*fastest)->us)) {
        *fastest = a;
        s->segments.ms[a->slot] = a->us / 1e3;
    }
    s->failed[a->slot] = *fastest == NULL;
}

static int read_attempt(struct reader *r, struct status *st)
{
    json_t *line;
    int first, last, handwritten, result = -1;
    if (take_line(r, &line, st) != 0)
        return -1;
    if (json_unpack(line, "{s[ii!] sb}", "ops", &first, &last, "handwritten", &handwritten) != 0 ||
        first < 0 || last < first || last >= OP_COUNT ||
        (handwritten != 0 && (first != ATTENTION_FIRST || last != ATTENTION_LAST))) {
        bad(r, st, "it describes no segment");
        goto out;
    }
    struct recorded_attempt new = {
        .slot = slot_of((struct segment){(int8_t)first, (int8_t)last}, handwritten != 0),
        .impl = json_string_value(json_object_get(line, "implementation")),
        .schedule = json_string_value(json_object_get(line, "schedule"))};
    if (r->out->version != SPACE_VERSION_1 && (new.impl == NULL || new.schedule == NULL)) {
        bad(r, st, "an attempt has an 'implementation' and a 'schedule'");
        goto out;
    }
    if (read_times_of_attempt(r, line, &new, st) != 0)
        goto out;
    if (on_a_line_before(r->out, &new)) {
        bad(r, st, "the segment was on a line before");
        goto out;
    }
    take_attempt(r->out, &new);
    json_array_append(r->out->lines, line);
    result = 0;
out:
    json_decref(line);
    return result;
}

/* ---- plans ----------------------------------------------------------------------------------- */

size_t space_us_at(const struct recorded_space *s)
{
    return s->version == SPACE_VERSION_1 ? 1 : 2;
}

/* A plan's line is [value, seconds, us, low, high], the same and us, low, high of the second
 * timing, [value, seconds, us, "censored"], or [value, seconds, null, reason].  In version 1 it has
 * no seconds. */
static int read_times(struct reader *r, const json_t *line, struct outcome *out, struct status *st)
{
    size_t at = space_us_at(r->out), size = json_array_size(line);
    size_t numbers = size - at; /* from the time on */
    const json_t *us = json_array_get(line, at), *word = json_array_get(line, at + 1);
    int i = r->out->count;
    double *seconds = &r->out->seconds[i];
    r->search_us[i] = r->again_us[i] = *seconds = NAN;
    *out = (struct outcome){.status = TRIAL_FAILED, .ms = NAN};
    if (at > 1 && read_seconds(r, json_array_get(line, 1), seconds, st) != 0)
        return -1;
    r->out->has_seconds &= !isnan(*seconds);
    if (size > at && numbers == 2 && json_is_null(us) && json_is_string(word))
        return 0;
    for (size_t k = at; k < size && !(k == at + 1 && numbers == 2); k++)
        if (!(json_number_value(json_array_get(line, k)) > 0))
            return bad(r, st, "a time is not above 0");
    if (size <= at || (numbers != 3 && numbers != 6 && !(numbers == 2 && json_is_string(word))))
        return bad(r, st, "it describes no plan");
    out->status = numbers == 2 ? TRIAL_CENSORED : TRIAL_OK;
    r->search_us[i] = json_number_value(us);
    if (numbers > 2) /* of the time that counts: side by side, if there is one */
        *out = outcome_of(TRIAL_OK,
                          (struct interval){json_number_value(json_array_get(line, size - 3)),
                                            json_number_value(json_array_get(line, size - 2)),
                                            json_number_value(json_array_get(line, size - 1))});
    if (numbers == 6)
        r->again_us[i] = json_number_value(json_array_get(line, at + 3));
    return 0;
}

static int read_plan(struct reader *r, struct status *st)
{
    json_t *line;
    int result = -1;
    struct recorded_space *out = r->out;
    if (take_line(r, &line, st) != 0)
        return -1;
    json_int_t value =
        json_is_integer(json_array_get(line, 0)) ? json_integer_value(json_array_get(line, 0)) : -1;
    struct plan p = plan_from_value((unsigned)value);
    if (plan_value(p) != value || !r->in_space[plan_key(p)]) {
        bad(r, st, "its first number is no canonical value of the space");
        goto out;
    }
    if (out->at[plan_key(p)] >= 0) {
        bad(r, st, "the plan was on a line before");
        goto out;
    }
    if (read_times(r, line, &out->outcomes[out->count], st) != 0)
        goto out;
    out->at[plan_key(p)] = out->count;
    out->plans[out->count++] = p;
    json_array_append(out->lines, line);
    result = 0;
out:
    json_decref(line);
    return result;
}

/* A search times fewer layers than there are and scales the time to all, and it times no plans side
 * by side.  This factor puts such a time on the scale of the plans timed again: the median of their
 * ratios, 1 if there are none. */
static double scale(const struct reader *r)
{
    double *ratios = mem_alloc((size_t)r->promised, sizeof(*ratios));
    size_t n = 0;
    for (int i = 0; i < r->promised; i++)
        if (!isnan(r->again_us[i]))
            ratios[n++] = r->again_us[i] / r->search_us[i];
    double ratio = n > 0 ? stats_median(ratios, n).median : 1;
    free(ratios);
    return ratio;
}

static int finish(struct reader *r, struct status *st)
{
    struct recorded_space *out = r->out;
    double ratio = scale(r);
    for (int i = 0; i < out->count; i++) {
        double us = isnan(r->again_us[i]) ? ratio * r->search_us[i] : r->again_us[i];
        if (out->outcomes[i].status == TRIAL_FAILED)
            continue;
        out->outcomes[i].ms = us / 1e3;
        if (!isfinite(us) || out->outcomes[i].ms <= 0)
            return status_set(st, STATUS_USAGE, "the times of plan %u are on no scale",
                              plan_value(out->plans[i]));
    }
    if (*r->next != '\0')
        return status_set(st, STATUS_USAGE,
                          "it has more lines than the %d that its header promises", r->line);
    struct plan best = plan_from_value((unsigned)r->best);
    out->best = plan_value(best) == r->best ? out->at[plan_key(best)] : -1;
    if (out->best < 0 || out->outcomes[out->best].status != TRIAL_OK)
        return status_set(st, STATUS_USAGE, "its best plan, %lld, is not among those that ran",
                          (long long)r->best);
    return 0;
}

/* ---- all of it ------------------------------------------------------------------------------- */

int space_parse(const char *text, struct recorded_space *out, struct status *st)
{
    struct reader r = {.out = out, .next = text};
    int result = read_header(&r, st);
    if (result != 0)
        return -1;
    out->lines = json_array();
    out->attempts = mem_alloc((size_t)r.attempts + 1, sizeof(*out->attempts));
    out->seconds = mem_alloc((size_t)r.promised, sizeof(*out->seconds));
    out->has_seconds = out->version != SPACE_VERSION_1;
    out->plans = mem_alloc((size_t)r.promised, sizeof(*out->plans));
    out->outcomes = mem_alloc((size_t)r.promised, sizeof(*out->outcomes));
    r.search_us = mem_alloc((size_t)r.promised, sizeof(*r.search_us));
    r.again_us = mem_alloc((size_t)r.promised, sizeof(*r.again_us));
    for (int i = 0; i < r.attempts && result == 0; i++)
        result = read_attempt(&r, st);
    for (int i = 0; i < r.promised && result == 0; i++)
        result = read_plan(&r, st);
    if (result == 0)
        result = finish(&r, st);
    free(r.search_us);
    free(r.again_us);
    return result;
}
