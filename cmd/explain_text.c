#include "cmd/explain_int.h"

/* Characters between the sides of a box: with both it has 98. */
enum { INSIDE = 94, LABEL = 9 };

void neighbour_text(const struct neighbour *n, struct buf *out)
{
    switch (n->change) {
    case CHANGE_FUSED:
        buf_addf(out, "fuse %d and %d", n->after, n->after + 1);
        break;
    case CHANGE_CUT:
        buf_addf(out, "cut after %d", n->after);
        break;
    case CHANGE_MOVED:
        buf_addf(out, "move the cut after %d to after %d", n->after, n->to);
        break;
    default:
        buf_addf(out, "%s attention", n->plan.handwritten ? "hand-written" : "generated");
    }
}

/* ---- boxes ----------------------------------------------------------------------------------- */

static void print_edge(const char *title)
{
    int used = printf("+-%s%s", title, title[0] != '\0' ? " " : "");
    for (int i = used; i < INSIDE + 3; i++)
        putchar('-');
    puts("+");
}

static void print_inside(const char *fmt, ...) PRINTF_LIKE(1, 2);

static void print_inside(const char *fmt, ...)
{
    char line[INSIDE + 1];
    va_list args;
    va_start(args, fmt);
    vsnprintf(line, sizeof(line), fmt, args);
    va_end(args);
    printf("| %-*s |\n", INSIDE, line);
}

/* Items on as many lines as they need; the label stands before the first one. */
struct listing {
    const char *label;
    char line[INSIDE + 1];
};

static void end_line(struct listing *l)
{
    if (l->line[0] != '\0')
        print_inside("%-*s %s", LABEL, l->label, l->line);
    l->label = "";
    l->line[0] = '\0';
}

static void add_item(struct listing *l, const char *name, double bytes)
{
    char item[80], size[32];
    snprintf(item, sizeof(item), "%s %s", name, number_bytes((uint64_t)bytes, size));
    size_t len = strlen(l->line);
    if (len > 0 && len + strlen(item) + LABEL + 4 > INSIDE) {
        strcat(l->line, ",");
        end_line(l);
        len = 0;
    }
    snprintf(l->line + len, sizeof(l->line) - len, "%s%s", len > 0 ? ", " : "", item);
}

static void add_tensors(struct listing *l, const struct explained_kernel *k, uint32_t set,
                        bool written, const struct workload *w)
{
    for (int t = 0; t < TENSOR_COUNT; t++)
        if ((set >> t & 1) != 0)
            add_item(l, tensor_name(w->chain, t), explained_bytes(k, w, t, written));
}

static void print_tensors(const char *label, const struct explained_kernel *k, uint32_t set,
                          const struct workload *w)
{
    struct listing l = {.label = label};
    add_tensors(&l, k, set, true, w);
    end_line(&l);
}

static void print_reads(const struct explained_kernel *k, const struct workload *w)
{
    const struct chain *c = w->chain;
    struct listing l = {.label = "reads"};
    add_tensors(&l, k, k->reads, false, w);
    for (int i = 0; i < WEIGHT_MAX; i++)
        if ((segment_weights(c, k->choice.segment) >> i & 1) != 0)
            add_item(&l, c->weights[i].name, explained_weight_bytes(k, w, i));
    end_line(&l);
}

static void print_time(const struct explained_kernel *k)
{
    char least[80] = "";
    if (!isnan(k->least_us))
        snprintf(least, sizeof(least), "; %s alone takes %.1f us at least",
                 k->memory_bound ? "moving its data" : "its arithmetic", k->least_us);
    if (isnan(k->us.median))
        print_inside("%-*s not measured alone%s", LABEL, "time", least);
    else
        print_inside("%-*s %.1f us [%.1f, %.1f] alone%s", LABEL, "time", k->us.median, k->us.low,
                     k->us.high, least);
}

/* What it has in e4m3, and what that gains. */
static void print_e4m3(const struct explained_kernel *k)
{
    struct e4m3_use use;
    char without[48] = "";
    choice_e4m3(&k->choice, &use);
    if (use.in < 0 && use.out < 0)
        return;
    if (isfinite(k->plain_us))
        snprintf(without, sizeof(without), "; %.1f us alone without", k->plain_us);
    print_inside("%-*s %s%s%s%s%s%s", LABEL, "e4m3", use.in >= 0 ? "operands of " : "",
                 use.in >= 0 ? gemm_names[use.in] : "", use.in >= 0 && use.out >= 0 ? ", " : "",
                 use.out >= 0 ? "result for " : "", use.out >= 0 ? gemm_names[use.out] : "",
                 without);
}

static void print_kernel(const struct explained_kernel *k, const struct workload *w)
{
    struct segment s = k->choice.segment;
    SCOPED_BUF schedule = BUF_INIT;
    char title[24], range[12];
    schedule_text(k->choice.impl, &k->choice.schedule, &schedule);
    snprintf(title, sizeof(title), " %s %s", s.first < s.last ? "ops" : "op",
             segment_text(s, range));
    print_edge(title);
    for (int op = s.first; op <= s.last; op++)
        print_inside("%2d %-18s  %s", op, w->chain->ops[op].name, w->chain->ops[op].computes);
    print_time(k);
    print_inside("%-*s %s %s", LABEL, "by", k->choice.impl->name, schedule.ptr);
    print_e4m3(k);
    print_reads(k, w);
    print_tensors("on chip", k, k->keeps, w);
    print_tensors("in memory", k, k->passes, w);
    print_tensors("writes", k, k->writes, w);
    print_edge("");
}

/* ---- neighbours ------------------------------------------------------------------------------ */

static void print_neighbours(const struct explanation *e)
{
    static const struct column columns[] = {
        {"value", "value", 0},        {"text", "change", 0}, {"ms", "ms", DECIMALS_MS},
        {"slower", "slower, %", 1},   {"low", "low", 1},     {"high", "high", 1},
        {"source", "its time is", 0},
    };
    static const char *const sources[TIME_SOURCE_COUNT] = {
        [TIME_UNKNOWN] = "",
        [TIME_PREDICTED] = "predicted from its segments",
        [TIME_SEARCHED] = "measured in a search",
        [TIME_COMPARED] = "measured side by side",
        [TIME_TRIED] = "",
    };
    struct output out;
    int unknown = 0;
    while (unknown < e->neighbour_count &&
           e->neighbours[e->neighbour_count - 1 - unknown].source == TIME_UNKNOWN)
        unknown++;
    if (unknown == e->neighbour_count)
        return;
    puts("\nplans with one cut less, one more or one elsewhere:");
    output_begin(&out, FORMAT_TABLE, columns, ARRAY_LEN(columns));
    out.skip_empty = true;
    for (int i = 0; i < e->neighbour_count - unknown; i++) {
        const struct neighbour *n = &e->neighbours[i];
        SCOPED_BUF text = BUF_INIT;
        neighbour_text(n, &text);
        output_row(&out, json_pack("{si ss so so so so ss}", "value", (int)plan_value(n->plan),
                                   "text", text.ptr, "ms", json_number(n->ms), "slower",
                                   json_number(100 * (n->ratio.median - 1)), "low",
                                   json_number(100 * (n->ratio.low - 1)), "high",
                                   json_number(100 * (n->ratio.high - 1)), "source",
                                   n->source == TIME_TRIED ? n->reason : sources[n->source]));
    }
    output_end(&out);
    if (unknown > 0)
        printf("of %d others nothing is known\n", unknown);
}

/* ---- the plan -------------------------------------------------------------------------------- */

static void print_times(const struct explained *x)
{
    const struct explanation *e = &x->e;
    int d = ms_decimals(e->ms.median), layers = x->workload->layers;
    if (isnan(e->ms.median))
        printf("%-12s unknown\n", "time");
    else if (e->source == TIME_PREDICTED)
        printf("%-12s about %.*f ms for %d layer%s, predicted from its segments\n", "time", d,
               e->ms.median, layers, layers > 1 ? "s" : "");
    else
        printf("%-12s %.*f ms [%.*f, %.*f] for %d layer%s, %.1f us a layer%s\n", "time", d,
               e->ms.median, d, e->ms.low, d, e->ms.high, layers, layers > 1 ? "s" : "",
               1e3 * e->ms.median / layers,
               e->source == TIME_COMPARED ? "" : " (not compared side by side)");
    if (x->unstable[0] != '\0')
        printf("%-12s %s\n", "unstable", x->unstable);
    if (!isnan(e->sum_us))
        printf("%-12s %.1f us a layer, each alone\n", "kernels", e->sum_us);
    if (!isnan(e->least_us))
        printf("%-12s %.1f us a layer, at %.4g GFLOP/s%s and %.4g GB/s: %s\n", "at least",
               e->least_us, 1e-9 * e->rates.flops_per_s,
               x->precision != 0 ? " (twice that in e4m3)" : "", 1e-9 * e->rates.bytes_per_s,
               e->device_rates ? "the device's peaks" : "the highest rates of a segment here");
    if (x->device != NULL)
        printf("%-12s %s\n", "measured on", x->device);
}

/* Which GEMMs are in e4m3, and what they cost a model. */
static void print_precision(const struct explained *x)
{
    const char *before = "";
    if (x->precision == 0)
        return;
    printf("%-12s ", "in e4m3");
    for (int g = 0; g < GEMM_COUNT; g++)
        if ((x->precision >> g & 1) != 0) {
            printf("%s%s", before, gemm_names[g]);
            if (x->has_errors)
                printf(" (error alone %.2g)", precision_error(&x->errors, 1u << g));
            before = ", ";
        }
    if (x->has_errors)
        printf("; together %.2g", precision_error(&x->errors, x->precision));
    putchar('\n');
}

void explained_print(const struct explained *x)
{
    SCOPED_BUF key = BUF_INIT, name = BUF_INIT;
    workload_text(x->workload, &key);
    printf("%-12s %s on %s\n", "workload", key.ptr, target_names[x->target]);
    plan_add(plan_value(x->e.plan), &name);
    printf("%-12s %s%s, %d kernel%s a layer\n", "plan", name.ptr,
           x->e.packed ? " on packed tokens" : "", x->e.count, x->e.count > 1 ? "s" : "");
    print_precision(x);
    print_times(x);
    for (int i = 0; i < x->e.count; i++) {
        puts(i > 0 ? "     |" : "");
        print_kernel(&x->e.kernels[i], x->workload);
    }
    print_neighbours(&x->e);
}
