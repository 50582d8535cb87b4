/* Masks in device memory. */
#include "bench/worker/device_cuda_int.h"

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
    SCOPED struct ranked *ranked = mem_alloc((size_t)n, sizeof(*ranked));
    int *order = mem_alloc((size_t)n, sizeof(*order));
    for (int i = 0; i < n; i++)
        ranked[i] = (struct ranked){i, b->start[i + 1] - b->start[i]};
    qsort(ranked, (size_t)n, sizeof(*ranked), by_entries);
    for (int i = 0; i < n; i++)
        order[i] = ranked[i].list;
    return order;
}

static int copy_mask(struct device *d, int kind, struct status *st)
{
    const struct block_lists *b = &workload_of_kind(d->w, kind)->blocks;
    size_t n = (size_t)b->lists * (size_t)b->blocks, entries = (size_t)b->start[n];
    SCOPED int *order = longest_first(b);
    struct cuda_array parts[] = {
        {b->start, (n + 1) * sizeof(int), 0},
        {b->full, n * sizeof(int), 0},
        {b->key_block, entries * sizeof(int), 0},
        {b->bits, entries * sizeof(int), 0},
        {b->words, (size_t)b->bit_blocks * MASK_BLOCK * sizeof(uint64_t), 0},
        {order, n * sizeof(int), 0},
    };
    if (cuda_copy_arrays(d, parts, ARRAY_LEN(parts), st) != 0)
        return -1;
    d->masks[kind] = (struct fp_blocks){.lists = b->lists,
                                        .blocks = b->blocks,
                                        .start = cuda_pointer(parts[0].at),
                                        .full = cuda_pointer(parts[1].at),
                                        .key_block = cuda_pointer(parts[2].at),
                                        .bits = cuda_pointer(parts[3].at),
                                        .words = cuda_pointer(parts[4].at),
                                        .order = cuda_pointer(parts[5].at)};
    return 0;
}

int cuda_copy_masks(struct device *d, struct status *st)
{
    int result = 0;
    for (int kind = 0; kind < workload_kinds(d->w) && result == 0; kind++)
        result = copy_mask(d, kind, st);
    return result;
}

static int copy_tiles(struct device *d, int kind, const struct query_tiles *q, struct fp_tiles *out,
                      struct status *st)
{
    size_t entry = (size_t)q->entry_ints * sizeof(int), count = (size_t)q->count;
    size_t rest = q->rest == NULL ? 0 : ((size_t)q->rest_count + TILE_HEAD) * entry;
    size_t places = (size_t)q->parts * (size_t)d->w->blocks.blocks * MASK_BLOCK * sizeof(int);
    struct cuda_array arrays[] = {
        {q->tile, count * TILE_INTS * sizeof(int), 0},
        {q->head, count * TILE_HEAD * entry, 0},
        {q->rest, rest, 0},
        {q->words, (size_t)q->word_blocks * MASK_BLOCK * sizeof(uint64_t), 0},
        {q->query_token, q->query_token == NULL ? 0 : places, 0},
        {q->key_token, q->key_token == NULL ? 0 : places, 0},
    };
    if (cuda_copy_arrays(d, arrays, ARRAY_LEN(arrays), st) != 0)
        return -1;
    *out = (struct fp_tiles){.count = q->count,
                             .parts = q->parts,
                             .tile = cuda_pointer(arrays[0].at),
                             .head = cuda_pointer(arrays[1].at),
                             .rest = cuda_pointer(arrays[2].at),
                             .words = q->words == NULL ? d->masks[kind].words
                                                       : cuda_pointer(arrays[3].at),
                             .query_token = cuda_pointer(arrays[4].at),
                             .key_token = cuda_pointer(arrays[5].at)};
    return 0;
}

int cuda_tiles_find(struct device *d, int kind, const struct tiling *t, struct fp_tiles *out,
                    struct status *st)
{
    for (int i = 0; i < d->tiles_count; i++) {
        const struct tiles *known = &d->tiles[i];
        if (known->kind == kind && known->tiling.rows == t->rows &&
            known->tiling.ordered == t->ordered && known->tiling.joined == t->joined &&
            known->tiling.packed == t->packed) {
            *out = known->at;
            return 0;
        }
    }
    SCOPED_BY(query_tiles_release) struct query_tiles q;
    query_tiles_build(workload_of_kind(d->w, kind), t, &q);
    if (copy_tiles(d, kind, &q, out, st) != 0)
        return -1;
    d->tiles = mem_resize(d->tiles, (size_t)d->tiles_count + 1, sizeof(*d->tiles));
    d->tiles[d->tiles_count++] = (struct tiles){kind, *t, *out};
    return 0;
}
