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

SUITE("emit_cpu", NULL, NULL, LOOP(matches_golden, 0, GOLDEN_COUNT),
      LOOP(one_region_with_barriers, 0, SEGMENT_COUNT))
