#include "cmd/plans.h"
#include "cmd/search_int.h"

/* Item i of each list belongs to the plan's segment i. */
json_t *best_json(const struct workload *w, const struct db_best *b)
{
    if (b->value < 0)
        return json_null();
    struct plan p = plan_from_value((unsigned)b->value);
    json_t *implementations = json_array(), *schedules = json_array(), *times = json_array();
    for (int i = 0; i < b->choice_count; i++) {
        json_array_append_new(implementations, json_string(b->choices[i].impl));
        json_array_append_new(schedules, json_string(b->choices[i].schedule));
        json_array_append_new(times, json_number(1e3 * b->choice_ms[i]));
    }
    SCOPED_BUF precision = BUF_INIT;
    precision_text(b->precision, dtypes[w->dtype].name, &precision);
    return json_pack("{si sb ss so sb so so so so so so so sb ss ss sb}", "value", b->value,
                     "packed", (int)b->packed, "precision", precision.ptr, "segments",
                     plan_segments_json(p), "handwritten", p.handwritten, "implementation",
                     implementations, "schedule", schedules, "median_us", times,
                     LAYER_MEMBERS(b->ms, w->layers), "predicted", 0, "device", b->device,
                     "measured_utc", b->measured_utc, "compared", b->final);
}

/* How many plans each signal proposed, if it proposed any. */
static json_t *proposed_json(const struct tune_report *r)
{
    json_t *out = json_object();
    for (int i = SIGNAL_NONE + 1; i < SIGNAL_COUNT; i++)
        if (r->proposed[i] > 0)
            json_object_set_new(out, signal_names[i], json_integer(r->proposed[i]));
    return out;
}

static json_t *untimed_json(const struct certainty *c)
{
    json_t *out = json_array();
    for (int i = 0; i < c->untimed_count; i++) {
        struct segment s = slot_segment(c->untimed[i].slot);
        json_array_append_new(out, json_pack("{s[ii] sb so}", "ops", s.first, s.last, "handwritten",
                                             c->untimed[i].slot == SLOT_HANDWRITTEN, "hope",
                                             json_number(c->untimed[i].hope)));
    }
    return out;
}

static json_t *certainty_json(const struct certainty *c)
{
    if (!c->known)
        return json_null();
    return json_pack("{si so so so so}", "not_measured", c->open, "gain_needed",
                     json_number(c->gain), "largest_gain", json_number(c->largest), "roofline",
                     json_number(c->roofline), "untimed", untimed_json(c));
}

/* The array's only item, or null. */
static json_t *runner_up_json(const struct tune_report *r)
{
    json_auto_t *one = baselines_json(&r->runner_up, isfinite(r->runner_up.speedup.median) ? 1 : 0);
    json_t *item = json_array_get(one, 0);
    return item != NULL ? json_incref(item) : json_null();
}

static json_t *report_json(const struct workload *w, enum target_kind target,
                           const struct tune_report *r, json_t *relaxed)
{
    json_t *trials =
        json_pack("{si si si si si}", "new", r->new_trials, "total", r->total_trials, "failed",
                  r->failed_trials, "censored", r->censored_trials, "space", r->space);
    json_t *model =
        json_pack("{so so}", "proposed", proposed_json(r), "best_by",
                  r->best_by != SIGNAL_NONE ? json_string(signal_names[r->best_by]) : json_null());
    json_t *best = best_json(w, &r->best);
    if (json_is_object(best))
        json_object_set_new(best, "unstable", json_text_or_null(r->unstable));
    return json_pack("{so so so so so so so sb so so so sO so*}", "workload",
                     workload_json(w, target), "best", best, "runner_up", runner_up_json(r),
                     "baselines", baselines_json(r->baselines, r->baseline_count), "trials", trials,
                     "model", model, "certainty", certainty_json(&r->certainty), "indistinct",
                     r->indistinct, "drift", json_number(r->drift), "stopped_by",
                     json_text_or_null(r->stopped_by), "seconds", json_number(r->seconds),
                     "relaxed", relaxed, "pack", r->pack != NULL ? json_text(r->pack) : NULL);
}

/* ---- CSV: one line --------------------------------------------------------------------------- */

static const struct column columns[] = {
    {"value", NULL, 0},        {"fused", NULL, 0},        {"handwritten", NULL, 0},
    {"median_ms", NULL, 0},    {"ci_low_ms", NULL, 0},    {"ci_high_ms", NULL, 0},
    {"trials_new", NULL, 0},   {"trials_total", NULL, 0}, {"space", NULL, 0},
    {"stopped_by", NULL, 0},   {"us_per_layer", NULL, 0}, {"device", NULL, 0},
    {"measured_utc", NULL, 0}, {"compared", NULL, 0},     {"unstable", NULL, 0},
    {"packed", NULL, 0},
};

static void print_csv(const struct workload *w, const struct tune_report *r)
{
    struct output out;
    output_begin(&out, FORMAT_CSV, columns, ARRAY_LEN(columns));
    if (r->best.value >= 0) {
        json_t *row = best_json(w, &r->best);
        json_object_update_new(
            row,
            json_pack("{so si si si ss* so}", "fused",
                      plan_fused_json(plan_from_value((unsigned)r->best.value)), "trials_new",
                      r->new_trials, "trials_total", r->total_trials, "space", r->space,
                      "stopped_by", r->stopped_by, "unstable", json_text_or_null(r->unstable)));
        output_row(&out, row);
    }
    output_end(&out);
}

/* ---- for people ------------------------------------------------------------------------------ */

static void print_segments(const struct chain *chain, const struct db_best *b)
{
    static const struct column segment_columns[] = {
        {"ops", "ops", 0},
        {"impl", "implementation", 0},
        {"us", "alone, us", 1},
        {"operators", "operators", 0},
    };
    struct output out;
    output_begin(&out, FORMAT_TABLE, segment_columns, ARRAY_LEN(segment_columns));
    for (int i = 0; i < b->choice_count; i++) {
        const struct db_choice *c = &b->choices[i];
        SCOPED_BUF names = BUF_INIT;
        char range[12];
        segment_describe(chain, c->segment, &names);
        output_row(&out,
                   json_pack("{ss so so ss}", "ops", segment_text(c->segment, range), "impl",
                             json_sprintf("%s%s%s", c->impl, c->schedule[0] != '\0' ? " " : "",
                                          c->schedule),
                             "us", json_number(1e3 * b->choice_ms[i]), "operators", names.ptr));
    }
    output_end(&out);
}

static void print_counts(const struct tune_report *r)
{
    int outside = r->total_trials - r->space_trials;
    if (r->space > 1 && r->space_trials == r->space)
        printf("%-12s all %d plans", "measured", r->space);
    else
        printf("%-12s %d of %d plans", "measured", r->space_trials, r->space);
    if (outside > 0)
        printf(", %d outside the space", outside);
    if (r->stopped_by != NULL && r->new_trials < r->total_trials)
        printf(", %d by this search", r->new_trials);
    if (r->failed_trials > 0)
        printf(", %d failed", r->failed_trials);
    if (r->censored_trials > 0)
        printf(", %d stopped early as hopeless", r->censored_trials);
    putchar('\n');
}

/* Which signals proposed the plans of this search, and the best one. */
static void print_signals(const struct tune_report *r)
{
    const char *before = "";
    int models =
        r->proposed[SIGNAL_SUM] + r->proposed[SIGNAL_REGRESSOR] + r->proposed[SIGNAL_CLASSIFIER];
    if (models == 0)
        return;
    printf("%-12s ", "proposed");
    for (int i = SIGNAL_NONE + 1; i < SIGNAL_COUNT; i++)
        if (r->proposed[i] > 0) {
            printf("%s%d by %s", before, r->proposed[i], signal_names[i]);
            before = ", ";
        }
    if (r->best_by != SIGNAL_NONE)
        printf("; the best plan by %s", signal_names[r->best_by]);
    putchar('\n');
}

static void print_noise(const struct tune_report *r)
{
    if (r->drift != 1)
        printf("%-12s the machine's pace changed: a plan takes %.3f times what it took at first\n",
               "drift", r->drift);
    if (r->indistinct)
        printf("%-12s no difference can be told from noise: the plans' times spread no more than "
               "that of one plan\n",
               "noise");
}

/* The untimed segments that may yet be the best hope. */
static void print_untimed(const struct certainty *c)
{
    double hope = -INFINITY;
    for (int i = 0; i < c->untimed_count; i++)
        hope = fmax(hope, c->untimed[i].hope);
    if (c->untimed_count == 0)
        return;
    printf("%-12s %d segment%s never timed", "", c->untimed_count,
           c->untimed_count == 1 ? " was" : "s were");
    if (isfinite(hope))
        printf("; none is in a faster plan unless it takes less than %.2f times its parts", hope);
    putchar('\n');
}

static void print_certainty(const struct tune_report *r)
{
    const struct certainty *c = &r->certainty;
    if (!c->known)
        return;
    printf("%-12s ", "certainty");
    if (c->open == 0)
        printf("every plan of the space that can run was measured");
    else if (isnan(c->gain))
        printf("all %d plans not measured have a segment that was never timed", c->open);
    else if (c->gain > 0)
        printf("of the %d plans not measured none is faster that does not beat the sum of its "
               "segments by more than %.1f %%",
               c->open, 100 * c->gain);
    else
        printf("some of the %d plans not measured have a smaller sum than the best plan's time",
               c->open);
    if (isfinite(c->largest) && c->largest > 0)
        printf("; a measured plan does by %.1f %% at most", 100 * c->largest);
    putchar('\n');
    print_untimed(c);
    if (isfinite(c->roofline))
        printf("%-12s the best plan takes %.1f times what the roofline allows the whole chain\n",
               "", c->roofline);
}

/* What speaks against the times of the baselines, beside what the verdict says. */
static void print_unstable(const struct tune_report *r)
{
    unsigned said;
    verdict_doubt(r, &said);
    for (int i = 0; i < r->baseline_count; i++) {
        unsigned value = plan_value(r->baselines[i].plan);
        if (value != said && (int)value != r->best.value)
            unstable_print(value, r->baselines[i].unstable);
    }
}

static void print_baseline(const struct baseline_time *b)
{
    SCOPED_BUF name = BUF_INIT;
    int digits = ms_decimals(b->ms.median);
    plan_add(plan_value(b->plan), &name);
    printf("%-12s %s: %.*f ms [%.*f, %.*f]\n", "baseline", name.ptr, digits, b->ms.median, digits,
           b->ms.low, digits, b->ms.high);
}

/* Nothing of a baseline, with which the verdict compares. */
static void print_runner_up(const struct tune_report *r)
{
    SCOPED_BUF text = BUF_INIT;
    bool said = !isfinite(r->runner_up.speedup.median);
    for (int i = 0; i < r->baseline_count; i++)
        said |= plan_equal(r->baselines[i].plan, r->runner_up.plan);
    if (said)
        return;
    baseline_ratio(&r->runner_up, false, &text);
    printf("%-12s %s\n", "runner-up", text.ptr);
}

static void print_best(const struct workload *w, const struct tune_report *r)
{
    const struct db_best *b = &r->best;
    SCOPED_BUF name = BUF_INIT;
    plan_add((unsigned)b->value, &name);
    if (b->precision != 0) {
        buf_adds(&name, ", in e4m3: ");
        gemms_text(b->precision, ", ", &name);
    }
    printf("%-12s %s%s\n\n", "best plan", name.ptr, b->packed ? ", on packed tokens" : "");
    print_segments(w->chain, b);
    int d = ms_decimals(b->ms.median);
    printf("\n%-12s %.*f ms [%.*f, %.*f] for %d layer%s, %.1f us a layer%s\n", "time", d,
           b->ms.median, d, b->ms.low, d, b->ms.high, w->layers, w->layers > 1 ? "s" : "",
           1e3 * b->ms.median / w->layers, b->final ? "" : " (not yet compared)");
    printf("%-12s %s, %.10s %.5s UTC\n", "measured on", b->device, b->measured_utc,
           b->measured_utc + strcspn(b->measured_utc, "T") + 1);
    if (r->conditions.known)
        printf("%-12s %d of %d MHz, in a short run; 'fuseplan bench best' times a sustained one\n",
               "clock", r->conditions.sm_mhz, r->conditions.max_sm_mhz);
    for (int i = 0; i < r->baseline_count; i++)
        if (isfinite(r->baselines[i].ms.median) &&
            (int)plan_value(r->baselines[i].plan) != b->value)
            print_baseline(&r->baselines[i]);
    print_runner_up(r);
    print_unstable(r);
}

static void print_text(const struct options *o, const struct workload *w, enum target_kind target,
                       const struct tune_report *r, bool elsewhere)
{
    SCOPED_BUF key = BUF_INIT;
    workload_text(w, &key);
    verdict_print(o, r, elsewhere);
    printf("%-12s %s on %s\n", "workload", key.ptr, target_names[target]);
    if (r->best.value >= 0)
        print_best(w, r);
    if (r->pack == NULL)
        print_counts(r);
    print_noise(r);
    if (options_has(o, OPT(VERBOSE)))
        print_signals(r);
    print_certainty(r);
    if (r->stopped_by != NULL)
        printf("%-12s %s, after %.0f s\n", "stopped by", r->stopped_by, r->seconds);
}

static const struct next_step next_steps[] = {
    {"explain best", OPTS_PLANS, "   # what limits each kernel"},
    {"export best", OPTS_WORKLOAD | OPT(DB) | OPT(PRECISION),
     " -o encoder --build   # the plan as a C library"},
    {"report", OPTS_SEARCHED, " -o report.html   # a page of all that was measured"},
};

void search_print(const struct options *o, const struct workload *w, enum target_kind target,
                  const struct tune_report *r, json_t *relaxed, json_t *top, json_t *precisions)
{
    json_auto_t *object = report_json(w, target, r, relaxed);
    if (precisions != NULL)
        json_object_set(object, "precisions", precisions);
    if (top != NULL)
        json_object_set(object, "top", top);
    progress_hide();
    sizes_add(w, r->best.value, r->best.value >= 0 ? r->best.ms.median : NAN, r->baselines,
              r->baseline_count, verdict_word(r));
    if (o->format == FORMAT_TABLE)
        print_text(o, w, target, r, json_array_size(relaxed) > 0 || r->pack != NULL);
    else if (o->format == FORMAT_CSV && top == NULL)
        print_csv(w, r);
    else if (o->format != FORMAT_CSV && o->format != FORMAT_MARKDOWN)
        output_object(o->format, NULL, 0, json_incref(object));
    if (top != NULL)
        top_print(o->format, top);
    if (precisions != NULL && o->format == FORMAT_TABLE)
        precisions_print(precisions);
    json_decref(precisions);
    json_decref(top);
    for (int i = 0; i < r->baseline_count; i++)
        baseline_note(o, &r->baselines[i]);
    if (r->best.value >= 0 && r->pack == NULL)
        next_print(o, next_steps, ARRAY_LEN(next_steps));
    json_decref(relaxed);
}
