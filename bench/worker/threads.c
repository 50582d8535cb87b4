/* Threads that bind themselves.
 *
 * OpenMP binds a thread that it starts by a call on that thread's number, which the filter of a
 * sandbox cannot tell from a call on another program's.  So this program has a pthread_create() of
 * its own, which OpenMP finds first: the new thread binds itself, which is allowed. */
#include "base/base.h"

#include <dlfcn.h>
#include <pthread.h>
#include <sched.h>

typedef void *thread_run(void *arg);
typedef int thread_create(pthread_t *out, const pthread_attr_t *attr, thread_run *run, void *arg);

struct start { /* owned by the new thread */
    thread_run *run;
    void *arg;
    cpu_set_t cores;
};

static void *bind_and_run(void *arg)
{
    const struct start start = *(struct start *)arg;
    free(arg);
    sched_setaffinity(0, sizeof(start.cores), &start.cores);
    return start.run(start.arg);
}

/* The cores that a new thread is to be bound to; false if it is not. */
static bool wants_cores(const pthread_attr_t *attr, cpu_set_t *out)
{
    cpu_set_t any;
    pthread_attr_t plain;
    CPU_ZERO(out);
    if (attr == NULL || pthread_attr_getaffinity_np(attr, sizeof(*out), out) != 0 ||
        pthread_attr_init(&plain) != 0)
        return false;
    bool bound =
        pthread_attr_getaffinity_np(&plain, sizeof(any), &any) == 0 && !CPU_EQUAL(&any, out);
    pthread_attr_destroy(&plain);
    return bound;
}

__attribute__((visibility("default"))) int
pthread_create(pthread_t *out, const pthread_attr_t *attr, thread_run *run, void *arg)
{
    static thread_create *create;
    if (create == NULL)
        *(void **)&create = dlsym(RTLD_NEXT, "pthread_create");
    cpu_set_t cores;
    if (!wants_cores(attr, &cores))
        return create(out, attr, run, arg);
    struct start *start = malloc(sizeof(*start));
    if (start == NULL)
        return EAGAIN;
    *start = (struct start){run, arg, cores};
    /* The attributes are OpenMP's and not constant; it gets them back as they were. */
    pthread_attr_t *unbound = (pthread_attr_t *)(uintptr_t)attr;
    pthread_attr_setaffinity_np(unbound, 0, &cores); /* none */
    int error = create(out, unbound, bind_and_run, start);
    pthread_attr_setaffinity_np(unbound, sizeof(cores), &cores);
    if (error != 0)
        free(start);
    return error;
}
