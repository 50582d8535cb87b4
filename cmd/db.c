#include "cmd/cmd.h"

#include <stdlib.h>
#include <string.h>

static const struct column info_columns[] = {
    {"path", NULL, 0},      {"schema_version", NULL, 0}, {"bytes", NULL, 0},  {"studies", NULL, 0},
    {"workloads", NULL, 0}, {"targets", NULL, 0},        {"trials", NULL, 0}, {"samples", NULL, 0},
    {"models", NULL, 0},    {"searches", NULL, 0},
};

/* Prints one object; for people, a line a member.  Takes it over. */
static void print_object(const struct options *o, const struct column *columns, int count,
                         json_t *object)
{
    const char *key;
    json_t *value;
    if (o->format != FORMAT_TABLE) {
        output_object(o->format, columns, count, object);
        return;
    }
    json_object_foreach(object, key, value)
    {
        if (json_is_string(value))
            printf("%-15s %s\n", key, json_string_value(value));
        else
            printf("%-15s %lld\n", key, (long long)json_integer_value(value));
    }
    json_decref(object);
}

static int info(const struct options *o, const struct session *s, struct status *st)
{
    struct db_info i;
    if (db_info(s->db, &i, st) != 0)
        return -1;
    json_t *row = json_pack("{ss sI sI sI sI sI sI sI sI sI}", "path", db_path(s->db),
                            "schema_version", (json_int_t)i.schema_version, "bytes",
                            (json_int_t)i.bytes, "studies", (json_int_t)i.studies, "workloads",
                            (json_int_t)i.workloads, "targets", (json_int_t)i.targets, "trials",
                            (json_int_t)i.trials, "samples", (json_int_t)i.samples, "models",
                            (json_int_t)i.models, "searches", (json_int_t)i.searches);
    print_object(o, info_columns, ARRAY_LEN(info_columns), row);
    return EXIT_SUCCESS;
}

static const struct column problem_columns[] = {{"problem", "problem", 0}};

static void problem(void *ctx, const char *text)
{
    output_row(ctx, json_pack("{ss}", "problem", text));
}

static int check(const struct options *o, const struct session *s, struct status *st)
{
    struct output out;
    int problems = 0;
    output_begin(&out, o->format, problem_columns, ARRAY_LEN(problem_columns));
    int result = db_check(s->db, problem, &out, &problems, st);
    out.skip_empty = true; /* without a problem there is no table */
    output_end(&out);
    if (result == 0 && problems == 0 && o->format == FORMAT_TABLE)
        printf("'%s' is whole\n", db_path(s->db));
    return result != 0 ? -1 : problems > 0 ? EXIT_FAILURE : EXIT_SUCCESS;
}

/* ---- export-space ---------------------------------------------------------------------------- */

static const struct column space_columns[] = {
    {"path", NULL, 0}, {"bytes", NULL, 0}, {"plans", NULL, 0}, {"best", NULL, 0}};

static int write_space(const struct options *o, const struct session *s, struct buf *bytes,
                       struct status *st)
{
    json_t *object = workload_json(&s->workload, s->target.kind);
    char *workload = json_dumps(object, JSON_COMPACT);
    int result = space_export(s->db, s->study, s->target.kind, workload, o->space[0], o->space[1],
                              bytes, st);
    if (result == 0)
        result = file_write(o->output, bytes->ptr, bytes->len, st);
    free(workload);
    json_decref(object);
    return result;
}

/* Prints what the written file gives when it is read back. */
static int export_space(const struct options *o, const struct session *s, struct status *st)
{
    struct buf bytes;
    struct recorded_space *space = mem_alloc(1, sizeof(*space));
    int code = -1;
    buf_init(&bytes);
    if (write_space(o, s, &bytes, st) == 0 && recorded_space_read(o->output, space, st) == 0) {
        note(o, "measured on %s until %s", space->target.device, space->measured_utc);
        print_object(o, space_columns, ARRAY_LEN(space_columns),
                     json_pack("{ss sI si si}", "path", o->output, "bytes", (json_int_t)bytes.len,
                               "plans", space->count, "best",
                               (int)plan_value(space->plans[space->best])));
        recorded_space_release(space);
        code = EXIT_SUCCESS;
    }
    buf_release(&bytes);
    free(space);
    return code;
}

/* ---- the command ----------------------------------------------------------------------------- */

static const struct action {
    const char *name;
    /* OPT() bits beside the common ones: allowed, required.  One that requires any reads a study.
     */
    uint64_t options, needs;
    int (*run)(const struct options *o, const struct session *s, struct status *st);
} actions[] = {
    {"info", 0, 0, info},
    {"check", 0, 0, check},
    {"export-space", OPTS_WORKLOAD | OPT(INIT) | OPT(SPACE) | OPT(OUTPUT),
     OPT(BATCH) | OPT(SEQ_LEN) | OPT(OUTPUT), export_space},
};

static void list_actions(struct buf *out)
{
    for (size_t i = 0; i < ARRAY_LEN(actions); i++)
        buf_addf(out, "%s%s", i > 0 ? " " : "", actions[i].name);
}

static int check_options(const struct options *o, const struct action *a, struct status *st)
{
    uint64_t stray = o->given & ~(OPTS_COMMON | OPT(DB) | a->options);
    uint64_t missing = a->needs & ~o->given;
    for (int id = 0; id < OPTION_COUNT; id++) {
        const char *name = option_info((enum option_id)id)->name;
        if ((stray >> id & 1) != 0)
            return status_set(st, STATUS_USAGE, "'db %s' takes no option '--%s'", a->name, name);
        if ((missing >> id & 1) != 0)
            return status_set(st, STATUS_USAGE, "'db %s' needs the option '--%s'", a->name, name);
    }
    return 0;
}

static int run(const struct options *o, struct status *st)
{
    struct session s = {.db = NULL};
    int at = words_find("action", o->operands[0], list_actions, st);
    if (at < 0 || check_options(o, &actions[at], st) != 0)
        return -1;
    int code = actions[at].needs != 0 ? session_open_study(o, DB_READ, &s, st)
                                      : db_open(o->db, DB_READ, &s.db, st);
    if (code == 0)
        code = actions[at].run(o, &s, st);
    session_close(&s);
    return code;
}

const struct command cmd_db = {
    .name = "db",
    .operands = "info|check|export-space",
    .summary = "Say what the database holds, check that it is whole, or record a space",
    .options = OPTS_COMMON | OPT(DB) | OPTS_WORKLOAD | OPT(INIT) | OPT(SPACE) | OPT(OUTPUT),
    .about =
        "'check' prints each problem that it finds and exits 1 if there is one.  'export-space'\n"
        "writes the plans and segments measured for a workload to a file, so that strategies\n"
        "can be tried on them without a device.  Only 'export-space' takes the options of a\n"
        "workload, --space and --output.",
    .examples = "fuseplan db info\n"
                "fuseplan db check --db results.db\n"
                "fuseplan db export-space -b 1 -s 128 -m causal -o causal.space.gz",
    .words = list_actions,
    .run = run,
};
