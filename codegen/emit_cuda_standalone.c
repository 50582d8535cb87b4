#include "codegen/cuda_int.h"

#define INCLUDES "\n#include <stdint.h>\n"

/* What host code calls an element as stored: it converts from and to float. */
static const struct {
    const char *includes, *type;
} elements[DTYPE_COUNT] = {
    [DTYPE_FP32] = {INCLUDES, "float"},
    [DTYPE_TF32] = {INCLUDES, "float"},
    [DTYPE_FP16] = {INCLUDES "#include <cuda_fp16.h>\n", "__half"},
    [DTYPE_BF16] = {INCLUDES "#include <cuda_bf16.h>\n", "__nv_bfloat16"},
};

/* ---- plan.h ---------------------------------------------------------------------------------- */

static void add_plan_h(const struct standalone_spec *s, struct buf *out)
{
    open_plan_h(s, elements[s->target.dtype].includes, out);
    buf_addf(out, "using plan_element = %s; /* of tensors and weights: %s */\n\n",
             elements[s->target.dtype].type, dtypes[s->target.dtype].name);
    buf_adds(out, "/* In the order in which they run. */\n"
                  "struct plan_segment {\n"
                  "    const void *kernel;        /* null: call() launches */\n"
                  "    int threads, shared_bytes; /* of a thread block */\n"
                  "    bool cooperative;          /* thread blocks meet in it */\n"
                  "    long tiles;                /* more thread blocks would idle */\n"
                  "    long sync_words, workspace_bytes;\n"
                  "    void (*call)(const fp_args &a, int algorithm, cudaStream_t stream);\n"
                  "    int algorithm;\n"
                  "};\n"
                  "extern const struct plan_segment plan_segments[SEGMENTS];\n\n");
    close_plan_h(out);
}

/* ---- plan.cu --------------------------------------------------------------------------------- */

static void add_declaration(const struct choice *c, struct buf *out)
{
    buf_addf(out, "extern \"C\" %s\n", c->impl->library ? "void" : "__global__ void");
    choice_symbol(c, out);
    buf_adds(out, c->impl->library ? "(const fp_args &a, int algorithm, cudaStream_t stream);\n"
                                   : "(const __grid_constant__ fp_args a);\n");
}

static void add_call(const struct choice *c, struct buf *out)
{
    buf_addf(out, "    {nullptr, 0, 0, false, 0, 0, %d,\n     ", CUDA_LIBRARY_WORKSPACE_BYTES);
    choice_symbol(c, out);
    buf_addf(out, ", %d},\n", choice_knob(c, "algorithm"));
}

static void add_kernel(const struct choice *c, const struct workload *w, struct buf *out)
{
    struct cuda_launch l;
    choice_launch(c, w, &l);
    buf_adds(out, "    {(const void *)");
    choice_symbol(c, out);
    buf_addf(out, ",\n     %d, %d, %s, %lld, %lld, %lld, nullptr, 0},\n", l.threads, l.shared_bytes,
             l.cooperative ? "true" : "false", (long long)l.tiles, (long long)l.sync_words,
             (long long)l.workspace_bytes);
}

static void add_segment_table(const struct standalone_spec *s, struct buf *out)
{
    const struct candidate *c = s->candidate;
    for (int i = 0; i < c->count; i++)
        add_declaration(&c->choices[i], out);
    buf_adds(out, "\nconst struct plan_segment plan_segments[SEGMENTS] = {\n");
    for (int i = 0; i < c->count; i++)
        if (c->choices[i].impl->library)
            add_call(&c->choices[i], out);
        else
            add_kernel(&c->choices[i], s->workload, out);
    buf_adds(out, "};\n\n");
}

static void add_plan_cu(const struct standalone_spec *s, struct buf *out)
{
    buf_adds(out, "#include \"plan.h\"\n\n");
    add_segment_table(s, out);
    add_plan_data(s, "unsigned long long", out);
}

/* ---- Makefile -------------------------------------------------------------------------------- */

static bool calls_library(const struct candidate *c)
{
    for (int i = 0; i < c->count; i++)
        if (c->choices[i].impl->library)
            return true;
    return false;
}

static void add_makefile(const struct standalone_spec *s, const struct standalone *p,
                         struct buf *out)
{
    buf_adds(out, "# make; ./plan\n"
                  "NVCC = nvcc\n"
                  "NVCCFLAGS = " CUDA_FLAGS " -O3 ");
    arch_options(&s->archs, out);
    buf_adds(out, "\n");
    if (calls_library(s->candidate)) /* found when it runs where it was found when it was linked */
        buf_adds(out, "TOOLKIT = $(dir $(realpath $(shell command -v $(firstword $(NVCC)))))..\n"
                      "LDLIBS = -lcublasLt -Xlinker -rpath=$(TOOLKIT)/lib64\n");
    buf_adds(out, "\n");
    add_objects(p, ".cu", out);
    buf_adds(out, "plan: $(OBJECTS)\n"
                  "\t$(NVCC) $(NVCCFLAGS) $(LDFLAGS) -o $@ $(OBJECTS) $(LDLIBS)\n\n"
                  "%.o: %.cu\n"
                  "\t$(NVCC) $(NVCCFLAGS) -c -o $@ $<\n\n"
                  "$(OBJECTS): $(wildcard *.h *.cuh)\n\n"
                  "clean:\n\trm -f plan $(OBJECTS)\n\n"
                  ".PHONY: clean\n");
}

void emit_cuda_standalone(const struct standalone_spec *spec, struct standalone *out)
{
    const struct kernel_file *program;
    int count = kernel_program(TARGET_CUDA, &program);
    if (calls_library(spec->candidate))
        standalone_copy(out, kernel_library(), 1);
    add_plan_h(spec, standalone_add(out, "plan.h"));
    add_plan_cu(spec, standalone_add(out, "plan.cu"));
    standalone_copy(out, program, count);
    add_makefile(spec, out, standalone_add(out, "Makefile"));
}
