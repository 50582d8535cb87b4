/* emit_segments DIRECTORY PARTS [every]: the sources of the CPU target that all_sources() lists, in
 * files that compile in parallel (part_0.c ...), and the table of their functions (table.c).  Of
 * sources that differ only in their comments, as many of different chains do, the first is there.
 * emit_segments --golden DIRECTORY: the sources that check_emit_cpu compares with. */
#include "segments.h"

/* A stage's function, which many sources have: the first of them, and the last part that holds it.
 */
struct stage_text {
    const char *text;
    size_t len;
    int source, part;
};
#define STAGE_BEGINS "static void "
enum { STAGES_MAX = 2048, NAME_AT = sizeof(STAGE_BEGINS) - 1 };
static struct stage_text stages[STAGES_MAX];
static int stage_count;

static struct stage_text *stage_find(const char *text, int source)
{
    const size_t len = (size_t)(strstr(text, "\n}\n") + 3 - text);
    int i = 0;
    while (i < stage_count && (stages[i].len != len || memcmp(stages[i].text, text, len) != 0))
        i++;
    if (i == STAGES_MAX)
        exit(EXIT_FAILURE);
    if (i == stage_count)
        stages[stage_count++] = (struct stage_text){text, len, source, -1};
    return &stages[i];
}

/* Two sources may name a stage alike, and of two chains a segment: source n's become
 * source_n_stage_... and source_n_segment_...  A stage that the part has already is not repeated.
 */
static void add_renamed(const char *text, int n, int part, struct buf *out)
{
    struct stage_text *own[OP_COUNT];
    for (int count = 0; *text != '\0';) {
        if (strncmp(text, STAGE_BEGINS "stage_", NAME_AT + 6) == 0) {
            struct stage_text *s = own[count++] = stage_find(text, n);
            text += s->len;
            if (s->part != part)
                buf_addf(out, STAGE_BEGINS "source_%d_%.*s", s->source, (int)s->len - NAME_AT,
                         s->text + NAME_AT);
            s->part = part;
            continue;
        }
        if (strncmp(text, "segment_", 8) == 0)
            buf_addf(out, "source_%d_", n);
        for (int i = 0; i < count && strncmp(text, "stage_", 6) == 0; i++)
            if (strncmp(text, own[i]->text + NAME_AT, strcspn(text, "(") + 1) == 0)
                buf_addf(out, "source_%d_", own[i]->source);
        buf_add(out, text++, 1);
    }
}

static int write_file(const char *dir, const char *name, const struct buf *text)
{
    struct status st = STATUS_INIT;
    SCOPED_BUF path = BUF_INIT;
    buf_addf(&path, "%s/%s", dir, name);
    int result = file_write(path.ptr, text->ptr, text->len, &st);
    if (result != 0)
        fprintf(stderr, "%s\n", st.message);
    return result;
}

/* What choices are emitted as, and which is the first that is emitted so. */
struct sources {
    struct choice choices[SOURCES_MAX];
    char *texts[SOURCES_MAX]; /* without comments */
    int first[SOURCES_MAX];
    int count, kept; /* those that are their own first */
};

static char *without_comments(const char *text)
{
    struct buf out = BUF_INIT;
    for (const char *begin; (begin = strstr(text, "/*")) != NULL; text = strstr(begin, "*/") + 2)
        buf_add(&out, text, (size_t)(begin - text));
    buf_adds(&out, text);
    return out.ptr;
}

static void emit_sources(struct sources *s)
{
    SCOPED_BUF source = BUF_INIT;
    for (int i = 0; i < s->count; i++) {
        const struct build_target t = cpu_target(s->choices[i].chain);
        buf_reset(&source);
        choice_emit(&s->choices[i], &t, &source);
        s->texts[i] = without_comments(source.ptr);
        s->first[i] = 0;
        while (strcmp(s->texts[s->first[i]], s->texts[i]) != 0)
            s->first[i]++;
        s->kept += s->first[i] == i;
    }
}

static int write_part(const char *dir, int part, int parts, const struct sources *s)
{
    SCOPED_BUF text = BUF_INIT;
    char name[32];
    for (int i = 0, kept = 0; i < s->count; i++)
        if (s->first[i] == i && kept++ * parts / s->kept == part)
            add_renamed(s->texts[i], i, part, &text);
    snprintf(name, sizeof(name), "part_%d.c", part);
    return write_file(dir, name, &text);
}

static int write_table(const char *dir, bool every, const struct sources *s)
{
    SCOPED_BUF text = BUF_INIT, names = BUF_INIT;
    buf_adds(&text, "#include \"abi.h\"\n#include <stdbool.h>\n");
    buf_addf(&text, "const bool segments_of_every_chain = %d;\n", every);
    for (int i = 0; i < s->count; i++) {
        SCOPED_BUF name = BUF_INIT, symbol = BUF_INIT;
        choice_symbol(&s->choices[i], &name);
        buf_addf(&symbol, "source_%d_%s", s->first[i], name.ptr);
        buf_addf(&text, "fp_segment %s;\n", symbol.ptr);
        buf_addf(&names, "    %s,\n", symbol.ptr);
    }
    buf_addf(&text, "fp_segment *const segment_functions[] = {\n%s};\n", names.ptr);
    return write_file(dir, "table.c", &text);
}

static int write_golden(const char *dir)
{
    SCOPED_BUF text = BUF_INIT, name = BUF_INIT;
    int result = 0;
    for (int i = 0; i < GOLDEN_COUNT && result == 0; i++) {
        struct choice c = golden_choice(i);
        buf_reset(&text);
        buf_reset(&name);
        choice_emit(&c, &build_cpu, &text);
        choice_symbol(&c, &name);
        buf_adds(&name, ".c");
        result = write_file(dir, name.ptr, &text);
    }
    return result;
}

int main(int argc, char **argv)
{
    static struct sources s;
    bool every = argc == 4 && strcmp(argv[3], "every") == 0;
    if (argc != 3 && !every)
        return EXIT_FAILURE;
    if (strcmp(argv[1], "--golden") == 0)
        return write_golden(argv[2]) == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
    int parts = atoi(argv[2]);
    s.count = all_sources(every, s.choices);
    emit_sources(&s);
    int result = write_table(argv[1], every, &s);
    for (int i = 0; i < parts && result == 0; i++)
        result = write_part(argv[1], i, parts, &s);
    return result == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
