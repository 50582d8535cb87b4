#include "layer/blocks_int.h"

static bool lengths_differ(const int *lengths, int batch)
{
    for (int b = 1; lengths != NULL && b < batch; b++)
        if (lengths[b] != lengths[0])
            return true;
    return false;
}

int mask_views(const struct mask *m, int batch, const int *lengths)
{
    return m->matrices > 1 || lengths_differ(lengths, batch) ? batch : 1;
}

struct mask_view mask_view_of(const struct mask *m, const int *lengths, int list)
{
    int64_t matrix = m->matrices > 1 ? list : 0;
    return (struct mask_view){.bits = m->bits + matrix * m->seq_len * m->row_words,
                              .length = lengths != NULL ? lengths[list] : m->seq_len,
                              .row_words = m->row_words};
}

uint64_t mask_row_word(const struct mask_view *v, int row, int key_block)
{
    int keys = v->length - key_block * MASK_BLOCK; /* real keys from the block's first one on */
    if (row >= v->length || keys <= 0)
        return 0;
    uint64_t real = keys >= MASK_BLOCK ? ~(uint64_t)0 : ((uint64_t)1 << keys) - 1;
    return v->bits[(int64_t)row * v->row_words + key_block] & real;
}

/* ---- panels ---------------------------------------------------------------------------------- */

void panel_init(struct panel *p, int blocks)
{
    *p = (struct panel){.blocks = blocks};
    p->words = mem_alloc((size_t)blocks * MASK_BLOCK, sizeof(*p->words));
}

void panel_release(struct panel *p)
{
    free(p->words);
    *p = (struct panel){.blocks = 0};
}

void panel_clear(struct panel *p)
{
    memset(p->words, 0, (size_t)p->blocks * MASK_BLOCK * sizeof(*p->words));
    p->real = 0;
}

/* Tokens in their own order. */
static void fill_plain(const struct mask_view *v, int query_block, struct panel *p)
{
    int first = query_block * MASK_BLOCK;
    p->real = 0;
    for (int r = 0; r < MASK_BLOCK; r++) {
        p->real |= (uint64_t)(first + r < v->length) << r;
        for (int k = 0; k < p->blocks; k++)
            p->words[k * MASK_BLOCK + r] = mask_row_word(v, first + r, k);
    }
}

/* ---- writing lists --------------------------------------------------------------------------- */

enum block_class { BLOCK_EMPTY, BLOCK_PARTIAL, BLOCK_FULL };

/* The class of one block; adds its kept elements to *kept. */
static enum block_class classify(const struct panel *p, int key_block, int64_t *kept)
{
    const uint64_t *words = p->words + (size_t)key_block * MASK_BLOCK;
    uint64_t any = 0, all = ~(uint64_t)0;
    for (int r = 0; r < MASK_BLOCK; r++) {
        any |= words[r];
        all &= (p->real >> r & 1) != 0 ? words[r] : ~(uint64_t)0;
        *kept += __builtin_popcountll(words[r]);
    }
    return any == 0 ? BLOCK_EMPTY : ~all == 0 ? BLOCK_FULL : BLOCK_PARTIAL;
}

void lists_open(struct lists_writer *to, struct block_lists *out, int lists, int blocks)
{
    *out = (struct block_lists){.lists = lists, .blocks = blocks};
    *to = (struct lists_writer){.lists = out};
    size_t query_blocks = (size_t)lists * (size_t)blocks;
    out->start = mem_alloc(query_blocks + 1, sizeof(*out->start));
    out->full = mem_alloc(query_blocks, sizeof(*out->full));
}

/* Room for one more query block. */
static void make_room(struct lists_writer *to)
{
    struct block_lists *l = to->lists;
    if (to->entries + l->blocks >= to->entry_room) {
        to->entry_room = 2 * to->entry_room + l->blocks + 1;
        l->key_block = mem_resize(l->key_block, (size_t)to->entry_room, sizeof(*l->key_block));
        l->bits = mem_resize(l->bits, (size_t)to->entry_room, sizeof(*l->bits));
    }
    if (l->bit_blocks + l->blocks >= to->word_room) {
        to->word_room = 2 * to->word_room + l->blocks + 1;
        l->words = mem_resize(l->words, (size_t)to->word_room, MASK_BLOCK * sizeof(*l->words));
    }
}

static void add_entry(struct lists_writer *to, int key_block, const uint64_t *words)
{
    struct block_lists *l = to->lists;
    l->key_block[to->entries] = key_block;
    l->bits[to->entries++] = words == NULL ? -1 : (int)l->bit_blocks;
    if (words != NULL)
        memcpy(l->words + l->bit_blocks++ * MASK_BLOCK, words, MASK_BLOCK * sizeof(*words));
}

void lists_add(struct lists_writer *to, const struct panel *p)
{
    struct block_lists *l = to->lists;
    SCOPED uint8_t *classes = mem_alloc((size_t)p->blocks, sizeof(*classes));
    make_room(to);
    l->start[to->query_blocks] = (int)to->entries;
    for (int k = 0; k < p->blocks; k++) {
        classes[k] = (uint8_t)classify(p, k, &l->kept);
        if (classes[k] == BLOCK_FULL)
            add_entry(to, k, NULL);
    }
    int full = (int)to->entries - l->start[to->query_blocks];
    l->full[to->query_blocks] = full;
    for (int k = 0; k < p->blocks; k++)
        if (classes[k] == BLOCK_PARTIAL)
            add_entry(to, k, p->words + (size_t)k * MASK_BLOCK);
    l->blocks_full += full;
    l->blocks_partial += (int)to->entries - l->start[to->query_blocks] - full;
    l->start[++to->query_blocks] = (int)to->entries;
}

void lists_close(struct lists_writer *to, int batch)
{
    struct block_lists *l = to->lists;
    int64_t rows_per_list = batch / l->lists;
    l->kept *= rows_per_list;
    l->blocks_full *= rows_per_list;
    l->blocks_partial *= rows_per_list;
    l->blocks_all = (int64_t)batch * l->blocks * l->blocks;
    size_t entries = (size_t)to->entries + 1, partial = (size_t)l->bit_blocks + 1;
    l->key_block = mem_resize(l->key_block, entries, sizeof(*l->key_block));
    l->bits = mem_resize(l->bits, entries, sizeof(*l->bits));
    l->words = mem_resize(l->words, partial, MASK_BLOCK * sizeof(*l->words));
}

/* ---- the plain lists ------------------------------------------------------------------------- */

void block_lists_build(const struct mask *m, int batch, const int *lengths, struct block_lists *out)
{
    struct lists_writer to;
    SCOPED_BY(panel_release) struct panel p;
    lists_open(&to, out, mask_views(m, batch, lengths), m->row_words);
    panel_init(&p, m->row_words);
    for (int list = 0; list < out->lists; list++) {
        struct mask_view v = mask_view_of(m, lengths, list);
        for (int query = 0; query < out->blocks; query++) {
            fill_plain(&v, query, &p);
            lists_add(&to, &p);
        }
    }
    lists_close(&to, batch);
    out->has_band = mask_band(m, &out->band[0], &out->band[1]);
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
