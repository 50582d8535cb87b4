/* What a candidate on a CPU may do besides computing. */
#include "tests/bench/fixture.h"

#include <grp.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>

/* Each is true where nothing keeps a candidate from it, as often as it is tried.  `path` is that of
 * a file outside the cache, at `other` there is none.  `p` is in turn its supervisor, the process
 * that searches and a stranger, all of the same user and copies of this suite, so that `word` is an
 * address in each.  None of them changes anything where it succeeds. */
static const struct attempt {
    const char *code;
    bool everywhere; /* it succeeds without a sandbox, whatever the system */
} attempts[] = {
    {"open(path, O_RDONLY) >= 0", true},
    {"open(path, O_WRONLY) >= 0", true},
    {"open(other, O_WRONLY | O_CREAT, 0600) >= 0 && unlink(other) == 0", true},
    {"truncate(path, 0) == 0", true},
    {"mkdir(other, 0700) == 0 && rmdir(other) == 0", true},
    {"link(path, other) == 0 && unlink(other) == 0", true},
    {"rename(path, other) == 0 && rename(other, path) == 0", true},
    {"chmod(path, 0600) == 0", true},
    {"fchmodat(AT_FDCWD, path, 0600, 0) == 0", true},
    {"chown(path, -1, -1) == 0", true},
    {"fchownat(AT_FDCWD, path, -1, -1, 0) == 0", true},
    {"utimensat(AT_FDCWD, path, NULL, 0) == 0", true},
    {"syscall(SYS_setxattr, path, \"user.a\", \"b\", 1, 0) == 0", false},
    {"syscall(SYS_removexattr, path, \"user.a\") == 0", false},

    {"system(\"exit 0\") == 0", true},
    {"(child = fork()) == 0 ? (_exit(0), 0) : child > 0 && waitpid(child, 0, 0) > 0", true},
    {"syscall(SYS_memfd_create, \"program\", 0) >= 0", true},
    {"syscall(SYS_unshare, 0x10000000 /* of users */) == 0", false},
    {"syscall(SYS_mount, \"none\", \"/\", \"tmpfs\", 0, 0) == 0", false},
    {"chroot(\"/\") == 0", false},
    {"syscall(SYS_io_uring_setup, 4, room) >= 0", false},
    {"syscall(SYS_bpf, 0, room, sizeof(room)) >= 0", false},
    {"syscall(SYS_perf_event_open, room, 0, -1, -1, 0) >= 0", false},
    {"syscall(SYS_userfaultfd, 1) >= 0", false},
    {"syscall(SYS_add_key, \"user\", \"fuseplan\", \"b\", 1, -3) >= 0", false},
    {"syscall(SYS_keyctl, 0, -3, 0) >= 0", false},
    {"(id = syscall(SYS_shmget, 0, 1, 0600)) >= 0 && syscall(SYS_shmctl, id, 0, 0) == 0", true},
    {"(id = syscall(SYS_semget, 0, 1, 0600)) >= 0 && syscall(SYS_semctl, id, 0, 0) == 0", true},
    {"(id = syscall(SYS_msgget, 0, 0600)) >= 0 && syscall(SYS_msgctl, id, 0, 0) == 0", true},
    {"syscall(SYS_mq_open, \"fuseplan\", O_RDONLY | O_CREAT, 0600, 0) >= 0 && "
     "syscall(SYS_mq_unlink, \"fuseplan\") == 0",
     false},

    {"socket(AF_UNIX, SOCK_STREAM, 0) >= 0", true},
    {"sendto(socket(AF_INET, SOCK_DGRAM, 0), \"x\", 1, 0, (struct sockaddr *)&to, sizeof(to)) == 1",
     true},

    {"kill(p, 0) == 0", true},
    {"syscall(SYS_tkill, p, 0) == 0", true},
    {"syscall(SYS_tgkill, p, p, 0) == 0", true},
    {"syscall(SYS_pidfd_open, p, 0) >= 0", true},
    {"fcntl(0, F_SETOWN, p) == 0", true},
    {"syscall(SYS_prlimit64, p, RLIMIT_CPU, 0, limit) == 0", true},
    {"setpriority(PRIO_PROCESS, p, getpriority(PRIO_PROCESS, p)) == 0", true},
    {"syscall(SYS_sched_getaffinity, p, sizeof(room), room) > 0 && "
     "syscall(SYS_sched_setaffinity, p, sizeof(room), room) == 0",
     true},
    {"syscall(SYS_sched_setscheduler, p, 0, none) == 0", true},
    {"syscall(SYS_sched_setparam, p, none) == 0", true},
    {"syscall(SYS_get_robust_list, p, room, room + 8) == 0", true},
    {"syscall(SYS_sched_getattr, p, room, 48, 0) == 0 && "
     "syscall(SYS_sched_setattr, p, room, 0) == 0",
     true},
    {"syscall(SYS_process_vm_readv, p, &here, 1, &there, 1, 0) > 0", false},
    {"syscall(SYS_process_vm_writev, p, &here, 1, &there, 1, 0) > 0", false},
    {"syscall(SYS_kcmp, getpid(), p, 1, 0, 0) >= 0", false},
    {"ptrace(PTRACE_SEIZE, p, 0, 0) == 0", false},
    {"syscall(SYS_migrate_pages, p, 1, none, none) >= 0", false},
    {"syscall(SYS_move_pages, p, 0, 0, 0, 0, 0) >= 0", false},
    {"syscall(SYS_ioprio_set, 1, p, 0) == 0", false},
    {"open(PROC_FILE(\"environ\"), O_RDONLY) >= 0", false},
    {"open(PROC_FILE(\"mem\"), O_RDWR) >= 0", false},

    /* a token in the environment of the process that searches, of which workers get a part */
    {"getenv(\"MY_TOKEN\") != NULL", false},
    {"read(open(\"/proc/self/environ\", O_RDONLY), text, sizeof(text)) > 0 && "
     "memmem(text, sizeof(text), \"MY_TOKEN\", 8) != NULL",
     false},

    /* what could end the worker as others do */
    {"syscall(SYS_prlimit64, 0, RLIMIT_CPU, 0, limit) == 0 && "
     "syscall(SYS_prlimit64, 0, RLIMIT_CPU, limit, 0) == 0",
     true},
    {"syscall(SYS_timer_create, 0, 0, room) == 0", true},
    {"prctl(PR_SET_PDEATHSIG, SIGKILL) == 0", true},
};

/* What would harm each of these processes, or end the worker as others do.  Only in a sandbox. */
static const char *const harms[] = {
    "syscall(SYS_prlimit64, p, RLIMIT_FSIZE, none, 0);",
    "syscall(SYS_prlimit64, p, RLIMIT_NOFILE, none, 0);",
    "syscall(SYS_prlimit64, p, RLIMIT_CPU, none, 0);",
    "setpriority(PRIO_PROCESS, p, 19);",
    "syscall(SYS_sched_setscheduler, p, 5 /* idle */, none);",
    "syscall(SYS_sched_setaffinity, p, sizeof(one), one);",
    "kill(p, SIGSTOP); syscall(SYS_tkill, p, SIGKILL); syscall(SYS_tgkill, p, p, SIGKILL);",
    "kill(p, SIGTERM); kill(p, SIGKILL);",
    "syscall(SYS_pidfd_send_signal, syscall(SYS_pidfd_open, p, 0), SIGKILL, 0, 0);",
    "fcntl(3, F_SETOWN, p); fcntl(3, 10 /* F_SETSIG */, SIGKILL); fcntl(3, F_SETFL, O_ASYNC);",
    "syscall(SYS_setrlimit, RLIMIT_CPU, none); syscall(SYS_prlimit64, 0, RLIMIT_CPU, none, 0);",
    "raise(SIGKILL); raise(SIGTERM); raise(SIGHUP); raise(SIGINT); raise(SIGXCPU);",
    "kill(getpid(), SIGKILL); kill(0, SIGKILL); kill(getpid(), SIGTERM);",
    "syscall(SYS_tkill, getpid(), SIGKILL); syscall(SYS_tgkill, getpid(), getpid(), SIGKILL);",
    "prctl(PR_SET_SECCOMP, 1); syscall(SYS_seccomp, 0, 0, 0);",
};

static volatile long word = 42;

/* A candidate that tries all of this in its first call.  It says what it could do, and ends with
 * the number of that; else it computes. */
static void plant(bool sandboxed, pid_t stranger)
{
    SCOPED_BUF text = BUF_INIT;
    buf_addf(&text,
             "{ const char *path = \"%s\", *other = \"%s\"; static int calls; int n = 0;"
             "const pid_t all[] = {getppid(), %ld, %ld};"
             "struct iovec there = {(void *)%#lx, sizeof(long)};",
             test_path("file"), test_path("other"), (long)getpid(), (long)stranger, (long)&word);
    buf_adds(&text, "struct sockaddr_in to = {.sin_family = AF_INET, .sin_port = 9,"
                    " .sin_addr = {htonl(INADDR_LOOPBACK)}};"
                    "static long room[64], limit[2], none[2], one[16] = {1}; pid_t child; int id;"
                    "long value; struct iovec here = {&value, sizeof(long)}; char name[64];\n"
                    "static char text[65536];"
                    "extern void *memmem(const void *, size_t, const void *, size_t);\n"
                    "#define PROC_FILE(of) (sprintf(name, \"/proc/%d/\" of, p), name)\n"
                    "for (int i = 0; i < 3 && calls == 0; i++) { const pid_t p = all[i];\n");
    for (size_t i = 0; i < ARRAY_LEN(attempts); i++)
        if (sandboxed || attempts[i].everywhere)
            buf_addf(&text, "if (%s) { n++; fprintf(stderr, \"%zu \"); }\n", attempts[i].code, i);
    buf_adds(&text, "}\nfor (int i = 0; i < 3 && calls == 0; i++) { const pid_t p = all[i];\n");
    for (size_t i = 0; i < ARRAY_LEN(harms) && sandboxed; i++)
        buf_addf(&text, "%s\n", harms[i]);
    buf_adds(&text, "(void)p; } calls = 1; if (n > 0) _exit(n); honest(a); }");
    write_text(test_path("faults/14_14.c"), text.ptr);
    write_text(test_path("file"), "");
}

static struct trial try_all(bool sandboxed, pid_t stranger)
{
    write_faulty_compiler(test_dir);
    if (sandboxed)
        unsetenv("FUSEPLAN_SANDBOX");
    setenv("MY_TOKEN", "secret", 1);
    plant(sandboxed, stranger);
    struct bench_options o = small_options(test_path("cache"));
    o.compiler = test_path("compiler");
    SCOPED_BY(bench_close_at) struct bench *b = small_bench(&o);
    return segment_trial(b, 14, 14);
}

static pid_t start_stranger(void)
{
    pid_t pid = fork();
    if (pid == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        for (;;)
            pause();
    }
    return pid;
}

/* What others can change of a process. */
struct state {
    struct rlimit limits[RLIM_NLIMITS];
    cpu_set_t cores;
    int nice, policy;
};

static struct state state_of(pid_t pid)
{
    struct state s;
    memset(&s, 0, sizeof(s));
    for (int i = 0; i < RLIM_NLIMITS; i++)
        ck_assert_int_eq(prlimit(pid, (__rlimit_resource_t)i, NULL, &s.limits[i]), 0);
    ck_assert_int_eq(sched_getaffinity(pid, sizeof(s.cores), &s.cores), 0);
    s.nice = getpriority(PRIO_PROCESS, (id_t)pid);
    s.policy = sched_getscheduler(pid);
    return s;
}

/* The rest of the test is of a user without rights, unless it is already. */
static void become_nobody(void)
{
    enum { NOBODY = 65534 };
    ck_assert_int_eq(chown(test_dir, NOBODY, NOBODY), 0);
    ck_assert(setgroups(0, NULL) == 0 && setgid(NOBODY) == 0 && setuid(NOBODY) == 0);
    prctl(PR_SET_DUMPABLE, 1); /* as it is for a program that this user starts */
}

TEST(it_is_tried_where_sigchld_was_ignored)
{
    unsigned usual = sandbox_try();
    signal(SIGCHLD, SIG_IGN);
    ck_assert_uint_eq(sandbox_try(), usual);
}

TEST_LOOP(candidate_only_computes, 0, 2)
{
    if (sandbox_try() != SANDBOX_ALL || (_i == 1 && geteuid() != 0))
        return; /* an older kernel, or a container */
    if (_i == 1)
        become_nobody();
    if (access(FUSEPLAN_WORKER, X_OK) != 0)
        return; /* this user cannot reach the build */
    pid_t stranger = start_stranger();
    struct state others = state_of(stranger), own = state_of(getpid());
    struct trial t = try_all(true, stranger);
    check_ok(&t);
    struct state others_now = state_of(stranger), own_now = state_of(getpid());
    ck_assert_mem_eq(&others, &others_now, sizeof(others));
    ck_assert_mem_eq(&own, &own_now, sizeof(own));
    ck_assert_int_eq(waitpid(stranger, NULL, WNOHANG | WUNTRACED), 0);
    kill(stranger, SIGKILL);
}

TEST(without_a_sandbox_it_does_all_else_too)
{
    char says[32];
    int sure = 0;
    for (size_t i = 0; i < ARRAY_LEN(attempts); i++)
        sure += 3 * attempts[i].everywhere;
    snprintf(says, sizeof(says), "exit status %d", sure);
    pid_t stranger = start_stranger();
    struct trial t = try_all(false, stranger);
    kill(stranger, SIGKILL);
    check_failed(&t, STATUS_LAUNCH, says);
}

SUITE("sandbox", test_dir_setup, test_dir_teardown)
