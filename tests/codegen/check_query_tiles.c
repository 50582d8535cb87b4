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

/* The block lists of a part, and where its row words begin among those of all parts. */
struct part {
    const struct block_lists *lists;
    int64_t first_word;
};

static struct part part_of(const struct workload *w, const struct tiling *t, int number)
{
    struct part p = {&w->blocks, 0};
    if (!t->ordered || w->cover.parts == 0)
        return p;
    for (int i = 0; i < number; i++)
        p.first_word += w->cover.part[i].blocks.bit_blocks;
    p.lists = &w->cover.part[number].blocks;
    return p;
}

/* Checks one word of an entry; returns whether the query block uses it. */
static bool check_word(const struct part *p, int list, int block, int key_block, int word)
{
    const struct block_lists *l = p->lists;
    int e = block < l->blocks ? listed(l, list * l->blocks + block, key_block) : -1;
    ck_assert_int_eq(word, e < 0            ? TILE_SKIP
                           : l->bits[e] < 0 ? TILE_FULL
                                            : (int)p->first_word + l->bits[e]);
    return e >= 0;
}

/* Every entry says what the lists say; returns how many words are in use. */
static int64_t check_tile(const struct part *p, const struct query_tiles *q, int t, int block)
{
    const int *tile = q->tile + TILE_INTS * t;
    int64_t used = 0;
    int before = -1;
    bool shared = true; /* by all query blocks; these entries come first, each kind ascending */
    for (int i = 0; i < tile[2]; i++) {
        const int *entry = entry_at(q, t, i);
        int users = 0;
        for (int r = 0; r < q->rows; r++)
            users += check_word(p, tile[0], block + r, entry[0], entry[1 + r]);
        used += users;
        ck_assert_int_gt(users, 0);
        if (shared && users < q->rows)
            before = -1;
        ck_assert(shared || users < q->rows);
        shared = users == q->rows;
        ck_assert_int_gt(entry[0], before);
        before = entry[0];
    }
    return used;
}

/* Tiles come part by part, in each those with the most entries first.  The words in use are as many
 * as the entries of the lists, so none is left out and none comes twice; returns their number. */
static int64_t check_tiles(const struct workload *w, const struct tiling *how,
                           const struct query_tiles *q)
{
    int blocks = w->blocks.blocks, last = INT32_MAX, previous = 0;
    int64_t used = 0, wanted = 0, rest = 0;
    for (int t = 0; t < q->count; t++) {
        const int *tile = q->tile + TILE_INTS * t;
        int number = tile[1] / blocks;
        struct part p = part_of(w, how, number);
        if (number != previous)
            last = INT32_MAX;
        ck_assert_int_ge(number, previous);
        ck_assert_int_le(tile[2], last);
        used += check_tile(&p, q, t, tile[1] % blocks);
        rest += tile[2] > TILE_HEAD ? tile[2] - TILE_HEAD : 0;
        last = tile[2];
        previous = number;
    }
    ck_assert_int_eq(previous, q->parts - 1);
    for (int number = 0; number < q->parts; number++) {
        struct part p = part_of(w, how, number);
        wanted += p.lists->start[p.lists->lists * blocks];
    }
    ck_assert_int_eq(used, wanted);
    ck_assert_int_eq(rest, q->rest_count);
    return used;
}

/* Row words and tokens are those of the parts. */
static void check_cover_arrays(const struct workload *w, const struct query_tiles *q)
{
    int64_t word = 0, places = (int64_t)w->blocks.blocks * MASK_BLOCK;
    ck_assert_int_eq(q->words != NULL, w->cover.parts > 0);
    for (int i = 0; i < w->cover.parts; i++) {
        const struct cover_part *p = &w->cover.part[i];
        size_t bytes = (size_t)p->blocks.bit_blocks * MASK_BLOCK * sizeof(*q->words);
        ck_assert_mem_eq(q->words + word * MASK_BLOCK, p->blocks.words, bytes);
        word += p->blocks.bit_blocks;
        for (int64_t k = 0; k < places; k++) {
            int plain = k < w->seq_len ? (int)k : -1;
            ck_assert_int_eq(q->query_token[i * places + k],
                             p->query_token != NULL ? p->query_token[k] : plain);
            ck_assert_int_eq(q->key_token[i * places + k],
                             p->key_token != NULL ? p->key_token[k] : plain);
        }
    }
    ck_assert_int_eq(word, q->word_blocks);
}

static const struct tiling tilings[] = {{1, false}, {2, false}, {1, true}, {2, true}};

/* _i: a shape. */
START_TEST(tiles_hold_what_the_lists_hold)
{
    for (size_t m = 0; m < ARRAY_LEN(mask_names); m++) {
        struct workload w;
        workload_init(&w);
        w.batch = BATCH;
        w.seq_len = shapes[_i].seq_len;
        workload_ready(&w, mask_names[m], shapes[_i].lengths, NULL);
        for (size_t i = 0; i < ARRAY_LEN(tilings); i++) {
            const struct tiling *t = &tilings[i];
            int rows = t->rows, covers = t->ordered && w.cover.parts > 0 ? w.cover.parts : 1;
            struct query_tiles q;
            query_tiles_build(&w, t, &q);
            ck_assert_int_eq(q.parts, covers);
            ck_assert_int_eq(q.count,
                             q.parts * w.blocks.lists * ((w.blocks.blocks + rows - 1) / rows));
            check_tiles(&w, t, &q);
            if (t->ordered)
                check_cover_arrays(&w, &q);
            query_tiles_release(&q);
        }
        workload_release(&w);
    }
}
END_TEST

/* Of a mask with a cover, whose tiles have fewer blocks than the plain lists. */
START_TEST(a_choice_computes_the_blocks_of_its_lists)
{
    static const struct tiling ordered = {1, true};
    struct status st = STATUS_INIT;
    struct choice c = {.chain = &chain_bert,
                       .segment = {1, 6},
                       .impl = impl_find(TARGET_CUDA, "hopper_attention")};
    struct workload w;
    struct query_tiles q;
    workload_init(&w);
    w.batch = BATCH;
    w.seq_len = 1024;
    w.dtype = DTYPE_FP16;
    workload_ready(&w, "strided", NULL, NULL);
    int64_t plain = w.blocks.blocks_full + w.blocks.blocks_partial;
    ck_assert_int_eq(choice_blocks(&c, &w), plain);
    OK(schedule_parse(c.impl, "cover=ordered", &c.schedule, &st));
    query_tiles_build(&w, &ordered, &q);
    ck_assert_int_eq(choice_blocks(&c, &w), BATCH * check_tiles(&w, &ordered, &q));
    ck_assert_int_lt(choice_blocks(&c, &w), plain);
    query_tiles_release(&q);
    workload_release(&w);
}
END_TEST

SUITE("query_tiles", NULL, NULL, LOOP(tiles_hold_what_the_lists_hold, 0, ARRAY_LEN(shapes)),
      ONCE(a_choice_computes_the_blocks_of_its_lists))
