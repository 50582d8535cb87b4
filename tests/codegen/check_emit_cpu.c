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

SUITE("emit_cpu", NULL, NULL, LOOP(matches_golden, 0, GOLDEN_COUNT))
