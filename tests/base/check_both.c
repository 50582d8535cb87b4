/* Two functions at once. */
#include "tests/suite.h"

#include <pthread.h>

struct shared {
    pthread_barrier_t meet;
    int first, second; /* what each returns, with the message "first" or "second" */
};

static int work(struct shared *s, int result, const char *message, struct status *st)
{
    pthread_barrier_wait(&s->meet); /* ends only if both run */
    return result == 0 ? 0 : status_set(st, STATUS_MODEL, "%s", message);
}

static int first(void *ctx, struct status *st)
{
    struct shared *s = ctx;
    return work(s, s->first, "first", st);
}

static int second(void *ctx, struct status *st)
{
    struct shared *s = ctx;
    return work(s, s->second, "second", st);
}

/* _i: bits, which of them fails. */
START_TEST(both_run_and_the_first_failure_counts)
{
    static const char *const said[] = {"", "first", "second", "first"};
    struct shared s = {.first = _i & 1, .second = _i >> 1};
    struct status st = STATUS_INIT;
    pthread_barrier_init(&s.meet, NULL, 2);
    ck_assert_int_eq(run_both(first, second, &s, &st), _i == 0 ? 0 : -1);
    ck_assert_str_eq(st.message, said[_i]);
    pthread_barrier_destroy(&s.meet);
}
END_TEST

SUITE("both", NULL, NULL, LOOP(both_run_and_the_first_failure_counts, 0, 4))
