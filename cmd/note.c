#include "cmd/cmd.h"

void note(const struct options *o, const char *fmt, ...)
{
    va_list args;
    SCOPED_BUF text = BUF_INIT, escaped = BUF_INIT;
    va_start(args, fmt);
    buf_addv(&text, fmt, args);
    va_end(args);
    utf8_escape(text.ptr, &escaped);
    progress_note(options_has(o, OPT(QUIET)), escaped.ptr);
}

void note_line(void *options, const char *line)
{
    note(options, "%s", line);
}
