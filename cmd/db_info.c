#include "cmd/db_int.h"

static const struct column info_columns[] = {
    {"path", NULL, 0},      {"schema_version", NULL, 0}, {"bytes", NULL, 0},  {"studies", NULL, 0},
    {"workloads", NULL, 0}, {"targets", NULL, 0},        {"trials", NULL, 0}, {"samples", NULL, 0},
    {"models", NULL, 0},    {"searches", NULL, 0},
};

static void print_escaped(const char *text)
{
    SCOPED_BUF escaped = BUF_INIT;
    utf8_escape(text, &escaped);
    fputs(escaped.ptr, stdout);
}

/* For people a line a member; takes the object over. */
static void print_object(const struct options *o, json_t *object)
{
    const char *key;
    json_t *value;
    if (o->format != FORMAT_TABLE) {
        output_object(o->format, info_columns, ARRAY_LEN(info_columns), object);
        return;
    }
    progress_hide();
    json_object_foreach(object, key, value)
    {
        printf("%-15s ", key);
        if (json_is_string(value))
            print_escaped(json_string_value(value));
        else
            printf("%lld", (long long)json_integer_value(value));
        printf("\n");
    }
    json_decref(object);
}

int db_info_run(const struct options *o, struct session *s, struct status *st)
{
    struct db_info i;
    if (db_info(s->db, &i, st) != 0)
        return -1;
    json_t *row = json_pack("{so sI sI sI sI sI sI sI sI sI}", "path", json_text(db_path(s->db)),
                            "schema_version", (json_int_t)i.schema_version, "bytes",
                            (json_int_t)i.bytes, "studies", (json_int_t)i.studies, "workloads",
                            (json_int_t)i.workloads, "targets", (json_int_t)i.targets, "trials",
                            (json_int_t)i.trials, "samples", (json_int_t)i.samples, "models",
                            (json_int_t)i.models, "searches", (json_int_t)i.searches);
    print_object(o, row);
    return EXIT_SUCCESS;
}

static const struct column problem_columns[] = {{"problem", "problem", 0}};

static void problem(void *ctx, const char *text)
{
    output_row(ctx, json_pack("{ss}", "problem", text));
}

int db_check_run(const struct options *o, struct session *s, struct status *st)
{
    struct output out;
    int problems = 0;
    db_listen(s->db, (struct listener){.report = progress_step});
    output_begin(&out, o->format, problem_columns, ARRAY_LEN(problem_columns));
    int result = db_check(s->db, problem, &out, &problems, st);
    out.skip_empty = true; /* without a problem there is no table */
    output_end(&out);
    if (result == 0 && problems == 0 && o->format == FORMAT_TABLE) {
        printf("'");
        print_escaped(db_path(s->db));
        printf("' is whole\n");
    }
    return result != 0 ? -1 : problems > 0 ? EXIT_FAILURE : EXIT_SUCCESS;
}
