#include "cmd/plans.h"
#include "cmd/search_int.h"

#include <math.h>

enum { RATIOS = 2 };

static struct {
    json_t *rows; /* null: there are none */
    unsigned baselines[RATIOS];
    int count; /* of baselines, as those of the first row */
} sizes;

void sizes_add(const struct workload *w, int value, double ms,
               const struct baseline_time *baselines, int count, const char *verdict)
{
    if (sizes.rows == NULL) {
        sizes.rows = json_array();
        sizes.count = count < RATIOS ? count : RATIOS;
        for (int i = 0; i < sizes.count; i++)
            sizes.baselines[i] = plan_value(baselines[i].plan);
    }
    json_t *ratios = json_array();
    for (int i = 0; i < sizes.count && i < count; i++)
        json_array_append_new(ratios, json_number(baselines[i].speedup.median));
    json_array_append_new(sizes.rows,
                          json_pack("{si si so so ss so}", "batch", w->batch, "seq_len", w->seq_len,
                                    "value", value >= 0 ? json_integer(value) : json_null(), "us",
                                    json_number(1e3 * ms / w->layers), "verdict", verdict, "ratios",
                                    ratios));
}

void sizes_end(const struct options *o)
{
    static const struct next_step next = {"export best", OPTS_WORKLOAD | OPT(DB),
                                          " -o encoder --build   # one C library of all sizes"};
    enum format format = o->format;
    bool several = o->batches.count * o->seq_lens.count > 1;
    char titles[RATIOS][24];
    struct column columns[8] = {{"batch", "batch", 0},
                                {"seq_len", "seq-len", 0},
                                {"value", "plan", 0},
                                {"us", "us/layer", 1}};
    static const char *const keys[RATIOS] = {"ratios.0", "ratios.1"};
    int n = 4;
    struct output out;
    size_t i;
    json_t *row;
    if (sizes.rows != NULL && (format == FORMAT_MARKDOWN || (format == FORMAT_TABLE && several))) {
        for (int k = 0; k < sizes.count; k++) {
            snprintf(titles[k], sizeof(titles[k]), "x %s%u",
                     sizes.baselines[k] == VALUE_UNFUSED ? "unfused " : "", sizes.baselines[k]);
            columns[n++] = (struct column){keys[k], titles[k], 2};
        }
        columns[n++] = (struct column){"verdict", "verdict", 0};
        if (format == FORMAT_TABLE)
            putchar('\n');
        output_begin(&out, format, columns, n);
        json_array_foreach(sizes.rows, i, row) output_row(&out, json_incref(row));
        output_end(&out);
        if (several)
            next_print(o, &next, 1);
    }
    json_decref(sizes.rows);
    sizes.rows = NULL;
}
