/* What the compiler says of a kernel, from its log to the trial. */
#include "tests/bench/gpu_fixture.h"

static struct trial time_segment(void)
{
    struct bench *b = gpu_bench();
    struct trial t = segment_trial(b, 8, 8);
    bench_close(b);
    return t;
}

/* The second session compiles nothing: what was said the first time is kept. */
START_TEST(spills_are_known_of_what_was_built_before)
{
    write_text(test_path("log"),
               "    24 bytes stack frame, 20 bytes spill stores, 28 bytes spill loads\n"
               "ptxas info    : Used 255 registers, used 1 barriers\n");
    for (int session = 0; session < 2; session++) {
        struct trial t = time_segment();
        ck_assert_msg(t.status == TRIAL_OK, "%s", t.reason.message);
        ck_assert_int_eq(t.resources.spill_bytes, 20);
        ck_assert_int_eq(t.resources.spill_load_bytes, 28);
        ck_assert_int_eq(t.resources.stack_bytes, 24);
        ck_assert_int_eq(t.resources.registers, 32); /* the driver's figure comes first */
        trial_release(&t);
        write_text(test_path("log"), "");
    }
}
END_TEST

/* A binary whose log is gone is built again. */
START_TEST(a_lost_log_is_made_again)
{
    struct buf command;
    write_text(test_path("log"), "0 bytes stack frame, 4 bytes spill stores\n");
    struct trial t = time_segment();
    trial_release(&t);
    buf_init(&command);
    buf_addf(&command, "rm '%s'/cache/logs/*", test_dir);
    ck_assert_int_eq(system(command.ptr), 0);
    buf_release(&command);
    write_text(test_path("log"), "0 bytes stack frame, 8 bytes spill stores\n");
    t = time_segment();
    ck_assert_int_eq(t.resources.spill_bytes, 8);
    trial_release(&t);
}
END_TEST

START_TEST(serialised_products_are_unfit)
{
    write_text(test_path("log"),
               "ptxas info    : (C7511) Potential Performance Loss: wgmma.mma_async instructions "
               "are serialized due to insufficient register resources for the wgmma pipeline in "
               "the function 'f'\n");
    for (int session = 0; session < 2; session++) {
        struct trial t = time_segment();
        check_failed(&t, STATUS_UNFIT,
                     "C7511: wgmma.mma_async instructions are serialized "
                     "due to insufficient register resources");
        write_text(test_path("log"), "");
    }
}
END_TEST

SUITE("cuda log", gpu_setup, test_dir_teardown, ONCE(spills_are_known_of_what_was_built_before),
      ONCE(a_lost_log_is_made_again), ONCE(serialised_products_are_unfit))
