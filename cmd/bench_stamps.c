/* bench --stamps: where the time of a plan's layer goes. */
#include "cmd/bench_int.h"

int stamps_check(const struct options *o, const struct session *s, struct status *st)
{
    if (!options_has(o, OPT(STAMPS)) || s->target.kind == TARGET_CUDA)
        return 0;
    return status_set(
        st, STATUS_USAGE,
        "--stamps reads the clocks of a GPU in its kernels, and the target is %s; give "
        "--target cuda where there is a GPU, or leave it out",
        target_names[s->target.kind]);
}

/* NaN stands for no time. */
static double plus(double sum, double us)
{
    return isnan(sum) ? us : isnan(us) ? sum : sum + us;
}

static double kernel_sum(const double us[STAMP_PHASES])
{
    double sum = NAN;
    for (int phase = 0; phase < STAMP_PHASES; phase++)
        sum = plus(sum, us[phase]);
    return sum;
}

/* The time of a phase in all kernels; NaN where none has it. */
static double phase_sum(const struct stamps *t, int phase)
{
    double sum = NAN;
    for (int i = 0; i < t->count; i++)
        sum = plus(sum, t->us[i][phase]);
    return sum;
}

static void set_phases(json_t *row, const double us[STAMP_PHASES])
{
    for (int phase = 0; phase < STAMP_PHASES; phase++) {
        char key[32];
        snprintf(key, sizeof(key), "%s_us", stamp_names[phase]);
        json_object_set_new(row, key, json_number(us[phase]));
    }
    json_object_set_new(row, "sum_us", json_number(kernel_sum(us)));
}

static json_t *kernel_json(const struct choice *c, const double us[STAMP_PHASES])
{
    json_t *row = json_pack("{s[ii] ss}", "ops", c->segment.first, c->segment.last,
                            "implementation", c->impl->name);
    set_phases(row, us);
    return row;
}

json_t *stamps_json(const struct stamps *t, const struct candidate *c, const struct workload *w)
{
    json_t *kernels = json_array();
    for (int i = 0; i < t->count && t->reason.code == STATUS_OK; i++)
        json_array_append_new(kernels, kernel_json(&c->choices[i], t->us[i]));
    return json_pack("{ss so so so}", "reason", t->reason.message, "plain_us_per_layer",
                     json_number(1e3 * t->plain_ms / w->layers), "stamped_us_per_layer",
                     json_number(1e3 * t->stamped_ms / w->layers), "kernels", kernels);
}

static const struct column columns[] = {
    {"range", "ops", 0},
    {"implementation", "by", 0},
    {"hand_over_us", "hand-over", 2},
    {"loads_us", "loads", 2},
    {"products_us", "products", 2},
    {"epilogue_us", "epilogue", 2},
    {"undivided_us", "undivided", 2},
    {"last_block_us", "last block", 2},
    {"sum_us", "sum", 2},
};

/* "of 16.4 us a layer: hand-overs 4.0, loads 2.5, ..." */
static void print_sentence(const double sums[STAMP_PHASES])
{
    static const char *const words[STAMP_PHASES] = {
        [STAMP_HAND_OVER] = "hand-overs", [STAMP_LOADS] = "loads",
        [STAMP_PRODUCTS] = "products",    [STAMP_EPILOGUE] = "epilogues",
        [STAMP_UNDIVIDED] = "undivided",  [STAMP_LAST_BLOCK] = "last thread blocks",
    };
    const char *before = ":";
    printf("\nof %.1f us a layer", kernel_sum(sums));
    for (int phase = 0; phase < STAMP_PHASES; phase++)
        if (!isnan(sums[phase])) {
            printf("%s %s %.1f", before, words[phase], sums[phase]);
            before = ",";
        }
    putchar('\n');
    if (!isnan(sums[STAMP_UNDIVIDED]))
        puts("undivided: kernels that do not tell loads, products and epilogues apart");
}

static void print_kernels(const struct candidate *c, const struct stamps *t)
{
    struct output out;
    double sums[STAMP_PHASES];
    output_begin(&out, FORMAT_TABLE, columns, ARRAY_LEN(columns));
    out.skip_empty = true;
    for (int i = 0; i < t->count; i++) {
        char range[12];
        json_t *row = kernel_json(&c->choices[i], t->us[i]);
        json_object_set_new(row, "range", json_string(segment_text(c->choices[i].segment, range)));
        output_row(&out, row);
    }
    for (int phase = 0; phase < STAMP_PHASES; phase++)
        sums[phase] = phase_sum(t, phase);
    json_t *row = json_pack("{ss}", "range", "sum");
    set_phases(row, sums);
    output_row(&out, row);
    output_end(&out);
    print_sentence(sums);
    for (int i = 0; i < t->count; i++) {
        char range[12];
        if (isnan(kernel_sum(t->us[i])))
            printf(
                "ops %s: a library's kernel leaves no stamps; its time is in the next hand-over\n",
                segment_text(c->choices[i].segment, range));
    }
}

void stamps_print(const struct stamps *t, const struct candidate *c, const struct workload *w)
{
    if (t->reason.code != STATUS_OK)
        return;
    printf(
        "\n%u with stamps: %.1f us a layer, %.2f times the %.1f without.  Microseconds from the\n"
        "end of a kernel to that of the next one:\n",
        plan_value(c->plan), 1e3 * t->stamped_ms / w->layers, t->stamped_ms / t->plain_ms,
        1e3 * t->plain_ms / w->layers);
    print_kernels(c, t);
}
