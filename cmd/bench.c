#include "cmd/bench_int.h"

#include <math.h>
#include <stdlib.h>

static int find_value(const struct lineup *l, unsigned value)
{
    for (int i = 0; i < l->count; i++)
        if (l->values[i] == value)
            return i;
    return -1;
}

static void add_value(struct lineup *l, unsigned value)
{
    if (find_value(l, value) < 0)
        l->values[l->count++] = value;
}

/* Said before anything is measured. */
static int check_dump(const struct lineup *l, const char *dir, struct status *st)
{
    bool vacant;
    if (l->count != 1)
        return status_set(st, STATUS_USAGE, "--dump with %d plans; give one value", l->count);
    if (directory_is_vacant(dir, &vacant, st) < 0)
        return -1;
    return vacant ? 0
                  : status_set(st, STATUS_USAGE, "--dump: '%s' is not empty; name a new directory",
                               dir);
}

static int parse_values(const struct options *o, struct lineup *l, struct status *st)
{
    if (o->operand_count == 0)
        return status_set(st, STATUS_USAGE, "no value; give one from 0 to 65535, such as %d",
                          VALUE_FIRST_VERSION);
    for (int i = 0; i < o->operand_count; i++) {
        unsigned value;
        if (plan_parse_value(o->operands[i], &value, st) < 0)
            return -1;
        unsigned canonical = plan_canonical(value);
        if (canonical != value)
            note(o, "%u names the same plan as %u", value, canonical);
        add_value(l, canonical);
        if (l->count > VALUES_MAX)
            return status_set(st, STATUS_USAGE, "more than %d plans; time fewer side by side",
                              VALUES_MAX);
    }
    if (o->dump && check_dump(l, o->dump, st) < 0)
        return -1;
    if (o->trace && file_is_writable("--trace", o->trace, st) < 0)
        return -1;
    l->given = l->count;
    l->wants_kernels = o->format != FORMAT_CSV; /* its lines are plans */
    if (!options_has(o, OPT(NO_BASELINE))) {
        add_value(l, VALUE_UNFUSED);
        add_value(l, VALUE_FIRST_VERSION);
    }
    l->unfused = find_value(l, VALUE_UNFUSED);
    l->first_version = find_value(l, VALUE_FIRST_VERSION);
    return 0;
}

/* ---- what was stored before ------------------------------------------------------------------ */

/* The fastest of the stored finals of each plan. */
static int earlier_row(void *ctx, const struct db_trial *row)
{
    struct lineup *l = ctx;
    int i = find_value(l, (unsigned)row->value);
    if (i >= 0)
        l->earlier_ms[i] = fmin(l->earlier_ms[i], row->median_ms);
    return 0;
}

static int prepare(struct lineup *l, struct session *s, struct history *known, struct status *st)
{
    for (int i = 0; i < l->count; i++) {
        l->earlier_ms[i] = NAN;
        if (study_candidate(s->db, s->study, bench_target(s->bench), plan_from_value(l->values[i]),
                            &l->candidates[i], st) < 0)
            return -1;
    }
    if (study_history(s->db, s->study, known, st) < 0)
        return -1;
    return db_trial_times(s->db, s->study, DB_TRIAL_FINAL, earlier_row, l, st);
}

/* A plan's first result counts as a trial of a search too; times side by side are finals. */
static int store(struct lineup *l, struct session *s, const struct history *known,
                 struct status *st)
{
    if (db_search_start(s->db, s->study, "bench", "{}", l->search, st) < 0)
        return -1;
    for (int i = 0; i < l->count; i++)
        if (!history_has(known, l->candidates[i].plan) &&
            trial_store(s->db, s->study, DB_TRIAL_PLAN, &l->candidates[i], &l->trials[i], l->search,
                        st) < 0)
            return -1;
    return trials_store(s->db, s->study, DB_TRIAL_FINAL, l->candidates, l->trials, l->count,
                        l->search, st);
}

static int measure_kernels(struct lineup *l, struct session *s, struct status *st)
{
    const struct candidate *plans[VALUES_MAX];
    int n = l->wants_kernels ? lineup_plans(l, plans) : 0;
    for (int i = 0; i < n; i++)
        if (kernels_measure(s, plans[i], l->search, &l->kernels, st) < 0)
            return -1;
    return 0;
}

/* ---- the command --------------------------------------------------------------------------------
 */

static int verdict(const struct options *o, const struct lineup *l)
{
    int code = EXIT_SUCCESS;
    for (int i = 0; i < l->count; i++)
        if (l->trials[i].status != TRIAL_OK)
            return EXIT_NO_RESULT;
    for (int i = 0; i < l->given && options_has(o, OPT(FAIL_ABOVE)); i++) {
        double ratio = l->trials[i].ms.median / l->earlier_ms[i];
        if (!isfinite(ratio)) {
            note(o, "%u: no earlier time is stored to compare with", l->values[i]);
        } else if (ratio > o->fail_above) {
            fprintf(stderr, "fuseplan bench: %u: %.3f ms is %.3f times the %.3f ms stored before\n",
                    l->values[i], l->trials[i].ms.median, ratio, l->earlier_ms[i]);
            code = EXIT_REGRESSION;
        }
    }
    return code;
}

static int trace(const struct options *o, const struct lineup *l, struct session *s,
                 struct status *st)
{
    const struct candidate *plans[VALUES_MAX];
    int n = lineup_plans(l, plans);
    return trace_write(s, plans, n, o->trace, st);
}

static int measure(const struct options *o, struct lineup *l, struct session *s, struct status *st)
{
    struct history known = {.count = 0};
    int rc = -1;
    if (session_open(o, o->seed, s, st) < 0 || study_open(s->bench, s->db, &s->study, st) < 0 ||
        prepare(l, s, &known, st) < 0 ||
        bench_compare(s->bench, l->candidates, l->count, &sampling_final, l->trials, st) < 0)
        goto out;
    if (store(l, s, &known, st) < 0 || measure_kernels(l, s, st) < 0 ||
        db_search_end(s->db, l->search, "done", st) < 0)
        goto out;
    session_note_disturbance(o, s);
    lineup_print(o, l, &s->workload);
    if (o->dump && l->trials[0].status == TRIAL_OK &&
        bench_dump(s->bench, &l->candidates[0], o->dump, st) < 0)
        goto out;
    if (o->trace && trace(o, l, s, st) < 0)
        goto out;
    rc = verdict(o, l);
out:
    history_release(&known);
    return rc;
}

static int run(const struct options *o, struct status *st)
{
    struct session s = {.bench = NULL};
    struct lineup *l = mem_alloc(1, sizeof(*l));
    int code = parse_values(o, l, st);
    if (code == 0)
        code = measure(o, l, &s, st);
    for (int i = 0; i < l->count; i++)
        trial_release(&l->trials[i]);
    kernels_release(&l->kernels);
    session_close(&s);
    free(l);
    return code;
}

const struct command cmd_bench = {
    .name = "bench",
    .operands = "VALUE...",
    .summary = "Build, verify and time plans side by side",
    .options = OPTS_COMMON | OPTS_WORKLOAD | OPT(INIT) | OPT(NO_BASELINE) | OPT(TRACE) | OPT(DUMP) |
               OPT(FAIL_ABOVE) | OPT(COMPILER) | OPT(ARCH) | OPT(JOBS) | OPT(DB),
    .about =
        "Every segment runs with the fastest schedule that the database knows.  Each plan is\n"
        "verified before it is timed; all are timed in turns, the unfused plan (43690) and\n"
        "41115 beside them.  A speed-up whose interval holds 1 is a tie.  Then each kernel of\n"
        "the plans given is timed alone.  Exits 3 where a plan gives no valid result, 4 where\n"
        "one given is slower than --fail-above allows.",
    .examples = "fuseplan bench 41115 -b 1 -s 128 -m causal\n"
                "fuseplan bench 41115 43690 36507 -b 2 -s 256 -m sliding --format csv\n"
                "fuseplan bench 41115 -b 1 -s 128 -m causal --trace 41115.json\n"
                "fuseplan bench 41115 -b 1 -s 64 -m strided --dump arrays\n"
                "fuseplan bench 41115 -b 1 -s 64 -m strided --fail-above 1.05",
    .run = run,
};
