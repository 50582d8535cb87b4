/* How many layers the search phase times. */
#include "bench/worker/worker_int.h"
#include "tests/suite.h"

#define MIB (1 << 20)

/* fp16 BERT-base: 13.5 MiB of weights a layer; a token takes 9 KiB in x, two flows, q, k and v. */
static const struct {
    int batch, seq_len, layers;
    int64_t cache_bytes;
    int expected;
} cases[] = {
    {1, 128, 12, 0, 2}, /* one layer's output is the next one's input */
    {1, 128, 12, 28 * MIB, 2}, {1, 128, 12, 29 * MIB, 3},    {1, 128, 12, 50 * MIB, 4},
    {1, 128, 12, 60 * MIB, 5}, {8, 512, 12, 60 * MIB, 2}, /* 36 MiB of tensors */
    {8, 512, 12, 64 * MIB, 3}, {8, 512, 12, 1024 * MIB, 12}, {1, 128, 4, 1024 * MIB, 4},
    {1, 128, 1, 0, 1},
};

START_TEST(weights_are_kept_out_of_the_cache)
{
    struct status st = STATUS_INIT;
    struct workload w;
    workload_init(&w);
    w.batch = cases[_i].batch;
    w.seq_len = cases[_i].seq_len;
    w.layers = cases[_i].layers;
    w.dtype = DTYPE_FP16;
    ck_assert_int_eq(mask_parse("full", &w.mask_spec, &st), 0);
    ck_assert_msg(workload_check(&w, &st) == 0, "%s", st.message);
    ck_assert_int_eq(layers_to_time(&w, cases[_i].cache_bytes), cases[_i].expected);
    workload_release(&w);
}
END_TEST

SUITE("measure", NULL, NULL, LOOP(weights_are_kept_out_of_the_cache, 0, ARRAY_LEN(cases)))
