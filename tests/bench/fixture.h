/* What the suites of bench/ share: a small workload, and a compiler that plants faults. */
#ifndef FUSEPLAN_TESTS_BENCH_FIXTURE_H
#define FUSEPLAN_TESTS_BENCH_FIXTURE_H

#include "bench/bench.h"
#include "tests/candidate.h"
#include "tests/workload.h"

/* Two layers of hidden size 8: everything takes microseconds. */
static inline void small_workload(struct workload *w)
{
    *w = (struct workload){.chain = &chain_bert,
                           .batch = 2,
                           .seq_len = 5,
                           .heads = 2,
                           .head_size = 4,
                           .layers = 2,
                           .eps = 1e-5};
    workload_ready(w, "causal", NULL, NULL);
}

static const struct build_target build_cpu = {
    .chain = &chain_bert, .kind = TARGET_CPU, .head_size = 4};

/* Options that write nowhere but below the test's directory. */
static inline struct bench_options small_options(const char *cache)
{
    return (struct bench_options){.target = {.kind = TARGET_CPU},
                                  .cache_dir = cache,
                                  .worker_path = FUSEPLAN_WORKER,
                                  .jobs = 2,
                                  .inputs = {.seed = 1}};
}

/* Opens a session on a workload, which it releases. */
static inline struct bench *bench_of(const struct bench_options *options, struct workload *w)
{
    struct bench *b;
    OK(bench_open(options, w, &b, &st));
    workload_release(w);
    return b;
}

static inline struct bench *small_bench(const struct bench_options *options)
{
    struct workload w;
    small_workload(&w);
    return bench_of(options, &w);
}

/* The default choice of one segment. */
static inline struct choice choice_for(const struct build_target *target, int first, int last)
{
    struct choice c;
    struct segment s = {(int8_t)first, (int8_t)last};
    ck_assert_int_ge(choices_for(target, s, false, 1, &c), 1);
    return c;
}

static inline struct choice choice_of(int first, int last)
{
    return choice_for(&build_cpu, first, last);
}

/* Measures the default choice of one segment. */
static inline struct trial segment_trial(struct bench *b, int first, int last)
{
    struct choice c = choice_for(bench_target(b), first, last);
    struct trial t;
    OK(bench_segment(b, &c, false, &sampling_search, &t, &st));
    return t;
}

/* The default choices of a plan. */
static inline struct candidate candidate_of(const struct bench *b, const char *segments)
{
    struct plan p;
    struct candidate c;
    OK(plan_parse_segments(segments, false, &p, &st));
    candidate_default(bench_target(b), p, &c);
    return c;
}

/* The same, measured. */
static inline struct trial plan_trial(struct bench *b, const char *segments,
                                      const struct sampling *how)
{
    struct candidate c = candidate_of(b, segments);
    struct trial t;
    OK(bench_plan(b, &c, how, &t, &st));
    return t;
}

/* Ends a trial that must have gone well. */
static inline void check_ok(struct trial *t)
{
    ck_assert_msg(t->status == TRIAL_OK, "%s", t->reason.message);
    trial_release(t);
}

/* Ends a trial that must have failed with this code, for a reason that holds this text. */
static inline void check_failed(struct trial *t, enum status_code code, const char *says)
{
    ck_assert_int_eq(t->status, TRIAL_FAILED);
    ck_assert_msg(t->reason.code == code, "%s", t->reason.message);
    ck_assert_msg(strstr(t->reason.message, says) != NULL, "%s", t->reason.message);
    trial_release(t);
}

/* The program that a supervisor watches. */
static inline pid_t program_of(pid_t supervisor)
{
    char path[64], line[32];
    snprintf(path, sizeof(path), "/proc/%ld/task/%ld/children", (long)supervisor, (long)supervisor);
    FILE *f = fopen(path, "r");
    ck_assert_ptr_nonnull(f);
    ck_assert_ptr_nonnull(fgets(line, sizeof(line), f));
    fclose(f);
    return (pid_t)strtol(line, NULL, 10);
}

/* The beginning of a file of the test's directory; "" if there is none. */
static inline const char *text_of(const char *name)
{
    static char text[4096];
    FILE *f = fopen(test_path(name), "r");
    text[f != NULL ? fread(text, 1, sizeof(text) - 1, f) : 0] = '\0';
    if (f != NULL)
        fclose(f);
    return text;
}

static inline void write_script(const char *path, const char *text)
{
    write_text(path, text);
    ck_assert_int_eq(chmod(path, 0755), 0);
}

/* Where the faulty compiler finds its faults: in dir/faults. */
static inline void set_faults(const char *dir)
{
    char faults[128];
    snprintf(faults, sizeof(faults), "%s/faults", dir);
    OK(file_make_dirs(faults, &st));
    setenv("FUSEPLAN_TEST_FAULTS", faults, 1);
    setenv("FUSEPLAN_SANDBOX", "off", 1); /* faults leave notes in files */
}

/* Writes compiler and faults into dir.  Where the faults hold FF_LL.c, the source of segment FF-LL
 * is compiled with that in place of its function, which can call the right one as honest(); where
 * they hold FF_LL.sh, that runs first, and may write the binary to $out.  No suite needs fast
 * code. */
static inline void write_faulty_compiler(const char *dir)
{
    char path[128];
    set_faults(dir);
    snprintf(path, sizeof(path), "%s/compiler", dir);
    write_script(path,
                 "#!/bin/sh\n"
                 "faults=$FUSEPLAN_TEST_FAULTS\n"
                 "for arg; do case $arg in *.c) src=$arg;; *.so) out=$arg;; esac; done\n"
                 "[ -n \"$src\" ] || exec cc \"$@\"\n"
                 "name=$(sed -n 's/^void segment_\\([a-z0-9_]*\\)(.*/\\1/p' \"$src\")\n"
                 "key=$(echo \"$name\" | cut -c1-5)\n"
                 "[ -f \"$faults/$key.sh\" ] && . \"$faults/$key.sh\"\n"
                 "if [ -f \"$faults/$key.c\" ]; then\n"
                 "    sed \"s/^void segment_$name(/static void honest(/\" \"$src\" >\"$src.new\"\n"
                 "    { for header in stdio unistd fcntl signal sched time sys/stat sys/wait "
                 "sys/resource sys/syscall sys/ptrace sys/prctl sys/uio netinet/in; do\n"
                 "        echo \"#include <$header.h>\"\n"
                 "      done\n"
                 "      echo \"void segment_$name(const struct fp_args *a)\"\n"
                 "      cat \"$faults/$key.c\"; } >>\"$src.new\"\n"
                 "    mv \"$src.new\" \"$src\"\n"
                 "fi\n"
                 "exec cc \"$@\" -O0\n");
}

#endif
