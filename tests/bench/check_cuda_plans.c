/* Whole plans on the fake driver, whose kernels compute. */
#include "tests/bench/gpu_fixture.h"

#include "bench/bench_int.h"

#include <fcntl.h>
#include <sys/file.h>

/* What one segment of a plan does wrong, each time unseen where the segment is verified alone. With
 * one layer, tensors keep the values that a segment ought to write. */
#define APART "layers in one run give another result than one by one"
#define ALL   "pre+rms+silu+gate+rope+bias"
#define LATER "the plan gives another result than before"

static const struct {
    const char *chain;
    int part, layers;
    const char *code;
    const char *says; /* null: it is right */
} parts[] = {
    {"bert", 2, 3, "fake right\n", NULL},
    {"bert", 2, 1, "fake right\n", NULL},
    {"bert", 2, 3, "fake fickle\n", "layer 0: wrong result"},
    {"bert", 0, 3, "fake fickle\n", "layer 0: wrong result"},
    {"bert", 1, 3, "fake lazy 1\n", "layer 0: wrong result"},
    {"bert", 2, 3, "fake lazy 2\n", "layer 0: wrong result"}, /* later layers are not written */
    {"bert", 1, 3, "fake tired 2\n", APART},
    {"bert", 2, 3, "fake lazy 4\n", APART},
    {"bert", 1, 3, "fake stale\n", APART},
    {"bert", 2, 3, "fake stale\n", APART},
    {"bert", 0, 3, "fake tired\n", LATER},
    {"bert", 2, 3, "fake tired\n", LATER},
    {"bert", 2, 3, "fake lazy\n", LATER},
    {"bert", 0, 1, "fake lazy\n", LATER},
    {"bert", 1, 1, "fake lazy\n", LATER},
    {ALL, 2, 3, "fake right\n", NULL},
    {"pre", 2, 3, "fake fickle\n", "layer 0: wrong result"},
    {"pre", 0, 3, "fake fickle\n", "layer 0: wrong result"},
    {"pre", 2, 3, "fake stale\n", APART},
    {"pre", 2, 3, "fake half 2\n", "layer 0: wrong result"}, /* layers after it write no x */
    {"pre", 2, 1, "fake half 2\n", APART},
    {"pre", 2, 1, "fake half\n", LATER},
};

TEST_LOOP(plan_is_run_and_judged, 0, ARRAY_LEN(parts))
{
    static const struct segment segments[] = {{0, 1}, {2, 6}, {7, 14}};
    struct bench_options o = gpu_options();
    const struct segment s = segments[parts[_i].part];
    struct workload w;
    hide_cublas();
    gpu_workload(SEQ_LEN, &w);
    w.layers = parts[_i].layers;
    w.chain = chain_find(parts[_i].chain);
    w.rope_theta = 100;
    setenv("FAKE_CHAIN", parts[_i].chain, 1);
    SCOPED_BY(bench_close_at) struct bench *b = bench_of(&o, &w);
    struct sampling how = sampling_exhaustive;
    how.all_layers = how.all_rows = parts[_i].says == NULL;
    struct choice wrong = gpu_choice(b, s.first, s.last);
    gpu_build(b, &wrong, parts[_i].code);
    SCOPED_BY(trial_release) struct trial t = plan_trial(b, "0-1,2-6,7-14", &how);
    if (parts[_i].says != NULL) {
        check_failed(&t, STATUS_WRONG, parts[_i].says);
        t = plan_trial(b, "0-14", &sampling_exhaustive);
    }
    ck_assert_msg(t.status == TRIAL_OK, "%s", t.reason.message);
    ck_assert_int_ge(t.sample_count, sampling_exhaustive.min_samples);
    ck_assert_int_le(t.sample_count, sampling_exhaustive.max_samples);
    ck_assert_double_gt(t.ms.median, 0);
}

enum { MANY = 4096 };

/* Where real rows lie together the GPU hashes its memory, if its driver compiles the hash and that
 * is right: else the host does. */
static const struct {
    const char *hash, *lengths, *code, *says;
    size_t least, most; /* hashes */
} hashes[] = {
    {"", NULL, "fake right\n", NULL, 10, MANY},    {"", NULL, "fake lazy 4\n", APART, 3, MANY},
    {"", NULL, "fake tired\n", LATER, 4, MANY},    {"", "5,3", "fake right\n", NULL, 5, MANY},
    {"", "5,3", "fake tired\n", LATER, 4, MANY},   {"none", NULL, "fake right\n", NULL, 0, 0},
    {"none", NULL, "fake tired\n", LATER, 0, 0},   {"wrong", NULL, "fake right\n", NULL, 1, 1},
    {"wrong", NULL, "fake lazy 4\n", APART, 1, 1},
};

TEST_LOOP(memory_is_hashed_on_the_gpu, 0, ARRAY_LEN(hashes))
{
    struct workload w;
    struct trial t;
    hide_cublas();
    gpu_workload_of(SEQ_LEN, hashes[_i].lengths, &w);
    setenv("FAKE_HASH", hashes[_i].hash, 1);
    setenv("FAKE_HASHES", test_path("hashes"), 1);
    write_text(test_path("hashes"), "");
    struct bench_options o = gpu_options();
    SCOPED_BY(bench_close_at) struct bench *b = bench_of(&o, &w);
    struct choice last = gpu_choice(b, 7, 14);
    gpu_build(b, &last, hashes[_i].code);
    struct candidate c = candidate_of(b, "0-1,2-6,7-14");
    c.packed = hashes[_i].lengths != NULL;
    OK(bench_plan(b, &c, &sampling_exhaustive, &t, &st));
    if (hashes[_i].says != NULL) {
        check_failed(&t, STATUS_WRONG, hashes[_i].says);
    } else {
        check_ok(&t);
        for (int op = 2; op <= 4; op++) { /* scores, among them masked ones */
            t = segment_trial(b, op, op);
            check_ok(&t);
        }
    }
    ck_assert_uint_ge(strlen(text_of("hashes")), hashes[_i].least);
    ck_assert_uint_le(strlen(text_of("hashes")), hashes[_i].most);
}

/* Layer 1 is local: its mask and its rotations are others. */
TEST(plan_runs_both_kinds_of_layers)
{
    struct bench_options o = gpu_options();
    struct sampling how = sampling_exhaustive;
    struct workload w;
    hide_cublas();
    gpu_workload(SEQ_LEN, &w);
    w.chain = chain_find(ALL);
    w.rope_theta = 100;
    setenv("FAKE_CHAIN", ALL, 1);
    OK(workload_add_local(&w, "sliding:w=0", 10, 2, &st));
    OK(workload_check(&w, &st));
    OK(workload_build_mask(&w, NULL, &st));
    SCOPED_BY(bench_close_at) struct bench *b = bench_of(&o, &w);
    how.all_layers = how.all_rows = true;
    struct trial t = plan_trial(b, "0-1,2-6,7-14", &how);
    ck_assert_double_lt(t.error, 1e-5);
    check_ok(&t);
}

/* What a wrong kernel leaves in memory that all share must not make the next ones wrong: op 10
 * needs more of it than op 0. */
TEST(wrong_kernel_spoils_no_other)
{
    struct bench_options o = gpu_options();
    struct workload w;
    hide_cublas();
    gpu_workload(SEQ_LEN, &w);
    w.ffn = 1024;
    SCOPED_BY(bench_close_at) struct bench *b = bench_of(&o, &w);
    write_text(test_path("code"), "fake messy\n");
    struct trial t = segment_trial(b, 0, 0);
    check_failed(&t, STATUS_WRONG, "");
    write_text(test_path("code"), "fake right\n");
    t = plan_trial(b, "0-1", &sampling_exhaustive);
    check_ok(&t);
}

/* A kernel of microseconds that takes 2 ms while it is verified and calibrated: a sample of one run
 * would be too short. */
TEST(samples_are_long_once_the_gpu_is_awake)
{
    write_text(test_path("code"), "fake waking 8\n");
    SCOPED_BY(bench_close_at) struct bench *b = gpu_bench();
    SCOPED_BY(trial_release) struct trial t = segment_trial(b, 8, 8);
    ck_assert_msg(t.status == TRIAL_OK, "%s", t.reason.message);
    ck_assert_double_gt(t.time_s / t.sample_count, 1e-4);
}

/* The first plan was verified before the second one spoils what both read. */
TEST(wrong_plan_spoils_none_beside_it)
{
    static const struct sampling how = {.min_samples = 2, .max_samples = 2, .all_layers = true};
    struct trial t[2];
    SCOPED_BY(bench_close_at) struct bench *b = gpu_bench();
    struct candidate c[] = {candidate_of(b, "0-14"), candidate_of(b, "0-7,8-14")};
    gpu_build(b, &c[1].choices[1], "fake vandal\n");
    OK(bench_compare(b, c, 2, &how, t, &st));
    ck_assert_msg(t[0].status == TRIAL_OK, "%s", t[0].reason.message);
    ck_assert_int_eq(t[1].reason.code, STATUS_WRONG);
    trial_release(&t[0]);
    trial_release(&t[1]);
}

/* Segments that differ in their operands alone may have one binary and one schedule.  The verdict
 * on one of them says nothing of the other. */
TEST(segments_of_one_binary_are_each_verified)
{
    static const struct sampling verify_only = {.max_samples = 0};
    SCOPED_BY(bench_close_at) struct bench *b = gpu_bench();
    struct choice c[] = {gpu_choice(b, 8, 8), gpu_choice(b, 13, 13)};
    const struct binary *binaries[ARRAY_LEN(c)];
    struct trial t[ARRAY_LEN(c)];
    for (size_t i = 0; i < ARRAY_LEN(c); i++) {
        OK(bench_segment(b, &c[i], false, &verify_only, &t[i], &st));
        ck_assert_int_eq(t[i].status, TRIAL_OK);
        binaries[i] = builder_find(&b->builder, &c[i]);
        if (i == 0) /* what no verification would find */
            OK(cache_put(&b->cache, CACHE_VERDICT, binaries[0]->verdict, "0.5", 3, &st));
    }
    ck_assert_ptr_eq(c[0].impl, c[1].impl);
    ck_assert_mem_eq(&c[0].schedule, &c[1].schedule, sizeof(c[0].schedule));
    ck_assert_str_eq(binaries[0]->content_hash, binaries[1]->content_hash);
    ck_assert_double_lt(t[1].error, 0.1);
    for (size_t i = 0; i < ARRAY_LEN(c); i++)
        trial_release(&t[i]);
}

/* Another process measures on the first GPU of the machine, whatever number each gives it. */
TEST_LOOP(gpu_is_locked_by_its_uuid, 0, 3)
{
    static const struct {
        const char *visible;
        int device;
        bool waits;
    } views[] = {{"0", 0, true}, {"1", 0, false}, {"1,0", 1, true}};
    struct bench_options o = gpu_options();
    setenv("FUSEPLAN_LOCK_DIR", test_dir, 1);
    int lock = open(test_path("fuseplan-lock-cuda-GPU-00112233-4455-6677-8899-aabbccddeeff"),
                    O_RDWR | O_CREAT, 0666);
    ck_assert_int_eq(flock(lock, LOCK_EX), 0);
    setenv("CUDA_VISIBLE_DEVICES", views[_i].visible, 1);
    o.target.device = views[_i].device;
    SCOPED_BY(bench_close_at) struct bench *b = gpu_bench_of(&o, SEQ_LEN);
    struct choice c = gpu_choice(b, 8, 8);
    struct trial t;
    gpu_build(b, &c, "fake right\n");
    bench_limit(b, views[_i].waits ? 0.02 : 60);
    bool measured = bench_segment(b, &c, false, &sampling_search, &t, &st) == 0;
    ck_assert_msg(measured != views[_i].waits, "%s", st.message);
    if (measured)
        trial_release(&t);
    else
        ck_assert_ptr_nonnull(strstr(st.message, "no turn on cuda:"));
    close(lock);
}

static const struct bench *victim;

static void kill_worker(void *ctx, const struct step *step)
{
    if (strncmp(step->phase, "verifying", 9) == 0)
        kill(program_of(victim->client.process.pid), SIGKILL);
}

/* A worker on a GPU runs no host code of a candidate's. */
TEST(kills_from_outside_are_nobodys_failure)
{
    struct bench_options o = gpu_options();
    struct trial t;
    o.listener = (struct listener){.report = kill_worker};
    SCOPED_BY(bench_close_at) struct bench *b = gpu_bench_of(&o, SEQ_LEN);
    struct choice c = gpu_choice(b, 8, 8);
    victim = b;
    gpu_build(b, &c, "fake hang\n");
    FAILS(bench_segment(b, &c, false, &sampling_search, &t, &st), STATUS_ENVIRONMENT,
          "the worker was ended from outside twice");
}

/* The driver's kernels leave made-up times, see fake/cuda.c, and none that tells products apart. */
TEST(stamps_say_where_the_time_goes)
{
    struct stamps found;
    SCOPED_BY(bench_close_at) struct bench *b = gpu_bench();
    struct candidate c = candidate_of(b, "0-1,2-6,7-14");
    OK(bench_stamps(b, &c, &found, &st));
    ck_assert_msg(found.reason.code == STATUS_OK, "%s", found.reason.message);
    ck_assert_int_eq(found.count, 3);
    ck_assert_double_gt(found.plain_ms, 0);
    ck_assert_double_gt(found.stamped_ms, 0);
    for (int i = 0; i < found.count; i++) {
        const double *us = found.us[i];
        ck_assert_double_eq_tol(us[STAMP_HAND_OVER], 1, 1e-3);
        ck_assert_double_eq_tol(us[STAMP_UNDIVIDED] + us[STAMP_LAST_BLOCK], 3, 1e-3);
        ck_assert_double_gt(us[STAMP_LAST_BLOCK], 0);
        ck_assert_double_nan(us[STAMP_LOADS]);
        ck_assert_double_nan(us[STAMP_PRODUCTS]);
        ck_assert_double_nan(us[STAMP_EPILOGUE]);
    }
}

/* A library's kernel leaves none.  The driver's clock stands while it runs. */
TEST(library_leaves_no_stamps)
{
    struct stamps found;
    struct choice choices[64];
    SCOPED_BY(bench_close_at) struct bench *b = gpu_bench();
    struct candidate c = candidate_of(b, "0-6,7-8,9-14");
    int n = choices_for(bench_target(b), (struct segment){7, 8}, false, 64, choices), i = 0;
    while (i < n && i < 64 && !choices[i].impl->library)
        i++;
    ck_assert_int_lt(i, n);
    c.choices[1] = choices[i];
    OK(bench_stamps(b, &c, &found, &st));
    ck_assert_msg(found.reason.code == STATUS_OK, "%s", found.reason.message);
    for (int phase = 0; phase < STAMP_PHASES; phase++)
        ck_assert_double_nan(found.us[1][phase]);
    ck_assert_double_eq_tol(found.us[2][STAMP_HAND_OVER], 1, 1e-3);
}

/* The kernel is right without stamps. */
TEST(plan_that_fails_with_stamps_says_so)
{
    struct stamps found;
    SCOPED_BY(bench_close_at) struct bench *b = gpu_bench();
    struct candidate c = candidate_of(b, "0-1,2-6,7-14");
    struct choice wrong = c.choices[1];
    wrong.stamped = true;
    gpu_build(b, &wrong, "fake wrong\n");
    OK(bench_stamps(b, &c, &found, &st));
    ck_assert_int_eq(found.reason.code, STATUS_WRONG);
    ck_assert_ptr_nonnull(strstr(found.reason.message, "segment 2-6"));
}

SUITE("cuda plans", gpu_setup, test_dir_teardown)
