#include "codegen/codegen_int.h"
#include "kernels/cpu/abi.h"

#include <assert.h>

static_assert(ARRAY_LEN(((struct fp_args *)0)->tensor) == TENSOR_COUNT, "abi.h: tensors");
static_assert(ARRAY_LEN(((struct fp_args *)0)->weight) == WEIGHT_COUNT, "abi.h: weights");
static_assert(ARRAY_LEN(((struct fp_args *)0)->knob) == KNOB_MAX, "abi.h: knobs");
static_assert(FP_BLOCK == MASK_BLOCK, "abi.h: blocks of the mask");

/* ---- plan.h ---------------------------------------------------------------------------------- */

static void add_plan_h(const struct standalone_spec *s, struct buf *out)
{
    open_plan_h(s, "", out);
    buf_addf(out,
             "/* In the order in which they run. */\n"
             "struct plan_segment {\n    fp_segment *run;\n    int knob[%d];\n};\n"
             "extern const struct plan_segment plan_segments[SEGMENTS];\n\n",
             KNOB_MAX);
    close_plan_h(out);
}

/* ---- plan.c ---------------------------------------------------------------------------------- */

static void add_segment_table(const struct candidate *c, struct buf *out)
{
    struct buf symbol;
    buf_init(&symbol);
    for (int i = 0; i < c->count; i++) {
        buf_reset(&symbol);
        choice_symbol(&c->choices[i], &symbol);
        buf_addf(out, "fp_segment %s;\n", symbol.ptr);
    }
    buf_adds(out, "\nconst struct plan_segment plan_segments[SEGMENTS] = {\n");
    for (int i = 0; i < c->count; i++) {
        const struct choice *choice = &c->choices[i];
        buf_reset(&symbol);
        choice_symbol(choice, &symbol);
        buf_addf(out, "    {%s, {", symbol.ptr);
        for (int k = 0; k < choice->impl->knob_count; k++)
            buf_addf(out, "%s%d", k > 0 ? ", " : "", choice_value(choice, k));
        buf_adds(out, choice->impl->knob_count > 0 ? "}},\n" : "0}},\n");
    }
    buf_adds(out, "};\n\n");
    buf_release(&symbol);
}

static void add_plan_c(const struct standalone_spec *s, struct buf *out)
{
    buf_adds(out, "#include \"plan.h\"\n\n");
    add_segment_table(s->candidate, out);
    add_plan_data(s, "uint64_t", out);
}

/* ---- Makefile -------------------------------------------------------------------------------- */

static void add_makefile(const struct standalone *p, struct buf *out)
{
    buf_adds(out, "# make; ./plan\n"
                  "CC = cc\n"
                  "CFLAGS = " CPU_CODE_FLAGS "\n"
                  "LDLIBS = " CPU_LIBRARIES "\n\n");
    add_objects(p, ".c", out);
    buf_adds(out, "plan: $(OBJECTS)\n"
                  "\t$(CC) $(CFLAGS) $(LDFLAGS) -o $@ $(OBJECTS) $(LDLIBS)\n\n"
                  "$(OBJECTS): $(wildcard *.h)\n\n"
                  "clean:\n\trm -f plan $(OBJECTS)\n\n"
                  ".PHONY: clean\n");
}

void emit_cpu_standalone(const struct standalone_spec *spec, struct standalone *out)
{
    const struct kernel_file *program;
    int count = kernel_program(TARGET_CPU, &program);
    add_plan_h(spec, standalone_add(out, "plan.h"));
    add_plan_c(spec, standalone_add(out, "plan.c"));
    standalone_copy(out, program, count);
    add_makefile(out, standalone_add(out, "Makefile"));
}
