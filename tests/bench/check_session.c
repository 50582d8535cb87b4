/* A session on a small workload, with the real compiler and the real worker. */
#include "tests/bench/fixture.h"

#include "bench/bench_int.h"

#include <fcntl.h>
#include <sys/resource.h>
#include <sys/wait.h>

static struct bench *honest_bench(void)
{
    struct bench_options o = small_options(test_cache());
    return small_bench(&o);
}

static void check_trial(const struct trial *t)
{
    ck_assert_msg(t->status == TRIAL_OK, "%s", t->reason.message);
    ck_assert_int_ge(t->sample_count, 6);
    ck_assert_double_gt(t->ms.median, 0);
    ck_assert_double_le(t->ms.low, t->ms.median);
    ck_assert_double_ge(t->ms.high, t->ms.median);
    ck_assert_double_le(t->error, 4e-5);
    ck_assert_double_gt(t->error, 0);
}

static void check_segment(struct bench *b, int first, int last)
{
    SCOPED_BY(trial_release) struct trial t = segment_trial(b, first, last);
    check_trial(&t);
}

/* Programs that want every core keep threads waiting, and that is told. */
TEST(load_of_others_is_noticed)
{
    SCOPED_BY(bench_close_at) struct bench *b = honest_bench();
    int count = cpu_threads();
    pid_t *others = mem_alloc((size_t)count, sizeof(*others));
    for (int i = 0; i < count; i++)
        for (volatile unsigned turns = (unsigned)(others[i] = fork()); turns == 0;)
            ;
    struct trial t = plan_trial(b, "0-7,8-9,10-14", &sampling_search);
    struct env_list list;
    int warned = 0;
    env_check_noise((struct target_name){.kind = TARGET_CPU}, &list);
    for (int i = 0; i < list.count; i++)
        warned += strcmp(list.rows[i].subject, "load") == 0 && list.rows[i].state == ENV_WARNING;
    env_list_release(&list);
    ck_assert_int_eq(warned, 1);
    for (int i = 0; i < count; i++) {
        kill(others[i], SIGKILL);
        waitpid(others[i], NULL, 0);
    }
    free(others);
    ck_assert_double_gt(t.conditions.waited_share, 0.1);
    ck_assert_int_eq(bench_disturbance(b).crowded, 1);
    check_ok(&t);
}

/* What a bench has told its listener. */
struct told {
    int64_t rounds;
};

static void listen(void *ctx, const struct step *step)
{
    struct told *told = ctx;
    if (strcmp(step->phase, "timing") != 0)
        return;
    ck_assert(step->left_s >= 0);
    ck_assert(told->rounds <= step->done && step->done <= step->total);
    told->rounds = step->done;
}

TEST(candidates_are_compared_in_pairs)
{
    const struct sampling how = {.min_samples = 9, .max_samples = 9, .all_layers = true};
    struct told told = {.rounds = 0};
    struct bench_options o = small_options(test_cache());
    o.listener = (struct listener){listen, &told};
    SCOPED_BY(bench_close_at) struct bench *b = small_bench(&o);
    struct candidate c[] = {candidate_of(b, "0-7,8-9,10-14"), candidate_of(b, "0-7,8-14")};
    struct trial t[2];
    OK(bench_compare(b, c, 2, &how, t, &st));
    for (int i = 0; i < 2; i++) {
        check_trial(&t[i]);
        ck_assert_int_eq(t[i].sample_count, 9);
        ck_assert_int_eq(t[i].layers_timed, 2);
        trial_release(&t[i]);
    }
    ck_assert_int_ge(told.rounds, 8); /* told before each sample */
}

TEST(hopeless_plan_is_censored)
{
    SCOPED_BY(bench_close_at) struct bench *b = honest_bench();
    struct candidate c = candidate_of(b, "0-7,8-9,10-14");
    struct sampling how = sampling_search;
    SCOPED_BY(trial_release) struct trial t;
    how.censor_above_ms = 1e-6;
    OK(bench_plan(b, &c, &how, &t, &st));
    ck_assert_int_eq(t.status, TRIAL_CENSORED);
    ck_assert_int_eq(t.sample_count, 2);
}

static double verified_error(const struct bench_options *o, const char *verdict)
{
    const struct sampling verify_only = {.max_samples = 0};
    struct choice c = choice_of(9, 9);
    SCOPED_BY(trial_release) struct trial t;
    SCOPED_BY(bench_close_at) struct bench *b = small_bench(o);
    OK(bench_segment(b, &c, false, &verify_only, &t, &st));
    ck_assert_int_eq(t.status, TRIAL_OK);
    if (verdict != NULL) {
        const char *key = builder_find(&b->builder, &c)->verdict;
        OK(cache_put(&b->cache, CACHE_VERDICT, key, verdict, strlen(verdict), &st));
    }
    return t.error;
}

/* A verdict is stored once and believed by later sessions: here one that says what no verification
 * would find.  Other inputs have another one, and whoever asks for it verifies again. */
TEST(verdicts_are_kept)
{
    struct bench_options o = small_options(test_cache());
    double error = verified_error(&o, "0.5");
    ck_assert_double_eq(verified_error(&o, NULL), 0.5);
    o.inputs.seed = 2;
    ck_assert_double_lt(verified_error(&o, NULL), 0.5);
    o.inputs.seed = 1;
    o.afresh = true;
    ck_assert_double_eq(verified_error(&o, NULL), error);
}

/* Times a segment in a session of its own whose cache says `verdict` of it, or nothing if null.
 * out: what the cache says then. */
static void time_by_verdict(const struct bench_options *o, const char *verdict, struct buf *out)
{
    struct choice c = choice_of(9, 9);
    SCOPED_BY(bench_close_at) struct bench *b = small_bench(o);
    SCOPED_BY(trial_release) struct trial t;
    OK(bench_build(b, &c, 1, NULL, &st));
    json_decref(request_of(b, (struct runnable){.choices = &c, .count = 1, .alone = true}));
    struct binary *binary = builder_find(&b->builder, &c);
    if (verdict != NULL)
        OK(cache_put(&b->cache, CACHE_VERDICT, binary->verdict, verdict, strlen(verdict), &st));
    binary->error = -1; /* it is looked for again */
    OK(bench_segment(b, &c, false, &sampling_search, &t, &st));
    ck_assert_int_eq(t.status, TRIAL_OK);
    buf_reset(out);
    ck_assert(cache_get(&b->cache, CACHE_VERDICT, binary->verdict, out, NULL));
}

/* What a segment stores is compared with the oracle's once: later its bits tell, if they are the
 * same.  Others may be of other inputs, as an oracle on another CPU gives, and are compared. */
TEST(bits_of_an_earlier_session_are_right)
{
    struct bench_options o = small_options(test_path("cache"));
    SCOPED_BUF first = BUF_INIT;
    SCOPED_BUF now = BUF_INIT;
    SCOPED_BUF changed = BUF_INIT;
    time_by_verdict(&o, NULL, &first);
    const char *bits = strchr(first.ptr, ' ');
    ck_assert_ptr_nonnull(bits);
    ck_assert_uint_eq(strlen(bits), HASH_TEXT_SIZE);
    buf_addf(&changed, "0.5%s", bits);
    time_by_verdict(&o, changed.ptr, &now);
    ck_assert_str_eq(now.ptr, changed.ptr);
    changed.ptr[changed.len - 1] ^= 1;
    time_by_verdict(&o, changed.ptr, &now);
    ck_assert_str_eq(now.ptr, first.ptr);
    time_by_verdict(&o, "0.5", &now);
    ck_assert_str_eq(now.ptr, first.ptr);
}

/* A damaged binary is built again. */
TEST(damaged_binary_is_rebuilt)
{
    struct bench_options o = small_options(test_path("cache"));
    struct choice c = choice_of(9, 9);
    for (int i = 0; i < 2; i++) {
        SCOPED_BY(bench_close_at) struct bench *b = small_bench(&o);
        OK(bench_build(b, &c, 1, NULL, &st));
        const struct binary *binary = builder_find(&b->builder, &c);
        check_segment(b, 9, 9);
        ck_assert_int_eq(truncate(binary->path, 1000), 0);
    }
}

/* What a session built long ago and uses now is not what another one removes first. */
TEST(binary_in_use_is_not_trimmed)
{
    const struct timespec old[2] = {{.tv_sec = 1}, {.tv_sec = 1}};
    struct bench_options o = small_options(test_path("cache"));
    SCOPED_BY(bench_close_at) struct bench *b = small_bench(&o);
    struct choice c = choice_of(14, 14);
    SCOPED_BY(cache_release) struct cache shared;
    OK(bench_build(b, &c, 1, NULL, &st));
    const struct binary *built = builder_find(&b->builder, &c);
    ck_assert_int_eq(utimensat(AT_FDCWD, built->path, old, 0), 0);
    OK(bench_build(b, &c, 1, NULL, &st));
    OK(cache_open(test_path("cache"), &shared, &st));
    shared.max_bytes = 0;
    cache_trim(&shared);
    ck_assert(file_exists(built->path));
}

/* ---- the first look at a compiler ------------------------------------------------------------ */

/* A session with a script in the compiler's place. */
static struct bench *bench_by(const char *script, struct bench_options *o)
{
    o->compiler = test_path("tool");
    write_script(o->compiler, script);
    return small_bench(o);
}

/* The compiler is asked for its version, builds a probe, and a worker runs that: each may be killed
 * once by another program. */
static const char *const first_looks[] = {"--version", "*.so", "--probe"};

TEST_LOOP(first_look_survives_a_kill, 0, ARRAY_LEN(first_looks))
{
    char text[1024];
    snprintf(text, sizeof(text),
             "#!/bin/sh\n"
             "for arg; do case $arg in %s) mkdir '%s' 2>/dev/null && kill -9 $$ ;; esac; done\n"
             "case $1 in --probe) exec '%s' \"$@\" ;; *) exec cc \"$@\" ;; esac\n",
             first_looks[_i], test_path("killed"), FUSEPLAN_WORKER);
    struct bench_options o = small_options(test_path("new cache"));
    o.worker_path = test_path("tool");
    bench_close(bench_by(text, &o));
    ck_assert(file_exists(test_path("killed")));
}

/* Whatever else is printed beside the version. */
TEST(compiler_is_named_by_its_own_macros)
{
    struct bench_options o = small_options(test_path("cache"));
    char expected[64];
    snprintf(expected, sizeof(expected), "gcc %d.%d.%d", __GNUC__, __GNUC_MINOR__,
             __GNUC_PATCHLEVEL__);
    struct bench *b =
        bench_by("#!/bin/sh\n[ \"$1\" = --version ] && echo Killed 1.2\nexec gcc \"$@\"\n", &o);
    ck_assert_str_eq(bench_fingerprint(b)->compiler, expected);
    bench_close(b);
}

/* A compiler that builds a second probe fails. */
TEST(moved_cache_knows_its_probe)
{
    char text[256];
    struct bench_options o = small_options(test_path("cache"));
    snprintf(text, sizeof(text),
             "#!/bin/sh\n[ \"$1\" = --version ] || mkdir '%s' || exit 1\nexec cc \"$@\"\n",
             test_path("probed"));
    bench_close(bench_by(text, &o));
    o.cache_dir = test_path("moved");
    ck_assert_int_eq(rename(test_path("cache"), o.cache_dir), 0);
    bench_close(small_bench(&o));
}

/* ---- what ends the work ---------------------------------------------------------------------- */

static void check_refused(const struct bench_options *o, const struct workload *w,
                          enum status_code code, const char *says)
{
    struct bench *b;
    FAILS(bench_open(o, w, &b, &st), code, says);
    ck_assert_ptr_null(b);
}

/* Compilers, of which some are scripts, and what is said of each. */
#define VERSION "#!/bin/sh\n[ \"$1\" = --version ] && exec cc --version\n"
static const struct {
    const char *path, *script, *says;
} compilers[] = {
    {"no-such-compiler", NULL, "apt install"},
    {"/bin/false", NULL, "not a working compiler"},
    {NULL, "a script that does not say what runs it\n", "Exec format error"},
    {NULL, VERSION "echo 'x.c:1:10: fatal error: cblas.h: No such file' >&2; exit 1\n",
     "cblas.h: No such file"},
    {NULL, VERSION "kill -9 $$\n", "was tried twice; is the disk full, memory short, or "},
    {NULL, VERSION "kill -9 $$\n", "failed (SIGKILL (Killed))"},
    {NULL, "#!/bin/sh\nkill -9 $$\n", "--version' failed (SIGKILL (Killed)); is the disk full"},
};

TEST(bad_environments_are_refused)
{
    SCOPED_BY(workload_release) struct workload w;
    small_workload(&w);
    struct bench_options o = small_options(test_cache());
    w.dtype = DTYPE_FP16;
    check_refused(&o, &w, STATUS_USAGE, "fp16");
    w.dtype = DTYPE_FP32;
    for (size_t i = 0; i < ARRAY_LEN(compilers); i++) {
        o.compiler = compilers[i].path != NULL ? compilers[i].path : test_path("cc");
        if (compilers[i].script != NULL)
            write_script(o.compiler, compilers[i].script);
        check_refused(&o, &w, STATUS_ENVIRONMENT, compilers[i].says);
    }
    o.compiler = NULL;
    o.worker_path = "/nowhere/fuseplan-worker";
    check_refused(&o, &w, STATUS_ENVIRONMENT, "/nowhere/fuseplan-worker");
}

/* OpenBLAS would ask for its memory for ever.  A sanitizer maps terabytes and cannot be limited. */
static rlim_t limit_space(int pieces_of_256_mib, rlim_t less)
{
    const rlim_t bytes = ((rlim_t)pieces_of_256_mib << 28) - less;
    const struct rlimit few = {.rlim_cur = bytes, .rlim_max = bytes};
    ck_assert_int_eq(setrlimit(RLIMIT_AS, &few), 0);
    return bytes;
}

TEST(small_address_space_is_refused)
{
#ifdef __SANITIZE_ADDRESS__
    return;
#endif
    struct bench_options o = small_options(test_path("cache"));
    SCOPED_BY(workload_release) struct workload w;
    struct bench *b;
    small_workload(&w);
    const rlim_t bytes = limit_space(cpu_threads() + 1, 1 << 20);
    ck_assert_uint_le(mem_available_bytes(), bytes);
    double start = clock_seconds();
    FAILS(bench_open(&o, &w, &b, &st), STATUS_ENVIRONMENT, "OpenBLAS on");
    ck_assert_ptr_nonnull(strstr(st.message, "'ulimit -v'"));
    ck_assert_double_lt(clock_seconds() - start, 30);
}

static volatile sig_atomic_t stop;

static void set_stop(int signal)
{
    stop = 1;
}

/* A compiler that hangs when it is first looked at keeps nobody waiting. */
TEST_LOOP(interrupt_ends_the_first_look, 0, 2)
{
    char hangs[128];
    struct bench_options o = small_options(test_path("cache"));
    snprintf(hangs, sizeof(hangs),
             "#!/bin/sh\n"
             "[ \"$1\" %s --version ] || exec cc \"$@\"\n"
             "kill -USR1 %ld; exec sleep 54321\n",
             _i == 0 ? "=" : "!=", (long)getpid());
    o.stop = &stop;
    o.compiler = test_path("tool");
    signal(SIGUSR1, set_stop);
    double start = clock_seconds();
    write_script(test_path("tool"), hangs);
    struct workload w;
    small_workload(&w);
    check_refused(&o, &w, STATUS_INTERRUPTED, "");
    workload_release(&w);
    ck_assert_double_lt(clock_seconds() - start, 30);
}

TEST(stop_flag_ends_the_work)
{
    struct bench_options o = small_options(test_cache());
    o.stop = &stop;
    SCOPED_BY(bench_close_at) struct bench *b = small_bench(&o);
    struct choice c = choice_of(9, 9);
    struct trial t;
    stop = 1;
    FAILS(bench_segment(b, &c, false, &sampling_search, &t, &st), STATUS_INTERRUPTED, "");
    ck_assert_ptr_null(t.samples_ms);
    stop = 0; /* the session is whole */
    check_segment(b, 9, 9);
}

SUITE("session", test_dir_setup, test_dir_teardown)
