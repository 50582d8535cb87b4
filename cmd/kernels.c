#include "cmd/bench_int.h"

/* ---- measuring ------------------------------------------------------------------------------- */

static const struct kernel *find(const struct kernels *k, const struct choice *c)
{
    for (int i = 0; i < k->count; i++)
        if (choice_equal(&k->items[i].choice, c))
            return &k->items[i];
    return NULL;
}

/* Times a kernel as a search does: once it is stored, a search need not time it again. */
static int measure(struct session *s, const struct choice *c, bool packed, const char *search,
                   struct kernels *out, struct status *st)
{
    struct kernel k = {.choice = *c};
    const struct candidate alone = {.packed = packed, .count = 1, .choices = {*c}};
    if (bench_segment(s->bench, c, packed, &sampling_search, &k.trial, st) != 0)
        return -1;
    out->items = mem_resize(out->items, (size_t)out->count + 1, sizeof(*out->items));
    out->items[out->count++] = k;
    return search == NULL
               ? 0
               : trial_store(s->db, s->study, DB_TRIAL_SEGMENT, &alone, &k.trial, search, st);
}

int kernels_measure(struct session *s, const struct candidate *c, const char *search,
                    struct kernels *out, struct status *st)
{
    for (int i = 0; i < c->count; i++)
        if (find(out, &c->choices[i]) == NULL &&
            measure(s, &c->choices[i], c->packed, search, out, st) != 0)
            return -1;
    out->workload = &s->workload;
    out->limits = bench_limits(s->bench);
    return 0;
}

void kernels_release(struct kernels *k)
{
    for (int i = 0; i < k->count; i++)
        trial_release(&k->items[i].trial);
    free(k->items);
    *k = (struct kernels){0};
}

void kernels_complain(const struct kernels *k)
{
    char range[12];
    for (int i = 0; i < k->count; i++)
        if (k->items[i].trial.status != TRIAL_OK)
            fprintf(stderr, "fuseplan bench: ops %s alone: %s\n",
                    segment_text(k->items[i].choice.segment, range),
                    k->items[i].trial.reason.message);
}

/* ---- rates ----------------------------------------------------------------------------------- */

/* What a kernel did in its time. */
struct done {
    double us;
    struct work work;
    double least_us; /* that the roofline allows */
};

static struct done done_by(const struct kernels *k, const struct kernel *one)
{
    bool memory_bound;
    const struct choice *c = &one->choice;
    struct done d = {.us = 1e3 * trial_ms(&one->trial).median,
                     .work = segment_work(c->segment, k->workload, c->schedule.precision)};
    d.least_us = least_us(&d.work, &k->limits, &memory_bound);
    return d;
}

static void set_rates(json_t *row, const struct done *d)
{
    json_object_set_new(row, "flops", json_number(d->work.flops));
    json_object_set_new(row, "bytes", json_number(d->work.bytes));
    json_object_set_new(row, "tflop_per_s", json_number(1e-6 * d->work.flops / d->us));
    json_object_set_new(row, "gb_per_s", json_number(1e-3 * d->work.bytes / d->us));
    json_object_set_new(row, "roofline_share", json_number(d->least_us / d->us));
}

/* ---- as JSON --------------------------------------------------------------------------------- */

static json_t *known(int value, bool is)
{
    return is ? json_integer(value) : json_null();
}

static json_t *extent_json(const int extent[3], bool is)
{
    return is ? json_pack("[iii]", extent[0], extent[1], extent[2]) : json_null();
}

/* A library does not describe its launches: its resources are null. */
static void set_resources(json_t *row, const struct resources *r)
{
    bool code = r->registers > 0, launch = r->grid[0] > 0;
    json_object_set_new(row, "registers", known(r->registers, code));
    json_object_set_new(row, "shared_static_bytes", known(r->shared_static_bytes, code));
    json_object_set_new(row, "shared_dynamic_bytes", known(r->shared_dynamic_bytes, launch));
    json_object_set_new(row, "stack_bytes", known(r->stack_bytes, code));
    json_object_set_new(row, "spill_bytes", known(r->spill_bytes, code));
    json_object_set_new(row, "compiler_warning", json_string(r->compiler_warning));
    json_object_set_new(row, "grid", extent_json(r->grid, launch));
    json_object_set_new(row, "block", extent_json(r->block, launch));
    json_object_set_new(row, "occupancy", json_number(launch ? r->occupancy : NAN));
}

static json_t *kernel_json(const struct kernels *k, const struct kernel *one)
{
    bool ok = one->trial.status == TRIAL_OK;
    const struct interval us = interval_times(1e3, trial_ms(&one->trial));
    const struct done done = done_by(k, one);
    SCOPED_BUF operators = BUF_INIT;
    segment_describe(one->choice.chain, one->choice.segment, &operators);
    json_t *row =
        json_pack("{s[ii] ss ss so so so so ss}", "ops", one->choice.segment.first,
                  one->choice.segment.last, "operators", operators.ptr, "implementation",
                  one->choice.impl->name, "schedule", schedule_json(&one->choice), "median_us",
                  json_number(us.median), "ci_low_us", json_number(us.low), "ci_high_us",
                  json_number(us.high), "reason", ok ? "" : one->trial.reason.message);
    set_resources(row, &one->trial.resources);
    set_rates(row, &done);
    return row;
}

json_t *kernels_json(const struct kernels *k, const struct candidate *c)
{
    json_t *rows = json_array();
    for (int i = 0; i < c->count; i++)
        json_array_append_new(rows, kernel_json(k, find(k, &c->choices[i])));
    return rows;
}

/* ---- as a table ------------------------------------------------------------------------------ */

static const struct column time_columns[] = {
    {"value", "value", 0},       {"ops", "ops", 0},
    {"implementation", "by", 0}, {"schedule", "schedule", 0},
    {"median_us", "us", 2},      {"ci_low_us", "low", 2},
    {"ci_high_us", "high", 2},   {"tflop_per_s", "TFLOP/s", DECIMALS_TWO},
    {"gb_per_s", "GB/s", 1},     {"roofline_percent", "% of roof", 1},
};

static const struct column resource_columns[] = {
    {"value", "value", 0},
    {"ops", "ops", 0},
    {"registers", "regs", 0},
    {"shared_static_bytes", "static", 0},
    {"shared_dynamic_bytes", "dynamic", 0},
    {"spill_bytes", "spills", 0},
    {"grid", "grid", 0},
    {"block", "block", 0},
    {"occupancy", "occup.", 2},
};

/* [4, 2, 1] as "4x2": without trailing ones. */
static json_t *extent_text(const json_t *extent)
{
    int size[3], n = 3;
    char text[40];
    if (json_unpack((json_t *)(uintptr_t)extent, "[iii]", &size[0], &size[1], &size[2]) < 0)
        return json_null();
    while (n > 1 && size[n - 1] == 1)
        n--;
    int len = snprintf(text, sizeof(text), "%d", size[0]);
    for (int i = 1; i < n; i++)
        len += snprintf(text + len, sizeof(text) - (size_t)len, "x%d", size[i]);
    return json_string(text);
}

/* Makes a row of JSON one of the tables. */
static json_t *table_row(unsigned value, const char *range, json_t *row)
{
    double share = json_number_value(json_object_get(row, "roofline_share"));
    json_object_set_new(row, "value", json_integer(value));
    json_object_set_new(row, "ops", json_string(range));
    json_object_set_new(row, "grid", extent_text(json_object_get(row, "grid")));
    json_object_set_new(row, "block", extent_text(json_object_get(row, "block")));
    json_object_set_new(row, "roofline_percent", json_number(share > 0 ? 100 * share : NAN));
    return row;
}

/* Adds a plan's kernels and their sum to both tables. */
static void add_plan(struct output *times, struct output *resources, const struct kernels *k,
                     const struct candidate *c)
{
    unsigned value = plan_value(c->plan);
    struct done sum = {.us = 0};
    for (int i = 0; i < c->count; i++) {
        const struct kernel *one = find(k, &c->choices[i]);
        const struct done done = done_by(k, one);
        char range[12];
        json_t *row =
            table_row(value, segment_text(one->choice.segment, range), kernel_json(k, one));
        output_row(resources, json_incref(row));
        output_row(times, row);
        sum.us += done.us;
        sum.work.flops += done.work.flops;
        sum.work.bytes += done.work.bytes;
        sum.least_us += done.least_us;
    }
    json_t *row = json_pack("{so}", "median_us", json_number(sum.us));
    set_rates(row, &sum);
    output_row(times, table_row(value, "sum", row));
}

/* Whether a device told what kernels take of it, as GPUs do. */
static bool have_resources(const struct kernels *k)
{
    for (int i = 0; i < k->count; i++)
        if (k->items[i].trial.resources.registers > 0)
            return true;
    return false;
}

void kernels_print(const struct kernels *k, const struct candidate *const *plans, int n)
{
    bool two = have_resources(k);
    struct output times, resources;
    output_begin(&times, FORMAT_TABLE, time_columns, ARRAY_LEN(time_columns));
    output_begin(&resources, FORMAT_TABLE, resource_columns, two ? ARRAY_LEN(resource_columns) : 0);
    times.skip_empty = resources.skip_empty = true;
    for (int i = 0; i < n; i++)
        add_plan(&times, &resources, k, plans[i]);
    output_end(&times);
    if (two)
        putchar('\n');
    output_end(&resources);
}
