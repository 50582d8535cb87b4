/* Tensors and weights in e4m3, in the order in which kernels have them. */
#include "bench/worker/worker_int.h"

/* Devices count elements of a half type: two codes each. */
static int64_t halves(int64_t codes)
{
    return codes / 2;
}

/* Where the pointer to a layer's tensor is. */
static void **buffer(struct tensors *k, int layer, int t)
{
    struct e4m3_tensors *e = &k->e4m3;
    const struct chain *c = k->w->chain;
    for (int i = 0; i < c->carried_count; i++) {
        if (c->carried[i].from == t)
            return &e->flow[layer % 2];
        if (c->carried[i].to == t)
            return layer == 0 ? &e->first[k->packed] : &e->flow[(layer - 1) % 2];
    }
    return &e->tensor[t];
}

int e4m3_get(struct tensors *k, int layer, int t, void **out, struct status *st)
{
    void **memory = buffer(k, layer, t);
    int result = 0;
    if (*memory == NULL)
        result = k->ops->alloc(k->device, tensor_elements(t, k->w), memory, st);
    *out = *memory;
    return result;
}

void e4m3_poison(struct tensors *k, int layer, int t)
{
    k->ops->poison(k->device, *buffer(k, layer, t), halves(tensor_elements(t, k->w)));
}

/* ---- scales ---------------------------------------------------------------------------------- */

void e4m3_find_scales(struct tensors *k, const struct reference *r)
{
    const struct workload *w = k->w;
    struct e4m3_tensors *e = &k->e4m3;
    if (e->scales != NULL)
        return;
    const size_t layers = (size_t)w->layers;
    e->scales = mem_alloc(layers, sizeof(*e->scales));
    e->weight = mem_alloc(layers, sizeof(*e->weight));
    SCOPED float(*drawn)[GEMM_COUNT] = mem_alloc(layers, sizeof(*drawn));
    float(*scale)[GEMM_COUNT] = drawn;
    if (k->inputs.calibration != NULL)
        scale = k->inputs.calibration->scale;
    else
        scales_of_layer(w, &r->in[0], &r->layer[0], drawn);
    for (int l = 0; l < w->layers; l++)
        memcpy(e->scales[l].in, scale[l], sizeof(e->scales[l].in));
}

int e4m3_input(const struct chain *c, int gemm)
{
    return c->ops[chain_gemm(c, gemm)].input;
}

float e4m3_out_scale(const struct tensors *k, int layer, int gemm)
{
    const int t = e4m3_input(k->w->chain, gemm), last = k->w->layers - 1;
    const bool next = chain_handed_on_as(k->w->chain, t) != t && layer < last;
    return k->e4m3.scales[layer + next].in[gemm];
}

/* ---- weights --------------------------------------------------------------------------------- */

static void fill_weight(struct tensors *k, int layer, int gemm)
{
    const struct chain *c = k->w->chain;
    const int id = c->ops[chain_gemm(c, gemm)].weight[ROLE_MATRIX];
    const int64_t inner = dim_size(c->weights[id].rows, k->w),
                  columns = dim_size(c->weights[id].cols, k->w);
    SCOPED float *values = mem_alloc((size_t)(inner * columns), sizeof(*values));
    inputs_weight(k->w, k->inputs, layer, id, values);
    const float scale = e4m3_weight_scale(values, inner * columns);
    SCOPED uint8_t *codes = mem_alloc((size_t)(inner * columns), 1);
    e4m3_pack_weight(values, inner, columns, scale, codes);
    k->ops->write(k->device, k->e4m3.weight[layer][gemm], codes, inner * columns);
    k->e4m3.scales[layer].weight[gemm] = scale;
}

int e4m3_get_weight(struct tensors *k, int layer, int gemm, void **out, struct status *st)
{
    const struct chain *c = k->w->chain;
    void **memory = &k->e4m3.weight[layer][gemm];
    if (*memory == NULL) {
        const int id = c->ops[chain_gemm(c, gemm)].weight[ROLE_MATRIX];
        if (k->ops->alloc(k->device, weight_elements(id, k->w), memory, st) != 0)
            return -1;
        fill_weight(k, layer, gemm);
    }
    *out = *memory;
    return 0;
}

/* ---- rows ------------------------------------------------------------------------------------ */

/* Whether row `row` of (B,S) is of a real token. */
static bool is_real(const struct workload *w, int64_t row)
{
    return w->lengths == NULL || row % w->seq_len < w->lengths[row / w->seq_len];
}

void e4m3_fill(struct tensors *k, int layer, int t, float scale, const float *values)
{
    const int64_t columns = tensor_row_columns(k->w, t), rows = tensor_elements(t, k->w) / columns;
    SCOPED uint8_t *codes = mem_alloc((size_t)(rows * columns), 1);
    int64_t count = 0; /* rows of the device's tensor */
    for (int64_t row = 0; row < rows; row++) {
        if (k->packed && !is_real(k->w, row))
            continue;
        for (int64_t c = 0; c < columns; c++)
            codes[count * columns + e4m3_place(c)] =
                e4m3_pack(element_round(k->w->dtype, values[row * columns + c]) / scale);
        count++;
    }
    k->ops->write(k->device, *buffer(k, layer, t), codes, count * columns);
}

const uint8_t *e4m3_read(struct tensors *k, int layer, int t)
{
    const int64_t columns = tensor_row_columns(k->w, t), rows = tensor_elements(t, k->w) / columns;
    const uint8_t *codes = k->ops->view(k->device, *buffer(k, layer, t), halves(rows * columns));
    int64_t count = 0; /* rows of the device's tensor */
    k->e4m3.codes = mem_resize(k->e4m3.codes, (size_t)rows, (size_t)columns);
    for (int64_t row = 0; row < rows; row++) {
        const bool real = is_real(k->w, row);
        uint8_t *to = k->e4m3.codes + row * columns;
        memset(to, E4M3_NAN, (size_t)columns);
        for (int64_t c = 0; c < columns && real; c++)
            to[c] = codes[count * columns + e4m3_place(c)];
        count += real || !k->packed;
    }
    return k->e4m3.codes;
}

/* ---- lifetimes ------------------------------------------------------------------------------- */

void e4m3_refill(struct tensors *k, const struct flow *in)
{
    struct e4m3_tensors *e = &k->e4m3;
    const bool packed = k->packed;
    const int t = e4m3_input(k->w->chain, GEMM_QKV);
    for (int i = 0; i < 2; i++) {
        k->packed = i == 1;
        if (e->first[i] != NULL)
            e4m3_fill(k, 0, t, e->scales[0].in[GEMM_QKV], in->tensor[t]);
    }
    k->packed = packed;
    for (int l = 0; l < k->w->layers && e->weight != NULL; l++)
        for (int g = 0; g < GEMM_COUNT; g++)
            if (e->weight[l][g] != NULL)
                fill_weight(k, l, g);
}

void e4m3_trim(struct tensors *k)
{
    for (int t = 0; t < TENSOR_COUNT; t++) {
        k->ops->free(k->device, k->e4m3.tensor[t]);
        k->e4m3.tensor[t] = NULL;
    }
}

void e4m3_release(struct tensors *k)
{
    struct e4m3_tensors *e = &k->e4m3;
    e4m3_trim(k);
    for (int i = 0; i < 2; i++) {
        k->ops->free(k->device, e->first[i]);
        k->ops->free(k->device, e->flow[i]);
    }
    for (int l = 0; l < k->w->layers && e->weight != NULL; l++)
        for (int g = 0; g < GEMM_COUNT; g++)
            k->ops->free(k->device, e->weight[l][g]);
    free(e->weight);
    free(e->scales);
    free(e->codes);
    *e = (struct e4m3_tensors){.scales = NULL};
}
