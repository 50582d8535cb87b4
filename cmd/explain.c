#include "cmd/explain_int.h"
#include "cmd/plans.h"

/* Opens what is stored of the workload, *stored: s->db stays null if that is nothing. */
static int open_stored(const struct options *o, struct session *s, struct buf *texts,
                       struct db_study *stored, struct status *st)
{
    struct found_study found;
    if (study_find_known(o, SCOPE_KNOWN, s->target, &s->workload, &found, st) != 0)
        return -1;
    s->db = found.db;
    s->study = found.study;
    s->pack = found.pack;
    if (found.pack != NULL)
        note(o, "what is stored is from the pack '%s'", found.pack);
    if (found.db != NULL)
        return db_study_read(s->db, s->study, texts, stored, st);
    if (strcmp(o->operands[0], BEST_WORD) != 0) { /* else the failure says it */
        SCOPED_BUF search = BUF_INIT;
        options_command(o, "search", OPTS_PLANS, &search);
        note(o, "no times of this workload are stored; '%s' measures it", search.ptr);
    }
    return 0;
}

/* Says why the plan's time is unstable, if it is of the comparison that the best plan won. */
static int read_unstable(struct session *s, struct explained *x, struct status *st)
{
    if (s->db == NULL || x->e.source != TIME_COMPARED)
        return 0;
    SCOPED_BY(db_best_release) struct db_best best;
    return db_best(s->db, s->study, &best, st) != 0
               ? -1
               : plan_unstable(s->db, s->study, (int)plan_value(x->e.plan), best.comparison,
                               x->unstable, st);
}

/* Which command says where the time goes within kernels. */
static void print_stamps(const struct options *o, const struct explained *x)
{
    SCOPED char *verb = buf_text("bench %u", plan_value(x->e.plan));
    SCOPED_BUF command = BUF_INIT;
    options_command(o, verb, OPTS_PLANS, &command);
    printf("\n'%s --stamps' says what each kernel's time goes to: hand-over, loads, products, "
           "epilogue\n",
           command.ptr);
}

static void print(const struct options *o, const struct explained *x)
{
    progress_hide();
    if (o->format == FORMAT_TABLE) {
        explained_print(x);
        if (x->target == TARGET_CUDA)
            print_stamps(o, x);
    } else if (o->format == FORMAT_CSV) {
        explained_csv(x);
    } else {
        output_object(o->format, NULL, 0, explained_json(x));
    }
}

/* The plan that the operand names.  The drawing says all that session_best() notes of 'best'. */
static int find_plan(const struct options *o, struct plan *out, struct status *st)
{
    struct options quiet = *o;
    struct best_plan best;
    quiet.given |= OPT(QUIET);
    return session_best(&quiet, SCOPE_KNOWN, &best, st) == 0
               ? plan_from_text(o, o->operands[0], &best, out, st)
               : -1;
}

static int run(const struct options *o, struct status *st)
{
    SCOPED_BY(session_close) struct session s = {.bench = NULL};
    struct explained x = {.workload = &s.workload, .precision = o->precision};
    struct db_study stored = {.protocol = NULL};
    SCOPED_BUF texts = BUF_INIT;
    struct plan p;
    if (workload_from_options(o, true, &s.target, &s.workload, st) != 0)
        return -1;
    x.has_errors = o->accuracy != NULL;
    if (x.has_errors && precision_errors_read(o->accuracy, s.workload.dtype, &x.errors, st) != 0)
        return -1;
    x.target = s.target.kind;
    if (open_stored(o, &s, &texts, &stored, st) != 0 || find_plan(o, &p, st) != 0)
        return -1;
    x.device = stored.target.device;
    struct build_target target =
        s.db == NULL ? target_build(s.target, &s.workload)
                     : build_target_of(x.target, stored.target.capability, true, &s.workload);
    target.precision = o->precision;
    if (build_check(&target, &s.workload, st) != 0 ||
        explain_plan(s.db, s.study, &target, &s.workload, p, &x.e, st) != 0 ||
        read_unstable(&s, &x, st) != 0)
        return -1;
    print(o, &x);
    return EXIT_SUCCESS;
}

const struct command cmd_explain = {
    .name = "explain",
    .operands = "VALUE",
    .summary = "Draw a plan's kernels, say what limits them and how its neighbours compare",
    .options = OPTS_COMMON | OPTS_WORKLOAD | OPT(INIT) | OPT(PRECISION) | OPT(ACCURACY) | OPT(DB),
    .required = OPT(BATCH) | OPT(SEQ_LEN),
    .exits = EXITS_NO_RESULT,
    .about =
        "VALUE may be 'best', the best plan known for the workload, or 'default', the one\n"
        "that is expected to be the fastest.  A box is a kernel: its\n"
        "operators, what it reads, keeps on chip and writes, the time that it took alone, and the\n"
        "least that any kernel takes for this work.  Then come the plans with one cut less, more "
        "or\n"
        "elsewhere, and how much slower they are.  Only reads the database, and measures nothing.\n"
        "With --precision a kernel with e4m3 says what it took without, and --accuracy what each\n"
        "GEMM in e4m3 costs a model.",
    .examples = "fuseplan explain best -b 1 -s 128 -m causal\n"
                "fuseplan explain 41115 -b 2 -s 256 -m sliding\n"
                "fuseplan explain 41115 -b 1 -s 128 -m causal --format json",
    .words = words_plans,
    .run = run,
};
