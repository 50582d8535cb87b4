#include "codegen/cuda_int.h"

#define INCLUDES "\n#include <stdint.h>\n"

/* The type of a stored element in host code, which converts from and to float. */
static const struct {
    const char *includes, *type;
} elements[DTYPE_COUNT] = {
    [DTYPE_FP32] = {INCLUDES, "float"},
    [DTYPE_TF32] = {INCLUDES, "float"},
    [DTYPE_FP16] = {INCLUDES "#include <cuda_fp16.h>\n", "__half"},
    [DTYPE_BF16] = {INCLUDES "#include <cuda_bf16.h>\n", "__nv_bfloat16"},
};

static void add_includes(const struct standalone_spec *s, struct buf *out)
{
    buf_adds(out, elements[s->target.dtype].includes);
}

static void declare_segments(const struct standalone_spec *s, struct buf *out)
{
    buf_addf(out, "using plan_element = %s; /* of tensors and weights: %s */\n\n",
             elements[s->target.dtype].type, dtypes[s->target.dtype].name);
    buf_adds(
        out,
        "/* The mask by tiles of query blocks, as fp_tiles of abi.h but in host memory.  Null\n"
        " * words are those of plan_mask. */\n"
        "struct plan_tiles {\n"
        "    int count, parts;\n"
        "    const int *tile, *head, *rest;\n"
        "    const unsigned long long *words;\n"
        "    const int *query_token, *key_token;\n"
        "    long tile_ints, head_ints, rest_ints, words_count, tokens;\n"
        "};\n\n"
        "/* A matrix that a kernel copies by TMA; see maps.cuh.  size[0] = 0: none. */\n"
        "enum { PLAN_MAPS = 4 };\n"
        "struct plan_map {\n"
        "    bool weight; /* else a tensor */\n"
        "    int index;\n"
        "    uint64_t size[2]; /* columns, rows */\n"
        "    unsigned box[2];\n"
        "};\n\n"
        "/* In the order in which they run. */\n"
        "struct plan_segment {\n"
        "    const void *kernel;        /* null: call() launches */\n"
        "    int threads, shared_bytes; /* of a thread block */\n"
        "    bool cooperative;          /* thread blocks meet in it */\n"
        "    bool persistent;           /* no more of them than the GPU holds at once */\n"
        "    const struct plan_map *maps; /* (PLAN_MAPS); null: it takes none */\n"
        "    const struct plan_tiles *query_tiles; /* null: it reads none */\n"
        "    long tiles;                /* more thread blocks would idle */\n"
        "    long sync_words, workspace_bytes;\n"
        "    void (*call)(const fp_args &a, int algorithm, cudaStream_t stream);\n"
        "    int algorithm;\n"
        "};\n");
}

/* A plan has one attention at most. */
static void add_tiles(const struct workload *w, const struct tiling *t, struct buf *out)
{
    struct query_tiles q;
    query_tiles_build(w, t, &q);
    bool ordered = q.words != NULL;
    int64_t tile_ints = (int64_t)q.count * TILE_INTS;
    int64_t head_ints = (int64_t)q.count * TILE_HEAD * q.entry_ints;
    int64_t rest_ints = (q.rest_count + TILE_HEAD) * q.entry_ints;
    int64_t words = q.word_blocks * MASK_BLOCK;
    int64_t tokens = ordered ? (int64_t)q.parts * w->blocks.blocks * MASK_BLOCK : 0;
    add_ints("tiles", q.tile, tile_ints, out);
    add_ints("tile_head", q.head, head_ints, out);
    add_ints("tile_rest", q.rest, rest_ints, out);
    if (ordered) {
        add_words("tile_words", "unsigned long long", q.words, words, out);
        add_ints("query_token", q.query_token, tokens, out);
        add_ints("key_token", q.key_token, tokens, out);
    }
    buf_addf(out,
             "static const struct plan_tiles query_tiles = {%d, %d, tiles, tile_head, tile_rest, "
             "%s,\n    %lld, %lld, %lld, %lld, %lld};\n",
             q.count, q.parts,
             ordered ? "tile_words, query_token, key_token" : "nullptr, nullptr, nullptr",
             (long long)tile_ints, (long long)head_ints, (long long)rest_ints, (long long)words,
             (long long)tokens);
    query_tiles_release(&q);
}

static bool has_maps(const struct cuda_launch *l)
{
    return l->maps[CUDA_MAP_WEIGHT].size[0] > 0;
}

/* "static const struct plan_map SYMBOL_maps[PLAN_MAPS] = {...};" */
static void add_maps(const struct choice *c, const struct cuda_launch *l, struct buf *out)
{
    buf_adds(out, "static const struct plan_map\n");
    choice_symbol(c, out);
    buf_adds(out, "_maps[PLAN_MAPS] = {\n");
    for (int i = 0; i < CUDA_MAPS; i++) {
        const struct cuda_map *m = &l->maps[i];
        buf_addf(out, "    {%s, %d, {%lld, %lld}, {%d, %d}},\n", m->weight ? "true" : "false",
                 m->index, (long long)m->size[0], (long long)m->size[1], m->box[0], m->box[1]);
    }
    buf_adds(out, "};\n");
}

static void declare_function(const struct standalone_spec *s, int segment, struct buf *out)
{
    const struct choice *c = &s->candidate->choices[segment];
    struct cuda_launch l = {.threads = 0};
    if (!c->impl->library)
        choice_launch(c, s->workload, &l);
    buf_addf(out, "extern \"C\" %s\n", c->impl->library ? "void" : "__global__ void");
    choice_symbol(c, out);
    buf_adds(out,
             c->impl->library ? "(const fp_args &a, int algorithm, cudaStream_t stream);\n"
             : has_maps(&l)
                 ? "(const __grid_constant__ fp_args a, const __grid_constant__ fp_maps maps);\n"
                 : "(const __grid_constant__ fp_args a);\n");
    if (has_maps(&l))
        add_maps(c, &l, out);
    if (l.tiling.rows > 0)
        add_tiles(s->workload, &l.tiling, out);
}

static void add_call(const struct choice *c, struct buf *out)
{
    buf_addf(out, "    {nullptr, 0, 0, false, false, nullptr, nullptr, 0, 0, %d,\n     ",
             CUDA_LIBRARY_WORKSPACE_BYTES);
    choice_symbol(c, out);
    buf_addf(out, ", %d},\n", choice_knob(c, "algorithm"));
}

static void add_kernel(const struct choice *c, const struct workload *w, struct buf *out)
{
    struct cuda_launch l;
    choice_launch(c, w, &l);
    buf_adds(out, "    {(const void *)");
    choice_symbol(c, out);
    buf_addf(out, ",\n     %d, %d, %s, %s, ", l.threads, l.shared_bytes,
             l.cooperative ? "true" : "false", l.persistent ? "true" : "false");
    if (has_maps(&l))
        choice_symbol(c, out);
    buf_addf(out, "%s, %s, %lld, %lld, %lld, nullptr, 0},\n", has_maps(&l) ? "_maps" : "nullptr",
             l.tiling.rows > 0 ? "&query_tiles" : "nullptr", (long long)l.tiles,
             (long long)l.sync_words, (long long)l.workspace_bytes);
}

static void define_segment(const struct standalone_spec *s, int segment, struct buf *out)
{
    const struct choice *c = &s->candidate->choices[segment];
    if (c->impl->library)
        add_call(c, out);
    else
        add_kernel(c, s->workload, out);
}

/* A program that calls cuBLASLt finds it at run time where the linker found it. */
static void add_variables(const struct standalone_spec *s, struct buf *out)
{
    buf_adds(out, "NVCC = nvcc\n"
                  "NVCCFLAGS = " CUDA_FLAGS " -O3 ");
    arch_options(&s->archs, out);
    buf_adds(out, "\n");
    if (calls_library(s->candidate))
        buf_adds(out, "TOOLKIT = $(dir $(realpath $(shell command -v $(firstword $(NVCC)))))..\n"
                      "LDLIBS = -lcublasLt -Xlinker -rpath=$(TOOLKIT)/lib64\n");
}

const struct program cuda_program = {
    .suffix = ".cu",
    .word_type = "unsigned long long",
    .compiler = "$(NVCC) $(NVCCFLAGS)",
    .rule = "%.o: %.cu\n\t$(NVCC) $(NVCCFLAGS) -c -o $@ $<\n\n",
    .headers = "*.h *.cuh",
    .add_includes = add_includes,
    .declare_segments = declare_segments,
    .declare_function = declare_function,
    .define_segment = define_segment,
    .add_variables = add_variables,
};
