#include "bench/bench_int.h"
#include "tests/suite.h"

TEST(fingerprint_text_has_every_field)
{
    struct fingerprint f = {.device = "D",
                            .uuid = "U",
                            .capability = "C",
                            .units = 7,
                            .driver = "R",
                            .compiler = "G",
                            .libraries = "L",
                            .protocol = "1"};
    SCOPED_BUF text = BUF_INIT;
    fingerprint_text(&f, &text);
    ck_assert_str_eq(text.ptr, "device=D\nuuid=U\ncapability=C\nunits=7\ndriver=R\ncompiler=G\n"
                               "libraries=L\nprotocol=1\n");
}

/* Whatever the user's shell says of threads does not reach the worker, and no secret does.  Threads
 * that run plans are bound to their cores, and only these.  _i: whether they do. */
TEST_LOOP(worker_environment_is_steady, 0, 2)
{
    setenv("OMP_NUM_THREADS", "77", 1);
    setenv("OPENBLAS_NUM_THREADS", "77", 1);
    setenv("GOMP_CPU_AFFINITY", "0", 1);
    setenv("FUSEPLAN_CHECK", "kept", 1);
    setenv("FUSEPLAN_PASS", "OMP_* ALSO_* THIS", 1);
    setenv("ALSO_THAT", "kept", 1);
    setenv("THIS", "kept", 1);
    setenv("THIS_TOKEN", "secret", 1);
    setenv("LD_PRELOAD", "secret", 1);
    setenv("LC_ALL", "secret", 1);
    SCOPED char **env = worker_environment(_i == 1, NULL);
    int threads = 0, bound = 0, kept = 0, locale = 0;
    for (int i = 0; env[i] != NULL; i++) {
        ck_assert_ptr_null(strstr(env[i], "=77"));
        ck_assert_ptr_null(strstr(env[i], "GOMP_CPU_AFFINITY"));
        ck_assert_ptr_null(strstr(env[i], "secret"));
        threads += strncmp(env[i], "OMP_NUM_THREADS=", 16) == 0;
        bound += strcmp(env[i], _i == 1 ? "OMP_PROC_BIND=true" : "OMP_PROC_BIND=false") == 0;
        kept += strstr(env[i], "=kept") != NULL;
        locale += strcmp(env[i], "LC_ALL=C") == 0;
    }
    ck_assert_int_eq(threads, 1);
    ck_assert_int_eq(bound, 1);
    ck_assert_int_eq(kept, 3);
    ck_assert_int_eq(locale, 1);
}

SUITE("target", NULL, NULL)
