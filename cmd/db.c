#include "cmd/cmd.h"

#include <stdlib.h>
#include <string.h>

static const struct column info_columns[] = {
    {"path", NULL, 0},      {"schema_version", NULL, 0}, {"bytes", NULL, 0},  {"studies", NULL, 0},
    {"workloads", NULL, 0}, {"targets", NULL, 0},        {"trials", NULL, 0}, {"samples", NULL, 0},
    {"models", NULL, 0},    {"searches", NULL, 0},
};

static int info(const struct options *o, struct db *db, struct status *st)
{
    struct db_info i;
    if (db_info(db, &i, st) < 0)
        return -1;
    json_t *row = json_pack("{ss sI sI sI sI sI sI sI sI sI}", "path", db_path(db),
                            "schema_version", (json_int_t)i.schema_version, "bytes",
                            (json_int_t)i.bytes, "studies", (json_int_t)i.studies, "workloads",
                            (json_int_t)i.workloads, "targets", (json_int_t)i.targets, "trials",
                            (json_int_t)i.trials, "samples", (json_int_t)i.samples, "models",
                            (json_int_t)i.models, "searches", (json_int_t)i.searches);
    if (o->format == FORMAT_CSV) {
        struct output out;
        output_begin(&out, o->format, info_columns, ARRAY_LEN(info_columns));
        output_row(&out, row);
        output_end(&out);
    } else if (o->format != FORMAT_TABLE) {
        output_object(o->format, row);
    } else {
        const char *key;
        json_t *value;
        json_object_foreach(row, key, value)
        {
            if (json_is_string(value))
                printf("%-15s %s\n", key, json_string_value(value));
            else
                printf("%-15s %lld\n", key, (long long)json_integer_value(value));
        }
        json_decref(row);
    }
    return EXIT_SUCCESS;
}

static const struct column problem_columns[] = {{"problem", "problem", 0}};

static void problem(void *ctx, const char *text)
{
    output_row(ctx, json_pack("{ss}", "problem", text));
}

static int check(const struct options *o, struct db *db, struct status *st)
{
    struct output out;
    int problems = 0;
    output_begin(&out, o->format, problem_columns, ARRAY_LEN(problem_columns));
    int rc = db_check(db, problem, &out, &problems, st);
    if (rc == 0 && problems == 0 && o->format == FORMAT_TABLE) {
        printf("'%s' is whole\n", db_path(db));
        json_decref(out.kept);
    } else {
        output_end(&out);
    }
    return rc < 0 ? -1 : problems > 0 ? EXIT_FAILURE : EXIT_SUCCESS;
}

static const struct {
    const char *name;
    int (*run)(const struct options *o, struct db *db, struct status *st);
} actions[] = {{"info", info}, {"check", check}};

static int run(const struct options *o, struct status *st)
{
    const char *names[ARRAY_LEN(actions)];
    if (o->operand_count != 1)
        return status_set(st, STATUS_USAGE, "%d actions given; give 'info' or 'check'",
                          o->operand_count);
    for (size_t i = 0; i < ARRAY_LEN(actions); i++) {
        names[i] = actions[i].name;
        if (strcmp(o->operands[0], actions[i].name) != 0)
            continue;
        struct db *db;
        int code = db_open(o->db, DB_READ, &db, st);
        if (code == 0)
            code = actions[i].run(o, db, st);
        db_close(db);
        return code;
    }
    const char *nearest = nearest_word(o->operands[0], names, ARRAY_LEN(names));
    return status_set(st, STATUS_USAGE, "unknown action '%s'; %s%s%sgive 'info' or 'check'",
                      o->operands[0], nearest ? "did you mean '" : "", nearest ? nearest : "",
                      nearest ? "'? " : "");
}

const struct command cmd_db = {
    .name = "db",
    .operands = "info|check",
    .summary = "Say what the database holds, or check that it is whole",
    .options = OPTS_COMMON | OPT(DB),
    .about = "'check' prints each problem that it finds and exits 1 where there is one.",
    .examples = "fuseplan db info\n"
                "fuseplan db check --db results.db",
    .words = "info check",
    .run = run,
};
