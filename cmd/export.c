#include "cmd/generate_int.h"

#include <ctype.h>
#include <spawn.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>

/* --name, a prefix of C identifiers. */
static int check_name(const char *name, struct status *st)
{
    enum { NAME_MAX_LEN = 40 };
    bool good = islower((unsigned char)name[0]) != 0 && strlen(name) <= NAME_MAX_LEN;
    for (const char *c = name; *c != '\0' && good; c++)
        good = islower((unsigned char)*c) != 0 || isdigit((unsigned char)*c) != 0 || *c == '_';
    return good
               ? 0
               : status_set(st, STATUS_USAGE,
                            "--name: '%s' cannot begin the names of C functions; give a lower-case "
                            "letter, then up to %d lower-case letters, digits and '_'",
                            name, NAME_MAX_LEN - 1);
}

/* make -C DIR */
static int build(const char *dir, struct status *st)
{
    char *argv[] = {(char *)"make", (char *)"-s", (char *)"-C", (char *)dir, NULL};
    extern char **environ;
    pid_t pid;
    int status, error = posix_spawnp(&pid, argv[0], NULL, NULL, argv, environ);
    if (error != 0)
        return status_set(st, STATUS_ENVIRONMENT, "--build: cannot run make: %s", strerror(error));
    while (waitpid(pid, &status, 0) < 0)
        ;
    return status == 0 ? 0
                       : status_set(st, STATUS_ENVIRONMENT,
                                    "--build: 'make -C %s' failed; the folder is written, and what "
                                    "is above says what it lacks",
                                    dir);
}

static void note_written(const struct options *o, int files, const char *dir)
{
    struct buf path;
    buf_init(&path);
    buf_add_path(&path, dir);
    note(o, "wrote %d files; 'make -C %s && %s/example' builds the library and runs its example",
         files, path.ptr, path.ptr);
    buf_release(&path);
}

static int export_library(const struct options *o, const char *dir, struct status *st)
{
    const char *name = options_has(o, OPT(NAME)) ? o->name : STANDALONE_NAME;
    struct choosing c = {.count = 0};
    struct standalone library = {.count = 0};
    struct names ours = {.count = 0}; /* files of an earlier output */
    json_t *manifest = NULL;
    int result = -1;
    if (check_name(name, st) != 0 || choosing_open(o, &c, st) != 0 ||
        place_check(dir, options_has(o, OPT(FORCE)), &ours, st) != 0 ||
        choosing_schedules(o, &c, st) != 0)
        goto out;
    struct standalone_spec spec = choosing_spec(&c, name, NULL);
    standalone_emit(&spec, &library);
    manifest = manifest_of_library(&c, name, &library);
    if (place_write(dir, &ours, &library, manifest, st) != 0)
        goto out;
    choosing_note(o, &c);
    note_written(o, library.count + 1, dir);
    if (!options_has(o, OPT(BUILD)) || build(dir, st) == 0)
        result = EXIT_SUCCESS;
out:
    names_release(&ours);
    json_decref(manifest);
    standalone_release(&library);
    choosing_close(&c);
    return result;
}

static int run(const struct options *o, struct status *st)
{
    char *dir = place_directory(o, st);
    int code = dir != NULL ? export_library(o, dir, st) : -1;
    free(dir);
    return code;
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
        "VALUE may be 'best', the best plan known for each workload.  The folder needs no\n"
        "fuseplan: kernels, a launcher in C, a header with all contracts, Makefile and\n"
        "CMakeLists.txt, an example.  A library of several sizes runs a batch by the plan of\n"
        "exactly its size, else by the next larger one.  --name begins the names of its files and\n"
        "functions, so that one program can have several libraries.  Schedules, --arch and "
        "--force\n"
        "are as in 'fuseplan generate'.",
    .examples = "fuseplan export 41115 -b 1 -s 128 -m causal -o bert\n"
                "make -C bert && bert/example\n"
                "fuseplan export best -b 1 -s 128 -m causal --name causal -o causal --build",
    .words = words_best,
    .whole = whole,
    .run = run,
};
