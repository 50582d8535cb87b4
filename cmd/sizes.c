#include "cmd/options_int.h"
#include "cmd/plans.h"
#include "cmd/search_int.h"

enum { RATIOS = 2 };

static struct {
    json_t *rows; /* null: there are none */
    unsigned baselines[RATIOS];
    int count;    /* of baselines, as those of the first row that has some */
    bool missing; /* a row has no plan */
} sizes;

static void add_row(int batch, int seq_len, int value, double us, const char *verdict,
                    json_t *ratios)
{
    if (sizes.rows == NULL)
        sizes.rows = json_array();
    sizes.missing = sizes.missing || value < 0;
    json_array_append_new(sizes.rows,
                          json_pack("{si si so so ss so}", "batch", batch, "seq_len", seq_len,
                                    "value", value >= 0 ? json_integer(value) : json_null(), "us",
                                    json_number(us), "verdict", verdict, "ratios", ratios));
}

void sizes_add(const struct workload *w, int value, double ms,
               const struct baseline_time *baselines, int count, const char *verdict)
{
    if (sizes.count == 0) {
        sizes.count = count < RATIOS ? count : RATIOS;
        for (int i = 0; i < sizes.count; i++)
            sizes.baselines[i] = plan_value(baselines[i].plan);
    }
    json_t *ratios = json_array();
    for (int k = 0; k < sizes.count; k++) { /* another search may have had others */
        int i = 0;
        while (i < count && plan_value(baselines[i].plan) != sizes.baselines[k])
            i++;
        json_array_append_new(ratios, json_number(i < count ? baselines[i].speedup.median : NAN));
    }
    add_row(w->batch, w->seq_len, value, 1e3 * ms / w->layers, verdict, ratios);
}

void sizes_add_unknown(const struct options *one)
{
    add_row(one->batch, one->seq_len, -1, NAN, "nothing known", json_array());
}

void sizes_end(const struct options *o)
{
    static const struct next_step next[] = {
        {"search", OPTS_PLANS, "   # measures what has no plan"},
        {"export best", OPTS_WORKLOAD | OPT(DB) | OPT(PRECISION),
         " -o encoder --build   # one C library of all sizes"}};
    enum format format = o->format;
    bool several = options_workloads(o) > 1;
    char titles[RATIOS][24];
    struct column columns[8] = {{"batch", "batch", 0},
                                {"seq_len", "seq-len", 0},
                                {"value", "plan", 0},
                                {"us", "us/layer", 1}};
    static const char *const keys[RATIOS] = {"ratios.0", "ratios.1"};
    int n = 4;
    if (sizes.rows != NULL && (format == FORMAT_MARKDOWN || (format == FORMAT_TABLE && several))) {
        for (int k = 0; k < sizes.count; k++) {
            snprintf(titles[k], sizeof(titles[k]), "x %s%u", plan_word(sizes.baselines[k]),
                     sizes.baselines[k]);
            columns[n++] = (struct column){keys[k], titles[k], 2};
        }
        columns[n++] = (struct column){"verdict", "verdict", 0};
        if (format == FORMAT_TABLE)
            putchar('\n');
        output_rows(format, columns, n, false, sizes.rows);
        if (several)
            next_print(o, sizes.missing ? next : next + 1, 1);
    }
    json_decref(sizes.rows);
    sizes.rows = NULL;
    sizes.count = 0;
    sizes.missing = false;
}
