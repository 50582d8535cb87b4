/* An exported library, built and run as its user does. */
#include "cmd/generate_int.h"

#include <ctype.h>
#include <fcntl.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

/* Words of C and C++ that no type can have for its name. */
static const char keywords[] =
    " alignas alignof and and_eq asm auto bitand bitor bool break case catch char class compl "
    "concept const consteval constexpr constinit const_cast continue co_await co_return co_yield "
    "decltype default delete do double dynamic_cast else enum explicit export extern false float "
    "for friend goto if inline int long mutable namespace new noexcept not not_eq nullptr operator "
    "or or_eq private protected public register reinterpret_cast requires restrict return short "
    "signed sizeof static static_assert static_cast struct switch template this thread_local throw "
    "true try typedef typeid typename typeof union unsigned using virtual void volatile wchar_t "
    "while xor xor_eq ";

int library_check_name(const char *name, struct status *st)
{
    enum { LONGEST = 40 };
    bool good = islower((unsigned char)name[0]) != 0 && strlen(name) <= LONGEST;
    for (const char *c = name; *c != '\0' && good; c++)
        good = islower((unsigned char)*c) != 0 || isdigit((unsigned char)*c) != 0 || *c == '_';
    if (!good)
        return status_set(st, STATUS_USAGE,
                          "--name: '%s' cannot begin the names of C functions; give a lower-case "
                          "letter, then up to %d lower-case letters, digits and '_'",
                          name, LONGEST - 1);
    SCOPED char *word = buf_text(" %s ", name);
    return strstr(keywords, word) == NULL
               ? 0
               : status_set(st, STATUS_USAGE,
                            "--name: '%s' is a word of C or C++; give another name, such as "
                            "'%s_bert'",
                            name, name);
}

/* Waits for a child, and once the user wants to stop tells it to.  It looks again and again: a
 * signal that came right before a call that waits would not end that. */
static int wait_for(pid_t pid, const char *program, struct status *st)
{
    const struct timespec pause = {.tv_nsec = 10000000};
    int status = -1; /* where it cannot be waited for */
    for (bool told = false; waitpid(pid, &status, WNOHANG) == 0; nanosleep(&pause, NULL)) {
        bool stop = session_stop != 0;
        if (stop && !told)
            kill(pid, SIGTERM);
        told = stop;
    }
    if (session_stop != 0)
        return status_set(st, STATUS_INTERRUPTED, "interrupted");
    return status == 0 ? 0 : status_set(st, STATUS_ENVIRONMENT, "%s failed", program);
}

/* Its standard output is our standard error, or nowhere if it is `mute`. */
static int run(char *const *argv, char *const *env, bool mute, struct status *st)
{
    posix_spawn_file_actions_t actions;
    pid_t pid;
    child_keep_ends();
    posix_spawn_file_actions_init(&actions);
    if (mute)
        posix_spawn_file_actions_addopen(&actions, STDOUT_FILENO, "/dev/null", O_WRONLY, 0);
    else
        posix_spawn_file_actions_adddup2(&actions, STDERR_FILENO, STDOUT_FILENO);
    int error = posix_spawnp(&pid, argv[0], &actions, NULL, argv, env);
    posix_spawn_file_actions_destroy(&actions);
    if (error != 0)
        return status_set(st, STATUS_ENVIRONMENT, "cannot run %s: %s", argv[0], strerror(error));
    return wait_for(pid, argv[0], st);
}

int library_build(const char *dir, struct status *st)
{
    char jobs[16];
    snprintf(jobs, sizeof(jobs), "-j%d", cpu_threads());
    char *argv[] = {(char *)"make", (char *)"-s", (char *)"-C", (char *)dir, jobs, NULL};
    return run(argv, environ, false, st);
}

/* Our environment with one GPU in it, whose number is then 0; gpu null: as it is.  own: room for a
 * variable.  The caller frees the array alone. */
static char **environment_with(const char *gpu, struct buf *own)
{
    static const char visible[] = "CUDA_VISIBLE_DEVICES=";
    size_t count = 0, kept = 0;
    while (environ[count] != NULL)
        count++;
    char **out = mem_alloc(count + 2, sizeof(*out));
    for (size_t i = 0; i < count; i++)
        if (gpu == NULL || strncmp(environ[i], visible, strlen(visible)) != 0)
            out[kept++] = environ[i];
    buf_addf(own, "%s%s", visible, gpu != NULL ? gpu : "");
    out[kept] = gpu != NULL ? own->ptr : NULL;
    out[kept + (gpu != NULL)] = NULL;
    return out;
}

int library_run(const char *dir, const struct library_example *e, struct status *st)
{
    SCOPED char *program = buf_text("%s/example", dir);
    SCOPED_BUF own = BUF_INIT;
    char *argv[10];
    int n = 0;
    SCOPED char **env = environment_with(e->gpu, &own);
    argv[n++] = program;
    argv[n++] = (char *)"--weights";
    argv[n++] = (char *)e->weights;
    if (e->prefix != NULL) {
        argv[n++] = (char *)"--prefix";
        argv[n++] = (char *)e->prefix;
    }
    argv[n++] = (char *)"--input";
    argv[n++] = (char *)e->input;
    argv[n++] = (char *)"--output";
    argv[n++] = (char *)e->output;
    argv[n] = NULL;
    return run(argv, env, true, st);
}
