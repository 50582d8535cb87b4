#include "db/db_int.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* A schedule of the source, and its row in the database merged into. */
struct mapped {
    int64_t from, to;
    struct segment segment;
};

struct merging {
    struct db *from, *into;
    struct mapped *schedules; /* (count) by rising `from`, owned */
    size_t count;
    struct db_moved *moved;
    int64_t trials; /* of the source */
    double start_s;
    bool has_plan[VALUE_MAX + 1]; /* the row of a value is there */
    char search[HASH_TEXT_SIZE];  /* the last one that a trial named */
    int64_t search_study;         /* whose it is in the database merged into; 0: nobody's */
};

static void tell(const struct merging *m)
{
    int64_t done = m->moved->results;
    if (done % MOVED_PER_STEP != 0)
        return;
    double left_s = step_left(clock_seconds() - m->start_s, done, m->trials);
    step_tell(&m->into->listener, &(struct step){"merging", done, m->trials, left_s});
}

static int damaged(const struct merging *m, const char *table, int64_t id, const char *what,
                   struct status *st)
{
    return status_set(st, STATUS_DATABASE, "'%s': %s of %s %lld; 'fuseplan db check' says more",
                      db_path(m->from), what, table, (long long)id);
}

/* ---- schedules ------------------------------------------------------------------------------- */

static int merge_schedules(struct merging *m, struct status *st)
{
    struct query q = query_start(m->from, SQL_SCHEDULES);
    size_t cap = 0;
    int found;
    while ((found = query_row(&q, st)) > 0) {
        struct db_choice c = {{(int8_t)column_int(&q, 1), (int8_t)column_int(&q, 2)},
                              column_text(&q, 3),
                              column_text(&q, 4)};
        struct mapped mapped = {.from = column_int(&q, 0), .segment = c.segment};
        if (c.segment.last < c.segment.first) {
            found = damaged(m, "schedule", mapped.from, "operators in descending order", st);
            break;
        }
        if (db_schedule(m->into, &c, &mapped.to, st) != 0) {
            found = -1;
            break;
        }
        if (m->count == cap) {
            cap = cap > 0 ? 2 * cap : 1024;
            m->schedules = mem_resize(m->schedules, cap, sizeof(*m->schedules));
        }
        m->schedules[m->count++] = mapped;
    }
    query_end(&q);
    return found;
}

static int by_from(const void *a, const void *b)
{
    const struct mapped *x = a, *y = b;
    return (x->from > y->from) - (x->from < y->from);
}

/* Null if the source, which is damaged, lacks it. */
static const struct mapped *find_schedule(const struct merging *m, int64_t from)
{
    const struct mapped key = {.from = from};
    return bsearch(&key, m->schedules, m->count, sizeof(key), by_from);
}

/* ---- trials ---------------------------------------------------------------------------------- */

/* Gives a plan's segments and the ids of their schedules, in order. */
static int read_choices(const struct merging *m, int64_t trial, struct db_trial *t,
                        struct db_choice out[OP_COUNT], int64_t schedules[OP_COUNT],
                        struct status *st)
{
    const struct mapped *from_op[OP_COUNT] = {NULL};
    struct segment expected[OP_COUNT];
    bool whole = plan_canonical((unsigned)t->value) == (unsigned)t->value;
    int found, rows = 0;
    struct query q = query_start(m->from, SQL_TRIAL_SCHEDULES);
    query_int(&q, trial);
    for (; (found = query_row(&q, st)) > 0; rows++) {
        const struct mapped *s = find_schedule(m, column_int(&q, 0));
        if (s == NULL)
            break;
        from_op[s->segment.first] = s;
    }
    query_end(&q);
    if (found < 0)
        return -1;
    t->choices = out;
    t->choice_count = plan_segments(plan_from_value((unsigned)t->value), expected);
    whole &= rows == t->choice_count;
    for (int i = 0; i < t->choice_count && whole; i++) {
        const struct mapped *s = from_op[expected[i].first];
        whole = s != NULL && s->segment.last == expected[i].last;
        if (whole) {
            out[i].segment = s->segment;
            schedules[i] = s->to;
        }
    }
    return whole ? 0 : damaged(m, "trial", trial, "damaged choices", st);
}

static int store_plan(struct merging *m, const struct db_trial *t, struct status *st)
{
    if (m->has_plan[t->value])
        return 0;
    m->has_plan[t->value] = true;
    return db_plan_add(m->into, t, st);
}

/* The searches of the study were merged before. */
static int check_search(struct merging *m, int64_t trial, const char *id, int64_t study,
                        struct status *st)
{
    if (id[0] == '\0')
        return 0;
    if (strcmp(id, m->search) != 0) {
        struct query q = query_start(m->into, SQL_SEARCH_STUDY);
        query_text(&q, id);
        m->search_study = 0;
        if (query_one_int(&q, &m->search_study, st) < 0)
            return -1;
        snprintf(m->search, sizeof(m->search), "%s", id);
    }
    return m->search_study == study ? 0 : damaged(m, "trial", trial, "no search", st);
}

static int read_samples(const struct merging *m, int64_t trial, double **out, int *count,
                        struct status *st)
{
    struct query q = query_start(m->from, SQL_SAMPLES);
    int found, cap = 0;
    query_int(&q, trial);
    while ((found = query_row(&q, st)) > 0) {
        if (*count == cap) {
            cap = cap > 0 ? 2 * cap : 64;
            *out = mem_resize(*out, (size_t)cap, sizeof(**out));
        }
        (*out)[(*count)++] = column_real(&q, 0);
    }
    query_end(&q);
    return found;
}

/* q: a row of SQL_TRIALS. */
static int merge_trial(struct merging *m, const struct query *q, enum db_trial_kind kind,
                       int64_t study, struct status *st)
{
    struct db_trial t;
    struct db_choice choices[OP_COUNT];
    int64_t id = column_int(q, 0), schedules[OP_COUNT] = {0};
    double *samples = NULL;
    int sample_count = 0, result = -1;
    if (db_trial_of(q, kind, &t, st) != 0 || check_search(m, id, t.search, study, st) != 0)
        return -1;
    if (kind == DB_TRIAL_SEGMENT) {
        const struct mapped *s = find_schedule(m, column_int(q, 2));
        if (s == NULL)
            return damaged(m, "trial", id, "no schedule", st);
        schedules[0] = s->to;
        t.choice_count = 1;
    } else if (read_choices(m, id, &t, choices, schedules, st) != 0 || store_plan(m, &t, st) != 0) {
        return -1;
    }
    if (kind != DB_TRIAL_FINAL || read_samples(m, id, &samples, &sample_count, st) == 0) {
        t.samples_ms = samples;
        result = kind == DB_TRIAL_FINAL && sample_count != t.sample_count
                     ? damaged(m, "trial", id, "missing samples", st)
                     : db_trial_put(m->into, study, &t, schedules, m->moved, st);
    }
    free(samples);
    tell(m);
    return result;
}

static int merge_trials(struct merging *m, int64_t from, int64_t into, struct status *st)
{
    for (int kind = DB_TRIAL_SEGMENT; kind <= DB_TRIAL_FINAL; kind++) {
        struct query q = query_start(m->from, SQL_TRIALS);
        query_int(&q, from);
        query_text(&q, db_trial_kind_names[kind]);
        int found;
        while ((found = query_row(&q, st)) > 0)
            if (merge_trial(m, &q, (enum db_trial_kind)kind, into, st) != 0) {
                found = -1;
                break;
            }
        query_end(&q);
        if (found < 0)
            return -1;
    }
    return 0;
}

/* ---- studies --------------------------------------------------------------------------------- */

static int merge_searches(const struct merging *m, int64_t from, int64_t into, struct status *st)
{
    struct query q = query_start(m->from, SQL_SEARCHES);
    query_int(&q, from);
    int found;
    while ((found = query_row(&q, st)) > 0) {
        struct db_search s = db_search_of(&q);
        if (db_search_put(m->into, into, &s, st) != 0) {
            found = -1;
            break;
        }
    }
    query_end(&q);
    return found;
}

static int merge_study(void *ctx, struct db_listed *l, struct status *st)
{
    struct merging *m = ctx;
    int64_t into;
    return db_study_put(m->into, &l->workload, &l->target, l->protocol, l->created_utc, &into,
                        st) != 0 ||
                   merge_searches(m, l->study, into, st) != 0 ||
                   merge_trials(m, l->study, into, st) != 0
               ? -1
               : 0;
}

static int count_trials(void *ctx, struct db_listed *l, struct status *st)
{
    struct merging *m = ctx;
    (void)st;
    m->trials += l->trials;
    return 0;
}

static int merge_one(struct db *into, const char *path, struct db_moved *moved, struct status *st)
{
    struct merging m = {.into = into, .moved = moved, .start_s = clock_seconds()};
    *moved = (struct db_moved){0};
    if (db_open(path, DB_READ, &m.from, st) != 0)
        return -1;
    int result = db_begin_read(m.from, st);
    if (result == 0)
        result =
            db_end(m.from,
                   db_studies(m.from, count_trials, &m, st) != 0 || merge_schedules(&m, st) != 0
                       ? -1
                       : db_studies(m.from, merge_study, &m, st),
                   st);
    db_close(m.from);
    free(m.schedules);
    return result;
}

int db_merge(struct db *db, const char *const *paths, int count, struct db_moved *out,
             struct status *st)
{
    if (db_put_begin(db, st) != 0)
        return -1;
    int result = 0;
    for (int i = 0; i < count && result == 0; i++)
        result = merge_one(db, paths[i], &out[i], st);
    return db_put_end(db, result, st);
}
