/* The order of a table's rows, and who searches which. */
#include "search/search.h"
#include "tests/suite.h"

enum { ROWS_MAX = 600, SHARDS_MAX = 40 };
static const char *const families[] = {" -H 2", " --preset bert-base", ""};
static const char *const masks[] = {"strided", "full", "causal", "sliding:w=4", "dilated:w=4,d=3"};
static struct sweep_row rows[ROWS_MAX];

/* A random table without a row twice, in random order. */
static int draw_table(struct rng *r)
{
    int count = 0;
    uint32_t share = 1 + rng_below(r, 100);
    for (int k = 0; k < ROWS_MAX; k++) {
        rows[count] = (struct sweep_row){.family = families[k % 3],
                                         .mask = masks[k / 3 % 5],
                                         .batch = 1 << (k / 15 % 5),
                                         .seq_len = 64 << (k / 75 % 8)};
        count += rng_below(r, 100) < share;
    }
    for (int i = 0; i < count; i++) {
        uint32_t other = rng_below(r, (uint32_t)count);
        struct sweep_row kept = rows[i];
        rows[i] = rows[other];
        rows[other] = kept;
    }
    for (int i = 0; i < count; i++)
        rows[i].index = i;
    return count;
}

static bool grouped(const struct sweep_row *a, const struct sweep_row *b)
{
    return a->family == b->family && a->batch == b->batch && a->seq_len == b->seq_len;
}

static double cost(const struct sweep_row *row)
{
    return 1 + row->batch * row->seq_len / 512.0;
}

TEST_LOOP(rows_follow_what_is_like_them, 0, 20)
{
    struct rng r = {(uint64_t)_i};
    int count = draw_table(&r);
    bool seen[ROWS_MAX] = {false};
    sweep_order(rows, count);
    for (int i = 0; i < count; i++) {
        ck_assert(!seen[rows[i].index]);
        seen[rows[i].index] = true;
        if (i == 0)
            continue;
        const struct sweep_row *a = &rows[i - 1], *b = &rows[i];
        int by = strcmp(a->family, b->family);
        by = by != 0 ? by : a->batch * a->seq_len - b->batch * b->seq_len;
        by = by != 0 ? by : a->seq_len - b->seq_len;
        ck_assert_int_le(by, 0);
        if (by == 0)
            ck_assert_str_ne(b->mask, "full");
    }
}

TEST_LOOP(shards_are_complete_and_even, 0, 200)
{
    struct rng r = {(uint64_t)_i};
    int count = draw_table(&r), shards = 1 + _i % SHARDS_MAX;
    double load[SHARDS_MAX] = {0}, total = 0, largest = 0, dearest = 0;
    sweep_order(rows, count);
    for (int i = 0; i < count; i++)
        rows[i].shard = -1;
    sweep_shards(rows, count, shards);
    for (int i = 0; i < count; i++) {
        ck_assert(rows[i].shard >= 0 && rows[i].shard < shards);
        load[rows[i].shard] += cost(&rows[i]);
        total += cost(&rows[i]);
    }
    const double mean = total / shards;
    for (int i = 0, end; i < count; i = end) { /* groups */
        double group = 0;
        bool split = false;
        for (end = i; end < count && grouped(&rows[end], &rows[i]); end++) {
            group += cost(&rows[end]);
            split |= rows[end].shard != rows[i].shard;
        }
        if (split)
            ck_assert_double_gt(group, SWEEP_GROUP_MOST * mean);
        group = group > SWEEP_GROUP_MOST * mean ? cost(&rows[i]) : group;
        dearest = group > dearest ? group : dearest;
    }
    for (int i = 0; i < shards; i++)
        largest = load[i] > largest ? load[i] : largest;
    /* Graham's bound of dealing to whom has the least. */
    ck_assert_double_le(largest, mean + dearest * (1 - 1.0 / shards) + 1e-9);
}

/* The part does not depend on the order of the table's rows. */
TEST_LOOP(shards_are_those_of_the_rows, 0, 12)
{
    struct rng r = {7}, again = {7};
    int count = draw_table(&r);
    struct sweep_row first[ROWS_MAX];
    sweep_order(rows, count);
    sweep_shards(rows, count, 1 + _i);
    memcpy(first, rows, sizeof(first));
    ck_assert_int_eq(draw_table(&again), count);
    for (int i = 0; i < count / 2; i++) {
        struct sweep_row kept = rows[i];
        rows[i] = rows[count - 1 - i];
        rows[count - 1 - i] = kept;
    }
    sweep_order(rows, count);
    sweep_shards(rows, count, 1 + _i);
    for (int i = 0; i < count; i++) {
        ck_assert_str_eq(rows[i].mask, first[i].mask);
        ck_assert_int_eq(rows[i].shard, first[i].shard);
    }
}

TEST(devices_keep_their_groups)
{
    static const struct {
        int batch, seq_len;
    } sizes[] = {{1, 8}, {1, 8}, {1, 8}, {2, 8}, {4, 8}};
    bool taken[5] = {false};
    for (int i = 0; i < 5; i++)
        rows[i] = (struct sweep_row){
            .family = "", .mask = masks[i], .batch = sizes[i].batch, .seq_len = sizes[i].seq_len};
    const struct {
        int last, expected;
    } asked[] = {{-1, 0}, {-1, 3}, {0, 1}, {3, 4}, {4, 2}, {1, -1}};
    for (size_t i = 0; i < ARRAY_LEN(asked); i++) {
        int got = sweep_next(rows, 5, taken, asked[i].last);
        ck_assert_int_eq(got, asked[i].expected);
        if (got >= 0)
            taken[got] = true;
    }
}

SUITE("sweep", test_dir_setup, test_dir_teardown)
