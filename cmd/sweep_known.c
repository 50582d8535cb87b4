#include "cmd/sweep_int.h"

const char *const sweep_state_names[ROW_STATE_COUNT] = {"missing", "cut short", "failed", "done"};

/* The last search for plans decides: one that was killed or interrupted has no end. */
static void note_search(void *ctx, const struct db_search *s)
{
    enum sweep_state *state = ctx;
    bool ended =
        s->stopped_by[0] != '\0' && strcmp(s->stopped_by, search_stop_names[STOP_INTERRUPTED]) != 0;
    if (search_chose_plans(s, 0)) /* a row names no precision */
        *state = ended ? ROW_DONE : ROW_CUT_SHORT;
}

static void note_device(struct table_row *row, const struct db_study *s)
{
    bool comparable = strcmp(s->protocol, PROTOCOL_VERSION) == 0 && s->seed == 0 &&
                      strcmp(s->init, ranges_names[row->o.ranges]) == 0;
    snprintf(row->uuid, sizeof(row->uuid), "%s", comparable ? s->target.uuid : "");
}

/* Sets what is known of a row: its best plan, and of a row that was not searched here the state. */
static int row_known(struct db *db, struct table_row *row, struct status *st)
{
    struct status missing = STATUS_INIT;
    struct target_name target;
    SCOPED_BY(workload_release) struct workload w;
    struct options quiet = row->o;
    enum sweep_state state = ROW_MISSING;
    int64_t study = 0;
    struct db_study stored;
    SCOPED_BUF texts = BUF_INIT;
    quiet.given |= OPT(QUIET);
    char why[UNSTABLE_SIZE] = "";
    row->uuid[0] = '\0';
    db_best_release(&row->best);
    row->best = (struct db_best){.value = -1};
    bool known = workload_from_options(&quiet, false, &target, &w, &missing) == 0 &&
                 study_of_workload(&quiet, db, target, &w, &study, &missing) == 0 &&
                 db_searches(db, study, note_search, &state, &missing) == 0;
    if (known && db_best(db, study, &row->best, &missing) != 0) {
        state = state == ROW_DONE ? ROW_FAILED : state; /* no plan ran */
        known = false;
    }
    known = known && db_study_read(db, study, &texts, &stored, &missing) == 0;
    if (known)
        note_device(row, &stored);
    known = known &&
            plan_unstable(db, study, row->best.value, row->best.comparison, why, &missing) == 0;
    row->unstable = why[0] != '\0';
    if (!known)
        row->best = (struct db_best){.value = -1};
    if (row->reason == NULL && isnan(row->seconds))
        row->state = state;
    return status_unless_missing(&missing, st);
}

int table_known(const char *db, struct table *t, struct status *st)
{
    struct status failed = STATUS_INIT;
    SCOPED_BY(db_close_at) struct db *known = NULL;
    int result = db_open(db, DB_READ, &known, &failed);
    for (int i = 0; i < t->count && result == 0; i++)
        result = row_known(known, &t->rows[i], &failed);
    return status_unless_missing(&failed, st);
}

/* ---- printing -------------------------------------------------------------------------------- */

static const struct column columns[] = {
    {"row", "row", 0},
    {"shard", "shard", 0},
    {"state", "state", 0},
    {"best.value", "best plan", 0},
    {"best.median_ms", "ms", DECIMALS_MS},
    {"best.us_per_layer", "us/layer", 1},
    {"best.device", "device", 0},
    {"seconds", "s", 0},
    {"doubt", "doubt", 0},
    {"reason", "reason", 0},
};

static json_t *best_of_row(const struct table_row *row)
{
    const struct db_best *b = &row->best;
    if (b->value < 0)
        return json_null();
    return json_pack("{si so so so so ss}", "value", b->value, LAYER_MEMBERS(b->ms, row->o.layers),
                     "device", b->device);
}

static json_t *doubt_of_row(const struct table_row *row)
{
    if (row->best.value < 0)
        return json_null();
    if (row->unstable)
        return json_string("unstable");
    return row->best.final ? json_null() : json_string("not compared");
}

int sweep_print(const struct options *o, const struct table *t, int shard)
{
    SCOPED int *shard_of = mem_alloc((size_t)t->count + 1, sizeof(*shard_of));
    int open = 0;
    struct output out;
    for (int i = 0; i < t->count; i++)
        shard_of[t->order[i].index] = t->order[i].shard;
    progress_hide();
    output_begin(&out, o->format, columns, ARRAY_LEN(columns));
    out.skip_empty = true;
    for (int i = 0; i < t->count; i++) {
        const struct table_row *row = &t->rows[i];
        if (shard >= 0 && shard_of[i] != shard)
            continue;
        open += row->state != ROW_DONE;
        output_row(&out, json_pack("{ss so ss so so so so}", "row", row->text + 1, "shard",
                                   o->shards > 1 ? json_integer(shard_of[i]) : json_null(), "state",
                                   sweep_state_names[row->state], "best", best_of_row(row),
                                   "seconds", json_number(row->seconds), "doubt", doubt_of_row(row),
                                   "reason", json_text_or_null(row->reason)));
    }
    output_end(&out);
    return open;
}
