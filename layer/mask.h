/* The sections of layer.h on attention: masks, their lists of blocks, and covers.
 * Include layer.h. */
#pragma once

#include "base/base.h"

/* ---- mask.c, mask_spec.c, mask_bits.c, mask_file.c: attention masks -----------------------------
 *
 * A mask says which keys j a query i keeps.  Its text is a name and optional parameters:
 * "sliding:w=64".  docs/masks.md defines each. */

enum { MASK_BLOCK = 64, MASK_PARAM_MAX = 4, MASK_PARAM_DEFAULT = -1, SEQ_LEN_MAX = 65536 };

struct mask_spec {
    const struct mask_kind *kind;      /* row of mask.c's table */
    int64_t param[MASK_PARAM_MAX];     /* those not given are MASK_PARAM_DEFAULT until resolved */
    char *path;                        /* owned; null unless the mask is a file */
    char content_hash[HASH_TEXT_SIZE]; /* of a file, set by mask_build() */
};

/* A mask as bits: matrix b (0 for all batch rows if matrices == 1), row i, word j/64, bit j%64. */
struct mask {
    int seq_len, matrices, row_words;
    uint64_t *bits;     /* (matrices, seq_len, row_words); bits past seq_len are 0 */
    bool borrowed;      /* mask_release() does not free the bits */
    int64_t empty_rows; /* rows that keep no key: their context is 0 */
};

int mask_parse(const char *text, struct mask_spec *out, struct status *st);
void mask_spec_release(struct mask_spec *spec);
void mask_spec_copy(struct mask_spec *dst, const struct mask_spec *src);

/* Fills the parameters not given with their defaults for a sequence length, 1..SEQ_LEN_MAX. */
int mask_resolve(struct mask_spec *spec, int seq_len, struct status *st);

/* Appends the text of a resolved mask, "strided:t=32"; "file:HASH" of a file that is built. */
void mask_text(const struct mask_spec *spec, struct buf *out);

/* How far the parameters of two resolved masks are apart: the sum of |log((a + 1) / (b + 1))|.  NaN
 * if their names differ or they are files. */
double mask_distance(const struct mask_spec *a, const struct mask_spec *b);

/* Builds a resolved mask.  npy: the bytes of the spec's file, an array (S,S) or (batch,S,S). */
int mask_build(struct mask_spec *spec, int batch, int seq_len, const struct buf *npy,
               struct mask *out, struct status *st);

/* If a named mask with its usual parameters keeps the same keys as m, replaces *spec by it and
 * returns true.  False for masks that differ by batch row.  Builds rows of each named mask. */
bool mask_name(const struct mask *m, struct mask_spec *spec);
void mask_release(struct mask *m);
size_t mask_bytes(const struct mask *m); /* of its bits */
bool mask_keep(const struct mask *m, int batch_row, int i, int j);

/* If each query i keeps the keys from i - left to i + right, as far as they exist, and one matrix
 * holds for the whole batch: returns true with the least such numbers. */
bool mask_band(const struct mask *m, int *left, int *right);

/* For --help and completion: "strided", "strided:t=N", "causal: the last t keys and ...". */
int mask_kind_count(void);
void mask_kind_info(int index, const char **name, const char **usage, struct buf *summary);

/* ---- blocks.c: lists of 64x64 attention blocks --------------------------------------------------
 *
 * For each block of 64 query rows: the key blocks of which it keeps an element.  Full blocks come
 * first, then partial ones, each group ascending.  A block is full if all its 64 keys are real and
 * kept by every real query row; keys and rows past a length keep nothing.  There is one list for
 * the whole batch, or one for each batch row if their matrices or lengths differ. */

struct block_lists {
    int lists, blocks;  /* blocks = ceil(S/64) query blocks of a list */
    int *start;         /* (lists*blocks + 1) first entry of (list, query block) */
    int *full;          /* (lists*blocks) how many of its entries are full */
    int *key_block;     /* (entries) */
    int *bits;          /* (entries) row of words, -1 for a full block */
    uint64_t *words;    /* (bit_blocks, 64): bit c of word r keeps key c for query row r */
    int64_t bit_blocks; /* partial entries */
    bool has_band;      /* the mask without lengths keeps a band: see mask_band() */
    int band[2];        /* how many keys before a query's own, and behind it */
    /* Summed over the batch: kept elements, and blocks; blocks_all counts empty ones too. */
    int64_t kept, blocks_full, blocks_partial, blocks_all;
};

/* lengths: (batch), null: all are S. */
void block_lists_build(const struct mask *m, int batch, const int *lengths,
                       struct block_lists *out);
void block_lists_release(struct block_lists *l);

/* ---- cover.c: the mask in orders of tokens that need fewer blocks -------------------------------
 *
 * Block lists see blocks of neighbouring tokens only, and a mask like `strided` keeps a few
 * elements of nearly every such block.  Ordered by i mod step, its stripes fill few blocks.  A
 * *cover* is the mask as one or two *parts*.  A part has an order of tokens for query rows, one for
 * keys, and the block lists of the elements that it holds, in these orders.  Every kept element is
 * in exactly one part.  The plain block lists are the cover of one part in plain order.
 *
 * Orders are found from the bits alone, so a file with the same bits gets the same cover:
 *   residue   by i mod step: 0, step, 2 step, ..., 1, 1 + step, ...  The step is the gap that most
 *             kept keys of a few rows have.
 *   summary   columns that more than twice as many query blocks use as the median column come
 *             first. */

enum token_order { ORDER_PLAIN, ORDER_RESIDUE, ORDER_SUMMARY };

enum { COVER_PARTS_MAX = 2 };

struct cover_part {
    enum token_order query_order, key_order;
    int step;         /* of ORDER_RESIDUE */
    int summary;      /* of ORDER_SUMMARY: how many columns come first */
    int *query_token; /* (blocks*64) the token at each place, -1 past the last; null: plain order */
    int *key_token;   /* likewise */
    struct block_lists blocks;
};

struct cover {
    int parts; /* 0: no cover has fewer blocks than the plain lists */
    struct cover_part part[COVER_PARTS_MAX];
};

/* The cover of the fewest blocks, if it has fewer than the plain lists.  lengths as for
 * block_lists_build(). */
void cover_build(const struct mask *m, int batch, const int *lengths,
                 const struct block_lists *plain, struct cover *out);
void cover_release(struct cover *c);

int64_t cover_entries(const struct cover *c); /* blocks that are not empty, summed over the batch */

/* Appends "queries and keys by residue modulo 32: 0 full and 16 partial blocks". */
void cover_part_text(const struct cover_part *p, struct buf *out);
