/* What a library makes of the mask's lists for a call's lengths, against lists that are built for
 * these lengths: they keep the same elements. */
#include "codegen/codegen.h"
#include "tests/masks.h"
#include "tests/workload.h"

#include "kernels/cuda/segment.h"
#include "kernels/library/lengths.h"

enum { BATCH = 3 };

static const struct {
    int seq_len;
    const char *text;
    int lengths[BATCH];
} shapes[] = {{64, "64,1,63", {64, 1, 63}},
              {500, "500,70,128", {500, 70, 128}},
              {200, "65,64,199", {65, 64, 199}},
              {2200, "2200,65,2111", {2200, 65, 2111}}};

/* The mask with lengths, and the same without. */
static void build(struct workload *with, struct workload *full, const char *mask, int shape)
{
    struct workload *both[] = {with, full};
    for (int i = 0; i < 2; i++) {
        *both[i] = workload_sized(BATCH, shapes[shape].seq_len);
        workload_ready(both[i], mask, i == 0 ? shapes[shape].text : NULL, NULL);
    }
}

/* Bits of one batch row: (seq_len, blocks) words. */
static uint64_t *new_bits(const struct workload *w)
{
    size_t n = (size_t)w->seq_len * (size_t)w->blocks.blocks;
    uint64_t *bits = mem_alloc(n, sizeof(*bits));
    memset(bits, 0, n * sizeof(*bits));
    return bits;
}

static void ck_keeps(const struct workload *with, int b, const uint64_t *bits)
{
    int list = with->mask.matrices > 1 ? b : 0;
    for (int i = 0; i < length_of(with, b); i++)
        for (int k = 0; k < with->blocks.blocks; k++) {
            uint64_t expected = 0;
            for (int c = 0; c < MASK_BLOCK && k * MASK_BLOCK + c < length_of(with, b); c++)
                expected |= (uint64_t)mask_keep(&with->mask, list, i, k * MASK_BLOCK + c) << c;
            ck_assert_uint_eq(bits[i * with->blocks.blocks + k], expected);
        }
}

/* ---- block lists ----------------------------------------------------------------------------- */

static void check_lists(const struct workload *with, const struct workload *full)
{
    const struct block_lists *l = &full->blocks;
    const struct fp_blocks from = {.lists = l->lists,
                                   .blocks = l->blocks,
                                   .start = l->start,
                                   .full = l->full,
                                   .key_block = l->key_block,
                                   .bits = l->bits,
                                   .words = (const fp_word *)l->words};
    fp_word spare[FP_BLOCK];
    SCOPED int *key_block = mem_alloc((size_t)l->blocks, sizeof(int));
    SCOPED int *bits = mem_alloc((size_t)l->blocks, sizeof(int));
    for (int b = 0; b < BATCH; b++) {
        SCOPED uint64_t *kept = new_bits(with);
        for (int block = 0; block < l->blocks; block++) {
            struct fp_list_row row = {.key_block = NULL}, counted = {.key_block = NULL};
            int at = (l->lists > 1 ? b * l->blocks : 0) + block, spare_bits = (int)l->bit_blocks;
            fp_cut_row(&from, at, block * FP_BLOCK, length_of(with, b), spare_bits, spare,
                       &counted);
            row = (struct fp_list_row){.key_block = key_block, .bits = bits};
            fp_cut_row(&from, at, block * FP_BLOCK, length_of(with, b), spare_bits, spare, &row);
            ck_assert_int_eq(row.count, counted.count);
            ck_assert_int_eq(row.full, counted.full);
            for (int e = 0; e < row.count; e++) {
                ck_assert_int_eq(bits[e] == FP_FULL, e < row.full);
                for (int r = 0; r < FP_BLOCK && block * FP_BLOCK + r < full->seq_len; r++)
                    kept[(block * FP_BLOCK + r) * l->blocks + key_block[e]] =
                        bits[e] == FP_FULL      ? ~(uint64_t)0
                        : bits[e] == spare_bits ? spare[r]
                                                : l->words[bits[e] * FP_BLOCK + r];
            }
        }
        ck_keeps(with, b, kept);
    }
}

/* _i: a shape; the large one with the first mask, full. */
TEST_LOOP(lists_keep_what_lengths_leave, 0, ARRAY_LEN(shapes))
{
    bool large = shapes[_i].seq_len > 2000;
    for (size_t m = 0; m < ARRAY_LEN(mask_names); m += large ? ARRAY_LEN(mask_names) : 1) {
        SCOPED_BY(workload_release) struct workload with, full;
        build(&with, &full, mask_names[m], _i);
        check_lists(&with, &full);
    }
}

/* ---- tiles ----------------------------------------------------------------------------------- */

static const int *entry_of(const struct fp_cut_tiles *c, int tile, int i)
{
    int rest = c->tile[4 * tile + 3];
    return i < TILE_HEAD ? c->head + (tile * TILE_HEAD + i) * c->entry_ints
                         : c->rest + (rest + i - TILE_HEAD) * c->entry_ints;
}

/* Adds what a tile keeps, no pair twice: words are at places, which tokens stand at. */
static void add_tile(const struct fp_cut_tiles *c, int tile, int seq_len, uint64_t *kept)
{
    const int *row = c->tile + 4 * tile;
    int part = row[1] / c->blocks, block = row[1] % c->blocks;
    long places = (long)part * c->blocks * FP_BLOCK;
    int twice = 0;
    for (int i = 0; i < row[2]; i++) {
        const int *entry = entry_of(c, tile, i);
        for (int g = 0; g < c->rows; g++)
            for (int r = 0; r < FP_BLOCK && entry[1 + g] != FP_SKIP; r++)
                for (int k = 0; k < FP_BLOCK; k++) {
                    long query = (block + g) * FP_BLOCK + r, key = entry[0] * FP_BLOCK + k;
                    if (c->from.query_token != NULL && query < (long)c->blocks * FP_BLOCK) {
                        query = c->from.query_token[places + query];
                        key = c->from.key_token[places + key];
                    }
                    bool keeps = entry[1 + g] == FP_FULL ||
                                 (c->words[(long)entry[1 + g] * FP_BLOCK + r] >> k & 1) != 0;
                    if (keeps && query >= 0 && query < seq_len && key >= 0 && key < seq_len) {
                        uint64_t *word = &kept[query * c->blocks + key / FP_BLOCK];
                        twice += (*word >> key % FP_BLOCK & 1) != 0;
                        *word |= (uint64_t)1 << key % FP_BLOCK;
                    }
                }
    }
    ck_assert_int_eq(twice, 0);
}

static void cut_tiles(const struct workload *w, const struct query_tiles *q, const int *lengths,
                      struct fp_cut_tiles *c)
{
    int each = w->blocks.lists > 1 ? 1 : BATCH, count = q->count * each;
    size_t rest = (size_t)q->rest_count * (size_t)each, entry = (size_t)q->entry_ints * sizeof(int);
    const uint64_t *words = q->words != NULL ? q->words : w->blocks.words;
    size_t from_words = (size_t)(q->words != NULL ? q->word_blocks : w->blocks.bit_blocks);
    size_t slots = from_words + ((size_t)count * TILE_HEAD + rest) * (size_t)q->rows;
    *c = (struct fp_cut_tiles){.batch = BATCH,
                               .seq_len = w->seq_len,
                               .blocks = w->blocks.blocks,
                               .lists = w->blocks.lists,
                               .lengths = lengths,
                               .from = {.count = q->count,
                                        .parts = q->parts,
                                        .tile = q->tile,
                                        .head = q->head,
                                        .rest = q->rest,
                                        .query_token = q->query_token,
                                        .key_token = q->key_token},
                               .rows = q->rows,
                               .entry_ints = q->entry_ints,
                               .rest_entries = (int)q->rest_count,
                               .from_words = (int)from_words};
    c->tile = mem_alloc((size_t)count, 4 * sizeof(int));
    c->head = mem_alloc((size_t)count * TILE_HEAD, entry);
    c->rest = mem_alloc(rest + 1, entry);
    c->words = mem_alloc(slots + 1, FP_BLOCK * sizeof(fp_word));
    memcpy(c->words, words, from_words * FP_BLOCK * sizeof(fp_word));
    for (int i = 0; i < count; i++)
        fp_cut_tile(c, i / each, i);
}

static void check_tiles(const struct workload *with, const struct workload *full,
                        const struct tiling *t, const int *lengths)
{
    SCOPED_BY(query_tiles_release) struct query_tiles q;
    struct fp_cut_tiles c;
    query_tiles_build(full, t, &q);
    cut_tiles(full, &q, lengths, &c);
    int count = q.count * (full->blocks.lists > 1 ? 1 : BATCH);
    for (int b = 0; b < BATCH; b++) {
        SCOPED uint64_t *kept = new_bits(with);
        for (int i = 0; i < count; i++) {
            ck_assert(i == 0 || c.tile[4 * i + 1] / c.blocks >= c.tile[4 * i - 3] / c.blocks);
            if (c.tile[4 * i] == b)
                add_tile(&c, i, length_of(with, b), kept);
        }
        ck_keeps(with, b, kept);
    }
    free(c.tile);
    free(c.head);
    free(c.rest);
    free(c.words);
}

/* _i: a shape.  In the large one tiles have more entries than their heads. */
TEST_LOOP(tiles_keep_what_lengths_leave, 0, ARRAY_LEN(shapes))
{
    static const struct tiling tilings[] = {
        {.rows = 1}, {.rows = 2}, {.rows = 1, .ordered = true}, {.rows = 2, .ordered = true}};
    bool large = shapes[_i].seq_len > 2000;
    for (size_t m = 0; m < ARRAY_LEN(mask_names); m += large ? ARRAY_LEN(mask_names) : 1) {
        SCOPED_BY(workload_release) struct workload with, full;
        build(&with, &full, mask_names[m], _i);
        for (size_t i = 0; i < ARRAY_LEN(tilings); i++)
            check_tiles(&with, &full, &tilings[i], shapes[_i].lengths);
    }
}

/* ---- tiles of joined rows -------------------------------------------------------------------- */

/* Which sequence a row of the batch is of, and which token of it; -1: padding. */
static int token_of(const struct workload *w, bool packed, int row, int *b)
{
    for (*b = 0; packed && row >= length_of(w, *b); ++*b)
        row -= length_of(w, *b);
    if (!packed)
        *b = row / w->seq_len, row %= w->seq_len;
    return row < length_of(w, *b) ? row : -1;
}

static void ck_joined(const struct workload *w, bool packed)
{
    const struct tiling t = {.rows = 1, .joined = true, .packed = packed};
    SCOPED_BY(query_tiles_release) struct query_tiles q;
    query_tiles_build(w, &t, &q);
    int rows = 0;
    for (int b = 0; b < w->batch; b++)
        rows += packed ? length_of(w, b) : w->seq_len;
    ck_assert_int_eq(q.count, (rows + MASK_BLOCK - 1) / MASK_BLOCK);
    SCOPED uint64_t *found = mem_alloc((size_t)q.count, sizeof(*found));
    for (int row = 0; row < rows; row++) {
        const int *tile = q.tile + row / MASK_BLOCK * TILE_INTS, i = row % MASK_BLOCK;
        ck_assert_int_eq(tile[0], 0);
        ck_assert_int_eq(tile[1], row / MASK_BLOCK);
        ck_assert_int_le(tile[2], TILE_HEAD);
        memset(found, 0, (size_t)q.count * sizeof(*found));
        for (int e = 0; e < tile[2]; e++) {
            const int *entry = q.head + (row / MASK_BLOCK * TILE_HEAD + e) * 2;
            ck_assert(e == 0 || entry[0] > entry[-2]);
            found[entry[0]] =
                entry[1] == TILE_FULL ? ~(uint64_t)0 : q.words[entry[1] * MASK_BLOCK + i];
        }
        int b, of, query = token_of(w, packed, row, &b);
        for (int key = 0; key < q.count * MASK_BLOCK; key++) {
            bool kept = (found[key / MASK_BLOCK] >> key % MASK_BLOCK & 1) != 0, wanted = false;
            if (key < rows && query >= 0) {
                int k = token_of(w, packed, key, &of);
                wanted = of == b && k >= 0 && mask_keep(&w->mask, 0, query, k);
            }
            ck_assert(kept == wanted);
        }
    }
}

/* _i: a shape with at most 500 tokens.  Packed and not; also where one row of padding has no key.
 */
TEST_LOOP(joined_tiles_keep_the_keys_of_their_sequences, 0, 3)
{
    static const char *const bands[] = {"full", "causal", "sliding:w=3", "sliding_causal:w=70"};
    for (size_t m = 0; m < ARRAY_LEN(bands); m++) {
        SCOPED_BY(workload_release) struct workload with, full;
        build(&with, &full, bands[m], _i);
        ck_joined(&with, true);
        ck_joined(&with, false);
        ck_joined(&full, false);
    }
}

SUITE("lengths", NULL, NULL)
