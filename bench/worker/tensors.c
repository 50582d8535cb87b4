#include "bench/worker/worker_int.h"

/* The layer whose weight a layer reads: of a table the first of its kind. */
static int owner(const struct tensors *k, int layer, int id)
{
    return k->w->chain->weights[id].table ? layer_kind(k->w, layer) : layer;
}

/* What a chain lacks takes no memory. */
static int alloc_weight(struct tensors *k, int layer, int id, struct status *st)
{
    const int64_t bytes = (int64_t)weight_bytes(id, k->w);
    if (bytes == 0 || owner(k, layer, id) != layer)
        return 0;
    return k->ops->alloc(k->device, bytes, &k->weight[layer][id], st);
}

/* Allocates what every plan needs first, so that tensors of some plans cannot take its memory. */
static int reserve(struct tensors *k, struct status *st)
{
    const struct chain *c = k->w->chain;
    void *ignored;
    int result = 0;
    for (int i = 0; i < c->carried_count && result == 0; i++)
        result = tensors_get(k, 0, c->carried[i].to, &ignored, st);
    for (int i = 0; i < k->w->layers * c->carried_count && result == 0; i++)
        result = tensors_get(k, i / c->carried_count, c->carried[i % c->carried_count].from,
                             &ignored, st);
    for (int i = 0; i < k->w->layers * WEIGHT_MAX && result == 0; i++)
        result = alloc_weight(k, i / WEIGHT_MAX, i % WEIGHT_MAX, st);
    return result;
}

int tensors_init(struct tensors *k, const struct workload *w, const struct device_ops *target,
                 struct device *d, struct inputs inputs, struct status *st)
{
    *k = (struct tensors){.w = w, .ops = target, .device = d, .inputs = inputs};
    k->weight = mem_alloc((size_t)w->layers, sizeof(*k->weight));
    k->drawn = mem_alloc((size_t)w->layers, sizeof(*k->drawn));
    return reserve(k, st);
}

void tensors_release(struct tensors *k)
{
    if (k->ops == NULL)
        return;
    tensors_trim(k, 0);
    tensors_forget(k);
    e4m3_release(k);
    for (int l = 0; l < k->w->layers; l++)
        for (int i = 0; i < WEIGHT_MAX; i++)
            k->ops->free(k->device, k->weight[l][i]);
    for (int i = 0; i < 2 * TENSOR_COUNT; i++) {
        k->ops->free(k->device, k->first[i / TENSOR_COUNT][i % TENSOR_COUNT]);
        k->ops->free(k->device, k->flow[i / TENSOR_COUNT][i % TENSOR_COUNT]);
    }
    free(k->weight);
    free(k->drawn);
    free(k->values);
    free(k->padded);
    *k = (struct tensors){0};
}

uint32_t tensors_held(const struct tensors *k)
{
    uint32_t set = 0;
    for (int t = 0; t < TENSOR_COUNT; t++)
        set |= k->tensor[t] != NULL ? SET_OF(t) : 0;
    return set;
}

void tensors_trim(struct tensors *k, uint32_t keep)
{
    for (int t = 0; t < TENSOR_COUNT; t++) {
        if ((keep >> t & 1) != 0)
            continue;
        k->ops->free(k->device, k->tensor[t]);
        k->tensor[t] = NULL;
    }
    if (keep == 0)
        e4m3_trim(k);
}

/* Where the pointer to a layer's tensor is. */
static void **buffer(struct tensors *k, int layer, int t)
{
    const struct chain *c = k->w->chain;
    for (int i = 0; i < c->carried_count; i++) {
        if (c->carried[i].from == t)
            return &k->flow[layer % 2][c->carried[i].to];
        if (c->carried[i].to == t)
            return layer == 0 ? &k->first[k->packed][t] : &k->flow[(layer - 1) % 2][t];
    }
    return &k->tensor[t];
}

static int64_t tensor_size(const struct tensors *k, int t)
{
    return tensor_elements(t, k->w) * dtypes[k->w->dtype].bytes;
}

int tensors_get(struct tensors *k, int layer, int t, void **out, struct status *st)
{
    void **memory = buffer(k, layer, t);
    struct status lacks = STATUS_INIT;
    int result = 0;
    if (*memory == NULL && k->ops->alloc(k->device, tensor_size(k, t), memory, &lacks) != 0)
        result = tensors_forget(k) ? k->ops->alloc(k->device, tensor_size(k, t), memory, st)
                                   : status_set(st, lacks.code, "%s", lacks.message);
    *out = *memory;
    return result;
}

void *tensors_weight(struct tensors *k, int layer, int id)
{
    const bool table = k->w->chain->weights[id].table;
    layer = owner(k, layer, id);
    void *memory = k->weight[layer][id];
    if (!k->drawn[layer][id]) {
        int64_t elements = weight_elements(id, k->w);
        SCOPED float *values = mem_alloc((size_t)elements, sizeof(*values));
        inputs_weight(k->w, k->inputs, layer, id, values);
        k->ops->upload(k->device, memory, table ? DTYPE_FP32 : k->w->dtype, values, elements);
        k->drawn[layer][id] = true;
    }
    return memory;
}

void tensors_poison(struct tensors *k, int layer, uint32_t set)
{
    for (int t = 0; t < TENSOR_COUNT; t++)
        if ((set >> t & 1) != 0)
            k->ops->poison(k->device, *buffer(k, layer, t), tensor_elements(t, k->w));
}

bool tensors_next_rows(const struct tensors *k, int t, struct rows *rows)
{
    enum { PIECE_BYTES = 32 << 20 };
    int64_t columns = tensor_row_columns(k->w, t), sequence = k->w->seq_len;
    int64_t left = tensor_elements(t, k->w) / columns - (rows->first + rows->count);
    int64_t fit = PIECE_BYTES / (columns * dtypes[k->w->dtype].bytes);
    rows->first += rows->count;
    if (fit >= sequence) {
        rows->count = fit / sequence * sequence;
    } else {
        int64_t in_sequence = sequence - rows->first % sequence;
        rows->count = fit < HASHED_ROWS ? HASHED_ROWS : fit / HASHED_ROWS * HASHED_ROWS;
        rows->count = rows->count < in_sequence ? rows->count : in_sequence;
    }
    rows->count = rows->count < left ? rows->count : left;
    return rows->count > 0;
}

/* Whether rows of a tensor lie packed. */
static bool is_packed(const struct tensors *k, int t)
{
    return k->packed && k->w->lengths != NULL && tensor_layout(k->w->chain, t) == LAYOUT_TOKENS;
}

/* How many rows before row `row` of (B,S) are real. */
static int64_t real_rows(const struct tensors *k, int64_t row)
{
    const struct workload *w = k->w;
    int64_t sequence = row / w->seq_len, real = 0;
    for (int b = 0; b < sequence; b++)
        real += w->lengths[b];
    int64_t within = row % w->seq_len;
    if (within > 0)
        real += within < w->lengths[sequence] ? within : w->lengths[sequence];
    return real;
}

/* Where a row of tensor t of a layer lies on the device. */
static void *row_at(struct tensors *k, int layer, int t, int64_t row)
{
    return (char *)*buffer(k, layer, t) +
           row * tensor_row_columns(k->w, t) * dtypes[k->w->dtype].bytes;
}

/* Copies packed rows, the real ones of `rows`, to where these lie with padding. */
static void spread(const struct tensors *k, struct rows rows, size_t row_bytes, const char *packed,
                   char *padded)
{
    for (int64_t r = rows.first; r < rows.first + rows.count; r++)
        if (r % k->w->seq_len < k->w->lengths[r / k->w->seq_len]) {
            memcpy(padded + (size_t)(r - rows.first) * row_bytes, packed, row_bytes);
            packed += row_bytes;
        }
}

const void *tensors_view(struct tensors *k, int layer, int t, struct rows rows)
{
    if (is_packed(k, t)) {
        int64_t columns = tensor_row_columns(k->w, t), first = real_rows(k, rows.first);
        int64_t count = real_rows(k, rows.first + rows.count) - first;
        size_t row_bytes = (size_t)columns * (size_t)dtypes[k->w->dtype].bytes;
        k->padded = mem_resize(k->padded, (size_t)rows.count, row_bytes);
        if (count > 0)
            spread(k, rows, row_bytes,
                   k->ops->view(k->device, row_at(k, layer, t, first), count * columns), k->padded);
        return k->padded;
    }
    return k->ops->view(k->device, row_at(k, layer, t, rows.first),
                        rows.count * tensor_row_columns(k->w, t));
}

bool tensors_hash(struct tensors *k, int layer, int t, uint64_t *out)
{
    const struct workload *w = k->w;
    int64_t bytes = tensor_size(k, t);
    if (k->ops->hash == NULL || (w->lengths != NULL && !is_packed(k, t)))
        return false;
    if (is_packed(k, t))
        bytes = workload_tokens(w) * tensor_row_columns(w, t) * dtypes[w->dtype].bytes;
    return k->ops->hash(k->device, *buffer(k, layer, t), bytes, out);
}

bool tensors_touch(struct tensors *k)
{
    uint64_t ignored;
    return k->ops->hash != NULL &&
           k->ops->hash(k->device, k->first[0][TENSOR_X], tensor_size(k, TENSOR_X), &ignored);
}

float *tensors_read(struct tensors *k, int layer, int t)
{
    int64_t columns = tensor_row_columns(k->w, t);
    k->values = mem_resize(k->values, (size_t)tensor_elements(t, k->w), sizeof(*k->values));
    for (struct rows rows = {0, 0}; tensors_next_rows(k, t, &rows);)
        elements_unpack(k->w->dtype, tensors_view(k, layer, t, rows), rows.count * columns,
                        k->values + rows.first * columns);
    return k->values;
}

/* Fills the real ones of `rows`. */
static void fill_packed(struct tensors *k, int layer, int t, struct rows rows, const float *values)
{
    int64_t columns = tensor_row_columns(k->w, t), first = real_rows(k, rows.first), count = 0;
    SCOPED float *packed = mem_alloc((size_t)(rows.count * columns), sizeof(*packed));
    for (int64_t r = rows.first; r < rows.first + rows.count; r++)
        if (r % k->w->seq_len < k->w->lengths[r / k->w->seq_len])
            memcpy(packed + count++ * columns, values + (r - rows.first) * columns,
                   (size_t)columns * sizeof(*packed));
    if (count > 0)
        k->ops->upload(k->device, row_at(k, layer, t, first), k->w->dtype, packed, count * columns);
}

void tensors_fill(struct tensors *k, int layer, int t, struct rows rows, const float *values)
{
    if (is_packed(k, t)) {
        fill_packed(k, layer, t, rows, values);
        return;
    }
    k->ops->upload(k->device, row_at(k, layer, t, rows.first), k->w->dtype, values,
                   rows.count * tensor_row_columns(k->w, t));
}

void tensors_feed(struct tensors *k, int layer, int t, const struct flow *in)
{
    if (layer == 0 && (k->fed[k->packed] >> t & 1) != 0)
        return;
    for (struct rows rows = {0, 0}; tensors_next_rows(k, t, &rows);)
        tensors_fill(k, layer, t, rows, in->tensor[t] + rows.first * workload_hidden(k->w));
    k->fed[k->packed] |= layer == 0 ? SET_OF(t) : 0;
}

void tensors_keep(struct tensors *k, int layer, int t)
{
    struct status lacks = STATUS_INIT; /* then the next one is uploaded too */
    void **kept = &k->kept[k->packed][t];
    if (k->ops->copy == NULL || *kept != NULL)
        return;
    if (k->ops->alloc(k->device, tensor_size(k, t), kept, &lacks) == 0)
        k->ops->copy(k->device, *kept, *buffer(k, layer, t), tensor_elements(t, k->w));
}

bool tensors_recall(struct tensors *k, int layer, int t)
{
    const void *kept = k->kept[k->packed][t];
    if (kept != NULL)
        k->ops->copy(k->device, *buffer(k, layer, t), kept, tensor_elements(t, k->w));
    return kept != NULL;
}

bool tensors_forget(struct tensors *k)
{
    bool any = false;
    for (int i = 0; i < 2 * TENSOR_COUNT; i++) {
        void **kept = &k->kept[i / TENSOR_COUNT][i % TENSOR_COUNT];
        any = any || *kept != NULL;
        k->ops->free(k->device, *kept);
        *kept = NULL;
    }
    return any;
}

void tensors_refill(struct tensors *k, const struct flow *in)
{
    tensors_forget(k);
    const bool packed = k->packed;
    for (int i = 0; i < 2; i++) {
        k->packed = i == 1;
        k->fed[i] = 0;
        for (int t = 0; t < TENSOR_COUNT; t++)
            if (k->first[i][t] != NULL)
                tensors_feed(k, 0, t, in);
    }
    k->packed = packed;
    for (int l = 0; l < k->w->layers; l++)
        for (int i = 0; i < WEIGHT_MAX; i++)
            if (k->drawn[l][i]) {
                k->drawn[l][i] = false;
                tensors_weight(k, l, i);
            }
    e4m3_refill(k, in);
}
