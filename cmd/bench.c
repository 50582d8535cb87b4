#include "cmd/bench_int.h"
#include "cmd/plans.h"

static void add_plan(struct comparison *c, struct plan p, bool padded, unsigned precision)
{
    if (comparison_find(c, p, padded, precision) >= 0)
        return;
    c->padded[c->count] = padded;
    c->precision[c->count] = precision;
    c->plans[c->count++] = p;
}

static int check_dump(const struct options *o, struct status *st)
{
    bool force = options_has(o, OPT(FORCE));
    if (o->dump == NULL)
        return force ? status_set(st, STATUS_USAGE, "--force is about the directory of --dump") : 0;
    return force ? 0 : directory_check_vacant("--dump", o->dump, st);
}

int comparison_read(const struct options *o, struct comparison *c, struct status *st)
{
    if (o->operand_count == 0)
        return status_set(
            st, STATUS_USAGE,
            "no operand given; expected VALUE... or --op attention, for example: %.*s",
            (int)strcspn(cmd_bench.examples, "\n"), cmd_bench.examples);
    struct best_plan best;
    if (session_best(o, SCOPE_STORED, &best, st) != 0)
        return -1;
    c->stores = o->weights == NULL;
    for (int i = 0; i < o->operand_count; i++) {
        struct plan p;
        if (plan_from_text(o, o->operands[i], &best, &p, st) != 0)
            return -1;
        bool is_best = strcmp(o->operands[i], BEST_WORD) == 0,
             padded = (is_best && best.padded) || options_has(o, OPT(PADDED));
        c->stores = c->stores && !padded;
        add_plan(c, p, padded, o->precision);
        if (c->count > VALUES_MAX)
            return status_set(st, STATUS_USAGE,
                              "more than %d plans are given; time fewer side by side", VALUES_MAX);
    }
    if (o->dump != NULL && c->count != 1)
        return status_set(st, STATUS_USAGE,
                          "--dump writes one plan, and %d are given; give one value", c->count);
    if (check_dump(o, st) != 0)
        return -1;
    if (o->weights == NULL && o->prefix != NULL)
        return status_set(
            st, STATUS_USAGE,
            "--prefix chooses among the models in a file of weights; give --weights, or "
            "--model with a directory that has weights");
    if (o->weights != NULL && options_has(o, OPT(FAIL_ABOVE)))
        return status_set(
            st, STATUS_USAGE,
            "--fail-above compares with stored times, and those of trained weights are "
            "not stored; %s",
            o->model_weights != NULL ? "give --model the config.json for drawn ones"
                                     : "leave it or --weights out");
    if (o->calibration != NULL && (o->weights == NULL || o->precision == 0))
        return status_set(
            st, STATUS_USAGE, "--calibration has scales of e4m3 for a model's weights; give %s",
            o->weights == NULL ? "--weights, or --model with a directory that has some"
                               : "--precision, or leave it out");
    if (o->model_weights != NULL)
        note(o, "the layers have the weights of '%s', and their times are not stored",
             o->model_weights);
    if (options_has(o, OPT(STAMPS)) && (o->format == FORMAT_CSV || o->format == FORMAT_MARKDOWN))
        return status_set(st, STATUS_USAGE,
                          "--stamps prints tables or JSON, and --format asks for lines of plans; "
                          "leave one of them out");
    c->given = c->count;
    c->wants_kernels =
        o->format != FORMAT_CSV && o->format != FORMAT_MARKDOWN; /* their lines are plans */
    if (baselines_from_options(o, &best, &c->baselines, st) != 0)
        return -1;
    for (int i = 0; i < c->baselines.count; i++)
        add_plan(c, c->baselines.plans[i], false, 0);
    return 0;
}

/* ---- what was stored before ------------------------------------------------------------------ */

/* Keeps the newest stored final of each plan. */
static int earlier_row(void *ctx, const struct db_trial *row)
{
    struct comparison *c = ctx;
    int i =
        comparison_find(c, plan_from_value((unsigned)row->value), false, (unsigned)row->precision);
    if (i < 0 || row->status != TRIAL_OK || c->candidates[i].packed != (row->packed != 0))
        return 0;
    c->earlier[i].ms = db_trial_ms(row);
    snprintf(c->earlier[i].utc, sizeof(c->earlier[i].utc), "%s", row->stored_utc);
    return 0;
}

static int read_earlier(struct comparison *c, struct session *s, struct status *st)
{
    for (int i = 0; i < c->count; i++) {
        SCOPED_BY(db_time_release) struct db_time t;
        db_set_precision(s->db, c->precision[i]);
        if (db_time(s->db, s->study, (int)plan_value(c->plans[i]), "", &t, st) < 0)
            return -1;
        if (c->candidates[i].packed == t.packed)
            c->earlier[i].in_search = t.ms;
    }
    for (int i = 0; i < c->count; i++) {
        db_set_precision(s->db, c->precision[i]);
        if ((i == 0 || c->precision[i] != c->precision[i - 1]) &&
            db_trial_times(s->db, s->study, DB_TRIAL_FINAL, earlier_row, c, st) != 0)
            return -1;
    }
    db_set_precision(s->db, c->precision[0]);
    return 0;
}

/* How plan i runs. */
static int choose(struct comparison *c, int i, const struct choice_source *from, struct status *st)
{
    struct build_target target = *from->target;
    struct choice_source source = *from;
    target.precision = c->precision[i];
    source.target = &target;
    if (from->db != NULL)
        db_set_precision(from->db, c->precision[i]);
    return target.precision != 0 && plan_check(&target, c->plans[i], st) != 0
               ? -1
               : study_candidate(&source, c->plans[i], &c->candidates[i], st);
}

/* from: the study of the schedules, if it is not the session's.  retry: what is stored as failed
 * counts as not measured. */
static int prepare(struct comparison *c, struct session *s, const struct found_study *from,
                   bool retry, struct history *known, struct status *st)
{
    const struct choice_source source = {.db = from->db != NULL ? from->db
                                               : s->study != 0  ? s->db
                                                                : NULL,
                                         .study = from->db != NULL ? from->study : s->study,
                                         .target = bench_target(s->bench),
                                         .retry_failed = retry};
    for (int i = 0; i < c->count; i++) {
        c->earlier[i] = (struct earlier){.ms = NO_INTERVAL, .in_search = NO_INTERVAL};
        if (choose(c, i, &source, st) != 0)
            return -1;
        c->candidates[i].packed = s->workload.lengths != NULL && !c->padded[i];
    }
    if (!c->stores)
        return 0;
    db_set_precision(s->db, c->precision[0]);
    if (study_history(s->db, s->study, known, st) != 0)
        return -1;
    if (retry)
        history_drop_failed(known, NULL);
    return read_earlier(c, s, st);
}

/* Stores all times as finals, and a plan's first result as a trial of a search too. */
static int store(struct comparison *c, struct session *s, const struct history *known,
                 struct status *st)
{
    if (db_search_start(s->db, s->study, "bench", "{}", c->search, st) != 0)
        return -1;
    for (int i = 0; i < c->count; i++)
        if (c->precision[i] == c->precision[0] && !history_has(known, c->plans[i]) &&
            trial_store(s->db, s->study, DB_TRIAL_PLAN, &c->candidates[i], &c->trials[i], c->search,
                        st) != 0)
            return -1;
    return comparison_store(s->db, s->study, c->candidates, c->trials, c->count, c->search,
                            c->search, st);
}

static int measure_kernels(struct comparison *c, struct session *s,
                           const struct candidate *const *plans, int n, struct status *st)
{
    for (int i = 0; i < n && c->wants_kernels; i++)
        if (kernels_measure(s, plans[i], c->stores ? c->search : NULL, &c->kernels, st) != 0)
            return -1;
    return 0;
}

/* Runs the given plans that ran once more, with stamps. */
static int measure_stamps(struct comparison *c, struct session *s, struct status *st)
{
    c->stamps = mem_alloc((size_t)c->given, sizeof(*c->stamps));
    for (int i = 0; i < c->given; i++)
        if (comparison_ran(c, i) &&
            bench_stamps(s->bench, &c->candidates[i], &c->stamps[i], st) != 0)
            return -1;
    return 0;
}

/* ---- the command ----------------------------------------------------------------------------- */

/* EXIT_REGRESSION if all of a plan's interval lies above `fail_above` times that of its last
 * comparison; EXIT_NO_RESULT if there was none. */
static int slower(const struct options *o, const struct comparison *c, int i)
{
    const struct interval *now = &c->trials[i].ms, *before = &c->earlier[i].ms;
    if (isnan(before->median)) {
        fprintf(stderr,
                "fuseplan bench: %u: no earlier comparison is stored that --fail-above could "
                "compare with; this one is, for the next time\n",
                plan_value(c->plans[i]));
        return EXIT_NO_RESULT;
    }
    if (!(now->low > o->fail_above * before->high))
        return EXIT_SUCCESS;
    int d = ms_decimals(before->median);
    fprintf(stderr,
            "fuseplan bench: %u: %.*f ms [%.*f, %.*f] is slower than %g times the %.*f ms [%.*f, "
            "%.*f] of its last comparison, %s\n",
            plan_value(c->plans[i]), d, now->median, d, now->low, d, now->high, o->fail_above, d,
            before->median, d, before->low, d, before->high, c->earlier[i].utc);
    return EXIT_REGRESSION;
}

static int verdict(const struct options *o, const struct comparison *c)
{
    int code = EXIT_SUCCESS;
    for (int i = 0; i < c->given; i++)
        if (c->trials[i].status != TRIAL_OK)
            return EXIT_NO_RESULT;
    for (int i = 0; i < c->given && options_has(o, OPT(FAIL_ABOVE)); i++) {
        int one = slower(o, c, i);
        code = one > code ? one : code;
    }
    return code;
}

/* Without a study to store in, the one that knows the workload tells the fastest schedules:
 * *known.  Else the study to store in does. */
static int open_study(const struct options *o, const struct comparison *c, struct session *s,
                      struct found_study *known, struct status *st)
{
    if (session_open(o, o->seed, c->stores ? DB_WRITE : DB_READ, s, st) != 0)
        return -1;
    return c->stores ? study_open(s->bench, s->db, &s->study, st)
                     : study_find_known(o, SCOPE_STORED, s->target, &s->workload, known, st);
}

static int check_padded(const struct options *o, const struct session *s, struct status *st)
{
    if (!options_has(o, OPT(PADDED)) || s->workload.lengths != NULL)
        return 0;
    return status_set(st, STATUS_USAGE,
                      "--padded computes rows of padding, and no sequence has any; give --lengths "
                      "or --avg-seq-len");
}

int comparison_measure(const struct options *o, struct comparison *c, struct session *s,
                       struct status *st)
{
    SCOPED_BY(history_release) struct history known = {.count = 0};
    SCOPED_BY(found_study_close) struct found_study schedules = {.db = NULL};
    const struct candidate *plans[VALUES_MAX]; /* the given plans that ran */
    if (open_study(o, c, s, &schedules, st) != 0 || check_padded(o, s, st) != 0 ||
        stamps_check(o, s, st) != 0 ||
        prepare(c, s, &schedules, options_has(o, OPT(RETRY_FAILED)), &known, st) != 0 ||
        bench_compare(s->bench, c->candidates, c->count, &sampling_bench, c->trials, st) != 0)
        return -1;
    clock_utc(c->compared_at);
    int n = comparison_plans(c, plans);
    if ((c->stores && store(c, s, &known, st) != 0) || measure_kernels(c, s, plans, n, st) != 0)
        return -1;
    return c->stores ? db_search_end(s->db, c->search, "done", st) : 0;
}

void comparison_free(struct comparison *c)
{
    for (int i = 0; i < c->count; i++)
        trial_release(&c->trials[i]);
    kernels_release(&c->kernels);
    free(c->stamps);
    free(c);
}

static int measure(const struct options *o, struct comparison *c, struct session *s,
                   struct status *st)
{
    if (comparison_measure(o, c, s, st) != 0 ||
        (options_has(o, OPT(STAMPS)) && measure_stamps(c, s, st) != 0))
        return -1;
    session_note_disturbance(o, s);
    comparison_print(o, c, &s->workload);
    if (o->dump != NULL && c->trials[0].status == TRIAL_OK &&
        bench_dump(s->bench, &c->candidates[0], o->dump, options_has(o, OPT(FORCE)), st) != 0)
        return -1;
    return verdict(o, c);
}

static bool is_one_operation(const struct options *o)
{
    return options_has(o, OPT(OP));
}

static int run(const struct options *o, struct status *st)
{
    if (is_one_operation(o))
        return check_dump(o, st) == 0 ? bench_attention(o, st) : -1;
    SCOPED_BY(session_close) struct session s = {.bench = NULL};
    SCOPED_BY(comparison_free_at) struct comparison *c = mem_alloc(1, sizeof(*c));
    return comparison_read(o, c, st) == 0 ? measure(o, c, &s, st) : -1;
}

const struct command cmd_bench = {
    .name = "bench",
    .operands = "[VALUE...]",
    .summary = "Build, verify and time plans side by side",
    .options = OPTS_COMMON | OPTS_WORKLOAD | OPT(INIT) | OPT(WEIGHTS) | OPT(PREFIX) |
               OPT(CALIBRATION) | OPT(PRECISION) | OPT(PADDED) | OPT(BASELINE) | OPT(DUMP) |
               OPT(STAMPS) | OPT(FORCE) | OPT(FAIL_ABOVE) | OPT(RETRY_FAILED) | OPT(OP) |
               OPT(COMPILER) | OPT(ARCH) | OPT(JOBS) | OPT(DB) | OPT(EVENTS),
    .required = OPT(BATCH) | OPT(SEQ_LEN),
    .each = true,
    .exits = EXITS_NO_RESULT | EXITS_REGRESSION | EXITS_INTERRUPTED,
    .about =
        "A VALUE may be 'best', the best plan known for the workload, or 'default', the one\n"
        "that is expected to be the fastest.\n"
        "Each segment runs with the fastest schedule that the database knows.  Each plan is\n"
        "verified, then all plans and the baselines are timed side by side.  A speed-up whose\n"
        "interval holds 1 is a tie.  Then each kernel of the given plans is timed alone.  With\n"
        "'--retry-failed' schedules that failed are tried again, and a plan stored as failed gets\n"
        "a new result.  Exits 3 if a given plan has no valid result, 4 if one is slower than\n"
        "--fail-above allows.\n"
        "With --weights, or with --model and a directory that has some, the layers have the\n"
        "weights of a trained model, and nothing is stored.\n"
        "With --lengths or --avg-seq-len plans run on packed tokens, without rows of padding.\n"
        "With --precision the GEMMs named of the plans given have operands of e4m3, and those of\n"
        "baselines have not; scales follow from the inputs, or with weights from --calibration.\n"
        "With --padded the plans given compute these rows too, and nothing is stored.\n"
        "With --stamps the kernels of the plans given are compiled once more, and tell where the "
        "time\n"
        "of a layer goes: hand-overs from kernel to kernel, loads, products, epilogues.\n"
        "With --op attention and no VALUE, times operators 1-6 alone with the fastest schedule\n"
        "known, and stores nothing.",
    .examples = "fuseplan bench 41115 -b 1 -s 128 -m causal\n"
                "fuseplan bench best -b 1 -s 128 -m causal\n"
                "fuseplan bench 41115 43690 36507 -b 2 -s 256 -m sliding --format csv\n"
                "fuseplan bench 41115 -b 1 -s 64 -m strided --dump arrays\n"
                "fuseplan bench 41115 -b 1 -s 64 -m strided --fail-above 1.05\n"
                "fuseplan bench best -b 1 -s 128 --stamps --baseline none   # on a GPU\n"
                "fuseplan bench --op attention -b 1,2 -s 64,128 -m strided",
    .words = words_plans,
    .whole = is_one_operation,
    .run = run,
};
