/* The number of cores in a process whose main thread OpenMP has bound to one, such as
 * the worker. */
#include "base/base.h"
#include "tests/suite.h"

#include <omp.h>

/* The program that the test starts is this one.  OpenMP has started before. */
static void __attribute__((constructor)) print_threads(void)
{
    if (getenv("PRINT_THREADS") == NULL)
        return;
    printf("%d %d\n", omp_get_proc_bind() != omp_proc_bind_false, cpu_threads());
    exit(EXIT_SUCCESS);
}

TEST(bound_thread_counts_all_cores)
{
    char command[128], said[64] = "", *rest;
    snprintf(command, sizeof(command), "PRINT_THREADS=1 OMP_PROC_BIND=true /proc/%ld/exe",
             (long)getpid());
    FILE *child = popen(command, "r");
    ck_assert_ptr_nonnull(child);
    ck_assert_ptr_nonnull(fgets(said, (int)sizeof(said), child));
    ck_assert_int_eq(pclose(child), 0);
    ck_assert_int_eq(strtol(said, &rest, 10), 1);
    ck_assert_int_eq(strtol(rest, NULL, 10), cpu_threads());
}

SUITE("threads", NULL, NULL)
