/* Greedy candidates and compilers may map so much memory and no more; a large cache takes none. */
#include "bench/compile/compile.h"
#include "tests/bench/fixture.h"

#include <fcntl.h>
#include <sys/resource.h>
#include <unistd.h>

static struct status st; /* of the call that a test is about */

static struct bench *open_faulty(void)
{
    write_faulty_compiler(test_dir);
    struct bench_options o = small_options(test_path("cache"));
    o.compiler = test_path("compiler");
    return small_bench(&o);
}

/* Maps 1 TiB that it never touches: no machine is hurt where no bound holds it.  AddressSanitizer
 * allows no bound. */
START_TEST(greedy_candidate_fails_alone)
{
#ifdef __SANITIZE_ADDRESS__
    return;
#endif
    struct bench *b = open_faulty();
    write_text(
        test_path("faults/08_09.c"),
        "{ static char *volatile kept[4096]; static int count; honest(a);"
        "  while (count < 4096) {"
        "    kept[count] = malloc((size_t)256 << 20);"
        "    if (kept[count++] == NULL) { fputs(\"no memory left\\n\", stderr); abort(); } } }");
    struct trial bad = segment_trial(b, 8, 9), good = segment_trial(b, 14, 14);
    check_failed(&bad, STATUS_LAUNCH, "no memory left");
    check_ok(&good);
    bench_close(b);
}
END_TEST

START_TEST(compiler_has_a_bound)
{
    char script[256];
    struct buf text;
    struct bench *b = open_faulty();
    struct choice c = choice_of(14, 14);
    snprintf(script, sizeof(script), "ulimit -v >%s/bound\n", test_dir);
    write_text(test_path("faults/14_14.sh"), script);
    OK(bench_build(b, &c, 1, NULL, &st));
    buf_init(&text);
    OK(file_read(test_path("bound"), 100, &text, &st));
    ck_assert_str_eq(text.ptr, "8388608\n"); /* KiB */
    buf_release(&text);
    bench_close(b);
}
END_TEST

/* What this process has of private memory, as RLIMIT_DATA counts it. */
static rlim_t data_bytes(void)
{
    char line[128];
    unsigned long kib = 0;
    FILE *f = fopen("/proc/self/status", "r");
    ck_assert_ptr_nonnull(f);
    while (kib == 0 && fgets(line, sizeof(line), f) != NULL)
        if (sscanf(line, "VmData: %lu", &kib) != 1)
            kib = 0;
    fclose(f);
    return (rlim_t)kib << 10;
}

/* A cache of ten thousands of verdicts is walked at each start: memory for their names would grow
 * with the cache.  A sanitizer maps terabytes and cannot be limited. */
START_TEST(walk_keeps_no_names)
{
#ifdef __SANITIZE_ADDRESS__
    return;
#endif
    enum { FILES = 4000, MORE_BYTES = 1 << 19 };
    struct cache c;
    OK(cache_open(test_path("cache"), &c, &st));
    char path[512];
    for (int i = 0; i < FILES; i++) {
        snprintf(path, sizeof(path), "%s/verdicts/%032x.txt", c.dir, (unsigned)i);
        int fd = open(path, O_WRONLY | O_CREAT, 0600);
        ck_assert_int_ge(fd, 0);
        ck_assert_int_eq(write(fd, "x", 1), 1);
        close(fd);
    }
    struct rlimit limit = {.rlim_cur = data_bytes() + MORE_BYTES, .rlim_max = RLIM_INFINITY};
    ck_assert_int_eq(setrlimit(RLIMIT_DATA, &limit), 0);
    ck_assert_uint_eq(cache_bytes(&c), FILES);
    cache_release(&c);
}
END_TEST

SUITE("bench/memory", test_dir_setup, test_dir_teardown, ONCE(greedy_candidate_fails_alone),
      ONCE(compiler_has_a_bound), ONCE(walk_keeps_no_names))
