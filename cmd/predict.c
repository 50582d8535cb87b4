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
    struct plan *plans; /* that they name, owned */
    int count;
};

static int parse_values(const struct options *o, struct asked *a, struct status *st)
{
    if (o->operand_count == 0)
        return status_set(st, STATUS_USAGE,
                          "no value; give one from 0 to 65535, 16 binary digits "
                          "or a range lo..hi");
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

/* Text as the first users of these models know it: time, blank, 1 or 0. */
static void print(const struct options *o, const struct asked *a, const double *ms,
                  const double *high)
{
    struct output out;
    if (o->format != FORMAT_TABLE)
        output_begin(&out, o->format, columns, ARRAY_LEN(columns));
    for (int i = 0; i < a->count; i++)
        if (o->format == FORMAT_TABLE)
            printf("%.3f %d\n", ms[i], high[i] >= 0.5);
        else
            output_row(&out, json_pack("{si so si so}", "value", (int)a->values[i], "predicted_ms",
                                       json_number(ms[i]), "high_performance", high[i] >= 0.5,
                                       "probability", json_number(high[i])));
    if (o->format != FORMAT_TABLE)
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

static int fetch_model(struct db *db, int64_t study, const char *name, struct model **model,
                       struct status *st)
{
    if (model_fetch(db, study, name, model, st) == 0)
        return 0;
    return st->code == STATUS_NOT_FOUND
               ? status_prefix(st, "no model to ask; 'fuseplan train' makes one")
               : -1;
}

static int fetch_of_file(const struct options *o, struct db **db, struct model **model,
                         struct status *st)
{
    if (db_open(o->db, DB_READ, db, st) != 0)
        return -1;
    return fetch_model(*db, 0, o->name, model, st);
}

/* With the times of segments that it looks at. */
static int fetch_of_workload(const struct options *o, struct db **db, struct model **model,
                             struct segment_times *times, struct status *st)
{
    struct target_name target;
    struct build_target build;
    struct workload w;
    int64_t study;
    int result = -1;
    if (workload_from_options(o, false, &target, &w, st) == 0 &&
        db_open(o->db, DB_READ, db, st) == 0 &&
        study_of_workload(o, *db, target, &w, &study, st) == 0 &&
        fetch_model(*db, study, STUDY_MODEL, model, st) == 0) {
        build = target_build(target, &w);
        result = study_segments(*db, study, &build, times, st);
    }
    workload_release(&w);
    return result;
}

static int run(const struct options *o, struct status *st)
{
    struct asked asked = {.values = NULL};
    struct segment_times times;
    struct model *model = NULL;
    struct db *db = NULL;
    bool workload;
    int result = -1;
    if (parse_values(o, &asked, st) == 0 && model_of_workload(o, &workload, st) == 0 &&
        (workload ? fetch_of_workload(o, &db, &model, &times, st)
                  : fetch_of_file(o, &db, &model, st)) == 0)
        result = predict(o, &asked, model, workload ? &times : NULL, st);
    model_free(model);
    db_close(db);
    free(asked.values);
    free(asked.plans);
    return result;
}

const struct command cmd_predict = {
    .name = "predict",
    .operands = "VALUE...",
    .summary = "Predict the time of plans with a trained model",
    .options = OPTS_COMMON | OPTS_WORKLOAD | OPT(NAME) | OPT(DB),
    .about = "For each value or 16 binary digits one line: milliseconds, then 1 where high\n"
             "performance is expected, else 0.  With a workload its own model is asked, which\n"
             "every search trains; without one, that of 'fuseplan train --data'.",
    .examples = "fuseplan predict 0100010111011101\n"
                "fuseplan predict 41115 43690 --name gpu\n"
                "fuseplan predict 32768..49151 -b 1 -s 128 -m causal --format csv",
    .run = run,
};
