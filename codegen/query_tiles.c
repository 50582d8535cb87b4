#include "codegen/cuda_int.h"
#include "kernels/cuda/joined.h"

struct part {
    const struct block_lists *lists;
    int number;
    int64_t first_word; /* where its row words begin among the words of all parts */
};

struct tile_rank {
    int list, block, entries; /* block: the tile's first query block */
};

/* Room for the entries of one tile. */
struct scratch {
    int *words;   /* (blocks, rows) */
    int *entries; /* (blocks, entry_ints) */
};

static bool is_ordered(const struct tiling *t, const struct workload *w)
{
    return t->ordered && w->cover.parts > 0;
}

int tiling_parts(const struct tiling *t, const struct workload *w)
{
    return is_ordered(t, w) ? w->cover.parts : 1;
}

static int64_t entries_of(const struct query_tiles *q)
{
    int64_t entries = 0;
    for (int i = 0; i < q->count; i++)
        entries += q->tile[(ptrdiff_t)i * TILE_INTS + 2];
    return entries;
}

static int64_t blocks_of(const struct choice *c, const struct workload *w)
{
    struct cuda_launch launch = {.tiling = {.rows = 0}}; /* of a CPU */
    if (c->impl->launch != NULL)
        choice_launch(c, w, &launch);
    if (launch.tiling.joined) {
        SCOPED_BY(query_tiles_release) struct query_tiles q;
        launch.tiling.packed = w->lengths != NULL;
        query_tiles_build(w, &launch.tiling, &q);
        return entries_of(&q);
    }
    return is_ordered(&launch.tiling, w) ? cover_entries(&w->cover)
                                         : w->blocks.blocks_full + w->blocks.blocks_partial;
}

double choice_blocks(const struct choice *c, const struct workload *w)
{
    double blocks[KINDS_MAX];
    for (int kind = 0; kind < workload_kinds(w); kind++)
        blocks[kind] = (double)blocks_of(c, workload_of_kind(w, kind));
    return workload_mean(w, blocks);
}

static struct part part_of(const struct tiling *t, const struct workload *w, int number)
{
    struct part p = {&w->blocks, number, 0};
    if (!is_ordered(t, w))
        return p;
    p.lists = &w->cover.part[number].blocks;
    for (int i = 0; i < number; i++)
        p.first_word += w->cover.part[i].blocks.bit_blocks;
    return p;
}

/* For each key block the words of the tile's query blocks. */
static void gather(const struct part *p, const struct tile_rank *t, int rows, int *words)
{
    const struct block_lists *l = p->lists;
    for (int i = 0; i < l->blocks * rows; i++)
        words[i] = TILE_SKIP;
    for (int r = 0; r < rows && t->block + r < l->blocks; r++) {
        int row = t->list * l->blocks + t->block + r;
        for (int e = l->start[row]; e < l->start[row + 1]; e++)
            words[l->key_block[e] * rows + r] =
                l->bits[e] < 0 ? TILE_FULL : (int)p->first_word + l->bits[e];
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

/* Writes the entries of a tile to s->entries, entries that all its query blocks use first; returns
 * how many there are. */
static int list_entries(const struct part *p, const struct tile_rank *t,
                        const struct query_tiles *q, struct scratch *s)
{
    int n = 0;
    gather(p, t, q->rows, s->words);
    for (int all = 1; all >= 0; all--)
        for (int k = 0; k < p->lists->blocks; k++) {
            const int *word = s->words + k * q->rows;
            int count = users(word, q->rows);
            if (count == 0 || (count == q->rows) != (all == 1))
                continue;
            int *to = s->entries + (int64_t)n++ * q->entry_ints;
            to[0] = k;
            memcpy(to + 1, word, (size_t)q->rows * sizeof(*word));
        }
    return n;
}

static int by_entries(const void *a, const void *b)
{
    const struct tile_rank *x = a, *y = b;
    if (x->entries != y->entries)
        return y->entries - x->entries;
    return x->list != y->list ? x->list - y->list : x->block - y->block;
}

/* The tiles of a part, the tiles with the most entries first. */
static void rank_tiles(const struct part *p, const struct query_tiles *q, struct scratch *s,
                       int count, struct tile_rank *ranked)
{
    int each = count / p->lists->lists;
    for (int t = 0; t < count; t++) {
        ranked[t] = (struct tile_rank){.list = t / each, .block = t % each * q->rows};
        ranked[t].entries = list_entries(p, &ranked[t], q, s);
    }
    qsort(ranked, (size_t)count, sizeof(*ranked), by_entries);
}

static void write_tile(const struct part *p, const struct tile_rank *r, struct query_tiles *q,
                       struct scratch *s)
{
    int64_t entry = q->entry_ints, rest = q->rest_count;
    int n = list_entries(p, r, q, s), in_head = n < TILE_HEAD ? n : TILE_HEAD;
    const int row[TILE_INTS] = {r->list, p->number * p->lists->blocks + r->block, n, (int)rest};
    size_t head_bytes = (size_t)(in_head * entry) * sizeof(int);
    size_t rest_bytes = (size_t)((n - in_head) * entry) * sizeof(int);
    memcpy(q->tile + (int64_t)TILE_INTS * q->count, row, sizeof(row));
    memcpy(q->head + (int64_t)q->count * TILE_HEAD * entry, s->entries, head_bytes);
    q->rest = mem_resize(q->rest, (size_t)((rest + n - in_head + TILE_HEAD) * entry), sizeof(int));
    memcpy(q->rest + rest * entry, s->entries + in_head * entry, rest_bytes);
    q->rest_count += n - in_head;
    q->count++;
}

/* Row words and orders of a cover, part by part. */
static void copy_cover(const struct workload *w, struct query_tiles *q)
{
    const struct cover *c = &w->cover;
    int64_t places = (int64_t)w->blocks.blocks * MASK_BLOCK;
    for (int i = 0; i < c->parts; i++)
        q->word_blocks += c->part[i].blocks.bit_blocks;
    q->words = mem_alloc((size_t)q->word_blocks + 1, MASK_BLOCK * sizeof(*q->words));
    for (int64_t i = 0, at = 0; i < c->parts; at += c->part[i++].blocks.bit_blocks)
        memcpy(q->words + at * MASK_BLOCK, c->part[i].blocks.words,
               (size_t)c->part[i].blocks.bit_blocks * MASK_BLOCK * sizeof(*q->words));
    q->query_token = mem_alloc((size_t)(q->parts * places), sizeof(int));
    q->key_token = mem_alloc((size_t)(q->parts * places), sizeof(int));
    for (int part = 0; part < q->parts; part++) {
        const struct cover_part *from = &c->part[part];
        for (int64_t i = 0; i < places; i++) {
            int plain = i < w->seq_len ? (int)i : -1;
            q->query_token[part * places + i] =
                from->query_token != NULL ? from->query_token[i] : plain;
            q->key_token[part * places + i] = from->key_token != NULL ? from->key_token[i] : plain;
        }
    }
}

static void build_joined(const struct workload *w, bool packed, struct query_tiles *out)
{
    struct fp_join_tiles c = {.batch = w->batch,
                              .seq_len = w->seq_len,
                              .left = w->blocks.band[0],
                              .right = w->blocks.band[1],
                              .lengths = w->lengths};
    SCOPED int *offset = mem_alloc((size_t)w->batch + 1, sizeof(*offset));
    offset[0] = 0;
    for (int b = 0; b < w->batch; b++)
        offset[b + 1] = offset[b] + (w->lengths != NULL ? w->lengths[b] : w->seq_len);
    c.offset = packed ? offset : NULL;
    c.most = fp_joined_entries(c.left, c.right);
    const int count = (int)ceil_div(fp_joined_rows(&c), MASK_BLOCK);
    *out = (struct query_tiles){.rows = 1, .parts = 1, .count = count, .entry_ints = 2};
    out->word_blocks = (int64_t)count * c.most;
    out->tile = c.tile = mem_alloc((size_t)count, TILE_INTS * sizeof(int));
    out->head = c.head = mem_alloc((size_t)count * TILE_HEAD, 2 * sizeof(int));
    out->words = mem_alloc((size_t)out->word_blocks, MASK_BLOCK * sizeof(*out->words));
    c.words = (fp_word *)out->words;
    memset(out->head, 0, (size_t)count * TILE_HEAD * 2 * sizeof(int));
    memset(out->words, 0, (size_t)out->word_blocks * MASK_BLOCK * sizeof(*out->words));
    for (int i = 0; i < count * MASK_BLOCK; i++)
        fp_join_row(&c, i / MASK_BLOCK, i % MASK_BLOCK);
}

void query_tiles_build(const struct workload *w, const struct tiling *t, struct query_tiles *out)
{
    if (t->joined) {
        build_joined(w, t->packed, out);
        return;
    }
    int blocks = w->blocks.blocks, each = w->blocks.lists * ((blocks + t->rows - 1) / t->rows);
    *out = (struct query_tiles){
        .rows = t->rows, .parts = tiling_parts(t, w), .entry_ints = t->rows == 1 ? 2 : 4};
    struct scratch s = {
        .words = mem_alloc((size_t)blocks * (size_t)t->rows, sizeof(int)),
        .entries = mem_alloc((size_t)blocks, (size_t)out->entry_ints * sizeof(int)),
    };
    SCOPED struct tile_rank *ranked = mem_alloc((size_t)each, sizeof(*ranked));
    size_t count = (size_t)out->parts * (size_t)each, entry = (size_t)out->entry_ints;
    out->tile = mem_alloc(count, TILE_INTS * sizeof(int));
    out->head = mem_alloc(count * TILE_HEAD, entry * sizeof(int));
    out->rest = mem_alloc(TILE_HEAD, entry * sizeof(int));
    for (int number = 0; number < out->parts; number++) {
        struct part p = part_of(t, w, number);
        rank_tiles(&p, out, &s, each, ranked);
        for (int i = 0; i < each; i++)
            write_tile(&p, &ranked[i], out, &s);
    }
    memset(out->rest + out->rest_count * out->entry_ints, 0, TILE_HEAD * entry * sizeof(int));
    if (is_ordered(t, w))
        copy_cover(w, out);
    free(s.words);
    free(s.entries);
}

void query_tiles_release(struct query_tiles *q)
{
    free(q->tile);
    free(q->head);
    free(q->rest);
    free(q->words);
    free(q->query_token);
    free(q->key_token);
    *q = (struct query_tiles){.rows = 0};
}
