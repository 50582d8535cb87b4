#include "cmd/db_int.h"

static const struct column columns[] = {
    {"options", "workload", 0}, {"target", NULL, 0},           {"protocol", "protocol", 0},
    {"trials", "forgotten", 0}, {"stored_utc", "measured", 0}, {"device", "device", 0},
};

/* ctx: an array of rows. */
static void add_row(void *ctx, const struct db_listed *l, int64_t trials)
{
    json_array_append_new(ctx, json_pack("{so ss ss ss sI ss}", "options", db_study_options(l),
                                         "target", l->target.kind, "device", l->target.device,
                                         "protocol", l->protocol, "trials", (json_int_t)trials,
                                         "stored_utc", l->stored_utc));
}

/* Reads which studies are meant; key: holds the workload's text. */
static int read_what(const struct options *o, struct session *s, struct buf *key,
                     struct db_forget *out, struct status *st)
{
    bool workload = options_has(o, OPTS_WORKLOAD & ~(OPT(TARGET) | OPT(SEED)));
    if (!workload && !options_has(o, OPT(FAILED) | OPT(OLDER_PROTOCOL)))
        return status_set(st, STATUS_USAGE,
                          "'db forget' needs to know what: a workload (-b N -s N ...), --failed or "
                          "--older-protocol");
    if ((workload ? workload_from_options(o, false, &s->target, &s->workload, st)
                  : target_parse(o->target, &s->target, st)) != 0)
        return -1;
    *out = (struct db_forget){.failed = options_has(o, OPT(FAILED)),
                              .dry_run = options_has(o, OPT(DRY_RUN))};
    if (workload) {
        workload_text(&s->workload, key);
        out->workload = key->ptr;
    }
    if (workload || options_has(o, OPT(TARGET)))
        out->target_kind = target_names[s->target.kind];
    if (options_has(o, OPT(INIT)))
        out->init = ranges_names[o->ranges];
    if (options_has(o, OPT(SEED)) && !options_has(o, OPT(AVG_SEQ_LEN))) /* else it is of lengths */
        out->seed = &o->seed;
    if (options_has(o, OPT(OLDER_PROTOCOL)))
        out->older_than = PROTOCOL_VERSION;
    return 0;
}

int db_forget_run(const struct options *o, struct session *s, struct status *st)
{
    struct db_forget what = {.failed = false};
    json_auto_t *rows = json_array();
    SCOPED_BUF key = BUF_INIT;
    if (read_what(o, s, &key, &what, st) != 0 ||
        db_open(o->db, what.dry_run ? DB_READ : DB_UPDATE, &s->db, st) != 0 ||
        db_forget(s->db, &what, add_row, rows, st) != 0)
        return -1;
    bool none = json_array_size(rows) == 0;
    output_rows(o->format, columns, ARRAY_LEN(columns), none, rows);
    if (none)
        note(o, "nothing that is stored agrees with these options; 'fuseplan db list' prints what "
                "there is");
    else if (what.dry_run)
        note(o, "nothing was forgotten: --dry-run");
    return EXIT_SUCCESS;
}
