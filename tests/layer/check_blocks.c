#include "tests/masks.h"

enum { B = 3 };

static const int seq_lens[] = {1, 7, 64, 100, 333};

/* Lengths of the batch rows in per cent of S, at least 1. */
static const struct {
    int percent[B];
    bool given; /* else no lengths at all */
} length_sets[] = {{{100, 100, 100}, false},
                   {{100, 100, 100}, true},
                   {{60, 60, 60}, true},
                   {{100, 0, 64}, true},
                   {{33, 50, 0}, true}};

/* Masks of a file: B different ones, thin in some blocks, empty and full in others. */
static struct mask batched_mask(int s)
{
    uint8_t *data = mem_alloc(B, (size_t)s * (size_t)s), *at = data;
    for (int b = 0; b < B; b++)
        for (int i = 0; i < s; i++)
            for (int j = 0; j < s; j++) {
                int kind = (i / 64 + j / 64 + b) % 3; /* of a block: empty, full, thin */
                *at++ = kind == 1 || (kind == 2 && (i * 31 + j * 17 + b) % 97 == 0);
            }
    struct mask m = mask_of_file(B, s, data);
    free(data);
    return m;
}

/* What the lists must say, worked out one element at a time. */
struct expected {
    const struct mask *m;
    int lengths[B];
};

static bool kept(const struct expected *x, int b, int i, int j)
{
    int length = x->lengths[b];
    return i < length && j < length && mask_keep(x->m, b, i, j);
}

struct tally {
    int kept, rows, columns; /* of one block: kept elements, real rows, columns that exist */
};

static struct tally tally_block(const struct expected *x, int b, int query, int key)
{
    struct tally t = {0, 0, 0};
    int s = x->m->seq_len;
    for (int i = query * 64; i < s && i < query * 64 + 64; i++) {
        t.rows += i < x->lengths[b];
        for (int j = key * 64; j < s && j < key * 64 + 64; j++)
            t.kept += kept(x, b, i, j);
    }
    t.columns = s - key * 64 < 64 ? s - key * 64 : 64;
    return t;
}

/* One entry's 64 words against the mask; returns how many bits differ. */
static int wrong_bits(const struct expected *x, int b, int query, int key, const uint64_t *words)
{
    int wrong = 0, s = x->m->seq_len;
    for (int r = 0; r < 64; r++)
        for (int c = 0; c < 64; c++) {
            int i = query * 64 + r, j = key * 64 + c;
            bool keep = i < s && j < s && kept(x, b, i, j);
            wrong += (words[r] >> c & 1) != keep;
        }
    return wrong;
}

/* Walks the entries of one query block; counts full and partial ones. */
static void check_query_block(const struct expected *x, const struct block_lists *l, int b,
                              int query, int64_t *full, int64_t *partial)
{
    int at = (l->lists == 1 ? 0 : b) * l->blocks + query, previous = -1;
    bool named[8] = {false};
    ck_assert_int_le(l->blocks, (int)ARRAY_LEN(named));
    for (int e = l->start[at]; e < l->start[at + 1]; e++) {
        int key = l->key_block[e];
        bool first_partial = e == l->start[at] + l->full[at];
        ck_assert(key >= 0 && key < l->blocks && !named[key]);
        ck_assert(first_partial || key > previous);
        named[key] = true;
        previous = key;

        struct tally t = tally_block(x, b, query, key);
        bool is_full = t.rows > 0 && t.columns == 64 && t.kept == 64 * t.rows;
        ck_assert_int_gt(t.kept, 0);
        ck_assert_int_eq(is_full, e < l->start[at] + l->full[at]);
        if (is_full) {
            ck_assert_int_eq(l->bits[e], -1);
            ++*full;
        } else {
            ck_assert(l->bits[e] >= 0 && l->bits[e] < l->bit_blocks);
            ck_assert_int_eq(
                wrong_bits(x, b, query, key, l->words + (size_t)l->bits[e] * MASK_BLOCK), 0);
            ++*partial;
        }
    }
    for (int key = 0; key < l->blocks; key++)
        if (!named[key])
            ck_assert_int_eq(tally_block(x, b, query, key).kept, 0);
}

static void check_lists(const struct mask *m, const int *lengths, bool differ)
{
    struct expected x = {.m = m};
    for (int b = 0; b < B; b++)
        x.lengths[b] = lengths != NULL ? lengths[b] : m->seq_len;
    struct block_lists l;
    block_lists_build(m, B, lengths, &l);
    ck_assert_int_eq(l.lists, m->matrices > 1 || differ ? B : 1);
    ck_assert_int_eq(l.blocks, (m->seq_len + 63) / 64);

    int64_t full = 0, partial = 0, elements = 0;
    for (int b = 0; b < B; b++) {
        for (int query = 0; query < l.blocks; query++)
            check_query_block(&x, &l, b, query, &full, &partial);
        for (int i = 0; i < m->seq_len; i++)
            for (int j = 0; j < m->seq_len; j++)
                elements += kept(&x, b, i, j);
    }
    ck_assert_int_eq(l.blocks_full, full);
    ck_assert_int_eq(l.blocks_partial, partial);
    ck_assert_int_eq(l.blocks_all, (int64_t)B * l.blocks * l.blocks);
    ck_assert_int_eq(l.bit_blocks, l.lists == 1 ? partial / B : partial);
    ck_assert_int_eq(l.kept, elements);
    block_lists_release(&l);
    ck_assert_ptr_null(l.words);
}

TEST_LOOP(lists_cover_what_is_kept, 0, ARRAY_LEN(mask_names) + 1)
{
    for (size_t n = 0; n < ARRAY_LEN(seq_lens); n++) {
        int s = seq_lens[n];
        bool named = (size_t)_i < ARRAY_LEN(mask_names);
        struct mask m = named ? mask_of(mask_names[_i], s) : batched_mask(s);
        for (size_t k = 0; k < ARRAY_LEN(length_sets); k++) {
            int lengths[B];
            for (int b = 0; b < B; b++) {
                int length = s * length_sets[k].percent[b] / 100;
                lengths[b] = length < 1 ? 1 : length;
            }
            bool differ = lengths[0] != lengths[1] || lengths[1] != lengths[2];
            check_lists(&m, length_sets[k].given ? lengths : NULL, differ);
        }
        mask_release(&m);
    }
}

SUITE("blocks", NULL, NULL)
