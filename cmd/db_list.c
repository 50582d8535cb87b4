#include "cmd/db_int.h"

static const struct column columns[] = {
    {"options", "workload", 0}, {"value", "best plan", 0},      {"median_ms", "ms", DECIMALS_MS},
    {"ci_low_ms", NULL, 0},     {"ci_high_ms", NULL, 0},        {"compared", NULL, 0},
    {"plans", NULL, 0},         {"trials", "trials", 0},        {"stored_utc", "measured", 0},
    {"target.kind", NULL, 0},   {"target.device", "device", 0}, {"protocol", NULL, 0},
    {"path", NULL, 0},
};

struct listing {
    struct output *out;
    const struct options *o;
    const char *path; /* of the database */
};

/* As reports have it; null: another version wrote its text. */
static json_t *listed_workload(const struct db_listed *l)
{
    const bool cpu = strcmp(l->target.kind, target_names[TARGET_CPU]) == 0;
    SCOPED_BY(workload_release) struct workload w;
    return workload_parse(l->workload.text, &w, STATUS_IGNORED) == 0
               ? workload_json(&w, cpu ? TARGET_CPU : TARGET_CUDA)
               : NULL;
}

json_t *db_study_options(const struct db_listed *l)
{
    SCOPED_BUF text = BUF_INIT;
    known_options(&l->workload, l->target.kind, &text);
    return json_string(text.ptr);
}

static void add_row(void *ctx, const struct db_listed *l)
{
    const struct listing *to = ctx;
    bool known = l->value >= 0, people = to->o->format == FORMAT_TABLE;
    json_t *target =
        json_pack("{ss ss ss ss sI ss ss ss}", "kind", l->target.kind, "device", l->target.device,
                  "uuid", l->target.uuid, "capability", l->target.capability, "units",
                  (json_int_t)l->target.units, "driver", l->target.driver, "compiler",
                  l->target.compiler, "libraries", l->target.libraries);
    json_t *row =
        json_pack("{so so* so ss sI ss so so so so so sI sI ss ss}", "options", db_study_options(l),
                  "workload", listed_workload(l), "target", target, "protocol", l->protocol, "seed",
                  (json_int_t)l->workload.seed, "init", l->workload.init, "value",
                  known ? json_integer(l->value) : json_null(), MS_MEMBERS(l->ms), "compared",
                  known ? json_boolean(l->final) : json_null(), "plans", (json_int_t)l->plans,
                  "trials", (json_int_t)l->trials, "stored_utc", l->stored_utc, "path", to->path);
    if (people) /* the day is enough */
        json_object_set_new(row, "stored_utc",
                            json_stringn(l->stored_utc, strcspn(l->stored_utc, "T")));
    output_row(to->out, row);
}

int db_list_run(const struct options *o, struct session *s, struct status *st)
{
    struct output out;
    struct listing to = {&out, o, db_path(s->db)};
    output_begin(&out, o->format, columns, ARRAY_LEN(columns));
    int result = db_list(s->db, add_row, &to, st);
    out.skip_empty = true;
    output_end(&out);
    return result == 0 ? EXIT_SUCCESS : -1;
}
