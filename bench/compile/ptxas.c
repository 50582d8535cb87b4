/* These lines of `ptxas -v` are read, for a kernel and for each function that it calls:
 *
 *   ptxas info    : (C7511) Potential Performance Loss: wgmma.mma_async instructions are ...
 *       624 bytes stack frame, 656 bytes spill stores, 704 bytes spill loads
 *   ptxas info    : Used 32 registers, used 0 barriers, 400 bytes smem
 *
 * nvcc and NVRTC print different text before them.  Some releases leave the code out. */
#include "bench/compile/compile.h"

#include <ctype.h>

enum { NUMBER_MOST = 1 << 30 }; /* whatever a log holds; a GPU has far less of anything */

/* The number right before `words`; 0 where the line does not hold them. */
static int number_before(const char *line, const char *words)
{
    const char *at = strstr(line, words);
    if (at == NULL)
        return 0;
    while (at > line && isdigit((unsigned char)at[-1]))
        at--;
    long number = strtol(at, NULL, 10);
    return number < NUMBER_MOST ? (int)number : NUMBER_MOST;
}

static void raise_to(int *value, int other)
{
    if (other > *value)
        *value = other;
}

static void add_to(int *value, int more)
{
    *value = *value < NUMBER_MOST - more ? *value + more : NUMBER_MOST;
}

static bool serialises(const char *text)
{
    return strstr(text, "wgmma") != NULL && strstr(text, "serialized") != NULL;
}

/* Keeps the first warning, but prefers one of serialized wgmma instructions. */
static void read_warning(const char *line, struct resources *out)
{
    static const char loss[] = "Potential Performance Loss: ";
    const char *text = strstr(line, loss), *code = strstr(line, "(C");
    if (text == NULL || (out->compiler_warning[0] != '\0' &&
                         (serialises(out->compiler_warning) || !serialises(text))))
        return;
    int code_len = code != NULL && code < text ? (int)strcspn(code + 1, ")") : 0;
    text += sizeof(loss) - 1;
    const char *end = strstr(text, " in the function '"); /* the kernel's name is left out */
    snprintf(out->compiler_warning, sizeof(out->compiler_warning), "%.*s%s%.*s", code_len,
             code_len > 0 ? code + 1 : "", code_len > 0 ? ": " : "",
             (int)(end != NULL ? (size_t)(end - text) : strlen(text)), text);
    utf8_mend(out->compiler_warning);
}

static void read_line(const char *line, struct resources *out)
{
    raise_to(&out->registers, number_before(line, " registers"));
    raise_to(&out->shared_static_bytes, number_before(line, " bytes smem"));
    raise_to(&out->stack_bytes, number_before(line, " bytes stack frame"));
    add_to(&out->spill_bytes, number_before(line, " bytes spill stores"));
    add_to(&out->spill_load_bytes, number_before(line, " bytes spill loads"));
    read_warning(line, out);
}

void ptxas_read(const char *log, struct resources *out)
{
    SCOPED char *copy = mem_strdup(log);
    char *rest;
    *out = (struct resources){.registers = 0};
    for (char *line = strtok_r(copy, "\n", &rest); line != NULL; line = strtok_r(NULL, "\n", &rest))
        read_line(line, out);
}

bool ptxas_serialises(const struct resources *r)
{
    return serialises(r->compiler_warning);
}
