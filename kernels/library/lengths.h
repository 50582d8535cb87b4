/* The mask's lists of blocks for sequences of given lengths, made from the lists without padding:
 * keys past a sequence's length are dropped.  C, and CUDA for host and device. */
#ifndef LENGTHS_H
#define LENGTHS_H

#include "segment.h"

#include <stddef.h>

#ifdef __CUDACC__
#define FP_ANYWHERE static __host__ __device__ inline
#else
#define FP_ANYWHERE static inline
#endif

enum { FP_FULL = -1, FP_SKIP = -2 }; /* in place of an entry's row words */

/* The keys of a block that lie before a length. */
FP_ANYWHERE fp_word fp_real_keys(int key_block, int length)
{
    int keys = length - key_block * FP_BLOCK;
    return keys >= FP_BLOCK ? ~(fp_word)0 : keys <= 0 ? 0 : ((fp_word)1 << keys) - 1;
}

/* Writes the row words of an entry of which only some keys are real; bits: its own, or FP_FULL. */
FP_ANYWHERE void fp_cut_words(const fp_word *words, int bits, fp_word real, fp_word *out)
{
    for (int r = 0; r < FP_BLOCK; r++)
        out[r] = bits == FP_FULL ? real : words[(long)bits * FP_BLOCK + r] & real;
}

/* A row of lists: the key blocks of one block of query rows. */
struct fp_list_row {
    int *key_block, *bits; /* null: count only */
    int count, full;
};

FP_ANYWHERE void fp_add_entry(struct fp_list_row *row, int key_block, int bits)
{
    if (row->key_block != NULL) {
        row->key_block[row->count] = key_block;
        row->bits[row->count] = bits;
    }
    row->count++;
    row->full += bits == FP_FULL;
}

/* Adds to *row what is left of row `at` of `from`, a block of query rows from `first_row` on: full
 * blocks first.  At most one block has both real keys and others; its words are written to
 * `spare`, which is number `spare_bits` of all words. */
FP_ANYWHERE void fp_cut_row(const struct fp_blocks *from, int at, int first_row, int length,
                            int spare_bits, fp_word *spare, struct fp_list_row *row)
{
    int cut = -1, begin = from->start[at], end = from->start[at + 1];
    for (int e = begin; e < end && first_row < length; e++) {
        fp_word real = fp_real_keys(from->key_block[e], length);
        if (real == ~(fp_word)0)
            fp_add_entry(row, from->key_block[e], from->bits[e]);
        else if (real != 0)
            cut = e;
    }
    if (cut < 0)
        return;
    if (row->key_block != NULL)
        fp_cut_words(from->words, from->bits[cut], fp_real_keys(from->key_block[cut], length),
                     spare);
    fp_add_entry(row, from->key_block[cut], spare_bits);
}

#ifdef FUSEPLAN_CUDA_ABI_H /* a CPU has no tiles */

/* Which of a block's keys are real; token: of each key, null: in order. */
FP_ANYWHERE fp_word fp_real_tokens(const int *token, int key_block, int length)
{
    fp_word real = 0;
    if (token == NULL)
        return fp_real_keys(key_block, length);
    for (int i = 0; i < FP_BLOCK; i++) {
        int t = token[key_block * FP_BLOCK + i];
        real |= (fp_word)(t < length) << i; /* t is -1 behind the last token, and masked */
    }
    return real;
}

/* Copies an entry to `to`, its words cut to the real keys, if a query block needs it.  first_row:
 * of its first query block, -1 if tokens have another order; slot: number of the words of which it
 * may write `rows`. */
FP_ANYWHERE bool fp_cut_entry(const struct fp_cut_tiles *c, const int *entry, fp_word real,
                              int first_row, int length, int slot, int *to)
{
    bool used = false;
    to[0] = entry[0];
    for (int g = 0; g < c->rows; g++) {
        int bits = entry[1 + g];
        if (first_row >= 0 && first_row + g * FP_BLOCK >= length)
            bits = FP_SKIP;
        if (bits != FP_SKIP && real != ~(fp_word)0) {
            fp_cut_words(c->words, bits, real, c->words + (long)(slot + g) * FP_BLOCK);
            bits = slot + g;
        }
        used |= bits != FP_SKIP;
        to[1 + g] = bits;
    }
    return used;
}

/* Tile t of c->from for the sequence of tile `made`: t's own where the mask has a list for each
 * sequence, else made % batch. */
FP_ANYWHERE void fp_cut_tile(const struct fp_cut_tiles *c, int t, int made)
{
    enum { HEAD = 32 };
    const int *from = c->from.tile + 4 * t;
    int b = c->lists > 1 ? from[0] : made % c->batch, length = c->lengths[b], n = 0;
    int part = from[1] >= c->blocks, block = from[1] - part * c->blocks;
    int made_tiles = c->lists > 1 ? c->from.count : c->from.count * c->batch;
    int rest = (c->lists > 1 ? 0 : b * c->rest_entries) + from[3];
    const int *token =
        c->from.key_token != NULL ? c->from.key_token + part * c->blocks * FP_BLOCK : NULL;
    for (int i = 0; i < from[2] && length > 0; i++) {
        const int *entry = i < HEAD ? c->from.head + (long)(t * HEAD + i) * c->entry_ints
                                    : c->from.rest + (long)(from[3] + i - HEAD) * c->entry_ints;
        int *to = n < HEAD ? c->head + (long)(made * HEAD + n) * c->entry_ints
                           : c->rest + (long)(rest + n - HEAD) * c->entry_ints;
        int place = n < HEAD ? made * HEAD + n : made_tiles * HEAD + rest + n - HEAD;
        fp_word real = length < c->seq_len ? fp_real_tokens(token, entry[0], length) : ~(fp_word)0;
        if (real != 0 && fp_cut_entry(c, entry, real, token != NULL ? -1 : block * FP_BLOCK, length,
                                      c->from_words + place * c->rows, to))
            n++;
    }
    int *tile = c->tile + 4 * made;
    tile[0] = b;
    tile[1] = from[1];
    tile[2] = n;
    tile[3] = rest;
}

#endif

#endif
