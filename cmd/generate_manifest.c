#include "cmd/generate_int.h"

/* Null on a CPU and for a library's choice. */
static json_t *launch_json(const struct choice *c, const struct workload *w)
{
    struct cuda_launch l;
    if (c->impl->launch == NULL)
        return json_null();
    choice_launch(c, w, &l);
    return json_pack("{si si sb sb sb si sb si sb sI sI sI}", "threads", l.threads, "shared_bytes",
                     l.shared_bytes, "cooperative", (int)l.cooperative, "persistent",
                     (int)l.persistent, "at_once", (int)l.at_once, "cluster", l.cluster, "maps",
                     (int)launch_has_maps(&l), "tile_rows", l.tiling.rows, "ordered",
                     (int)l.tiling.ordered, "tiles", (json_int_t)l.tiles, "sync_words",
                     (json_int_t)l.sync_words, "workspace_bytes", (json_int_t)l.workspace_bytes);
}

static json_t *segment_json(const struct choice *c, const struct workload *w, json_t *resources)
{
    const struct work work = segment_work(c->segment, w, c->schedule.precision);
    SCOPED_BUF symbol = BUF_INIT;
    choice_symbol(c, &symbol);
    return json_pack("{s[ii] ss so ss so so so sO}", "ops", c->segment.first, c->segment.last,
                     "implementation", c->impl->name, "schedule", schedule_json(c), "function",
                     symbol.ptr, "flops", json_number(work.flops), "bytes", json_number(work.bytes),
                     "launch", launch_json(c, w), "resources",
                     resources != NULL ? resources : json_null());
}

static json_t *segments_json(const struct chosen *part)
{
    const struct candidate *c = &part->schedules.candidate;
    json_t *all = json_array();
    for (int i = 0; i < c->count; i++)
        json_array_append_new(
            all, segment_json(&c->choices[i], &part->full, part->schedules.resources[i]));
    return all;
}

static json_t *archs_json(const struct arch_list *list)
{
    json_t *all = json_array();
    for (int i = 0; i < list->count; i++) {
        SCOPED_BUF name = BUF_INIT;
        arch_name(list->arch[i], &name);
        json_array_append_new(all, json_string(name.ptr));
    }
    return all;
}

static json_t *files_json(const struct standalone *p)
{
    json_t *all = json_array();
    char hash[HASH_TEXT_SIZE];
    for (int i = 0; i < p->count; i++)
        json_array_append_new(
            all, json_pack("{ss ss}", "name", p->files[i].name, "xxh3_128",
                           hash_text(p->files[i].text.ptr, p->files[i].text.len, hash)));
    return all;
}

/* Null too where the target needs no library. */
static json_t *measured_with(const struct schedules *s)
{
    return s->libraries != NULL && s->libraries[0] != '\0' ? json_string(s->libraries)
                                                           : json_null();
}

/* Null unless what was measured runs here. */
static json_t *us_per_layer(const struct chosen *part)
{
    const struct schedules *s = &part->schedules;
    bool same = !s->elsewhere;
    for (int i = 0; i < s->candidate.count; i++)
        same = same && !s->replaced[i];
    return json_number(same ? 1e3 * part->median_ms / part->workload.layers : NAN);
}

/* Adds what a manifest says of one plan. */
static void add_plan(const struct choosing *c, const struct chosen *part, json_t *out)
{
    const struct schedules *s = &part->schedules;
    SCOPED_BUF precision = BUF_INIT;
    precision_text(s->candidate.precision, dtypes[part->workload.dtype].name, &precision);
    json_auto_t *members =
        json_pack("{si sb ss so so so so so}", "value", (int)plan_value(part->plan), "packed",
                  (int)s->candidate.packed, "precision", precision.ptr, "workload",
                  workload_json(&part->workload, c->build.kind), "measured_on",
                  json_text_or_null(s->device), "measured_with", measured_with(s), "us_per_layer",
                  us_per_layer(part), "segments", segments_json(part));
    json_object_update(out, members);
}

static void add_rest(const struct choosing *c, const struct standalone *p, json_t *out)
{
    if (c->archs.count > 0)
        json_object_set_new(out, "architectures", archs_json(&c->archs));
    json_object_set_new(out, "files", files_json(p));
}

/* Null without GEMMs in e4m3. */
static json_t *calibration_json(const struct calibration *c)
{
    if (c->layers == 0)
        return json_null();
    json_t *scales = json_array();
    for (int layer = 0; layer < c->layers; layer++) {
        json_t *of = json_object();
        for (int g = 0; g < GEMM_COUNT; g++)
            json_object_set_new(of, gemm_inputs[g], json_real((double)c->scale[layer][g]));
        json_array_append_new(scales, of);
    }
    return json_pack("{ss ss ss so so}", "path", c->path, "xxh3_128", c->hash, "model", c->model,
                     "sentences", c->sentences > 0 ? json_integer(c->sentences) : json_null(),
                     "scales", scales);
}

static json_t *begin(void)
{
    return json_pack("{ss ss}", "generator", MANIFEST_GENERATOR, "version", FUSEPLAN_VERSION);
}

json_t *manifest_of_program(const struct choosing *c, const struct standalone *p)
{
    json_t *manifest = begin();
    add_plan(c, &c->parts[0], manifest);
    add_rest(c, p, manifest);
    return manifest;
}

json_t *manifest_of_library(const struct choosing *c, const char *name, const struct standalone *p)
{
    json_t *manifest = begin(), *plans = json_array();
    for (int i = 0; i < c->count; i++) {
        json_t *plan = json_object();
        add_plan(c, &c->parts[i], plan);
        json_array_append_new(plans, plan);
    }
    json_object_set_new(manifest, "library", json_string(name));
    json_object_set_new(manifest, "plans", plans);
    json_object_set_new(manifest, "calibration", calibration_json(&c->calibration));
    add_rest(c, p, manifest);
    return manifest;
}
