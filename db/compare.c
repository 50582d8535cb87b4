#include "db/db_int.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

int db_time_parse(const char *text, char out[CLOCK_UTC_SIZE], struct status *st)
{
    static const char whole[CLOCK_UTC_SIZE] = "0000-00-00T00:00:00.000Z";
    static const size_t lengths[] = {10, 16, 19, 23}; /* to the day, minute, second, ms */
    struct tm broken;
    size_t len = strlen(text);
    len -= len > 0 && text[len - 1] == 'Z';
    bool fits = false;
    for (size_t i = 0; i < ARRAY_LEN(lengths); i++)
        fits |= len == lengths[i];
    len = fits ? len : 0;
    snprintf(out, CLOCK_UTC_SIZE, "%.*s%s", (int)len, text, whole + len);
    if (out[10] == ' ')
        out[10] = 'T';
    const char *rest = fits ? strptime(out, "%Y-%m-%dT%H:%M:%S", &broken) : NULL;
    if (rest == NULL || rest != out + 19 || !db_is_utc(out))
        return status_set(st, STATUS_USAGE,
                          "'%s' is no time; write it in UTC as 2026-01-31, 2026-01-31T12:34 or "
                          "2026-01-31T12:34:56Z",
                          text);
    return 0;
}

/* ---- studies --------------------------------------------------------------------------------- */

/* Studies whose times may be compared agree in this text: all but the versions of compiler, driver
 * and libraries, and which device of its kind it was. */
static char *key_of(const struct db_listed *l)
{
    struct buf key;
    buf_init(&key);
    buf_addf(&key, "%s\n%s\n%s\n%lld\n%s\n%s\n%llu", l->workload.text, l->target.kind,
             l->target.device, (long long)l->target.units, l->protocol, l->workload.init,
             (unsigned long long)l->workload.seed);
    return buf_detach(&key);
}

struct keyed {
    char *key; /* owned */
    int64_t study;
};

/* The studies of one side. */
struct side {
    struct db *db;
    bool wants_before, wants_after; /* trials before `time`, or from it on; both: all */
    struct keyed *studies;          /* (count) owned, by key */
    size_t count, cap;
};

static int keep_study(void *ctx, struct db_listed *l, struct status *st)
{
    struct side *s = ctx;
    (void)st;
    if (s->count == s->cap) {
        s->cap = s->cap > 0 ? 2 * s->cap : 64;
        s->studies = mem_resize(s->studies, s->cap, sizeof(*s->studies));
    }
    s->studies[s->count++] = (struct keyed){key_of(l), l->study};
    return 0;
}

static int by_key(const void *a, const void *b)
{
    const struct keyed *x = a, *y = b;
    int order = strcmp(x->key, y->key);
    return order != 0 ? order : (x->study > y->study) - (x->study < y->study);
}

static int read_side(struct side *s, struct status *st)
{
    int result = db_studies(s->db, keep_study, s, st);
    if (result == 0 && s->count > 0)
        qsort(s->studies, s->count, sizeof(*s->studies), by_key);
    return result;
}

static void release_side(struct side *s)
{
    for (size_t i = 0; i < s->count; i++)
        free(s->studies[i].key);
    free(s->studies);
}

/* ---- results --------------------------------------------------------------------------------- */

/* The newest result of a plan; no utc: there is none. */
struct result {
    char utc[CLOCK_UTC_SIZE];
    bool ok;
    struct interval ms;
};

enum { PLANS = VALUE_MAX + 1 };

struct comparing {
    struct side sides[2];
    const char *time;           /* null: no limit */
    struct result *results[2];  /* (PLANS) of the kind read, owned */
    struct db_change_row *rows; /* (PLANS) owned */
    const struct side *reading;
    struct result *into;
    db_change_sink *sink;
    void *ctx;
    int common;
};

static int keep_result(void *ctx, const struct db_trial *t)
{
    struct comparing *c = ctx;
    struct result *r = &c->into[t->value];
    bool before = c->time == NULL || strcmp(t->stored_utc, c->time) < 0;
    if (t->status == TRIAL_CENSORED || (before && !c->reading->wants_before) ||
        (!before && !c->reading->wants_after) || strcmp(t->stored_utc, r->utc) <= 0)
        return 0;
    snprintf(r->utc, sizeof(r->utc), "%s", t->stored_utc);
    r->ok = t->status == TRIAL_OK;
    r->ms = (struct interval){t->median_ms, t->ci_low_ms, t->ci_high_ms};
    return 0;
}

/* Reads the trials of a kind of all studies from at[side] that share their key. */
static int read_results(struct comparing *c, enum db_trial_kind kind, const size_t at[2],
                        struct status *st)
{
    for (int side = 0; side < 2; side++) {
        const struct side *s = &c->sides[side];
        c->reading = s;
        c->into = c->results[side];
        memset(c->into, 0, PLANS * sizeof(*c->into));
        for (size_t i = at[side];
             i < s->count && strcmp(s->studies[i].key, s->studies[at[side]].key) == 0; i++)
            if (db_trial_times(s->db, s->studies[i].study, kind, keep_result, c, st) != 0)
                return -1;
    }
    return 0;
}

static enum db_change change_of(const struct result *before, const struct result *after)
{
    if (!before->ok)
        return after->ok ? DB_FIXED : DB_SAME;
    if (!after->ok)
        return DB_BROKEN;
    if (after->ms.low > before->ms.high)
        return DB_SLOWER;
    return after->ms.high < before->ms.low ? DB_FASTER : DB_SAME;
}

static struct db_change_row row_of(int value, const struct result *before,
                                   const struct result *after)
{
    static const struct interval none = {NAN, NAN, NAN};
    struct db_change_row row = {.value = value,
                                .change = change_of(before, after),
                                .before = before->ok ? before->ms : none,
                                .after = after->ok ? after->ms : none,
                                .ratio = none,
                                .before_utc = before->utc,
                                .after_utc = after->utc};
    if (before->ok && after->ok)
        row.ratio =
            (struct interval){after->ms.median / before->ms.median, after->ms.low / before->ms.high,
                              after->ms.high / before->ms.low};
    return row;
}

/* What got worse first. */
static int by_change(const void *a, const void *b)
{
    const struct db_change_row *x = a, *y = b;
    if ((x->change == DB_BROKEN) != (y->change == DB_BROKEN))
        return x->change == DB_BROKEN ? -1 : 1;
    double p = isnan(x->ratio.median) ? -1 : x->ratio.median;
    double q = isnan(y->ratio.median) ? -1 : y->ratio.median;
    return p != q ? (p > q ? -1 : 1) : x->value - y->value;
}

/* ---- the comparison -------------------------------------------------------------------------- */

/* Compares studies that share their key by trials of one kind; *found: how many plans both have. */
static int compare_kind(struct comparing *c, enum db_trial_kind kind, const size_t at[2],
                        int *found, struct status *st)
{
    *found = 0;
    if (read_results(c, kind, at, st) != 0)
        return -1;
    for (int value = 0; value < PLANS; value++) {
        const struct result *before = &c->results[0][value], *after = &c->results[1][value];
        if (before->utc[0] != '\0' && after->utc[0] != '\0')
            c->rows[(*found)++] = row_of(value, before, after);
    }
    qsort(c->rows, (size_t)*found, sizeof(*c->rows), by_change);
    for (int i = 0; i < *found; i++) {
        c->rows[i].study = c->sides[1].studies[at[1]].study;
        c->rows[i].final = kind == DB_TRIAL_FINAL;
        c->sink(c->ctx, &c->rows[i]);
    }
    c->common += *found;
    return 0;
}

/* Times of a comparison and times of a search do not compare: the former count if both sides have
 * some of one plan. */
static int compare_study(struct comparing *c, const size_t at[2], struct status *st)
{
    int found;
    if (compare_kind(c, DB_TRIAL_FINAL, at, &found, st) != 0)
        return -1;
    return found > 0 ? 0 : compare_kind(c, DB_TRIAL_PLAN, at, &found, st);
}

static int compare_all(struct comparing *c, struct status *st)
{
    const struct side *a = &c->sides[0], *b = &c->sides[1];
    if (read_side(&c->sides[0], st) != 0 || read_side(&c->sides[1], st) != 0)
        return -1;
    for (size_t i = 0, k = 0; i < a->count && k < b->count;) {
        int order = strcmp(a->studies[i].key, b->studies[k].key);
        if (order == 0 && compare_study(c, (const size_t[]){i, k}, st) != 0)
            return -1;
        const char *done = order <= 0 ? a->studies[i].key : b->studies[k].key;
        while (i < a->count && strcmp(a->studies[i].key, done) == 0)
            i++;
        while (k < b->count && strcmp(b->studies[k].key, done) == 0)
            k++;
    }
    return 0;
}

int db_compare(struct db *a, struct db *b, const char *time, db_change_sink *sink, void *ctx,
               struct status *st)
{
    struct comparing c = {
        .sides = {{.db = a, .wants_before = true, .wants_after = time == NULL},
                  {.db = b != NULL ? b : a, .wants_before = time == NULL, .wants_after = true}},
        .time = time,
        .results = {mem_alloc(PLANS, sizeof(struct result)),
                    mem_alloc(PLANS, sizeof(struct result))},
        .rows = mem_alloc(PLANS, sizeof(struct db_change_row)),
        .sink = sink,
        .ctx = ctx};
    int result = compare_all(&c, st);
    if (result == 0 && c.common == 0)
        result = status_set(st, STATUS_NOT_FOUND,
                            "no plan was measured on both sides for one workload, kind of device "
                            "and protocol: '%s' and %s%s%s",
                            db_path(a), b != NULL ? "'" : "the same from ",
                            b != NULL ? db_path(b) : time, b != NULL ? "'" : " on");
    for (int side = 0; side < 2; side++) {
        release_side(&c.sides[side]);
        free(c.results[side]);
    }
    free(c.rows);
    return result;
}
