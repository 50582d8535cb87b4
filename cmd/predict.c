#include "cmd/plans.h"

static const struct column columns[] = {
    {"value", "value", 0},
    {"predicted_ms", "predicted ms", DECIMALS_MS},
    {"high_performance", "high performance", 0},
    {"probability", "probability", 2},
};

struct asked {
    unsigned *values;   /* as given, owned */
    struct plan *plans; /* of the values, owned */
    int count;
};

static void add_values(struct asked *a, unsigned lo, unsigned hi)
{
    size_t room = (size_t)a->count + (hi - lo) + 1;
    a->values = mem_resize(a->values, room, sizeof(*a->values));
    a->plans = mem_resize(a->plans, room, sizeof(*a->plans));
    for (unsigned value = lo; value <= hi; value++, a->count++) {
        a->values[a->count] = value;
        a->plans[a->count] = plan_from_value(value);
    }
}

static int parse_values(const struct options *o, bool workload, struct asked *a, struct status *st)
{
    struct best_plan best = {.known = false};
    if (workload && session_best(o, SCOPE_STORED, &best, st) != 0)
        return -1;
    for (int i = 0; i < o->operand_count; i++) {
        const char *text = o->operands[i];
        bool is_best = strcmp(text, BEST_WORD) == 0;
        unsigned lo, hi;
        if (is_best && !workload)
            return status_set(st, STATUS_USAGE,
                              "'best' is the best plan of a workload, and none is given; add -b, "
                              "-s and -m");
        if (is_best)
            lo = hi = plan_value(best.plan);
        else if (plan_parse_range(text, &lo, &hi, st) != 0)
            return -1;
        add_values(a, lo, hi);
    }
    return 0;
}

/* ---- output ---------------------------------------------------------------------------------- */

struct prediction {
    unsigned value;
    struct plan plan;
    double ms, high; /* high: the probability of high performance */
};

static int by_time(const void *a, const void *b)
{
    const struct prediction *x = a, *y = b;
    return x->ms != y->ms ? (x->ms < y->ms ? -1 : 1) : (int)x->value - (int)y->value;
}

/* Leaves the `most` fastest plans, each once and by its canonical value; returns their number. */
static int keep_fastest(struct prediction *all, int count, int most)
{
    SCOPED bool *seen = mem_alloc(PLAN_KEYS, sizeof(*seen));
    int n = 0;
    for (int i = 0; i < count; i++) {
        unsigned key = plan_key(all[i].plan);
        if (seen[key])
            continue;
        seen[key] = true;
        all[n] = all[i];
        all[n++].value = plan_value(all[i].plan);
    }
    qsort(all, (size_t)n, sizeof(*all), by_time);
    return n < most ? n : most;
}

/* The lines of plain text have no header: time, blank, 1 or 0.  Lines of --top begin with the
 * value. */
static void print_plain(const struct options *o, const struct prediction *all, int count)
{
    for (int i = 0; i < count; i++) {
        if (options_has(o, OPT(TOP)))
            printf("%u ", all[i].value);
        printf("%.3f %d\n", all[i].ms, all[i].high >= 0.5);
    }
}

static void print(const struct options *o, const struct prediction *all, int count)
{
    struct output out;
    if (o->format == FORMAT_TABLE && !output_is_terminal(o->format)) {
        print_plain(o, all, count);
        return;
    }
    output_begin(&out, o->format, columns, ARRAY_LEN(columns));
    for (int i = 0; i < count; i++)
        output_row(&out, json_pack("{si so sb so}", "value", (int)all[i].value, "predicted_ms",
                                   json_number(all[i].ms), "high_performance", all[i].high >= 0.5,
                                   "probability", json_number(all[i].high)));
    output_end(&out);
}

static int predict(const struct options *o, const struct asked *a, struct model *model,
                   const struct segment_times *times, struct status *st)
{
    SCOPED double *ms = mem_alloc((size_t)a->count, sizeof(*ms));
    SCOPED double *high = mem_alloc((size_t)a->count, sizeof(*high));
    SCOPED struct prediction *all = mem_alloc((size_t)a->count, sizeof(*all));
    int n = a->count;
    if (model_predict(model, a->plans, n, times, ms, high, st) != 0)
        return -1;
    for (int i = 0; i < n; i++)
        all[i] = (struct prediction){a->values[i], a->plans[i], ms[i], high[i]};
    if (options_has(o, OPT(TOP)))
        n = keep_fastest(all, n, o->top);
    print(o, all, n);
    return 0;
}

static int refuse_few(const struct session *s, struct status *st)
{
    SCOPED_BUF text = BUF_INIT;
    workload_text(&s->workload, &text);
    return status_set(
        st, STATUS_NOT_FOUND,
        "there are too few plans of %s on %s in '%s' to learn from; 'fuseplan search' "
        "of this workload measures more",
        text.ptr, target_names[s->target.kind], db_path(s->db));
}

/* A workload's own model, with the segment times that it sees. */
static int train_workload(const struct options *o, struct session *s, struct model **model,
                          struct segment_times *times, struct status *st)
{
    const struct model_options options = {.seed = o->seed, .quantile = o->quantile};
    struct learned learned;
    struct status why = STATUS_INIT;
    if (session_open_study(o, DB_READ, SCOPE_STORED, s, st) != 0)
        return -1;
    struct build_target build = target_build(s->target, &s->workload);
    int result = study_learn(s->db, s->study, &build, &options, false, times, &learned, &why);
    *model = learned.model;
    if (why.code == STATUS_MODEL && learned.report.count < 2)
        return refuse_few(s, st);
    *st = why;
    return result;
}

/* That of --name. */
static int fetch(const struct options *o, struct session *s, struct model **model,
                 struct status *st)
{
    struct status missing = STATUS_INIT;
    SCOPED_BUF name = BUF_INIT;
    if (options_has(o, OPT(QUANTILE)))
        return status_set(st, STATUS_USAGE,
                          "--quantile is of a workload's model; that of a file has the one of "
                          "'fuseplan train'");
    if (db_open(o->db, DB_READ, &s->db, st) != 0)
        return -1;
    int result = model_fetch(s->db, o->name, model, &missing);
    buf_add_word(&name, o->name);
    if (missing.code == STATUS_NOT_FOUND)
        return status_set(st, STATUS_NOT_FOUND,
                          "there is no model '%s' in '%s'; 'fuseplan train --data FILE --name %s' "
                          "makes one",
                          o->name, db_path(s->db), name.ptr);
    *st = missing;
    return result;
}

static int run(const struct options *o, struct status *st)
{
    struct asked asked = {.values = NULL};
    SCOPED_BY(session_close) struct session s = {.study = 0}; /* of models of files */
    struct segment_times times;
    SCOPED_BY(model_free_at) struct model *model = NULL;
    bool workload;
    int result = -1;
    if (model_of_workload(o, &workload, st) == 0 && parse_values(o, workload, &asked, st) == 0 &&
        (workload ? train_workload(o, &s, &model, &times, st) : fetch(o, &s, &model, st)) == 0)
        result = predict(o, &asked, model, workload ? &times : NULL, st);
    free(asked.values);
    free(asked.plans);
    return result;
}

static void words_predict(struct buf *out)
{
    buf_adds(out, BEST_WORD " all");
}

const struct command cmd_predict = {
    .name = "predict",
    .operands = "VALUE...",
    .summary = "Predict the time of plans with a trained model",
    .options = OPTS_COMMON | OPTS_WORKLOAD | OPT(NAME) | OPT(QUANTILE) | OPT(TOP) | OPT(DB),
    .exits = EXITS_NO_RESULT,
    .about =
        "Prints one line for each value: predicted milliseconds, then 1 if high performance is\n"
        "expected, else 0.  A VALUE may be a range lo..hi, all or, with a workload, best.\n"
        "--top N prints the N plans of these with the lowest predicted times, each line with its\n"
        "value first.  With a workload, predicts by a model of the plans stored for it; without\n"
        "one, by the model of 'fuseplan train --data'.",
    .examples = "fuseplan predict 41115 43690 -b 1 -s 128 -m causal\n"
                "fuseplan predict 32768..49151 -b 1 -s 128 -m causal --format csv\n"
                "fuseplan predict all -b 1 -s 128 -m causal --top 10\n"
                "fuseplan train --data docs/examples/times.txt --name gpu\n"
                "fuseplan predict 0100010111011101 41115 --name gpu",
    .words = words_predict,
    .run = run,
};
