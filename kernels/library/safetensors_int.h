/* What the files of the readers share: safetensors.c, and the JSON of headers and of indexes. */
#ifndef SAFETENSORS_INT_H
#define SAFETENSORS_INT_H

#include "safetensors.h"

#include <stdarg.h>
#include <stdbool.h>
#include <string.h>

/* ---- JSON ------------------------------------------------------------------------------------ */

/* What remains to be read. */
struct cursor {
    const char *at, *end;
};

struct text {
    const char *at; /* not ended by NUL; as in the file, escapes and all */
    size_t len;
};

static inline void skip_blanks(struct cursor *c)
{
    while (c->at < c->end && (*c->at == ' ' || *c->at == '\n' || *c->at == '\t' || *c->at == '\r'))
        c->at++;
}

/* Skips blanks, and `wanted` if it is next; says whether it was. */
static inline bool accept_next(struct cursor *c, char wanted)
{
    skip_blanks(c);
    if (c->at == c->end || *c->at != wanted)
        return false;
    c->at++;
    return true;
}

/* A string; *out is what stands between the quotes. */
static inline bool read_string(struct cursor *c, struct text *out)
{
    if (!accept_next(c, '"'))
        return false;
    out->at = c->at;
    while (c->at < c->end && *c->at != '"') {
        bool escape = *c->at == '\\' && ++c->at < c->end;
        if (c->at == c->end || (unsigned char)*c->at < ' ' ||
            (escape && strchr("\"\\/bfnrtu", *c->at) == NULL))
            return false;
        c->at++;
    }
    out->len = (size_t)(c->at - out->at);
    return accept_next(c, '"');
}

/* "key": */
static inline bool read_key(struct cursor *c, struct text *out)
{
    return read_string(c, out) && accept_next(c, ':');
}

static inline bool text_is(struct text t, const char *what)
{
    return t.len == strlen(what) && memcmp(t.at, what, t.len) == 0;
}

/* ---- safetensors.c --------------------------------------------------------------------------- */

/* A tensor's name for "%.*s". */
#define NAME(t) (int)((t)->name_len < 120 ? (t)->name_len : 120), (t)->name

/* Sets an error, in which bytes of names that no terminal should get become '?'.  Returns -1. */
int safetensors_error(char *error, size_t room, const char *format, va_list list)
    __attribute__((format(printf, 3, 0)));
int safetensors_refuse(struct safetensors *f, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* {"key": "text", ...}; values may be words too, as numbers are, if `words` is set. */
bool safetensors_skip_object(struct cursor *c, bool words);

/* Null if there is no tensor of this name. */
const struct safetensor *safetensors_find_text(const struct safetensors *f, struct text name);

/* Sorts the tensors by name, and refuses a name that is there twice.  0 or -1. */
int safetensors_sort(struct safetensors *f);

#endif
