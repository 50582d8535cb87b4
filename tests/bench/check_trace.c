#include "bench/worker_int.h"
#include "tests/bench/fixture.h"

#include <dlfcn.h>

/* ---- medians --------------------------------------------------------------------------------- */

START_TEST(times_and_gaps_are_medians)
{
    static const struct span passes[3][3] = {
        {{0, 1}, {1.5, 2}, {4, 1}}, /* gaps 0.5 and 0.5 */
        {{0, 3}, {4, 2}, {9, 5}},   /* 1 and 3 */
        {{0, 2}, {9, 4}, {14, 3}},  /* 7 and 1 */
    };
    struct span out[3];
    trace_settle(passes[0], 3, 3, out);
    ck_assert_double_eq(out[0].start_s, 0);
    ck_assert_double_eq(out[0].seconds, 2);
    ck_assert_double_eq(out[1].start_s, 3);
    ck_assert_double_eq(out[1].seconds, 2);
    ck_assert_double_eq(out[2].start_s, 6);
    ck_assert_double_eq(out[2].seconds, 3);
}
END_TEST

/* Clocks tick coarsely: a launch may seem to begin before the one before it ended. */
START_TEST(launches_never_overlap)
{
    static const struct span pass[2] = {{0, 2}, {1.5, 1}};
    struct span out[2];
    trace_settle(pass, 1, 2, out);
    ck_assert_double_eq(out[1].start_s, 2);
    ck_assert_double_eq(out[1].seconds, 1);
}
END_TEST

/* ---- a CPU's plan ---------------------------------------------------------------------------- */

static void check_order(const struct span *spans, int n)
{
    ck_assert_double_eq(spans[0].start_s, 0);
    for (int i = 0; i < n; i++)
        ck_assert_double_gt(spans[i].seconds, 0);
    for (int i = 1; i < n; i++)
        ck_assert_double_ge(spans[i].start_s, spans[i - 1].start_s + spans[i - 1].seconds);
}

START_TEST(plan_is_traced_launch_by_launch)
{
    struct status st = STATUS_INIT;
    struct bench_options o = small_options(test_path("cache"));
    struct bench *b = small_bench(&o);
    struct candidate c;
    struct span *spans;
    candidate_default(&build_cpu, plan_from_value(VALUE_FIRST_VERSION), &c);
    ck_assert_msg(bench_trace(b, &c, &spans, &st) == 0, "%s", st.message);
    check_order(spans, 2 * c.count); /* two layers */
    free(spans);
    bench_close(b);
}
END_TEST

START_TEST(wrong_plan_is_not_traced)
{
    struct status st = STATUS_INIT;
    struct bench_options o = small_options(test_path("cache"));
    struct candidate c;
    struct span *spans;
    write_faulty_compiler(test_dir);
    write_text(test_path("faults/08_09.c"), "{ (void)a; }\n");
    o.compiler = test_path("compiler");
    struct bench *b = small_bench(&o);
    candidate_default(&build_cpu, plan_from_value(VALUE_FIRST_VERSION), &c);
    ck_assert_int_eq(bench_trace(b, &c, &spans, &st), -1);
    ck_assert_int_eq(st.code, STATUS_WRONG);
    ck_assert_ptr_null(spans);
    bench_close(b);
}
END_TEST

/* ---- launches on the fake driver, which takes 2 ms for each ---------------------------------- */

static void *gpu_memory(struct device *d, int64_t elements)
{
    struct status st = STATUS_INIT;
    void *memory;
    ck_assert_msg(device_cuda.alloc(d, elements, &memory, &st) == 0, "%s", st.message);
    return memory;
}

START_TEST(launches_on_a_gpu_are_timed_one_by_one)
{
    enum { LAUNCHES = 3 };
    struct status st = STATUS_INIT;
    const struct device_ops *on = &device_cuda;
    struct workload w;
    struct device *d;
    struct choice c;
    struct launch launches[LAUNCHES];
    struct span spans[LAUNCHES];
    struct replay *r;
    /* So loaded, it is what the worker finds under the driver's name. */
    ck_assert_ptr_nonnull(dlopen(FAKE_CUDA_DIR "/libcuda.so.1", RTLD_NOW));
    small_workload(&w);
    write_text(test_path("code"), "fake slow\n");
    ck_assert_msg(on->open(0, &w, &d, &st) == 0, "%s", st.message);
    struct build_target t = {.kind = TARGET_CUDA, .dtype = w.dtype, .head_size = 16};
    ck_assert_int_ge(choices_for(&t, (struct segment){8, 8}, false, 1, &c), 1);
    launches[0] = (struct launch){.choice = &c};
    ck_assert_msg(on->load(d, test_path("code"), "segment_08_08", &launches[0].function, &st) == 0,
                  "%s", st.message);
    for (int tensor = 0; tensor < TENSOR_COUNT; tensor++)
        launches[0].tensor[tensor] = gpu_memory(d, tensor_elements(tensor, &w));
    launches[0].weight[WEIGHT_BO] = gpu_memory(d, weight_elements(WEIGHT_BO, &w));
    for (int i = 1; i < LAUNCHES; i++)
        launches[i] = launches[0];
    ck_assert_msg(on->prepare(d, launches, LAUNCHES, &r, &st) == 0, "%s", st.message);
    ck_assert_msg(on->trace(d, r, LAUNCHES, spans, &st) == 0, "%s", st.message);
    check_order(spans, LAUNCHES);
    for (int i = 0; i < LAUNCHES; i++)
        ck_assert_double_ge(spans[i].seconds, 2e-3);
    on->release(r);
    on->close(d);
    workload_release(&w);
}
END_TEST

int main(void)
{
    Suite *s = suite_create("trace");
    TCase *t = tcase_create("medians");
    tcase_add_test(t, times_and_gaps_are_medians);
    tcase_add_test(t, launches_never_overlap);
    suite_add_tcase(s, t);
    t = tcase_create("launches");
    tcase_add_checked_fixture(t, test_dir_setup, test_dir_teardown);
    tcase_set_timeout(t, 60);
    tcase_add_test(t, plan_is_traced_launch_by_launch);
    tcase_add_test(t, wrong_plan_is_not_traced);
    tcase_add_test(t, launches_on_a_gpu_are_timed_one_by_one);
    suite_add_tcase(s, t);
    return suite_run(s);
}
