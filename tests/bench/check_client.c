/* The worker as its parent sees it. */
#include "bench/bench_int.h"
#include "tests/bench/fixture.h"

#include <sys/stat.h>
#include <unistd.h>

static struct status st; /* of the call that a test is about */

static void ignore_event(void *ctx, const json_t *event)
{
    (void)ctx, (void)event;
}

/* A worker that says for ever that it works, as a candidate could make it that has read
 * its memory. */
START_TEST(request_has_a_limit)
{
    struct client c = {.channel = -1, .limit_s = 60, .until = INFINITY, .event = ignore_event};
    char *path = test_path("worker");
    write_text(path,
               "#!/bin/sh\nread -r line <&3\ntoken=${line##*\\\"token\\\":\\\"}\n"
               "token=${token%%\\\"*}\nwhile printf "
               "'{\"event\":\"doing\",\"what\":\"dozing\",\"token\":\"%s\"}\\n' \"$token\" >&3\n"
               "do sleep 0.01; done\n");
    ck_assert_int_eq(chmod(path, 0700), 0);
    OK(client_start(&c, TARGET_CPU, path, -1, &st));
    json_t *reply, *request = json_pack("{s:s, s:s}", "do", "open", "token", c.token);
    FAILS(client_call(&c, request, 1, &reply, &st), STATUS_TIMEOUT,
          "dozing: stopped after 1 s in all");
    ck_assert_ptr_null(reply);
    json_decref(request);
}
END_TEST

/* As JSON has no place for text that is not UTF-8. */
START_TEST(request_that_cannot_be_written_is_not_the_workers_fault)
{
    struct client c = {.channel = -1, .limit_s = 60, .until = INFINITY, .event = ignore_event};
    char *path = test_path("worker");
    write_script(path, "#!/bin/sh\nsleep 60\n");
    OK(client_start(&c, TARGET_CPU, path, -1, &st));
    json_t *reply, *request = json_pack("{s:s}", "do", "\xff");
    FAILS(client_call(&c, request, 60, &reply, &st), STATUS_ENVIRONMENT, "is not UTF-8");
    ck_assert_ptr_null(reply);
    json_decref(request);
}
END_TEST

/* A worker that is suspended takes no request that is larger than the socket's memory. */
START_TEST(limit_holds_while_a_request_is_sent)
{
    enum { LONG = 4 << 20 };
    struct client c = {.channel = -1, .limit_s = 0.5, .until = INFINITY, .event = ignore_event};
    char *path = test_path("worker"), *text = mem_alloc(LONG + 1, 1);
    write_text(path, "#!/bin/sh\nkill -STOP $$\n");
    ck_assert_int_eq(chmod(path, 0700), 0);
    memset(text, 'a', LONG);
    OK(client_start(&c, TARGET_CPU, path, -1, &st));
    json_t *reply, *request = json_pack("{s:s, s:s}", "do", "open", "long", text);
    FAILS(client_call(&c, request, 60, &reply, &st), STATUS_TIMEOUT, "starting: stopped after");
    json_decref(request);
    free(text);
}
END_TEST

/* Neither limit runs on while the parent is suspended, as by Ctrl-Z: its worker then is too.  Here
 * the worker suspends it and goes on, and does not answer at once. */
START_TEST(suspended_parent_waits_as_long_as_another)
{
    struct client c = {.channel = -1, .limit_s = 1, .until = INFINITY, .event = ignore_event};
    char text[512];
    snprintf(text, sizeof(text),
             "#!/bin/sh\nread -r line <&3\ntoken=${line##*\\\"token\\\":\\\"}\n"
             "token=${token%%%%\\\"*}\nkill -STOP %ld; sleep 1.3; kill -CONT %ld; sleep 0.1\n"
             "printf '{\"reply\":true,\"code\":\"ok\",\"message\":\"\",\"token\":\"%%s\"}\\n' "
             "\"$token\" >&3\n",
             (long)getpid(), (long)getpid());
    write_script(test_path("worker"), text);
    OK(client_start(&c, TARGET_CPU, test_path("worker"), -1, &st));
    json_t *reply, *request = json_pack("{s:s, s:s}", "do", "open", "token", c.token);
    OK(client_call(&c, request, 1, &reply, &st));
    json_decref(reply);
    json_decref(request);
    client_stop(&c);
}
END_TEST

/* Verdicts that name no binary of this session, as a candidate may send them. */
static const char *const foreign[] = {"", "0123456789abcdef0123456789abcdef", "../../outside"};

START_TEST(verdict_of_no_binary_is_ignored)
{
    struct binary binary = {.error = -1, .verdict = "00112233445566778899aabbccddeeff"},
                  unnamed = {.error = -1};
    struct binary *list[] = {&binary, &unnamed};
    struct bench b = {.builder = {.binaries = list, .count = 2}};
    struct buf path;
    OK(cache_open(test_path("cache"), &b.cache, &st));
    json_t *event = json_pack("{s:s, s:f}", "verdict", foreign[_i], "error", 1e-6);
    request_event(&b, event);
    json_decref(event);
    ck_assert_double_eq(binary.error, -1);
    ck_assert_double_eq(unnamed.error, -1);
    buf_init(&path);
    cache_path(&b.cache, CACHE_VERDICT, foreign[_i], &path);
    ck_assert(!file_exists(path.ptr));
    buf_release(&path);
    cache_release(&b.cache);
}
END_TEST

START_TEST(verdict_is_kept)
{
    static const char verdict[] = "00112233445566778899aabbccddeeff";
    struct binary binary = {.error = -1, .verdict = "00112233445566778899aabbccddeeff"};
    struct binary *list[] = {&binary};
    struct bench b = {.builder = {.binaries = list, .count = 1}};
    OK(cache_open(test_path("cache"), &b.cache, &st));
    json_t *event = json_pack("{s:s, s:f}", "verdict", verdict, "error", -1.0);
    request_event(&b, event);
    ck_assert(!cache_get(&b.cache, CACHE_VERDICT, verdict, NULL, NULL)); /* no error is below 0 */
    json_object_set_new(event, "error", json_real(1e-6));
    request_event(&b, event);
    ck_assert_double_eq(binary.error, 1e-6);
    ck_assert(cache_get(&b.cache, CACHE_VERDICT, verdict, NULL, NULL));
    json_decref(event);
    cache_release(&b.cache);
}
END_TEST

SUITE("client", test_dir_setup, test_dir_teardown, ONCE(request_has_a_limit),
      ONCE(request_that_cannot_be_written_is_not_the_workers_fault),
      ONCE(limit_holds_while_a_request_is_sent), ONCE(suspended_parent_waits_as_long_as_another),
      LOOP(verdict_of_no_binary_is_ignored, 0, ARRAY_LEN(foreign)), ONCE(verdict_is_kept))
