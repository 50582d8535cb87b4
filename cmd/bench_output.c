#include "cmd/bench_int.h"
#include "cmd/plans.h"

int comparison_find(const struct comparison *c, struct plan p, bool padded, unsigned precision)
{
    for (int i = 0; i < c->count; i++)
        if (plan_equal(c->plans[i], p) && c->padded[i] == padded && c->precision[i] == precision)
            return i;
    return -1;
}

bool comparison_ran(const struct comparison *c, int i)
{
    return i < c->given && c->trials[i].status == TRIAL_OK;
}

int comparison_plans(const struct comparison *c, const struct candidate *out[VALUES_MAX])
{
    int n = 0;
    for (int i = 0; i < c->given; i++)
        if (comparison_ran(c, i))
            out[n++] = &c->candidates[i];
    return n;
}

static const struct column columns[] = {
    {"value", "value", 0},
    {"packed", "packed", 0},
    {"precision", "precision", 0},
    {"fused", "fused ops", 0},
    {"median_ms", "ms", DECIMALS_MS},
    {"ci_low_ms", "low", DECIMALS_MS},
    {"ci_high_ms", "high", DECIMALS_MS},
    {"us_per_layer", "us/layer", 1},
    {"error", NULL, 0},
    {"status", "status", 0},
    {"reason", NULL, 0},
    {"earlier_ms", NULL, 0},
    {"samples", NULL, 0},
    {"unstable", NULL, 0},
    {"earlier_low_ms", NULL, 0},
    {"earlier_high_ms", NULL, 0},
    {"earlier_utc", NULL, 0},
};

void comparison_unstable(const struct comparison *c, int i, char out[UNSTABLE_SIZE])
{
    SCOPED_BUF text = BUF_INIT;
    const struct trial *t = &c->trials[i];
    unstable_text(t, trial_fastest(c->trials, c->count, t), c->earlier[i].in_search, &text);
    snprintf(out, UNSTABLE_SIZE, "%s", text.len > 0 ? text.ptr : "");
}

int comparison_beside(const struct comparison *c, int i, struct baseline_time out[BASELINES_MAX])
{
    for (int b = 0; b < c->baselines.count; b++) {
        struct plan p = c->baselines.plans[b];
        int at = comparison_find(c, p, false, 0);
        out[b] = baseline_beside(p, &c->trials[at], &c->trials[i], c->compared_at);
        comparison_unstable(c, at, out[b].unstable);
    }
    return c->baselines.count;
}

/* Null where no plan given has a GEMM in e4m3. */
static json_t *precision_json(const struct comparison *c, int i, const struct workload *w)
{
    SCOPED_BUF text = BUF_INIT;
    precision_text(c->precision[i], dtypes[w->dtype].name, &text);
    return c->precision[0] != 0 ? json_string(text.ptr) : json_null();
}

/* Null if no stamps are asked for. */
static json_t *stamps_of(const struct comparison *c, int i, const struct workload *w)
{
    if (c->stamps == NULL)
        return NULL;
    return comparison_ran(c, i) ? stamps_json(&c->stamps[i], &c->candidates[i], w) : json_null();
}

static json_t *row_of(const struct comparison *c, int i, const struct workload *w)
{
    const struct trial *t = &c->trials[i];
    bool ok = t->status == TRIAL_OK;
    struct plan p = c->plans[i];
    const struct interval ms = trial_ms(t);
    struct baseline_time baselines[BASELINES_MAX];
    int baseline_count = comparison_beside(c, i, baselines);
    const struct earlier *earlier = &c->earlier[i];
    char unstable[UNSTABLE_SIZE];
    comparison_unstable(c, i, unstable);
    return json_pack(
        "{si so so so so sb so so so so so so ss ss so so so so so si so so*}", "value",
        (int)plan_value(p), "packed",
        w->lengths != NULL ? json_boolean(!c->padded[i]) : json_null(), "precision",
        precision_json(c, i, w), "fused", plan_fused_json(p), "segments", plan_segments_json(p),
        "handwritten", p.handwritten, LAYER_MEMBERS(ms, w->layers), "baselines",
        baselines_json(baselines, baseline_count), "error", json_number(ok ? t->error : NAN),
        "status", trial_status_name(t->status), "reason", ok ? "" : t->reason.message, "unstable",
        json_text_or_null(unstable), "earlier_ms", json_number(earlier->ms.median),
        "earlier_low_ms", json_number(earlier->ms.low), "earlier_high_ms",
        json_number(earlier->ms.high), "earlier_utc", json_text_or_null(earlier->utc), "samples",
        t->sample_count, "kernels",
        c->wants_kernels && comparison_ran(c, i) ? kernels_json(&c->kernels, &c->candidates[i])
                                                 : json_null(),
        "stamps", stamps_of(c, i, w));
}

/* Whether a plan beside a baseline is a pair of two that no line has said before. */
static bool is_news(const struct comparison *c, int i, struct plan baseline)
{
    int other = comparison_find(c, baseline, false, 0);
    return other != i && !(other < i && baselines_have(&c->baselines, c->plans[i]));
}

/* Prints a line for each pair of a given plan and a baseline. */
static void print_baselines(const struct comparison *c)
{
    int lines = 0;
    for (int i = 0; i < c->given; i++) {
        struct baseline_time b[BASELINES_MAX];
        int n = comparison_ran(c, i) ? comparison_beside(c, i, b) : 0;
        SCOPED_BUF plan = BUF_INIT;
        plan_add(plan_value(c->plans[i]), &plan);
        buf_adds(&plan, c->padded[i] ? " padded" : "");
        if (c->precision[i] != 0) {
            buf_adds(&plan, " in ");
            precision_text(c->precision[i], "", &plan);
        }
        for (int k = 0; k < n; k++)
            if (is_news(c, i, b[k].plan)) {
                SCOPED_BUF line = BUF_INIT;
                baseline_ratio(&b[k], false, &line);
                printf("%s%s: %s\n", lines++ == 0 ? "\n" : "", plan.ptr, line.ptr);
            }
    }
}

static void print_unstable(const struct comparison *c)
{
    for (int i = 0; i < c->count; i++) {
        char unstable[UNSTABLE_SIZE];
        comparison_unstable(c, i, unstable);
        unstable_print(plan_value(c->plans[i]), unstable);
    }
}

/* Of the first plan that ran: all of them took turns. */
static void print_clock(const struct comparison *c)
{
    const struct conditions *of = NULL;
    for (int i = 0; i < c->count && of == NULL; i++)
        if (comparison_ran(c, i) && c->trials[i].conditions.known)
            of = &c->trials[i].conditions;
    if (of != NULL)
        printf("\nclock: %d of %d MHz, in a sustained run; a search times short ones\n", of->sm_mhz,
               of->max_sm_mhz);
}

static void complain(const struct options *o, const struct comparison *c)
{
    for (int i = 0; i < c->given; i++)
        if (c->trials[i].status != TRIAL_OK)
            fprintf(stderr, "fuseplan bench: %u: %s\n", plan_value(c->plans[i]),
                    c->trials[i].reason.message);
    struct baseline_time b[BASELINES_MAX];
    int n = comparison_beside(c, 0, b);
    for (int k = 0; k < n; k++)
        if (comparison_find(c, b[k].plan, false, 0) >= c->given)
            baseline_note(o, &b[k]);
    kernels_complain(&c->kernels);
    for (int i = 0; i < c->given && c->stamps != NULL; i++)
        if (c->stamps[i].reason.code != STATUS_OK)
            fprintf(stderr, "fuseplan bench: %u with stamps: %s\n", plan_value(c->plans[i]),
                    c->stamps[i].reason.message);
}

static void print_plans(enum format format, const struct comparison *c, const struct workload *w)
{
    struct output out;
    output_begin(&out, format, columns, ARRAY_LEN(columns));
    out.skip_empty = true;
    for (int i = 0; i < c->count; i++)
        output_row(&out, row_of(c, i, w));
    output_end(&out);
}

/* The plans given, for the table of sizes. */
static void add_sizes(const struct comparison *c, const struct workload *w)
{
    for (int i = 0; i < c->given; i++) {
        struct baseline_time b[BASELINES_MAX];
        char unstable[UNSTABLE_SIZE];
        bool ok = c->trials[i].status == TRIAL_OK;
        int n = comparison_beside(c, i, b);
        comparison_unstable(c, i, unstable);
        sizes_add(w, (int)plan_value(c->plans[i]), trial_ms(&c->trials[i]).median, b, n,
                  ok && unstable[0] != '\0' ? "unstable" : trial_status_name(c->trials[i].status));
    }
}

void comparison_print(const struct options *o, const struct comparison *c, const struct workload *w)
{
    add_sizes(c, w);
    if (o->format != FORMAT_MARKDOWN)
        print_plans(o->format, c, w);
    if (o->format == FORMAT_TABLE) {
        const struct candidate *plans[VALUES_MAX];
        int n = comparison_plans(c, plans);
        print_baselines(c);
        print_unstable(c);
        print_clock(c);
        fputs(n > 0 ? "\n" : "", stdout);
        if (n > 0)
            kernels_print(&c->kernels, plans, n);
        for (int i = 0; i < c->given && c->stamps != NULL; i++)
            if (comparison_ran(c, i))
                stamps_print(&c->stamps[i], &c->candidates[i], w);
    }
    complain(o, c);
}
