/* The CUDA target against the fake driver and a fake compiler. */
#include "tests/bench/gpu_fixture.h"
#include "tests/held_clock.h"

/* S = 300 makes a tensor (B,H,S,S) of 1440000 bytes; all else takes some 2.1 million together. */
enum { SCORES_SEQ_LEN = 300 };

TEST(device_is_described)
{
    SCOPED_BY(bench_close_at) struct bench *b = gpu_bench();
    const struct fingerprint *f = bench_fingerprint(b);
    ck_assert_str_eq(f->device, "Fake GPU");
    ck_assert_str_eq(f->uuid, "GPU-00112233-4455-6677-8899-aabbccddeeff");
    ck_assert_str_eq(f->capability, "sm_80");
    ck_assert_str_eq(f->compiler, "nvcc 13.0");
    ck_assert_str_eq(f->libraries, "cuBLASLt 13.2.4");
    ck_assert_int_eq(f->units, 4);
    ck_assert_str_ne(f->driver, "");
}

/* What was compiled for another architecture is another device's in the database. */
TEST(architecture_can_be_chosen)
{
    struct bench_options o = gpu_options();
    setenv("FAKE_GPU", "later", 1);
    for (int own = 0; own < 2; own++) {
        o.arch = own != 0 ? 0 : 80;
        SCOPED_BY(bench_close_at) struct bench *b = gpu_bench_of(&o, SEQ_LEN);
        ck_assert_int_eq(bench_target(b)->arch, own != 0 ? 86 : 80);
        ck_assert_str_eq(bench_fingerprint(b)->capability, own != 0 ? "sm_86" : "sm_80");
    }
}

/* Of a kernel that hangs. */
#define HANG_LIMIT_S 1

/* What the kernel does, and what must become of the segment. */
static const struct {
    const char *code;
    enum trial_status status;
    enum status_code reason;
    const char *says;
} kernels[] = {
    {"fake right\n", TRIAL_OK, STATUS_OK, ""},
    {"fake wrong\n", TRIAL_FAILED, STATUS_WRONG, "wrong result"},
    {"fake nothing\n", TRIAL_FAILED, STATUS_WRONG, "inf"}, /* what it did not write is poison */
    {"fake fault\n", TRIAL_FAILED, STATUS_LAUNCH, "CUDA_ERROR_ILLEGAL_ADDRESS"},
    {"fake hang\n", TRIAL_FAILED, STATUS_TIMEOUT, "stopped after"},
    {"garbage", TRIAL_FAILED, STATUS_LAUNCH, "cannot load it"},
};

static void let_clock_go(void *ctx, const struct step *step)
{
    if (strncmp(step->phase, "verifying", 9) == 0)
        clock_await("");
}

TEST_LOOP(kernel_is_run_and_judged, 0, ARRAY_LEN(kernels))
{
    write_text(test_path("code"), kernels[_i].code);
    struct bench_options o = gpu_options();
    if (kernels[_i].reason == STATUS_TIMEOUT) {
        o.run_deadline_s = HANG_LIMIT_S;
        o.listener = (struct listener){.report = let_clock_go};
        clock_await(test_path("never"));
    }
    SCOPED_BY(bench_close_at) struct bench *b = gpu_bench_of(&o, SEQ_LEN);
    SCOPED_BY(trial_release) struct trial t = segment_trial(b, 8, 8);
    ck_assert_msg(t.status == kernels[_i].status, "%s", t.reason.message);
    ck_assert_msg(t.reason.code == kernels[_i].reason, "%s", t.reason.message);
    ck_assert_msg(strstr(t.reason.message, kernels[_i].says) != NULL, "%s", t.reason.message);
    if (t.status == TRIAL_OK) {
        ck_assert_int_eq(t.layers_timed, 3);
        ck_assert_int_ge(t.sample_count, sampling_search.min_samples);
        ck_assert(t.ms.median > 0);
        ck_assert_int_eq(t.resources.registers, 32);
        ck_assert_int_ge(t.resources.grid[0], 1);
        ck_assert_int_ge(t.resources.block[0], 32);
    }
}

/* The fake device has 4 multiprocessors with room for thread blocks of up to 100000 bytes. */
static const struct {
    const char *gpu;
    int op, seq_len;
    bool few, spread;
} spreads[] = {{"hopper", 14, SEQ_LEN, true, true},
               {"hopper", 8, SCORES_SEQ_LEN, false, false},
               {"", 14, SEQ_LEN, true, false}};

TEST_LOOP(few_thread_blocks_have_a_multiprocessor_each, 0, ARRAY_LEN(spreads))
{
    setenv("FAKE_GPU", spreads[_i].gpu, 1);
    struct bench_options o = gpu_options();
    SCOPED_BY(bench_close_at) struct bench *b = gpu_bench_of(&o, spreads[_i].seq_len);
    SCOPED_BY(trial_release) struct trial t = segment_trial(b, spreads[_i].op, spreads[_i].op);
    ck_assert_int_eq(t.resources.grid[0] <= 4, spreads[_i].few);
    ck_assert_int_eq(t.resources.shared_dynamic_bytes, spreads[_i].spread ? 50001 : 0);
}

static void check_limit(double is, double expected)
{
    if (isnan(expected))
        ck_assert(isnan(is));
    else
        ck_assert_double_eq(is, expected);
}

/* 4 multiprocessors of capability 8.0 at 1 GHz, 256 bits twice a clock of 500 MHz; one that keeps
 * its memory's clock to itself; one of a capability whose rates are not known. */
TEST_LOOP(limits_are_the_devices, 0, 3)
{
    static const struct {
        const char *gpu;
        double flops_per_s, bytes_per_s;
    } devices[] = {{"", 4 * 1e9 * 128, 32e9}, {"shy", 4 * 1e9 * 128, NAN}, {"later", NAN, 32e9}};
    setenv("FAKE_GPU", devices[_i].gpu, 1);
    SCOPED_BY(bench_close_at) struct bench *b = gpu_bench();
    ck_assert(isnan(bench_limits(b).flops_per_s)); /* nothing was measured */
    SCOPED_BY(trial_release) struct trial t = segment_trial(b, 8, 8);
    struct limits limits = bench_limits(b);
    check_limit(limits.flops_per_s, devices[_i].flops_per_s);
    check_limit(limits.bytes_per_s, devices[_i].bytes_per_s);
}

/* The second session compiles nothing: what the compiler said the first time is kept. */
static const struct {
    const char *log, *says; /* says: why the kernel is unfit; null: it is right */
    int spilled, loaded, stack;
} logs[] = {
    {"    24 bytes stack frame, 20 bytes spill stores, 28 bytes spill loads\n"
     "ptxas info    : Used 255 registers, used 1 barriers\n",
     NULL, 20, 28, 24},
    {"ptxas info    : (C7511) Potential Performance Loss: wgmma.mma_async instructions are "
     "serialized due to insufficient register resources for the wgmma pipeline in the function "
     "'f'\n",
     "C7511: wgmma.mma_async instructions are serialized due to insufficient register resources", 0,
     0, 0},
};

TEST_LOOP(the_compilers_log_is_kept, 0, ARRAY_LEN(logs))
{
    write_text(test_path("log"), logs[_i].log);
    for (int session = 0; session < 2; session++) {
        struct bench *b = gpu_bench();
        struct trial t = segment_trial(b, 8, 8);
        bench_close(b);
        if (logs[_i].says == NULL) {
            ck_assert_int_eq(t.resources.spill_bytes, logs[_i].spilled);
            ck_assert_int_eq(t.resources.spill_load_bytes, logs[_i].loaded);
            ck_assert_int_eq(t.resources.stack_bytes, logs[_i].stack);
            ck_assert_int_eq(t.resources.registers, 32); /* the driver's figure comes first */
            check_ok(&t);
        } else {
            check_failed(&t, STATUS_UNFIT, logs[_i].says);
        }
        write_text(test_path("log"), "");
    }
}

/* A binary whose log is gone is built again. */
TEST(a_lost_log_is_made_again)
{
    for (int session = 0; session < 2; session++) {
        char log[64];
        snprintf(log, sizeof(log), "0 bytes stack frame, %d bytes spill stores\n", 4 + session);
        write_text(test_path("log"), log);
        struct bench *b = gpu_bench();
        struct trial t = segment_trial(b, 8, 8);
        bench_close(b);
        ck_assert_int_eq(t.resources.spill_bytes, 4 + session);
        trial_release(&t);
        OK(file_remove_all(test_path("cache/logs"), &st));
    }
}

/* ---- conditions ------------------------------------------------------------------------------ */

/* What the management library says, and what is recorded of it. */
static const struct {
    const char *nvml;
    bool known;
    const char *slowed_by;
    int other_processes;
    bool mig;
} states[] = {
    {"none", false, "", 0, false},
    {"capped", true, "power cap", 0, false},
    {"hot", true, "power cap, temperature", 0, false},
    {"crowded", true, "", 2, false},
    {"foreign", true, "", -1, false},
    {"mig", true, "", 0, true},
};

TEST_LOOP(conditions_come_with_a_measurement, 0, ARRAY_LEN(states))
{
    SCOPED_BUF said = BUF_INIT;
    setenv("FAKE_NVML", states[_i].nvml, 1);
    SCOPED_BY(bench_close_at) struct bench *b = gpu_bench();
    SCOPED_BY(trial_release) struct trial t = segment_trial(b, 8, 8);
    const struct conditions *c = &t.conditions;
    ck_assert_msg(t.status == TRIAL_OK, "%s", t.reason.message);
    ck_assert_int_eq(c->known, states[_i].known);
    ck_assert_int_eq(c->sm_mhz, c->known ? 1410 : 0);
    ck_assert_int_eq(c->max_sm_mhz, c->known ? 1980 : 0);
    ck_assert_int_eq(c->memory_mhz, c->known ? 1593 : 0);
    ck_assert_int_eq(c->temperature_c, c->known ? 45 : 0);
    ck_assert_double_eq(c->power_w, c->known ? 350.5 : 0);
    ck_assert_double_eq(c->power_limit_w, c->known ? 700 : 0);
    ck_assert_int_eq(c->other_processes, states[_i].other_processes);
    ck_assert_int_eq(c->mig, states[_i].mig);
    slowdown_text(c->slowed_by, &said);
    ck_assert_str_eq(said.ptr, states[_i].slowed_by);
    ck_assert_int_eq(bench_disturbance(b).measured, c->known);
}

/* ---- what ends the work ---------------------------------------------------------------------- */

static void check_refused(const struct bench_options *o, enum status_code code, const char *says)
{
    SCOPED_BY(workload_release) struct workload w;
    struct bench *b;
    gpu_workload(SEQ_LEN, &w);
    FAILS(bench_open(o, &w, &b, &st), code, says);
}

TEST(missing_and_mismatched_parts_are_named)
{
    struct bench_options o = gpu_options();
    setenv("FAKE_GPU", "none", 1);
    check_refused(&o, STATUS_ENVIRONMENT, "sees no GPU");
    setenv("FAKE_GPU", "old", 1);
    check_refused(&o, STATUS_ENVIRONMENT, "Fake GPU is of compute capability 7.5");
    unsetenv("FAKE_GPU");

    o.target.device = 3;
    check_refused(&o, STATUS_ENVIRONMENT, "there is no GPU 3; 1 found");
    o.target.device = 0;

    o.arch = 86;
    check_refused(&o, STATUS_USAGE, "Fake GPU does not run code for sm_86; its own is sm_80");
    o.arch = 0;

    o.compiler = "gcc";
    check_refused(&o, STATUS_USAGE, "expected auto, nvcc or nvrtc");
    o.compiler = "nvcc";

    write_nvcc("14.1");
    check_refused(&o, STATUS_ENVIRONMENT, "supports CUDA 13.0 and the compiler is nvcc 14.1");
    write_script(test_path("nvcc"), "#!/bin/sh\n");
    check_refused(&o, STATUS_ENVIRONMENT, "does not say which release");
    write_nvcc("13.0");
    ck_assert_int_eq(unlink(test_path("code")), 0);
    check_refused(&o, STATUS_ENVIRONMENT, "nvcc 13.0 builds no code for Fake GPU");

    write_text(test_path("libcuda.so.1"), "");
    setenv("LD_LIBRARY_PATH", test_dir, 1);
    check_refused(&o, STATUS_ENVIRONMENT, "no NVIDIA driver found");
}

/* Memory for tensors, and for code, which finds room unless others took it: op 8 is not to
 * blame. */
TEST_LOOP(too_little_gpu_memory_ends_the_work, 0, 2)
{
    if (_i == 0)
        setenv("FAKE_GPU_BYTES", "1024", 1);
    else
        write_text(test_path("code"), "fake vast\n");
    SCOPED_BY(bench_close_at) struct bench *b = gpu_bench();
    struct choice c = gpu_choice(b, 8, 8);
    struct trial t;
    FAILS(bench_segment(b, &c, false, &sampling_search, &t, &st), STATUS_ENVIRONMENT,
          _i == 0 ? "of GPU memory, and 1008 B is available" : "cannot load it");
}

/* Op 3 has two tensors (B,H,S,S), op 8 none: where one finds room, the first alone fails. */
TEST(candidate_too_large_for_the_gpu_fails_alone)
{
    struct bench_options o = gpu_options();
    setenv("FAKE_GPU_BYTES", "3000000", 1);
    SCOPED_BY(bench_close_at) struct bench *b = gpu_bench_of(&o, SCORES_SEQ_LEN);
    for (int tries = 0; tries < 2; tries++) {
        struct trial large = segment_trial(b, 3, 3), small = segment_trial(b, 8, 8);
        ck_assert_int_eq(large.status, TRIAL_FAILED);
        ck_assert_msg(large.reason.code == STATUS_UNFIT, "%s", large.reason.message);
        ck_assert_msg(strstr(large.reason.message, "1.4 MiB more is needed, and ") != NULL, "%s",
                      large.reason.message);
        ck_assert_msg(small.status == TRIAL_OK, "%s", small.reason.message);
        trial_release(&large);
        trial_release(&small);
    }
}

/* What another program has taken since the worker began is no candidate's fault: nothing is said of
 * the candidate, which is measured once that program has ended. */
TEST(memory_that_another_program_takes_ends_the_work)
{
    struct bench_options o = gpu_options();
    setenv("FAKE_GPU_BYTES", "3500000", 1);
    setenv("FAKE_GPU_OTHERS", test_path("others"), 1);
    SCOPED_BY(bench_close_at) struct bench *b = gpu_bench_of(&o, SCORES_SEQ_LEN);
    struct trial t = segment_trial(b, 8, 8);
    check_ok(&t);
    write_text(test_path("others"), "");
    struct choice c = gpu_choice(b, 3, 3);
    FAILS(bench_segment(b, &c, false, &sampling_search, &t, &st), STATUS_ENVIRONMENT,
          "another program has taken a part meanwhile: ");
    c = gpu_choice(b, 8, 8);
    FAILS(bench_segment(b, &c, false, &sampling_search, &t, &st), STATUS_ENVIRONMENT,
          "be launched");
    unlink(test_path("others"));
    t = segment_trial(b, 3, 3);
    check_ok(&t);
}

/* ---- faults ---------------------------------------------------------------------------------- */

/* A fault ends the worker.  The candidate is tried once more in a fresh one, then given up with
 * the reason, and the next one runs. */
TEST(fault_is_tried_twice_and_given_up)
{
    write_text(test_path("code"), "fake fault\n");
    SCOPED_BY(bench_close_at) struct bench *b = gpu_bench();
    struct trial t = segment_trial(b, 8, 8);
    ck_assert_int_eq(t.status, TRIAL_FAILED);
    ck_assert_str_eq(text_of("faults"), "xx");
    trial_release(&t);

    write_text(test_path("code"), "fake right\n");
    t = segment_trial(b, 3, 3);
    check_ok(&t);
}

SUITE("cuda", gpu_setup, test_dir_teardown)
