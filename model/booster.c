#include "model/model_int.h"

#include <xgboost/c_api.h>

static void drop_message(const char *message)
{
    (void)message;
}

/* XGBoost keeps both per thread. */
static void keep_quiet(void)
{
    XGBRegisterLogCallback(drop_message);
    XGBSetGlobalConfig("{\"verbosity\": 0}");
}

/* Puts the first line of XGBoost's last error into st, without the "[hh:mm:ss] " in front. */
static int refuse(const char *what, struct status *st)
{
    const char *text = XGBGetLastError(), *clock_end = strstr(text, "] ");
    if (text[0] == '[' && clock_end != NULL)
        text = clock_end + 2;
    return status_set(st, STATUS_MODEL, "xgboost cannot %s: %.*s", what, (int)strcspn(text, "\n"),
                      text);
}

static int set_params(BoosterHandle handle, const struct booster_param *params, uint64_t seed)
{
    char seed_text[24];
    snprintf(seed_text, sizeof(seed_text), "%u", (unsigned)(splitmix64(seed) >> 33));
    for (const struct booster_param *p = params; p->name != NULL; p++)
        if (XGBoosterSetParam(handle, p->name, p->value) != 0)
            return -1;
    return XGBoosterSetParam(handle, "seed", seed_text) != 0 ||
                   XGBoosterSetParam(handle, "nthread", "1") != 0
               ? -1
               : 0;
}

/* What XGBoost failed to do; null: it trained. */
static const char *train(const struct booster_task *task, DMatrixHandle *rows,
                         BoosterHandle *handle)
{
    bst_ulong count = (bst_ulong)task->x.rows;
    if (XGDMatrixCreateFromMat_omp(task->x.values, count, (bst_ulong)task->x.columns, (float)NAN,
                                   rows, 1) != 0 ||
        XGDMatrixSetFloatInfo(*rows, "label", task->target, count) != 0 ||
        (task->margin != NULL &&
         XGDMatrixSetFloatInfo(*rows, "base_margin", task->margin, count) != 0))
        return "take the training data";
    if (XGBoosterCreate(rows, 1, handle) != 0)
        return "start";
    if (set_params(*handle, task->params, task->seed) != 0)
        return "set a parameter";
    for (int round = 0; round < task->rounds; round++)
        if (XGBoosterUpdateOneIter(*handle, round, *rows) != 0)
            return "train";
    return NULL;
}

int booster_train(const struct booster_task *task, struct booster **out, struct status *st)
{
    DMatrixHandle rows = NULL;
    BoosterHandle handle = NULL;
    keep_quiet();
    const char *failed = train(task, &rows, &handle);
    if (failed != NULL) {
        refuse(failed, st);
        booster_free(handle);
        handle = NULL;
    }
    if (rows != NULL)
        XGDMatrixFree(rows);
    *out = handle;
    return failed == NULL ? 0 : -1;
}

void booster_free(struct booster *b)
{
    if (b != NULL)
        XGBoosterFree(b);
}

int booster_predict(struct booster *b, struct matrix x, float *out, struct status *st)
{
    char array[160];
    snprintf(array, sizeof(array),
             "{\"data\": [%zu, true], \"shape\": [%d, %d], \"typestr\": \"<f4\", \"version\": 3}",
             (size_t)(uintptr_t)x.values, x.rows, x.columns);
    const bst_ulong *shape;
    const float *values;
    bst_ulong dimensions;
    keep_quiet();
    if (XGBoosterPredictFromDense(b, array,
                                  "{\"type\": 1, \"missing\": NaN, \"training\": false, "
                                  "\"iteration_begin\": 0, \"iteration_end\": 0, "
                                  "\"strict_shape\": false, \"cache_id\": 0}",
                                  NULL, &shape, &dimensions, &values) != 0)
        return refuse("predict", st);
    memcpy(out, values, (size_t)x.rows * sizeof(*out));
    return 0;
}
