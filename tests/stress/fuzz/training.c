/* Training data: plans and times as text. */
#include "model/model.h"
#include "tests/stress/fuzz/fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct model_data rows;
    struct status st = STATUS_INIT;
    if (model_data_parse("times.txt", (const char *)data, size, &rows, &st) != 0)
        return 0;
    fuzz_require(rows.count > 0, "data that was read has rows");
    for (int i = 0; i < rows.count; i++)
        fuzz_require(rows.ms[i] > 0 && isfinite(rows.ms[i]) &&
                         plan_value(rows.plans[i]) <= VALUE_MAX,
                     "a row is a plan and a time");
    model_data_release(&rows);
    return 0;
}
