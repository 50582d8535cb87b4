#include "codegen/codegen.h"
#include "tests/masks.h"
#include "tests/workload.h"

enum { BATCH = 2 };

/* At 2200 tokens a query row has 35 blocks: more entries than a tile's head holds. */
static const struct {
    int seq_len;
    const char *lengths; /* null: none */
} shapes[] = {{1, NULL}, {64, NULL}, {333, NULL}, {333, "333,70"}, {2200, NULL}, {2200, "2200,65"}};

/* The entry that a query block has for a key block: its place, or -1. */
static int listed(const struct block_lists *l, int row, int key_block)
{
    for (int e = l->start[row]; e < l->start[row + 1]; e++)
        if (l->key_block[e] == key_block)
            return e;
    return -1;
}

static const int *entry_at(const struct query_tiles *q, int tile, int i)
{
    int64_t rest = q->tile[4 * tile + 3];
    return i < TILE_HEAD ? q->head + ((int64_t)tile * TILE_HEAD + i) * q->entry_ints
                         : q->rest + (rest + i - TILE_HEAD) * q->entry_ints;
}

/* Checks one word of an entry; returns whether the query block uses it. */
static bool check_word(const struct block_lists *l, int list, int block, int key_block, int word)
{
    int e = block < l->blocks ? listed(l, list * l->blocks + block, key_block) : -1;
    ck_assert_int_eq(word, e < 0 ? TILE_SKIP : l->bits[e] < 0 ? TILE_FULL : l->bits[e]);
    return e >= 0;
}

/* Every word says what the lists say, no key block comes twice, and none is left out: the words in
 * use are as many as the entries of the lists. */
static void check_tiles(const struct block_lists *l, const struct query_tiles *q)
{
    int64_t used = 0, rest = 0;
    int last = l->blocks + 1;
    for (int t = 0; t < q->count; t++) {
        const int *tile = q->tile + 4 * t;
        int before = -1;
        bool shared = true; /* by all query blocks; these entries come first, each kind ascending */
        ck_assert_int_le(tile[2], last);
        last = tile[2];
        for (int i = 0; i < tile[2]; i++) {
            const int *entry = entry_at(q, t, i);
            int users = 0;
            for (int r = 0; r < q->rows; r++)
                users += check_word(l, tile[0], tile[1] + r, entry[0], entry[1 + r]);
            used += users;
            ck_assert_int_gt(users, 0);
            if (shared && users < q->rows)
                before = -1;
            ck_assert(shared || users < q->rows);
            shared = users == q->rows;
            ck_assert_int_gt(entry[0], before);
            before = entry[0];
        }
        rest += tile[2] > TILE_HEAD ? tile[2] - TILE_HEAD : 0;
    }
    ck_assert_int_eq(used, l->start[l->lists * l->blocks]);
    ck_assert_int_eq(rest, q->rest_count);
}

/* _i: a shape. */
START_TEST(tiles_hold_what_the_lists_hold)
{
    for (size_t m = 0; m < ARRAY_LEN(mask_names); m++) {
        struct workload w;
        workload_init(&w);
        w.batch = BATCH;
        w.seq_len = shapes[_i].seq_len;
        workload_ready(&w, mask_names[m], shapes[_i].lengths, NULL);
        for (int rows = 1; rows <= TILE_ROWS_MAX; rows++) {
            struct query_tiles q;
            query_tiles_build(&w.blocks, rows, &q);
            ck_assert_int_eq(q.count, w.blocks.lists * ((w.blocks.blocks + rows - 1) / rows));
            check_tiles(&w.blocks, &q);
            query_tiles_release(&q);
        }
        workload_release(&w);
    }
}
END_TEST

SUITE("query_tiles", NULL, NULL, LOOP(tiles_hold_what_the_lists_hold, 0, ARRAY_LEN(shapes)))
