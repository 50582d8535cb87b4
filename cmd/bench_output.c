#include "cmd/bench_int.h"

#include <math.h>
#include <stdlib.h>

bool lineup_ran(const struct lineup *l, int i)
{
    return i < l->given && l->trials[i].status == TRIAL_OK;
}

int lineup_plans(const struct lineup *l, const struct candidate *out[VALUES_MAX])
{
    int n = 0;
    for (int i = 0; i < l->given; i++)
        if (lineup_ran(l, i))
            out[n++] = &l->candidates[i];
    return n;
}

static const struct column columns[] = {
    {"value", "value", 0},
    {"fused", "fused ops", 0},
    {"median_ms", "ms", 3},
    {"ci_low_ms", "low", 3},
    {"ci_high_ms", "high", 3},
    {"us_per_layer", "us/layer", 1},
    {"speedup_over_unfused", "speed-up", 3},
    {"speedup_low", "low", 3},
    {"speedup_high", "high", 3},
    {"tie", "tie", 0},
    {"speedup_over_41115", "over 41115", 3},
    {"speedup_over_41115_low", NULL, 3},
    {"speedup_over_41115_high", NULL, 3},
    {"error", NULL, 0},
    {"status", "status", 0},
    {"reason", NULL, 0},
    {"earlier_ms", NULL, 0},
    {"samples", NULL, 0},
};

/* From pairs: sample k of both was taken in round k. */
static struct interval speedup(const struct lineup *l, int i, int over)
{
    struct interval none = {NAN, NAN, NAN};
    const struct trial *t = &l->trials[i], *other = &l->trials[over < 0 ? i : over];
    int n = t->sample_count < other->sample_count ? t->sample_count : other->sample_count;
    if (t == other || n == 0 || t->status != TRIAL_OK || other->status != TRIAL_OK)
        return none;
    double *ratios = mem_alloc((size_t)n, sizeof(*ratios));
    for (int k = 0; k < n; k++)
        ratios[k] = other->samples_ms[k] / t->samples_ms[k];
    struct interval out = stats_median(ratios, (size_t)n);
    free(ratios);
    return out;
}

static json_t *row_of(const struct lineup *l, int i, const struct workload *w)
{
    const struct trial *t = &l->trials[i];
    bool ok = t->status == TRIAL_OK;
    struct plan p = plan_from_value(l->values[i]);
    struct interval ms = {NAN, NAN, NAN}, ratio = speedup(l, i, l->unfused),
                    first = speedup(l, i, l->first_version);
    if (ok)
        ms = t->ms;
    struct buf fused;
    buf_init(&fused);
    plan_fused_text(p, &fused);
    json_t *row = json_pack(
        "{si ss so sb so so so so so so so so so so so so ss ss so si so}", "value",
        (int)l->values[i], "fused", fused.ptr, "segments", plan_segments_json(p), "handwritten",
        p.handwritten, "median_ms", json_number(ms.median), "ci_low_ms", json_number(ms.low),
        "ci_high_ms", json_number(ms.high), "us_per_layer",
        json_number(1e3 * ms.median / w->layers), "speedup_over_unfused", json_number(ratio.median),
        "speedup_low", json_number(ratio.low), "speedup_high", json_number(ratio.high), "tie",
        isfinite(ratio.low) ? json_boolean(ratio.low <= 1 && 1 <= ratio.high) : json_null(),
        "speedup_over_41115", json_number(first.median), "speedup_over_41115_low",
        json_number(first.low), "speedup_over_41115_high", json_number(first.high), "error",
        json_number(ok ? t->error : NAN), "status", trial_status_name(t->status), "reason",
        ok ? "" : t->reason.message, "earlier_ms", json_number(l->earlier_ms[i]), "samples",
        t->sample_count, "kernels",
        l->wants_kernels && lineup_ran(l, i) ? kernels_json(&l->kernels, &l->candidates[i])
                                             : json_null());
    buf_release(&fused);
    return row;
}

static void print_kernels(const struct lineup *l)
{
    const struct candidate *plans[VALUES_MAX];
    int n = lineup_plans(l, plans);
    if (n == 0)
        return;
    putchar('\n');
    kernels_print(&l->kernels, plans, n);
}

void lineup_print(const struct options *o, const struct lineup *l, const struct workload *w)
{
    struct output out;
    output_begin(&out, o->format, columns, ARRAY_LEN(columns));
    out.skip_empty = true;
    for (int i = 0; i < l->count; i++)
        output_row(&out, row_of(l, i, w));
    output_end(&out);
    if (o->format == FORMAT_TABLE)
        print_kernels(l);
    for (int i = 0; i < l->count; i++)
        if (l->trials[i].status != TRIAL_OK)
            fprintf(stderr, "fuseplan bench: %u: %s\n", l->values[i], l->trials[i].reason.message);
    kernels_complain(&l->kernels);
}
