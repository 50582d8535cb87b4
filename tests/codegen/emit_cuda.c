/* emit_cuda golden|sample|all|CHAIN DIR: writes CUDA sources into DIR: the golden ones, a few to
 * compile within seconds, every segment, or every one of another chain.  Prints a line for each to
 * compile: file, compiler's options. sizes.cu has no kernel: it compiles where what launches assume
 * is what the headers say. */
#include "codegen/cuda_int.h"
#include "cuda_sources.h"
#include "kernels/cuda/abi.h"

static const struct build_target hopper = {HOPPER_FP16, .ordered = true};
static const char *directory;

static void write_source(const char *name, const struct build_target *t, const struct buf *text)
{
    struct status st = STATUS_INIT;
    SCOPED_BUF path = BUF_INIT, options = BUF_INIT;
    buf_addf(&path, "%s/%s", directory, name);
    build_options(t, &options);
    if (file_write(path.ptr, text->ptr, text->len, &st) != 0) {
        fprintf(stderr, "emit_cuda: %s\n", st.message);
        exit(EXIT_FAILURE);
    }
    printf("%s %s\n", name, options.ptr);
}

static void write_golden_one(const struct cuda_source *s, const char *suffix)
{
    SCOPED_BUF name = BUF_INIT, text = BUF_INIT;
    choice_symbol(&s->choice, &name);
    buf_addf(&name, "%s.cu", suffix);
    choice_emit(&s->choice, &s->target, &text);
    write_source(name.ptr, &s->target, &text);
}

static void write_golden(void)
{
    for (int i = 0; i < CUDA_GOLDEN_COUNT; i++) {
        const struct cuda_source s = cuda_golden(i);
        write_golden_one(&s, "");
    }
}

/* The same with stamps; of a sample the first of each implementation. */
static void write_stamped(bool all)
{
    const struct impl *done[CUDA_GOLDEN_COUNT] = {NULL};
    for (int i = 0; i < CUDA_GOLDEN_COUNT; i++) {
        struct cuda_source s = cuda_golden(i);
        s.choice.stamped = true;
        bool again = s.choice.impl->library;
        for (int k = 0; k < i && !all; k++)
            again = again || done[k] == s.choice.impl;
        done[i] = s.choice.impl;
        if (!again)
            write_golden_one(&s, "_stamped");
    }
}

/* "00_14_fp16_64_sm90_bert_hopper_12.cu": all that can differ; with e4m3, "..._e4m3_1.cu". */
static void write_choice(const struct build_target *t, const struct choice *c)
{
    SCOPED_BUF name = BUF_INIT, text = BUF_INIT;
    buf_addf(&name, "%02d_%02d_%s_%d_sm%d_%s_%s_", c->segment.first, c->segment.last,
             dtypes[t->dtype].name, t->head_size, t->arch, c->chain->name, c->impl->name);
    for (int k = 0; k < c->impl->knob_count; k++)
        buf_addf(&name, "%d", c->schedule.pick[k]);
    if (c->schedule.precision != 0)
        buf_addf(&name, "_e4m3_%d", c->schedule.precision);
    buf_adds(&name, ".cu");
    choice_emit(c, t, &text);
    write_source(name.ptr, t, &text);
}

static int knobs_apart_from_default(const struct choice *c)
{
    int apart = 0;
    for (int k = 0; k < c->impl->knob_count; k++)
        apart += c->schedule.pick[k] != 0;
    return apart;
}

/* The choices of a segment with at most `apart` knobs that are not at their default.  impl: of this
 * implementation; null: of all that are not written by hand. */
static void write_segment(const struct build_target *t, struct segment s, const char *impl,
                          int apart)
{
    struct choice choices[CUDA_CHOICES_MAX];
    bool handwritten = impl != NULL && impl_find(TARGET_CUDA, impl)->handwritten;
    int count = choices_for(t, s, handwritten, CUDA_CHOICES_MAX, choices);
    for (int i = 0; i < count; i++)
        if ((impl == NULL || strcmp(choices[i].impl->name, impl) == 0) &&
            knobs_apart_from_default(&choices[i]) <= apart)
            write_choice(t, &choices[i]);
}

static void write_gemms(int first, int last, int apart)
{
    write_segment(&hopper, (struct segment){(int8_t)first, (int8_t)last}, "hopper_gemm", apart);
}

/* A segment of each kind of stage. */
static void write_kinds(const struct build_target *t, int apart)
{
    static const struct segment kinds[] = {{0, 1}, {1, 1},   {1, 6},  {2, 4},
                                           {6, 9}, {10, 11}, {12, 14}};
    for (size_t i = 0; i < ARRAY_LEN(kinds); i++)
        write_segment(t, kinds[i], NULL, apart);
    write_segment(t, (struct segment){2, 6}, "handwritten", 1);
}

/* Tiles of whole heads, whose q and k are turned. */
static void write_turned(void)
{
    static const int head_sizes[] = {32, 48, 64, 96, 128};
    struct build_target t = hopper;
    t.chain = chain_find("rope");
    for (size_t i = 0; i < ARRAY_LEN(head_sizes); i++) {
        t.head_size = head_sizes[i];
        write_segment(&t, (struct segment){0, 1}, "hopper_gemm", 2);
    }
}

/* All that reads or stores e4m3, each where it also stores a half type and where it does not.
 * Chains differ in the first four, types in the first six. */
enum { E4M3_DIFFER = 4, E4M3_ROUND = 6, E4M3_ALL = 11 };

static void write_e4m3(const char *chain, enum dtype dtype, int count, int apart)
{
    static const struct segment segments[E4M3_ALL] = {{0, 1},   {7, 9},   {10, 11}, {12, 14},
                                                      {0, 0},   {1, 6},   {2, 6},   {7, 8},
                                                      {10, 10}, {12, 12}, {12, 13}};
    struct build_target t = hopper;
    t.chain = chain_find(chain);
    t.dtype = dtype;
    t.precision = GEMM_ALL;
    for (int i = 0; i < count; i++)
        write_segment(&t, segments[i], NULL, apart);
}

static void write_all(const struct chain *chain, int arch)
{
    static const int head_sizes[] = {16, 32, 128, 48, 80, 96, 256};
    struct build_target t = {.chain = chain,
                             .kind = TARGET_CUDA,
                             .dtype = DTYPE_FP16,
                             .head_size = 64,
                             .arch = arch,
                             .ordered = true};
    for (int i = 0; i < SEGMENT_COUNT; i++)
        write_segment(&t, segment_at(i), NULL, 0);
    for (int d = 0; d < DTYPE_COUNT; d++) {
        t.dtype = (enum dtype)d;
        write_kinds(&t, t.dtype == DTYPE_FP16 ? 1 : 0);
    }
    for (size_t i = 0; i < ARRAY_LEN(head_sizes); i++) {
        t.dtype = (enum dtype)(i % DTYPE_COUNT);
        t.head_size = head_sizes[i];
        write_segment(&t, (struct segment){0, 14}, NULL, 0);
        write_segment(&t, (struct segment){2, 6}, "handwritten", 1);
    }
}

/* ---- sizes.cu -------------------------------------------------------------------------------- */

/* Kernels compare the sizes themselves where they are instantiated. */
static void add_gemm_sizes(enum dtype dtype, struct buf *out)
{
    const struct build_target t = {.chain = &chain_bert,
                                   .kind = TARGET_CUDA,
                                   .dtype = dtype,
                                   .head_size = 64,
                                   .arch = CUDA_ARCH_HOPPER,
                                   .ordered = true};
    /* Bare, with a residual, with a layernorm, too. */
    static const struct segment endings[] = {{0, 0}, {7, 8}, {7, 9}};
    struct choice choices[ARRAY_LEN(endings) * CUDA_CHOICES_MAX];
    int count = 0;
    for (size_t i = 0; i < ARRAY_LEN(endings); i++)
        count += choices_for(&t, endings[i], false, CUDA_CHOICES_MAX, choices + count);
    for (int i = 0; i < count; i++) {
        const char *name = dtypes[dtype].name;
        struct cuda_kernel k;
        struct cuda_stage stage;
        struct fp_hopper_gemm g;
        if (choices[i].impl->emit == emit_hopper_gemm) {
            hopper_gemm_of(&choices[i], &stage, &g);
            buf_addf(out, "constexpr fp_hopper_gemm %s_%d = ", name, i);
            add_hopper_gemm(&g, out);
            buf_addf(out, ";\nstatic_assert(sizeof(fp::hopper_gemm::shape<fp::%s, %s_%d>) > 0);\n",
                     name, name, i);
        } else if (choices[i].impl->launch == cuda_launch) {
            cuda_kernel_of(&choices[i], &k);
            buf_addf(out,
                     "static_assert(sizeof(fp::gemm_shape<fp::%s, %d, %d, %d, %d, %d, %d>) > 0);\n",
                     name, k.tile->bm, k.tile->bn, k.tile->depth, k.tile->warps_m, k.tile->warps_n,
                     k.split);
        }
    }
}

static void add_attention_sizes(enum dtype dtype, int head_size, struct buf *out)
{
    const char *name = dtypes[dtype].name;
    buf_addf(out, "static_assert(sizeof(fp::attention<fp::%s, %d, FP_SCORES, 128>) > 0);\n", name,
             head_size);
    for (int split_keys = dtype == DTYPE_FP32; split_keys < 2; split_keys++)
        buf_addf(out, "static_assert(sizeof(fp::hand_attention<fp::%s, %d, %s>) > 0);\n", name,
                 head_size, split_keys != 0 ? "true" : "false");
}

static void add_hopper_attention_sizes(int head_size, struct buf *out)
{
    const struct build_target t = {.chain = &chain_bert,
                                   .kind = TARGET_CUDA,
                                   .dtype = DTYPE_FP16,
                                   .head_size = head_size,
                                   .arch = CUDA_ARCH_HOPPER,
                                   .ordered = true,
                                   .joined = true};
    struct choice choices[CUDA_CHOICES_MAX];
    int count = choices_for(&t, (struct segment){1, 6}, false, CUDA_CHOICES_MAX, choices);
    for (int i = 0; i < count; i++) {
        struct fp_hopper_attention h;
        if (choices[i].impl->emit != emit_hopper_attention)
            continue;
        hopper_attention_of(&choices[i], head_size, &h);
        buf_addf(out, "constexpr fp_hopper_attention shape_%d_%d = ", head_size, i);
        add_hopper_attention(&h, out);
        buf_addf(out,
                 ";\nstatic_assert(sizeof(fp::hopper_attention::shape<fp::fp16, FP_SPLIT | "
                 "FP_MERGE, shape_%d_%d>) > 0);\n",
                 head_size, i);
    }
}

static void write_sizes(void)
{
    static const int head_sizes[] = {8, 16, 32, 48, 64, 72, 80, 96, 104, 128, 256};
    SCOPED_BUF text = BUF_INIT;
    buf_adds(&text, "#include \"attention.cuh\"\n#include \"hopper_attention.cuh\"\n"
                    "#include \"gemm.cuh\"\n#include \"handwritten.cuh\"\n"
                    "#include \"hopper_gemm.cuh\"\n\n");
    buf_addf(&text,
             "static_assert(sizeof(fp_args) == %zu && sizeof(fp_maps) == %zu && "
             "FP_SYNC_TILES == %d);\n",
             sizeof(struct fp_args), sizeof(struct fp_maps), FP_SYNC_TILES);
    for (int head_size = 32; head_size <= 128; head_size += 8)
        add_hopper_attention_sizes(head_size, &text);
    for (int d = 0; d < DTYPE_COUNT; d++) {
        add_gemm_sizes((enum dtype)d, &text);
        for (size_t i = 0; i < ARRAY_LEN(head_sizes); i++)
            add_attention_sizes((enum dtype)d, head_sizes[i], &text);
    }
    write_source("sizes.cu", &hopper, &text);
}

int main(int argc, char **argv)
{
    if (argc != 3)
        return EXIT_FAILURE;
    directory = argv[2];
    const struct chain *chain = chain_find(argv[1]);
    write_golden();
    if (chain != NULL) {
        write_all(chain, CUDA_ARCH_MIN);
        write_all(chain, CUDA_ARCH_HOPPER);
        return EXIT_SUCCESS;
    }
    if (strcmp(argv[1], "golden") == 0)
        return EXIT_SUCCESS;
    write_sizes();
    write_stamped(strcmp(argv[1], "all") == 0);
    write_segment(&hopper, (struct segment){0, 14}, NULL, 0);
    write_gemms(12, 14, 1);
    struct build_target other = hopper;
    other.chain = chain_find("pre+rms+silu+gate+rope+bias");
    write_kinds(&other, 0);
    write_e4m3("bert", DTYPE_FP16, E4M3_ALL, 0);
    write_e4m3("bert", DTYPE_BF16, E4M3_ROUND, 0);
    write_e4m3("pre+gelu_tanh+gate+rope", DTYPE_FP16, E4M3_DIFFER, 0);
    if (strcmp(argv[1], "all") == 0) {
        write_all(&chain_bert, CUDA_ARCH_MIN);
        write_all(&chain_bert, CUDA_ARCH_HOPPER);
        write_gemms(12, 13, 1);
        write_gemms(0, 1, 2);
        write_gemms(6, 8, 2);
        write_gemms(10, 11, 2);
        write_gemms(6, 9, 2);
        write_turned();
        write_e4m3("bert", DTYPE_FP16, E4M3_ALL, 3);
        write_e4m3("bert", DTYPE_BF16, E4M3_ROUND, 3);
    }
    return EXIT_SUCCESS;
}
