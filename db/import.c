#include "db/text_read_int.h"

#include <math.h>
#include <search.h>
#include <stdlib.h>
#include <string.h>

/* Studies by the label of their lines, and schedules by their texts: trees of tsearch(). */
struct known_study {
    char *label;
    int64_t id;
};

struct known_schedule {
    char *text; /* of a choice */
    struct segment segment;
    int64_t id;
};

struct importing {
    struct db *db;
    struct text_reader reader;
    void *studies, *schedules;
    char search[HASH_TEXT_SIZE]; /* the last one looked up, and its study */
    int64_t search_study;
    bool has_plan[VALUE_MAX + 1]; /* its row is stored */
    struct db_moved *moved;
    double start_s;
};

static int by_label(const void *a, const void *b)
{
    const struct known_study *x = a, *y = b;
    return strcmp(x->label, y->label);
}

static int by_choice(const void *a, const void *b)
{
    const struct known_schedule *x = a, *y = b;
    return strcmp(x->text, y->text);
}

static void free_study(void *study)
{
    struct known_study *s = study;
    free(s->label);
    free(s);
}

static void free_schedule(void *schedule)
{
    struct known_schedule *s = schedule;
    free(s->text);
    free(s);
}

/* ---- a study's line -------------------------------------------------------------------------- */

static int read_object(const struct importing *m, json_t *line, const char *name,
                       const struct text_table *t, void *out, struct status *st)
{
    json_t *object = json_object_get(line, name);
    if (!json_is_object(object))
        return text_fail(&m->reader, NULL, name, st, "the object '%s' of a study is missing", name);
    return text_read_fields(&m->reader, name, object, t, "", out, st);
}

static int check_study(const struct importing *m, const struct db_listed *l, struct status *st)
{
    const char *kind = l->target.kind;
    if (isnan(l->workload.eps))
        return text_fail(&m->reader, NULL, "workload", st, "the workload has no 'eps'");
    if (strcmp(kind, "cpu") != 0 && strcmp(kind, "cuda") != 0)
        return text_fail(&m->reader, "target", "kind", st,
                         "'kind' is '%.60s'; expected cpu or cuda", kind);
    return 0;
}

static int import_study(struct importing *m, json_t *line, const char *label, struct status *st)
{
    struct db_listed l = {.study = 0};
    if (text_read_fields(&m->reader, NULL, line, &text_study, "study inputs target workload ", &l,
                         st) != 0 ||
        read_object(m, line, "inputs", &text_inputs, &l.workload, st) != 0 ||
        read_object(m, line, "workload", &text_workload, &l.workload, st) != 0 ||
        read_object(m, line, "target", &text_target, &l.target, st) != 0 ||
        check_study(m, &l, st) != 0)
        return -1;
    struct known_study *s = mem_alloc(1, sizeof(*s));
    *s = (struct known_study){mem_strdup(label), 0};
    int result = db_study_put(m->db, &l.workload, &l.target, l.protocol, l.created_utc, &s->id, st);
    struct known_study *found =
        *(struct known_study **)mem_checked(tsearch(s, &m->studies, by_label));
    if (result == 0 && found != s && found->id != s->id)
        result = text_fail(&m->reader, NULL, "study", st, "'%s' named another study before", label);
    if (found != s)
        free_study(s);
    return result;
}

/* ---- a search's line ------------------------------------------------------------------------- */

static int import_search(struct importing *m, json_t *line, int64_t study, struct status *st)
{
    struct db_search s = {.id = json_string_value(json_object_get(line, "search"))};
    int64_t owner = 0;
    if (s.id == NULL || s.id[0] == '\0' || strlen(s.id) >= HASH_TEXT_SIZE)
        return text_fail(&m->reader, NULL, "search", st, "the id of a search has 1 to 32 digits");
    if (text_read_fields(&m->reader, NULL, line, &text_search, "study search ", &s, st) != 0)
        return -1;
    if (s.ended_utc[0] != '\0' && !db_is_utc(s.ended_utc))
        return text_fail(&m->reader, NULL, "ended_utc", st, "'%s' is not a time", s.ended_utc);
    struct query q = query_start(m->db, SQL_SEARCH_STUDY);
    query_text(&q, s.id);
    if (query_one_int(&q, &owner, st) < 0)
        return -1;
    if (owner != 0 && owner != study && !m->reader.database) /* else db_search_put() says it */
        return text_fail(&m->reader, NULL, "search", st, "search '%s' belongs to another study",
                         s.id);
    return db_search_put(m->db, study, &s, st);
}

/* Whether a trial may name this search. */
static int check_search(struct importing *m, const char *id, int64_t study, struct status *st)
{
    if (id[0] == '\0')
        return 0;
    if (strcmp(id, m->search) != 0) {
        struct query q = query_start(m->db, SQL_SEARCH_STUDY);
        query_text(&q, id);
        m->search_study = 0;
        if (query_one_int(&q, &m->search_study, st) < 0)
            return -1;
        snprintf(m->search, sizeof(m->search), "%s", id);
    }
    if (m->search_study != study)
        return text_fail(&m->reader, NULL, "search", st,
                         "no line before this one has the search '%s' of this study", id);
    return 0;
}

/* ---- a trial's line -------------------------------------------------------------------------- */

static int read_kind(const struct importing *m, const json_t *line, struct db_trial *t,
                     struct status *st)
{
    const char *kind = json_string_value(json_object_get(line, "trial"));
    const char *status = json_string_value(json_object_get(line, "status"));
    int k = DB_TRIAL_SEGMENT;
    while (k <= DB_TRIAL_FINAL && (kind == NULL || strcmp(kind, db_trial_kind_names[k]) != 0))
        k++;
    if (k > DB_TRIAL_FINAL)
        return text_fail(&m->reader, NULL, "trial", st,
                         "'%s' is no kind of trial; expected segment, plan or final",
                         kind != NULL ? kind : "");
    t->kind = (enum db_trial_kind)k;
    t->status = trial_status_from_name(status != NULL ? status : "");
    if (status == NULL || strcmp(trial_status_name(t->status), status) != 0)
        return text_fail(&m->reader, NULL, "status", st,
                         "'%s' is no status; expected ok, censored or failed",
                         status != NULL ? status : "");
    return 0;
}

/* Reads "2-6 handwritten" or "7 generated rows=8"; impl gets the text's copy up to the schedule. */
static int parse_choice(const char *text, struct db_choice *out, char **impl)
{
    char *end;
    long first = strtol(text, &end, 10), last = first;
    if (end != text && *end == '-')
        last = strtol(end + 1, &end, 10);
    *impl = NULL;
    if (first < 0 || last < first || last >= OP_COUNT || *end != ' ' || strchr(" ", end[1]) != NULL)
        return -1;
    *impl = mem_strdup(end + 1);
    char *blank = strchr(*impl, ' ');
    if (blank != NULL)
        *blank = '\0';
    *out = (struct db_choice){{(int8_t)first, (int8_t)last}, *impl, blank != NULL ? blank + 1 : ""};
    return 0;
}

static const struct known_schedule *add_choice(struct importing *m, const char *text,
                                               struct status *st)
{
    struct db_choice c;
    char *impl;
    if (text == NULL || parse_choice(text, &c, &impl) != 0) {
        text_fail(&m->reader, NULL, "choices", st,
                  "'%.60s' is no choice; expected operators, implementation and schedule as "
                  "'8-9 generated rows=8'",
                  text != NULL ? text : "");
        return NULL;
    }
    int64_t id = 0;
    int result = db_schedule(m->db, &c, &id, st);
    free(impl);
    if (result != 0)
        return NULL;
    struct known_schedule *s = mem_alloc(1, sizeof(*s));
    *s = (struct known_schedule){mem_strdup(text), c.segment, id};
    return *(struct known_schedule **)mem_checked(tsearch(s, &m->schedules, by_choice));
}

/* The schedule of a choice, found or added; null on failure. */
static const struct known_schedule *read_choice(struct importing *m, const json_t *choice,
                                                struct status *st)
{
    const struct known_schedule key = {.text = (char *)json_string_value(choice)};
    struct known_schedule *const *found =
        key.text != NULL ? tfind(&key, &m->schedules, by_choice) : NULL;
    return found != NULL ? *found : add_choice(m, key.text, st);
}

static int read_value(const struct importing *m, const json_t *line, struct db_trial *t,
                      struct status *st)
{
    const json_t *number = json_object_get(line, "value");
    json_int_t value = json_integer_value(number);
    if (!json_is_integer(number) || value < 0 || value > VALUE_MAX ||
        plan_canonical((unsigned)value) != value)
        return text_fail(&m->reader, NULL, "value", st, "a plan has a canonical value within 0..%d",
                         VALUE_MAX);
    t->value = (int)value;
    return 0;
}

/* The choices of a plan are its segments in order.  Gives the ids of their schedules. */
static int read_choices(struct importing *m, const json_t *line, struct db_trial *t,
                        struct db_choice out[OP_COUNT], int64_t schedules[OP_COUNT],
                        struct status *st)
{
    const json_t *list = json_object_get(line, "choices");
    struct segment expected[OP_COUNT];
    bool plan = t->kind != DB_TRIAL_SEGMENT;
    int count = 1;
    if (plan && read_value(m, line, t, st) != 0)
        return -1;
    if (plan)
        count = plan_segments(plan_from_value((unsigned)t->value), expected);
    if (json_array_size(list) != (size_t)count)
        return text_fail(&m->reader, NULL, "choices", st, "%zu choices are there; expected %d",
                         json_array_size(list), count);
    for (int i = 0; i < count; i++) {
        const struct known_schedule *s = read_choice(m, json_array_get(list, (size_t)i), st);
        if (s == NULL)
            return -1;
        if (plan && segment_index(s->segment) != segment_index(expected[i]))
            return text_fail(
                &m->reader, NULL, "choices", st,
                "choice %d is of operators %d to %d; segment %d of plan %d is %d to %d", i + 1,
                s->segment.first, s->segment.last, i + 1, t->value, expected[i].first,
                expected[i].last);
        out[i].segment = s->segment;
        schedules[i] = s->id;
    }
    t->choice_count = count;
    t->choices = out;
    return 0;
}

static int read_samples(const struct importing *m, const json_t *line, struct db_trial *t,
                        double **out, struct status *st)
{
    const json_t *list = json_object_get(line, "samples_ms");
    size_t count = json_array_size(list);
    int expected = t->kind == DB_TRIAL_FINAL ? t->sample_count : 0;
    if (count != (size_t)expected)
        return text_fail(&m->reader, NULL, "samples_ms", st,
                         "%zu samples are there; expected %d, by 'sample_count' of a final", count,
                         expected);
    *out = mem_alloc(count + 1, sizeof(**out));
    for (size_t i = 0; i < count; i++) {
        (*out)[i] = json_number_value(json_array_get(list, i));
        if (!((*out)[i] > 0))
            return text_fail(&m->reader, NULL, "samples_ms", st, "sample %zu is not above 0", i);
    }
    t->samples_ms = *out;
    return 0;
}

/* What the schema and db_check() demand of a trial. */
static int check_trial(const struct importing *m, const struct db_trial *t, struct status *st)
{
    const struct text_reader *r = &m->reader;
    if (t->status == TRIAL_OK && isnan(t->median_ms))
        return text_fail(r, NULL, "status", st, "a trial that is ok has a 'median_ms'");
    if (t->status == TRIAL_FAILED && t->reason_code[0] == '\0')
        return text_fail(r, NULL, "status", st, "a trial that failed has a 'reason_code'");
    if (t->median_ms < t->ci_low_ms || t->median_ms > t->ci_high_ms)
        return text_fail(r, NULL, "median_ms", st,
                         "'median_ms' is %g, outside its interval, %g to %g", t->median_ms,
                         t->ci_low_ms, t->ci_high_ms);
    return 0;
}

static int store_plan(struct importing *m, const struct db_trial *t, struct status *st)
{
    if (t->value < 0 || m->has_plan[t->value])
        return 0;
    m->has_plan[t->value] = true;
    return db_plan_add(m->db, t, st);
}

static int import_trial(struct importing *m, json_t *line, int64_t study, struct status *st)
{
    struct db_trial t = {.value = -1};
    struct db_choice choices[OP_COUNT];
    int64_t schedules[OP_COUNT] = {0};
    double *samples = NULL;
    int result = -1;
    if (read_kind(m, line, &t, st) == 0 &&
        text_read_fields(&m->reader, NULL, line, &text_trial,
                         "study trial value status choices samples_ms ", &t, st) == 0 &&
        read_choices(m, line, &t, choices, schedules, st) == 0 &&
        read_samples(m, line, &t, &samples, st) == 0 && check_trial(m, &t, st) == 0 &&
        check_search(m, t.search, study, st) == 0 && store_plan(m, &t, st) == 0)
        result = db_trial_put(m->db, study, &t, schedules, m->moved, st);
    free(samples);
    return result;
}

/* ---- the file -------------------------------------------------------------------------------- */

static int import_line(struct importing *m, json_t *line, struct status *st)
{
    struct known_study key = {.label = (char *)json_string_value(json_object_get(line, "study"))};
    if (key.label == NULL || key.label[0] == '\0')
        return text_fail(&m->reader, NULL, "study", st, "the line names no study");
    if (json_object_get(line, "inputs") != NULL)
        return import_study(m, line, key.label, st);
    struct known_study *const *study = tfind(&key, &m->studies, by_label);
    if (study == NULL)
        return text_fail(&m->reader, NULL, "study", st,
                         "no line before this one says what the study '%s' is", key.label);
    if (json_object_get(line, "trial") != NULL)
        return import_trial(m, line, (*study)->id, st);
    if (json_object_get(line, "search") != NULL)
        return import_search(m, line, (*study)->id, st);
    return text_fail(&m->reader, NULL, NULL, st,
                     "the line is no study, search or trial: none of 'inputs', 'search' and "
                     "'trial' is in it");
}

/* Nobody knows how many results a text has, but how much of it was read. */
static void tell(const struct importing *m)
{
    const struct text_reader *r = &m->reader;
    if (m->moved->results % MOVED_PER_STEP != 0)
        return;
    double spent_s = clock_seconds() - m->start_s;
    double left_s = r->bytes > 0 ? step_left(spent_s, ftello(r->in), r->bytes) : NAN;
    step_tell(&m->db->listener, &(struct step){"importing", m->moved->results, 0, left_s});
}

int import_text(struct db *db, const struct text_reader *from, struct db_moved *moved,
                struct status *st)
{
    struct importing *m = mem_alloc(1, sizeof(*m)); /* large */
    json_t *line = NULL;
    int found;
    *moved = (struct db_moved){0};
    *m = (struct importing){.db = db, .reader = *from, .moved = moved, .start_s = clock_seconds()};
    while ((found = text_next(&m->reader, &line, st)) > 0) {
        int result = import_line(m, line, st);
        json_decref(line);
        if (result != 0) {
            found = -1;
            break;
        }
        tell(m);
    }
    text_close(&m->reader);
    tdestroy(m->studies, free_study);
    tdestroy(m->schedules, free_schedule);
    free(m);
    return found;
}
