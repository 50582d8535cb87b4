/* Choices and launches of hopper_attention. */
#include "codegen/codegen.h"
#include "tests/suite.h"

static const struct {
    struct segment segment;
    enum dtype dtype;
    int head_size, arch;
    const char *schedule, *why; /* why: null where it is applicable */
} hopper_attentions[] = {
    {{1, 5}, DTYPE_FP16, 64, CUDA_ARCH_HOPPER, "", NULL},
    {{1, 6}, DTYPE_BF16, 64, CUDA_ARCH_HOPPER, "shape=64_overlap", NULL},
    {{2, 5}, DTYPE_FP16, 64, CUDA_ARCH_HOPPER, "shape=64_split", NULL},
    {{2, 6}, DTYPE_FP16, 64, CUDA_ARCH_HOPPER, "shape=128", NULL},
    {{1, 6}, DTYPE_FP16, 64, 80, "", "wgmma is an instruction of sm_90a alone"},
    {{1, 6}, DTYPE_FP16, 64, 120, "", "wgmma is an instruction of sm_90a alone"},
    {{1, 6}, DTYPE_TF32, 64, CUDA_ARCH_HOPPER, "", "this kernel computes in fp16 and bf16 alone"},
    {{1, 6},
     DTYPE_FP16,
     32,
     CUDA_ARCH_HOPPER,
     "",
     "this kernel takes head size 64 alone: others lack registers for wgmma"},
    {{1, 6},
     DTYPE_FP16,
     128,
     CUDA_ARCH_HOPPER,
     "",
     "this kernel takes head size 64 alone: others lack registers for wgmma"},
};

START_TEST(hopper_attention_is_of_few_types_and_head_sizes)
{
    const struct build_target t = {TARGET_CUDA, hopper_attentions[_i].dtype,
                                   hopper_attentions[_i].head_size, hopper_attentions[_i].arch,
                                   false};
    struct choice c = {.segment = hopper_attentions[_i].segment,
                       .impl = impl_find(TARGET_CUDA, "hopper_attention")};
    struct status st = STATUS_INIT;
    const char *why = NULL;
    ck_assert_int_eq(schedule_parse(c.impl, hopper_attentions[_i].schedule, &c.schedule, &st), 0);
    ck_assert_int_eq(choice_applicable(&c, &t, &why), hopper_attentions[_i].why == NULL);
    ck_assert_pstr_eq(why, hopper_attentions[_i].why);
}
END_TEST

/* 65 tokens are 2 query blocks in each of 3 * 2 heads; a tile has 1 or 2 of them. */
START_TEST(hopper_attention_has_tiles_of_query_blocks)
{
    static const struct {
        const char *schedule;
        int rows, tiles;
        bool persistent;
    } cases[] = {{"", 1, 12, true},
                 {"shape=64_overlap", 1, 12, false},
                 {"shape=64_split", 1, 12, false},
                 {"shape=128", 2, 6, true}};
    struct workload w;
    workload_init(&w);
    w.batch = 3;
    w.seq_len = 65;
    w.heads = 2;
    w.dtype = DTYPE_FP16;
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct choice c = {.segment = {1, 6}, .impl = impl_find(TARGET_CUDA, "hopper_attention")};
        struct status st = STATUS_INIT;
        struct cuda_launch l;
        ck_assert_int_eq(schedule_parse(c.impl, cases[i].schedule, &c.schedule, &st), 0);
        choice_launch(&c, &w, &l);
        ck_assert_int_eq(l.tile_rows, cases[i].rows);
        ck_assert_int_eq(l.tiles, cases[i].tiles);
        ck_assert_int_eq(l.persistent, cases[i].persistent);
        ck_assert(!l.cooperative);
    }
}
END_TEST

SUITE("cuda_attention", NULL, NULL,
      LOOP(hopper_attention_is_of_few_types_and_head_sizes, 0, ARRAY_LEN(hopper_attentions)),
      ONCE(hopper_attention_has_tiles_of_query_blocks))
