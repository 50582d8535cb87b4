#include "bench/bench_int.h"

#include <poll.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

/* Numbers that a candidate cannot guess. */
static int draw_token(char out[TOKEN_SIZE], struct status *st)
{
    unsigned char bytes[(TOKEN_SIZE - 1) / 2];
    if (getrandom(bytes, sizeof(bytes), 0) != (ssize_t)sizeof(bytes))
        return status_set(st, STATUS_ENVIRONMENT, "cannot draw random numbers: %s",
                          strerror(errno));
    for (size_t i = 0; i < sizeof(bytes); i++)
        snprintf(out + 2 * i, 3, "%02x", bytes[i]);
    return 0;
}

int client_start(struct client *c, enum target_kind target, const char *worker, int mask_fd,
                 struct status *st)
{
    int ends[2];
    if (draw_token(c->token, st) != 0)
        return -1;
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0)
        return status_set(st, STATUS_ENVIRONMENT, "cannot start the worker: %s", strerror(errno));
    SCOPED char *preload = c->openmp != NULL ? buf_text("LD_PRELOAD=%s", c->openmp) : NULL;
    SCOPED char **env = worker_environment(target == TARGET_CPU, preload);
    const char *const argv[] = {worker, "--serve", NULL};
    const struct process_spec spec = {.path = worker,
                                      .argv = argv,
                                      .env = env,
                                      .fds = {ends[1], mask_fd},
                                      .keep_last = true,
                                      .max_memory_bytes = c->max_memory_bytes};
    int result = process_start(&spec, &c->process, st);
    close(ends[1]);
    c->channel = ends[0];
    c->opened = c->dismissed = false;
    c->target = target;
    c->kept_from = 0;
    buf_init(&c->received);
    if (result != 0)
        client_stop(c);
    return result;
}

void client_stop(struct client *c)
{
    if (c->channel < 0)
        return;
    close(c->channel);
    process_release(&c->process);
    buf_release(&c->received);
    c->channel = -1;
}

void client_dismiss(struct client *c)
{
    c->dismissed = c->channel >= 0;
    if (c->dismissed)
        process_dismiss(&c->process);
}

bool client_works(struct client *c)
{
    if (c->channel >= 0 && (c->dismissed || process_ended(&c->process)))
        client_stop(c);
    return c->channel >= 0;
}

/* Appends the last line that the worker printed, if any, to a message. */
static void add_last_line(const struct client *c, struct buf *out)
{
    enum { LONGEST = 200 };
    const char *text = c->process.said.ptr, *end = text + c->process.said.len;
    while (end > text && (end[-1] == '\n' || end[-1] == ' '))
        end--;
    const char *start = end;
    while (start > text && start[-1] != '\n' && end - start < LONGEST)
        start--;
    if (end > start) {
        buf_adds(out, ": ");
        buf_add(out, start, (size_t)(end - start));
    }
}

/* Whether a worker's end is that of a signal by which others end a process.  The sandbox keeps a
 * candidate on a CPU from sending one, and a GPU's candidates run on the GPU. */
static bool was_killed(const struct client *c, int wait_status)
{
    static const int of_others[] = {SIGNALS_OF_OTHERS};
    const bool candidate_cannot = c->target == TARGET_CUDA || (c->kept_from & SANDBOX_CALLS) != 0;
    for (size_t i = 0; i < ARRAY_LEN(of_others) && candidate_cannot; i++)
        if (WIFSIGNALED(wait_status) && WTERMSIG(wait_status) == of_others[i])
            return true;
    return false;
}

static int died(struct client *c, struct status *st)
{
    enum { WAIT_MS = 2000 }; /* for it to end by itself: else SIGKILL would be what is reported */
    for (int i = 0; i < WAIT_MS && !process_ended(&c->process); i++)
        poll(NULL, 0, 1);
    c->killed = process_ended(&c->process) && was_killed(c, c->process.wait_status);
    process_kill(&c->process);
    SCOPED_BUF text = BUF_INIT;
    process_describe_end(c->process.wait_status, &text);
    add_last_line(c, &text);
    return status_set(st, STATUS_LAUNCH, "%s: the worker ended with %s", c->doing, text.ptr);
}

/* Appends to `received` what has come; false once the worker is gone. */
static bool receive(struct client *c)
{
    char chunk[16384];
    ssize_t n = recv(c->channel, chunk, sizeof(chunk), MSG_DONTWAIT);
    if (n > 0)
        buf_add(&c->received, chunk, (size_t)n);
    return n > 0 || (n < 0 && (errno == EAGAIN || errno == EINTR));
}

static void note_doing(struct client *c, const json_t *event)
{
    const char *what = json_string_value(json_object_get(event, "what"));
    json_t *candidate = json_object_get(event, "candidate");
    if (what != NULL)
        snprintf(c->doing, sizeof(c->doing), "%s", what);
    if (json_is_integer(candidate))
        c->candidate = (int)json_integer_value(candidate);
}

/* Takes all whole lines.  1: *reply is set; 0: no reply among them; -1: a line was no message of
 * the worker. */
static int take_lines(struct client *c, struct patience *silence, json_t **reply)
{
    json_t *message;
    int taken;
    while ((taken = message_take(&c->received, &message)) > 0) {
        const char *token = json_string_value(json_object_get(message, "token"));
        if (token == NULL || strcmp(token, c->token) != 0) {
            json_decref(message);
            return -1;
        }
        patience_begin(silence, clock_seconds());
        if (json_is_true(json_object_get(message, "reply"))) {
            *reply = message;
            return 1;
        }
        note_doing(c, message);
        c->event(c->ctx, message);
        json_decref(message);
    }
    return taken;
}

/* A request on its way. */
struct sending {
    const char *line;
    size_t len, sent;
};

/* Hands over what the worker takes without a wait; false once it is gone. */
static bool send_more(const struct client *c, struct sending *s)
{
    if (s->sent == s->len)
        return true;
    ssize_t n = send(c->channel, s->line + s->sent, s->len - s->sent, MSG_NOSIGNAL | MSG_DONTWAIT);
    s->sent += n > 0 ? (size_t)n : 0;
    return n >= 0 || errno == EAGAIN || errno == EINTR;
}

/* The worker may take a request as slowly as it answers it: one that is suspended takes none. */
static int converse(struct client *c, struct sending *request, double most_s, json_t **reply,
                    struct status *st)
{
    enum { TICK_MS = 100, SOON_MS = 10 };
    struct patience silence, all;
    patience_begin(&silence, clock_seconds());
    patience_begin(&all, clock_seconds());
    for (;;) {
        bool alive = send_more(c, request), soon = c->meanwhile != NULL && c->meanwhile(c->ctx);
        const short events = request->sent < request->len ? POLLIN | POLLOUT : POLLIN;
        struct pollfd fds[] = {{.fd = c->channel, .events = events},
                               {.fd = c->process.output, .events = POLLIN}};
        poll(fds, ARRAY_LEN(fds), soon ? SOON_MS : TICK_MS);
        process_drain(&c->process);
        alive = receive(c) && alive;
        int taken = take_lines(c, &silence, reply);
        if (taken > 0)
            return 0;
        if (taken < 0)
            return status_set(st, STATUS_LAUNCH,
                              "%s: the worker sent a malformed message, or the candidate sent one",
                              c->doing);
        if (!alive)
            return died(c, st);
        if (c->stop != NULL && *c->stop != 0)
            return status_set(st, STATUS_INTERRUPTED, "interrupted");
        double now = clock_seconds();
        if (now > c->until)
            return status_set(st, STATUS_TIMEOUT, "%s: the time limit is over", c->doing);
        if (patience_spent(&silence, now) > c->limit_s)
            return status_set(st, STATUS_TIMEOUT, "%s: stopped after %.0f s", c->doing, c->limit_s);
        if (patience_spent(&all, now) > most_s)
            return status_set(st, STATUS_TIMEOUT, "%s: stopped after %.0f s in all", c->doing,
                              most_s);
    }
}

static int exchange(struct client *c, const json_t *request, double most_s, json_t **reply,
                    struct status *st)
{
    size_t len;
    SCOPED char *line = message_line(request, &len);
    if (line == NULL)
        return status_set(st, STATUS_ENVIRONMENT,
                          "cannot write a request to the worker: a text in it is not UTF-8");
    return converse(c, &(struct sending){line, len, 0}, most_s, reply, st);
}

int client_call(struct client *c, const json_t *request, double most_s, json_t **reply,
                struct status *st)
{
    *reply = NULL;
    c->killed = false;
    snprintf(c->doing, sizeof(c->doing), "starting");
    c->candidate = -1;
    if (exchange(c, request, most_s, reply, st) == 0)
        return message_status(*reply, st);
    client_stop(c);
    return -1;
}
