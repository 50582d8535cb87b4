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

/* ---- models of files ------------------------------------------------------------------------- */

static int train_rows(const struct db_model *m, struct model **out, struct status *st)
{
    SCOPED_BY(model_data_release) struct model_data data = {.count = 0};
    const struct model_options options = {.seed = m->seed, .quantile = m->quantile};
    struct status why = STATUS_INIT;
    if (model_data_parse(m->name, m->rows, strlen(m->rows), &data, &why) == 0 &&
        model_train(&options, &data, NULL, out, &why) == 0)
        return 0;
    return status_set(st, STATUS_MODEL,
                      "the rows stored for model '%s' are damaged: %s; train it again", m->name,
                      why.message);
}

int model_fetch(struct db *db, const char *name, struct model **out, struct status *st)
{
    struct db_model m;
    SCOPED_BUF text = BUF_INIT;
    *out = NULL;
    return db_model_get(db, name, &text, &m, st) == 0 ? train_rows(&m, out, st) : -1;
}

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

static int store_model(struct db *db, const char *name, const struct model_options *options,
                       const struct model_data *data, const struct model_report *report,
                       struct status *st)
{
    SCOPED_BUF rows = BUF_INIT, json = BUF_INIT;
    model_data_text(data, &rows);
    report_json(report, &json);
    struct db_model row = {
        .name = name, .seed = options->seed, .quantile = options->quantile, .rows = rows.ptr};
    return db_model_put(db, &row, json.ptr, st);
}

/* ---- training -------------------------------------------------------------------------------- */

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

static int learn(const struct model_options *options, const struct model_data *data,
                 const struct segment_times *times, bool judge, struct learned *out,
                 struct status *st)
{
    *out = (struct learned){
        .report = {.count = distinct_plans(data), .spearman = NAN, .top1_regret = NAN, .auc = NAN}};
    if (model_train(options, data, times, &out->model, st) != 0)
        return -1;
    return judge && out->report.count >= JUDGED_LEAST
               ? model_cross_validate(options, data, times, FOLDS, &out->report, st)
               : 0;
}

int model_learn(struct db *db, const char *name, const struct model_options *options,
                const struct model_data *data, struct learned *out, struct status *st)
{
    return learn(options, data, NULL, true, out, st) == 0
               ? store_model(db, name, options, data, &out->report, st)
               : -1;
}

int study_learn(struct db *db, int64_t study, const struct build_target *target,
                const struct model_options *options, bool judge, struct segment_times *times,
                struct learned *out, struct status *st)
{
    SCOPED_BY(history_release) struct history history = {.count = 0};
    *out = (struct learned){.model = NULL};
    if (study_history(db, study, &history, st) != 0 ||
        study_segments(db, study, target, times, st) != 0)
        return -1;
    SCOPED_BY(model_data_release) struct model_data data = training_of(&history);
    return learn(options, &data, times, judge, out, st);
}

void learned_release(struct learned *l)
{
    model_free(l->model);
    l->model = NULL;
}
