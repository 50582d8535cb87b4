#include "codegen/codegen_int.h"
#include "kernels/cpu/abi.h"

#include <assert.h>

static_assert(ARRAY_LEN(((struct fp_args *)0)->tensor) == TENSOR_COUNT, "abi.h: tensors");
static_assert(ARRAY_LEN(((struct fp_args *)0)->weight) == WEIGHT_MAX, "abi.h: weights");
static_assert(ARRAY_LEN(((struct fp_args *)0)->knob) == KNOB_MAX, "abi.h: knobs");
static_assert(FP_BLOCK == MASK_BLOCK, "abi.h: blocks of the mask");

static void declare_function(const struct standalone_spec *s, const struct standalone_plan *p,
                             int segment, struct buf *out)
{
    buf_adds(out, "fp_segment ");
    add_library_symbol(s, &p->candidate->choices[segment], out);
    buf_adds(out, ";\n");
}

static void define_segment(const struct standalone_spec *s, const struct standalone_plan *p,
                           int segment, struct buf *out)
{
    const struct choice *choice = &p->candidate->choices[segment];
    buf_adds(out, "    {");
    add_library_symbol(s, choice, out);
    buf_adds(out, ", {");
    for (int k = 0; k < choice->impl->knob_count; k++)
        buf_addf(out, "%s%d", k > 0 ? ", " : "", choice_value(choice, k));
    buf_adds(out, choice->impl->knob_count > 0 ? "}},\n" : "0}},\n");
}

static void add_processors(const struct filling *f, struct buf *out)
{
    buf_adds(out, f->spec->processors);
}

static const struct placeholder placeholders[] = {
    {.name = "@ARCH@", .add = add_processors},
    {.name = "@VARIABLES@",
     .text =
         "CC = cc\n"
         "# The processors that it runs on, as " CPU_ARCH_OPTION " of the compiler takes them.\n"
         "# native: those like this machine's.  'make ARCH=" CPU_ARCH_EXAMPLE
         "': those of many machines.\n"
         "ARCH = @ARCH@\n"
         "CFLAGS = " CPU_CODE_FLAGS("$(ARCH)") "\n"
                                               "ALL_CFLAGS = $(CFLAGS) -fPIC -fvisibility=hidden\n"
                                               "LDLIBS = " CPU_LIBRARIES "\n"
                                               "LINK = $(CC) $(ALL_CFLAGS)\n"},
    {.name = "@RULES@", .text = "%.o: %.c\n\t$(CC) $(ALL_CFLAGS) -c -o $@ $<\n\n"},
    {.name = "@LIBS@", .text = CPU_LIBRARIES " -fopenmp"},
    {.name = "@LANGUAGE@", .text = "C"},
    {.name = "@CMAKE_OPEN@",
     .text = "project(encoder C)\n"
             "if(NOT CMAKE_BUILD_TYPE)\n"
             "  set(CMAKE_BUILD_TYPE Release)\n"
             "endif()\n"
             "if(NOT FUSEPLAN_ARCH) # processors, such as " CPU_ARCH_EXAMPLE "\n"
             "  set(FUSEPLAN_ARCH @ARCH@)\n"
             "endif()\n"
             "set(LIBRARIES openblas m -fopenmp)"},
    {.name = "@CMAKE_OBJECTS@",
     .text = "target_compile_options(encoder_objects PRIVATE " CPU_CODE_FLAGS(
         "${FUSEPLAN_ARCH}") ")\n"},
    {.name = "@CMAKE_PACKAGE@", .text = ""},
    {.name = "@CMAKE_EXAMPLE@", .text = "  target_compile_options(example PRIVATE -fopenmp)\n"},
    {.name = NULL},
};

const struct library_target cpu_library = {
    .suffix = ".c",
    .defines = "#define FP_SCRATCH encoder_scratch\n",
    .group = KERNEL_CPU_LIBRARY,
    .host = KERNEL_CPU_HOST,
    .placeholders = placeholders,
    .declare_function = declare_function,
    .define_segment = define_segment,
};
