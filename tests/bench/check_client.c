/* The worker as its parent sees it. */
#include "bench/bench_int.h"
#include "tests/bench/fixture.h"
#include "tests/held_clock.h"

static void ignore_event(void *ctx, const json_t *event)
{
}

/* Once the limits were looked at after a suspension, there is a file. */
static bool note_look(void *ctx)
{
    static int looks;
    if (clock_skipped_s > 0 && ++looks == 2)
        write_text(test_path("looked"), "");
    return false;
}

static struct client c;

/* Starts a script in the worker's place, of which signs of life are expected each limit_s, and asks
 * it to do something within request_s. */
static int ask(const char *script, double limit_s, const char *what, const char *more,
               double request_s)
{
    json_t *reply;
    c = (struct client){.channel = -1,
                        .limit_s = limit_s,
                        .until = INFINITY,
                        .event = ignore_event,
                        .meanwhile = note_look};
    write_script(test_path("worker"), script);
    OK(client_start(&c, TARGET_CPU, test_path("worker"), -1, &st));
    json_auto_t *request = json_pack("{s:s, s:s, s:s}", "do", what, "token", c.token, "more", more);
    int result = client_call(&c, request, request_s, &reply, &st);
    ck_assert_int_eq(reply == NULL, result != 0);
    json_decref(reply);
    return result;
}

#define READ_TOKEN                                                                                 \
    "#!/bin/sh\nread -r line <&3\ntoken=${line##*\\\"token\\\":\\\"}\ntoken=${token%%\\\"*}\n"

/* A worker that says for ever that it works, as a candidate could make it that has read
 * its memory. */
TEST(request_has_a_limit)
{
    char text[512];
    snprintf(text, sizeof(text),
             "%swhile printf '{\"event\":\"doing\",\"what\":\"dozing\",\"token\":\"%%s\"}\\n' "
             "\"$token\" >&3\ndo : >%s; sleep 0.01; done\n",
             READ_TOKEN, test_path("said"));
    clock_await(test_path("said"));
    FAILS(ask(text, 60, "open", "", 1), STATUS_TIMEOUT, "dozing: stopped after 1 s in all");
}

/* A worker that is suspended takes no request that is larger than the socket's memory. */
TEST(limit_holds_while_a_request_is_sent)
{
    enum { LONG = 4 << 20 };
    SCOPED char *text = mem_alloc(LONG + 1, 1);
    memset(text, 'a', LONG);
    FAILS(ask("#!/bin/sh\nkill -STOP $$\n", 0.5, "open", text, 60), STATUS_TIMEOUT,
          "starting: stopped after");
}

static void skip_time(int number)
{
    clock_skipped_s = 1000;
}

/* Neither limit runs on while the parent is suspended, as by Ctrl-Z: its worker then is too.  Here
 * the worker suspends it and goes on, and does not answer at once. */
TEST(suspended_parent_waits_as_long_as_another)
{
    char text[512];
    snprintf(text, sizeof(text),
             "%skill -STOP %ld; kill -CONT %ld; until [ -e %s ]; do sleep 0.01; done\n"
             "printf '{\"reply\":true,\"code\":\"ok\",\"message\":\"\",\"token\":\"%%s\"}\\n' "
             "\"$token\" >&3\n",
             READ_TOKEN, (long)getpid(), (long)getpid(), test_path("looked"));
    signal(SIGCONT, skip_time);
    OK(ask(text, 60, "open", "", 60));
    client_stop(&c);
}

/* Verdicts of one binary, of none of this session, as a candidate may send them, and with an error
 * that cannot be. */
#define OWN "00112233445566778899aabbccddeeff"
static const struct {
    const char *of;
    double error;
    bool kept;
} verdicts[] = {{OWN, 1e-6, true},
                {OWN, -1, false},
                {"", 1e-6, false},
                {"0123456789abcdef0123456789abcdef", 1e-6, false},
                {"../../outside", 1e-6, false}};

TEST_LOOP(verdict_of_a_binary_is_kept, 0, ARRAY_LEN(verdicts))
{
    struct binary binary = {.error = -1, .verdict = OWN}, unnamed = {.error = -1};
    struct binary *list[] = {&binary, &unnamed};
    struct bench b = {.builder = {.binaries = list, .count = 2}};
    SCOPED_BUF path = BUF_INIT;
    OK(cache_open(test_path("cache"), &b.cache, &st));
    json_auto_t *event = json_pack("{s:s, s:f, s:s}", "verdict", verdicts[_i].of, "error",
                                   verdicts[_i].error, "right", OWN "longer than a hash is");
    request_event(&b, event);
    ck_assert_double_eq(binary.error, verdicts[_i].kept ? verdicts[_i].error : -1);
    ck_assert_str_eq(binary.right, verdicts[_i].kept ? OWN : "");
    ck_assert_double_eq(unnamed.error, -1);
    cache_path(&b.cache, CACHE_VERDICT, verdicts[_i].of, &path);
    ck_assert_int_eq(file_exists(path.ptr), verdicts[_i].kept);
    cache_release(&b.cache);
}

SUITE("client", test_dir_setup, test_dir_teardown)
