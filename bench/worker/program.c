#include "bench/worker/worker_int.h"

#include <search.h>

/* ---- choices ------------------------------------------------------------------------------------
 *
 * Plans share segments, so each segment's function is loaded only once. */

struct loaded { /* owned */
    char *path;
    struct function *function;
};

static int by_path(const void *a, const void *b)
{
    return strcmp(((const struct loaded *)a)->path, ((const struct loaded *)b)->path);
}

static int load(struct worker *k, struct part *part, const char *path, struct status *st)
{
    struct loaded wanted = {.path = (char *)(uintptr_t)path};
    struct loaded *const *known = tfind(&wanted, &k->loaded, by_path);
    if (known != NULL) {
        part->function = (*known)->function;
        return 0;
    }
    worker_doing(k, "loading %s", part->name);
    SCOPED_BUF symbol = BUF_INIT;
    choice_symbol(&part->choice, &symbol);
    struct function *function;
    int result = k->ops->load(k->device, path, symbol.ptr, &function, st);
    if (result != 0)
        return status_prefix(st, "%s", part->name);
    struct loaded *kept = mem_alloc(1, sizeof(*kept));
    *kept = (struct loaded){mem_strdup(path), function};
    mem_checked(tsearch(kept, &k->loaded, by_path));
    part->function = function;
    return 0;
}

static void free_loaded(void *loaded)
{
    struct loaded *l = loaded;
    free(l->path);
    free(l->function);
    free(l);
}

void program_forget(struct worker *k)
{
    tdestroy(k->loaded, free_loaded);
    k->loaded = NULL;
}

static int load_part(struct worker *k, const json_t *message, struct part *out, struct status *st)
{
    const char *path = json_string_value(json_object_get(message, "path"));
    const char *verdict = json_string_value(json_object_get(message, "verdict"));
    const char *right = json_string_value(json_object_get(message, "right"));
    struct choice c;
    if (message_to_choice(message, k->target, k->w.chain, &c, st) != 0)
        return -1;
    struct buf name = BUF_INIT;
    choice_name(&c, &name);
    *out = (struct part){.choice = c,
                         .name = buf_detach(&name),
                         .tensors = choice_tensors(&c) | segment_inputs(c.chain, c.segment),
                         .verdict = verdict != NULL ? mem_strdup(verdict) : NULL,
                         .verified =
                             verdict == NULL || json_is_true(json_object_get(message, "verified")),
                         .recalled = true};
    snprintf(out->right, sizeof(out->right), "%s", right != NULL ? right : "");
    choice_e4m3(&c, &out->e4m3);
    return c.impl->library ? 0 : load(k, out, path != NULL ? path : "", st);
}

/* ---- launches -------------------------------------------------------------------------------- */

/* A library stores columns where they stand. */
static int get_weight(struct tensors *k, const struct part *part, int layer, struct launch *out,
                      struct status *st)
{
    const int gemm = part->e4m3.in;
    if (!part->choice.impl->library || part->e4m3.out < 0)
        return e4m3_get_weight(k, layer, gemm, &out->e4m3.weight, st);
    struct cuda_product p;
    choice_product(&part->choice, &p);
    return e4m3_get_placed(k, layer, gemm, &out->e4m3.weight, &out->weight[p.bias], st);
}

/* An input has the scale of the layer whose tensors these are. */
static int launch_e4m3(struct tensors *k, const struct part *part, int tensors_of, int weights_of,
                       struct launch *launch, struct status *st)
{
    const int in = part->e4m3.in, written = part->e4m3.out;
    struct launch_e4m3 *out = &launch->e4m3;
    *out = (struct launch_e4m3){.alpha = 1, .out_scale = 1};
    if (in >= 0) {
        if (e4m3_get(k, tensors_of, e4m3_input(k->w->chain, in), &out->in, st) != 0 ||
            get_weight(k, part, weights_of, launch, st) != 0)
            return -1;
        out->alpha = k->e4m3.scales[tensors_of].in[in] * k->e4m3.scales[weights_of].weight[in];
    }
    if (written >= 0) {
        if (e4m3_get(k, tensors_of, TENSOR_OF(part->choice.segment.last), &out->out, st) != 0)
            return -1;
        out->out_scale = e4m3_out_scale(k, tensors_of, written);
    }
    return 0;
}

int program_launch(struct worker *k, const struct part *part, int tensors_of, int weights_of,
                   struct launch *out, struct status *st)
{
    *out = (struct launch){.function = part->function,
                           .choice = &part->choice,
                           .kind = layer_kind(&k->w, weights_of),
                           .packed = k->tensors.packed};
    for (int t = 0; t < TENSOR_COUNT; t++)
        if ((part->tensors >> t & 1) != 0 &&
            tensors_get(&k->tensors, tensors_of, t, &out->tensor[t], st) != 0)
            return -1;
    uint32_t used = segment_weights(k->w.chain, part->choice.segment);
    for (int i = 0; i < WEIGHT_MAX; i++)
        if ((used >> i & 1) != 0)
            out->weight[i] = tensors_weight(&k->tensors, weights_of, i);
    return launch_e4m3(&k->tensors, part, tensors_of, weights_of, out, st);
}

/* Alone, a segment reads the same tensors in every layer. */
static int prepare(struct worker *k, struct program *p, struct status *st)
{
    size_t total = (size_t)p->layers * (size_t)p->part_count;
    SCOPED struct launch *launches = mem_alloc(total, sizeof(*launches));
    int result = 0;
    k->tensors.packed = p->packed;
    for (size_t i = 0; i < total && result == 0; i++) {
        int layer = (int)(i / (size_t)p->part_count);
        result = program_launch(k, &p->parts[i % (size_t)p->part_count], p->alone ? 0 : layer,
                                layer, &launches[i], st);
    }
    if (result == 0)
        result = k->ops->prepare(k->device, launches, (int)total, &p->replay, st);
    return result;
}

int program_load(struct worker *k, const json_t *candidate, int layers, struct program *out,
                 struct status *st)
{
    const json_t *choices = json_object_get(candidate, "choices");
    *out = (struct program){.layers = layers,
                            .look_s = INFINITY,
                            .tolerance = dtypes[k->w.dtype].tolerance,
                            .alone = json_is_true(json_object_get(candidate, "alone")),
                            .packed = json_is_true(json_object_get(candidate, "packed"))};
    out->part_count = (int)json_array_size(choices);
    for (int i = 0; i < out->part_count; i++)
        if (load_part(k, json_array_get(choices, (size_t)i), &out->parts[i], st) != 0)
            return -1;
    for (int i = 0; i < out->part_count; i++)
        out->precision |= out->parts[i].choice.schedule.precision;
    if (out->precision != 0) {
        worker_need_reference(k, &k->reference, workload_kinds(&k->w), false);
        e4m3_find_scales(&k->tensors, &k->reference);
    }
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

static void fill(struct worker *k, int t, int layer)
{
    int64_t columns = tensor_row_columns(&k->w, t);
    SCOPED float *room = NULL; /* the first piece is the largest */
    for (struct rows rows = {0, 0}; tensors_next_rows(&k->tensors, t, &rows);) {
        if (room == NULL)
            room = mem_alloc((size_t)(rows.count * columns), sizeof(*room));
        tensors_fill(&k->tensors, layer, t, rows,
                     oracle_results_rows(&k->reference.layer[layer], t, rows, room));
    }
}

void program_feed(struct worker *k, struct segment s, int layer)
{
    uint32_t inputs = segment_inputs(k->w.chain, s);
    for (int t = 0; t < TENSOR_COUNT; t++) {
        if ((inputs >> t & 1) == 0)
            continue;
        if ((chain_inputs(k->w.chain) >> t & 1) != 0) {
            tensors_feed(&k->tensors, layer, t, &k->reference.in[layer]);
        } else if (layer > 0) {
            fill(k, t, layer);
        } else if (!tensors_recall(&k->tensors, 0, t)) {
            fill(k, t, 0);
            tensors_keep(&k->tensors, 0, t);
        }
    }
}

void program_feed_part(struct worker *k, const struct part *part, int layer)
{
    const int gemm = part->e4m3.in, t = gemm >= 0 ? e4m3_input(k->w.chain, gemm) : TENSOR_NONE;
    program_feed(k, part->choice.segment, layer);
    if (gemm < 0)
        return;
    const bool given = (chain_inputs(k->w.chain) >> t & 1) != 0;
    e4m3_fill(&k->tensors, layer, t, k->tensors.e4m3.scales[layer].in[gemm],
              given ? k->reference.in[layer].tensor[t] : k->reference.layer[layer].tensor[t]);
}
