#include "tests/stress/soak.h"

#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

const char *lane_path(const struct lane *l, const char *name)
{
    static char paths[4][512];
    static int turn;
    char *path = paths[turn++ % 4];
    snprintf(path, sizeof(paths[0]), "%s/%s", l->dir, name);
    return path;
}

static void make_dir(const char *path)
{
    struct status st = STATUS_INIT;
    if (file_make_dirs(path, &st) != 0)
        give_up("%s", st.message);
}

/* What other suites have compiled.  Links, not copies: a lane may remove them, never
 * change them. */
static void link_binaries(struct lane *l, const char *from)
{
    struct names names;
    struct status st = STATUS_INIT;
    l->shares_binaries = true;
    make_dir(lane_path(l, "cache/binaries"));
    if (directory_list(from, &names, &st) != 0)
        give_up("%s", st.message);
    for (int i = 0; i < names.count; i++) {
        struct buf old, new;
        buf_init(&old);
        buf_init(&new);
        buf_addf(&old, "%s/%s", from, names.items[i]);
        buf_addf(&new, "%s/%s", lane_path(l, "cache/binaries"), names.items[i]);
        if (link(old.ptr, new.ptr) != 0)
            l->shares_binaries = false; /* another file system: then it compiles its own */
        buf_release(&old);
        buf_release(&new);
    }
    names_release(&names);
}

void lane_init(struct lane *l, const char *program, const char *root, const char *name)
{
    struct buf dir;
    buf_init(&dir);
    buf_addf(&dir, "%s/%s", root, name);
    *l = (struct lane){.program = program, .name = name, .dir = buf_detach(&dir)};
    make_dir(lane_path(l, "cache"));
    make_dir(lane_path(l, "tmp"));
    make_dir(lane_path(l, "locks"));
    const char *binaries = getenv("FUSEPLAN_TEST_BINARIES");
    if (binaries != NULL)
        link_binaries(l, binaries);
}

void lane_release(struct lane *l)
{
    free(l->dir);
    free(l->compiler);
    *l = (struct lane){0};
}

void lane_touch_binaries(const struct lane *l, bool spoil, struct rng *r)
{
    enum { ONE_IN = 12 };
    struct names names;
    struct status st = STATUS_INIT;
    if (directory_list(lane_path(l, "cache/binaries"), &names, &st) != 0)
        return;
    for (int i = 0; i < names.count; i++) {
        struct buf path;
        buf_init(&path);
        buf_addf(&path, "%s/%s", lane_path(l, "cache/binaries"), names.items[i]);
        if (rng_below(r, ONE_IN) == 0 && (!spoil || !file_cut_short(path.ptr)))
            unlink(path.ptr);
        buf_release(&path);
    }
    names_release(&names);
}

static void write_text(const char *path, const char *text)
{
    struct status st = STATUS_INIT;
    if (file_write(path, text, strlen(text), &st) != 0)
        give_up("%s", st.message);
}

/* A flag's file lets the candidate fail once.  Who kills compilers may kill sed: then the compiler
 * is killed too, and does not build the segment without its fault. */
static const char faulty_compiler[] =
    "#!/bin/sh\n"
    "dir=${0%/*}\n"
    "for arg; do case $arg in *.c) src=$arg ;; esac; done\n"
    "name=$([ -z \"$src\" ] || sed -n 's/^void segment_\\([a-z0-9_]*\\)(.*/\\1/p' \"$src\") || "
    "kill -9 $$\n"
    "case $name in\n"
    "08_09*) fault='abort();' ;;\n"
    "11_12*) fault='honest(a); a->tensor[13][3] *= 1.01f;' ;;\n"
    "06_07*) fault='no_such_variable = 1;' ;;\n"
    "10_11*) fault=\"if (unlink(\\\"$dir/crash\\\") == 0) abort(); honest(a);\" ;;\n"
    "09_10*) fault=\"if (unlink(\\\"$dir/daemon\\\") == 0 && fork() == 0) { setsid(); if (fork() "
    "== 0)\"\n"
    "    fault=\"$fault for (;;) pause(); _exit(0); } honest(a);\" ;;\n"
    "12_13*) fault=\"if (unlink(\\\"$dir/hang\\\") == 0) for (;;) pause(); honest(a);\" ;;\n"
    "*) exec cc \"$@\" ;;\n"
    "esac\n"
    "sed \"s/^void segment_$name(/static void honest(/\" \"$src\" >\"$src.new\" &&\n"
    "    printf '#include <unistd.h>\\nvoid segment_%s(const struct fp_args *a) { %s }\\n' \\\n"
    "        \"$name\" \"$fault\" >>\"$src.new\" && mv \"$src.new\" \"$src\" && exec cc \"$@\"\n";

void lane_plant(struct lane *l)
{
    free(l->compiler);
    l->compiler = mem_strdup(lane_path(l, "compiler"));
    write_text(l->compiler, faulty_compiler);
    if (chmod(l->compiler, 0755) != 0)
        give_up("'%s': %s", l->compiler, strerror(errno));
}

static _Noreturn void run(const struct lane *l, char *arguments, struct lack lack)
{
    enum { WORDS = 64 };
    char program[] = "fuseplan", *argv[WORDS] = {program}, *rest = arguments;
    for (int i = 1; i < WORDS - 1 && (argv[i] = strtok_r(rest, " ", &rest)) != NULL; i++)
        ;
    int log = open(lane_path(l, "log"), O_WRONLY | O_CREAT | O_TRUNC, 0600);
    if (log < 0 || dup2(log, STDOUT_FILENO) < 0 || dup2(log, STDERR_FILENO) < 0)
        _exit(99);
    close(log);
    struct buf compiler;
    buf_init(&compiler);
    buf_adds(&compiler, l->compiler != NULL ? l->compiler : "cc");
    if (l->compiler != NULL || !l->shares_binaries)
        buf_adds(&compiler, " -O0 -g0"); /* soon done */
    setenv("FUSEPLAN_DB", lane_path(l, "../results.db"), 1);
    setenv("FUSEPLAN_CACHE", lane_path(l, "cache"), 1);
    setenv("FUSEPLAN_LOCK_DIR", lane_path(l, "locks"), 1);
    if (l->compiler != NULL)
        setenv("FUSEPLAN_SANDBOX", "off", 1); /* faulty candidates remove flags */
    setenv("TMPDIR", lane_path(l, "tmp"), 1);
    setenv("OMP_WAIT_POLICY", "passive", 1);
    setenv("FUSEPLAN_CC", compiler.ptr, 1);
    struct rlimit limit;
    if (lack.resource >= 0 && getrlimit((__rlimit_resource_t)lack.resource, &limit) == 0) {
        limit.rlim_cur = lack.amount;
        if (setrlimit((__rlimit_resource_t)lack.resource, &limit) != 0)
            _exit(99);
    }
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    execv(l->program, argv);
    _exit(99);
}

void lane_start(struct lane *l, const char *arguments, struct lack lack)
{
    char *copy = mem_strdup(arguments);
    unlink(lane_path(l, "log"));
    l->pid = fork();
    if (l->pid == 0)
        run(l, copy, lack);
    free(copy);
    if (l->pid < 0)
        give_up("fork: %s", strerror(errno));
    l->started_s = clock_seconds();
    l->runs++;
}

bool lane_ended(struct lane *l)
{
    if (l->pid != 0 && waitpid(l->pid, &l->status, WNOHANG) == l->pid)
        l->pid = 0;
    return l->pid == 0;
}

void lane_signal(const struct lane *l, int number)
{
    if (l->pid != 0)
        kill(l->pid, number);
}

struct task lane_draw(const struct lane *l, bool worker, struct rng *r)
{
    struct task drawn = {0};
    struct tasks all = {0};
    uint32_t found = 0;
    if (l->pid != 0)
        tasks_below(l->pid, &all);
    for (int i = 0; i < all.count; i++)
        if (strcmp(all.items[i].name, "fuseplan") != 0 && /* a supervisor */
            (strcmp(all.items[i].name, "fuseplan-worker") == 0) == worker &&
            rng_below(r, ++found) == 0)
            drawn = all.items[i];
    tasks_release(&all);
    return drawn;
}

const char *lane_said(const struct lane *l)
{
    static char line[256];
    struct buf text;
    struct status ignored = STATUS_INIT;
    buf_init(&text);
    file_read(lane_path(l, "log"), 0, &text, &ignored);
    while (text.len > 0 && text.ptr[text.len - 1] == '\n')
        text.ptr[--text.len] = '\0';
    const char *last = strrchr(text.ptr, '\n');
    snprintf(line, sizeof(line), "%s", last != NULL ? last + 1 : text.ptr);
    buf_release(&text);
    return line;
}

bool lane_began(const struct lane *l)
{
    struct buf text;
    struct status ignored = STATUS_INIT;
    buf_init(&text);
    file_read(lane_path(l, "events"), 0, &text, &ignored);
    const bool began = strstr(text.ptr, "\"event\":\"step\"") != NULL;
    buf_release(&text);
    return began;
}

int lane_files(const struct lane *l)
{
    return files_below(lane_path(l, "tmp")) + files_below(lane_path(l, "cache/temporary"));
}

/* Whether a process is below this one but neither that of a lane nor below it. */
static bool left_over(pid_t pid, const struct lane *other, const struct tasks *of_other)
{
    bool known = other != NULL && pid == other->pid;
    for (int i = 0; i < of_other->count && !known; i++)
        known = pid == of_other->items[i].pid;
    return !known;
}

void tasks_expect_end(struct account *a, const struct lane *other, const char *after)
{
    const double start = clock_seconds(), limit_s = 2; /* 0.5 s was the longest on 2 busy cores */
    struct patience waited;
    patience_begin(&waited, start);
    for (bool any = true; any; poll(NULL, 0, 5)) {
        struct tasks left, of_other = {0};
        const bool late = patience_spent(&waited, clock_seconds()) > limit_s;
        any = false;
        while (waitpid(-1, NULL, WNOHANG) > 0)
            ;
        tasks_below(getpid(), &left);
        if (other != NULL)
            tasks_below(other->pid, &of_other);
        for (int i = 0; i < left.count; i++) {
            if (!left_over(left.items[i].pid, other, &of_other))
                continue;
            any = true;
            if (late) {
                complain(a, "'%s' still runs %g s after '%s'", left.items[i].name, limit_s, after);
                kill(left.items[i].pid, SIGKILL);
            }
        }
        tasks_release(&left);
        tasks_release(&of_other);
    }
    a->longest_end_s = fmax(a->longest_end_s, clock_seconds() - start);
}
