#include "search/search_int.h"

#include <stdarg.h>
#include <stdio.h>

static void speak(void (*to)(void *ctx, const char *line), void *ctx, const char *fmt, va_list args)
{
    char line[1200];
    vsnprintf(line, sizeof(line), fmt, args);
    to(ctx, line);
}

void tuner_say(const struct tuner *t, const char *fmt, ...)
{
    va_list args;
    va_start(args, fmt);
    if (t->o->say != NULL)
        speak(t->o->say, t->o->ctx, fmt, args);
    va_end(args);
}

void tuner_tick(const struct tuner *t, const char *fmt, ...)
{
    va_list args;
    va_start(args, fmt);
    if (t->o->tick != NULL)
        speak(t->o->tick, t->o->ctx, fmt, args);
    va_end(args);
}

static void say_once(const struct tuner *t,
                     void (*text)(const struct disturbance *d, struct buf *out), bool *said)
{
    struct disturbance d = bench_disturbance(t->bench);
    struct buf line;
    buf_init(&line);
    text(&d, &line);
    if (line.len > 0 && !*said) {
        tuner_say(t, "note: %s", line.ptr);
        *said = true;
    }
    buf_release(&line);
}

void say_sharing(struct tuner *t)
{
    say_once(t, disturbance_sharing_text, &t->said_sharing);
}

void say_disturbance(struct tuner *t)
{
    bool said = false;
    say_sharing(t);
    say_once(t, disturbance_slowdown_text, &said);
}
