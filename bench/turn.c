#include "bench/bench_int.h"

#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

/* ---- the compilers --------------------------------------------------------------------------- */

static void lend_compilers(struct bench *b)
{
    if (b->turn != NULL && b->turn->fd >= 0 && bench_builds_beside(b))
        send(b->turn->fd, "", 1, MSG_NOSIGNAL | MSG_DONTWAIT); /* nobody may be there */
}

int session_hurry(struct bench *b)
{
    const int usual = b->toolchain.niceness;
    if (b->shuffles == 0 && !bench_waits(b))
        b->toolchain.niceness = 0;
    return usual;
}

/* Starts compilers for what is wanted now. */
static int begin_first(struct bench *b, const struct choice *choices, int count, struct status *st)
{
    SCOPED struct built *built = mem_alloc((size_t)count + 1, sizeof(*built));
    const int usual = session_hurry(b);
    int result = 0;
    if (b->toolchain.niceness != usual)
        result = builder_build_some(&b->builder, choices, 0, count, INFINITY, built, st);
    b->toolchain.niceness = usual;
    return result;
}

int bench_build_some(struct bench *b, const struct choice *choices, int count, int ahead,
                     double seconds, struct built *out, struct status *st)
{
    if (begin_first(b, choices, count, st) != 0)
        return -1;
    int result =
        builder_build_some(&b->builder, choices, count, ahead, clock_seconds() + seconds, out, st);
    if (count + ahead == 0 || b->builder.running == 0)
        lend_compilers(b);
    return result;
}

/* ---- the device ------------------------------------------------------------------------------ */

/* Waits a moment for the turn. */
static bool has_come(struct turn *turn, int moment_ms)
{
    char byte;
    struct pollfd end = {.fd = turn->fd, .events = POLLIN};
    turn->waits = poll(&end, 1, moment_ms) <= 0 || read(turn->fd, &byte, 1) > 0;
    return !turn->waits;
}

static int wait_for_turn(struct bench *b, struct status *st)
{
    enum { TICK_MS = 100, SOON_MS = 10 };
    for (bool built = false; !has_come(b->turn, built ? TICK_MS : SOON_MS);) {
        if (b->stop != NULL && *b->stop != 0)
            return status_set(st, STATUS_INTERRUPTED, "interrupted");
        if (!builder_advance(&b->builder) && !built) {
            lend_compilers(b);
            built = true;
        }
    }
    return 0;
}

int bench_take_turn(struct bench *b, const struct choice *choices, int count, struct status *st)
{
    enum { NICENESS = 19 }; /* the compilers of the session that has the turn come first */
    SCOPED struct built *built = mem_alloc((size_t)count + 1, sizeof(*built));
    const int usual = b->toolchain.niceness;
    int result = 0;
    if (!bench_waits(b) || has_come(b->turn, 0))
        return 0;
    if (bench_builds_beside(b)) {
        b->toolchain.niceness = NICENESS;
        result = builder_build_some(&b->builder, choices, 0, count, INFINITY, built, st);
        session_begin_early(b);
    }
    if (result == 0)
        result = wait_for_turn(b, st);
    b->turn_s = clock_seconds();
    b->toolchain.niceness = usual;
    return result;
}

void bench_end_turn(struct bench *b)
{
    client_dismiss(&b->client);
    if (b->turn == NULL)
        return;
    client_stop(&b->client);
    if (b->turn->fd >= 0)
        close(b->turn->fd);
    b->turn->fd = -1;
}
