/* The worker as its parent sees it. */
#include "bench/bench_int.h"
#include "tests/bench/fixture.h"

#include <sys/stat.h>

static struct status st; /* of the call that a test is about */

static void ignore_event(void *ctx, const json_t *event)
{
    (void)ctx, (void)event;
}

/* A worker that says for ever that it works, as a candidate could make it that has read its memory.
 */
START_TEST(request_has_a_limit)
{
    struct client c = {.channel = -1, .limit_s = 60, .event = ignore_event};
    char *path = test_path("worker");
    write_text(path,
               "#!/bin/sh\nread -r line <&3\ntoken=${line##*\\\"token\\\":\\\"}\n"
               "token=${token%%\\\"*}\nwhile printf "
               "'{\"event\":\"doing\",\"what\":\"dozing\",\"token\":\"%s\"}\\n' \"$token\" >&3\n"
               "do sleep 0.01; done\n");
    ck_assert_int_eq(chmod(path, 0700), 0);
    OK(client_start(&c, TARGET_CPU, path, -1, &st));
    json_t *reply, *request = json_pack("{s:s, s:s}", "do", "open", "token", c.token);
    FAILS(client_call(&c, request, 0.5, &reply, &st), STATUS_TIMEOUT,
          "dozing: stopped after 0 s in all");
    ck_assert_ptr_null(reply);
    json_decref(request);
}
END_TEST

SUITE("client", test_dir_setup, test_dir_teardown, ONCE(request_has_a_limit))
