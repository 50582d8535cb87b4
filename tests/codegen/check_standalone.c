/* Programs of their own; cmd's suites build and run those of the CPU, tests/cuda those of a GPU. */
#include "codegen/codegen_int.h"
#include "tests/candidate.h"
#include "tests/workload.h"

static const char *file_of(const struct standalone *p, const char *name)
{
    for (int i = 0; i < p->count; i++)
        if (strcmp(p->files[i].name, name) == 0)
            return p->files[i].text.ptr;
    return NULL;
}

static int occurrences(const char *text, const char *part)
{
    int count = 0;
    for (const char *p = text; (p = strstr(p, part)) != NULL; p++)
        count++;
    return count;
}

/* A plan that fuses operators `fused` alone.  impl: of that segment, with this schedule.  Without a
 * library, unless that is asked for.  tokens: tuned packed, with so many; 0: all, not packed.
 * local_mask: of every other layer; null: all are global. */
static void emit_plan(const char *fused, const char *impl, const char *schedule, int tokens,
                      const char *local_mask, struct standalone *out)
{
    bool library = strcmp(impl, "library") == 0;
    struct build_target t = {HOPPER_FP16, .library = library};
    struct candidate c;
    struct plan p;
    SCOPED_BY(workload_release) struct workload w = workload_sized(1, 65);
    w.dtype = DTYPE_FP16;
    if (local_mask != NULL)
        OK(workload_add_local(&w, local_mask, 0, 2, &st));
    OK(workload_check(&w, &st));
    OK(workload_build_mask(&w, NULL, &st));
    OK(plan_parse_segments(fused, false, &p, &st));
    candidate_default(&t, p, &c);
    for (int i = 0; i < c.count; i++)
        if (c.choices[i].segment.first < c.choices[i].segment.last) {
            struct choice *choice = &c.choices[i];
            choice->impl = impl_find(TARGET_CUDA, impl);
            OK(schedule_parse(choice->impl, schedule, &choice->schedule, &st));
        }
    struct workload tuned = w;
    tuned.lengths = tokens > 0 ? &tokens : NULL;
    c.packed = tokens > 0;
    const struct standalone_plan plan = {.workload = &tuned, .full = &w, .candidate = &c};
    const struct standalone_spec spec = {.target = t,
                                         .archs = {.count = 1, .arch = {CUDA_ARCH_HOPPER}},
                                         .name = "bert",
                                         .plans = &plan,
                                         .count = 1};
    standalone_emit(&spec, out);
}

static void emit(const char *impl, const char *schedule, int tokens, struct standalone *out)
{
    emit_plan("7-8", impl, schedule, tokens, NULL, out);
}

TEST(products_need_cublaslt_and_name_their_algorithm)
{
    struct standalone p;
    emit("library", "algorithm=3", 0, &p);
    ck_assert_int_eq(occurrences(file_of(&p, "Makefile"), "-lcublasLt"), 1);
    ck_assert_int_eq(occurrences(file_of(&p, "CMakeLists.txt"), "CUDA::cublasLt"), 1);
    ck_assert_int_eq(occurrences(file_of(&p, "bert.pc.in"), "Libs.private: -lcublasLt "), 1);
    ck_assert_int_eq(occurrences(file_of(&p, "plan_b1_s65.c"), "65, 768, 768, 65, 3};"), 1);
    standalone_release(&p);

    emit("library", "algorithm=3", 40, &p);
    ck_assert_int_eq(occurrences(file_of(&p, "plan_b1_s65.c"), "65, 768, 768, 40, 3};"), 1);
    standalone_release(&p);
}

/* 65 tokens by 768 columns: 2 x 12 tiles of 64 x 64, each of a cluster of two thread blocks. */
TEST(maps_are_in_the_plan)
{
    SCOPED_BY(standalone_release) struct standalone p;
    emit("hopper_gemm", "tile=64x64 split=2", 0, &p);
    const char *plan = file_of(&p, "plan_b1_s65.c");
    ck_assert_ptr_nonnull(file_of(&p, "maps.c"));
    ck_assert_int_eq(occurrences(plan, "maps_07_08"), 2);
    ck_assert_int_eq(
        occurrences(plan,
                    "maps_07_08, {768, 768, 7, 9, 0, 3, -1, -1}, 48, 32, 0, 0, {-1, -1, -1, -1}},"),
        1);
    ck_assert_int_eq(occurrences(plan, "false, false, 0, maps_07_08"), 1);
    ck_assert_int_eq(occurrences(plan, "    {true, 2, {768, 768}, {64, 128}, false, false},"), 1);
}

/* q, k and v of 12 heads in an order of 65 rows each. */
TEST(a_map_says_that_rows_are_dealt_out)
{
    SCOPED_BY(standalone_release) struct standalone p;
    emit_plan("2-6", "hopper_attention", "shape=192_tma", 0, "full", &p);
    const char *plan = file_of(&p, "plan_b1_s65.c");
    ck_assert_int_eq(occurrences(plan, "    {false, 2, {64, 2340}, {64, 64}, false, true},"), 1);
}

/* Kinds of layers differ in their masks, and share all else: 65 tokens by themselves alone are in
 * two blocks of 64, and all pairs of them in four. */
TEST(kinds_of_layers_share_a_plan)
{
    SCOPED_BY(standalone_release) struct standalone p;
    emit_plan("2-6", "hopper_attention", "", 0, "sliding:w=0", &p);
    const char *plan = file_of(&p, "plan_b1_s65.c");
    int files = 0;
    for (int i = 0; i < p.count; i++)
        files += strncmp(p.files[i].name, "plan_", strlen("plan_")) == 0;
    ck_assert_int_eq(files, 1);
    ck_assert_int_eq(occurrences(plan, "const struct plan_segment segments[]"), 1);
    ck_assert_int_eq(occurrences(plan, "static const int start[] = {0, 2, 4};"), 1);
    ck_assert_int_eq(occurrences(plan, "static const int local_start[] = {0, 1, 2};"), 1);
    ck_assert_int_eq(occurrences(plan, ".tiles = &query_tiles},"), 1);
    ck_assert_int_eq(occurrences(plan, ".tiles = &local_query_tiles},"), 1);
}

/* Segments that differ in their operands alone share a kernel, and with it a file. */
TEST(segments_share_kernels)
{
    static const char row[] = "{(const void *)bert_segment_gemm_hopper_gemm,";
    static const char file[] = "segment_gemm_hopper_gemm.cu";
    SCOPED_BY(standalone_release) struct standalone p;
    int files = 0;
    emit("hopper_gemm", "", 0, &p);
    for (int i = 0; i < p.count; i++)
        files += strcmp(p.files[i].name, file) == 0;
    ck_assert_int_eq(files, 1);
    ck_assert_int_eq(occurrences(file_of(&p, "Makefile"), "segment_gemm_hopper_gemm.o"), 1);
    const char *plan = file_of(&p, "plan_b1_s65.c");
    ck_assert_int_eq(occurrences(plan, row), 3);
    ck_assert_int_eq(occurrences(plan, "maps_00_00, {2304, 768, 0, 1, -1, -1, -1, -1},"), 1);
    ck_assert_int_eq(occurrences(plan, "maps_10_10, {3072, 768, 10, 11, -1, -1, -1, -1},"), 1);
    ck_assert_int_eq(occurrences(plan, "maps_12_12, {768, 3072, 12, 13, -1, -1, -1, -1},"), 1);
}

/* Every word "encoder" of the texts is the library's name, so that two libraries fit
 * one program. */
TEST(names_begin_with_the_library_s)
{
    SCOPED_BY(standalone_release) struct standalone p;
    emit("hopper_gemm", "tile=64x64 split=2", 0, &p);
    ck_assert_ptr_nonnull(file_of(&p, "bert.h"));
    ck_assert_ptr_nonnull(file_of(&p, "bert.pc.in"));
    for (int i = 0; i < p.count; i++) {
        const char *text = p.files[i].text.ptr;
        ck_assert_int_eq(occurrences(text, "encoder_"), occurrences(text, "encoder_attn"));
        ck_assert_msg(strstr(text, "ENCODER_") == NULL, "%s", p.files[i].name);
        ck_assert_msg(strstr(text, "bert.bert\"") == NULL, "%s: HuggingFace's name is not ours",
                      p.files[i].name);
        ck_assert_msg(strstr(text, "@OBJECTS@") == NULL && strstr(text, "@SOURCES@") == NULL, "%s",
                      p.files[i].name);
    }
    ck_assert_int_ge(occurrences(file_of(&p, "segment_gemm_hopper_gemm.cu"), "bert_segment_gemm"),
                     1);
}

SUITE("standalone", NULL, NULL)
