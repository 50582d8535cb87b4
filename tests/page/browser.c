#include "tests/page/browser.h"
#include "tests/suite.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

enum { FROM_US = 3, TO_US = 4 }; /* the descriptors of --remote-debugging-pipe */
enum { DEADLINE_MS = 60000 };

const char *browser_program(void)
{
    static char found[4096];
    const char *named = getenv("CHROMIUM"), *path = getenv("PATH");
    char *copy = mem_strdup(path != NULL ? path : ""), *rest = copy, *dir;
    if (named != NULL)
        snprintf(found, sizeof(found), "%s", named);
    while (named == NULL && (dir = strsep(&rest, ":")) != NULL) {
        snprintf(found, sizeof(found), "%s/chromium", dir);
        if (access(found, X_OK) == 0)
            break;
        found[0] = '\0';
    }
    free(copy);
    return found[0] != '\0' ? found : NULL;
}

/* ---- the process ----------------------------------------------------------------------------- */

static void run(const char *program, const char *profile, int from_us, int to_us)
{
    int quiet = open("/dev/null", O_RDWR);
    dup2(quiet, STDIN_FILENO);
    dup2(quiet, STDOUT_FILENO);
    dup2(quiet, STDERR_FILENO);
    /* Above 4 first: the one may have the other's number. */
    int in = fcntl(from_us, F_DUPFD, 10), out = fcntl(to_us, F_DUPFD, 10);
    dup2(in, FROM_US);
    dup2(out, TO_US);
    setsid(); /* so that browser_stop() ends its helpers too */
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    execl(program, program, "--headless=new", "--remote-debugging-pipe", "--no-sandbox",
          "--disable-gpu", "--disable-dev-shm-usage", "--no-first-run", "--hide-scrollbars",
          "--force-color-profile=srgb", profile, "about:blank", (char *)NULL);
    _exit(127);
}

static void attach(struct browser *b)
{
    json_t *result = browser_call(b, "Target.getTargets", json_object()), *target;
    size_t i;
    const char *id = NULL;
    json_array_foreach(json_object_get(result, "targetInfos"), i, target)
    {
        if (strcmp(json_string_value(json_object_get(target, "type")), "page") == 0)
            id = json_string_value(json_object_get(target, "targetId"));
    }
    ck_assert_ptr_nonnull(id);
    json_t *session = browser_call(b, "Target.attachToTarget",
                                   json_pack("{ss sb}", "targetId", id, "flatten", 1));
    snprintf(b->session, sizeof(b->session), "%s",
             json_string_value(json_object_get(session, "sessionId")));
    json_decref(session);
    json_decref(result);
}

void browser_start(struct browser *b, const char *program, const char *dir)
{
    int down[2], up[2];
    char profile[4200];
    *b = (struct browser){.events = json_array()};
    buf_init(&b->input);
    snprintf(profile, sizeof(profile), "--user-data-dir=%s", dir);
    ck_assert_int_eq(pipe2(down, O_CLOEXEC), 0);
    ck_assert_int_eq(pipe2(up, O_CLOEXEC), 0);
    b->pid = fork();
    ck_assert_int_ge(b->pid, 0);
    if (b->pid == 0)
        run(program, profile, down[0], up[1]);
    close(down[0]);
    close(up[1]);
    b->to = down[1];
    b->from = up[0];
    attach(b);
    static const char *const domains[] = {"Page.enable", "Runtime.enable", "Network.enable",
                                          "Log.enable"};
    for (size_t i = 0; i < ARRAY_LEN(domains); i++)
        json_decref(browser_call(b, domains[i], json_object()));
}

void browser_stop(struct browser *b)
{
    kill(-b->pid, SIGKILL);
    waitpid(b->pid, NULL, 0);
    close(b->to);
    close(b->from);
    buf_release(&b->input);
    json_decref(b->events);
}

/* ---- messages -------------------------------------------------------------------------------- */

/* The next message; the caller releases it. */
static json_t *receive(struct browser *b)
{
    char chunk[65536];
    const char *end;
    while ((end = memchr(b->input.ptr, '\0', b->input.len)) == NULL) {
        struct pollfd ready = {.fd = b->from, .events = POLLIN};
        ck_assert_msg(poll(&ready, 1, DEADLINE_MS) == 1, "the browser says nothing for a minute");
        ssize_t n = read(b->from, chunk, sizeof(chunk));
        ck_assert_msg(n > 0, "the browser has ended");
        buf_add(&b->input, chunk, (size_t)n);
    }
    size_t len = (size_t)(end - b->input.ptr) + 1;
    json_t *message = json_loads(b->input.ptr, 0, NULL);
    ck_assert_ptr_nonnull(message);
    struct buf rest;
    buf_init(&rest);
    buf_add(&rest, b->input.ptr + len, b->input.len - len);
    buf_release(&b->input);
    b->input = rest;
    return message;
}

json_t *browser_call(struct browser *b, const char *method, json_t *params)
{
    json_t *call = json_pack("{si ss so}", "id", ++b->last_id, "method", method, "params", params);
    if (b->session[0] != '\0')
        json_object_set_new(call, "sessionId", json_string(b->session));
    char *text = json_dumps(call, JSON_COMPACT);
    size_t len = strlen(text) + 1;
    ck_assert_int_eq(write(b->to, text, len), (ssize_t)len);
    free(text);
    json_decref(call);
    for (;;) {
        json_t *message = receive(b);
        if (json_integer_value(json_object_get(message, "id")) != b->last_id) {
            json_array_append_new(b->events, message);
            continue;
        }
        json_t *result = json_incref(json_object_get(message, "result"));
        json_t *error = json_object_get(json_object_get(message, "error"), "message");
        ck_assert_msg(result != NULL, "%s: %s", method, json_string_value(error));
        json_decref(message);
        return result;
    }
}

static bool is_event(const json_t *message, const char *method)
{
    const char *name = json_string_value(json_object_get(message, "method"));
    return name != NULL && strcmp(name, method) == 0;
}

json_t *browser_wait(struct browser *b, const char *method)
{
    for (size_t i = 0;; i++) {
        if (i == json_array_size(b->events))
            json_array_append_new(b->events, receive(b));
        json_t *message = json_array_get(b->events, i);
        if (is_event(message, method)) {
            json_t *params = json_incref(json_object_get(message, "params"));
            json_array_remove(b->events, i);
            return params;
        }
    }
}

int browser_count(const struct browser *b, const char *method)
{
    size_t i;
    json_t *message;
    int count = 0;
    json_array_foreach(b->events, i, message) count += is_event(message, method);
    return count;
}

/* ---- the page -------------------------------------------------------------------------------- */

void browser_open(struct browser *b, const char *path)
{
    char url[4200];
    snprintf(url, sizeof(url), "file://%s", path);
    json_array_clear(b->events);
    json_decref(browser_call(b, "Page.navigate", json_pack("{ss}", "url", url)));
    json_decref(browser_wait(b, "Page.loadEventFired"));
}

json_t *browser_value(struct browser *b, const char *expression)
{
    json_t *answer = browser_call(
        b, "Runtime.evaluate",
        json_pack("{ss sb sb}", "expression", expression, "returnByValue", 1, "awaitPromise", 1));
    char *text = json_dumps(json_object_get(answer, "exceptionDetails"), JSON_ENCODE_ANY);
    ck_assert_msg(text == NULL, "%s: %s", expression, text);
    json_t *value = json_incref(json_object_get(json_object_get(answer, "result"), "value"));
    json_decref(answer);
    return value;
}

static void mouse(struct browser *b, const char *type, double x, double y, int buttons)
{
    json_decref(
        browser_call(b, "Input.dispatchMouseEvent",
                     json_pack("{ss sf sf ss si si}", "type", type, "x", x, "y", y, "button",
                               strcmp(type, "mouseMoved") == 0 ? "none" : "left", "buttons",
                               buttons, "clickCount", strcmp(type, "mouseMoved") == 0 ? 0 : 1)));
}

void browser_move(struct browser *b, double x, double y)
{
    mouse(b, "mouseMoved", x, y, 0);
}

void browser_click(struct browser *b, double x, double y)
{
    mouse(b, "mousePressed", x, y, 1);
    mouse(b, "mouseReleased", x, y, 0);
}

void browser_key(struct browser *b, const char *key)
{
    static const char *const types[] = {"keyDown", "keyUp"};
    for (size_t i = 0; i < ARRAY_LEN(types); i++)
        json_decref(
            browser_call(b, "Input.dispatchKeyEvent",
                         json_pack("{ss ss ss}", "type", types[i], "key", key, "code", key)));
}
