/* emit_segments DIRECTORY PARTS [every]: the sources of the CPU target that all_sources() lists, in
 * files that compile in parallel (part_0.c ...), and the table of their functions (table.c).
 * emit_segments --golden DIRECTORY: the sources that check_emit_cpu compares with. */
#include "segments.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Two sources may name a stage alike, and of two chains a segment: source n's become
 * source_n_stage_... and source_n_segment_... */
static void add_renamed(const char *text, int n, struct buf *out)
{
    for (; *text != '\0'; text++) {
        if (strncmp(text, "stage_", 6) == 0 || strncmp(text, "segment_", 8) == 0)
            buf_addf(out, "source_%d_", n);
        buf_add(out, text, 1);
    }
}

static int write_file(const char *dir, const char *name, const struct buf *text)
{
    struct status st = STATUS_INIT;
    struct buf path;
    buf_init(&path);
    buf_addf(&path, "%s/%s", dir, name);
    int result = file_write(path.ptr, text->ptr, text->len, &st);
    if (result != 0)
        fprintf(stderr, "%s\n", st.message);
    buf_release(&path);
    return result;
}

static int write_part(const char *dir, int part, int parts, const struct choice *c, int count)
{
    struct buf text, source;
    char name[32];
    buf_init(&text);
    buf_init(&source);
    for (int i = part; i < count; i += parts) {
        buf_reset(&source);
        const struct build_target t = cpu_target(c[i].chain);
        choice_emit(&c[i], &t, &source);
        add_renamed(source.ptr, i, &text);
    }
    snprintf(name, sizeof(name), "part_%d.c", part);
    int result = write_file(dir, name, &text);
    buf_release(&source);
    buf_release(&text);
    return result;
}

static int write_table(const char *dir, bool every, const struct choice *c, int count)
{
    struct buf text, names;
    buf_init(&text);
    buf_init(&names);
    buf_adds(&text, "#include \"abi.h\"\n#include <stdbool.h>\n");
    buf_addf(&text, "const bool segments_of_every_chain = %d;\n", every);
    for (int i = 0; i < count; i++) {
        struct buf name, symbol;
        buf_init(&name);
        buf_init(&symbol);
        choice_symbol(&c[i], &name);
        add_renamed(name.ptr, i, &symbol);
        buf_addf(&text, "fp_segment %s;\n", symbol.ptr);
        buf_addf(&names, "    %s,\n", symbol.ptr);
        buf_release(&name);
        buf_release(&symbol);
    }
    buf_addf(&text, "fp_segment *const segment_functions[] = {\n%s};\n", names.ptr);
    int result = write_file(dir, "table.c", &text);
    buf_release(&names);
    buf_release(&text);
    return result;
}

static int write_golden(const char *dir)
{
    struct buf text, name;
    int result = 0;
    buf_init(&text);
    buf_init(&name);
    for (int i = 0; i < GOLDEN_COUNT && result == 0; i++) {
        struct choice c = golden_choice(i);
        buf_reset(&text);
        buf_reset(&name);
        choice_emit(&c, &build_cpu, &text);
        choice_symbol(&c, &name);
        buf_adds(&name, ".c");
        result = write_file(dir, name.ptr, &text);
    }
    buf_release(&name);
    buf_release(&text);
    return result;
}

int main(int argc, char **argv)
{
    static struct choice choices[SOURCES_MAX];
    bool every = argc == 4 && strcmp(argv[3], "every") == 0;
    if (argc != 3 && !every)
        return EXIT_FAILURE;
    if (strcmp(argv[1], "--golden") == 0)
        return write_golden(argv[2]) == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
    int parts = atoi(argv[2]), count = all_sources(every, choices);
    int result = write_table(argv[1], every, choices, count);
    for (int i = 0; i < parts && result == 0; i++)
        result = write_part(argv[1], i, parts, choices, count);
    return result == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
