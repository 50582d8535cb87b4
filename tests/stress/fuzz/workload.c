/* The text of a workload, as the database and recorded spaces have it. */
#include "layer/layer.h"
#include "tests/stress/fuzz/fuzz.h"

/* What was read gives a text that reads as the same. */
static void check_round(const struct workload *w)
{
    SCOPED_BY(workload_release) struct workload again;
    struct status st = STATUS_INIT;
    SCOPED_BUF first = BUF_INIT, second = BUF_INIT;
    workload_text(w, &first);
    fuzz_require(workload_parse(first.ptr, &again, &st) == 0, "a workload's text can be read");
    workload_text(&again, &second);
    fuzz_require(strcmp(first.ptr, second.ptr) == 0, "it reads as the same workload");
    fuzz_require(workload_bytes(w) > 0 && workload_tokens(w) > 0, "a workload has a size");
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct workload w;
    struct status st = STATUS_INIT;
    SCOPED char *text = fuzz_text(data, size);
    if (workload_parse(text, &w, &st) == 0)
        check_round(&w);
    workload_release(&w);
    return 0;
}
