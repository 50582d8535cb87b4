#include "cmd/report_int.h"

/* The options name a workload, as query's do.  Release what session_close() releases. */
static int open_named(const struct options *o, struct session *s, bool *drawn, struct status *st)
{
    *drawn = true;
    if (workload_from_options(o, true, &s->target, &s->workload, st) != 0 ||
        db_open(o->db, DB_READ, &s->db, st) != 0)
        return -1;
    return study_of_workload(o, s->db, s->target, &s->workload, &s->study, st);
}

static void list_workload(void *ctx, const struct db_workload *w, const char *target_kind)
{
    bool gpu = strcmp(target_kind, target_names[TARGET_CUDA]) == 0;
    json_array_append_new(ctx, json_pack("{so si}", "text", json_text(w->text), "target",
                                         gpu ? TARGET_CUDA : TARGET_CPU));
}

/* Opens a listed workload in an open database.  Its mask cannot be drawn if it was a file. */
static int open_listed(const struct options *o, const json_t *listed, struct session *s,
                       bool *drawn, struct status *st)
{
    workload_release(&s->workload);
    workload_init(&s->workload);
    s->target.kind = (enum target_kind)json_integer_value(json_object_get(listed, "target"));
    if (workload_parse(json_string_value(json_object_get(listed, "text")), &s->workload, st) != 0)
        return -1;
    *drawn = s->workload.mask_spec.path == NULL;
    if (*drawn && workload_build_mask(&s->workload, NULL, st) != 0)
        return -1;
    return study_of_workload(o, s->db, s->target, &s->workload, &s->study, st);
}

/* Appends the options that name the study to commands on the page. */
static void name_workload(const struct options *o, const struct session *s, bool drawn,
                          struct buf *out)
{
    SCOPED_BUF texts = BUF_INIT, of_study = BUF_INIT;
    struct db_study study;
    struct db_workload named = db_workload_of(&s->workload, &texts);
    /* What reads the page's data meets a failure again. */
    if (db_study_read(s->db, s->study, &of_study, &study, STATUS_IGNORED) == 0)
        named.init = study.init;
    if (drawn && s->workload.mask_spec.path != NULL)
        named.mask = o->mask; /* the file, where the row has its hash */
    known_options(&named, target_names[s->target.kind], out);
    if (strstr(out->ptr, " --target ") == NULL) /* the page may be read on another machine */
        buf_addf(out, " --target %s", target_names[s->target.kind]);
}

/* Appends the data of the open workload. */
static int add_page(const struct options *o, const struct session *s, bool drawn, json_t *pages,
                    struct status *st)
{
    SCOPED_BUF options = BUF_INIT;
    json_t *data;
    name_workload(o, s, drawn, &options);
    struct reported r = {.db = s->db,
                         .study = s->study,
                         .target = s->target.kind,
                         .workload = &s->workload,
                         .drawn = drawn,
                         .options = options.ptr};
    int result = report_data_json(&r, &data, st);
    if (result == 0)
        json_array_append_new(pages, data);
    db_best_release(&r.best);
    slot_records_release(r.slots);
    return result;
}

/* No workload is named: appends all, the one measured last first. */
static int add_all(const struct options *o, struct session *s, json_t *pages, struct status *st)
{
    json_auto_t *list = json_array();
    json_t *listed;
    size_t i;
    bool drawn;
    workload_init(&s->workload);
    if (db_open(o->db, DB_READ, &s->db, st) != 0 ||
        db_workloads(s->db, list_workload, list, st) != 0)
        return -1;
    if (json_array_size(list) == 0)
        return status_set(st, STATUS_NOT_FOUND,
                          "no plan that works is stored in '%s'; 'fuseplan search' measures some",
                          db_path(s->db));
    json_array_foreach(list, i, listed)
    {
        if (open_listed(o, listed, s, &drawn, st) != 0 || add_page(o, s, drawn, pages, st) != 0)
            return -1;
    }
    return 0;
}

static int write_pages(const struct options *o, const json_t *pages, struct status *st)
{
    SCOPED_BUF page = BUF_INIT;
    size_t more = json_array_size(pages) - 1;
    report_page(pages, &page);
    const char *first = json_string_value(json_object_get(json_array_get(pages, 0), "options"));
    if (file_write(o->output, page.ptr, page.len, st) != 0)
        return -1;
    if (more > 0)
        note(o, "wrote '%s': the plans measured for %s, and for %zu other workload%s", o->output,
             first, more, more > 1 ? "s" : "");
    else
        note(o, "wrote '%s': the plans measured for %s", o->output, first);
    return 0;
}

static int run(const struct options *o, struct status *st)
{
    SCOPED_BY(session_close) struct session s = {.bench = NULL};
    bool drawn = false, named = options_has(o, OPTS_WORKLOAD | OPT(INIT));
    json_auto_t *pages = json_array();
    if (o->output == NULL)
        return status_set(st, STATUS_USAGE, "no file to write is named; add '-o report.html'");
    if (file_check_writable("--output", o->output, st) != 0 ||
        (named && open_named(o, &s, &drawn, st) != 0) ||
        (named ? add_page(o, &s, drawn, pages, st) : add_all(o, &s, pages, st)) != 0)
        return -1;
    return write_pages(o, pages, st);
}

const struct command cmd_report = {
    .name = "report",
    .operands = "",
    .summary = "Write a page that shows what was measured: plans, kernels, the search",
    .options = (OPTS_COMMON & ~OPT(FORMAT)) | OPTS_WORKLOAD | OPT(INIT) | OPT(OUTPUT) | OPT(DB),
    .required = OPT(OUTPUT),
    .exits = EXITS_NO_RESULT,
    .about =
        "Only reads the database, and writes one file that a browser shows without a network.\n"
        "Without a workload it has all, the one measured last first.",
    .examples = "fuseplan report -o report.html\n"
                "fuseplan report -b 1 -s 128 -m causal -o causal.html",
    .run = run,
};
