#include "search/tuner_int.h"

#include <math.h>
#include <string.h>

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
    struct segment_table table;
    segment_table_init(&table, target);
    int result = segment_table_read(&table, db, study, st);
    *out = table.times;
    segment_table_release(&table);
    return result;
}

struct loading {
    struct model **out;
    struct status *st;
    int result;
    uint64_t seed;
    double quantile;
};

static int load_row(void *ctx, const struct db_model *m)
{
    struct loading *l = ctx;
    l->seed = m->seed;
    l->quantile = m->quantile;
    l->result = model_load(m->bytes, m->len, l->out, l->st);
    return 0;
}

int model_fetch(struct db *db, int64_t study, const char *name, struct model **out,
                struct status *st)
{
    *out = NULL;
    struct loading l = {.out = out, .st = st};
    if (db_model_get(db, study, name, MODEL_KIND, load_row, &l, st) != 0)
        return -1;
    return l.result;
}

#define USUAL_QUANTILE 0.1

/* Trains anew what is stored, which cannot be used; stores nothing. */
static int train_anew(struct db *db, int64_t study, const struct loading *l,
                      const struct segment_times *times, struct status *st)
{
    struct history history = {.count = 0};
    struct model_options options = {
        .features = FEATURES_PLAN, .seed = l->seed, .quantile = l->quantile};
    if (!(options.quantile > 0 && options.quantile < 1))
        options.quantile = USUAL_QUANTILE;
    int result = study_history(db, study, &history, st);
    if (result == 0) {
        struct model_data data = training_of(&history);
        result = model_train(&options, &data, times, l->out, st);
        model_data_release(&data);
    }
    history_release(&history);
    return result;
}

int study_model(struct db *db, int64_t study, const struct segment_times *times, struct model **out,
                struct status *bad, struct status *st)
{
    *out = NULL;
    struct loading l = {.out = out, .st = bad};
    if (db_model_get(db, study, STUDY_MODEL, MODEL_KIND, load_row, &l, st) != 0)
        return -1;
    return l.result == 0 ? 0 : train_anew(db, study, &l, times, st);
}

/* ---- what it has taught ---------------------------------------------------------------------- */

static void data_hash(const struct model_data *data, char out[HASH_TEXT_SIZE])
{
    struct buf text;
    buf_init(&text);
    for (int i = 0; i < data->count; i++)
        buf_addf(&text, "%u %a\n", plan_value(data->plans[i]), data->ms[i]);
    hash_text(text.ptr, text.len, out);
    buf_release(&text);
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
    add_figure(out, "auc", r->auc, ", ");
    add_figure(out, "recall_best", r->recall_best, "}");
}

static int store_model(struct db *db, int64_t study, const char *name,
                       const struct model_options *options, const struct model_data *data,
                       const struct learned *learned, struct status *st)
{
    struct buf bytes, json;
    buf_init(&bytes);
    buf_init(&json);
    char hash[HASH_TEXT_SIZE];
    data_hash(data, hash);
    report_json(&learned->report, &json);
    int result = model_save(learned->model, &bytes, st);
    struct db_model row = {.name = name,
                           .kind = MODEL_KIND,
                           .features_version = FEATURES_VERSION,
                           .data_hash = hash,
                           .seed = options->seed,
                           .quantile = options->quantile,
                           .threshold_ms = model_threshold_ms(learned->model),
                           .bytes = bytes.ptr,
                           .len = bytes.len,
                           .report = json.ptr};
    if (result == 0)
        result = db_model_put(db, study, &row, st);
    buf_release(&bytes);
    buf_release(&json);
    return result;
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
    *out = (struct learned){.report = {.count = distinct_plans(data),
                                       .spearman = NAN,
                                       .top1_regret = NAN,
                                       .auc = NAN,
                                       .recall_best = NAN}};
    if (model_train(options, data, times, &out->model, st) != 0 ||
        (out->report.count >= JUDGED_LEAST &&
         model_cross_validate(options, data, times, FOLDS, &out->report, st) != 0) ||
        store_model(db, study, name, options, data, out, st) != 0) {
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
    struct history history = {.count = 0};
    struct segment_times times;
    *out = (struct learned){.model = NULL};
    int result = -1;
    if (study_history(db, study, &history, st) == 0 &&
        study_segments(db, study, target, &times, st) == 0) {
        struct model_data data = training_of(&history);
        result = model_learn(db, study, STUDY_MODEL, options, &data, &times, out, st);
        model_data_release(&data);
    }
    history_release(&history);
    return result;
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
