#include "db/text_read_int.h"

struct importing {
    struct db *db;
    struct text_reader *reader;
    json_t *studies;             /* the id of each study, by the label of its lines */
    char search[HASH_TEXT_SIZE]; /* the last one looked up, and its study */
    int64_t search_study;
    struct db_moved *moved;
    double start_s;
};

/* ---- a study's line -------------------------------------------------------------------------- */

static int read_object(const struct importing *m, json_t *line, const char *name,
                       const struct text_table *t, void *out, struct status *st)
{
    json_t *object = json_object_get(line, name);
    if (!json_is_object(object))
        return text_fail(m->reader, st, "the object '%s' of a study is missing", name);
    return text_read_fields(m->reader, object, t, "", out, st);
}

static int check_study(const struct importing *m, const struct db_listed *l, struct status *st)
{
    const char *kind = l->target.kind;
    if (isnan(l->workload.eps))
        return text_fail(m->reader, st, "the workload has no 'eps'");
    if (strcmp(kind, "cpu") != 0 && strcmp(kind, "cuda") != 0)
        return text_fail(m->reader, st, "'kind' is '%.60s'; expected cpu or cuda", kind);
    return 0;
}

static int import_study(struct importing *m, json_t *line, const char *label, struct status *st)
{
    struct db_listed l = {.study = 0};
    if (text_read_fields(m->reader, line, &text_study, "study inputs target workload ", &l, st) !=
            0 ||
        read_object(m, line, "inputs", &text_inputs, &l.workload, st) != 0 ||
        read_object(m, line, "workload", &text_workload, &l.workload, st) != 0 ||
        read_object(m, line, "target", &text_target, &l.target, st) != 0 ||
        check_study(m, &l, st) != 0)
        return -1;
    int64_t id = 0;
    const json_t *before = json_object_get(m->studies, label);
    if (db_study_put(m->db, &l.workload, &l.target, l.protocol, l.created_utc, &id, st) != 0)
        return -1;
    if (before != NULL && json_integer_value(before) != id)
        return text_fail(m->reader, st, "'%s' named another study before", label);
    json_object_set_new(m->studies, label, json_integer(id));
    return 0;
}

/* ---- a search's line ------------------------------------------------------------------------- */

static int import_search(struct importing *m, json_t *line, int64_t study, struct status *st)
{
    struct db_search s = {.id = json_string_value(json_object_get(line, "search"))};
    int64_t owner = 0;
    if (s.id == NULL || s.id[0] == '\0' || strlen(s.id) >= HASH_TEXT_SIZE)
        return text_fail(m->reader, st, "the id of a search has 1 to 32 digits");
    if (text_read_fields(m->reader, line, &text_search, "study search ", &s, st) != 0)
        return -1;
    if (s.ended_utc[0] != '\0' && !db_is_utc(s.ended_utc))
        return text_fail(m->reader, st, "'%s' is not a time", s.ended_utc);
    if (query_one_int_of(m->db, SQL_SEARCH_STUDY, &owner, st, "%s", s.id) < 0)
        return -1;
    if (owner != 0 && owner != study && !m->reader->database) /* else db_search_put() says it */
        return text_fail(m->reader, st, "search '%s' belongs to another study", s.id);
    return db_search_put(m->db, study, &s, st);
}

/* Whether a trial may name this search. */
static int check_search(struct importing *m, const char *id, int64_t study, struct status *st)
{
    if (id[0] == '\0')
        return 0;
    if (strcmp(id, m->search) != 0) {
        m->search_study = 0;
        if (query_one_int_of(m->db, SQL_SEARCH_STUDY, &m->search_study, st, "%s", id) < 0)
            return -1;
        snprintf(m->search, sizeof(m->search), "%s", id);
    }
    if (m->search_study != study)
        return text_fail(m->reader, st, "no line before this one has the search '%s' of this study",
                         id);
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
        return text_fail(m->reader, st, "'%s' is no kind of trial; expected segment, plan or final",
                         kind != NULL ? kind : "");
    t->kind = (enum db_trial_kind)k;
    t->status = trial_status_from_name(status != NULL ? status : "");
    if (status == NULL || strcmp(trial_status_name(t->status), status) != 0)
        return text_fail(m->reader, st, "'%s' is no status; expected ok, censored or failed",
                         status != NULL ? status : "");
    return 0;
}

/* Reads "2-6 handwritten" or "7 generated rows=8".  out->impl is owned, and out->schedule lies in
 * the same block. */
static int read_choice(const struct importing *m, const json_t *choice, struct db_choice *out,
                       struct status *st)
{
    const char *text = json_string_value(choice) != NULL ? json_string_value(choice) : "";
    char *end;
    long first = strtol(text, &end, 10), last = first;
    if (end != text && *end == '-')
        last = strtol(end + 1, &end, 10);
    if (first < 0 || last < first || last >= OP_COUNT || *end != ' ' || strchr(" ", end[1]) != NULL)
        return text_fail(m->reader, st,
                         "'%.60s' is no choice; expected operators, implementation and schedule as "
                         "'8-9 generated rows=8'",
                         text);
    char *impl = mem_strdup(end + 1), *blank = strchr(impl, ' ');
    if (blank != NULL)
        *blank = '\0';
    *out = (struct db_choice){{(int8_t)first, (int8_t)last}, impl, blank != NULL ? blank + 1 : ""};
    return 0;
}

static int read_value(const struct importing *m, const json_t *line, struct db_trial *t,
                      struct status *st)
{
    const json_t *number = json_object_get(line, "value");
    json_int_t value = json_integer_value(number);
    if (!json_is_integer(number) || value < 0 || value > VALUE_MAX ||
        plan_canonical((unsigned)value) != value)
        return text_fail(m->reader, st, "a plan has a canonical value within 0..%d", VALUE_MAX);
    t->value = (int)value;
    return 0;
}

/* The choices of a plan are its segments in order.  t->choice_count of out[] are read, whatever is
 * returned. */
static int read_choices(const struct importing *m, const json_t *line, struct db_trial *t,
                        struct db_choice out[OP_COUNT], struct status *st)
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
        return text_fail(m->reader, st, "%zu choices are there; expected %d", json_array_size(list),
                         count);
    t->choices = out;
    for (int i = 0; i < count; i++) {
        if (read_choice(m, json_array_get(list, (size_t)i), &out[i], st) != 0)
            return -1;
        t->choice_count++;
        struct segment s = out[i].segment;
        if (plan && segment_index(s) != segment_index(expected[i]))
            return text_fail(
                m->reader, st,
                "choice %d is of operators %d to %d; segment %d of plan %d is %d to %d", i + 1,
                s.first, s.last, i + 1, t->value, expected[i].first, expected[i].last);
    }
    return 0;
}

static int read_samples(const struct importing *m, const json_t *line, struct db_trial *t,
                        double **out, struct status *st)
{
    const json_t *list = json_object_get(line, "samples_ms");
    size_t count = json_array_size(list);
    int expected = t->kind == DB_TRIAL_FINAL ? t->sample_count : 0;
    if (count != (size_t)expected)
        return text_fail(m->reader, st,
                         "%zu samples are there; expected %d, by 'sample_count' of a final", count,
                         expected);
    *out = mem_alloc(count + 1, sizeof(**out));
    for (size_t i = 0; i < count; i++) {
        (*out)[i] = json_number_value(json_array_get(list, i));
        if (!((*out)[i] > 0))
            return text_fail(m->reader, st, "sample %zu is not above 0", i);
    }
    t->samples_ms = *out;
    return 0;
}

static int check_trial(const struct importing *m, const struct db_trial *t, struct status *st)
{
    const char *what = db_trial_contradiction(t);
    if (what != NULL)
        return text_fail(m->reader, st, "the trial has %s", what);
    if (t->kind != DB_TRIAL_FINAL || t->sample_count == 0 || isnan(t->median_ms))
        return 0;
    double median = stats_median(t->samples_ms, (size_t)t->sample_count).median;
    return fabs(median / t->median_ms - 1) <= 1e-6
               ? 0
               : text_fail(m->reader, st, "'median_ms' is %.9g, and the median of the samples %.9g",
                           t->median_ms, median);
}

static int import_trial(struct importing *m, json_t *line, int64_t study, struct status *st)
{
    struct db_trial t = {.value = -1};
    struct db_choice choices[OP_COUNT] = {{.impl = NULL}};
    SCOPED double *samples = NULL;
    int result = -1;
    if (read_kind(m, line, &t, st) == 0 &&
        text_read_fields(m->reader, line, &text_trial,
                         "study trial value status choices samples_ms ", &t, st) == 0 &&
        read_choices(m, line, &t, choices, st) == 0 &&
        read_samples(m, line, &t, &samples, st) == 0 && check_trial(m, &t, st) == 0 &&
        check_search(m, t.search, study, st) == 0)
        result = db_trial_put(m->db, study, &t, m->moved, st);
    for (int i = 0; i < t.choice_count; i++)
        free((char *)choices[i].impl);
    return result;
}

/* ---- the file -------------------------------------------------------------------------------- */

static int import_line(struct importing *m, json_t *line, struct status *st)
{
    const char *label = json_string_value(json_object_get(line, "study"));
    if (label == NULL || label[0] == '\0')
        return text_fail(m->reader, st, "the line names no study");
    if (json_object_get(line, "inputs") != NULL)
        return import_study(m, line, label, st);
    const json_t *study = json_object_get(m->studies, label);
    if (study == NULL)
        return text_fail(m->reader, st, "no line before this one says what the study '%s' is",
                         label);
    if (json_object_get(line, "trial") != NULL)
        return import_trial(m, line, json_integer_value(study), st);
    if (json_object_get(line, "search") != NULL)
        return import_search(m, line, json_integer_value(study), st);
    return text_fail(m->reader, st,
                     "the line is no study, search or trial: none of 'inputs', 'search' and "
                     "'trial' is in it");
}

/* Nobody knows how many results a text has, but how much of it was read. */
static void tell(const struct importing *m)
{
    const struct text_reader *r = m->reader;
    if (m->moved->results % MOVED_PER_STEP != 0)
        return;
    double spent_s = clock_seconds() - m->start_s;
    double left_s = r->bytes > 0 ? step_left(spent_s, ftello(r->in), r->bytes) : NAN;
    step_tell(&m->db->listener, &(struct step){"importing", m->moved->results, 0, left_s});
}

int import_text(struct db *db, struct text_reader *from, struct db_moved *moved, struct status *st)
{
    json_auto_t *studies = json_object();
    struct importing m = {
        .db = db, .reader = from, .studies = studies, .moved = moved, .start_s = clock_seconds()};
    *moved = (struct db_moved){0};
    for (;;) {
        json_auto_t *line = NULL;
        int found = text_next(from, &line, st);
        if (found <= 0)
            return found;
        if (import_line(&m, line, st) != 0)
            return -1;
        tell(&m);
    }
}
