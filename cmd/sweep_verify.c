/* Runs the plans of packs on this device: whether they still run, are right and take the time that
 * the pack says. */
#include "cmd/plans.h"
#include "cmd/sweep_int.h"

/* How far a time may be from the pack's, as a share. */
#define TIME_WITHIN 0.03

static const struct column columns[] = {
    {"pack", "pack", 0},
    {"row", "row", 0},
    {"state", "state", 0},
    {"value", "plan", 0},
    {"stored_ms", "ms, pack", DECIMALS_MS},
    {"median_ms", "ms, here", DECIMALS_MS},
    {"ratio", "ratio", 3},
    {"device", "device", 0},
    {"reason", "reason", 0},
};

enum state { STATE_CONFIRMED, STATE_DIFFERS, STATE_FAILED, STATE_ELSEWHERE, STATE_COUNT };
static const char *const state_names[STATE_COUNT] = {"confirmed", "differs", "failed", "elsewhere"};

struct verified {
    int64_t study;
    char *text, *options; /* of the workload, owned */
    struct target_name target;
    struct inputs inputs;
    bool here; /* it was measured on a device of the model of the one here */
    struct db_best best;
    struct interval ms; /* NaN: it did not run */
    enum state state;
    struct status why;
};

/* The rows of a pack. */
struct pack {
    const struct options *o;
    const char *path;
    struct db *db;
    struct verified *rows; /* (count) owned */
    int count;
};

static void add_row(void *ctx, const struct db_listed *l)
{
    struct pack *p = ctx;
    const struct db_workload *w = &l->workload;
    struct verified row = {.study = l->study, .ms = NO_INTERVAL, .state = STATE_ELSEWHERE};
    struct fingerprint device;
    struct buf options = BUF_INIT;
    const char *named = p->o->target;
    bool kind = named != NULL && strncmp(named, l->target.kind, strlen(l->target.kind)) == 0;
    known_options(w, l->target.kind, &options);
    row.options = buf_detach(&options);
    row.text = mem_strdup(w->text);
    row.inputs.seed = w->seed;
    row.inputs.ranges =
        strcmp(w->init, ranges_names[RANGES_WIDE]) == 0 ? RANGES_WIDE : RANGES_UNIFORM;
    if (named == NULL || kind) {
        target_parse(kind ? named : l->target.kind, &row.target, STATUS_IGNORED);
        fingerprint_device(row.target, &device);
        row.here = strcmp(device.device, l->target.device) == 0;
    }
    p->rows = mem_resize(p->rows, (size_t)p->count + 1, sizeof(*p->rows));
    p->rows[p->count++] = row;
}

/* ---- a row ----------------------------------------------------------------------------------- */

static int measure(const struct pack *p, const struct workload *w, struct verified *row,
                   struct trial *out, struct status *st)
{
    struct bench_options options = {.target = row->target,
                                    .compiler = p->o->compiler,
                                    .jobs = p->o->jobs,
                                    .inputs = row->inputs,
                                    .afresh = true,
                                    .stop = &session_stop,
                                    .listener = {.report = progress_detail},
                                    .say = note_line,
                                    .say_ctx = (void *)p->o};
    struct candidate c;
    SCOPED_BY(bench_close_at) struct bench *b = NULL;
    return bench_open(&options, w, &b, st) != 0 ||
                   candidate_of_best(&row->best, bench_target(b), &c, st) != 0
               ? -1
               : bench_compare(b, &c, 1, &sampling_final, out, st);
}

/* Whether two intervals are certainly further apart than a time may be. */
static bool differ(struct interval now, const struct db_best *stored)
{
    return now.low > (1 + TIME_WITHIN) * stored->ms.high ||
           now.high < (1 - TIME_WITHIN) * stored->ms.low;
}

static int run_row(const struct pack *p, struct verified *row, struct status *st)
{
    SCOPED_BY(trial_release) struct trial trial = {.status = TRIAL_FAILED};
    SCOPED_BY(workload_release) struct workload w;
    if (workload_parse(row->text, &w, st) != 0)
        return -1;
    if (w.mask_spec.path != NULL)
        return status_set(st, STATUS_UNFIT, "a pack does not hold the attention mask of a file");
    if (workload_build_mask(&w, NULL, st) != 0 || measure(p, &w, row, &trial, st) != 0)
        return -1;
    if (trial.status != TRIAL_OK)
        return status_set(st, trial.reason.code, "%s", trial.reason.message);
    row->ms = trial.ms;
    row->state = differ(trial.ms, &row->best) ? STATE_DIFFERS : STATE_CONFIRMED;
    return 0;
}

/* Runs the rows of this device.  What ends a row alone is kept in it. */
static int run_rows(struct pack *p, struct status *st)
{
    for (int i = 0; i < p->count && session_stop == 0; i++) {
        struct verified *row = &p->rows[i];
        progress_step(NULL, &(struct step){"rows", i, p->count, NAN});
        if (db_best(p->db, row->study, &row->best, st) != 0)
            return -1;
        if (!row->here || run_row(p, row, &row->why) == 0)
            continue;
        row->state = STATE_FAILED;
        if (row->why.code == STATUS_ENVIRONMENT && session_stop == 0)
            return status_set(st, row->why.code, "%s", row->why.message);
    }
    return 0;
}

/* ---- the action ------------------------------------------------------------------------------ */

static void print_rows(const struct pack *p, struct output *out)
{
    for (int i = 0; i < p->count; i++) {
        const struct verified *row = &p->rows[i];
        output_row(
            out, json_pack("{so ss ss si so so so ss so}", "pack", json_text(p->path), "row",
                           row->options, "state", state_names[row->state], "value", row->best.value,
                           "stored_ms", json_number(row->best.ms.median), "median_ms",
                           json_number(row->ms.median), "ratio",
                           json_number(row->ms.median / row->best.ms.median), "device",
                           row->best.device, "reason",
                           row->why.code != STATUS_OK ? json_text(row->why.message) : json_null()));
    }
}

static void pack_close(struct pack *p)
{
    for (int i = 0; i < p->count; i++) {
        free(p->rows[i].text);
        free(p->rows[i].options);
        db_best_release(&p->rows[i].best);
    }
    free(p->rows);
    db_close(p->db);
}

static int exit_of(const struct options *o, const int counts[STATE_COUNT])
{
    if (session_stop != 0) {
        note(o, "interrupted; the rows that were not reached are not printed");
        return EXIT_INTERRUPTED;
    }
    if (counts[STATE_CONFIRMED] + counts[STATE_DIFFERS] + counts[STATE_FAILED] == 0)
        note(o, "no row was measured on a device of the model of the one here");
    return counts[STATE_DIFFERS] + counts[STATE_FAILED] == 0 && counts[STATE_CONFIRMED] > 0
               ? EXIT_SUCCESS
               : EXIT_NO_RESULT;
}

int sweep_verify_run(const struct options *o, struct status *st)
{
    int count = o->operand_count - 1, counts[STATE_COUNT] = {0}, result = 0;
    SCOPED struct pack *packs = mem_alloc((size_t)count, sizeof(*packs));
    struct target_name target;
    struct output out;
    session_catch_signals();
    if (o->target != NULL)
        result = target_parse(o->target, &target, st);
    for (int i = 0; i < count; i++) {
        packs[i] = (struct pack){.o = o, .path = o->operands[1 + i]};
        if (result == 0)
            result = pack_open(packs[i].path, NULL, &packs[i].db, st);
        if (result == 0)
            result = db_list(packs[i].db, add_row, &packs[i], st);
    }
    for (int i = 0; i < count && result == 0; i++)
        result = run_rows(&packs[i], st);
    if (result == 0) {
        progress_hide();
        output_begin(&out, o->format, columns, ARRAY_LEN(columns));
        out.skip_empty = true;
        for (int i = 0; i < count; i++)
            print_rows(&packs[i], &out);
        output_end(&out);
    }
    for (int i = 0; i < count; i++) {
        for (int k = 0; k < packs[i].count; k++)
            counts[packs[i].rows[k].state]++;
        pack_close(&packs[i]);
    }
    return result == 0 ? exit_of(o, counts) : -1;
}
