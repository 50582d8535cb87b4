#include "db/text_int.h"

#include <jansson.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* ---- members --------------------------------------------------------------------------------- */

static bool is_plain(const char *text)
{
    for (; *text != '\0'; text++)
        if ((unsigned char)*text < ' ' || (unsigned char)*text > '~' || *text == '"' ||
            *text == '\\')
            return false;
    return true;
}

/* Appends a JSON string.  An earlier version stored compilers' messages in any encoding. */
static void add_string(const char *text, struct buf *out)
{
    if (is_plain(text)) {
        buf_adds(out, "\"");
        buf_adds(out, text);
        buf_adds(out, "\"");
        return;
    }
    char *mended = utf8_mend(mem_strdup(text));
    json_t *string = json_string(mended);
    char *dumped = json_dumps(string, JSON_ENCODE_ANY);
    buf_adds(out, dumped);
    free(dumped);
    json_decref(string);
    free(mended);
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
    case TEXT_FLAG:
        if (*(const int *)at != 0)
            add_int(f->name, 1, out);
        break;
    case TEXT_INT:
        add_int(f->name, *(const int *)at, out);
        break;
    case TEXT_SIZE:
        add_int(f->name, *(const int64_t *)at, out);
        break;
    case TEXT_SEED:
        add_int(f->name, (int64_t) * (const uint64_t *)at, out);
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

/* Lines of one study, each ended by NUL. */
struct lines {
    char label[LABEL_SIZE]; /* of the study */
    struct buf text;
    size_t *starts; /* (count) owned */
    size_t count, cap;
};

static void begin_line(struct lines *l)
{
    if (l->count == l->cap) {
        l->cap = l->cap > 0 ? 2 * l->cap : 64;
        l->starts = mem_resize(l->starts, l->cap, sizeof(*l->starts));
    }
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
    struct buf key;
    buf_init(&key);
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
    buf_release(&key);
}

static int add_searches(struct lines *l, struct db *db, int64_t study, struct status *st)
{
    struct query q = query_start(db, SQL_SEARCHES);
    query_int(&q, study);
    int found;
    while ((found = query_row(&q, st)) > 0) {
        struct db_search s = db_search_of(&q);
        begin_line(l);
        add_text("search", s.id, &l->text);
        add_fields(&text_search, &s, &l->text);
        end_line(l);
    }
    query_end(&q);
    return found;
}

/* "2-6 handwritten", "7 generated rows=8": operators, implementation, schedule. */
static void add_choices(const struct db_trial *t, struct buf *out)
{
    struct buf text;
    buf_init(&text);
    add_name("choices", out);
    for (int i = 0; i < t->choice_count; i++) {
        const struct db_choice *c = &t->choices[i];
        buf_reset(&text);
        buf_addf(&text, "%d", c->segment.first);
        if (c->segment.last > c->segment.first)
            buf_addf(&text, "-%d", c->segment.last);
        buf_addf(&text, " %s%s%s", c->impl, c->schedule[0] != '\0' ? " " : "", c->schedule);
        buf_adds(out, i == 0 ? "[" : ",");
        add_string(text.ptr, out);
    }
    buf_adds(out, "]");
    buf_release(&text);
}

static int add_samples(struct db *db, int64_t trial, struct buf *out, struct status *st)
{
    struct query q = query_start(db, SQL_SAMPLES);
    int found, count = 0;
    query_int(&q, trial);
    add_name("samples_ms", out);
    buf_adds(out, "[");
    while ((found = query_row(&q, st)) > 0) {
        if (count++ > 0)
            buf_adds(out, ",");
        number_add(column_real(&q, 0), out);
    }
    buf_adds(out, "]");
    query_end(&q);
    return found;
}

/* q: a row of SQL_TRIALS. */
static int add_trial(struct lines *l, struct db *db, const struct query *q, enum db_trial_kind kind,
                     struct status *st)
{
    bool segment = kind == DB_TRIAL_SEGMENT;
    struct db_choice choices[OP_COUNT];
    struct db_trial t;
    if (db_trial_of(q, kind, &t, st) != 0)
        return -1;
    struct query of_trial = query_start(db, segment ? SQL_SCHEDULE : SQL_CHOICES);
    query_int(&of_trial, column_int(q, segment ? 2 : 0));
    t.choices = choices;
    t.choice_count = db_choices_read(&of_trial, choices, NULL, st);
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
    int result = kind == DB_TRIAL_FINAL ? add_samples(db, column_int(q, 0), &l->text, st) : 0;
    end_line(l);
    db_choices_release(choices, t.choice_count);
    return result;
}

static int add_trials(struct lines *l, struct db *db, int64_t study, enum db_trial_kind kind,
                      struct status *st)
{
    struct query q = query_start(db, SQL_TRIALS);
    query_int(&q, study);
    query_text(&q, db_trial_kind_names[kind]);
    int found;
    while ((found = query_row(&q, st)) > 0)
        if (add_trial(l, db, &q, kind, st) != 0) {
            found = -1;
            break;
        }
    query_end(&q);
    return found;
}

/* ---- studies --------------------------------------------------------------------------------- */

static int by_text(const void *a, const void *b)
{
    const char *const *x = a, *const *y = b;
    return strcmp(*x, *y);
}

/* Hands the lines over in the order of their bytes, equal lines once. */
static int hand_over(const struct lines *l, db_text_sink *sink, void *ctx, struct status *st)
{
    struct buf out;
    buf_init(&out);
    const char **sorted = mem_alloc(l->count + 1, sizeof(*sorted));
    for (size_t i = 0; i < l->count; i++)
        sorted[i] = l->text.ptr + l->starts[i];
    qsort(sorted, l->count, sizeof(*sorted), by_text);
    for (size_t i = 0; i < l->count; i++)
        if (i == 0 || strcmp(sorted[i], sorted[i - 1]) != 0) {
            buf_adds(&out, sorted[i]);
            buf_adds(&out, "\n");
        }
    int result = sink(ctx, out.ptr, out.len, st);
    free(sorted);
    buf_release(&out);
    return result;
}

struct exported {
    int64_t study;
    struct lines lines; /* its own line at first */
};

struct exporting {
    struct exported *studies; /* (count) owned */
    size_t count, cap;
};

static int keep_study(void *ctx, struct db_listed *l, struct status *st)
{
    struct exporting *e = ctx;
    (void)st;
    if (e->count == e->cap) {
        e->cap = e->cap > 0 ? 2 * e->cap : 64;
        e->studies = mem_resize(e->studies, e->cap, sizeof(*e->studies));
    }
    struct exported *study = &e->studies[e->count++];
    *study = (struct exported){.study = l->study};
    buf_init(&study->lines.text);
    add_study(&study->lines, l);
    return 0;
}

static int by_label(const void *a, const void *b)
{
    const struct exported *x = a, *y = b;
    return strcmp(x->lines.label, y->lines.label);
}

static void release_lines(struct lines *l)
{
    buf_release(&l->text);
    buf_init(&l->text);
    free(l->starts);
    l->starts = NULL;
    l->count = l->cap = 0;
}

static int export_study(struct db *db, struct exported *e, db_text_sink *sink, void *ctx,
                        struct status *st)
{
    int result = add_searches(&e->lines, db, e->study, st);
    for (int kind = DB_TRIAL_SEGMENT; kind <= DB_TRIAL_FINAL && result == 0; kind++)
        result = add_trials(&e->lines, db, e->study, (enum db_trial_kind)kind, st);
    if (result == 0)
        result = hand_over(&e->lines, sink, ctx, st);
    release_lines(&e->lines);
    return result;
}

static int export_all(struct db *db, db_text_sink *sink, void *ctx, struct status *st)
{
    struct exporting e = {.count = 0};
    int result = db_studies(db, keep_study, &e, st);
    if (result == 0 && e.count > 0)
        qsort(e.studies, e.count, sizeof(*e.studies), by_label);
    if (result == 0)
        result = sink(ctx, TEXT_HEADER "\n", strlen(TEXT_HEADER "\n"), st);
    const double start_s = clock_seconds();
    for (size_t i = 0; i < e.count && result == 0; i++) {
        int64_t done = (int64_t)i, all = (int64_t)e.count;
        double left_s = step_left(clock_seconds() - start_s, done, all);
        step_tell(&db->listener, &(struct step){"exporting workload", done + 1, all, left_s});
        result = export_study(db, &e.studies[i], sink, ctx, st);
    }
    for (size_t i = 0; i < e.count; i++)
        release_lines(&e.studies[i].lines);
    free(e.studies);
    return result;
}

int db_export(struct db *db, db_text_sink *sink, void *ctx, struct status *st)
{
    if (db_begin_read(db, st) != 0) /* all reads see one snapshot */
        return -1;
    return db_end(db, export_all(db, sink, ctx, st), st);
}
