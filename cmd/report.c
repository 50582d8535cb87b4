#include "cmd/report_int.h"

#include <stdlib.h>
#include <string.h>

/* The options name a workload, as query's do.  Release what session_close() releases. */
static int open_named(const struct options *o, struct session *s, bool *drawn, struct status *st)
{
    *drawn = true;
    if (workload_from_options(o, true, &s->target, &s->workload, st) != 0 ||
        db_open(o->db, DB_READ, &s->db, st) != 0)
        return -1;
    return study_of_workload(o, s->db, s->target, &s->workload, &s->study, st);
}

struct last {
    char *text;
    enum target_kind target;
};

static void take_first(void *ctx, const struct db_workload *w, const char *target_kind)
{
    struct last *last = ctx;
    if (last->text != NULL)
        return;
    last->text = mem_strdup(w->text);
    last->target = strcmp(target_kind, target_names[TARGET_CUDA]) == 0 ? TARGET_CUDA : TARGET_CPU;
}

/* No workload is named: takes the one measured last.  Its mask cannot be drawn if it was a file. */
static int open_last(const struct options *o, struct session *s, bool *drawn, struct status *st)
{
    struct last last = {.text = NULL};
    workload_init(&s->workload);
    if (db_open(o->db, DB_READ, &s->db, st) != 0 || db_workloads(s->db, take_first, &last, st) != 0)
        return -1;
    if (last.text == NULL)
        return status_set(st, STATUS_NOT_FOUND,
                          "no plan that works is stored in '%s'; 'fuseplan search' measures some",
                          db_path(s->db));
    s->target.kind = last.target;
    int result = workload_parse(last.text, &s->workload, st);
    free(last.text);
    if (result != 0)
        return -1;
    *drawn = s->workload.mask_spec.path == NULL;
    if (*drawn && workload_build_mask(&s->workload, NULL, st) != 0)
        return -1;
    return study_of_workload(o, s->db, s->target, &s->workload, &s->study, st);
}

static void keep_init(void *ctx, const struct db_study *s)
{
    *(char **)ctx = mem_strdup(s->init);
}

/* Appends the options that name the study to commands on the page. */
static void name_workload(const struct options *o, const struct session *s, bool drawn,
                          struct buf *out)
{
    struct buf texts;
    struct status unread = STATUS_INIT; /* what reads the page's data meets it again */
    char *init = NULL;
    buf_init(&texts);
    struct db_workload named = db_workload_of(&s->workload, &texts);
    if (db_study_read(s->db, s->study, keep_init, &init, &unread) == 0)
        named.init = init;
    if (drawn && s->workload.mask_spec.path != NULL)
        named.mask = o->mask; /* the file, where the row has its hash */
    known_options(&named, target_names[s->target.kind], out);
    if (strstr(out->ptr, " --target ") == NULL) /* the page may be read on another machine */
        buf_addf(out, " --target %s", target_names[s->target.kind]);
    free(init);
    buf_release(&texts);
}

static int write_page(const struct options *o, const struct session *s, bool drawn,
                      struct status *st)
{
    struct buf options, page;
    json_t *data;
    buf_init(&options);
    buf_init(&page);
    name_workload(o, s, drawn, &options);
    struct reported r = {.db = s->db,
                         .study = s->study,
                         .target = s->target.kind,
                         .workload = &s->workload,
                         .drawn = drawn,
                         .options = options.ptr};
    int result = report_data_json(&r, &data, st);
    if (result == 0) {
        report_page(data, &page);
        result = file_write(o->output, page.ptr, page.len, st);
    }
    if (result == 0)
        note(o, "wrote '%s': the plans measured for %s", o->output, options.ptr);
    json_decref(data);
    db_best_release(&r.best);
    slot_records_release(r.slots);
    buf_release(&page);
    buf_release(&options);
    return result;
}

static int run(const struct options *o, struct status *st)
{
    struct session s = {.bench = NULL};
    bool drawn = false, named = options_has(o, OPTS_WORKLOAD | OPT(INIT));
    int result = -1;
    if (o->output == NULL)
        status_set(st, STATUS_USAGE, "no file to write is named; add '-o report.html'");
    else if (file_check_writable("--output", o->output, st) == 0 &&
             (named ? open_named(o, &s, &drawn, st) : open_last(o, &s, &drawn, st)) == 0)
        result = write_page(o, &s, drawn, st);
    session_close(&s);
    return result;
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
        "Without a workload it takes the one measured last.",
    .examples = "fuseplan report -o report.html\n"
                "fuseplan report -b 1 -s 128 -m causal -o causal.html",
    .run = run,
};
