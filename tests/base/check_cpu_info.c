#include "base/base.h"
#include "tests/suite.h"

#include <sched.h>

START_TEST(cpu_is_described)
{
    struct cpu_info cpu;
    cpu_info_read(&cpu);
    ck_assert_int_gt((int)strlen(cpu.model), 0);
    ck_assert_int_gt((int)strlen(cpu.extension), 0);
    ck_assert_int_eq(strncmp(cpu.kernel, "Linux ", 6), 0);
    ck_assert_uint_eq(strspn(cpu.flags_hash, "0123456789abcdef"), HASH_TEXT_SIZE - 1);
}
END_TEST

START_TEST(threads_are_the_processors_allowed)
{
    cpu_set_t all, one;
    CPU_ZERO(&one);
    ck_assert_int_eq(sched_getaffinity(0, sizeof(all), &all), 0);
    for (int cpu = 0; CPU_COUNT(&one) == 0; cpu++)
        if (CPU_ISSET(cpu, &all) != 0)
            CPU_SET(cpu, &one);
    ck_assert_int_ge(cpu_threads(), 1);
    ck_assert_int_le(cpu_threads(), CPU_COUNT(&all));
    ck_assert_int_eq(sched_setaffinity(0, sizeof(one), &one), 0);
    ck_assert_int_eq(cpu_threads(), 1);
}
END_TEST

SUITE("cpu info", NULL, NULL, ONCE(cpu_is_described), ONCE(threads_are_the_processors_allowed))
