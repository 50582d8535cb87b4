#include "cmd/generate_int.h"
#include "cmd/plans.h"

#include <ctype.h>
#include <errno.h>
#include <spawn.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>

/* make -C DIR */
static int build(const char *dir, struct status *st)
{
    char *argv[] = {(char *)"make", (char *)"-s", (char *)"-C", (char *)dir, NULL};
    extern char **environ;
    pid_t pid;
    child_keep_ends();
    int status, error = posix_spawnp(&pid, argv[0], NULL, NULL, argv, environ);
    if (error != 0)
        return status_set(st, STATUS_ENVIRONMENT, "--build: cannot run make: %s", strerror(error));
    while (waitpid(pid, &status, 0) < 0)
        if (errno != EINTR)
            return status_set(st, STATUS_ENVIRONMENT, "--build: cannot wait for make: %s",
                              strerror(errno));
    return status == 0 ? 0
                       : status_set(st, STATUS_ENVIRONMENT,
                                    "--build: 'make -C %s' failed; the folder is written, and what "
                                    "is above says what it lacks",
                                    dir);
}

static int check_name(const char *name, struct status *st)
{
    enum { LONGEST = 40 };
    bool good = islower((unsigned char)name[0]) != 0 && strlen(name) <= LONGEST;
    for (const char *c = name; *c != '\0' && good; c++)
        good = islower((unsigned char)*c) != 0 || isdigit((unsigned char)*c) != 0 || *c == '_';
    return good ? 0
                : status_set(st, STATUS_USAGE,
                             "--name: '%s' cannot begin the names of C functions; give a "
                             "lower-case letter, then up to %d lower-case letters, digits and '_'",
                             name, LONGEST - 1);
}

static int run(const struct options *o, struct status *st)
{
    const char *name = options_has(o, OPT(NAME)) ? o->name : STANDALONE_NAME;
    char *dir = place_directory(o, st);
    bool done = dir != NULL && check_name(name, st) == 0 &&
                generate_write(o, dir, name, NULL, st) == 0 &&
                (!options_has(o, OPT(BUILD)) || build(dir, st) == 0);
    free(dir);
    return done ? EXIT_SUCCESS : -1;
}

/* One library has all sizes. */
static bool whole(const struct options *o)
{
    (void)o;
    return true;
}

const struct command cmd_export = {
    .name = "export",
    .operands = "VALUE",
    .summary = "Write a plan as a C library, to be linked into other programs",
    .options = (OPTS_COMMON & ~OPT(FORMAT)) | OPTS_WORKLOAD | OPT(ARCH) | OPT(OUTPUT) | OPT(FORCE) |
               OPT(PACKED) | OPT(NAME) | OPT(BUILD) | OPT(DB),
    .required = OPT(BATCH) | OPT(SEQ_LEN) | OPT(OUTPUT),
    .each = true,
    .exits = EXITS_NO_RESULT,
    .about =
        "VALUE may be 'best', the best plan known for each workload, 'default', the one\n"
        "that is expected to be the fastest, or 'best,default', that one where none is known.\n"
        "The folder needs no\n"
        "fuseplan: kernels, a launcher in C, a header with all contracts, Makefile and\n"
        "CMakeLists.txt, an example.  A library of several sizes runs a batch by the plan of\n"
        "exactly its size, else by the next larger one.  --name begins the names of its files and\n"
        "functions, so that one program can have several libraries.  If the library is exported\n"
        "with lengths or with --packed, its calls with lengths compute no rows of padding.\n"
        "Schedules, --arch and --force are as in 'fuseplan generate'.",
    .examples = "fuseplan export 41115 -b 1 -s 128 -m causal -o bert\n"
                "make -C bert && bert/example\n"
                "fuseplan export best -b 1 -s 128 -m causal --name causal -o causal --build",
    .words = words_plans,
    .whole = whole,
    .run = run,
};
