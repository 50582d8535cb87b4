#include "base/base.h"

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

/* Sets the message to an escaped text with another behind it; what does not fit is cut. */
static void set_message(struct status *st, const char *behind, const char *fmt, va_list args)
{
    SCOPED_BUF text = BUF_INIT, escaped = BUF_INIT;
    buf_addv(&text, fmt, args);
    buf_adds(&text, behind);
    utf8_escape(text.ptr, &escaped);
    snprintf(st->message, sizeof(st->message), "%s", escaped.ptr);
    if (escaped.len >= sizeof(st->message)) /* the cut may be within a character */
        utf8_mend(st->message);
}

int status_set(struct status *st, enum status_code code, const char *fmt, ...)
{
    va_list args;
    if (st->code != STATUS_OK)
        return -1;
    st->code = code;
    va_start(args, fmt);
    set_message(st, "", fmt, args);
    va_end(args);
    return -1;
}

int status_prefix(struct status *st, const char *fmt, ...)
{
    char message[sizeof(st->message) + 2];
    va_list args;
    snprintf(message, sizeof(message), ": %s", st->message);
    va_start(args, fmt);
    set_message(st, message, fmt, args);
    va_end(args);
    return -1;
}

int status_unless_missing(const struct status *failed, struct status *st)
{
    if (failed->code == STATUS_OK || failed->code == STATUS_NOT_FOUND)
        return 0;
    *st = *failed;
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
