#include "base/base.h"

#include <fcntl.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#if defined(__x86_64__)
#define ARCHITECTURE AUDIT_ARCH_X86_64
#elif defined(__aarch64__)
#define ARCHITECTURE AUDIT_ARCH_AARCH64
#else
#define ARCHITECTURE 0
#endif

/* ---- which calls ----------------------------------------------------------------------------- */

#define LIST(...)                                                                                  \
    {                                                                                              \
        __VA_ARGS__                                                                                \
    }

/* Allowed whatever their arguments are.  Since Linux 5.11 the kernel keeps a bit for each call
 * whose answer depends on its number alone, and these do not run the filter.  Before that it runs
 * from its first row on: OpenMP's barriers make hundreds of calls of the first rows' kind in a
 * pass. */
static const int harmless[] =
    LIST(SYS_futex, SYS_sched_yield, SYS_clock_gettime, SYS_read, SYS_write, SYS_sendto,
         SYS_recvfrom, SYS_brk, SYS_clock_getres, SYS_clock_nanosleep, SYS_close, SYS_close_range,
         SYS_dup, SYS_dup3, SYS_exit, SYS_exit_group, SYS_faccessat, SYS_faccessat2, SYS_fstat,
         SYS_ftruncate, SYS_futex_waitv, SYS_get_mempolicy, SYS_getcpu, SYS_getcwd, SYS_getdents64,
         SYS_getegid, SYS_geteuid, SYS_getgid, SYS_getpgid, SYS_getpid, SYS_getppid, SYS_getrandom,
         SYS_getrusage, SYS_gettid, SYS_gettimeofday, SYS_getuid, SYS_lseek, SYS_madvise, SYS_mbind,
         SYS_mincore, SYS_mmap, SYS_mprotect, SYS_mremap, SYS_msync, SYS_munmap, SYS_nanosleep,
         SYS_newfstatat, SYS_pipe2, SYS_ppoll, SYS_pread64, SYS_preadv, SYS_pselect6, SYS_pwrite64,
         SYS_readlinkat, SYS_readv, SYS_restart_syscall, SYS_rseq, SYS_rt_sigaction,
         SYS_rt_sigpending, SYS_rt_sigprocmask, SYS_rt_sigreturn, SYS_rt_sigsuspend,
         SYS_rt_sigtimedwait, SYS_sched_getaffinity, SYS_set_mempolicy, SYS_set_robust_list,
         SYS_set_tid_address, SYS_sigaltstack, SYS_statx, SYS_sysinfo, SYS_times, SYS_uname,
         SYS_wait4, SYS_waitid, SYS_writev);

/* Calls that newer architectures do without. */
#ifdef SYS_open
static const int older[] =
    LIST(SYS_access, SYS_dup2, SYS_getpgrp, SYS_getrlimit, SYS_lstat, SYS_pause, SYS_pipe, SYS_poll,
         SYS_readlink, SYS_select, SYS_stat, SYS_time);
static const int removing[] = LIST(SYS_unlinkat, SYS_unlink);
#else
static const int older[] = LIST(SYS_ppoll);
static const int removing[] = LIST(SYS_unlinkat);
#endif

enum { OWN = -1 /* in the place of this process's number */, VALUES_MAX = 8 };
enum { NOT_TO_WRITE = 1, NONE_OF = 2 };

/* An argument's low or high word, of which the bits of `mask` must be one of the values, or none of
 * them.  A call is allowed if all of its rows hold. */
struct condition {
    int call, arg;
    bool high;
    unsigned how; /* NOT_TO_WRITE: holds where writing is allowed; NONE_OF */
    uint32_t mask;
    int count;
    int64_t values[VALUES_MAX];
};

#define VALUES(...)                                                                                \
    .count = sizeof((int64_t[]){__VA_ARGS__}) / sizeof(int64_t), .values = {__VA_ARGS__}
#define EVERY_BIT UINT32_MAX
#define CLONES                                                                                     \
    (CLONE_VM | CLONE_THREAD | CLONE_NEWNS | CLONE_NEWUTS | CLONE_NEWIPC | CLONE_NEWUSER |         \
     CLONE_NEWPID | CLONE_NEWNET | CLONE_NEWCGROUP)
#define CHANGES (O_ACCMODE | O_CREAT | O_TRUNC | (O_TMPFILE & ~O_DIRECTORY))

/* Rows of one call stand together. */
static const struct condition conditions[] = {
    {SYS_clone, 0, false, 0, CLONES, VALUES(CLONE_VM | CLONE_THREAD)},
    {SYS_fcntl, 1, false, 0, EVERY_BIT,
     VALUES(F_DUPFD, F_DUPFD_CLOEXEC, F_GETFD, F_SETFD, F_GETFL, F_SETFL)},
    {SYS_kill, 0, false, 0, EVERY_BIT, VALUES(OWN)},
    {SYS_kill, 1, false, NONE_OF, EVERY_BIT, VALUES(SIGNALS_OF_OTHERS)},
    {SYS_openat, 2, false, NOT_TO_WRITE, CHANGES, VALUES(O_RDONLY)},
    {SYS_prctl, 0, false, 0, EVERY_BIT, VALUES(PR_GET_NAME, PR_SET_NAME, PR_SET_VMA)},
    {SYS_prlimit64, 0, false, 0, EVERY_BIT, VALUES(0, OWN)},
    {SYS_prlimit64, 2, false, 0, EVERY_BIT, VALUES(0)}, /* limits are read, not set */
    {SYS_prlimit64, 2, true, 0, EVERY_BIT, VALUES(0)},
    {SYS_sched_setaffinity, 0, false, 0, EVERY_BIT, VALUES(0, OWN)},
    {SYS_tgkill, 0, false, 0, EVERY_BIT, VALUES(OWN)},
    {SYS_tgkill, 2, false, NONE_OF, EVERY_BIT, VALUES(SIGNALS_OF_OTHERS)},
#ifdef SYS_open
    {SYS_open, 1, false, NOT_TO_WRITE, CHANGES, VALUES(O_RDONLY)},
#endif
};

/* A C library takes "no such call" as a reason to do without a newer call, and "not permitted" as a
 * failure.  Of clone3() no filter sees the arguments. */
enum { NEWEST_KNOWN = SYS_futex_waitv };

/* ---- the filter ------------------------------------------------------------------------------ */

enum { LONGEST = 400 };

struct program {
    struct sock_filter steps[LONGEST];
    int count;
};

static struct sock_filter *add(struct program *p, uint16_t code, uint32_t value)
{
    p->steps[p->count] = (struct sock_filter)BPF_STMT(code, value);
    return &p->steps[p->count++];
}

static void load(struct program *p, size_t offset)
{
    add(p, BPF_LD | BPF_W | BPF_ABS, (uint32_t)offset);
}

static void answer(struct program *p, uint32_t what)
{
    add(p, BPF_RET | BPF_K, what);
}

static void refuse(struct program *p, int error)
{
    answer(p, SECCOMP_RET_ERRNO | ((uint32_t)error & SECCOMP_RET_DATA));
}

/* Steps over `yes` or `no` of the next steps. */
static void branch(struct program *p, uint16_t test, uint32_t value, int yes, int no)
{
    struct sock_filter *s = add(p, BPF_JMP | BPF_K | test, value);
    s->jt = (uint8_t)yes;
    s->jf = (uint8_t)no;
}

static void allow_calls(struct program *p, const int *calls, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        branch(p, BPF_JEQ, (uint32_t)calls[i], 0, 1);
        answer(p, SECCOMP_RET_ALLOW);
    }
}

/* Refuses the call unless the condition holds. */
static void demand(struct program *p, const struct condition *c)
{
    const bool none_of = (c->how & NONE_OF) != 0;
    load(p, offsetof(struct seccomp_data, args) + 8 * (size_t)c->arg +
                (c->high == (__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__) ? 4 : 0));
    add(p, BPF_ALU | BPF_AND | BPF_K, c->mask);
    for (int i = 0; i < c->count; i++) {
        int others = c->count - 1 - i;
        uint32_t value = c->values[i] == OWN ? (uint32_t)getpid() : (uint32_t)c->values[i];
        if (none_of)
            branch(p, BPF_JEQ, value, others, others == 0 ? 1 : 0);
        else
            branch(p, BPF_JEQ, value, others + 1, 0);
    }
    refuse(p, EPERM);
}

static void allow_on_conditions(struct program *p, bool writes)
{
    for (size_t i = 0; i < ARRAY_LEN(conditions);) {
        const int call = conditions[i].call, begin = p->count;
        branch(p, BPF_JEQ, (uint32_t)call, 0, 0);
        for (; i < ARRAY_LEN(conditions) && conditions[i].call == call; i++)
            if (!writes || (conditions[i].how & NOT_TO_WRITE) == 0)
                demand(p, &conditions[i]);
        answer(p, SECCOMP_RET_ALLOW);
        p->steps[begin].jf = (uint8_t)(p->count - begin - 1);
    }
}

bool filter_calls(bool writes)
{
    struct program p = {.count = 0};
    load(&p, offsetof(struct seccomp_data, arch));
    branch(&p, BPF_JEQ, ARCHITECTURE, 1, 0);
    refuse(&p, EPERM);
    load(&p, offsetof(struct seccomp_data, nr));
    allow_calls(&p, harmless, ARRAY_LEN(harmless));
    allow_calls(&p, older, ARRAY_LEN(older));
    allow_on_conditions(&p, writes);
    if (writes)
        allow_calls(&p, removing, ARRAY_LEN(removing));
    branch(&p, BPF_JEQ, SYS_clone3, 1, 0);
    branch(&p, BPF_JGT, NEWEST_KNOWN, 0, 1);
    refuse(&p, ENOSYS);
    refuse(&p, EPERM);
    const struct sock_fprog whole = {.len = (unsigned short)p.count, .filter = p.steps};
    /* Without this flag older kernels slow down all that the process computes, against attacks on
     * memory that a candidate may read anyway. */
    const unsigned flags = SECCOMP_FILTER_FLAG_SPEC_ALLOW;
    return ARCHITECTURE != 0 && syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, flags, &whole) == 0;
}
