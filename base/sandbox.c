#include "base/base.h"

#include <fcntl.h>
#include <linux/capability.h>
#include <sched.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

/* ---- Landlock: files ----------------------------------------------------------------------------
 *
 * Stated here because the headers of older systems lack what newer kernels can do. */

struct ruleset {
    uint64_t files; /* what is denied unless a rule allows it */
};

struct beneath {
    uint64_t allowed;
    int32_t dir;
} __attribute__((packed));

enum { ASK_VERSION = 1, RULE_BENEATH = 1 };
enum { EXECUTE = 1 << 0, WRITE_FILE = 1 << 1, READ_FILE = 1 << 2, READ_DIR = 1 << 3 };
enum { TRUNCATE = 1 << 14 };

int sandbox_wanted(bool *wanted, struct status *st)
{
    const char *given = variable_value("FUSEPLAN_SANDBOX");
    *wanted = given == NULL;
    if (given == NULL || strcmp(given, "off") == 0)
        return 0;
    return status_set(st, STATUS_USAGE, "FUSEPLAN_SANDBOX: unknown word '%s'; expected off", given);
}

static int landlock_version(void)
{
    long version = syscall(SYS_landlock_create_ruleset, NULL, 0, ASK_VERSION);
    return version > 0 ? (int)version : 0;
}

/* All rights to files that a version knows: 13 at first, then to move files to other directories,
 * to truncate them, and to control devices. */
static uint64_t all_rights(int version)
{
    int count = 13 + (version >= 2) + (version >= 3) + (version >= 5);
    return (UINT64_C(1) << count) - 1;
}

/* What is not there needs no rule. */
static void allow(int ruleset, const char *path, uint64_t rights)
{
    struct stat info;
    struct beneath rule = {.allowed = rights, .dir = open(path, O_PATH | O_CLOEXEC)};
    if (rule.dir < 0 || fstat(rule.dir, &info) != 0)
        return;
    if (!S_ISDIR(info.st_mode))
        rule.allowed &= READ_FILE | WRITE_FILE | TRUNCATE;
    syscall(SYS_landlock_add_rule, ruleset, RULE_BENEATH, &rule, 0);
    close(rule.dir);
}

/* The directories of a list like that of LD_LIBRARY_PATH. */
static void allow_list(int ruleset, const char *list, uint64_t rights)
{
    char *copy = mem_strdup(list != NULL ? list : ""), *rest = copy;
    for (char *dir; (dir = strtok_r(rest, ":;", &rest)) != NULL;)
        allow(ruleset, dir, rights);
    free(copy);
}

static bool confine_files(const char *readable, const char *writable)
{
    /* Where libraries may be, and what says how busy the machine is. */
    static const char *const system_files[] = {
        "/usr",           "/lib",        "/lib32",           "/lib64", "/opt",
        "/nix",           "/gnu",        "/etc/ld.so.cache", "/proc",  "/sys/devices/system",
        "/sys/fs/cgroup", "/dev/urandom"};
    const uint64_t reading = READ_FILE | READ_DIR;
    int version = landlock_version();
    const struct ruleset denied = {.files = all_rights(version)};
    int ruleset =
        version > 0 ? (int)syscall(SYS_landlock_create_ruleset, &denied, sizeof(denied), 0) : -1;
    if (ruleset < 0)
        return false;
    for (size_t i = 0; i < ARRAY_LEN(system_files); i++)
        allow(ruleset, system_files[i], reading);
    allow_list(ruleset, getenv("LD_LIBRARY_PATH"), reading);
    allow(ruleset, "/dev/null", READ_FILE | WRITE_FILE);
    allow(ruleset, readable, reading);
    if (writable != NULL)
        allow(ruleset, writable, denied.files & ~(uint64_t)EXECUTE);
    bool confined = syscall(SYS_landlock_restrict_self, ruleset, 0) == 0;
    close(ruleset);
    return confined;
}

/* A worker of root's loses what only root may do; files of root's stay its own. */
static void drop_capabilities(void)
{
    struct __user_cap_header_struct header = {.version = _LINUX_CAPABILITY_VERSION_3};
    const struct __user_cap_data_struct none[_LINUX_CAPABILITY_U32S_3] = {{0}};
    syscall(SYS_capset, &header, none);
}

unsigned sandbox_enter(const char *readable, const char *writable)
{
    unsigned kept_from = 0;
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 && confine_files(readable, writable))
        kept_from |= SANDBOX_FILES;
    drop_capabilities();
    if (filter_calls(writable != NULL))
        kept_from |= SANDBOX_CALLS;
    return kept_from;
}

unsigned sandbox_try(void)
{
    int status = 0;
    child_keep_ends();
    pid_t child = fork();
    if (child == 0)
        _exit((int)sandbox_enter("/", NULL));
    if (child < 0 || waitpid(child, &status, 0) != child || !WIFEXITED(status))
        return 0;
    return (unsigned)WEXITSTATUS(status);
}
