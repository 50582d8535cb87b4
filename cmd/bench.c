#include "cmd/cmd.h"

#include <math.h>
#include <stdlib.h>

enum { VALUES_MAX = 64 }; /* timed side by side */

/* What is timed: plans given, then the unfused one unless it is among them or not wanted. */
struct lineup {
    int count, unfused; /* index of the unfused plan; -1: not there */
    unsigned values[VALUES_MAX + 1];
    double earlier_ms[VALUES_MAX + 1]; /* stored before, NaN where nothing is */
    struct candidate candidates[VALUES_MAX + 1];
    struct trial trials[VALUES_MAX + 1];
};

static int find_value(const struct lineup *l, unsigned value)
{
    for (int i = 0; i < l->count; i++)
        if (l->values[i] == value)
            return i;
    return -1;
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
        if (find_value(l, canonical) >= 0)
            continue;
        if (l->count == VALUES_MAX)
            return status_set(st, STATUS_USAGE, "more than %d plans; time fewer side by side",
                              VALUES_MAX);
        l->values[l->count++] = canonical;
    }
    if (o->dump && check_dump(l, o->dump, st) < 0)
        return -1;
    if (!options_has(o, OPT(NO_BASELINE)) && find_value(l, VALUE_UNFUSED) < 0)
        l->values[l->count++] = VALUE_UNFUSED;
    l->unfused = find_value(l, VALUE_UNFUSED);
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
    return db_trials(s->db, s->study, DB_TRIAL_FINAL, earlier_row, l, st);
}

/* A plan's first result counts as a trial of a search too; times side by side are finals. */
static int store(struct lineup *l, struct session *s, const struct history *known,
                 struct status *st)
{
    char id[HASH_TEXT_SIZE];
    if (db_search_start(s->db, s->study, "bench", "{}", id, st) < 0)
        return -1;
    for (int i = 0; i < l->count; i++)
        if (!history_has(known, l->values[i]) &&
            trial_store(s->db, s->study, DB_TRIAL_PLAN, &l->candidates[i], &l->trials[i], id, st) <
                0)
            return -1;
    if (trials_store(s->db, s->study, DB_TRIAL_FINAL, l->candidates, l->trials, l->count, id, st) <
        0)
        return -1;
    return db_search_end(s->db, id, "done", st);
}

/* ---- what comes out -------------------------------------------------------------------------- */

static const struct column columns[] = {
    {"value", "value", 0},
    {"fused", "fused ops", 0},
    {"median_ms", "ms", 3},
    {"ci_low_ms", "low", 3},
    {"ci_high_ms", "high", 3},
    {"us_per_layer", "us/layer", 1},
    {"speedup_over_unfused", "speed-up", 3},
    {"speedup_low", "low", 3},
    {"speedup_high", "high", 3},
    {"tie", "tie", 0},
    {"error", NULL, 0},
    {"status", "status", 0},
    {"reason", NULL, 0},
    {"earlier_ms", NULL, 0},
    {"samples", NULL, 0},
};

/* From pairs: sample k of both was taken in round k. */
static struct interval speedup(const struct trial *unfused, const struct trial *t)
{
    struct interval none = {NAN, NAN, NAN};
    int n = t->sample_count < unfused->sample_count ? t->sample_count : unfused->sample_count;
    if (n == 0 || t->status != TRIAL_OK || unfused->status != TRIAL_OK)
        return none;
    double *ratios = mem_alloc((size_t)n, sizeof(*ratios));
    for (int k = 0; k < n; k++)
        ratios[k] = unfused->samples_ms[k] / t->samples_ms[k];
    struct interval out = stats_median(ratios, (size_t)n);
    free(ratios);
    return out;
}

static json_t *row_of(const struct lineup *l, int i, const struct workload *w)
{
    static const char *const statuses[] = {"ok", "censored", "failed"};
    const struct trial *t = &l->trials[i];
    bool ok = t->status == TRIAL_OK, rival = l->unfused >= 0 && l->unfused != i;
    struct plan p = plan_from_value(l->values[i]);
    struct interval ms = {NAN, NAN, NAN}, ratio = ms;
    if (ok)
        ms = t->ms;
    if (rival)
        ratio = speedup(&l->trials[l->unfused], t);
    struct buf fused;
    buf_init(&fused);
    plan_fused_text(p, &fused);
    json_t *row = json_pack(
        "{si ss so sb so so so so so so so so so ss ss so si}", "value", (int)l->values[i], "fused",
        fused.ptr, "segments", plan_segments_json(p), "handwritten",
        p.handwritten && plan_has_attention_segment(p), "median_ms", json_number(ms.median),
        "ci_low_ms", json_number(ms.low), "ci_high_ms", json_number(ms.high), "us_per_layer",
        json_number(1e3 * ms.median / w->layers), "speedup_over_unfused", json_number(ratio.median),
        "speedup_low", json_number(ratio.low), "speedup_high", json_number(ratio.high), "tie",
        isfinite(ratio.low) ? json_boolean(ratio.low <= 1 && 1 <= ratio.high) : json_null(),
        "error", json_number(ok ? t->error : NAN), "status", statuses[t->status], "reason",
        ok ? "" : t->reason.message, "earlier_ms", json_number(l->earlier_ms[i]), "samples",
        t->sample_count);
    buf_release(&fused);
    return row;
}

static void print(const struct options *o, const struct lineup *l, const struct workload *w)
{
    struct output out;
    output_begin(&out, o->format, columns, ARRAY_LEN(columns));
    for (int i = 0; i < l->count; i++)
        output_row(&out, row_of(l, i, w));
    output_end(&out);
    for (int i = 0; i < l->count; i++)
        if (l->trials[i].status != TRIAL_OK)
            fprintf(stderr, "fuseplan bench: %u: %s\n", l->values[i], l->trials[i].reason.message);
}

static int verdict(const struct options *o, const struct lineup *l)
{
    int code = EXIT_SUCCESS;
    for (int i = 0; i < l->count; i++) {
        double ratio = l->trials[i].ms.median / l->earlier_ms[i];
        if (l->trials[i].status != TRIAL_OK)
            return EXIT_NO_RESULT;
        if (!options_has(o, OPT(FAIL_ABOVE)))
            continue;
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

static int measure(const struct options *o, struct lineup *l, struct session *s, struct status *st)
{
    struct history known = {.count = 0};
    int rc = -1;
    if (session_open(o, o->seed, s, st) < 0 || prepare(l, s, &known, st) < 0 ||
        bench_compare(s->bench, l->candidates, l->count, &sampling_final, l->trials, st) < 0)
        goto out;
    if (store(l, s, &known, st) < 0)
        goto out;
    print(o, l, &s->workload);
    if (o->dump && l->trials[0].status == TRIAL_OK &&
        bench_dump(s->bench, &l->candidates[0], o->dump, st) < 0)
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
    session_close(&s);
    free(l);
    return code;
}

const struct command cmd_bench = {
    .name = "bench",
    .operands = "VALUE...",
    .summary = "Build, verify and time plans side by side",
    .options = OPTS_COMMON | OPTS_WORKLOAD | OPT(INIT) | OPT(NO_BASELINE) | OPT(DUMP) |
               OPT(FAIL_ABOVE) | OPT(COMPILER) | OPT(JOBS) | OPT(DB),
    .about = "Every segment runs with the fastest schedule that the database knows.  Each plan is\n"
             "verified before it is timed; all are timed in turns, the unfused plan beside them.\n"
             "A speed-up whose interval holds 1 is a tie.  Exits 3 where a plan gives no valid\n"
             "result, 4 where one is slower than --fail-above allows.",
    .examples = "fuseplan bench 41115 -b 1 -s 128 -m causal\n"
                "fuseplan bench 41115 43690 36507 -b 2 -s 256 -m sliding --format csv\n"
                "fuseplan bench 41115 -b 1 -s 64 -m strided --dump arrays\n"
                "fuseplan bench 41115 -b 1 -s 64 -m strided --fail-above 1.05",
    .run = run,
};
