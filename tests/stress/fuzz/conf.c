/* A settings file. */
#include "tests/stress/fuzz/fuzz.h"

/* Appends what is read as the same entry. */
static void write_entry(const struct conf_entry *e, struct buf *out)
{
    buf_addf(out, "\n%s", e->key);
    if (e->value == NULL)
        return;
    buf_adds(out, " = \"");
    for (const char *c = e->value; *c != '\0'; c++)
        if (*c == '\n')
            buf_adds(out, "\\n");
        else
            buf_addf(out, "%s%c", *c == '"' || *c == '\\' ? "\\" : "", *c);
    buf_adds(out, "\"");
}

static bool same(const char *a, const char *b)
{
    return a == NULL || b == NULL ? a == b : strcmp(a, b) == 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct conf c, again;
    struct status st = STATUS_INIT;
    SCOPED_BUF text = BUF_INIT;
    buf_add(&text, data, size);
    int result = conf_parse("conf", &text, "fuseplan", &c, &st);
    fuzz_require(result == 0 || st.message[0] != '\0', "a file is refused with a reason");
    buf_reset(&text);
    buf_adds(&text, "[fuseplan]");
    for (int i = 0; i < c.count && result == 0; i++) {
        fuzz_require(c.items[i].line >= 1 && c.items[i].line <= (int)size + 1 &&
                         (i == 0 || c.items[i].line >= c.items[i - 1].line),
                     "lines follow each other");
        write_entry(&c.items[i], &text);
    }
    if (result == 0) {
        fuzz_require(conf_parse("again", &text, "fuseplan", &again, &st) == 0 &&
                         again.count == c.count,
                     "what was read can be written and read again");
        for (int i = 0; i < c.count; i++)
            fuzz_require(strcmp(again.items[i].key, c.items[i].key) == 0 &&
                             same(again.items[i].value, c.items[i].value),
                         "what was read is what is read again");
        conf_release(&again);
    }
    conf_release(&c);
    return 0;
}
