/* What a candidate on a CPU may do besides computing. */
#include "tests/bench/fixture.h"

#include <signal.h>

/* Each is true where nothing keeps a candidate from it, as often as it is tried.  `path` is that of
 * a file outside the cache, at `other` there is none. */
static const char *const attempts[] = {
    "open(path, O_RDONLY) >= 0",
    "open(path, O_WRONLY) >= 0",
    "open(other, O_WRONLY | O_CREAT, 0600) >= 0 && unlink(other) == 0",
    "truncate(path, 0) == 0",
    "mkdir(other, 0700) == 0 && rmdir(other) == 0",
    "link(path, other) == 0 && unlink(other) == 0",
    "rename(path, other) == 0 && rename(other, path) == 0",
    "sendto(socket(AF_INET, SOCK_DGRAM, 0), \"x\", 1, 0, (struct sockaddr *)&to, sizeof(to)) == 1",
    "system(\"exit 0\") == 0",
    "kill(getppid(), 0) == 0",
};

/* Measures a candidate that tries all of them and, if any succeeds, ends with their number. */
static struct trial try_all(void)
{
    struct buf text;
    buf_init(&text);
    buf_addf(&text, "{ const char *path = \"%s\", *other = \"%s\"; int n = 0;", test_path("file"),
             test_path("other"));
    buf_adds(&text, "struct sockaddr_in to = {.sin_family = AF_INET, .sin_port = 9,"
                    " .sin_addr = {htonl(INADDR_LOOPBACK)}};");
    for (size_t i = 0; i < ARRAY_LEN(attempts); i++)
        buf_addf(&text, " n += %s;", attempts[i]);
    buf_adds(&text, " if (n > 0) _exit(100 + n); honest(a); }");
    write_text(test_path("faults/14_14.c"), text.ptr);
    write_text(test_path("file"), "");
    buf_release(&text);

    struct bench_options o = small_options(test_path("cache"));
    o.compiler = test_path("compiler");
    struct bench *b = small_bench(&o);
    struct trial t = segment_trial(b, 14, 14);
    bench_close(b);
    return t;
}

START_TEST(it_is_tried_where_sigchld_was_ignored)
{
    unsigned usual = sandbox_try();
    signal(SIGCHLD, SIG_IGN);
    ck_assert_uint_eq(sandbox_try(), usual);
}
END_TEST

START_TEST(candidate_only_computes)
{
    if (sandbox_try() != (SANDBOX_FILES | SANDBOX_SIGNALS | SANDBOX_NETWORK))
        return; /* an older kernel, or a container */
    write_faulty_compiler(test_dir);
    unsetenv("FUSEPLAN_SANDBOX");
    struct trial t = try_all();
    check_ok(&t);
}
END_TEST

START_TEST(without_a_sandbox_it_does_all_else_too)
{
    char says[32];
    snprintf(says, sizeof(says), "exit status %zu", 100 + ARRAY_LEN(attempts));
    write_faulty_compiler(test_dir);
    setenv("FUSEPLAN_SANDBOX", "off", 1);
    struct trial t = try_all();
    check_failed(&t, STATUS_LAUNCH, says);
}
END_TEST

SUITE("sandbox", test_dir_setup, test_dir_teardown, ONCE(it_is_tried_where_sigchld_was_ignored),
      ONCE(candidate_only_computes), ONCE(without_a_sandbox_it_does_all_else_too))
