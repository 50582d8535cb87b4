#include "cmd/cmd.h"

#include <fcntl.h>
#include <pthread.h>
#include <sys/ioctl.h>
#include <unistd.h>

/* How often the line is drawn, and how often a step is written as an event. */
#define DRAW_EVERY_S  0.25
#define EVENT_EVERY_S 0.1

/* One command runs at a time, so there is one line. */
static struct {
    pthread_mutex_t lock;   /* of all that follows */
    pthread_cond_t changed; /* running or ticks */
    pthread_t ticker;
    bool running; /* the ticker; it shows the line until this is false */
    bool ticks;   /* it has begun */
    bool drawn;   /* a terminal shows the line now */
    struct progress line;
    int events; /* -1: none are written */
    const char *events_path;
    int events_error; /* of the first event that could not be written; 0: none */
    double event_s;   /* when the last step was written */
    char event_phase[sizeof(((struct progress_phase *)NULL)->name)];
} shown = {.lock = PTHREAD_MUTEX_INITIALIZER, .changed = PTHREAD_COND_INITIALIZER, .events = -1};

/* ---- events ---------------------------------------------------------------------------------- */

/* Writes an event and takes it over.  A reader that is gone ends the events, not the command. */
static void write_event(const char *event, double now, json_t *members)
{
    enum { DIGITS = 9 };
    json_auto_t *object =
        json_pack("{ss sf}", "event", event, "elapsed_s", now - shown.line.start_s);
    json_object_update(object, members);
    json_decref(members);
    SCOPED_BUF line = BUF_INIT;
    json_add(object, JSON_COMPACT | JSON_REAL_PRECISION(DIGITS), &line);
    buf_adds(&line, "\n");
    if (file_write_all(shown.events, line.ptr, line.len) != 0) {
        shown.events_error = errno;
        close(shown.events);
        shown.events = -1;
    }
}

static bool writes_events(void)
{
    return shown.events >= 0;
}

static json_t *phase_json(const struct progress_phase *p)
{
    bool counted = p->total > 0, started = counted || p->done > 0;
    return json_pack(
        "{ss so so so}", "phase", p->name, "done", started ? json_integer(p->done) : json_null(),
        "total", counted ? json_integer(p->total) : json_null(), "left_s", json_number(p->left_s));
}

/* Steps may follow each other faster than anybody reads: the steps of a phase are thinned out. */
static void write_step(double now)
{
    const struct progress_phase *work = &shown.line.work, *part = &shown.line.part;
    bool same = strcmp(work->name, shown.event_phase) == 0;
    if (!writes_events() || (same && now - shown.event_s < EVENT_EVERY_S))
        return;
    shown.event_s = now;
    memcpy(shown.event_phase, work->name, sizeof(work->name));
    json_t *step = phase_json(work);
    json_object_set_new(step, "part", part->name[0] != '\0' ? phase_json(part) : json_null());
    write_event("step", now, step);
}

/* An event has the time that was measured, and is stored. */
static json_t *plan_json(const struct observation *o)
{
    return o == NULL ? json_null()
                     : json_pack("{si ss so}", "value", (int)plan_value(o->plan), "status",
                                 trial_status_name(o->outcome.status), "ms",
                                 json_number(o->outcome.ms * (1 + o->outcome.drift)));
}

/* ---- the line -------------------------------------------------------------------------------- */

static void erase(void)
{
    if (shown.drawn)
        fputs("\r\033[K", stderr);
    shown.drawn = false;
}

/* Columns that the line may take: one that is full would wrap. */
static int width(void)
{
    enum { USUAL = 80 };
    struct winsize size;
    bool known = ioctl(STDERR_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 1;
    return (known ? size.ws_col : USUAL) - 1;
}

static void draw(void)
{
    SCOPED_BUF line = BUF_INIT;
    if (progress_line(&shown.line, clock_seconds(), &line)) {
        erase();
        if (shown.line.terminal)
            fprintf(stderr, "%.*s", width(), line.ptr);
        else
            fprintf(stderr, "fuseplan: %s\n", line.ptr);
        shown.drawn = shown.line.terminal;
        fflush(stderr);
    }
}

static void *tick(void *unused)
{
    pthread_mutex_lock(&shown.lock);
    shown.ticks = true;
    pthread_cond_signal(&shown.changed);
    while (shown.running) {
        const struct timespec until = clock_after(DRAW_EVERY_S);
        pthread_cond_clockwait(&shown.changed, &shown.lock, CLOCK_MONOTONIC, &until);
        if (shown.running)
            draw();
    }
    pthread_mutex_unlock(&shown.lock);
    return unused;
}

static void hold_ticker(void)
{
    pthread_mutex_lock(&shown.lock);
}

static void let_ticker_go(void)
{
    pthread_mutex_unlock(&shown.lock);
}

/* The signals are for the thread that works.  Without a ticker there is no line.
 *
 * A child of fork() has no ticker, but a copy of each lock that the ticker held, of the allocator
 * for example, and would wait for it for ever.  So a fork waits until the ticker has begun, and
 * until it has drawn its line. */
static void start_ticker(void)
{
    sigset_t all, before;
    pthread_atfork(hold_ticker, let_ticker_go, let_ticker_go);
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    pthread_mutex_lock(&shown.lock);
    shown.running = true;
    shown.running = pthread_create(&shown.ticker, NULL, tick, NULL) == 0;
    while (shown.running && !shown.ticks)
        pthread_cond_wait(&shown.changed, &shown.lock);
    pthread_mutex_unlock(&shown.lock);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
}

/* ---- a command ------------------------------------------------------------------------------- */

static int open_events(const char *path, struct status *st)
{
    if (path == NULL)
        return 0;
    signal(SIGPIPE, SIG_IGN); /* a reader may leave before the end */
    shown.events_path = path;
    if (strcmp(path, "-") == 0)
        shown.events = fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, STDERR_FILENO + 1);
    else if ((shown.events = open(path, O_WRONLY | O_TRUNC | O_CLOEXEC)) < 0 && errno == ENOENT)
        shown.events = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
    if (shown.events >= 0)
        return 0;
    return status_set(st, STATUS_USAGE, "--events: cannot write '%s': %s", path,
                      errno == EEXIST ? FILE_DANGLES : strerror(errno));
}

int progress_begin(const struct options *o, const char *command, struct status *st)
{
    const char *terminal = getenv("TERM");
    bool draws = isatty(STDERR_FILENO) && terminal != NULL && strcmp(terminal, "dumb") != 0;
    double now = clock_seconds();
    progress_init(&shown.line, draws, command, now);
    if (open_events(o->events, st) != 0)
        return -1;
    char utc[CLOCK_UTC_SIZE];
    if (writes_events())
        write_event("start", now,
                    json_pack("{ss ss ss}", "command", command, "version", FUSEPLAN_VERSION,
                              "started_utc", clock_utc(utc)));
    if (!options_has(o, OPT(QUIET)))
        start_ticker();
    return 0;
}

void progress_hide(void)
{
    pthread_mutex_lock(&shown.lock);
    bool running = shown.running;
    shown.running = false;
    erase();
    pthread_cond_signal(&shown.changed);
    pthread_mutex_unlock(&shown.lock);
    if (running)
        pthread_join(shown.ticker, NULL);
}

int progress_end(int exit_status, struct status *st)
{
    progress_hide();
    if (writes_events())
        write_event("end", clock_seconds(), json_pack("{si}", "exit_status", exit_status));
    if (writes_events())
        close(shown.events);
    shown.events = -1;
    return shown.events_error == 0
               ? 0
               : status_set(st, STATUS_ENVIRONMENT, "--events: cannot write '%s': %s",
                            shown.events_path, strerror(shown.events_error));
}

/* ---- what the work says ---------------------------------------------------------------------- */

void progress_step(void *ctx, const struct step *step)
{
    (void)ctx;
    double now = clock_seconds();
    pthread_mutex_lock(&shown.lock);
    shown.line.best[0] = '\0'; /* of a search that is over */
    progress_work(&shown.line, step, now);
    write_step(now);
    pthread_mutex_unlock(&shown.lock);
}

void progress_detail(void *ctx, const struct step *step)
{
    (void)ctx;
    double now = clock_seconds();
    pthread_mutex_lock(&shown.lock);
    progress_part(&shown.line, step, now);
    write_step(now);
    pthread_mutex_unlock(&shown.lock);
}

/* The ratio is of times that were not taken side by side: "~". */
static void describe_best(const struct tune_state *s, char *out, size_t size)
{
    const struct observation *best = s->best, *other = s->baseline;
    int n = best == NULL ? 0
                         : snprintf(out, size, "best %u %.*f ms", plan_value(best->plan),
                                    ms_decimals(best->outcome.ms), best->outcome.ms);
    if (best != NULL && other != NULL && !plan_equal(best->plan, other->plan))
        snprintf(out + n, size - (size_t)n, ", ~%.2fx %s%u", other->outcome.ms / best->outcome.ms,
                 plan_word(plan_value(other->plan)), plan_value(other->plan));
}

void progress_search(void *ctx, const struct tune_state *s)
{
    char best[sizeof(shown.line.best)] = "";
    (void)ctx;
    describe_best(s, best, sizeof(best));
    double now = clock_seconds();
    pthread_mutex_lock(&shown.lock);
    memcpy(shown.line.best, best, sizeof(best));
    progress_work(&shown.line, &s->step, now);
    write_step(now);
    if (s->latest != NULL && writes_events())
        write_event("plan", now,
                    json_pack("{so so so}", "plan", plan_json(s->latest), "best",
                              plan_json(s->best), "baseline", plan_json(s->baseline)));
    pthread_mutex_unlock(&shown.lock);
}

void progress_row(const char *row, const char *state, const char *target)
{
    pthread_mutex_lock(&shown.lock);
    if (writes_events())
        write_event("row", clock_seconds(),
                    json_pack("{ss ss ss}", "row", row, "state", state, "target", target));
    pthread_mutex_unlock(&shown.lock);
}

void progress_note(bool quiet, const char *line)
{
    pthread_mutex_lock(&shown.lock);
    erase();
    if (!quiet)
        fprintf(stderr, "fuseplan: %s\n", line);
    if (writes_events())
        write_event("note", clock_seconds(), json_pack("{ss}", "text", line));
    pthread_mutex_unlock(&shown.lock);
}
