/* Values of plans, ranges, lists of segments, and numbers as options take them. */
#include "layer/layer.h"
#include "tests/stress/fuzz/fuzz.h"

static void check_plan(struct plan p)
{
    struct segment segments[OP_COUNT];
    unsigned value = plan_value(p);
    int count = plan_segments(p, segments);
    fuzz_require(value <= VALUE_MAX && plan_canonical(value) == value, "the value is canonical");
    fuzz_require(plan_equal(plan_from_value(value), p), "a plan's value names the plan");
    fuzz_require(segments[0].first == 0 && segments[count - 1].last == OP_COUNT - 1,
                 "segments cover the chain");
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    SCOPED char *text = fuzz_text(data, size);
    unsigned value, lo, hi;
    struct plan p;
    int64_t number;
    double real;
    struct status st[6] = {STATUS_INIT, STATUS_INIT, STATUS_INIT,
                           STATUS_INIT, STATUS_INIT, STATUS_INIT};
    if (plan_parse_value(text, &value, &st[0]) == 0)
        check_plan(plan_from_value(value));
    if (plan_parse_range(text, &lo, &hi, &st[1]) == 0)
        fuzz_require(lo <= hi && hi <= VALUE_MAX, "a range is within the values");
    if (plan_parse_segments(text, false, &p, &st[2]) == 0)
        check_plan(p);
    if (plan_parse_segments(text, true, &p, &st[3]) == 0)
        check_plan(p);
    if (number_parse("a number", text, -7, INT64_MAX, &number, &st[4]) == 0)
        fuzz_require(number >= -7, "an integer is in its bounds");
    if (number_parse_double("a number", text, -1, 1e300, &real, &st[5]) == 0)
        fuzz_require(real >= -1 && real <= 1e300, "a number is in its bounds");
    return 0;
}
