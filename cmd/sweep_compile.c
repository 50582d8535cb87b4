/* Fills the cache of compiled code with what searches of the rows build first, without a device. */
#include "cmd/plans.h"
#include "cmd/sweep_int.h"

/* What became of a row. */
struct compiled {
    int kernels, built, failed; /* failed: among `built` */
    double seconds;             /* NaN: it was not begun */
    char *reason;               /* why it was not compiled, owned; null: it was */
};

static const struct column columns[] = {
    {"row", "row", 0},         {"shard", "shard", 0},   {"state", "state", 0},
    {"kernels", "kernels", 0}, {"built", "built", 0},   {"failed", "failed", 0},
    {"seconds", "s", 1},       {"reason", "reason", 0},
};

/* --arch stands for a GPU, and one code serves all GPUs of a list. */
static struct options options_of(const struct options *row)
{
    struct options o = *row;
    struct target_name usual;
    bool gpus = o.target != NULL && strncmp(o.target, "cuda:", strlen("cuda:")) == 0;
    if (gpus || (o.target == NULL && o.arch != NULL))
        o.target = target_names[TARGET_CUDA];
    else if (o.target == NULL && target_parse(NULL, &usual, STATUS_IGNORED) == 0)
        o.target = target_names[usual.kind];
    o.given |= OPT(QUIET);
    return o;
}

static int arch_of(const struct options *o, enum target_kind target, int *out, struct status *st)
{
    struct arch_list archs;
    if (archs_from_options(o, target, &archs, st) != 0)
        return -1;
    *out = archs.arch[0];
    return archs.count <= 1 ? 0
                            : status_set(st, STATUS_USAGE,
                                         "--arch: '%s' names several architectures; name one, and "
                                         "run the command for each",
                                         o->arch);
}

static struct tune_options search_of(const struct options *o)
{
    const struct best_plan none = {.known = false}; /* --baseline best: no database is asked */
    struct tune_options t = {.search = {.space_lo = o->space[0], .space_hi = o->space[1]},
                             .rigor = o->rigor};
    if (baselines_from_options(o, &none, &t.baselines, STATUS_IGNORED) != 0)
        t.baselines.count = 0;
    return t;
}

static int build(struct bench *b, const struct options *o, struct compiled *out, struct status *st)
{
    const struct tune_options search = search_of(o);
    SCOPED struct choice *choices = NULL;
    out->kernels = choices_ahead(b, &search, &choices);
    SCOPED struct status *results = mem_alloc((size_t)out->kernels + 1, sizeof(*results));
    if (bench_build(b, choices, out->kernels, results, st) != 0)
        return -1;
    for (int i = 0; i < out->kernels; i++) {
        out->built += bench_build_seconds(b, &choices[i]) > 0;
        out->failed += results[i].code != STATUS_OK;
    }
    return 0;
}

static int compile_row(const struct options *row, struct compiled *out, struct status *st)
{
    const struct options o = options_of(row);
    struct bench_options options = {.compiler = o.compiler,
                                    .jobs = o.jobs,
                                    .stop = &session_stop,
                                    .listener = {.report = progress_detail},
                                    .builds_only = true};
    SCOPED_BY(workload_release) struct workload w;
    SCOPED_BY(bench_close_at) struct bench *b = NULL;
    return workload_from_options(&o, true, &options.target, &w, st) != 0 ||
                   arch_of(&o, options.target.kind, &options.arch, st) != 0 ||
                   bench_open(&options, &w, &b, st) != 0
               ? -1
               : build(b, &o, out, st);
}

/* ---- the action ------------------------------------------------------------------------------ */

/* Finds what is wrong with --arch of a row before anything is compiled. */
static int check_rows(const struct options *o, const struct table *t, struct status *st)
{
    for (int i = 0; i < t->count; i++) {
        const struct options row = options_of(&t->rows[i].o);
        struct target_name target;
        int arch;
        if (target_parse(row.target, &target, st) != 0 ||
            arch_of(&row, target.kind, &arch, st) != 0)
            return status_prefix(st, "%s,%s", o->operands[1], t->rows[i].text);
    }
    return 0;
}

static const char *state_of(const struct compiled *c)
{
    if (isnan(c->seconds))
        return sweep_state_names[ROW_MISSING];
    return sweep_state_names[c->reason == NULL ? ROW_DONE : ROW_FAILED];
}

/* Compiles the rows of the shard.  A machine that fails one row fails the others too, and ends it;
 * so does an interrupt.  Returns an exit status, or -1. */
static int compile_rows(const struct options *o, const struct table *t, struct compiled *rows,
                        struct status *st)
{
    int total = 0, ended = 0, failed = 0;
    double start = clock_seconds();
    for (int i = 0; i < t->count; i++)
        total += t->order[i].shard == o->shard;
    for (int i = 0; i < t->count && session_stop == 0; i++) {
        struct status why = STATUS_INIT;
        const struct table_row *row = &t->rows[t->order[i].index];
        struct compiled *out = &rows[t->order[i].index];
        if (t->order[i].shard != o->shard)
            continue;
        double begin = clock_seconds();
        progress_step(NULL,
                      &(struct step){"rows", ended, total, step_left(begin - start, ended, total)});
        int result = compile_row(&row->o, out, &why);
        if (result != 0 && session_stop != 0)
            break;
        out->seconds = clock_seconds() - begin;
        out->reason = result != 0 ? mem_strdup(why.message) : NULL;
        progress_row(row->text + 1, state_of(out), options_of(&row->o).target);
        ended++;
        failed += result != 0;
        if (result != 0 && why.code == STATUS_ENVIRONMENT)
            return status_set(st, why.code, "%s", why.message);
    }
    return session_stop != 0 ? EXIT_INTERRUPTED : failed > 0 ? EXIT_NO_RESULT : EXIT_SUCCESS;
}

static void print(const struct options *o, const struct table *t, const struct compiled *rows)
{
    struct output out;
    progress_hide();
    output_begin(&out, o->format, columns, ARRAY_LEN(columns));
    out.skip_empty = true;
    for (int i = 0; i < t->count; i++) {
        const struct compiled *c = &rows[t->order[i].index];
        if (t->order[i].shard != o->shard)
            continue;
        output_row(&out, json_pack("{ss so ss si si si so so}", "row",
                                   t->rows[t->order[i].index].text + 1, "shard",
                                   o->shards > 1 ? json_integer(o->shard) : json_null(), "state",
                                   state_of(c), "kernels", c->kernels, "built", c->built, "failed",
                                   c->failed, "seconds", json_number(c->seconds), "reason",
                                   json_text_or_null(c->reason)));
    }
    output_end(&out);
}

int sweep_compile_run(const struct options *o, struct status *st)
{
    const struct options given = options_of(o);
    SCOPED_BY(table_release) struct table table = {.count = 0};
    session_catch_signals();
    if (table_read(o, o->operands[1], given.target, &table, st) != 0 ||
        check_rows(o, &table, st) != 0)
        return -1;
    SCOPED struct compiled *rows = mem_alloc((size_t)table.count + 1, sizeof(*rows));
    for (int i = 0; i < table.count; i++)
        rows[i].seconds = NAN;
    int code = compile_rows(o, &table, rows, st);
    print(o, &table, rows);
    if (code == EXIT_INTERRUPTED)
        note(o, "interrupted; what was compiled is kept, and the same command goes on");
    for (int i = 0; i < table.count; i++)
        free(rows[i].reason);
    return code;
}
