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
    if (t->o->say)
        speak(t->o->say, t->o->ctx, fmt, args);
    va_end(args);
}

void tuner_tick(const struct tuner *t, const char *fmt, ...)
{
    va_list args;
    va_start(args, fmt);
    if (t->o->tick)
        speak(t->o->tick, t->o->ctx, fmt, args);
    va_end(args);
}
