#include "codegen/codegen_int.h"

#include <stdlib.h>

/* One row a target: the rest of its program, and the suffix of its sources. */
static const struct {
    void (*emit)(const struct standalone_spec *spec, struct standalone *out);
    const char *suffix;
} programs[TARGET_COUNT] = {
    [TARGET_CPU] = {emit_cpu_standalone, ".c"},
    [TARGET_CUDA] = {emit_cuda_standalone, ".cu"},
};

struct buf *standalone_add(struct standalone *p, const char *name)
{
    p->files = mem_resize(p->files, (size_t)p->count + 1, sizeof(*p->files));
    struct standalone_file *file = &p->files[p->count++];
    file->name = mem_strdup(name);
    buf_init(&file->text);
    return &file->text;
}

void standalone_copy(struct standalone *p, const struct kernel_file *files, int count)
{
    for (int i = 0; i < count; i++)
        buf_add(standalone_add(p, files[i].name), files[i].text, files[i].len);
}

static void add_segments(const struct candidate *c, const struct build_target *t,
                         struct standalone *out)
{
    struct buf name;
    buf_init(&name);
    for (int i = 0; i < c->count; i++) {
        const struct choice *choice = &c->choices[i];
        buf_reset(&name);
        choice_symbol(choice, &name);
        buf_adds(&name, programs[t->kind].suffix);
        choice_emit(choice, t, standalone_add(out, name.ptr));
    }
    buf_release(&name);
}

void standalone_emit(const struct standalone_spec *spec, struct standalone *out)
{
    const struct kernel_file *kernels;
    int count = kernel_files(spec->target.kind, &kernels);
    *out = (struct standalone){.count = 0};
    add_segments(spec->candidate, &spec->target, out);
    standalone_copy(out, kernels, count);
    programs[spec->target.kind].emit(spec, out);
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
