#include "cmd/cmd.h"

#include <stdlib.h>

static const struct column columns[] = {
    {"value", NULL, 0},
    {"predicted_ms", NULL, 0},
    {"high_performance", NULL, 0},
    {"probability", NULL, 0},
};

struct asked {
    unsigned *values;   /* as given, owned */
    struct plan *plans; /* of the values, owned */
    int count;
};

static int parse_values(const struct options *o, struct asked *a, struct status *st)
{
    for (int i = 0; i < o->operand_count; i++) {
        unsigned lo, hi;
        if (plan_parse_range(o->operands[i], &lo, &hi, st) != 0)
            return -1;
        size_t room = (size_t)a->count + (hi - lo) + 1;
        a->values = mem_resize(a->values, room, sizeof(*a->values));
        a->plans = mem_resize(a->plans, room, sizeof(*a->plans));
        for (unsigned value = lo; value <= hi; value++, a->count++) {
            a->values[a->count] = value;
            a->plans[a->count] = plan_from_value(value);
        }
    }
    return 0;
}

/* The text form has no header: time, blank, 1 or 0. */
static void print(const struct options *o, const struct asked *a, const double *ms,
                  const double *high)
{
    struct output out;
    output_begin(&out, o->format, columns, ARRAY_LEN(columns));
    for (int i = 0; i < a->count; i++)
        if (o->format == FORMAT_TABLE)
            printf("%.3f %d\n", ms[i], high[i] >= 0.5);
        else
            output_row(&out, json_pack("{si so si so}", "value", (int)a->values[i], "predicted_ms",
                                       json_number(ms[i]), "high_performance", high[i] >= 0.5,
                                       "probability", json_number(high[i])));
    output_end(&out);
}

static int predict(const struct options *o, const struct asked *a, struct model *model,
                   const struct segment_times *times, struct status *st)
{
    double *ms = mem_alloc((size_t)a->count, sizeof(*ms));
    double *high = mem_alloc((size_t)a->count, sizeof(*high));
    int result = model_predict(model, a->plans, a->count, times, ms, high, st);
    if (result == 0)
        print(o, a, ms, high);
    free(ms);
    free(high);
    return result;
}

/* A workload's own model, with the segment times that it sees; else that of --name. */
static int fetch(const struct options *o, bool workload, struct session *s, struct model **model,
                 struct segment_times *times, struct status *st)
{
    if ((workload ? session_open_study(o, DB_READ, s, st) : db_open(o->db, DB_READ, &s->db, st)) !=
        0)
        return -1;
    if (model_fetch(s->db, s->study, workload ? STUDY_MODEL : o->name, model, st) != 0)
        return st->code == STATUS_NOT_FOUND
                   ? status_prefix(st, "no model to ask; 'fuseplan train' makes one")
                   : -1;
    if (!workload)
        return 0;
    struct build_target build = target_build(s->target, &s->workload);
    return study_segments(s->db, s->study, &build, times, st);
}

static int run(const struct options *o, struct status *st)
{
    struct asked asked = {.values = NULL};
    struct session s = {.study = 0}; /* models of files belong to study 0 */
    struct segment_times times;
    struct model *model = NULL;
    bool workload;
    int result = -1;
    if (parse_values(o, &asked, st) == 0 && model_of_workload(o, &workload, st) == 0 &&
        fetch(o, workload, &s, &model, &times, st) == 0)
        result = predict(o, &asked, model, workload ? &times : NULL, st);
    model_free(model);
    session_close(&s);
    free(asked.values);
    free(asked.plans);
    return result;
}

const struct command cmd_predict = {
    .name = "predict",
    .operands = "VALUE...",
    .summary = "Predict the time of plans with a trained model",
    .options = OPTS_COMMON | OPTS_WORKLOAD | OPT(NAME) | OPT(DB),
    .about =
        "Prints one line for each value: predicted milliseconds, then 1 if high performance is\n"
        "expected, else 0.  A VALUE may be a range lo..hi.  With a workload, predicts by the\n"
        "model that its searches train; without one, by the model of 'fuseplan train --data'.",
    .examples = "fuseplan predict 0100010111011101\n"
                "fuseplan predict 41115 43690 --name gpu\n"
                "fuseplan predict 32768..49151 -b 1 -s 128 -m causal --format csv",
    .run = run,
};
