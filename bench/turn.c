#include "bench/bench_int.h"

#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

static void close_end(int *fd)
{
    if (*fd >= 0)
        close(*fd);
    *fd = -1;
}

/* ---- the compilers --------------------------------------------------------------------------- */

static void lend_compilers(struct bench *b)
{
    if (b->turn != NULL && b->turn->after >= 0 && bench_builds_beside(b))
        send(b->turn->after, "", 1, MSG_NOSIGNAL | MSG_DONTWAIT); /* nobody may be there */
}

int bench_build_some(struct bench *b, const struct choice *choices, int count, int ahead,
                     double seconds, struct built *out, struct status *st)
{
    if (count + ahead == 0)
        lend_compilers(b);
    return builder_build_some(&b->builder, choices, count, ahead, clock_seconds() + seconds, out,
                              st);
}

/* ---- the device ------------------------------------------------------------------------------ */

/* Waits a moment for the end of the session before; the byte that it sends is not it. */
static bool has_ended(int before, int moment_ms)
{
    char byte;
    struct pollfd end = {.fd = before, .events = POLLIN};
    return poll(&end, 1, moment_ms) > 0 && read(before, &byte, 1) <= 0;
}

/* Begins what needs no device. */
static int prepare(struct bench *b, const struct choice *choices, int count, struct status *st)
{
    SCOPED struct built *built = mem_alloc((size_t)count + 1, sizeof(*built));
    int result = bench_build_some(b, choices, 0, count, INFINITY, built, st);
    session_begin_early(b);
    return result;
}

int bench_take_turn(struct bench *b, const struct choice *choices, int count, struct status *st)
{
    enum { TICK_MS = 100, SOON_MS = 10 };
    if (!bench_waits(b))
        return 0;
    if (bench_builds_beside(b) && count > 0 && prepare(b, choices, count, st) != 0)
        return -1;
    while (!has_ended(b->turn->before, builder_advance(&b->builder) ? SOON_MS : TICK_MS))
        if (b->stop != NULL && *b->stop != 0)
            return status_set(st, STATUS_INTERRUPTED, "interrupted");
    close_end(&b->turn->before);
    return 0;
}

void bench_end_turn(struct bench *b)
{
    if (b->turn == NULL)
        return;
    client_stop(&b->client);
    close_end(&b->turn->after);
}
