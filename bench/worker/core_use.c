/* How far other programs took cores from this process. */
#include "bench/worker/worker_int.h"

#include <dirent.h>
#include <sys/resource.h>

static double own_seconds(void)
{
    struct rusage used;
    getrusage(RUSAGE_SELF, &used);
    return (double)(used.ru_utime.tv_sec + used.ru_stime.tv_sec) +
           1e-6 * (double)(used.ru_utime.tv_usec + used.ru_stime.tv_usec);
}

/* Seconds in which a thread could have run and waited for a core; negative if unknown. */
static double thread_waited(const char *thread)
{
    char path[80];
    SCOPED_BUF text = BUF_INIT;
    snprintf(path, sizeof(path), "/proc/self/task/%.20s/schedstat", thread);
    char *ran = NULL, *waited = NULL; /* where these numbers end */
    unsigned long long waited_ns = 0;
    if (file_read(path, 0, &text, STATUS_IGNORED) == 0) {
        strtoull(text.ptr, &ran, 10);
        waited_ns = strtoull(ran, &waited, 10);
    }
    bool known = waited > ran && ran > text.ptr;
    return known ? 1e-9 * (double)waited_ns : -1;
}

static double waited_seconds(int *threads)
{
    double sum = -1, one;
    *threads = 0;
    DIR *tasks = opendir("/proc/self/task");
    const struct dirent *task;
    while (tasks != NULL && (task = readdir(tasks)) != NULL)
        if (task->d_name[0] != '.' && (one = thread_waited(task->d_name)) >= 0) {
            sum = sum < 0 ? one : sum + one;
            ++*threads;
        }
    if (tasks != NULL)
        closedir(tasks);
    return sum;
}

void core_use_begin(struct core_use *u)
{
    int threads;
    *u = (struct core_use){.clock_s = clock_seconds(),
                           .busy_s = cpu_busy_seconds(),
                           .own_s = own_seconds(),
                           .stopped_s = cpu_throttled_seconds(),
                           .waited_s = waited_seconds(&threads)};
}

/* The system counts time when it ends, so that some of it may be from before. */
static double share(double part_s, double whole_s)
{
    return fmin(fmax(part_s / whole_s, 0), 1);
}

void core_use_end(const struct core_use *begin, struct conditions *out)
{
    int threads;
    struct core_use end = {clock_seconds(), cpu_busy_seconds(), own_seconds(),
                           cpu_throttled_seconds(), waited_seconds(&threads)};
    double wall_s = end.clock_s - begin->clock_s;
    *out = (struct conditions){.cpu = false};
    if (begin->busy_s < 0 || end.busy_s < 0 || begin->waited_s < 0 || threads == 0 || wall_s <= 0)
        return;
    double others_s = end.busy_s - begin->busy_s - (end.own_s - begin->own_s);
    out->cpu = true;
    out->waited_share = share(end.waited_s - begin->waited_s, wall_s * threads);
    out->other_cores = others_s > 0 ? others_s / wall_s : 0;
    out->stopped_share = share(end.stopped_s - begin->stopped_s, wall_s * threads);
}
