/* faults FUSEPLAN LIBRARY SEED COMMAND=FIRST,DRAWN...: runs commands in each of which one call of
 * the system fails: of each kind of call the first FIRST, and DRAWN that a seed gives.  LIBRARY is
 * inject.c's; FAULTS_KIND names the only kind, if it is set.  A command survives a fault if it ends
 * by itself, with success or with exit status 1 and a message; if it leaves no descriptor open and
 * no file behind; and if its database is whole and holds no failure, as the candidates are fine. */
#include "db/db.h"
#include "tests/stress/inject.h"

#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

enum { LIMIT_S = 120, WORDS_MAX = 32, FAILURES_MAX = 40 };

#define WORKLOAD                                                                                   \
    "--target", "cpu", "-b", "1", "-s", "8", "-m", "causal", "-H", "1", "-W", "4", "-L", "1"

/* What runs, from which database, with which cache.  `compile` is bench with an empty one. */
static const struct command {
    const char *name;
    const char *before; /* the database that it begins with; null: none */
    bool warm;          /* everything is compiled */
    bool worker;        /* it starts one, whose calls fail too */
    const char *words[WORDS_MAX];
} commands[] = {
    {"query", "full.db", true, false, {"query", WORKLOAD}},
    {"import", NULL, true, false, {"db", "import", "full.txt"}},
    {"bench", NULL, true, true, {"bench", "0", WORKLOAD, "--baseline", "none"}},
    {"compile", NULL, false, true, {"bench", "0", WORKLOAD, "--baseline", "none"}},
    {"search",
     NULL,
     true,
     true,
     {"search", WORKLOAD, "--baseline", "43690,41115", "--budget", "2", "--strategy", "random"}},
};

static const char *const kind_names[] = {
#define X(kind, error) #kind,
    INJECT_KINDS(X)
#undef X
};

static const struct command *command_named(const char *name)
{
    for (size_t i = 0; i < ARRAY_LEN(commands); i++)
        if (strcmp(commands[i].name, name) == 0)
            return &commands[i];
    return NULL;
}

static const char *fuseplan, *library;
static struct inject *shared; /* the file "inject" */
static int runs, survived, failures;

/* ---- running --------------------------------------------------------------------------------- */

static _Noreturn void become(const char *const *words, bool preload)
{
    const char *argv[WORDS_MAX + 2] = {"fuseplan"};
    for (int i = 0; words[i] != NULL; i++)
        argv[i + 1] = words[i];
    int out = open("out", O_WRONLY | O_CREAT | O_TRUNC, 0600);
    int err = open("err", O_WRONLY | O_CREAT | O_TRUNC, 0600);
    dup2(open("/dev/null", O_RDONLY), 0);
    dup2(out, 1);
    dup2(err, 2);
    for (int fd = 3; fd < 64; fd++)
        close(fd);
    setpgid(0, 0);
    if (preload) {
        setenv("LD_PRELOAD", library, 1);
        setenv("FUSEPLAN_PASS", "LD_PRELOAD", 1); /* to the worker too */
    }
    execv(fuseplan, (char *const *)(uintptr_t)argv);
    _exit(127);
}

/* How a command ended, as of waitpid(); -1: it did not within the limit. */
static int run(const char *const *words, bool preload)
{
    int status;
    pid_t pid = fork();
    if (pid == 0)
        become(words, preload);
    for (double begin = clock_seconds(); waitpid(pid, &status, WNOHANG) == 0; usleep(1000))
        if (clock_seconds() - begin > LIMIT_S) {
            kill(-pid, SIGKILL);
            waitpid(pid, &status, 0);
            return -1;
        }
    return status;
}

static void must(bool holds, const char *what)
{
    struct buf err;
    struct status st = STATUS_INIT;
    if (holds)
        return;
    buf_init(&err);
    file_read("err", 0, &err, &st);
    fprintf(stderr, "faults: %s: %s%s\n", what, strerror(errno), err.ptr);
    exit(2);
}

static void copy_file(const char *from, const char *to)
{
    struct buf bytes;
    struct status st = STATUS_INIT;
    buf_init(&bytes);
    must(file_read(from, 0, &bytes, &st) == 0 && file_write(to, bytes.ptr, bytes.len, &st) == 0,
         "cannot copy a file");
    buf_release(&bytes);
}

static void remove_all(const char *path)
{
    struct status st = STATUS_INIT;
    must(file_remove_all(path, &st) == 0, "cannot remove a directory");
}

/* "work" is a directory with nothing but the database, and "cache" holds nothing unless warm. */
static void set_up(const struct command *c)
{
    struct status st = STATUS_INIT;
    remove_all("work");
    must(file_make_dirs("work", &st) == 0, "cannot make a directory");
    if (c->before != NULL)
        copy_file(c->before, "work/t.db");
    if (!c->warm)
        remove_all("cold");
    setenv("FUSEPLAN_CACHE", c->warm ? "cache" : "cold", 1);
}

static void count_calls(const struct command *c, const char *program, int kind, int number)
{
    memset(shared, 0, sizeof(*shared));
    snprintf(shared->program, sizeof(shared->program), "%s", program);
    shared->kind = kind;
    shared->number = number;
    set_up(c);
}

/* ---- what must hold after a fault ------------------------------------------------------------ */

static int count_failed(void *ctx, const struct db_trial *t)
{
    *(int *)ctx += t->status == TRIAL_FAILED;
    return 0;
}

static void count_listed(void *ctx, const struct db_listed *l)
{
    ((int64_t *)ctx)[0] = l->study;
}

static void keep_problem(void *ctx, const char *problem)
{
    buf_addf(ctx, "%s; ", problem);
}

/* Appends what is wrong with the database; a command may have made none. */
static void check_database(struct buf *wrong)
{
    struct db *db;
    int problems = 0, failed = 0;
    int64_t study = 0;
    struct status st = STATUS_INIT;
    if (db_open("work/t.db", DB_READ, &db, &st) != 0) {
        if (st.code != STATUS_NOT_FOUND)
            buf_addf(wrong, "the database does not open: %s; ", st.message);
        return;
    }
    if (db_check(db, keep_problem, wrong, &problems, &st) != 0 ||
        db_list(db, count_listed, &study, &st) != 0)
        buf_addf(wrong, "the database cannot be read: %s; ", st.message);
    for (int kind = DB_TRIAL_SEGMENT; kind <= DB_TRIAL_FINAL && study != 0; kind++)
        db_trials(db, study, (enum db_trial_kind)kind, count_failed, &failed, &st);
    if (failed > 0)
        buf_addf(wrong, "%d failures are stored of candidates that are fine; ", failed);
    db_close(db);
}

static void check_left(const char *dir, const char *ours, struct buf *wrong)
{
    struct names names = {0};
    struct status st = STATUS_INIT;
    directory_list(dir, &names, &st);
    for (int i = 0; i < names.count; i++)
        if (ours == NULL || strncmp(names.items[i], ours, strlen(ours)) != 0)
            buf_addf(wrong, "'%s/%s' is left; ", dir, names.items[i]);
    names_release(&names);
}

static void check_end(const struct command *c, int status, struct buf *wrong)
{
    struct buf err;
    struct status st = STATUS_INIT;
    buf_init(&err);
    file_read("err", 0, &err, &st);
    bool out_of_memory = strstr(err.ptr, "out of memory") != NULL;
    if (status == -1)
        buf_addf(wrong, "it did not end within %d s; ", LIMIT_S);
    else if (WIFSIGNALED(status))
        buf_addf(wrong, "signal %d ended it; ", WTERMSIG(status));
    else if (WEXITSTATUS(status) != 0 && WEXITSTATUS(status) != 1)
        buf_addf(wrong, "exit status %d; ", WEXITSTATUS(status));
    else if (WEXITSTATUS(status) == 1 && strstr(err.ptr, "fuseplan") == NULL &&
             strstr(err.ptr, "loading shared libraries") == NULL)
        buf_adds(wrong, "exit status 1 without a message; ");
    if (shared->exited != 0 && shared->left_open > 0)
        buf_addf(wrong, "%d descriptors are left open; ", shared->left_open);
    if (!out_of_memory)
        check_left(c->warm ? "cache/temporary" : "cold/temporary", NULL, wrong);
    check_left("tmp", NULL, wrong);
    check_left("work", "t.db", wrong);
    buf_release(&err);
}

/* ---- one fault ------------------------------------------------------------------------------- */

/* False where the command makes fewer such calls. */
static bool run_fault(const struct command *c, const char *program, int kind, int number)
{
    struct buf wrong;
    buf_init(&wrong);
    count_calls(c, program, kind, number);
    int status = run(c->words, true);
    bool fired = shared->fired != 0;
    check_end(c, status, &wrong);
    check_database(&wrong);
    runs += fired;
    survived += fired && wrong.len == 0;
    if (wrong.len > 0) {
        printf("%s: %s call %d of %s fails: %s\n", c->name, kind_names[kind], number, program,
               wrong.ptr);
        fflush(stdout);
        failures++;
    }
    buf_release(&wrong);
    return fired;
}

/* How many calls of a kind fail: the first ones, and some that a seed draws among the others. */
struct share {
    int first, drawn;
};

static void run_kind(const struct command *c, const char *program, int kind, int calls,
                     struct share share, struct rng *rng)
{
    int before = runs, fine = survived, most = calls < share.first ? calls : share.first;
    for (int n = 1; n <= most && failures < FAILURES_MAX; n++)
        run_fault(c, program, kind, n);
    for (int i = 0; i < share.drawn && calls > most && failures < FAILURES_MAX; i++)
        run_fault(c, program, kind, 1 + most + (int)rng_below(rng, (uint32_t)(calls - most)));
    printf("%-7s %-16s %-12s %7d calls %6d faults %6d survived\n", c->name, program,
           kind_names[kind], calls, runs - before, survived - fine);
    fflush(stdout);
}

/* only: a kind; null: all. */
static void run_program(const struct command *c, const char *program, const char *only,
                        struct share share, struct rng *rng)
{
    int calls[INJECT_KIND_COUNT], before = runs;
    count_calls(c, program, 0, 0);
    must(run(c->words, true) == 0, "the command fails without a fault");
    for (int kind = 0; kind < INJECT_KIND_COUNT; kind++)
        calls[kind] = shared->calls[kind];
    for (int kind = 0; kind < INJECT_KIND_COUNT; kind++)
        if (calls[kind] > 0 && (only == NULL || strcmp(only, kind_names[kind]) == 0))
            run_kind(c, program, kind, calls[kind], share, rng);
    must(runs > before || only != NULL || share.first + share.drawn == 0,
         "no call was made to fail");
}

/* ---- all of them ----------------------------------------------------------------------------- */

static const char dir_template[] = "/tmp/fuseplan-faults-XXXXXX";
static char dir[sizeof(dir_template)];

static void make_inject_file(void)
{
    int fd = open("inject", O_RDWR | O_CREAT, 0600);
    must(fd >= 0 && ftruncate(fd, sizeof(*shared)) == 0, "cannot make a file");
    shared = mmap(NULL, sizeof(*shared), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    must(shared != MAP_FAILED, "cannot map a file");
    close(fd);
}

/* A directory of its own, a cache in which everything is compiled, a database and its text. */
static void begin(void)
{
    static const char *const export[] = {"db", "export", "-o", "full.txt", NULL};
    const char *binaries = getenv("FUSEPLAN_TEST_BINARIES");
    char path[4096];
    struct status st = STATUS_INIT;
    memcpy(dir, dir_template, sizeof(dir));
    must(mkdtemp(dir) != NULL && chdir(dir) == 0 && file_make_dirs("tmp", &st) == 0 &&
             file_make_dirs("cache", &st) == 0,
         "cannot make a directory");
    if (binaries != NULL && file_make_dirs(binaries, &st) == 0)
        must(symlink(binaries, "cache/binaries") == 0, "cannot make a link");
    make_inject_file();
    snprintf(path, sizeof(path), "%s/inject", dir);
    setenv("FUSEPLAN_INJECT", path, 1);
    setenv("FUSEPLAN_DB", "work/t.db", 1);
    setenv("TMPDIR", "tmp", 1);
    setenv("HOME", dir, 1);
    const struct command *bench = command_named("bench");
    count_calls(bench, "none", 0, 0);
    must(run(bench->words, true) == 0, "bench fails without a fault");
    must(run(export, false) == 0, "the export fails without a fault");
    copy_file("work/t.db", "full.db");
}

static bool is_kind(const char *name)
{
    for (int kind = 0; kind < INJECT_KIND_COUNT; kind++)
        if (strcmp(name, kind_names[kind]) == 0)
            return true;
    return false;
}

/* Reads "COMMAND=FIRST,DRAWN". */
static const struct command *read_share(const char *text, struct share *out)
{
    char name[16];
    const struct command *c = sscanf(text, "%15[a-z]=%d,%d", name, &out->first, &out->drawn) == 3
                                  ? command_named(name)
                                  : NULL;
    if (c == NULL) {
        fprintf(stderr, "faults: '%s' is no COMMAND=FIRST,DRAWN\n", text);
        exit(2);
    }
    return c;
}

int main(int argc, char **argv)
{
    enum { OTHERS = 4 }; /* words before the commands */
    const char *only = getenv("FAULTS_KIND");
    if (argc <= OTHERS)
        return fprintf(stderr, "usage: faults FUSEPLAN LIBRARY SEED COMMAND=FIRST,DRAWN...\n"), 2;
    if (only != NULL && !is_kind(only))
        return fprintf(stderr, "faults: FAULTS_KIND is '%s', which is no kind of call\n", only), 2;
    fuseplan = argv[1];
    library = argv[2];
    struct rng rng = {.state = strtoull(argv[3], NULL, 10)};
    begin();
    for (int i = OTHERS; i < argc; i++) {
        struct share share;
        const struct command *c = read_share(argv[i], &share);
        count_calls(c, "none", 0, 0);
        must(run(c->words, true) == 0, "a command fails without a fault");
        run_program(c, "fuseplan", only, share, &rng);
        if (c->worker)
            run_program(c, "fuseplan-worker", only, share, &rng);
    }
    printf("%d faults, %d survived\n", runs, survived);
    must(chdir("/") == 0, "cannot leave the directory");
    remove_all(dir);
    return failures > 0;
}
