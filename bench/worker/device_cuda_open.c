#include "bench/worker/device_cuda_int.h"

#include <stdlib.h>

/* Counts the bank's weights and tensors, except those of (B,H,S,S): a plan that keeps scores in
 * memory and finds none is unfit by itself. */
static int check_memory(struct device *d, struct status *st)
{
    double need = 0;
    uint64_t have = cuda_available(d);
    char need_text[32], have_text[32];
    for (int t = 0; t < TENSOR_COUNT; t++)
        if (tensor_layout(t) != LAYOUT_SCORES)
            need += (double)tensor_elements(t, d->w) * d->element_bytes;
    need += 2.0 * (double)tensor_elements(TENSOR_X, d->w) * d->element_bytes;
    for (int i = 0; i < WEIGHT_COUNT; i++)
        need += (double)weight_elements((enum weight_id)i, d->w) * d->element_bytes * d->w->layers;
    if (need <= (double)have)
        return 0;
    return status_set(st, STATUS_ENVIRONMENT,
                      "this workload needs %s of GPU memory, and %s is available; choose a smaller "
                      "batch, sequence length or number of layers",
                      number_bytes((uint64_t)need, need_text), number_bytes(have, have_text));
}

static int copy_to_device(struct device *d, const void *from, size_t bytes, unsigned long long *out,
                          struct status *st)
{
    *out = 0;
    if (bytes == 0)
        return 0;
    if (cuda_take(d, (int64_t)bytes, out, st) != 0)
        return -1;
    cuda_must(d, d->cu->cuMemcpyHtoDAsync(*out, from, bytes, d->stream), "copying to the GPU");
    cuda_finish(d, "copying to the GPU");
    return 0;
}

struct ranked {
    int list, entries;
};

static int by_entries(const void *a, const void *b)
{
    const struct ranked *x = a, *y = b;
    return x->entries != y->entries ? y->entries - x->entries : x->list - y->list;
}

/* Orders query blocks by their number of key blocks, the most first: a long one that starts last
 * would keep the GPU waiting. */
static int *longest_first(const struct block_lists *b)
{
    int n = b->lists * b->blocks;
    struct ranked *ranked = mem_alloc((size_t)n, sizeof(*ranked));
    int *order = mem_alloc((size_t)n, sizeof(*order));
    for (int i = 0; i < n; i++)
        ranked[i] = (struct ranked){i, b->start[i + 1] - b->start[i]};
    qsort(ranked, (size_t)n, sizeof(*ranked), by_entries);
    for (int i = 0; i < n; i++)
        order[i] = ranked[i].list;
    free(ranked);
    return order;
}

static int copy_mask(struct device *d, struct status *st)
{
    const struct block_lists *b = &d->w->blocks;
    size_t n = (size_t)b->lists * (size_t)b->blocks, entries = (size_t)b->start[n];
    int *order = longest_first(b);
    struct {
        const void *from;
        size_t bytes;
        unsigned long long at;
    } parts[] = {
        {b->start, (n + 1) * sizeof(int), 0},
        {b->full, n * sizeof(int), 0},
        {b->key_block, entries * sizeof(int), 0},
        {b->bits, entries * sizeof(int), 0},
        {b->words, (size_t)b->bit_blocks * MASK_BLOCK * sizeof(uint64_t), 0},
        {order, n * sizeof(int), 0},
    };
    int result = 0;
    for (size_t i = 0; i < ARRAY_LEN(parts) && result == 0; i++)
        result = copy_to_device(d, parts[i].from, parts[i].bytes, &parts[i].at, st);
    d->common.mask = (struct fp_blocks){.lists = b->lists,
                                        .blocks = b->blocks,
                                        .start = cuda_pointer(parts[0].at),
                                        .full = cuda_pointer(parts[1].at),
                                        .key_block = cuda_pointer(parts[2].at),
                                        .bits = cuda_pointer(parts[3].at),
                                        .words = cuda_pointer(parts[4].at),
                                        .order = cuda_pointer(parts[5].at)};
    free(order);
    return result;
}

int cuda_tiles_find(struct device *d, int rows, struct fp_tiles *out, struct status *st)
{
    *out = d->tiles[rows];
    if (out->tile != NULL)
        return 0;
    struct query_tiles q;
    query_tiles_build(&d->w->blocks, rows, &q);
    size_t entry = (size_t)q.entry_ints * sizeof(int), count = (size_t)q.count;
    unsigned long long tile, head, rest;
    int result = copy_to_device(d, q.tile, count * 4 * sizeof(int), &tile, st);
    if (result == 0)
        result = copy_to_device(d, q.head, count * TILE_HEAD * entry, &head, st);
    if (result == 0)
        result = copy_to_device(d, q.rest, ((size_t)q.rest_count + TILE_HEAD) * entry, &rest, st);
    if (result == 0)
        *out = d->tiles[rows] = (struct fp_tiles){
            .tile = cuda_pointer(tile), .head = cuda_pointer(head), .rest = cuda_pointer(rest)};
    query_tiles_release(&q);
    return result;
}

/* With lengths, kernels compute only the rows of this list: those of real tokens. */
static int copy_lengths(struct device *d, struct status *st)
{
    const struct workload *w = d->w;
    unsigned long long rows_at, lengths_at;
    d->common.tokens = (int)workload_tokens(w);
    if (w->lengths == NULL)
        return 0;
    int *rows = mem_alloc((size_t)d->common.tokens, sizeof(*rows)), n = 0;
    for (int b = 0; b < w->batch; b++)
        for (int s = 0; s < w->lengths[b]; s++)
            rows[n++] = b * w->seq_len + s;
    int result = copy_to_device(d, rows, (size_t)n * sizeof(*rows), &rows_at, st);
    if (result == 0)
        result =
            copy_to_device(d, w->lengths, (size_t)w->batch * sizeof(*w->lengths), &lengths_at, st);
    if (result == 0) {
        d->common.token_row = cuda_pointer(rows_at);
        d->common.lengths = cuda_pointer(lengths_at);
    }
    free(rows);
    return result;
}

static int start_device(struct device *d, int index, struct status *st)
{
    const struct cuda_driver *cu = d->cu;
    struct CUctx_st *context;
    char uuid[64];
    static const char what[] = "cannot open the GPU";
    if (cuda_check(cu, cu->cuDeviceGet(&d->ordinal, index), STATUS_ENVIRONMENT, what, st) != 0 ||
        cuda_check(cu, cu->cuDevicePrimaryCtxRetain(&context, d->ordinal), STATUS_ENVIRONMENT, what,
                   st) != 0 ||
        cuda_check(cu, cu->cuCtxSetCurrent(context), STATUS_ENVIRONMENT, what, st) != 0)
        return -1;
    const struct {
        int attribute, *value;
    } wanted[] = {
        {CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT, &d->units},
        {CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_MULTIPROCESSOR, &d->unit_threads},
        {CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE, &d->cache_bytes},
        {CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN, &d->shared_bytes},
    };
    for (size_t i = 0; i < ARRAY_LEN(wanted); i++)
        cuda_must(d, cu->cuDeviceGetAttribute(wanted[i].value, wanted[i].attribute, d->ordinal),
                  what);
    cuda_must(d, cu->cuStreamCreate(&d->stream, CU_STREAM_NON_BLOCKING), what);
    for (size_t i = 0; i < ARRAY_LEN(d->events); i++)
        cuda_must(d, cu->cuEventCreate(&d->events[i], 0), what);
    cuda_uuid(cu, d->ordinal, uuid);
    d->nvml = nvml_open(uuid);
    return 0;
}

void cuda_close(struct device *d)
{
    if (d == NULL)
        return;
    cuda_stage_release(d);
    matmuls_release(d);
    nvml_close(d->nvml);
    free(d); /* the context ends with its process */
}

int cuda_open(int index, const struct workload *w, struct device **out, struct status *st)
{
    struct device *d = mem_alloc(1, sizeof(*d));
    d->w = w;
    d->element_bytes = dtypes[w->dtype].bytes;
    d->common = (struct fp_args){.batch = w->batch,
                                 .seq_len = w->seq_len,
                                 .heads = w->heads,
                                 .head_size = w->head_size,
                                 .ffn = w->ffn,
                                 .eps = (float)w->eps};
    *out = NULL;
    if (cuda_driver_open(&d->cu, st) != 0 || start_device(d, index, st) != 0 ||
        check_memory(d, st) != 0 || copy_mask(d, st) != 0 || copy_lengths(d, st) != 0) {
        cuda_close(d);
        return -1;
    }
    *out = d;
    return 0;
}
