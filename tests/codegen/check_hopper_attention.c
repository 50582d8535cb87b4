/* Choices and launches of hopper_attention. */
#include "codegen/codegen.h"
#include "kernels/cuda/abi.h"
#include "tests/suite.h"
#include "tests/workload.h"

/* 65 tokens are 2 query blocks in each of 3 * 2 heads; a tile has 1 to 3 of them, and 1 or 2 thread
 * blocks.  As joined rows they are 4 tiles of 195 in each of 2 heads. */
static const struct {
    const char *schedule;
    int rows, tiles;
    bool persistent;
} tilings[] = {{"", 1, 12, true},
               {"shape=64_overlap", 1, 12, false},
               {"shape=64_split", 1, 12, false},
               {"shape=64_cluster", 1, 24, false},
               {"shape=128", 2, 6, true},
               {"shape=192", 3, 6, true},
               {"shape=192_tma", 3, 6, true},
               {"cover=joined", 1, 8, true}};

static struct cuda_launch launch_of(const char *schedule, const struct workload *w)
{
    struct choice c = {.chain = &chain_bert,
                       .segment = {1, 6},
                       .impl = impl_find(TARGET_CUDA, "hopper_attention")};
    struct cuda_launch l;
    OK(schedule_parse(c.impl, schedule, &c.schedule, &st));
    choice_launch(&c, w, &l);
    return l;
}

TEST_LOOP(hopper_attention_has_tiles_of_query_blocks, 0, ARRAY_LEN(tilings))
{
    SCOPED_BY(workload_release) struct workload w = workload_of_195(DTYPE_FP16);
    struct cuda_launch l = launch_of(tilings[_i].schedule, &w);
    ck_assert_int_eq(l.tiling.rows, tilings[_i].rows);
    ck_assert(!l.tiling.ordered);
    ck_assert_int_eq(l.tiles, tilings[_i].tiles);
    ck_assert_int_eq(l.persistent, tilings[_i].persistent);
    ck_assert_int_eq(l.sync_words, FP_SYNC_TILES);
    ck_assert_int_eq(l.workspace_bytes, 0);
    ck_assert(!l.cooperative);
}

/* 1024 tokens are 16 query blocks.  In two parts every tile comes twice, heads count arrivals, and
 * the workspace has a sum for each row. */
TEST(a_cover_in_parts_needs_counters_and_sums)
{
    static const struct {
        const char *mask;
        int parts;
    } cases[] = {{"full", 1}, {"dilated:w=40,d=3", 1}, {"strided", 2}};
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        SCOPED_BY(workload_release) struct workload w = workload_sized(3, 1024);
        w.heads = 2;
        w.dtype = DTYPE_FP16;
        workload_ready(&w, cases[i].mask, NULL, NULL);
        bool joins = cases[i].parts > 1;
        struct cuda_launch l = launch_of("cover=ordered", &w);
        ck_assert(l.tiling.ordered && l.persistent);
        ck_assert_int_eq(l.tiles, cases[i].parts * 3 * 2 * 16);
        ck_assert_int_eq(l.sync_words, FP_SYNC_TILES + (joins ? 3 * 2 : 0));
        ck_assert_int_eq(l.workspace_bytes, joins ? 3 * 2 * 1024 * 4 : 0);
    }
}

/* q, k and v of 12 heads of 64 columns take 4608 bytes a token in half types. */
TEST(every_other_launch_goes_backwards_where_the_cache_has_no_room)
{
    const struct fp_args small = {.tokens = 1000, .heads = 12, .head_size = 64},
                         large = {.tokens = 1001, .heads = 12, .head_size = 64};
    for (int n = 0; n < 4; n++) {
        ck_assert_int_eq(fp_goes_backwards(&small, n, 2, 4608 * 1000), 0);
        ck_assert_int_eq(fp_goes_backwards(&large, n, 2, 4608 * 1000), n % 2);
    }
}

/* A tile has room for 32 blocks of keys. */
TEST(narrow_bands_may_be_joined)
{
    static const struct {
        const char *mask, *local;
        int seq_len;
        bool joined;
    } cases[] = {{"full", NULL, 961, true},           {"full", NULL, 962, false},
                 {"sliding:w=960", NULL, 2000, true}, {"causal", NULL, 1922, false},
                 {"causal", "strided", 300, false},   {"causal", "sliding:w=3", 300, true},
                 {"strided", "causal", 300, false},   {"causal", NULL, 1921, true}};
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        SCOPED_BY(workload_release) struct workload w = workload_sized(1, cases[i].seq_len);
        w.layers = 2;
        if (cases[i].local != NULL)
            OK(workload_add_local(&w, cases[i].local, 0, 2, &st));
        workload_ready(&w, cases[i].mask, NULL, NULL);
        ck_assert_msg(build_target_of(TARGET_CUDA, "sm_90", false, &w).joined == cases[i].joined,
                      "%s", cases[i].mask);
    }
}

SUITE("hopper_attention", NULL, NULL)
