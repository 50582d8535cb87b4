#include "tests/masks.h"

enum { B = 2 };

static const int seq_lens[] = {1, 63, 333, 1000};

static const int *lengths_of(int set, int s, int out[B])
{
    out[0] = s;
    out[1] = set == 1 ? s : (s + 2) / 3;
    return set == 0 ? NULL : out;
}

static int token_at(const int *tokens, int place, int seq_len)
{
    return tokens != NULL ? tokens[place] : place < seq_len ? place : -1;
}

/* Every token once, then -1. */
static void check_order(const int *tokens, int blocks, int seq_len)
{
    SCOPED bool *seen = mem_alloc((size_t)seq_len, sizeof(*seen));
    for (int i = 0; i < blocks * MASK_BLOCK && tokens != NULL; i++) {
        ck_assert(i < seq_len ? tokens[i] >= 0 && tokens[i] < seq_len : tokens[i] == -1);
        if (i < seq_len) {
            ck_assert(!seen[tokens[i]]);
            seen[tokens[i]] = true;
        }
    }
}

/* Adds to counts (S,S) what a part holds of a batch row. */
static void count_part(const struct cover_part *p, int b, int seq_len, uint8_t *counts)
{
    const struct block_lists *l = &p->blocks;
    int list = l->lists == 1 ? 0 : b;
    for (int query = 0; query < l->blocks; query++)
        for (int at = list * l->blocks + query, e = l->start[at]; e < l->start[at + 1]; e++)
            for (int r = 0; r < MASK_BLOCK; r++) {
                int i = token_at(p->query_token, query * MASK_BLOCK + r, seq_len);
                uint64_t word =
                    l->bits[e] < 0 ? ~(uint64_t)0 : l->words[(int64_t)l->bits[e] * MASK_BLOCK + r];
                for (; i >= 0 && word != 0; word &= word - 1) {
                    int place = l->key_block[e] * MASK_BLOCK + __builtin_ctzll(word);
                    int j = token_at(p->key_token, place, seq_len);
                    ck_assert(j >= 0);
                    counts[(int64_t)i * seq_len + j]++;
                }
            }
}

/* Each kept element is in exactly one part, and nothing else is.  Rows past a length may be in full
 * blocks, as in the plain lists. */
static void check_batch_row(const struct cover *c, const struct mask *m, int b, int length)
{
    int s = m->seq_len, wrong = 0;
    const uint64_t *bits = m->bits + (m->matrices > 1 ? (int64_t)b * s * m->row_words : 0);
    SCOPED uint8_t *counts = mem_alloc((size_t)s, (size_t)s);
    for (int p = 0; p < c->parts; p++)
        count_part(&c->part[p], b, s, counts);
    for (int i = 0; i < length; i++)
        for (int j = 0; j < s; j++)
            wrong += counts[(int64_t)i * s + j] !=
                     (j < length && (bits[(int64_t)i * m->row_words + j / 64] >> j % 64 & 1) != 0);
    ck_assert_int_eq(wrong, 0);
}

static int64_t plain_entries(const struct block_lists *l)
{
    return l->blocks_full + l->blocks_partial;
}

/* Returns the number of parts. */
static int check_cover(const struct mask *m, const int *lengths)
{
    SCOPED_BY(block_lists_release) struct block_lists plain;
    SCOPED_BY(cover_release) struct cover c;
    block_lists_build(m, B, lengths, &plain);
    cover_build(m, B, lengths, &plain, &c);
    ck_assert(c.parts == 0 || cover_entries(&c) < plain_entries(&plain));
    ck_assert_int_le(plain.lists, B);
    int64_t kept = 0;
    for (int p = 0; p < c.parts; p++) {
        check_order(c.part[p].query_token, plain.blocks, m->seq_len);
        check_order(c.part[p].key_token, plain.blocks, m->seq_len);
        kept += c.part[p].blocks.kept;
    }
    ck_assert(c.parts == 0 || kept == plain.kept);
    for (int b = 0; b < plain.lists && c.parts > 0; b++)
        check_batch_row(&c, m, b, lengths != NULL ? lengths[b] : m->seq_len);
    return c.parts;
}

/* _i: a sequence length. */
TEST_LOOP(a_cover_holds_each_kept_element_once, 0, ARRAY_LEN(seq_lens))
{
    int found = 0;
    for (size_t k = 0; k < ARRAY_LEN(mask_names); k++) {
        SCOPED_BY(mask_release) struct mask m = mask_of(mask_names[k], seq_lens[_i]);
        for (int set = 0; set < 3; set++) {
            int lengths[B];
            found += check_cover(&m, lengths_of(set, seq_lens[_i], lengths)) > 0;
        }
    }
    if (seq_lens[_i] >= 333)
        ck_assert_int_ge(found, 9);
    else
        ck_assert_int_eq(found, 0);
}

/* A mask (B,S,S) whose matrices keep (i - j) mod step = 0 in different bands, and a few elements
 * off the step. */
static struct mask batched_mask(int s, int step, int strays)
{
    SCOPED uint8_t *data = mem_alloc(B, (size_t)s * (size_t)s);
    for (int b = 0; b < B; b++) {
        uint8_t *of = data + (int64_t)b * s * s;
        for (int i = 0; i < s; i++)
            for (int j = i % step; j < s; j += step)
                of[(int64_t)i * s + j] = abs(i - j) <= (b + 10) * step;
        for (int n = 0; n < strays; n++)
            of[(int64_t)(n * 37 % s) * s + n * 101 % s] = 1;
    }
    return mask_of_file(B, s, data);
}

TEST(a_cover_of_a_file_depends_on_its_bits_alone)
{
    static const int lengths[B] = {700, 65};
    for (int strays = 0; strays <= 40; strays += 40) {
        SCOPED_BY(mask_release) struct mask m = batched_mask(700, 9, strays);
        ck_assert_int_eq(check_cover(&m, NULL), strays > 0 ? 2 : 1);
        ck_assert_int_gt(check_cover(&m, lengths), 0);
    }
}

/* Blocks of 64x64 before and after. */
static const struct {
    const char *mask;
    int seq_len, parts;
    int64_t plain, ordered; /* entries; ordered 0: no cover is better */
} known[] = {{"causal", 1024, 0, 136, 0},
             {"sliding", 1024, 0, 46, 0},
             {"dilated:w=40,d=3", 768, 1, 54, 30},
             {"fixed", 1024, 1, 136, 45},
             {"strided", 1024, 2, 136, 47}};

TEST_LOOP(known_covers, 0, ARRAY_LEN(known))
{
    SCOPED_BY(mask_release) struct mask m = mask_of(known[_i].mask, known[_i].seq_len);
    SCOPED_BY(block_lists_release) struct block_lists plain;
    SCOPED_BY(cover_release) struct cover c;
    block_lists_build(&m, 1, NULL, &plain);
    cover_build(&m, 1, NULL, &plain, &c);
    ck_assert_int_eq(plain_entries(&plain), known[_i].plain);
    ck_assert_int_eq(cover_entries(&c), known[_i].ordered);
    ck_assert_int_eq(c.parts, known[_i].parts);
}

SUITE("cover", NULL, NULL)
