/* Tiles of joined rows: 64 neighbouring token rows of the whole batch, which may belong to several
 * sequences.  Each token keeps the keys of its own sequence in a band.  C, and CUDA for host and
 * device. */
#ifndef FUSEPLAN_CUDA_JOINED_H
#define FUSEPLAN_CUDA_JOINED_H

#include "abi.h"

#include <stdbool.h>
#include <stddef.h>

#ifdef __CUDACC__
#define FP_JOINED static __host__ __device__ inline
#else
#define FP_JOINED static inline
#endif

typedef unsigned long long fp_word; /* of the mask */

/* What tiles are made of, and where: tile, head and words become those of struct fp_tiles. */
struct fp_join_tiles {
    int batch, seq_len;
    int left, right, most; /* as in plan_tiles */
    const int *lengths;    /* (batch); null: all are seq_len */
    const int *offset; /* (batch + 1) the first row of each sequence; null: sequence * seq_len */
    int *tile, *head;
    fp_word *words; /* (tiles * most, 64) */
};

/* Those of a block's keys that lie before a row. */
FP_JOINED fp_word fp_keys_before(int key_block, int row)
{
    int keys = row - key_block * FP_BLOCK;
    return keys >= FP_BLOCK ? ~(fp_word)0 : keys <= 0 ? 0 : ((fp_word)1 << keys) - 1;
}

/* The most entries of a tile of 64 rows whose tokens keep so many keys on each side. */
FP_JOINED int fp_joined_entries(int left, int right)
{
    return (FP_BLOCK - 1 + left + right) / FP_BLOCK + 2;
}

FP_JOINED int fp_joined_rows(const struct fp_join_tiles *c)
{
    return c->offset != NULL ? c->offset[c->batch] : c->batch * c->seq_len;
}

/* The keys of a row, by their rows.  A row of padding has none, behind those of its sequence. */
struct fp_key_rows {
    int first, end;
};

FP_JOINED struct fp_key_rows fp_keys_of(const struct fp_join_tiles *c, int row)
{
    int b = 0, after = c->batch; /* sequence b begins at or before the row, `after` behind it */
    while (c->offset != NULL && after - b > 1) {
        int middle = (b + after) / 2;
        if (c->offset[middle] <= row)
            b = middle;
        else
            after = middle;
    }
    if (c->offset == NULL)
        b = row / c->seq_len;
    int begin = c->offset != NULL ? c->offset[b] : b * c->seq_len;
    int end = begin + (c->lengths != NULL ? c->lengths[b] : c->seq_len);
    struct fp_key_rows keys = {row < end ? begin : end, row + c->right + 1};
    if (row - c->left > keys.first)
        keys.first = row - c->left;
    if (row >= end)
        keys.end = keys.first;
    else if (keys.end > end)
        keys.end = end;
    return keys;
}

/* Row r of tile t: its words, and with row 0 the tile itself.  Keys begin and end no earlier in a
 * later row.  So the tile's lie from the first row's to the last one's, and a block that both have
 * all of is full. */
FP_JOINED void fp_join_row(const struct fp_join_tiles *c, int t, int r)
{
    enum { HEAD = 32 };
    int rows = fp_joined_rows(c), first = t * FP_BLOCK;
    int last = first + FP_BLOCK <= rows ? first + FP_BLOCK - 1 : rows - 1;
    struct fp_key_rows keys = {0, 0}, of_first = fp_keys_of(c, first),
                       of_last = fp_keys_of(c, last);
    if (first + r <= last)
        keys = fp_keys_of(c, first + r);
    int block = of_first.first / FP_BLOCK, end = (of_last.end + FP_BLOCK - 1) / FP_BLOCK, n = 0;
    for (; block < end; block++, n++) {
        bool full = of_last.first <= block * FP_BLOCK && of_first.end >= (block + 1) * FP_BLOCK;
        long word = (long)t * c->most + n;
        c->words[word * FP_BLOCK + r] =
            fp_keys_before(block, keys.end) & ~fp_keys_before(block, keys.first);
        if (r == 0) {
            c->head[(t * HEAD + n) * 2] = block;
            c->head[(t * HEAD + n) * 2 + 1] = full ? -1 : (int)word;
        }
    }
    if (r == 0) {
        int *tile = c->tile + 4 * t;
        tile[0] = tile[3] = 0;
        tile[1] = t;
        tile[2] = n;
    }
}

#endif
