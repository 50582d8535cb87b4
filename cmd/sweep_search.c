/* A row's search, as a process of `fuseplan search`. */
#include "cmd/sweep_int.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <unistd.h>

/* ---- turns ----------------------------------------------------------------------------------- */

enum { TURN = STDERR_FILENO + 1 };

struct turn *session_turn;

int turn_inherit(struct status *st)
{
    static struct turn turn = {TURN, true};
    if (fcntl(TURN, F_SETFD, FD_CLOEXEC) != 0)
        return status_set(st, STATUS_USAGE,
                          TURN_WORD " is for 'fuseplan sweep run', which starts searches by it");
    session_turn = &turn;
    return 0;
}

/* In the new process. */
static bool pass_turn(int fd)
{
    return fd == TURN ? fcntl(fd, F_SETFD, 0) == 0 : dup2(fd, TURN) == TURN;
}

void search_give_turn(struct search_process *p)
{
    shutdown(p->turn, SHUT_WR);
}

enum search_says search_asks(struct search_process *p)
{
    char byte;
    ssize_t n;
    while (p->turn >= 0 && (n = recv(p->turn, &byte, 1, MSG_DONTWAIT)) >= 0) {
        p->says = n > 0 ? SEARCH_LENDS : SEARCH_LEAVES;
        if (n == 0)
            break;
    }
    return p->says;
}

/* ---- the process ----------------------------------------------------------------------------- */

/* The command line, as a null-terminated array that borrows from *words. */
static char **search_words(const struct options *row, const char *target, int jobs, const char *db,
                           struct names *words)
{
    SCOPED_BUF text = BUF_INIT;
    options_command(row, TURN_WORD " search", OPTS_ROW, &text);
    if (!options_has(row, OPT(TARGET)))
        buf_addf(&text, " --target %s", target);
    if (jobs > 0)
        buf_addf(&text, " -j %d", jobs);
    if (db != NULL) {
        buf_adds(&text, " --db ");
        buf_add_path(&text, db);
    }
    buf_adds(&text, " -q --format ndjson");
    words_split(text.ptr, words, STATUS_IGNORED);
    char **out = mem_alloc((size_t)words->count + 1, sizeof(*out));
    memcpy(out, words->items, (size_t)words->count * sizeof(*out));
    return out;
}

/* In the new process: a search that catches signals by itself, and ends with this one. */
_Noreturn static void become_search(char **words, int said, int turn, const sigset_t *before,
                                    pid_t parent)
{
    int null = open("/dev/null", O_RDWR | O_CLOEXEC);
    signal(SIGTERM, SIG_DFL);
    signal(SIGINT, SIG_DFL);
    prctl(PR_SET_PDEATHSIG, SIGTERM);
    if (getppid() == parent && null >= 0 && dup2(null, STDIN_FILENO) >= 0 &&
        dup2(null, STDOUT_FILENO) >= 0 && dup2(said, STDERR_FILENO) >= 0 && pass_turn(turn)) {
        sigprocmask(SIG_SETMASK, before, NULL);
        execv("/proc/self/exe", words);
    }
    _exit(EXIT_FAILURE);
}

int search_start(const struct options *row, const char *target, int jobs, const char *db,
                 struct search_process *out, struct status *st)
{
    SCOPED_BY(names_release) struct names words = {.count = 0};
    sigset_t before;
    int ends[2] = {-1, -1};
    *out = SEARCH_PROCESS_INIT;
    out->said = memfd_create("said", MFD_CLOEXEC);
    if (out->said < 0 || socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0) {
        status_set(st, STATUS_ENVIRONMENT, "cannot keep what a search says: %s", strerror(errno));
        search_release(out);
        return -1;
    }
    out->turn = ends[0];
    SCOPED char **argv = search_words(row, target, jobs, db, &words);
    pid_t parent = getpid();
    file_hold_signals(&before);
    pid_t pid = fork();
    if (pid == 0)
        become_search(argv, out->said, ends[1], &before, parent);
    sigprocmask(SIG_SETMASK, &before, NULL);
    close(ends[1]);
    if (pid < 0) {
        status_set(st, STATUS_ENVIRONMENT, "cannot start a search: %s", strerror(errno));
        search_release(out);
        return -1;
    }
    out->pid = pid;
    return 0;
}

void search_release(struct search_process *p)
{
    if (p->said >= 0)
        close(p->said);
    if (p->turn >= 0)
        close(p->turn);
    *p = SEARCH_PROCESS_INIT;
}

char *search_said(const struct search_process *p)
{
    char text[4096];
    ssize_t end = lseek(p->said, 0, SEEK_END),
            from = end > (ssize_t)sizeof(text) - 1 ? end - 4095 : 0;
    ssize_t n = pread(p->said, text, sizeof(text) - 1, from);
    text[n > 0 ? n : 0] = '\0';
    while (n > 0 && text[n - 1] == '\n')
        text[--n] = '\0';
    const char *line = strrchr(text, '\n') != NULL ? strrchr(text, '\n') + 1 : text;
    static const char *const names[] = {"fuseplan search: ", "fuseplan: "};
    for (size_t i = 0; i < ARRAY_LEN(names); i++)
        if (strncmp(line, names[i], strlen(names[i])) == 0)
            line += strlen(names[i]);
    return mem_strdup(line[0] != '\0' ? line : "its search ended without a word");
}
