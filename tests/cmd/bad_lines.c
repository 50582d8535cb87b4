/* bad_lines FUSEPLAN KNOWN_DB SEED FIRST COUNT: runs lines FIRST..FIRST+COUNT-1 of the bad command
 * lines that a seed gives.  Each must end within a time, by itself, with an exit status of the
 * contract, and say why if it fails: lines of UTF-8 without control characters, the last of which
 * begins with the program's name.  No compiler is on PATH, so that nothing is measured. */
#include "base/base.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

enum {
    WORDS_MAX = 20,
    LINE_MAX_WORDS = 28,
    LIMIT_S = 60,
    SAID_MAX = 1 << 16,
    FILE_BYTES_MAX = 16 << 20
};

static const char *const command_names[] = {
    "translate", "mask",    "generate", "export", "bench",  "search", "query",      "explain",
    "train",     "predict", "replay",   "db",     "doctor", "help",   "completion", "report"};

/* clang-format off */
static const char *const options[] = {
    "-b", "--batch", "-s", "--seq-len", "-m", "--mask", "-H", "--heads", "-W", "--head-size",
    "-L", "--layers", "--ffn", "--eps", "-t", "--dtype", "--lengths", "--avg-seq-len", "--target",
    "--init", "--preset", "--segments", "--npy", "--svg", "-o", "--output", "--baseline",
    "--dump", "--fail-above", "--space", "--budget", "--time-limit", "--rigor",
    "--strategy", "--data", "--name", "--quantile", "--seed", "--compiler",
    "--arch", "-j", "--jobs", "--db", "--format", "--top", "--events", "--before",
    "--handwritten", "-q", "--quiet", "-v", "--verbose", "-h", "--help", "--force", "--again",
    "--dry-run", "--he", "--hepl", "--version", "-V", "-x", "--", "-", "--no-such", "--format=",
    "--batch=1", "-b1", "-qv", "--mask=file:",
};
/* clang-format on */

/* clang-format off */
static const char *const arguments[] = {
    "1", "2", "4", "8", "16", "128", "0", "-1", "+1", "01", "1.5", "1e3", "1e999", "nan", "inf",
    "0x10", "0b101", "41115", "43690", "65535", "65536", "4294967296", "2147483648",
    "99999999999999999999", "", " ", "best", "all", "none", "0..10", "10..0", "0..", "..5",
    "5..5..5", "0..65536", "1,2,3", "1,,2", ",", "1,", "2-6,8-9", "9-2", "0-14", "0-15", "full",
    "causal", "strided", "strided:", "strided:t=", "strided:t=0", "strided:t=3", "strided:x=1",
    "bigbird:g=1,w=1,n=1,seed=1", "file:", "file:/dev/null", "file:none.npy", "file:.",
    "document:n=-1", "cpu", "cuda", "cuda:0", "cuda:99999", "tpu", "fp32", "fp16", "uniform",
    "wide", "guided", "random", "exhaustive", "table", "json", "ndjson", "csv", "xml", "known.db",
    "none.db", "text.db", ".", "..", "/", "/dev/null", "/dev/full", "/proc/none/x", "out",
    "out/deep/er", "plan", "text.db/x", "90", "3m", "0s", "1h1m", "sm_80", "sm_80,sm_90a", "sm_1",
    "nvrtc", "nonesuch", "bert-base", "list", "info", "check", "forget", "merge", "export",
    "import", "export", "bash", "zsh", "%s%n%d", "'; ls", "$(ls)", "a=b", "\x1b[31mred",
    "\xff\xfe", "caf\xc3\xa9", "\xc2\x9b", "line\nline", "tab\t", "\xe2\x80",
};
/* clang-format on */

/* Pairs that are right for some commands, so that lines get further. */
/* clang-format off */
static const char *const pairs[][2] = {
    {"--mask", "causal"}, {"--mask", "strided:t=8"}, {"--format", "json"}, {"--format", "csv"},
    {"--top", "3"}, {"--output", "out"}, {"--db", "known.db"}, {"--db", "none.db"},
    {"--npy", "m.npy"}, {"--svg", "-"}, {"--space", "0..100"}, {"--budget", "2"},
    {"--layers", "2"}, {"--data", "text.db"}, {"--seed", "7"}, {"--lengths", "3"},
    {"--preset", "bert-tiny"}, {"41115", "43690"}, {"best", "41115"}, {"known.db", "text.db"},
};
/* clang-format on */

static char long_word[6000];

/* ---- lines ----------------------------------------------------------------------------------- */

static const char *pick(struct rng *r, const char *const *list, size_t n)
{
    return list[rng_below(r, (uint32_t)n)];
}

/* A word with one byte changed, dropped or doubled; in one of several buffers. */
static const char *mutate(struct rng *r, const char *word)
{
    static char buffers[WORDS_MAX][256];
    static int turn;
    char *out = buffers[turn++ % WORDS_MAX];
    size_t len = strlen(word);
    if (len == 0 || len > 200)
        return word;
    size_t at = rng_below(r, (uint32_t)len);
    strcpy(out, word);
    switch (rng_below(r, 3)) {
    case 0:
        out[at] = (char)(1 + rng_below(r, 255));
        break;
    case 1:
        memmove(out + at, out + at + 1, len - at);
        break;
    default:
        memmove(out + at + 1, out + at, len - at + 1);
    }
    return out;
}

/* The options that a command takes, as --complete says. */
struct own {
    const char *names[64];
    int count;
};
static struct own own[ARRAY_LEN(command_names)];

static bool takes(const struct own *o, const char *option)
{
    for (int i = 0; i < o->count; i++)
        if (strcmp(o->names[i], option) == 0)
            return true;
    return false;
}

static const char *word_of(struct rng *r, const struct own *o)
{
    uint32_t kind = rng_below(r, 100);
    const char *word = kind < 30 && o->count > 0 ? o->names[rng_below(r, (uint32_t)o->count)]
                       : kind < 40               ? pick(r, options, ARRAY_LEN(options))
                       : kind < 97               ? pick(r, arguments, ARRAY_LEN(arguments))
                       : kind < 98               ? long_word
                                                 : pick(r, command_names, ARRAY_LEN(command_names));
    return rng_below(r, 12) == 0 ? mutate(r, word) : word;
}

/* Fills argv[1..].  Most lines begin as right ones do. */
static void make_line(uint64_t seed, const char *argv[LINE_MAX_WORDS])
{
    static const char *const workload[] = {"--target", "cpu", "--batch", "1", "--seq-len", "128"};
    struct rng r = {.state = splitmix64(seed)};
    int n = 1, words = (int)rng_below(&r, 4), good = (int)rng_below(&r, 5);
    uint32_t command = rng_below(&r, ARRAY_LEN(command_names));
    const struct own *o = &own[command];
    if (rng_below(&r, 40) != 0)
        argv[n++] =
            rng_below(&r, 20) == 0 ? mutate(&r, command_names[command]) : command_names[command];
    for (size_t i = 0; i < ARRAY_LEN(workload) && rng_below(&r, 20) != 0; i += 2)
        if (takes(o, workload[i])) {
            argv[n++] = workload[i];
            argv[n++] = workload[i + 1];
        }
    while (good-- > 0) {
        const char *const *pair = pairs[rng_below(&r, ARRAY_LEN(pairs))];
        if (pair[0][0] == '-' && !takes(o, pair[0]))
            continue;
        argv[n++] = pair[0];
        argv[n++] = pair[1];
    }
    while (words-- > 0)
        argv[n++] = word_of(&r, o);
    argv[n] = NULL;
}

/* ---- running --------------------------------------------------------------------------------- */

static void limit(int what, rlim_t most)
{
    const struct rlimit l = {most, most};
    setrlimit((__rlimit_resource_t)what, &l);
}

static void become(const char *program, const char **argv, int from, int said)
{
    int null = open("/dev/null", O_RDWR);
    for (int fd = STDIN_FILENO; fd <= STDERR_FILENO; fd++)
        dup2(fd == from ? said : null, fd);
    limit(RLIMIT_FSIZE, FILE_BYTES_MAX);
    limit(RLIMIT_CORE, 0);
    alarm(LIMIT_S);
    argv[0] = program;
    execv(program, (char *const *)(uintptr_t)argv);
    _exit(127);
}

/* Reads what a child writes to a descriptor until it ends; returns its wait status. */
static int run(const char *program, const char **argv, int from, struct buf *said)
{
    int ends[2], status = 0;
    char block[4096];
    ssize_t len;
    if (pipe(ends) != 0)
        abort();
    pid_t pid = fork();
    if (pid == 0)
        become(program, argv, from, ends[1]);
    close(ends[1]);
    buf_reset(said);
    while ((len = read(ends[0], block, sizeof(block))) > 0)
        if (said->len < SAID_MAX)
            buf_add(said, block, (size_t)len);
    close(ends[0]);
    if (pid < 0 || waitpid(pid, &status, 0) != pid)
        abort();
    return status;
}

static const char *last_line(const char *text)
{
    const char *line = text;
    for (const char *c = text; *c != '\0'; c++)
        if (*c == '\n' && c[1] != '\0')
            line = c + 1;
    return line;
}

/* What is wrong with how a line ended; null: nothing. */
static const char *judge(const char *command, int status, const struct buf *said)
{
    static const int contract[] = {0, 1, 2, 3, 4, 130};
    bool known = false;
    if (WIFSIGNALED(status))
        return WTERMSIG(status) == SIGALRM ? "it took too long" : "it crashed";
    for (size_t i = 0; i < ARRAY_LEN(contract); i++)
        known = known || WEXITSTATUS(status) == contract[i];
    if (!known)
        return "its exit status is none of the contract";
    bool answers = command != NULL && strcmp(command, "doctor") == 0; /* what is missing */
    if (WEXITSTATUS(status) != 0 && said->len == 0 && !answers)
        return "it failed and said nothing";
    if (strlen(said->ptr) != said->len || !utf8_is_valid(said->ptr))
        return "it said what is no UTF-8";
    bool helps = strncmp(said->ptr, "usage: ", 7) == 0; /* without a command */
    if (WEXITSTATUS(status) != 0 && !answers && !helps &&
        strncmp(last_line(said->ptr), "fuseplan", 8) != 0)
        return "its last line does not begin with the program's name";
    for (const char *c = said->ptr; *c != '\0'; c++)
        if (((unsigned char)*c < ' ' && *c != '\n') || *c == 0x7f)
            return "it said a control character";
    return NULL;
}

static void print_line(uint64_t index, const char *const *argv)
{
    printf("line %llu: fuseplan", (unsigned long long)index);
    for (int i = 1; argv[i] != NULL; i++) {
        struct buf word;
        buf_init(&word);
        utf8_escape(argv[i], &word);
        printf(" '%.200s'", word.ptr);
        buf_release(&word);
    }
    putchar('\n');
}

/* A directory with a database, a file that is none, and no compiler. */
static void prepare(const char *known_db, char dir[64])
{
    const char *argv[] = {known_db, "known.db", NULL};
    struct buf said;
    struct status st = STATUS_INIT;
    strcpy(dir, "/tmp/fuseplan-bad-XXXXXX");
    if (mkdtemp(dir) == NULL || chdir(dir) != 0)
        abort();
    buf_init(&said);
    if (run(known_db, argv, STDERR_FILENO, &said) != 0 ||
        file_write("text.db", "no database\n", 12, &st) != 0) {
        fprintf(stderr, "bad_lines: %s%s\n", said.ptr, st.message);
        exit(EXIT_FAILURE);
    }
    buf_release(&said);
    setenv("HOME", dir, 1);
    setenv("PATH", dir, 1);
    setenv("FUSEPLAN_LOCK_DIR", dir, 1);
    setenv("FUSEPLAN_DB", "known.db", 1);
    static const char *const unset[] = {"FUSEPLAN_CC",    "CC",
                                        "FUSEPLAN_CACHE", "XDG_DATA_HOME",
                                        "XDG_CACHE_HOME", "FUSEPLAN_SYSTEM_DB"};
    for (size_t i = 0; i < ARRAY_LEN(unset); i++)
        unsetenv(unset[i]);
}

static void read_own(const char *program)
{
    struct buf said;
    buf_init(&said);
    for (size_t c = 0; c < ARRAY_LEN(command_names); c++) {
        const char *argv[] = {program, "--complete", command_names[c], "--", NULL};
        char *rest;
        run(program, argv, STDOUT_FILENO, &said);
        for (char *line = strtok_r(said.ptr, "\n", &rest); line != NULL;
             line = strtok_r(NULL, "\n", &rest)) {
            line[strcspn(line, "\t")] = '\0';
            if (own[c].count < (int)ARRAY_LEN(own[c].names))
                own[c].names[own[c].count++] = mem_strdup(line);
        }
    }
    buf_release(&said);
}

int main(int argc, char **argv)
{
    char dir[64];
    int bad = 0, by_status[256] = {0};
    struct buf said;
    struct status st = STATUS_INIT;
    if (argc != 6) {
        fputs("usage: bad_lines FUSEPLAN KNOWN_DB SEED FIRST COUNT\n", stderr);
        return 2;
    }
    uint64_t seed = strtoull(argv[3], NULL, 10), first = strtoull(argv[4], NULL, 10);
    uint64_t count = strtoull(argv[5], NULL, 10);
    memset(long_word, 'x', sizeof(long_word) - 1);
    buf_init(&said);
    prepare(argv[2], dir);
    read_own(argv[1]);
    for (uint64_t i = first; i < first + count; i++) {
        const char *line[LINE_MAX_WORDS];
        make_line(seed * 1000003 + i, line);
        int status = run(argv[1], line, STDERR_FILENO, &said);
        const char *wrong = judge(line[1], status, &said);
        by_status[WIFEXITED(status) ? WEXITSTATUS(status) : 255]++;
        if (wrong == NULL)
            continue;
        bad++;
        printf("FAILED: %s (wait status %d)\n", wrong, status);
        print_line(i, line);
        printf("%.2000s\n", said.ptr);
    }
    for (int status = 0; status < 256; status++)
        if (by_status[status] > 0)
            printf("exit %d: %d\n", status, by_status[status]);
    printf("%llu lines, %d bad\n", (unsigned long long)count, bad);
    if (chdir("/") == 0)
        file_remove_all(dir, &st);
    buf_release(&said);
    return bad == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
