#include "model/model_int.h"

struct row {
    unsigned value; /* canonical: the order of rows */
    struct plan plan;
    double ms;
};

static int by_value_then_ms(const void *a, const void *b)
{
    const struct row *x = a, *y = b;
    if (x->value != y->value)
        return x->value < y->value ? -1 : 1;
    return (x->ms > y->ms) - (x->ms < y->ms);
}

int data_distinct(const struct model_data *data, struct model_data *out, struct status *st)
{
    *out = (struct model_data){.count = 0};
    size_t count = data->count > 0 ? (size_t)data->count : 0;
    SCOPED struct row *rows = mem_alloc(count, sizeof(*rows));
    for (size_t i = 0; i < count; i++) {
        rows[i] = (struct row){plan_value(data->plans[i]), data->plans[i], data->ms[i]};
        if (!isfinite(rows[i].ms) || rows[i].ms <= 0) {
            return status_set(st, STATUS_MODEL,
                              "row %zu of the training data gives plan %u a time of %g ms; give a "
                              "positive, finite one",
                              i + 1, rows[i].value, rows[i].ms);
        }
    }
    qsort(rows, count, sizeof(*rows), by_value_then_ms);

    struct plan *plans = mem_alloc(count, sizeof(*plans));
    double *ms = mem_alloc(count, sizeof(*ms));
    *out = (struct model_data){.plans = plans, .ms = ms};
    for (size_t i = 0, end; i < count; i = end) {
        double sum = 0;
        for (end = i; end < count && rows[end].value == rows[i].value; end++)
            sum += rows[end].ms;
        plans[out->count] = rows[i].plan;
        ms[out->count++] = sum / (double)(end - i);
    }
    return 0;
}

void model_data_release(struct model_data *d)
{
    free((struct plan *)d->plans);
    free((double *)d->ms);
    *d = (struct model_data){.count = 0};
}
