/* `emit_segments --golden tests/golden` writes the golden files anew after a change that
 * is meant. */
#include "golden.h"
#include "segments.h"

TEST_LOOP(matches_golden, 0, GOLDEN_COUNT)
{
    struct choice c = golden_choice(_i);
    check_golden(&c, &build_cpu, ".c");
}

SUITE("emit_cpu", NULL, NULL)
