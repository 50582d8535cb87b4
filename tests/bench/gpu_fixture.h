/* What the suites of the CUDA target share: a driver and a library of products that compute on the
 * host, see fake/, and a compiler that takes what the test gives it. */
#ifndef FUSEPLAN_TESTS_BENCH_GPU_FIXTURE_H
#define FUSEPLAN_TESTS_BENCH_GPU_FIXTURE_H

#include "tests/bench/fixture.h"

enum { SEQ_LEN = 5 };

/* A compiler that copies test_dir/code, adds whether the source has stamps, says test_dir/log and
 * leaves its bound of memory in test_dir/bound. */
static inline void write_nvcc(const char *release)
{
    char text[512];
    snprintf(text, sizeof(text),
             "#!/bin/sh\n"
             "[ \"$1\" = --version ] && { echo 'Cuda compilation tools, release %s, V0'; exit; }\n"
             "while [ $# -gt 1 ]; do [ \"$1\" = -o ] && out=$2; shift; done\n"
             "ulimit -v >'%s'/bound; cat '%s'/log && cp '%s'/code \"$out\" || exit\n"
             "! grep -q stamped_kernel \"$1\" || echo stamped >>\"$out\"\n",
             release, test_dir, test_dir, test_dir);
    write_script(test_path("nvcc"), text);
}

/* Puts what is no library in the place of one that this machine may have. */
static inline void hide_library(const char *name)
{
    write_text(test_path(name), "");
}

/* So that the defaults are kernels of ours. */
static inline void hide_cublas(void)
{
    hide_library("libcublasLt.so.13");
    hide_library("libcublasLt.so.12");
    hide_library("libcublasLt.so");
    setenv("CUDA_HOME", test_dir, 1);
}

static inline void gpu_setup(void)
{
    char path[512];
    test_dir_setup();
    snprintf(path, sizeof(path), "%s:%s", test_dir, getenv("PATH"));
    setenv("PATH", path, 1);
    snprintf(path, sizeof(path), "%s:%s", test_dir, FAKE_CUDA_DIR);
    setenv("LD_LIBRARY_PATH", path, 1);
    setenv("CUDA_HOME", FAKE_CUDA_DIR, 1);
    unsetenv("FAKE_GPU");
    unsetenv("FAKE_CHAIN");
    unsetenv("FAKE_DTYPE");
    unsetenv("FAKE_GPU_BYTES");
    unsetenv("FAKE_GPU_OTHERS");
    unsetenv("FAKE_NVML");
    unsetenv("FAKE_HASH");
    unsetenv("FAKE_HASHES");
    setenv("FAKE_GPU_FAULTS", test_path("faults"), 1);
    hide_library("libnvrtc.so");
    hide_library("libnvrtc.so.13");
    hide_library("libnvrtc.so.12");
    write_nvcc("13.0");
    write_text(test_path("code"), "fake right\n");
    write_text(test_path("log"), "");
}

/* lengths may be null. */
static inline void gpu_workload_of(int seq_len, const char *lengths, struct workload *w)
{
    *w = (struct workload){.chain = &chain_bert,
                           .batch = 2,
                           .seq_len = seq_len,
                           .heads = 2,
                           .head_size = 16,
                           .layers = 3,
                           .eps = 1e-5};
    workload_ready(w, "full", lengths, NULL);
}

static inline void gpu_workload(int seq_len, struct workload *w)
{
    gpu_workload_of(seq_len, "5,3", w);
}

static inline struct bench_options gpu_options(void)
{
    struct bench_options o = small_options(test_path("cache"));
    o.target.kind = TARGET_CUDA;
    o.compiler = "nvcc";
    o.run_deadline_s = 60;
    return o;
}

static inline struct bench *gpu_bench_of(const struct bench_options *o, int seq_len)
{
    struct workload w;
    gpu_workload(seq_len, &w);
    return bench_of(o, &w);
}

static inline struct bench *gpu_bench(void)
{
    struct bench_options o = gpu_options();
    return gpu_bench_of(&o, SEQ_LEN);
}

static inline struct choice gpu_choice(const struct bench *b, int first, int last)
{
    return choice_for(bench_target(b), first, last);
}

/* Builds a choice whose kernel is `code`; whatever is built after it is right. */
static inline void gpu_build(struct bench *b, const struct choice *c, const char *code)
{
    struct status built;
    write_text(test_path("code"), code);
    OK(bench_build(b, c, 1, &built, &st));
    ck_assert_msg(built.code == STATUS_OK, "%s", built.message);
    write_text(test_path("code"), "fake right\n");
}

#endif
