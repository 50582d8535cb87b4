/* emit_tiles: prints the program of the suite cuda_tiles, which checks these kernels: one for each
 * way in which roles of warps, residuals, norms, results or the order of tiles differ.  Left out:
 * split=, and what no tile's place depends on, such as types and head sizes. */
#include "codegen/cuda_int.h"

static const struct {
    const char *impl, *chain;
    struct segment segment;
    const char *schedule;
} kernels[] = {
    {"hopper_gemm", "bert", {10, 11}, "tile=128x192"},
    {"hopper_gemm", "bert", {12, 13}, "tile=128x192"},
    {"hopper_gemm", "bert", {12, 14}, "tile=128x192 norm=memory"},
    {"hopper_gemm", "bert", {12, 14}, "tile=128x192 norm=cluster"},
    {"hopper_gemm", "bert", {12, 14}, "tile=64x192 norm=cluster"},
    {"hopper_gemm", "bert", {10, 11}, "tile=128x192_cooperative"},
    {"hopper_gemm", "bert", {12, 14}, "tile=128x192_cooperative norm=memory"},
    {"hopper_gemm", "bert", {10, 11}, "tile=64x96_cluster2x1"},
    {"hopper_gemm", "bert", {12, 14}, "tile=64x96_cluster2x1 norm=memory"},
    {"hopper_gemm", "bert", {12, 13}, "tile=144x128_swap"},
    {"hopper_gemm", "bert", {12, 14}, "tile=144x128_swap norm=cluster"},
    {"hopper_gemm", "bert", {12, 14}, "tile=96x192_swap_pingpong norm=memory"},
    {"hopper_gemm", "bert", {10, 11}, "tile=128x192_kept e4m3=ffn1"},
    {"hopper_gemm", "bert", {10, 11}, "tile=64x192 e4m3=ffn1+ffn2"},
    {"hopper_gemm", "bert", {12, 14}, "tile=128x192 norm=memory e4m3=qkv+ffn2"},
    {"hopper_gemm", "bert", {12, 14}, "tile=64x192 norm=cluster e4m3=qkv+ffn2"},
    {"hopper_gemm", "pre", {7, 9}, "tile=128x192 norm=memory"},
    {"hopper_gemm", "pre", {7, 9}, "tile=144x128_swap norm=memory"},
    {"hopper_gemm", "pre", {7, 9}, "tile=64x192 norm=cluster e4m3=ffn1"},
    {"hopper_gemm", "pre", {12, 14}, "tile=64x192 norm=memory e4m3=qkv+ffn2"},
    {"hopper_gemm", "gate", {10, 11}, "tile=128x192"},
    {"hopper_gemm", "gate", {10, 11}, "tile=128x256 e4m3=ffn1+ffn2"},
    {"hopper_attention", "bert", {1, 6}, "shape=64_cluster"},
    {"hopper_attention", "bert", {1, 6}, "shape=64 cover=ordered"},
    {"hopper_attention", "bert", {1, 6}, "shape=64 cover=joined"},
    {"hopper_attention", "bert", {1, 6}, "shape=128"},
};

int main(void)
{
    struct status st = STATUS_INIT;
    puts("#include \"attention_tiles.cuh\"\n#include \"gemm_tiles.cuh\"\n\nint main()\n{");
    for (size_t i = 0; i < ARRAY_LEN(kernels); i++) {
        struct choice c = {.chain = chain_find(kernels[i].chain),
                           .segment = kernels[i].segment,
                           .impl = impl_find(TARGET_CUDA, kernels[i].impl)};
        struct cuda_stage stage;
        struct fp_hopper_gemm gemm;
        struct fp_hopper_attention attention;
        SCOPED_BUF numbers = BUF_INIT;
        if (schedule_parse(c.impl, kernels[i].schedule, &c.schedule, &st) != 0) {
            fprintf(stderr, "emit_tiles: %s\n", st.message);
            return EXIT_FAILURE;
        }
        if (c.impl->emit == emit_hopper_gemm) {
            hopper_gemm_of(&c, &stage, &gemm);
            add_hopper_gemm(&gemm, &numbers);
        } else {
            hopper_attention_of(&c, 64, &attention);
            add_hopper_attention(&attention, &numbers);
        }
        printf("    static constexpr fp_%s kernel_%zu = %s;\n", c.impl->name, i, numbers.ptr);
        printf("    check_%s<kernel_%zu>(\"%s %d-%d %s\");\n", c.impl->name, i, kernels[i].chain,
               c.segment.first, c.segment.last, kernels[i].schedule);
    }
    puts("}");
    return EXIT_SUCCESS;
}
