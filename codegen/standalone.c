#include "codegen/codegen_int.h"

#include <stdlib.h>
#include <string.h>

static const struct program *const programs[TARGET_COUNT] = {
    [TARGET_CPU] = &cpu_program, [TARGET_CUDA] = &cuda_program};

bool calls_library(const struct candidate *c)
{
    for (int i = 0; i < c->count; i++)
        if (c->choices[i].impl->library)
            return true;
    return false;
}

/* Returns the text of a new file, to be filled before the next file is added. */
static struct buf *add_file(struct standalone *p, const char *name, const char *suffix)
{
    p->files = mem_resize(p->files, (size_t)p->count + 1, sizeof(*p->files));
    struct standalone_file *file = &p->files[p->count++];
    buf_init(&file->text);
    buf_addf(&file->text, "%s%s", name, suffix);
    file->name = buf_detach(&file->text);
    return &file->text;
}

static void copy_files(struct standalone *p, const struct kernel_file *files, int count)
{
    for (int i = 0; i < count; i++)
        buf_add(add_file(p, files[i].name, ""), files[i].text, files[i].len);
}

static void add_segments(const struct standalone_spec *s, const char *suffix,
                         struct standalone *out)
{
    struct buf name;
    buf_init(&name);
    for (int i = 0; i < s->candidate->count; i++) {
        const struct choice *choice = &s->candidate->choices[i];
        buf_reset(&name);
        choice_symbol(choice, &name);
        choice_emit(choice, &s->target, add_file(out, name.ptr, suffix));
    }
    buf_release(&name);
}

/* The objects are those of the files so far. */
static void add_makefile(const struct standalone_spec *s, const struct program *program,
                         const struct standalone *p, struct buf *out)
{
    buf_adds(out, "# make; ./plan\n");
    program->add_variables(s, out);
    buf_adds(out, "\nOBJECTS =");
    for (int i = 0; i < p->count; i++) {
        const char *name = p->files[i].name, *end = strrchr(name, '.');
        if (end != NULL && strcmp(end, program->suffix) == 0)
            buf_addf(out, " \\\n  %.*s.o", (int)(end - name), name);
    }
    buf_addf(out,
             "\n\nplan: $(OBJECTS)\n"
             "\t%s $(LDFLAGS) -o $@ $(OBJECTS) $(LDLIBS)\n\n"
             "%s$(OBJECTS): $(wildcard %s)\n\n"
             "clean:\n\trm -f plan $(OBJECTS)\n\n"
             ".PHONY: clean\n",
             program->compiler, program->rule, program->headers);
}

void standalone_emit(const struct standalone_spec *spec, struct standalone *out)
{
    const struct program *program = programs[spec->target.kind];
    const struct kernel_file *kernels, *sources;
    int kernel_count = kernel_files(spec->target.kind, &kernels);
    int source_count = kernel_program(spec->target.kind, &sources);
    *out = (struct standalone){.count = 0};
    add_segments(spec, program->suffix, out);
    copy_files(out, kernels, kernel_count);
    if (calls_library(spec->candidate))
        copy_files(out, kernel_library(), 1);
    add_plan_h(spec, program, add_file(out, "plan.h", ""));
    add_plan_c(spec, program, add_file(out, "plan", program->suffix));
    copy_files(out, kernel_arguments(), 1);
    copy_files(out, sources, source_count);
    add_makefile(spec, program, out, add_file(out, "Makefile", ""));
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
