#include "bench/worker/worker_int.h"

#include <search.h>
#include <stdlib.h>
#include <string.h>

/* ---- functions ----------------------------------------------------------------------------------
 * Each is loaded once, for plans share segments. */

struct loaded {
    char *path; /* owned */
    const struct function *function;
};

static int by_path(const void *a, const void *b)
{
    return strcmp(((const struct loaded *)a)->path, ((const struct loaded *)b)->path);
}

static int load(struct worker *k, const char *name, const char *path, const char *symbol,
                const struct function **out, struct status *st)
{
    struct loaded wanted = {.path = (char *)(uintptr_t)path};
    struct loaded *const *known = tfind(&wanted, &k->loaded, by_path);
    if (known != NULL) {
        *out = (*known)->function;
        return 0;
    }
    worker_doing(k, "loading %s", name);
    if (k->ops->load(k->device, path, symbol, out, st) != 0)
        return status_prefix(st, "%s", name);
    struct loaded *kept = mem_alloc(1, sizeof(*kept));
    *kept = (struct loaded){mem_strdup(path), *out};
    tsearch(kept, &k->loaded, by_path);
    return 0;
}

static void free_loaded(void *loaded)
{
    struct loaded *l = loaded;
    free(l->path);
    free(l);
}

void program_forget(struct worker *k)
{
    tdestroy(k->loaded, free_loaded);
    k->loaded = NULL;
}

/* ---- launches -------------------------------------------------------------------------------- */

static int load_part(struct worker *k, const json_t *choice, struct part *out, struct status *st)
{
    json_error_t error;
    const char *name, *path, *symbol, *impl, *schedule, *verdict = NULL;
    int first, last, tensors;
    json_t *knobs;
    if (json_unpack_ex((json_t *)(uintptr_t)choice, &error, 0,
                       "{s:s, s:s, s:s, s:s, s:s, s:i, s:i, s:i, s:o, s?s}", "name", &name, "path",
                       &path, "symbol", &symbol, "impl", &impl, "schedule", &schedule, "first",
                       &first, "last", &last, "tensors", &tensors, "knobs", &knobs, "verdict",
                       &verdict) != 0)
        return status_set(st, STATUS_LAUNCH, "malformed choice: %s", error.text);
    *out = (struct part){
        .choice = {.segment = {(int8_t)first, (int8_t)last}, .impl = impl_find(k->target, impl)},
        .name = mem_strdup(name),
        .tensors = (uint16_t)tensors,
        .verdict = verdict != NULL ? mem_strdup(verdict) : NULL};
    for (size_t i = 0; i < KNOB_MAX; i++)
        out->knob[i] = (int)json_integer_value(json_array_get(knobs, i));
    if (out->choice.impl == NULL ||
        schedule_parse(out->choice.impl, schedule, &out->choice.schedule, st) != 0)
        return status_set(st, STATUS_LAUNCH, "unknown choice '%s %s'", impl, schedule);
    if (out->choice.impl->library)
        return 0;
    return load(k, name, path, symbol, &out->function, st);
}

int program_launch(struct worker *k, const struct part *part, int tensors_of, int weights_of,
                   struct launch *out, struct status *st)
{
    *out = (struct launch){.function = part->function, .choice = &part->choice};
    memcpy(out->knob, part->knob, sizeof(out->knob));
    for (int t = 0; t < TENSOR_COUNT; t++)
        if (part->tensors >> t & 1 &&
            bank_tensor(&k->bank, tensors_of, t, &out->tensor[t], st) != 0)
            return -1;
    uint16_t used = segment_weights(part->choice.segment);
    for (int i = 0; i < WEIGHT_COUNT; i++)
        if (used >> i & 1 &&
            bank_weight(&k->bank, weights_of, (enum weight_id)i, &out->weight[i], st) != 0)
            return -1;
    return 0;
}

/* Alone, a segment reads the same tensors in every layer. */
static int prepare(struct worker *k, struct program *p, struct status *st)
{
    size_t total = (size_t)p->layers * (size_t)p->part_count;
    struct launch *launches = mem_alloc(total, sizeof(*launches));
    int result = 0;
    for (size_t i = 0; i < total && result == 0; i++) {
        int layer = (int)(i / (size_t)p->part_count);
        result = program_launch(k, &p->parts[i % (size_t)p->part_count], p->alone ? 0 : layer,
                                layer, &launches[i], st);
    }
    if (result == 0)
        result = k->ops->prepare(k->device, launches, (int)total, &p->replay, st);
    free(launches);
    return result;
}

int program_load(struct worker *k, const json_t *candidate, int layers, struct program *out,
                 struct status *st)
{
    const json_t *choices = json_object_get(candidate, "choices");
    *out = (struct program){.layers = layers,
                            .tolerance = dtypes[k->w.dtype].tolerance,
                            .alone = json_is_true(json_object_get(candidate, "alone")),
                            .part_count = (int)json_array_size(choices)};
    for (int i = 0; i < out->part_count; i++)
        if (load_part(k, json_array_get(choices, (size_t)i), &out->parts[i], st) != 0)
            return -1;
    return prepare(k, out, st);
}

void program_release(struct worker *k, struct program *p)
{
    for (int i = 0; i < p->part_count; i++) {
        free(p->parts[i].name);
        free(p->parts[i].verdict);
    }
    k->ops->release(p->replay);
    *p = (struct program){0};
}

int program_feed(struct worker *k, struct segment s, struct status *st)
{
    uint16_t inputs = segment_inputs(s);
    int result = 0;
    for (int t = 0; t < TENSOR_COUNT && result == 0; t++) {
        if (!(inputs >> t & 1))
            continue;
        int64_t n = tensor_elements(t, &k->w);
        void *memory;
        result = bank_tensor(&k->bank, 0, t, &memory, st);
        if (result != 0)
            break;
        float *values = mem_alloc((size_t)n, sizeof(*values));
        for (int64_t i = 0; i < n; i++)
            values[i] = (float)k->reference.first.tensor[t][i];
        result = k->ops->upload(k->device, memory, values, n, st);
        free(values);
    }
    return result;
}
