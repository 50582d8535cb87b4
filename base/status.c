#include "base/base.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

static const char *const names[STATUS_CODE_COUNT] = {
    [STATUS_OK] = "ok",
    [STATUS_USAGE] = "usage",
    [STATUS_ENVIRONMENT] = "environment",
    [STATUS_UNFIT] = "unfit",
    [STATUS_COMPILE] = "compile",
    [STATUS_LAUNCH] = "launch",
    [STATUS_WRONG] = "wrong",
    [STATUS_TIMEOUT] = "timeout",
    [STATUS_DATABASE] = "database",
    [STATUS_MODEL] = "model",
    [STATUS_NOT_FOUND] = "not_found",
    [STATUS_INTERRUPTED] = "interrupted",
};

int status_set(struct status *st, enum status_code code, const char *fmt, ...)
{
    if (st->code != STATUS_OK)
        return -1;
    st->code = code;
    va_list args;
    va_start(args, fmt);
    vsnprintf(st->message, sizeof(st->message), fmt, args);
    va_end(args);
    utf8_mend(st->message);
    return -1;
}

int status_prefix(struct status *st, const char *fmt, ...)
{
    char old[sizeof(st->message)];
    memcpy(old, st->message, sizeof(old));
    va_list args;
    va_start(args, fmt);
    vsnprintf(st->message, sizeof(st->message), fmt, args);
    va_end(args);

    size_t len = strlen(st->message);
    strncat(st->message, ": ", sizeof(st->message) - len - 1);
    len = strlen(st->message);
    strncat(st->message, old, sizeof(st->message) - len - 1);
    utf8_mend(st->message);
    return -1;
}

const char *status_name(enum status_code code)
{
    return names[code];
}

enum status_code status_from_name(const char *name)
{
    int code = 0;
    while (code < STATUS_CODE_COUNT && strcmp(names[code], name) != 0)
        code++;
    return (enum status_code)code;
}

static const char *const trial_names[] = {
    [TRIAL_OK] = "ok", [TRIAL_CENSORED] = "censored", [TRIAL_FAILED] = "failed"};

const char *trial_status_name(enum trial_status status)
{
    return trial_names[status];
}

enum trial_status trial_status_from_name(const char *name)
{
    int status = TRIAL_OK;
    while (status < TRIAL_FAILED && strcmp(trial_names[status], name) != 0)
        status++;
    return (enum trial_status)status;
}
