/* The worker's end of the socket. */
#include "bench/worker/worker_int.h"
#include "tests/suite.h"

#include <sys/socket.h>

/* Whatever an earlier call left in errno. */
TEST(ends_when_its_parent_hangs_up)
{
    int ends[2];
    ck_assert_int_eq(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends), 0);
    close(ends[0]);
    alarm(60);
    errno = EINTR;
    ck_assert_int_eq(worker_serve(ends[1], -1), EXIT_SUCCESS);
    close(ends[1]);
}

TEST(ends_with_a_failure_after_garbage)
{
    int ends[2];
    ck_assert_int_eq(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends), 0);
    ck_assert_int_eq(write(ends[0], "garbage\n", 8), 8);
    ck_assert_int_eq(worker_serve(ends[1], -1), EXIT_FAILURE);
    close(ends[0]);
    close(ends[1]);
}

SUITE("serve", NULL, NULL)
