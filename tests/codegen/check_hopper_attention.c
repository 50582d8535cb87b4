/* Choices and launches of hopper_attention. */
#include "codegen/codegen.h"
#include "kernels/cuda/abi.h"
#include "tests/suite.h"
#include "tests/workload.h"

static const struct {
    struct segment segment;
    enum dtype dtype;
    int head_size, arch;
    const char *schedule, *why; /* why: null where it is applicable */
    bool ordered;               /* the workload has a cover */
} hopper_attentions[] = {
    {{1, 6}, DTYPE_FP16, 64, CUDA_ARCH_HOPPER, "cover=ordered", NULL, true},
    {{1, 6},
     DTYPE_FP16,
     64,
     CUDA_ARCH_HOPPER,
     "cover=ordered",
     "no order of tokens needs fewer blocks of this mask",
     false},
    {{1, 6},
     DTYPE_FP16,
     64,
     CUDA_ARCH_HOPPER,
     "shape=64_overlap cover=ordered",
     "a part of the mask waits for tiles that were drawn before its own, and this shape draws none",
     true},
    {{1, 5}, DTYPE_FP16, 64, CUDA_ARCH_HOPPER, "", NULL, true},
    {{1, 6}, DTYPE_BF16, 64, CUDA_ARCH_HOPPER, "shape=64_overlap", NULL, true},
    {{2, 5}, DTYPE_FP16, 64, CUDA_ARCH_HOPPER, "shape=64_split", NULL, true},
    {{2, 5}, DTYPE_FP16, 64, CUDA_ARCH_HOPPER, "shape=64_cluster", NULL, true},
    {{2, 6}, DTYPE_FP16, 64, CUDA_ARCH_HOPPER, "shape=128", NULL, true},
    {{1, 6}, DTYPE_BF16, 64, CUDA_ARCH_HOPPER, "shape=192", NULL, true},
    {{1, 6},
     DTYPE_FP16,
     64,
     CUDA_ARCH_HOPPER,
     "shape=192 cover=ordered",
     "where three query blocks share the keys, the tokens of a cover have no registers",
     true},
    {{1, 6}, DTYPE_FP16, 64, 80, "", "wgmma is an instruction of sm_90a alone", true},
    {{1, 6}, DTYPE_FP16, 64, 120, "", "wgmma is an instruction of sm_90a alone", true},
    {{1, 6},
     DTYPE_TF32,
     64,
     CUDA_ARCH_HOPPER,
     "",
     "this kernel computes in fp16 and bf16 alone",
     true},
    {{1, 6},
     DTYPE_FP16,
     32,
     CUDA_ARCH_HOPPER,
     "",
     "this kernel takes head sizes 64 and 128 alone",
     true},
    {{1, 6}, DTYPE_FP16, 128, CUDA_ARCH_HOPPER, "", NULL, true},
    {{1, 6}, DTYPE_FP16, 128, CUDA_ARCH_HOPPER, "shape=64_overlap", NULL, true},
    {{1, 6}, DTYPE_FP16, 128, CUDA_ARCH_HOPPER, "shape=64_split", NULL, true},
    {{1, 6}, DTYPE_FP16, 128, CUDA_ARCH_HOPPER, "shape=128 cover=ordered", NULL, true},
    {{1, 6}, DTYPE_FP16, 128, CUDA_ARCH_HOPPER, "shape=192", NULL, true},
};

START_TEST(hopper_attention_is_of_few_types_and_head_sizes)
{
    const struct build_target t = {&chain_bert,
                                   TARGET_CUDA,
                                   hopper_attentions[_i].dtype,
                                   hopper_attentions[_i].head_size,
                                   hopper_attentions[_i].arch,
                                   false,
                                   hopper_attentions[_i].ordered,
                                   NULL};
    struct choice c = {.chain = &chain_bert,
                       .segment = hopper_attentions[_i].segment,
                       .impl = impl_find(TARGET_CUDA, "hopper_attention")};
    struct status st = STATUS_INIT;
    const char *why = NULL;
    ck_assert_int_eq(schedule_parse(c.impl, hopper_attentions[_i].schedule, &c.schedule, &st), 0);
    ck_assert_int_eq(choice_applicable(&c, &t, &why), hopper_attentions[_i].why == NULL);
    ck_assert_pstr_eq(why, hopper_attentions[_i].why);
}
END_TEST

/* 65 tokens are 2 query blocks in each of 3 * 2 heads; a tile has 1 to 3 of them, and 1 or 2 thread
 * blocks. */
static const struct {
    const char *schedule;
    int rows, tiles;
    bool persistent;
} tilings[] = {{"", 1, 12, true},
               {"shape=64_overlap", 1, 12, false},
               {"shape=64_split", 1, 12, false},
               {"shape=64_cluster", 1, 24, false},
               {"shape=128", 2, 6, true},
               {"shape=192", 3, 6, true}};

static struct cuda_launch launch_of(const char *schedule, const struct workload *w)
{
    struct choice c = {.chain = &chain_bert,
                       .segment = {1, 6},
                       .impl = impl_find(TARGET_CUDA, "hopper_attention")};
    struct status st = STATUS_INIT;
    struct cuda_launch l;
    ck_assert_int_eq(schedule_parse(c.impl, schedule, &c.schedule, &st), 0);
    choice_launch(&c, w, &l);
    return l;
}

START_TEST(hopper_attention_has_tiles_of_query_blocks)
{
    struct workload w = workload_of_195(DTYPE_FP16);
    struct cuda_launch l = launch_of(tilings[_i].schedule, &w);
    ck_assert_int_eq(l.tiling.rows, tilings[_i].rows);
    ck_assert(!l.tiling.ordered);
    ck_assert_int_eq(l.tiles, tilings[_i].tiles);
    ck_assert_int_eq(l.persistent, tilings[_i].persistent);
    ck_assert_int_eq(l.sync_words, FP_SYNC_TILES);
    ck_assert_int_eq(l.workspace_bytes, 0);
    ck_assert(!l.cooperative);
    workload_release(&w);
}
END_TEST

/* 1024 tokens are 16 query blocks.  In two parts every tile comes twice, heads count arrivals, and
 * the workspace has a sum for each row. */
START_TEST(a_cover_in_parts_needs_counters_and_sums)
{
    static const struct {
        const char *mask;
        int parts;
    } cases[] = {{"full", 1}, {"dilated:w=40,d=3", 1}, {"strided", 2}};
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct workload w;
        workload_init(&w);
        w.batch = 3;
        w.seq_len = 1024;
        w.heads = 2;
        w.dtype = DTYPE_FP16;
        workload_ready(&w, cases[i].mask, NULL, NULL);
        bool joins = cases[i].parts > 1;
        struct cuda_launch l = launch_of("cover=ordered", &w);
        ck_assert(l.tiling.ordered && l.persistent);
        ck_assert_int_eq(l.tiles, cases[i].parts * 3 * 2 * 16);
        ck_assert_int_eq(l.sync_words, FP_SYNC_TILES + (joins ? 3 * 2 : 0));
        ck_assert_int_eq(l.workspace_bytes, joins ? 3 * 2 * 1024 * 4 : 0);
        workload_release(&w);
    }
}
END_TEST

SUITE("hopper_attention", NULL, NULL,
      LOOP(hopper_attention_is_of_few_types_and_head_sizes, 0, ARRAY_LEN(hopper_attentions)),
      LOOP(hopper_attention_has_tiles_of_query_blocks, 0, ARRAY_LEN(tilings)),
      ONCE(a_cover_in_parts_needs_counters_and_sums))
