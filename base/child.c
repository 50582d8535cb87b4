#include "base/base.h"

#include <unistd.h>

void child_keep_ends(void)
{
    struct sigaction action;
    if (sigaction(SIGCHLD, NULL, &action) == 0 && action.sa_handler == SIG_IGN)
        signal(SIGCHLD, SIG_DFL);
}

enum { COMPILERS = 1u << CHILD_COMPILER, WORKERS = 1u << CHILD_WORKER, ALL = COMPILERS | WORKERS };

/* When a variable may be why a child failed: a wrong one keeps it from working, a list of
 * directories only where the child speaks of such a directory. */
enum suspect { NEVER, ALWAYS, IF_NAMED };

/* Variables that reach a child, as in FUSEPLAN_PASS.  Variables of OpenMP, OpenBLAS and CUDA that
 * change times are not among them, nor variables that make the loader print. */
static const struct passing {
    const char *name;
    unsigned kinds;
    enum suspect suspect;
} passing[] = {
    {"PATH", ALL, NEVER},
    {"HOME", ALL, NEVER},
    {"TMPDIR", ALL, NEVER},
    {"LD_LIBRARY_PATH", ALL, IF_NAMED},
    {"FUSEPLAN_*", ALL, NEVER},
    {"CUDA_HOME", ALL, NEVER},
    {"CUDA_PATH", ALL, NEVER},
    {"CUDA_VISIBLE_DEVICES", WORKERS, NEVER},
    {"CUDA_DEVICE_ORDER", WORKERS, NEVER},
    {"CUDA_MPS_*", WORKERS, NEVER},
    {"CUDA_CACHE_*", WORKERS, NEVER},
    /* gcc and clang, and what they read where Nix, Cray or Intel wrap them */
    {"CPATH", COMPILERS, IF_NAMED},
    {"C_INCLUDE_PATH", COMPILERS, IF_NAMED},
    {"LIBRARY_PATH", COMPILERS, IF_NAMED},
    {"COMPILER_PATH", COMPILERS, ALWAYS},
    {"GCC_EXEC_PREFIX", COMPILERS, ALWAYS},
    {"NIX_*", COMPILERS, NEVER},
    {"CRAY*", COMPILERS, NEVER},
    {"PE_*", COMPILERS, NEVER},
    {"LM_LICENSE_FILE", COMPILERS, NEVER},
    {"INTEL_LICENSE_FILE", COMPILERS, NEVER},
    {"NVCC_*", COMPILERS, ALWAYS},
    /* ccache, sccache, distcc */
    {"CCACHE_*", COMPILERS, NEVER},
    {"SCCACHE_*", COMPILERS, NEVER},
    {"DISTCC_*", COMPILERS, NEVER},
    {"XDG_*", COMPILERS, NEVER},
};

/* Whether a variable, "NAME=value", has the name of `len` bytes, or begins with it where the name
 * ends with '*'. */
static bool has_name(const char *variable, const char *name, size_t len)
{
    if (len > 0 && name[len - 1] == '*')
        return strncmp(variable, name, len - 1) == 0;
    return strncmp(variable, name, len) == 0 && variable[len] == '=';
}

static bool user_passes(const char *variable)
{
    const char *names = getenv("FUSEPLAN_PASS");
    for (size_t len; names != NULL && *names != '\0'; names += len) {
        names += strspn(names, " ");
        len = strcspn(names, " ");
        if (len > 0 && has_name(variable, names, len))
            return true;
    }
    return false;
}

static const struct passing *find_row(enum child_kind kind, const char *variable)
{
    for (size_t i = 0; i < ARRAY_LEN(passing); i++)
        if ((passing[i].kinds >> kind & 1) != 0 &&
            has_name(variable, passing[i].name, strlen(passing[i].name)))
            return &passing[i];
    return NULL;
}

char **child_environment(enum child_kind kind, char *own)
{
    static char locale[] = "LC_ALL=C";
    size_t count = 0, kept = 0;
    while (environ[count] != NULL)
        count++;
    char **env = mem_alloc(count + 3, sizeof(*env));
    for (size_t i = 0; i < count; i++) {
        bool replaced = has_name(environ[i], "LC_ALL", strlen("LC_ALL")) ||
                        (own != NULL && has_name(environ[i], own, strcspn(own, "=")));
        if (!replaced && (find_row(kind, environ[i]) != NULL || user_passes(environ[i])))
            env[kept++] = environ[i];
    }
    env[kept++] = locale;
    if (own != NULL)
        env[kept++] = own;
    env[kept] = NULL;
    return env;
}

/* Whether a text names a directory of a list. */
static bool names_any(const char *text, const char *list)
{
    SCOPED char *copy = mem_strdup(list);
    char *rest;
    for (char *dir = strtok_r(copy, ":", &rest); dir != NULL; dir = strtok_r(NULL, ":", &rest))
        if (strstr(text, dir) != NULL)
            return true;
    return false;
}

void child_suspects(enum child_kind kind, const char *said, struct buf *out)
{
    int found = 0;
    for (char **variable = environ; *variable != NULL; variable++) {
        const struct passing *row = find_row(kind, *variable);
        const char *value = *variable + strcspn(*variable, "=");
        if (row != NULL && value[0] != '\0' && value[1] != '\0' &&
            (row->suspect == ALWAYS || (row->suspect == IF_NAMED && names_any(said, value + 1))))
            buf_addf(out, "%s%.*s", found++ == 0 ? "; " : ", ", (int)(value - *variable),
                     *variable);
    }
    if (found > 0)
        buf_addf(out, " %s set: %s right", found > 1 ? "are" : "is",
                 found > 1 ? "are they" : "is it");
}
