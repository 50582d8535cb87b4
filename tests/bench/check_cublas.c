/* Segments that cuBLASLt runs, on the fake library and driver. */
#include "tests/bench/gpu_fixture.h"

static void library_trial(struct bench *b, int first, int last, const char *schedule, bool packed,
                          struct trial *out)
{
    struct choice c = {.chain = &chain_bert,
                       .segment = {(int8_t)first, (int8_t)last},
                       .impl = impl_find(TARGET_CUDA, "library")};
    OK(schedule_parse(c.impl, schedule, &c.schedule, &st));
    OK(bench_segment(b, &c, packed, &sampling_search, out, &st));
}

static const struct {
    int first, last;
    enum dtype dtype; /* both are stored as fp32 */
} products[] = {
    {0, 0, DTYPE_FP32},   {7, 7, DTYPE_FP32},   {7, 8, DTYPE_FP32},   {10, 10, DTYPE_FP32},
    {12, 12, DTYPE_FP32}, {12, 13, DTYPE_FP32}, {10, 11, DTYPE_TF32}, /* a GELU of its own */
};

TEST_LOOP(library_runs_gemms, 0, ARRAY_LEN(products))
{
    struct bench_options o = gpu_options();
    struct workload w;
    SCOPED_BY(trial_release) struct trial t;
    gpu_workload(SEQ_LEN, &w);
    w.dtype = products[_i].dtype;
    SCOPED_BY(bench_close_at) struct bench *b = bench_of(&o, &w);
    library_trial(b, products[_i].first, products[_i].last, "", false, &t);
    ck_assert_msg(t.status == TRIAL_OK, "%s", t.reason.message);
    ck_assert_int_eq(t.resources.registers, 0);
    ck_assert_int_eq(t.resources.grid[0], 0);
}

static const struct {
    const char *schedule;
    enum status_code reason;
    const char *says;
} algorithms[] = {
    {"algorithm=1", STATUS_WRONG, "wrong result"},
    {"algorithm=2", STATUS_LAUNCH, "cuBLASLt cannot run the GEMM: fake internal error"},
    {"algorithm=4", STATUS_UNFIT, "cuBLASLt has 4 algorithms for the GEMM, and none numbered 4"},
};

TEST_LOOP(algorithms_are_judged_one_by_one, 0, ARRAY_LEN(algorithms))
{
    struct trial t;
    SCOPED_BY(bench_close_at) struct bench *b = gpu_bench();
    library_trial(b, 7, 8, algorithms[_i].schedule, false, &t);
    ck_assert_int_eq(t.status, TRIAL_FAILED);
    ck_assert_int_eq(t.reason.code, algorithms[_i].reason);
    ck_assert_msg(strstr(t.reason.message, algorithms[_i].says) != NULL, "%s", t.reason.message);
    trial_release(&t);
    /* the device still works, and the verdict was not this one's */
    library_trial(b, 7, 8, "", false, &t);
    check_ok(&t);
}

/* Packed rows run by the choice's algorithm, which is one of those for the next full step of rows:
 * algorithm 3 is right for just so many.  A step of 80 rows is 5. */
static const struct {
    const char *lengths;
    enum trial_status status;
} packings[] = {{"40,20", TRIAL_OK}, {"40,21", TRIAL_FAILED}, {"1,4", TRIAL_OK}};

TEST_LOOP(packed_rows_run_by_the_algorithm_of_their_step, 0, ARRAY_LEN(packings))
{
    struct bench_options o = gpu_options();
    struct workload w = {.chain = &chain_bert,
                         .batch = 2,
                         .seq_len = 40,
                         .heads = 2,
                         .head_size = 16,
                         .layers = 1,
                         .eps = 1e-5};
    SCOPED_BY(trial_release) struct trial t;
    workload_ready(&w, "full", packings[_i].lengths, NULL);
    SCOPED_BY(bench_close_at) struct bench *b = bench_of(&o, &w);
    library_trial(b, 7, 8, "algorithm=3", true, &t);
    ck_assert_int_eq(t.status, packings[_i].status);
}

/* What doctor says of the library. */
static void check_doctor(int state, const char *found)
{
    SCOPED_BY(env_list_release) struct env_list list;
    int row = 0;
    env_check_all(&list);
    while (row < list.count && strcmp(list.rows[row].subject, "CUDA library") != 0)
        row++;
    ck_assert_int_lt(row, list.count);
    ck_assert_int_eq(list.rows[row].state, state);
    ck_assert_str_eq(list.rows[row].found, found);
}

TEST(without_the_library_nothing_offers_it)
{
    struct choice choices[100];
    setenv("FUSEPLAN_CACHE", test_path("cache"), 1);
    check_doctor(ENV_OK, "cuBLASLt 13.2.4");
    hide_cublas();
    check_doctor(ENV_MISSING, "no cuBLASLt (libcublasLt.so)");
    SCOPED_BY(bench_close_at) struct bench *b = gpu_bench();
    ck_assert_str_eq(bench_fingerprint(b)->libraries, "");
    int count = choices_for(bench_target(b), (struct segment){7, 8}, false, 100, choices);
    ck_assert_int_gt(count, 0);
    for (int i = 0; i < count; i++)
        ck_assert(!choices[i].impl->library);
}

SUITE("cublas", gpu_setup, test_dir_teardown)
