/* The files of an exported library, or of a program that runs it. */
#include "codegen/codegen_int.h"

static const struct library_target *const library_targets[TARGET_COUNT] = {
    [TARGET_CPU] = &cpu_library, [TARGET_CUDA] = &cuda_library};

/* ---- texts with placeholders ----------------------------------------------------------------- */

static void add_objects(const struct filling *f, struct buf *out)
{
    for (int i = 0; i < f->files->count; i++) {
        const char *name = f->files->files[i].name, *end = strrchr(name, '.');
        if (file_has_suffix(name, ".c") || file_has_suffix(name, ".cu"))
            buf_addf(out, " \\\n  %.*s.o", (int)(end - name), name);
    }
}

static void add_sources(const struct filling *f, struct buf *out)
{
    for (int i = 0; i < f->files->count; i++) {
        const char *name = f->files->files[i].name;
        if (file_has_suffix(name, ".c") || file_has_suffix(name, ".cu"))
            buf_addf(out, "\n  %s", name);
    }
}

static const struct placeholder common[] = {
    {.name = "@OBJECTS@", .add = add_objects}, {.name = "@SOURCES@", .add = add_sources},
    {.name = "@FAMILY@", .add = add_family},   {.name = "@LAYER@", .add = add_layer},
    {.name = "@FIELDS@", .add = add_fields},   {.name = NULL},
};

/* The placeholder that a text begins with; null: none. */
static const struct placeholder *placeholder_at(const struct placeholder *list, const char *text)
{
    for (; list->name != NULL; list++)
        if (strncmp(text, list->name, strlen(list->name)) == 0)
            return list;
    return NULL;
}

/* Copies a text up to where a placeholder or a word of the library's name may begin. */
static const char *add_plain(const char *text, struct buf *out)
{
    size_t plain = strcspn(text, "@Eem");
    buf_add(out, text, plain);
    return text + plain;
}

static void add_filled(const struct filling *f, const char *text, struct buf *out)
{
    while (*(text = add_plain(text, out)) != '\0') {
        const struct placeholder *p = placeholder_at(common, text);
        if (p == NULL)
            p = placeholder_at(f->target->placeholders, text);
        size_t taken = p != NULL ? strlen(p->name) : add_library_word(f->spec->name, text, out);
        if (p != NULL && p->text != NULL)
            add_filled(f, p->text, out);
        else if (p != NULL)
            p->add(f, out);
        else if (taken == 0)
            buf_add(out, text, 1);
        text += taken > 0 ? taken : 1;
    }
}

/* ---- files ----------------------------------------------------------------------------------- */

static bool has_file(const struct standalone *p, const char *name)
{
    for (int i = 0; i < p->count; i++)
        if (strcmp(p->files[i].name, name) == 0)
            return true;
    return false;
}

/* Returns the text of a new file, to be filled before the next file is added. */
static struct buf *add_file(struct standalone *p, const char *name)
{
    p->files = mem_resize(p->files, (size_t)p->count + 1, sizeof(*p->files));
    struct standalone_file *file = &p->files[p->count++];
    buf_init(&file->text);
    file->name = mem_strdup(name);
    return &file->text;
}

/* The texts of a group. */
static void copy_group(const struct filling *f, enum kernel_group group, struct standalone *out)
{
    const struct kernel_file *files;
    SCOPED_BUF name = BUF_INIT;
    int count = kernel_group(group, &files);
    for (int i = 0; i < count; i++) {
        buf_reset(&name);
        add_filled(f, strcmp(files[i].name, "program.mk") == 0 ? "Makefile" : files[i].name, &name);
        add_filled(f, files[i].text, add_file(out, name.ptr));
    }
}

static void copy_kernels(const struct standalone_spec *s, struct standalone *out)
{
    const struct kernel_file *files;
    int count = kernel_files(s->target.kind, &files);
    for (int i = 0; i < count; i++)
        buf_add(add_file(out, files[i].name), files[i].text, files[i].len);
}

/* The source of a choice, whose function gets the library's name in front. */
static void add_segment(const struct filling *f, const struct choice *c, struct standalone *out)
{
    SCOPED_BUF symbol = BUF_INIT, source = BUF_INIT;
    choice_symbol(c, &symbol);
    SCOPED char *file = buf_text("%s%s", symbol.ptr, f->target->suffix);
    if (!c->impl->library && !has_file(out, file)) {
        choice_emit(c, &f->spec->target, &source);
        struct buf *to = add_file(out, file);
        const char *rest = source.ptr;
        add_filled(f, f->target->defines, to);
        for (const char *at; (at = strstr(rest, symbol.ptr)) != NULL; rest = at + symbol.len) {
            buf_add(to, rest, (size_t)(at - rest));
            add_library_symbol(f->spec, c, to);
        }
        buf_adds(to, rest);
    }
}

static void add_plan(const struct filling *f, const struct standalone_plan *p,
                     struct standalone *out)
{
    SCOPED char *name = buf_text("plan_b%d_s%d.c", p->workload->batch, p->workload->seq_len);
    for (int i = 0; i < p->candidate->count; i++)
        add_segment(f, &p->candidate->choices[i], out);
    add_plan_source(f->spec, f->target, p, add_file(out, name));
}

/* Moves the files of another output behind the files of `to`. */
static void append(struct standalone *to, struct standalone *from)
{
    size_t count = (size_t)to->count + (size_t)from->count;
    to->files = mem_resize(to->files, count, sizeof(*to->files));
    for (int i = 0; i < from->count; i++)
        to->files[to->count++] = from->files[i];
    free(from->files);
}

void standalone_emit(const struct standalone_spec *s, struct standalone *out)
{
    struct filling f = {s, library_targets[s->target.kind], out};
    struct standalone others = {.count = 0};
    *out = (struct standalone){.count = 0};
    copy_group(&f, KERNEL_LIBRARY, out);
    copy_group(&f, f.target->group, out);
    if (calls_library(s))
        copy_group(&f, KERNEL_PRODUCTS, out);
    add_plans_source(s, f.target, add_file(out, "plans.c"));
    for (int i = 0; i < s->count; i++)
        add_plan(&f, &s->plans[i], out);
    copy_kernels(s, out);
    copy_group(&f, KERNEL_HOST, &others);
    copy_group(&f, f.target->host, &others);
    copy_group(&f, s->inputs != NULL ? KERNEL_PROGRAM : KERNEL_EXPORT, &others);
    if (s->inputs != NULL)
        add_drawn(s, add_file(&others, "drawn.h"));
    append(out, &others);
}

void standalone_release(struct standalone *p)
{
    for (int i = 0; i < p->count; i++) {
        free(p->files[i].name);
        buf_release(&p->files[i].text);
    }
    free(p->files);
    *p = (struct standalone){.count = 0};
}
