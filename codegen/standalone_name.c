/* The names that an exported library cannot have because of its own texts. */
#include "codegen/codegen_int.h"

#include <ctype.h>
#include <string.h>

/* Whether the name's header or Python file would replace or hide the file. */
static bool is_file(const char *file, const char *name)
{
    static const char *const suffixes[] = {".h", ".py", ".c", ".cu"};
    size_t len = strlen(name);
    bool ours = strncmp(file, STANDALONE_NAME ".", strlen(STANDALONE_NAME ".")) == 0;
    for (size_t i = 0; i < ARRAY_LEN(suffixes) && !ours; i++)
        if (strncmp(file, name, len) == 0 && strcmp(file + len, suffixes[i]) == 0)
            return true;
    return false;
}

/* Whether a text has `before` with the name behind it, as a whole word. */
static bool has_phrase(const char *text, const char *before, const char *name)
{
    size_t len = strlen(name);
    for (const char *at = text; (at = strstr(at, before)) != NULL;) {
        at += strlen(before);
        unsigned char end = strncmp(at, name, len) == 0 ? (unsigned char)at[len] : '_';
        if (end != '_' && isalnum(end) == 0)
            return true;
    }
    return false;
}

static bool in_files(const struct kernel_file *files, int count, const char *name)
{
    static const char *const befores[] = {"struct ", "enum ", "include <", "import "};
    for (int i = 0; i < count; i++) {
        if (is_file(files[i].name, name))
            return true;
        for (size_t k = 0; k < ARRAY_LEN(befores); k++)
            if (has_phrase(files[i].text, befores[k], name))
                return true;
    }
    return false;
}

/* Whether CUDA's vector_types.h has a struct of this name: dim3, or int4 and so on. */
static bool is_vector_type(const char *name)
{
    static const char *const parts[] = {"char",     "short", "int",   "long",
                                        "longlong", "float", "double"};
    if (strcmp(name, "dim3") == 0)
        return true;
    const char *part = name[0] == 'u' ? name + 1 : name;
    for (size_t i = 0; i < ARRAY_LEN(parts); i++) {
        size_t len = strlen(parts[i]);
        if (strncmp(part, parts[i], len) == 0 && part[len] >= '1' && part[len] <= '4' &&
            part[len + 1] == '\0')
            return true;
    }
    return false;
}

bool standalone_name_taken(enum target_kind target, const char *name)
{
    static const enum kernel_group cpu[] = {KERNEL_LIBRARY,  KERNEL_CPU_LIBRARY, KERNEL_HOST,
                                            KERNEL_CPU_HOST, KERNEL_PROGRAM,     KERNEL_EXPORT};
    static const enum kernel_group cuda[] = {KERNEL_LIBRARY, KERNEL_CUDA_LIBRARY, KERNEL_PRODUCTS,
                                             KERNEL_HOST,    KERNEL_CUDA_HOST,    KERNEL_PROGRAM,
                                             KERNEL_EXPORT};
    const enum kernel_group *groups = target == TARGET_CPU ? cpu : cuda;
    size_t count = target == TARGET_CPU ? ARRAY_LEN(cpu) : ARRAY_LEN(cuda);
    const struct kernel_file *files;
    if (strcmp(name, STANDALONE_NAME) == 0) /* which stands for any name in the texts */
        return false;
    int kernels = kernel_files(target, &files);
    if (in_files(files, kernels, name) || (target == TARGET_CUDA && is_vector_type(name)))
        return true;
    for (size_t i = 0; i < count; i++) {
        int texts = kernel_group(groups[i], &files);
        if (in_files(files, texts, name))
            return true;
    }
    return false;
}
