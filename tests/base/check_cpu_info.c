#include "base/base.h"
#include "base/threads.h"
#include "tests/suite.h"

TEST(cpu_is_described)
{
    struct cpu_info cpu;
    cpu_info_read(&cpu);
    ck_assert_int_gt((int)strlen(cpu.model), 0);
    ck_assert_int_gt((int)strlen(cpu.extension), 0);
    ck_assert_int_eq(strncmp(cpu.kernel, "Linux ", 6), 0);
    ck_assert_uint_eq(strspn(cpu.flags_hash, "0123456789abcdef"), HASH_TEXT_SIZE - 1);
}

TEST(threads_are_the_processors_allowed)
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

/* Each version of control groups: what /proc/self/cgroup says, where the group is, and how its
 * files are named. */
static const struct {
    const char *list, *list_above, *dir, *limit, *used, *idle, *endless;
} versions[] = {
    {"0::/pod/own\n", "0::/pod\n", "pod/own", "memory.max", "memory.current", "inactive_file",
     "max"},
    {"4:memory:/pod/own\n3:cpu:/\n0::/\n", "4:memory:/pod\n0::/\n", "memory/pod/own",
     "memory.limit_in_bytes", "memory.usage_in_bytes", "total_inactive_file",
     "9223372036854771712"},
};

static void set_memory(int version, bool above, const char *file, const char *text)
{
    char path[128];
    size_t len = strlen(versions[version].dir) - (above ? strlen("/own") : 0);
    snprintf(path, sizeof(path), "%.*s/%s", (int)len, versions[version].dir, file);
    write_text(test_path(path), text);
}

static uint64_t memory_left(int version, bool above)
{
    write_text(test_path("list"), above ? versions[version].list_above : versions[version].list);
    return mem_group_bytes(test_path("list"), test_dir);
}

/* `pod` is above `pod/own`; each gets a limit, and uses some of it.  Pages that are idle count as
 * left. */
TEST_LOOP(a_control_group_limits_memory, 0, ARRAY_LEN(versions))
{
    const char *limit = versions[_i].limit, *used = versions[_i].used;
    char idle[64];
    OK(file_make_dirs(test_path(versions[_i].dir), &st));
    ck_assert_uint_eq(memory_left(_i, true), UINT64_MAX);
    ck_assert_uint_eq(memory_left(_i, false), UINT64_MAX);
    set_memory(_i, true, limit, versions[_i].endless);
    set_memory(_i, false, limit, "1000000\n");
    ck_assert_uint_eq(memory_left(_i, false), 1000000);
    set_memory(_i, false, used, "1000000\n");
    snprintf(idle, sizeof(idle), "anon 5\nactive_file 7\n%s 300000\nslab 9\n", versions[_i].idle);
    set_memory(_i, false, "memory.stat", idle);
    ck_assert_uint_eq(memory_left(_i, false), 300000);
    ck_assert_uint_eq(memory_left(_i, true), UINT64_MAX);
    set_memory(_i, true, limit, "400000\n");
    set_memory(_i, true, used, "200000\n");
    ck_assert_uint_eq(memory_left(_i, false), 200000);
    ck_assert_uint_eq(memory_left(_i, true), 200000);
    set_memory(_i, true, used, "500000\n"); /* the limit was lowered meanwhile */
    ck_assert_uint_eq(memory_left(_i, false), 0);
}

/* What /proc/self/cgroup says, files of groups, and the quota in cores; 0: none. */
static const struct {
    const char *list, *files[3][2];
    double cores;
} quotas[] = {
    {"0::/\n", {{NULL}}, 0},
    {"0::/\n", {{"cpu.max", "150000 100000\n"}}, 1.5},
    {"0::/pod/own\n", {{"pod/own/cpu.max", "max 100000\n"}}, 0},
    {"0::/pod/own\n",
     {{"pod/own/cpu.max", "300000 100000\n"}, {"pod/cpu.max", "100000 50000\n"}},
     2},
    {"0::/not/seen/here\n",
     {{"cpu.max", "50000 100000\n"}},
     0.5}, /* a container's own is the root */
    {"2:cpu,cpuacct:/pod/own\n0::/init\n",
     {{"cpu/pod/own/cpu.cfs_quota_us", "250000\n"}, {"cpu/pod/own/cpu.cfs_period_us", "100000\n"}},
     2.5},
    {"3:cpuset:/\n2:cpuacct,cpu:/pod/own\n",
     {{"cpu/pod/own/cpu.cfs_quota_us", "-1\n"}, {"cpu/pod/own/cpu.cfs_period_us", "100000\n"}},
     0},
    {"1:cpu:/not/seen/here\n",
     {{"cpu/cpu.cfs_quota_us", "300000\n"}, {"cpu/cpu.cfs_period_us", "100000\n"}},
     3},
    {"2:cpuacct:/pod/own\n", {{"cpu/cpu.cfs_quota_us", "1\n"}}, 0}, /* another controller */
    {"nonsense\n::\n\n", {{NULL}}, 0},
};

TEST_LOOP(a_control_group_grants_cores, 0, ARRAY_LEN(quotas))
{
    OK(file_make_dirs(test_path("pod/own"), &st));
    OK(file_make_dirs(test_path("cpu/pod/own"), &st));
    write_text(test_path("list"), quotas[_i].list);
    for (size_t i = 0; i < ARRAY_LEN(quotas[_i].files) && quotas[_i].files[i][0] != NULL; i++)
        write_text(test_path(quotas[_i].files[i][0]), quotas[_i].files[i][1]);
    ck_assert_double_eq(fp_group_quota(fp_group_of(test_path("list"), test_dir, "cpu")),
                        quotas[_i].cores);
}

SUITE("cpu info", test_dir_setup, test_dir_teardown)
