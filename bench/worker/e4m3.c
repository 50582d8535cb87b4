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
    e->placed = mem_alloc(layers, sizeof(*e->placed));
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

/* A GEMM's weight, and the bias behind it; columns: of its result. */
struct gemm {
    int weight, bias;
    int64_t inner, columns;
};

static struct gemm gemm_of(const struct workload *w, int gemm)
{
    const struct op *op = &w->chain->ops[chain_gemm(w->chain, gemm)];
    const int id = op->weight[ROLE_MATRIX];
    return (struct gemm){.weight = id,
                         .bias = op[1].weight[ROLE_BIAS],
                         .inner = dim_size(w->chain->weights[id].rows, w),
                         .columns = dim_size(w->chain->weights[id].cols, w)};
}

/* Behind the columns of a result in e4m3, where they lie, comes the bias in the same order. */
static void fill_placed(struct tensors *k, int layer, const struct gemm *g, const uint8_t *codes,
                        void *to)
{
    const int64_t n = g->columns, bytes = n * g->inner;
    SCOPED float *bias = mem_alloc((size_t)n, sizeof(*bias));
    SCOPED uint8_t *placed = mem_alloc((size_t)bytes + (size_t)n * sizeof(uint16_t), 1);
    inputs_weight(k->w, k->inputs, layer, g->bias, bias);
    for (int64_t c = 0; c < n; c++) {
        const int64_t place = e4m3_place(c);
        memcpy(placed + place * g->inner, codes + c * g->inner, (size_t)g->inner);
        elements_pack(k->w->dtype, &bias[c], 1, placed + bytes + 2 * place);
    }
    k->ops->write(k->device, to, placed, bytes + 2 * n);
}

/* Fills what there is of a GEMM's weight. */
static void fill_weight(struct tensors *k, int layer, int gemm)
{
    const struct gemm g = gemm_of(k->w, gemm);
    const int64_t n = g.inner * g.columns;
    void *weight = k->e4m3.weight[layer][gemm], *placed = k->e4m3.placed[layer][gemm];
    SCOPED float *values = mem_alloc((size_t)n, sizeof(*values));
    SCOPED uint8_t *codes = mem_alloc((size_t)n, 1);
    inputs_weight(k->w, k->inputs, layer, g.weight, values);
    const float scale = e4m3_weight_scale(values, n);
    e4m3_pack_weight(values, g.inner, g.columns, scale, codes);
    if (weight != NULL)
        k->ops->write(k->device, weight, codes, n);
    if (placed != NULL)
        fill_placed(k, layer, &g, codes, placed);
    k->e4m3.scales[layer].weight[gemm] = scale;
}

int e4m3_get_weight(struct tensors *k, int layer, int gemm, void **out, struct status *st)
{
    void **memory = &k->e4m3.weight[layer][gemm];
    if (*memory == NULL) {
        const struct gemm g = gemm_of(k->w, gemm);
        if (k->ops->alloc(k->device, g.inner * g.columns, memory, st) != 0)
            return -1;
        fill_weight(k, layer, gemm);
    }
    *out = *memory;
    return 0;
}

int e4m3_get_placed(struct tensors *k, int layer, int gemm, void **weight, void **bias,
                    struct status *st)
{
    void **memory = &k->e4m3.placed[layer][gemm];
    const struct gemm g = gemm_of(k->w, gemm);
    const int64_t bytes = g.inner * g.columns;
    if (*memory == NULL) {
        if (k->ops->alloc(k->device, bytes + 2 * g.columns, memory, st) != 0)
            return -1;
        fill_weight(k, layer, gemm);
    }
    *weight = *memory;
    *bias = (char *)*memory + bytes;
    return 0;
}

/* ---- rows ------------------------------------------------------------------------------------ */

/* Adjacent rows of (B,S) that the device holds: of packed ones, and of what is read, those of a
 * sequence's real tokens, else all; *at is the first of them on the device. */
static bool next_rows(const struct tensors *k, int64_t all, bool real, struct rows *rows,
                      int64_t *at)
{
    const struct workload *w = k->w;
    const bool apart = w->lengths != NULL && real;
    const int64_t next = rows->first + (apart && rows->count > 0 ? w->seq_len : rows->count);
    *at = apart && !k->packed ? next : *at + rows->count;
    *rows = (struct rows){next, next >= all ? 0 : apart ? w->lengths[next / w->seq_len] : all};
    return next < all;
}

void e4m3_fill(struct tensors *k, int layer, int t, float scale, const float *values)
{
    const int64_t columns = tensor_row_columns(k->w, t), all = tensor_elements(t, k->w) / columns;
    SCOPED uint8_t *codes = mem_alloc((size_t)(all * columns), 1);
    int64_t at = 0;
    for (struct rows rows = {0, 0}; next_rows(k, all, k->packed, &rows, &at);)
        e4m3_pack_rows(k->w->dtype, values + rows.first * columns, rows.count, columns, scale,
                       codes + at * columns);
    k->ops->write(k->device, *buffer(k, layer, t), codes,
                  (k->packed ? workload_tokens(k->w) : all) * columns);
}

const uint8_t *e4m3_read(struct tensors *k, int layer, int t)
{
    const int64_t columns = tensor_row_columns(k->w, t), all = tensor_elements(t, k->w) / columns;
    const uint8_t *codes = k->ops->view(k->device, *buffer(k, layer, t), halves(all * columns));
    int64_t at = 0;
    k->e4m3.codes = mem_resize(k->e4m3.codes, (size_t)all, (size_t)columns);
    if (k->w->lengths != NULL)
        memset(k->e4m3.codes, E4M3_NAN, (size_t)(all * columns));
    for (struct rows rows = {0, 0}; next_rows(k, all, true, &rows, &at);)
        e4m3_order_rows(codes + at * columns, rows.count, columns,
                        k->e4m3.codes + rows.first * columns);
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
            if (e->weight[l][g] != NULL || e->placed[l][g] != NULL)
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
        for (int g = 0; g < GEMM_COUNT; g++) {
            k->ops->free(k->device, e->weight[l][g]);
            k->ops->free(k->device, e->placed[l][g]);
        }
    free(e->weight);
    free(e->placed);
    free(e->scales);
    free(e->codes);
    *e = (struct e4m3_tensors){.scales = NULL};
}
