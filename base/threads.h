/* The threads that run a plan: one a core, the same in fuseplan's worker and in a generated
 * program, so that both take the same time.  Includes the C library alone; needs _GNU_SOURCE. */
#ifndef FUSEPLAN_BASE_THREADS_H
#define FUSEPLAN_BASE_THREADS_H

#ifdef _OPENMP
#include <omp.h>
#endif
#include <sched.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Reads the first line of a file without its end; "" where there is none. */
static inline void fp_first_line(const char *path, char *line, int size)
{
    FILE *in = fopen(path, "re");
    if (in == NULL || fgets(line, size, in) == NULL)
        line[0] = '\0';
    line[strcspn(line, "\n")] = '\0';
    if (in != NULL)
        fclose(in);
}

/* A control group: a directory of files, below the mount of its kind of groups.  The groups above
 * it limit its processes too. */
struct fp_group {
    char dir[4096];
    size_t mount; /* how long the mount's name is; 0: there is no group */
};
#define FP_GROUPS      "/proc/self/cgroup"
#define FP_GROUPS_ROOT "/sys/fs/cgroup"

/* The group that limits what a controller, "cpu" or "memory", controls.  list: a file like
 * FP_GROUPS, with a line "4:cpu,cpuacct:/above/own" for groups of version 1, which are mounted at
 * root/cpu, and "0::/above/own" for groups of version 2, mounted at root.  A controller belongs to
 * one version at a time; where both lines are there, it is the first one's.  A container may see
 * its own group as the root, and be told of a name that it cannot see: nothing is in that
 * directory. */
static inline struct fp_group fp_group_of(const char *list, const char *root,
                                          const char *controller)
{
    struct fp_group found = {.mount = 0};
    char line[3072], mount[512];
    bool one = false;
    FILE *in = fopen(list, "re");
    while (!one && in != NULL && fgets(line, (int)sizeof(line), in) != NULL) {
        char *names = strchr(line, ':'), *group = names != NULL ? strchr(names + 1, ':') : NULL;
        if (group == NULL)
            continue;
        *group++ = '\0';
        group[strcspn(group, "\n")] = '\0';
        bool two = *++names == '\0';
        for (char *rest = names, *name; !one && (name = strsep(&rest, ",")) != NULL;)
            one = strcmp(name, controller) == 0;
        if (!one && !two)
            continue;
        snprintf(mount, sizeof(mount), "%s%s%s", root, one ? "/" : "", one ? controller : "");
        snprintf(found.dir, sizeof(found.dir), "%s%s", mount, strcmp(group, "/") != 0 ? group : "");
        found.mount = strlen(mount);
    }
    if (in != NULL)
        fclose(in);
    return found;
}

/* Goes to the group above; false: there is none. */
static inline bool fp_group_up(struct fp_group *group)
{
    char *slash = strrchr(group->dir, '/');
    if (strlen(group->dir) <= group->mount)
        return false;
    *slash = '\0';
    return true;
}

/* The number at the begin of a group's file, and the second one behind it; 0 where there is none.
 * "max" and -1 are no limit. */
static inline double fp_group_number(const struct fp_group *group, const char *file, double *second)
{
    char path[4224], line[128], *rest;
    snprintf(path, sizeof(path), "%s/%s", group->dir, file);
    fp_first_line(path, line, (int)sizeof(line));
    double first = strtod(line, &rest);
    if (second != NULL)
        *second = strtod(rest, NULL);
    return first;
}

/* How many cores' time a group and those above it grant to a process; 0: no limit. */
static inline double fp_group_quota(struct fp_group group)
{
    double least = 0;
    for (bool more = group.mount > 0; more; more = fp_group_up(&group)) {
        double period, quota = fp_group_number(&group, "cpu.max", &period);
        if (period <= 0) {
            quota = fp_group_number(&group, "cpu.cfs_quota_us", NULL);
            period = fp_group_number(&group, "cpu.cfs_period_us", NULL);
        }
        if (quota > 0 && period > 0 && (least == 0 || quota / period < least))
            least = quota / period;
    }
    return least;
}

static inline double fp_cpu_quota(void)
{
    return fp_group_quota(fp_group_of(FP_GROUPS, FP_GROUPS_ROOT, "cpu"));
}

/* Cores that this process may use all the time, at least 1: with more threads than its quota has
 * cores, the system would stop them all for the rest of each period.  allowed: those of its
 * affinity, as OpenMP counted them when it started: it may have bound the caller to one since. */
static inline int fp_threads(int allowed)
{
    double quota = fp_cpu_quota();
    if (quota > 0 && quota < allowed)
        allowed = (int)quota;
    return allowed > 0 ? allowed : 1;
}

#ifdef _OPENMP
/* Gives the main thread all cores of the process again, where a variable of the user's had OpenMP
 * bind it to one: programs that it starts get its affinity. */
static inline void fp_unbind(void)
{
    cpu_set_t cores;
    CPU_ZERO(&cores);
    for (int place = 0; place < omp_get_num_places(); place++) {
        int n = omp_get_place_num_procs(place), *core = (int *)calloc((size_t)n + 1, sizeof(*core));
        if (core != NULL)
            omp_get_place_proc_ids(place, core);
        for (int i = 0; i < n && core != NULL; i++)
            CPU_SET(core[i], &cores);
        free(core);
    }
    if (CPU_COUNT(&cores) > 0)
        sched_setaffinity(0, sizeof(cores), &cores);
}
#endif

/* The environment variables that set the threads of a plan, without OMP_NUM_THREADS.  Each thread
 * is bound to its core: else the system may put two of them on one core while another program has
 * the second one, and leave them there, where each waits for the other at every barrier.  A waiting
 * thread spins for about as long as waking it would take (1000 pauses are some 50 us): a longer
 * spin takes the core from other programs. */
#define FP_BOUND "OMP_PROC_BIND=true"
enum { FP_THREAD_SETTINGS = 3 };
static const char *const fp_thread_settings[FP_THREAD_SETTINGS] = {"OMP_DYNAMIC=false", FP_BOUND,
                                                                   "GOMP_SPINCOUNT=1000"};

/* Whether a variable, "NAME=value", concerns threads. */
static inline bool fp_is_about_threads(const char *variable)
{
    static const char *const prefixes[] = {"OMP_", "GOMP_", "KMP_", "OPENBLAS_", "GOTO_"};
    for (size_t i = 0; i < sizeof(prefixes) / sizeof(prefixes[0]); i++)
        if (strncmp(variable, prefixes[i], strlen(prefixes[i])) == 0)
            return true;
    return false;
}

/* libgomp binds threads to the places that it reads from /sys, and where that is not mounted, to
 * none. */
static inline bool fp_places_are_known(void)
{
    return access("/sys/devices/system/cpu/cpu0/topology", F_OK) == 0;
}

/* "OMP_PLACES={0},{1}": the cores of the caller's affinity. */
static inline char *fp_places(void)
{
    static char text[8192]; /* seven bytes for each core of a cpu_set_t, and the name */
    cpu_set_t cores;
    CPU_ZERO(&cores);
    sched_getaffinity(0, sizeof(cores), &cores);
    int len = snprintf(text, sizeof(text), "OMP_PLACES=");
    for (int core = 0, found = 0; core < CPU_SETSIZE; core++)
        if (CPU_ISSET(core, &cores) != 0)
            len += snprintf(text + len, sizeof(text) - (size_t)len, "%s{%d}",
                            found++ > 0 ? "," : "", core);
    return text;
}

/* Whether an environment is one that fp_thread_environment() made.  It does not count the cores
 * again: OpenMP may have bound the caller to one of them. */
static inline bool fp_threads_are_set(char **env)
{
    static const char number[] = "OMP_NUM_THREADS=", places[] = "OMP_PLACES=";
    int about = 0, found = 0, named = 0;
    for (; *env != NULL; env++) {
        about += fp_is_about_threads(*env);
        found += strncmp(*env, number, strlen(number)) == 0;
        named += strncmp(*env, places, strlen(places)) == 0;
        for (int i = 0; i < FP_THREAD_SETTINGS; i++)
            found += strcmp(*env, fp_thread_settings[i]) == 0;
    }
    return found == FP_THREAD_SETTINGS + 1 && about == found + named &&
           named == !fp_places_are_known();
}

/* An environment with these settings in the place of all that another says of threads.  allowed: as
 * for fp_threads().  bound: false for threads that run no plan.  The caller frees the array; its
 * texts are borrowed. */
static inline char **fp_thread_environment(char **from, int allowed, bool bound)
{
    static char threads[32];
    int n = 0, kept = 0;
    snprintf(threads, sizeof(threads), "OMP_NUM_THREADS=%d", fp_threads(allowed));
    while (from[n] != NULL)
        n++;
    char **env = calloc((size_t)n + FP_THREAD_SETTINGS + 3, sizeof(*env));
    if (env == NULL) {
        perror("no environment for threads");
        exit(1);
    }
    for (int i = 0; i < n; i++)
        if (!fp_is_about_threads(from[i]))
            env[kept++] = from[i];
    for (int i = 0; i < FP_THREAD_SETTINGS; i++)
        env[kept++] =
            (char *)(bound || strcmp(fp_thread_settings[i], FP_BOUND) != 0 ? fp_thread_settings[i]
                                                                           : "OMP_PROC_BIND=false");
    env[kept++] = threads;
    if (bound && !fp_places_are_known())
        env[kept] = fp_places();
    return env;
}

#endif
