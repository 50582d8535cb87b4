#include "layer/layer.h"

#include <stdlib.h>

enum block_class { BLOCK_EMPTY, BLOCK_PARTIAL, BLOCK_FULL };

/* One matrix of the mask, cut at a length. */
struct view {
    const uint64_t *bits; /* (seq_len, row_words) */
    int length, row_words;
};

/* The bits of one row in one key block, those of keys past the length cleared.  Word k of a mask's
 * row is its part of key block k, as MASK_BLOCK is 64. */
static uint64_t row_in_block(const struct view *v, int row, int key_block)
{
    int keys = v->length - key_block * MASK_BLOCK; /* real keys from the block's first one on */
    if (row >= v->length || keys <= 0)
        return 0;
    uint64_t real = keys >= MASK_BLOCK ? ~(uint64_t)0 : ((uint64_t)1 << keys) - 1;
    return v->bits[(int64_t)row * v->row_words + key_block] & real;
}

/* The class of one block; adds its kept elements to *kept. */
static enum block_class classify(const struct view *v, int query_block, int key_block,
                                 int64_t *kept)
{
    uint64_t any = 0, all = ~(uint64_t)0;
    int first = query_block * MASK_BLOCK;
    for (int row = first; row < first + MASK_BLOCK && row < v->length; row++) {
        uint64_t bits = row_in_block(v, row, key_block);
        any |= bits;
        all &= bits;
        *kept += __builtin_popcountll(bits);
    }
    return any == 0 ? BLOCK_EMPTY : ~all == 0 ? BLOCK_FULL : BLOCK_PARTIAL;
}

/* The class of each of the (lists, blocks, blocks) blocks, and their sums in *l.  The caller frees.
 */
static uint8_t *classify_all(const struct view *views, struct block_lists *l)
{
    uint8_t *classes = mem_alloc((size_t)l->lists, (size_t)l->blocks * (size_t)l->blocks);
    uint8_t *next = classes;
    for (int list = 0; list < l->lists; list++)
        for (int query = 0; query < l->blocks; query++)
            for (int key = 0; key < l->blocks; key++, next++) {
                *next = (uint8_t)classify(&views[list], query, key, &l->kept);
                l->blocks_full += *next == BLOCK_FULL;
                l->blocks_partial += *next == BLOCK_PARTIAL;
            }
    return classes;
}

static void copy_words(const struct view *v, int query_block, int key_block, uint64_t *out)
{
    for (int r = 0; r < MASK_BLOCK; r++)
        out[r] = row_in_block(v, query_block * MASK_BLOCK + r, key_block);
}

/* Appends the entries of one query block from position `entry`; returns the position after them. */
static int fill_query_block(const struct view *v, int query_block, const uint8_t *classes,
                            int entry, struct block_lists *l)
{
    for (int key = 0; key < l->blocks; key++)
        if (classes[key] == BLOCK_FULL) {
            l->key_block[entry] = key;
            l->bits[entry++] = -1;
        }
    for (int key = 0; key < l->blocks; key++)
        if (classes[key] == BLOCK_PARTIAL) {
            copy_words(v, query_block, key, l->words + l->bit_blocks * MASK_BLOCK);
            l->key_block[entry] = key;
            l->bits[entry++] = (int)l->bit_blocks++;
        }
    return entry;
}

static void fill(const struct view *views, const uint8_t *classes, struct block_lists *l)
{
    int entry = 0;
    for (int list = 0; list < l->lists; list++)
        for (int query = 0; query < l->blocks; query++, classes += l->blocks) {
            int at = list * l->blocks + query;
            int64_t partial = l->bit_blocks;
            l->start[at] = entry;
            entry = fill_query_block(&views[list], query, classes, entry, l);
            l->full[at] = entry - l->start[at] - (int)(l->bit_blocks - partial);
        }
    l->start[l->lists * l->blocks] = entry;
}

static bool lengths_differ(const int *lengths, int batch)
{
    for (int b = 1; lengths != NULL && b < batch; b++)
        if (lengths[b] != lengths[0])
            return true;
    return false;
}

void block_lists_build(const struct mask *m, int batch, const int *lengths, struct block_lists *out)
{
    int lists = m->matrices > 1 || lengths_differ(lengths, batch) ? batch : 1;
    *out = (struct block_lists){.lists = lists, .blocks = m->row_words};
    struct view *views = mem_alloc((size_t)lists, sizeof(*views));
    for (int64_t list = 0; list < lists; list++) {
        int64_t matrix = m->matrices > 1 ? list : 0;
        views[list] = (struct view){.bits = m->bits + matrix * m->seq_len * m->row_words,
                                    .length = lengths != NULL ? lengths[list] : m->seq_len,
                                    .row_words = m->row_words};
    }

    uint8_t *classes = classify_all(views, out);
    size_t query_blocks = (size_t)lists * (size_t)out->blocks;
    size_t entries = (size_t)(out->blocks_full + out->blocks_partial);
    out->start = mem_alloc(query_blocks + 1, sizeof(*out->start));
    out->full = mem_alloc(query_blocks, sizeof(*out->full));
    out->key_block = mem_alloc(entries, sizeof(*out->key_block));
    out->bits = mem_alloc(entries, sizeof(*out->bits));
    out->words = mem_alloc((size_t)out->blocks_partial, MASK_BLOCK * sizeof(*out->words));
    fill(views, classes, out);

    int64_t rows_per_list = batch / lists;
    out->kept *= rows_per_list;
    out->blocks_full *= rows_per_list;
    out->blocks_partial *= rows_per_list;
    out->blocks_all = (int64_t)batch * out->blocks * out->blocks;
    free(classes);
    free(views);
}

void block_lists_release(struct block_lists *l)
{
    if (l == NULL)
        return;
    free(l->start);
    free(l->full);
    free(l->key_block);
    free(l->bits);
    free(l->words);
    *l = (struct block_lists){.lists = 0};
}
