/* How block lists are made: one query block after another. */
#pragma once

#include "layer/layer.h"

/* One matrix of the mask, cut at a length. */
struct mask_view {
    const uint64_t *bits; /* (seq_len, row_words) */
    int length, row_words;
};

/* How many lists a batch needs: 1, or one for each batch row if their matrices or
 * lengths differ. */
int mask_views(const struct mask *m, int batch, const int *lengths);

/* The matrix of list number `list`. */
struct mask_view mask_view_of(const struct mask *m, const int *lengths, int list);

/* The bits of one row in one key block; bits of keys past the length are cleared.  Word k of a
 * mask's row is its part of key block k, as MASK_BLOCK is 64. */
uint64_t mask_row_word(const struct mask_view *v, int row, int key_block);

/* The rows of one query block. */
struct panel {
    int blocks;      /* key blocks */
    uint64_t *words; /* (blocks, MASK_BLOCK): bit c of word r keeps key c for row r */
    uint64_t real;   /* bit r: row r is a real token */
};

void panel_init(struct panel *p, int blocks);
void panel_release(struct panel *p);
void panel_clear(struct panel *p);

struct lists_writer {
    struct block_lists *lists;
    int query_blocks; /* written so far, of all lists */
    int64_t entries, entry_room, word_room;
};

void lists_open(struct lists_writer *to, struct block_lists *out, int lists, int blocks);

/* Appends a query block: the first one of list 0 first. */
void lists_add(struct lists_writer *to, const struct panel *p);

/* batch: the sums count every batch row, also rows that share a list. */
void lists_close(struct lists_writer *to, int batch);
