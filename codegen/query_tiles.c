#include "codegen/codegen.h"

#include <stdlib.h>

struct tile_rank {
    int list, block, entries; /* block: the tile's first query block */
};

/* For each key block the words of the tile's query blocks: (blocks, rows). */
static void gather(const struct block_lists *l, const struct tile_rank *t, int rows, int *words)
{
    for (int i = 0; i < l->blocks * rows; i++)
        words[i] = TILE_SKIP;
    for (int r = 0; r < rows && t->block + r < l->blocks; r++) {
        int row = t->list * l->blocks + t->block + r;
        for (int e = l->start[row]; e < l->start[row + 1]; e++)
            words[l->key_block[e] * rows + r] = l->bits[e] < 0 ? TILE_FULL : l->bits[e];
    }
}

/* How many of a key block's words are not TILE_SKIP. */
static int users(const int *words, int rows)
{
    int n = 0;
    for (int r = 0; r < rows; r++)
        n += words[r] != TILE_SKIP;
    return n;
}

static int by_entries(const void *a, const void *b)
{
    const struct tile_rank *x = a, *y = b;
    if (x->entries != y->entries)
        return y->entries - x->entries;
    return x->list != y->list ? x->list - y->list : x->block - y->block;
}

/* All tiles, those with the most entries first. */
static struct tile_rank *rank_tiles(const struct block_lists *l, const struct query_tiles *q,
                                    int *words)
{
    int each = q->count / l->lists;
    struct tile_rank *ranked = mem_alloc((size_t)q->count, sizeof(*ranked));
    for (int t = 0; t < q->count; t++) {
        ranked[t] = (struct tile_rank){.list = t / each, .block = t % each * q->rows};
        gather(l, &ranked[t], q->rows, words);
        for (int k = 0; k < l->blocks; k++)
            ranked[t].entries += users(words + k * q->rows, q->rows) > 0;
    }
    qsort(ranked, (size_t)q->count, sizeof(*ranked), by_entries);
    return ranked;
}

/* Writes the entries of a tile, those that all its query blocks use first. */
static void write_entries(const struct block_lists *l, const struct query_tiles *q,
                          const int *words, int *head, int *rest)
{
    int n = 0;
    for (int all = 1; all >= 0; all--)
        for (int k = 0; k < l->blocks; k++) {
            const int *word = words + k * q->rows;
            int count = users(word, q->rows);
            if (count == 0 || (count == q->rows) != (all == 1))
                continue;
            int *to =
                n < TILE_HEAD ? head + n * q->entry_ints : rest + (n - TILE_HEAD) * q->entry_ints;
            to[0] = k;
            for (int r = 0; r < q->rows; r++)
                to[1 + r] = word[r];
            n++;
        }
}

void query_tiles_build(const struct block_lists *l, int rows, struct query_tiles *out)
{
    int each = (l->blocks + rows - 1) / rows;
    *out = (struct query_tiles){
        .rows = rows, .count = l->lists * each, .entry_ints = rows == 1 ? 2 : 4};
    int *words = mem_alloc((size_t)l->blocks * (size_t)rows, sizeof(*words));
    struct tile_rank *ranked = rank_tiles(l, out, words);
    for (int t = 0; t < out->count; t++)
        if (ranked[t].entries > TILE_HEAD)
            out->rest_count += ranked[t].entries - TILE_HEAD;

    out->tile = mem_alloc((size_t)out->count, 4 * sizeof(int));
    out->head = mem_alloc((size_t)out->count * TILE_HEAD, (size_t)out->entry_ints * sizeof(int));
    /* A warp reads TILE_HEAD entries at a time. */
    out->rest =
        mem_alloc((size_t)out->rest_count + TILE_HEAD, (size_t)out->entry_ints * sizeof(int));
    int64_t rest = 0;
    for (int t = 0; t < out->count; t++) {
        const struct tile_rank *r = &ranked[t];
        const int row[] = {r->list, r->block, r->entries, (int)rest};
        for (int i = 0; i < 4; i++)
            out->tile[4 * t + i] = row[i];
        gather(l, r, rows, words);
        write_entries(l, out, words, out->head + (int64_t)t * TILE_HEAD * out->entry_ints,
                      out->rest + rest * out->entry_ints);
        if (r->entries > TILE_HEAD)
            rest += r->entries - TILE_HEAD;
    }
    free(ranked);
    free(words);
}

void query_tiles_release(struct query_tiles *q)
{
    free(q->tile);
    free(q->head);
    free(q->rest);
    *q = (struct query_tiles){.rows = 0};
}
