#include "cmd/cmd.h"

#include <stdlib.h>

json_t *json_text(const char *text)
{
    char *copy = utf8_mend(mem_strdup(text));
    json_t *value = json_string(copy);
    free(copy);
    return value;
}

/* Jansson escapes the control characters of ASCII but DEL; C1 is U+0080..U+009F, c2 80..c2 9f. They
 * occur within strings alone. */
void json_add(const json_t *value, size_t flags, struct buf *out)
{
    char *text = json_dumps(value, flags);
    for (const char *at = text; at != NULL && *at != '\0'; at++) {
        bool c1 = at[0] == '\xc2' && (unsigned char)at[1] <= 0x9f;
        at += c1;
        if (c1 || *at == 0x7f)
            buf_addf(out, "\\u%04x", (unsigned char)*at);
        else
            buf_add(out, at, 1);
    }
    free(text);
}
