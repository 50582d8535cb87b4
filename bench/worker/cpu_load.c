/* How far other programs took cores from this process. */
#include "bench/worker/worker_int.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

/* Seconds in which the cores of the machine did work of any program; negative if unknown. */
static double busy_seconds(void)
{
    enum { USER, NICE, SYSTEM, IDLE, IO_WAIT, IRQ, SOFT_IRQ, STEAL, FIELDS };
    long long ticks[FIELDS];
    struct buf text;
    struct status ignored = STATUS_INIT;
    buf_init(&text);
    int found = 0;
    if (file_read("/proc/stat", 0, &text, &ignored) == 0)
        found = sscanf(text.ptr, "cpu %lld %lld %lld %lld %lld %lld %lld %lld", &ticks[USER],
                       &ticks[NICE], &ticks[SYSTEM], &ticks[IDLE], &ticks[IO_WAIT], &ticks[IRQ],
                       &ticks[SOFT_IRQ], &ticks[STEAL]);
    buf_release(&text);
    if (found != FIELDS)
        return -1;
    long long busy =
        ticks[USER] + ticks[NICE] + ticks[SYSTEM] + ticks[IRQ] + ticks[SOFT_IRQ] + ticks[STEAL];
    return (double)busy / (double)sysconf(_SC_CLK_TCK);
}

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
    struct buf text;
    struct status ignored = STATUS_INIT;
    unsigned long long ran, waited;
    snprintf(path, sizeof(path), "/proc/self/task/%.20s/schedstat", thread);
    buf_init(&text);
    bool known = file_read(path, 0, &text, &ignored) == 0 &&
                 sscanf(text.ptr, "%llu %llu", &ran, &waited) == 2;
    buf_release(&text);
    return known ? 1e-9 * (double)waited : -1;
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

void cpu_load_begin(struct cpu_load *l)
{
    int threads;
    *l = (struct cpu_load){.clock_s = clock_seconds(),
                           .busy_s = busy_seconds(),
                           .own_s = own_seconds(),
                           .waited_s = waited_seconds(&threads)};
}

void cpu_load_end(const struct cpu_load *begin, struct conditions *out)
{
    int threads;
    struct cpu_load end = {clock_seconds(), busy_seconds(), own_seconds(),
                           waited_seconds(&threads)};
    double wall_s = end.clock_s - begin->clock_s;
    *out = (struct conditions){.cpu = false};
    if (begin->busy_s < 0 || end.busy_s < 0 || begin->waited_s < 0 || threads == 0 || wall_s <= 0)
        return;
    double others_s = end.busy_s - begin->busy_s - (end.own_s - begin->own_s);
    out->cpu = true;
    out->waited_share = (end.waited_s - begin->waited_s) / (wall_s * threads);
    out->other_cores = others_s > 0 ? others_s / wall_s : 0;
}
