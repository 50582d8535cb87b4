#include "cmd/generate_int.h"

/* Null on a CPU and for a library's choice. */
static json_t *launch_json(const struct choice *c, const struct workload *w)
{
    struct cuda_launch l;
    if (c->impl->launch == NULL)
        return json_null();
    choice_launch(c, w, &l);
    return json_pack("{si si sb sb sb si sb sI sI sI}", "threads", l.threads, "shared_bytes",
                     l.shared_bytes, "cooperative", (int)l.cooperative, "persistent",
                     (int)l.persistent, "maps", (int)(l.maps[CUDA_MAP_WEIGHT].size[0] > 0),
                     "tile_rows", l.tiling.rows, "ordered", (int)l.tiling.ordered, "tiles",
                     (json_int_t)l.tiles, "sync_words", (json_int_t)l.sync_words, "workspace_bytes",
                     (json_int_t)l.workspace_bytes);
}

static json_t *segment_json(const struct choice *c, const struct workload *w, json_t *resources)
{
    struct buf symbol;
    buf_init(&symbol);
    choice_symbol(c, &symbol);
    json_t *object =
        json_pack("{s[ii] ss so ss so so so sO}", "ops", c->segment.first, c->segment.last,
                  "implementation", c->impl->name, "schedule", schedule_json(c), "function",
                  symbol.ptr, "flops", json_number(segment_flops(c->segment, w)), "bytes",
                  json_number(segment_bytes(c->segment, w)), "launch", launch_json(c, w),
                  "resources", resources != NULL ? resources : json_null());
    buf_release(&symbol);
    return object;
}

static json_t *segments_json(const struct standalone_spec *spec, const struct schedules *schedules)
{
    json_t *all = json_array();
    for (int i = 0; i < spec->candidate->count; i++)
        json_array_append_new(all, segment_json(&spec->candidate->choices[i], spec->workload,
                                                schedules->resources[i]));
    return all;
}

static json_t *archs_json(const struct arch_list *list)
{
    json_t *all = json_array();
    for (int i = 0; i < list->count; i++) {
        struct buf name;
        buf_init(&name);
        arch_name(list->arch[i], &name);
        json_array_append_new(all, json_string(name.ptr));
        buf_release(&name);
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

json_t *manifest_json(const struct standalone_spec *spec, const struct schedules *schedules,
                      const struct standalone *p)
{
    json_t *manifest =
        json_pack("{ss ss si so so so so}", "generator", MANIFEST_GENERATOR, "version",
                  FUSEPLAN_VERSION, "value", (int)plan_value(spec->candidate->plan), "workload",
                  workload_json(spec->workload, spec->target.kind), "measured_on",
                  schedules->device != NULL ? json_string(schedules->device) : json_null(),
                  "segments", segments_json(spec, schedules), "files", files_json(p));
    if (spec->archs.count > 0)
        json_object_set_new(manifest, "architectures", archs_json(&spec->archs));
    return manifest;
}
