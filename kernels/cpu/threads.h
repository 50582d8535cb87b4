/* The threads that run a plan: one a core, the same in fuseplan's worker and in a generated
 * program, so that both take the same time.  Includes the C library alone; needs _GNU_SOURCE. */
#ifndef FUSEPLAN_CPU_THREADS_H
#define FUSEPLAN_CPU_THREADS_H

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

/* How many cores' time cgroup v2 grants to this process: the least of its group and of the groups
 * above it; 0: no limit. */
static inline double fp_cpu_quota(void)
{
    char group[4096], path[4200], line[128], *rest;
    double least = 0;
    fp_first_line("/proc/self/cgroup", group, (int)sizeof(group)); /* "0::/group/below" */
    if (strncmp(group, "0::/", 4) != 0)
        return 0;
    for (char *slash = group + strlen(group); slash != NULL; slash = strrchr(group + 3, '/')) {
        *slash = '\0';
        snprintf(path, sizeof(path), "/sys/fs/cgroup%s/cpu.max", group + 3);
        fp_first_line(path, line, (int)sizeof(line));
        double quota = strtod(line, &rest); /* "max 100000" has no number: no limit */
        double period = strtod(rest, NULL);
        if (quota > 0 && period > 0 && (least == 0 || quota / period < least))
            least = quota / period;
    }
    return least;
}

/* Cores that this process may use, at least 1.  allowed: those of its affinity, as OpenMP counted
 * them when it started: it may have bound the caller to one of them since. */
static inline int fp_threads(int allowed)
{
    double quota = fp_cpu_quota();
    if (quota > 0 && quota < allowed)
        allowed = (int)(quota + 0.5);
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

/* Whether an environment is one that fp_thread_environment() made.  It does not count the cores
 * again: OpenMP may have bound the caller to one of them. */
static inline bool fp_threads_are_set(char **env)
{
    static const char number[] = "OMP_NUM_THREADS=";
    int about = 0, found = 0;
    for (; *env != NULL; env++) {
        about += fp_is_about_threads(*env);
        found += strncmp(*env, number, strlen(number)) == 0;
        for (int i = 0; i < FP_THREAD_SETTINGS; i++)
            found += strcmp(*env, fp_thread_settings[i]) == 0;
    }
    return found == FP_THREAD_SETTINGS + 1 && about == found;
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
    char **env = calloc((size_t)n + FP_THREAD_SETTINGS + 2, sizeof(*env));
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
    env[kept] = threads;
    return env;
}

#endif
