#include "codegen/codegen_int.h"
#include "kernels/cpu/abi.h"

#include <assert.h>

static_assert(ARRAY_LEN(((struct fp_args *)0)->tensor) == TENSOR_COUNT, "abi.h: tensors");
static_assert(ARRAY_LEN(((struct fp_args *)0)->weight) == WEIGHT_COUNT, "abi.h: weights");
static_assert(ARRAY_LEN(((struct fp_args *)0)->knob) == KNOB_MAX, "abi.h: knobs");
static_assert(FP_BLOCK == MASK_BLOCK, "abi.h: blocks of the mask");

static void declare_segments(const struct standalone_spec *s, struct buf *out)
{
    (void)s;
    buf_addf(out,
             "/* In the order in which they run. */\n"
             "struct plan_segment {\n    fp_segment *run;\n    int knob[%d];\n};\n",
             KNOB_MAX);
}

static void declare_function(const struct standalone_spec *s, int segment, struct buf *out)
{
    buf_adds(out, "fp_segment ");
    choice_symbol(&s->candidate->choices[segment], out);
    buf_adds(out, ";\n");
}

static void define_segment(const struct standalone_spec *s, int segment, struct buf *out)
{
    const struct choice *choice = &s->candidate->choices[segment];
    buf_adds(out, "    {");
    choice_symbol(choice, out);
    buf_adds(out, ", {");
    for (int k = 0; k < choice->impl->knob_count; k++)
        buf_addf(out, "%s%d", k > 0 ? ", " : "", choice_value(choice, k));
    buf_adds(out, choice->impl->knob_count > 0 ? "}},\n" : "0}},\n");
}

static void add_variables(const struct standalone_spec *s, struct buf *out)
{
    (void)s;
    buf_adds(out, "CC = cc\n"
                  "CFLAGS = " CPU_CODE_FLAGS "\n"
                  "LDLIBS = " CPU_LIBRARIES "\n");
}

const struct program cpu_program = {
    .suffix = ".c",
    .word_type = "uint64_t",
    .compiler = "$(CC) $(CFLAGS)",
    .rule = "",
    .headers = "*.h",
    .declare_segments = declare_segments,
    .declare_function = declare_function,
    .define_segment = define_segment,
    .add_variables = add_variables,
};
