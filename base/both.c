#include "base/base.h"

#include <pthread.h>

struct beside {
    both_work *run;
    void *ctx;
    int result;
    struct status st;
};

static void *run_beside(void *arg)
{
    struct beside *b = arg;
    b->result = b->run(b->ctx, &b->st);
    return NULL;
}

int run_both(both_work *first, both_work *second, void *ctx, struct status *st)
{
    struct beside other = {.run = second, .ctx = ctx, .st = STATUS_INIT};
    pthread_t thread;
    bool apart = pthread_create(&thread, NULL, run_beside, &other) == 0;
    int result = first(ctx, st);
    if (apart)
        pthread_join(thread, NULL);
    else
        run_beside(&other);
    if (result == 0 && other.result != 0) {
        *st = other.st;
        result = -1;
    }
    return result;
}
