/* `emit_segments --golden tests/golden` writes the golden files anew after a change that
 * is meant. */
#include "golden.h"
#include "segments.h"

START_TEST(matches_golden)
{
    struct choice c = golden_choice(_i);
    check_golden(&c, &build_cpu, ".c");
}
END_TEST

/* One parallel region, and a barrier between two stages. */
START_TEST(one_region_with_barriers)
{
    struct segment s = segment_at(_i);
    struct stage stages[OP_COUNT];
    struct buf text;
    buf_init(&text);
    choice_emit(&(struct choice){.chain = &chain_bert, .segment = s, .impl = generated_cpu()},
                &build_cpu, &text);
    int regions = 0, barriers = 0;
    for (const char *p = text.ptr; (p = strstr(p, "#pragma omp ")) != NULL; p++) {
        regions += strncmp(p, "#pragma omp parallel\n", 21) == 0;
        barriers += strncmp(p, "#pragma omp barrier\n", 20) == 0;
    }
    ck_assert_int_eq(regions, 1);
    ck_assert_int_eq(barriers, lower_segment(&chain_bert, s, LOWERING_TILED, stages) - 1);
    buf_release(&text);
}
END_TEST

/* Every header that a source includes is among the embedded ones. */
START_TEST(headers_are_embedded)
{
    const struct kernel_file *files;
    int count = kernel_files(TARGET_CPU, &files);
    ck_assert_int_gt(count, 0);
    for (int i = 0; i < count; i++) {
        ck_assert_uint_eq(strlen(files[i].text), files[i].len);
        for (const char *p = files[i].text; (p = strstr(p, "#include \"")) != NULL; p++) {
            bool known = false;
            for (int j = 0; j < count; j++) {
                size_t len = strlen(files[j].name);
                known = known || (strncmp(p + 10, files[j].name, len) == 0 && p[10 + len] == '"');
            }
            ck_assert_msg(known, "%s includes what is not embedded", files[i].name);
        }
    }
}
END_TEST

SUITE("emit_cpu", NULL, NULL, LOOP(matches_golden, 0, GOLDEN_COUNT),
      LOOP(one_region_with_barriers, 0, SEGMENT_COUNT), ONCE(headers_are_embedded))
