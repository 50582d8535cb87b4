#include "codegen/codegen_int.h"

#include <stdlib.h>

/* One row a target; null where it has no such program. */
static void (*const emitters[TARGET_COUNT])(const struct standalone_spec *spec,
                                            struct standalone *out) = {
    [TARGET_CPU] = emit_cpu_standalone,
};

struct buf *standalone_add(struct standalone *p, const char *name)
{
    p->files = mem_resize(p->files, (size_t)p->count + 1, sizeof(*p->files));
    struct standalone_file *file = &p->files[p->count++];
    file->name = mem_strdup(name);
    buf_init(&file->text);
    return &file->text;
}

static void add_kernels(enum target_kind target, struct standalone *out)
{
    const struct kernel_file *files;
    int count = kernel_files(target, &files);
    for (int i = 0; i < count; i++)
        buf_add(standalone_add(out, files[i].name), files[i].text, files[i].len);
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
        buf_adds(&name, ".c");
        choice_emit(choice, t, standalone_add(out, name.ptr));
    }
    buf_release(&name);
}

int standalone_emit(const struct standalone_spec *spec, struct standalone *out, struct status *st)
{
    *out = (struct standalone){.count = 0};
    if (emitters[spec->target.kind] == NULL)
        return status_set(st, STATUS_UNFIT,
                          "no program of its own can be generated for the %s target; use %s",
                          target_names[spec->target.kind], target_names[TARGET_CPU]);
    add_segments(spec->candidate, &spec->target, out);
    add_kernels(spec->target.kind, out);
    emitters[spec->target.kind](spec, out);
    return 0;
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
