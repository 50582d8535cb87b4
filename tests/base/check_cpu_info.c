#include "base/base.h"
#include "tests/suite.h"

#include <sched.h>
#include <string.h>
#include <sys/stat.h>

static struct status st; /* of the call that a test is about */

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

static void write_number(const char *file, const char *text)
{
    struct buf path;
    buf_init(&path);
    buf_addf(&path, "%s/%s", test_dir, file);
    OK(file_write(path.ptr, text, strlen(text), &st));
    buf_release(&path);
}

static void make_group(const char *group)
{
    struct buf path;
    buf_init(&path);
    buf_addf(&path, "%s/%s", test_dir, group);
    ck_assert_int_eq(mkdir(path.ptr, 0700), 0);
    buf_release(&path);
}

/* `pod` is above `pod/own`; each gets a limit, and uses some of it.  Pages that are idle count as
 * left. */
START_TEST(a_control_group_limits_memory)
{
    make_group("pod");
    make_group("pod/own");
    ck_assert_uint_eq(mem_group_bytes(test_dir, "/"), UINT64_MAX);
    ck_assert_uint_eq(mem_group_bytes(test_dir, "/pod/own"), UINT64_MAX);
    write_number("pod/memory.max", "max\n");
    write_number("pod/own/memory.max", "1000000\n");
    ck_assert_uint_eq(mem_group_bytes(test_dir, "/pod/own"), 1000000);
    write_number("pod/own/memory.current", "1000000\n");
    write_number("pod/own/memory.stat", "anon 5\nactive_file 7\ninactive_file 300000\nslab 9\n");
    ck_assert_uint_eq(mem_group_bytes(test_dir, "/pod/own"), 300000);
    ck_assert_uint_eq(mem_group_bytes(test_dir, "/pod"), UINT64_MAX);
    write_number("pod/memory.max", "400000\n");
    write_number("pod/memory.current", "200000\n");
    ck_assert_uint_eq(mem_group_bytes(test_dir, "/pod/own"), 200000);
    ck_assert_uint_eq(mem_group_bytes(test_dir, "/pod"), 200000);
    write_number("pod/memory.current", "500000\n"); /* the limit was lowered meanwhile */
    ck_assert_uint_eq(mem_group_bytes(test_dir, "/pod/own"), 0);
}
END_TEST

SUITE("cpu info", test_dir_setup, test_dir_teardown, ONCE(cpu_is_described),
      ONCE(threads_are_the_processors_allowed), ONCE(a_control_group_limits_memory))
