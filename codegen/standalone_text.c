/* What the files of an exported library have in common: its name in them, lists of numbers, and
 * whether they need cuBLASLt. */
#include "codegen/codegen_int.h"

#include <ctype.h>

size_t add_library_word(const char *name, const char *at, struct buf *out)
{
    static const char lower[] = STANDALONE_NAME, upper[] = "ENCODER";
    static const char *const theirs[] = {
        "encoder.layer", "model.encoder", "encoder.albert", "encoder.block",    "encoder.conv",
        "encoder.embed", "encoder.final", "encoder.pos",    "encoder.relative", "encoder_attn"};
    bool capitals = strncmp(at, upper, strlen(upper)) == 0;
    for (size_t i = 0; i < ARRAY_LEN(theirs); i++)
        if (strncmp(at, theirs[i], strlen(theirs[i])) == 0) {
            buf_adds(out, theirs[i]);
            return strlen(theirs[i]);
        }
    if (!capitals && strncmp(at, lower, strlen(lower)) != 0)
        return 0;
    for (; *name != '\0'; name++) {
        char letter = capitals ? (char)toupper((unsigned char)*name) : *name;
        buf_add(out, &letter, 1);
    }
    return strlen(lower);
}

void add_library_name(const struct standalone_spec *s, bool capitals, struct buf *out)
{
    add_library_word(s->name, capitals ? "ENCODER" : STANDALONE_NAME, out);
}

void add_library_symbol(const struct standalone_spec *s, const struct choice *c, struct buf *out)
{
    buf_addf(out, "%s_", s->name);
    choice_symbol(c, out);
}

void add_ints(const char *prefix, const char *name, const int *values, int64_t count,
              struct buf *out)
{
    buf_addf(out, "static const int %s%s[] = {", prefix, name);
    for (int64_t i = 0; i < count; i++)
        buf_addf(out, "%s%d", i == 0 ? "" : i % 16 == 0 ? ",\n    " : ", ", values[i]);
    buf_adds(out, count > 0 ? "};\n" : "0};\n");
}

void add_words(const char *prefix, const char *name, const uint64_t *values, int64_t count,
               struct buf *out)
{
    buf_addf(out, "static const fp_word %s%s[] = {", prefix, name);
    for (int64_t i = 0; i < count; i++) {
        const char *separator = i == 0 ? "" : i % 4 == 0 ? ",\n    " : ", ";
        buf_addf(out, "%s0x%llx", separator, (unsigned long long)values[i]);
    }
    buf_adds(out, count > 0 ? "};\n\n" : "0};\n\n");
}

bool calls_library(const struct standalone_spec *s)
{
    for (int i = 0; i < s->count; i++)
        for (int k = 0; k < s->plans[i].candidate->count; k++)
            if (s->plans[i].candidate->choices[k].impl->library)
                return true;
    return false;
}
