#include "search/tuner_int.h"

/* ---- what the database holds ----------------------------------------------------------------- */

static int history_row(void *ctx, const struct db_trial *row)
{
    struct history *h = ctx;
    struct plan p = plan_from_value((unsigned)row->value);
    if (!history_has(h, p))
        history_add(h, p, outcome_of_row(row));
    return 0;
}

int study_history(struct db *db, int64_t study, struct history *out, struct status *st)
{
    return db_trial_times(db, study, DB_TRIAL_PLAN, history_row, out, st);
}

int study_segments(struct db *db, int64_t study, const struct build_target *target,
                   struct segment_times *out, struct status *st)
{
    SCOPED_BY(segment_table_release) struct segment_table table;
    segment_table_init(&table, target);
    int result = segment_table_read(&table, db, study, st);
    *out = table.times;
    return result;
}

static int train_study(struct db *db, int64_t study, const struct model_options *options,
                       const struct segment_times *times, struct model **out, struct status *st)
{
    SCOPED_BY(history_release) struct history history = {.count = 0};
    if (study_history(db, study, &history, st) != 0)
        return -1;
    SCOPED_BY(model_data_release) struct model_data data = training_of(&history);
    return model_train(options, &data, times, out, st);
}

static int train_rows(const struct db_model *m, const struct model_options *options,
                      struct model **out, struct status *st)
{
    SCOPED_BY(model_data_release) struct model_data data = {.count = 0};
    struct status why = STATUS_INIT;
    if (model_data_parse(m->name, m->rows, strlen(m->rows), &data, &why) == 0 &&
        model_train(options, &data, NULL, out, &why) == 0)
        return 0;
    return status_set(st, STATUS_MODEL,
                      "the rows stored for model '%s' are damaged: %s; train it again", m->name,
                      why.message);
}

int model_fetch(struct db *db, int64_t study, const char *name, const struct segment_times *times,
                struct model **out, struct status *st)
{
    struct db_model m;
    SCOPED_BUF texts = BUF_INIT;
    *out = NULL;
    if (db_model_get(db, study, name, &texts, &m, st) != 0)
        return -1;
    const struct model_options options = {.seed = m.seed, .quantile = m.quantile};
    return study != 0 ? train_study(db, study, &options, times, out, st)
                      : train_rows(&m, &options, out, st);
}

/* ---- what it has taught ---------------------------------------------------------------------- */

/* Appends a figure and `end`; null for NaN, which JSON lacks. */
static void add_figure(struct buf *out, const char *key, double value, const char *end)
{
    buf_addf(out, "\"%s\": ", key);
    if (isfinite(value))
        buf_addf(out, "%.6g%s", value, end);
    else
        buf_addf(out, "null%s", end);
}

static void report_json(const struct model_report *r, struct buf *out)
{
    buf_addf(out, "{\"folds\": %d, \"count\": %d, ", r->folds, r->count);
    add_figure(out, "spearman", r->spearman, ", ");
    add_figure(out, "top1_regret", r->top1_regret, ", ");
    add_figure(out, "auc", r->auc, "}");
}

static int store_model(struct db *db, int64_t study, const char *name,
                       const struct model_options *options, const struct model_data *data,
                       const struct model_report *report, struct status *st)
{
    SCOPED_BUF rows = BUF_INIT, json = BUF_INIT;
    if (study == 0)
        model_data_text(data, &rows);
    report_json(report, &json);
    struct db_model row = {.name = name,
                           .seed = options->seed,
                           .quantile = options->quantile,
                           .rows = rows.ptr,
                           .report = json.ptr};
    return db_model_put(db, study, &row, st);
}

static int distinct_plans(const struct model_data *data)
{
    bool seen[PLAN_KEYS] = {false};
    int count = 0;
    for (int i = 0; i < data->count; i++) {
        unsigned key = plan_key(data->plans[i]);
        count += !seen[key];
        seen[key] = true;
    }
    return count;
}

int model_learn(struct db *db, int64_t study, const char *name, const struct model_options *options,
                const struct model_data *data, const struct segment_times *times,
                struct learned *out, struct status *st)
{
    *out = (struct learned){
        .report = {.count = distinct_plans(data), .spearman = NAN, .top1_regret = NAN, .auc = NAN}};
    if (model_train(options, data, times, &out->model, st) != 0 ||
        (out->report.count >= JUDGED_LEAST &&
         model_cross_validate(options, data, times, FOLDS, &out->report, st) != 0) ||
        store_model(db, study, name, options, data, &out->report, st) != 0) {
        learned_release(out);
        return -1;
    }
    return 0;
}

void learned_release(struct learned *l)
{
    model_free(l->model);
    l->model = NULL;
}

int study_learn(struct db *db, int64_t study, const struct build_target *target,
                const struct model_options *options, struct learned *out, struct status *st)
{
    SCOPED_BY(history_release) struct history history = {.count = 0};
    struct segment_times times;
    *out = (struct learned){.model = NULL};
    if (study_history(db, study, &history, st) != 0 ||
        study_segments(db, study, target, &times, st) != 0)
        return -1;
    SCOPED_BY(model_data_release) struct model_data data = training_of(&history);
    return model_learn(db, study, STUDY_MODEL, options, &data, &times, out, st);
}

/* For the trainings of all folds and the last one; measured on one core of a server. */
#define LEARN_S_PER_PLAN 1.6e-3

/* Of a time limit.  A search leaves training that takes longer to `fuseplan train`. */
#define LEARN_SHARE 0.05

/* Whether plans remain that no search measures, for which a model can say something. */
static bool leaves_plans(const struct tuner *t)
{
    return !is_exhaustive(t) &&
           history_count_in(&t->history, t->space, t->space_count) < t->space_count;
}

double learn_seconds(const struct tuner *t)
{
    double seconds = LEARN_S_PER_PLAN * t->history.count;
    return leaves_plans(t) && seconds <= LEARN_SHARE * (t->end - t->start) ? seconds : 0;
}
