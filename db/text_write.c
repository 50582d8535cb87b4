#include "db/text_int.h"

#include <jansson.h>

/* ---- members --------------------------------------------------------------------------------- */

/* Appends a JSON string. */
static void add_string(const char *text, struct buf *out)
{
    json_auto_t *string = json_string(text);
    SCOPED char *dumped = json_dumps(string, JSON_ENCODE_ANY);
    buf_adds(out, dumped);
}

static void add_name(const char *name, struct buf *out)
{
    buf_adds(out, ",\"");
    buf_adds(out, name);
    buf_adds(out, "\":");
}

static void add_text(const char *name, const char *text, struct buf *out)
{
    add_name(name, out);
    add_string(text, out);
}

static void add_int(const char *name, int64_t value, struct buf *out)
{
    add_name(name, out);
    buf_addf(out, "%lld", (long long)value);
}

static void add_field(const struct text_field *f, const void *at, struct buf *out)
{
    switch (f->type) {
    case TEXT_STRING:
        if (**(const char *const *)at != '\0')
            add_text(f->name, *(const char *const *)at, out);
        break;
    case TEXT_REQUIRED:
    case TEXT_UTC:
        add_text(f->name, *(const char *const *)at, out);
        break;
    case TEXT_REAL:
        if (!isnan(*(const double *)at)) {
            add_name(f->name, out);
            if (isinf(*(const double *)at))
                buf_adds(out, "null"); /* JSON has no infinity */
            else
                number_add(*(const double *)at, out);
        }
        break;
    case TEXT_BITS:
        if (*(const int *)at != 0)
            add_int(f->name, *(const int *)at, out);
        break;
    case TEXT_INT:
        add_int(f->name, *(const int *)at, out);
        break;
    case TEXT_SIZE:
        add_int(f->name, *(const int64_t *)at, out);
        break;
    }
}

static void add_fields(const struct text_table *t, const void *object, struct buf *out)
{
    for (size_t i = 0; i < t->count; i++)
        add_field(&t->fields[i], (const char *)object + t->fields[i].offset, out);
}

static void add_object(const char *name, const struct text_table *t, const void *object,
                       struct buf *out)
{
    add_name(name, out);
    buf_adds(out, "{");
    size_t from = out->len;
    add_fields(t, object, out);
    memmove(out->ptr + from, out->ptr + from + 1, out->len - from); /* the first comma */
    out->len--;
    buf_adds(out, "}");
}

/* ---- lines ----------------------------------------------------------------------------------- */

enum { LABEL_SIZE = 17 };

/* Lines, each ended by NUL. */
struct lines {
    struct db *db;
    char label[LABEL_SIZE]; /* of the study whose lines are added */
    struct buf text;
    size_t *starts; /* (count) owned */
    size_t count;
    int64_t studies;
};

static void begin_line(struct lines *l)
{
    l->starts = mem_room(l->starts, l->count, sizeof(*l->starts));
    l->starts[l->count++] = l->text.len;
    buf_adds(&l->text, "{\"study\":\"");
    buf_adds(&l->text, l->label);
    buf_adds(&l->text, "\"");
}

static void end_line(struct lines *l)
{
    buf_add(&l->text, "}", sizeof("}"));
}

/* What a study is within all databases: a hash of all but its time of creation names it. */
static void add_study(struct lines *l, const struct db_listed *study)
{
    char hash[HASH_TEXT_SIZE];
    SCOPED_BUF key = BUF_INIT;
    add_object("inputs", &text_inputs, &study->workload, &key);
    add_object("workload", &text_workload, &study->workload, &key);
    add_object("target", &text_target, &study->target, &key);
    add_text("protocol", study->protocol, &key);
    snprintf(l->label, sizeof(l->label), "%.16s", hash_text(key.ptr, key.len, hash));
    begin_line(l);
    add_object("inputs", &text_inputs, &study->workload, &l->text);
    add_fields(&text_study, study, &l->text);
    add_object("target", &text_target, &study->target, &l->text);
    add_object("workload", &text_workload, &study->workload, &l->text);
    end_line(l);
}

static int add_searches(struct lines *l, int64_t study, struct status *st)
{
    SCOPED_QUERY q = query_of(l->db, SQL_SEARCHES, "%jd", study);
    int found;
    while ((found = query_row(&q, st)) > 0) {
        struct db_search s = db_search_of(&q);
        begin_line(l);
        add_text("search", s.id, &l->text);
        add_fields(&text_search, &s, &l->text);
        end_line(l);
    }
    return found;
}

/* "2-6 handwritten", "7 generated rows=8": operators, implementation, schedule. */
static void add_choices(const struct db_trial *t, struct buf *out)
{
    SCOPED_BUF text = BUF_INIT;
    char range[12];
    add_name("choices", out);
    for (int i = 0; i < t->choice_count; i++) {
        const struct db_choice *c = &t->choices[i];
        buf_reset(&text);
        buf_addf(&text, "%s %s%s%s", segment_text(c->segment, range), c->impl,
                 c->schedule[0] != '\0' ? " " : "", c->schedule);
        buf_adds(out, i == 0 ? "[" : ",");
        add_string(text.ptr, out);
    }
    buf_adds(out, "]");
}

static int add_samples(struct db *db, int64_t trial, struct buf *out, struct status *st)
{
    SCOPED_QUERY q = query_of(db, SQL_SAMPLES, "%jd", trial);
    int found, count = 0;
    add_name("samples_ms", out);
    buf_adds(out, "[");
    while ((found = query_row(&q, st)) > 0) {
        if (count++ > 0)
            buf_adds(out, ",");
        number_add(column_real(&q, 0), out);
    }
    buf_adds(out, "]");
    return found;
}

/* q: a row of SQL_TRIALS. */
static int add_trial(struct lines *l, const struct query *q, enum db_trial_kind kind,
                     struct status *st)
{
    bool segment = kind == DB_TRIAL_SEGMENT;
    struct db_choice choices[OP_COUNT];
    struct db_trial t;
    if (db_trial_of(q, kind, &t, st) != 0)
        return -1;
    t.choices = choices;
    t.choice_count = db_choices_of(q, kind, choices, st);
    if (t.choice_count < 0)
        return -1;
    begin_line(l);
    add_text("trial", db_trial_kind_names[kind], &l->text);
    if (segment)
        add_choices(&t, &l->text);
    else
        add_int("value", t.value, &l->text);
    add_text("status", trial_status_name(t.status), &l->text);
    add_fields(&text_trial, &t, &l->text);
    if (!segment)
        add_choices(&t, &l->text);
    int result = kind == DB_TRIAL_FINAL ? add_samples(l->db, column_int(q, 0), &l->text, st) : 0;
    end_line(l);
    db_choices_release(choices, t.choice_count);
    return result;
}

/* plan: a trial of a plan, of which only it and those of its choices are added; 0: all are. */
static int add_trials(struct lines *l, int64_t study, enum db_trial_kind kind, int64_t plan,
                      struct status *st)
{
    SCOPED_QUERY q = query_of(l->db, SQL_TRIALS, "%jd %s", study, db_trial_kind_names[kind]);
    if (plan > 0)
        query_int(&q, plan);
    else
        query_null(&q);
    query_null(&q);
    int found;
    while ((found = query_row(&q, st)) > 0)
        if (add_trial(l, &q, kind, st) != 0)
            return -1;
    return found;
}

/* plan: as add_trials() takes it. */
static int add_of_study(struct lines *l, const struct db_listed *study, int64_t plan,
                        struct status *st)
{
    step_tell(&l->db->listener, &(struct step){"exporting workload", ++l->studies, 0, NAN});
    add_study(l, study);
    int result = add_searches(l, study->study, st);
    for (int kind = DB_TRIAL_SEGMENT; kind <= DB_TRIAL_FINAL && result == 0; kind++)
        result = add_trials(l, study->study, (enum db_trial_kind)kind, plan, st);
    return result;
}

static int add_all_of_study(void *ctx, struct db_listed *study, struct status *st)
{
    return add_of_study(ctx, study, 0, st);
}

static int add_best_of_study(void *ctx, struct db_listed *study, struct status *st)
{
    struct lines *l = ctx;
    SCOPED_BY(db_best_release) struct db_best best = {.value = -1};
    int64_t plan = 0;
    int found = db_winner(l->db, study->study, &best, &plan, st);
    if (found > 0 && best.final)
        return add_of_study(l, study, plan, st);
    return found < 0 ? -1 : 0;
}

/* ---- the text -------------------------------------------------------------------------------- */

static int by_text(const void *a, const void *b)
{
    const char *const *x = a, *const *y = b;
    return strcmp(*x, *y);
}

/* Appends the lines in the order of their bytes, equal lines once. */
static void add_sorted(const struct lines *l, struct buf *out)
{
    SCOPED const char **sorted = mem_alloc(l->count + 1, sizeof(*sorted));
    for (size_t i = 0; i < l->count; i++)
        sorted[i] = l->text.ptr + l->starts[i];
    qsort(sorted, l->count, sizeof(*sorted), by_text);
    buf_adds(out, TEXT_HEADER "\n");
    for (size_t i = 0; i < l->count; i++)
        if (i == 0 || strcmp(sorted[i], sorted[i - 1]) != 0) {
            buf_adds(out, sorted[i]);
            buf_adds(out, "\n");
        }
}

/* Returns how many studies it has added, or -1. */
static int64_t export(struct db *db, db_studies_row *row, struct buf *out, struct status *st)
{
    struct lines l = {.db = db};
    if (db_begin_read(db, st) != 0) /* all reads see one snapshot */
        return -1;
    buf_init(&l.text);
    int result = db_end(db, db_studies(db, row, &l, st), st);
    if (result == 0)
        add_sorted(&l, out);
    buf_release(&l.text);
    free(l.starts);
    return result == 0 ? l.studies : -1;
}

int db_export(struct db *db, struct buf *out, struct status *st)
{
    return export(db, add_all_of_study, out, st) >= 0 ? 0 : -1;
}

int db_export_pack(struct db *db, struct buf *out, struct status *st)
{
    int64_t studies = export(db, add_best_of_study, out, st);
    if (studies != 0)
        return studies > 0 ? 0 : -1;
    return status_set(
        st, STATUS_NOT_FOUND,
        "no plan in '%s' has won the finals of a search; 'fuseplan search' holds them",
        db_path(db));
}
