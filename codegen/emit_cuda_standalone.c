#include "codegen/cuda_int.h"

#include "kernels/cuda/joined.h"

static void add_tiling(const struct workload *w, const struct tiling *t, const char *prefix,
                       struct buf *out)
{
    if (t->joined) {
        buf_addf(out,
                 "static const struct plan_tiles %squery_tiles = {\n    .count = %lld, .parts = 1, "
                 ".left = %d, .right = %d, .most = %d};\n",
                 prefix, (long long)ceil_div((int64_t)w->batch * w->seq_len, MASK_BLOCK),
                 w->blocks.band[0], w->blocks.band[1],
                 fp_joined_entries(w->blocks.band[0], w->blocks.band[1]));
        return;
    }
    SCOPED_BY(query_tiles_release) struct query_tiles q;
    query_tiles_build(w, t, &q);
    bool ordered = q.words != NULL;
    int64_t head_ints = (int64_t)q.count * TILE_HEAD * q.entry_ints;
    int64_t rest_ints = (q.rest_count + TILE_HEAD) * q.entry_ints;
    int64_t tokens = ordered ? (int64_t)q.parts * w->blocks.blocks * MASK_BLOCK : 0;
    add_ints(prefix, "tiles", q.tile, (int64_t)q.count * TILE_INTS, out);
    add_ints(prefix, "tile_head", q.head, head_ints, out);
    add_ints(prefix, "tile_rest", q.rest, rest_ints, out);
    if (ordered) {
        add_words(prefix, "tile_words", q.words, q.word_blocks * MASK_BLOCK, out);
        add_ints(prefix, "query_token", q.query_token, tokens, out);
        add_ints(prefix, "key_token", q.key_token, tokens, out);
    }
    buf_addf(out,
             "static const struct plan_tiles %squery_tiles = {\n    %d, %d, %d, %d, %stiles, "
             "%stile_head, %stile_rest,\n    ",
             prefix, q.count, q.parts, q.rows, q.entry_ints, prefix, prefix, prefix);
    if (ordered)
        buf_addf(out, "%stile_words, %squery_token, %skey_token", prefix, prefix, prefix);
    else
        buf_adds(out, "0, 0, 0");
    buf_addf(out, ", %lld, %lld, %lld, 0, 0, 0};\n", (long long)q.rest_count,
             (long long)q.word_blocks, (long long)tokens);
}

/* A plan has one attention at most. */
static bool add_tiles(const struct standalone_plan *p, int kind, const char *prefix,
                      struct buf *out)
{
    const struct workload *w = workload_of_kind(p->full, kind);
    for (int i = 0; i < p->candidate->count; i++) {
        struct cuda_launch l;
        if (p->candidate->choices[i].impl->library)
            continue;
        choice_launch(&p->candidate->choices[i], w, &l);
        if (l.tiling.rows > 0) {
            add_tiling(w, &l.tiling, prefix, out);
            return true;
        }
    }
    return false;
}

/* Several segments may share a kernel, but not its maps: "maps_07_09". */
static void add_maps_name(const struct choice *c, struct buf *out)
{
    buf_addf(out, "maps_%02d_%02d", c->segment.first, c->segment.last);
}

/* "static const struct plan_map NAME[PLAN_MAPS] = {...};" */
static void add_maps(const struct choice *c, const struct cuda_launch *l, struct buf *out)
{
    buf_adds(out, "static const struct plan_map ");
    add_maps_name(c, out);
    buf_adds(out, "[PLAN_MAPS] = {\n");
    for (int i = 0; i < CUDA_MAPS; i++) {
        const struct cuda_map *m = &l->maps[i];
        buf_addf(out, "    {%s, %d, {%lld, %lld}, {%d, %d}, %s, %s},\n", truth(m->weight), m->index,
                 (long long)m->size[0], (long long)m->size[1], m->box[0], m->box[1], truth(m->e4m3),
                 truth(l->dealt && i == CUDA_MAP_IN));
    }
    buf_adds(out, "};\n");
}

/* "static const struct plan_product SYMBOL_product = {...};" */
static void add_product(const struct standalone_spec *s, const struct standalone_plan *plan,
                        const struct choice *c, struct buf *out)
{
    const struct workload *w = plan->full;
    int64_t rows = (int64_t)w->batch * w->seq_len;
    int64_t tuned_rows = plan->candidate->packed ? workload_tokens(plan->workload) : rows;
    struct cuda_product p;
    choice_product(c, &p);
    const struct weight *weight = &c->chain->weights[p.weight];
    buf_addf(out,
             "extern const struct product_calls %s_products;\nstatic const struct plan_product ",
             s->name);
    choice_symbol(c, out);
    buf_addf(
        out,
        "_product = {&%s_products, %d, %d, %d, %d, %d, %d,\n    %lld, %lld, %lld, %lld, %d};\n",
        s->name, p.in, p.out, p.residual, p.weight, p.bias, p.epilogue, (long long)rows,
        (long long)dim_size(weight->rows, w), (long long)dim_size(weight->cols, w),
        (long long)tuned_rows, choice_knob(c, "algorithm"));
}

/* A kernel's symbol, as C sees it, and the data of its row. */
static void declare_function(const struct standalone_spec *s, const struct standalone_plan *p,
                             int segment, struct buf *out)
{
    const struct choice *c = &p->candidate->choices[segment];
    if (c->impl->library) {
        add_product(s, p, c, out);
        return;
    }
    struct cuda_launch l;
    choice_launch(c, p->full, &l);
    buf_adds(out, "void ");
    add_library_symbol(s, c, out);
    buf_adds(out, "(void);\n");
    if (launch_has_maps(&l))
        add_maps(c, &l, out);
}

/* "{0, 3, 8192, -1}": the GEMMs, and where their inputs lie. */
static void add_e4m3(const struct standalone_plan *p, const struct choice *c, struct buf *out)
{
    struct placement places;
    struct e4m3_use use;
    choice_e4m3(c, &use);
    placement_find(p->candidate, p->full, &places);
    buf_addf(out, "{%d, %d, %lld, %lld}", use.in, use.out,
             use.in >= 0 ? (long long)places.at[TENSOR_COUNT + use.in] : -1,
             use.out >= 0 ? (long long)places.at[TENSOR_COUNT + use.out] : -1);
}

static void define_product(const struct standalone_plan *p, const struct choice *c, struct buf *out)
{
    buf_addf(out, "    {.workspace_bytes = %d, .product = &", CUDA_LIBRARY_WORKSPACE_BYTES);
    choice_symbol(c, out);
    buf_adds(out, "_product, .e4m3 = ");
    if (c->schedule.precision != 0)
        add_e4m3(p, c, out);
    else
        buf_adds(out, "{-1, -1}");
    buf_adds(out, "},\n");
}

/* "maps_07_09, {768, ...}, " */
static void add_gemm(const struct choice *c, const struct cuda_operands *o, struct buf *out)
{
    add_maps_name(c, out);
    buf_addf(out, ", {%lld, %lld, %d, %d, %d, %d, %d, %d}, ", (long long)o->columns,
             (long long)o->inner, o->in, o->out, o->residual, o->bias, o->gamma, o->beta);
}

static void define_kernel(const struct standalone_spec *s, const struct standalone_plan *p,
                          const struct choice *c, struct buf *out)
{
    struct cuda_launch l;
    choice_launch(c, p->full, &l);
    buf_adds(out, "    {(const void *)");
    add_library_symbol(s, c, out);
    buf_addf(out, ",\n     %d, %d, %s, %s, %s, %d, ", l.threads, l.shared_bytes,
             truth(l.cooperative), truth(l.persistent), truth(l.at_once), l.cluster);
    if (launch_has_maps(&l))
        add_gemm(c, &l.operands, out);
    else
        buf_adds(out, "0, {0}, ");
    buf_addf(out, "%lld, %lld, %lld, 0, ", (long long)l.tiles, (long long)l.sync_words,
             (long long)l.workspace_bytes);
    add_e4m3(p, c, out);
    buf_adds(out, "},\n");
}

static void define_segment(const struct standalone_spec *s, const struct standalone_plan *p,
                           int segment, struct buf *out)
{
    const struct choice *c = &p->candidate->choices[segment];
    if (c->impl->library)
        define_product(p, c, out);
    else
        define_kernel(s, p, c, out);
}

static void add_scales(const struct standalone_spec *s, struct buf *out)
{
    const struct standalone_scales *of = s->scales;
    if (of == NULL) {
        buf_addf(out, "\nconst struct plan_scales %s_scales = {0};\n", s->name);
        return;
    }
    buf_adds(out, "\nstatic const float scales[][4] = {\n");
    for (int layer = 0; layer < of->layers; layer++) {
        buf_adds(out, "    {");
        for (int g = 0; g < GEMM_COUNT; g++)
            buf_addf(out, "%s%a", g > 0 ? ", " : "", (double)of->in[layer][g]);
        buf_adds(out, "},\n");
    }
    buf_addf(out, "};\nconst struct plan_scales %s_scales = {%d, 0x%llx, scales};\n", s->name,
             of->layers, (unsigned long long)of->model);
}

/* "90a", "80;90a": as CMake names them. */
static void add_cmake_archs(const struct arch_list *archs, struct buf *out)
{
    SCOPED_BUF name = BUF_INIT;
    for (int i = 0; i < archs->count; i++) {
        buf_reset(&name);
        arch_name(archs->arch[i], &name);
        buf_addf(out, "%s%s-real", i > 0 ? ";" : "", name.ptr + strlen("sm_"));
    }
}

#define NO_NVCC                                                                                    \
    "no nvcc found; install NVIDIA's CUDA toolkit and put nvcc on PATH, or name its directory "    \
    "with CUDA_HOME"

/* A library that calls cuBLASLt finds it at run time where the linker found it. */
static void add_variables(const struct filling *f, struct buf *out)
{
    buf_adds(out, "CC = cc\n"
                  "# nvcc of PATH, else of CUDA_HOME, in quotes as its path may have blanks\n"
                  "FOUND := $(shell nvcc=$$(command -v nvcc ||"
                  " command -v \"$${CUDA_HOME:-/usr/local/cuda}/bin/nvcc\") &&"
                  " printf \"'%s'\" \"$$nvcc\")\n"
                  "NVCC = $(or $(FOUND),$(error " NO_NVCC "))\n"
                  "TOOLKIT = $(shell set -- $(NVCC);"
                  " dirname \"$$(dirname \"$$(realpath \"$$(command -v \"$$1\")\")\")\")\n"
                  "CFLAGS = -O2\n"
                  "NVCCFLAGS = " CUDA_FLAGS " -O3 ");
    arch_options(&f->spec->archs, out);
    buf_adds(out, "\nHIDDEN = -fPIC -fvisibility=hidden\n");
    if (calls_library(f->spec)) /* nvcc takes one pair of quotes away, as the shell does */
        buf_adds(out, "LDLIBS = -lcublasLt -Xlinker '\"-rpath=$(TOOLKIT)/lib64\"'\n");
    buf_adds(out, "LINK = $(NVCC) $(NVCCFLAGS)\n");
}

/* CMake alone looks for nvcc on PATH only. */
#define CMAKE_NVCC                                                                                 \
    "if(NOT CMAKE_CUDA_COMPILER AND NOT DEFINED ENV{CUDACXX})\n"                                   \
    "  set(toolkit \"$ENV{CUDA_HOME}\")\n"                                                         \
    "  if(toolkit STREQUAL \"\")\n"                                                                \
    "    set(toolkit /usr/local/cuda)\n"                                                           \
    "  endif()\n"                                                                                  \
    "  find_program(CMAKE_CUDA_COMPILER nvcc PATHS ${toolkit}/bin)\n"                              \
    "  if(NOT CMAKE_CUDA_COMPILER)\n"                                                              \
    "    message(FATAL_ERROR \"" NO_NVCC "\")\n"                                                   \
    "  endif()\nendif()\n"

static void add_cmake_open(const struct filling *f, struct buf *out)
{
    buf_addf(out,
             CMAKE_NVCC
             "project(%s C CUDA)\nif(NOT CMAKE_BUILD_TYPE)\n"
             "  set(CMAKE_BUILD_TYPE Release)\nendif()\nfind_package(CUDAToolkit REQUIRED)\n"
             "set(LIBRARIES CUDA::cudart%s stdc++ m)",
             f->spec->name, calls_library(f->spec) ? " CUDA::cublasLt" : "");
}

/* A project around it has others, at least the default of nvcc. */
static void add_cmake_objects(const struct filling *f, struct buf *out)
{
    const char *name = f->spec->name;
    buf_addf(out,
             "set_target_properties(%s_objects PROPERTIES CUDA_STANDARD 17 CUDA_ARCHITECTURES \"",
             name);
    add_cmake_archs(&f->spec->archs, out);
    buf_addf(out,
             "\")\ntarget_include_directories(%s_objects PRIVATE ${CUDAToolkit_INCLUDE_DIRS})\n",
             name);
}

static void add_libraries(const struct filling *f, struct buf *out)
{
    buf_addf(out, "%s-lcudart -lstdc++", calls_library(f->spec) ? "-lcublasLt " : "");
}

static const struct placeholder placeholders[] = {
    {.name = "@VARIABLES@", .add = add_variables},
    {.name = "@LIBS@", .add = add_libraries},
    {.name = "@CMAKE_OPEN@", .add = add_cmake_open},
    {.name = "@CMAKE_OBJECTS@", .add = add_cmake_objects},
    {.name = "@RULES@",
     .text = "%.o: %.cu\n\t$(NVCC) $(NVCCFLAGS) $(addprefix -Xcompiler ,$(HIDDEN)) -c -o $@ $<\n\n"
             "%.o: %.c\n\t$(CC) $(CFLAGS) $(HIDDEN) -I\"$(TOOLKIT)/include\" -c -o $@ $<\n\n"},
    {.name = "@LANGUAGE@", .text = "CUDA"},
    {.name = "@CMAKE_PACKAGE@",
     .text = "include(CMakeFindDependencyMacro)\nfind_dependency(CUDAToolkit)\n"},
    {.name = "@CMAKE_EXAMPLE@", .text = ""},
    {.name = NULL},
};

const struct library_target cuda_library = {
    .suffix = ".cu",
    .defines = "",
    .group = KERNEL_CUDA_LIBRARY,
    .host = KERNEL_CUDA_HOST,
    .placeholders = placeholders,
    .declare_function = declare_function,
    .define_segment = define_segment,
    .add_tiles = add_tiles,
    .add_scales = add_scales,
};
