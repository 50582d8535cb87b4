#include "cmd/cmd.h"

json_t *json_text(const char *text)
{
    SCOPED char *copy = utf8_mend(mem_strdup(text));
    return json_string(copy);
}

json_t *json_text_or_null(const char *text)
{
    return text != NULL && text[0] != '\0' ? json_text(text) : json_null();
}

/* \u202e; beyond U+FFFF two such escapes, as UTF-16 has it. */
static void add_escape(uint32_t number, struct buf *out)
{
    if (number > 0xffff) {
        number -= 0x10000;
        buf_addf(out, "\\u%04x", 0xd800 + (unsigned)(number >> 10));
        number = 0xdc00 + (number & 0x3ff);
    }
    buf_addf(out, "\\u%04x", (unsigned)number);
}

/* Jansson escapes the control characters of ASCII but DEL, and breaks lines between members.  What
 * else a terminal must not get occurs within strings alone. */
void json_add(const json_t *value, size_t flags, struct buf *out)
{
    SCOPED char *text = json_dumps(value, flags);
    for (const char *at = text; at != NULL && *at != '\0'; at++) {
        uint32_t number;
        bool plain = *at == '\n' || (*at >= ' ' && *at <= '~'); /* as nearly all is */
        int bytes = plain ? 0 : utf8_hidden(at, &number);
        if (bytes > 0) {
            add_escape(number, out);
            at += bytes - 1;
        } else {
            buf_add(out, at, 1);
        }
    }
}
