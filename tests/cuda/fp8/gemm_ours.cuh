/* hopper_gemm.cuh's kernel alone, with operands of e4m3 or fp16: its configurations and launches.
 */
#pragma once

#include "fp8.cuh"

#include "hopper_gemm.cuh"

#include <cudaTypedefs.h>

enum { SHARED_BYTES = 227 << 10 }; /* of a thread block on Hopper, at most */

constexpr float ALPHA = 1.0f / 512; /* the product of the operands' scales */
enum { SYNC_BYTES = 32 << 20 };

constexpr float EPS = 1e-5f;
constexpr float FACTOR = 32; /* 1 over the scale of a result of e4m3 */

enum ending { PLAIN, RESIDUAL, NORM, GELU, GELU_E4M3 }; /* the last one's result is e4m3 */

struct problem {
    const char *name;
    int rows, columns, inner;
    const __nv_fp8_e4m3 *codes, *weight_codes; /* (rows, inner), (columns, inner) */
    const __half *in, *weight;                 /* (rows, inner), (inner, columns) */
    const __half *bias;                        /* (columns); null: none */
    const __half *residual, *half_residual;    /* (rows, columns), the former for e4m3 */
    const __half *gamma, *beta;                /* (columns) of a layernorm */
    unsigned *sync;                            /* zeros, SYNC_BYTES */
    void *out;                                 /* (rows, columns) */
};

template <ending ENDING> struct finish_of {
    template <class D> static FP_DEVICE uint32_t packed(float x, float y)
    {
        return ENDING < GELU ? D::pack(x, y) : fp::activation<D, fp::gelu_function>::packed(x, y);
    }
};

constexpr fp_hopper_gemm with_depth(fp_hopper_gemm g)
{
    g.depth = 0;
    const int bytes = fp_hopper_gemm_shared(g);
    g.depth = 1;
    g.depth = (SHARED_BYTES - bytes) / (fp_hopper_gemm_shared(g) - bytes);
    return g;
}

/* Bytes of a step, not elements, so that fp16 and e4m3 have the same. */
template <bool E4M3_, int ROWS, int COLUMNS, int STEP_BYTES, int TEAMS, int GROUPS, int CLUSTER,
          bool SWAP, ending ENDING_>
struct tile_of {
    static constexpr bool E4M3 = E4M3_;
    static constexpr ending ENDING = ENDING_;
    static constexpr fp_hopper_gemm config = with_depth(
        {ROWS, COLUMNS, E4M3 ? STEP_BYTES : STEP_BYTES / 2, TEAMS, GROUPS, 0, 1, CLUSTER,
         ENDING == NORM ? FP_NORM_MEMORY : FP_NORM_NONE, SWAP, ENDING == RESIDUAL || ENDING == NORM,
         false, false, false, E4M3, ENDING == GELU_E4M3, false});
    static constexpr int threads = fp_hopper_gemm_threads(config);
};

template <class TILE>
__global__ void __launch_bounds__(TILE::threads, 1)
    gemm(const __grid_constant__ fp_args a, const __grid_constant__ fp_maps maps)
{
    extern __shared__ __align__(16) unsigned char shared[];
    using D = fp::fp16;
    fp::begin_next(a);
    const fp::token_view<D> in{fp::elements<D>(a.gemm.in), a.gemm.inner};
    const fp::store_tokens<D> store{fp::elements<D>(a.gemm.out), a.gemm.columns};
    const fp::hopper_gemm::ending<D, finish_of<TILE::ENDING>, fp::store_tokens<D>> end{
        fp::elements<D>(a.gemm.bias), nullptr, {}, store, fp::elements<D>(a.gemm.gamma),
        fp::elements<D>(a.gemm.beta), a.eps};
    fp::hopper_gemm::run<D, TILE::config>(a, maps, in, end, shared);
}

/* The map of a matrix in row-major order, of elements of so many bytes. */
inline void encode(fp_map *map, const void *at, int bytes, int rows, int columns, int box_rows,
                   int box_columns)
{
    static PFN_cuTensorMapEncodeTiled_v12000 encoder;
    cudaDriverEntryPointQueryResult found;
    const cuuint64_t size[2] = {(cuuint64_t)columns, (cuuint64_t)rows},
                     pitch[1] = {(cuuint64_t)columns * bytes};
    const cuuint32_t box[2] = {(cuuint32_t)box_columns, (cuuint32_t)box_rows}, step[2] = {1, 1};
    if (encoder == nullptr)
        CHECK(cudaGetDriverEntryPointByVersion("cuTensorMapEncodeTiled", (void **)&encoder, 12000,
                                               cudaEnableDefault, &found));
    const CUresult result =
        encoder((CUtensorMap *)map,
                bytes == 1 ? CU_TENSOR_MAP_DATA_TYPE_UINT8 : CU_TENSOR_MAP_DATA_TYPE_UINT16, 2,
                (void *)at, size, pitch, box, step, CU_TENSOR_MAP_INTERLEAVE_NONE,
                box_columns * bytes == 128 ? CU_TENSOR_MAP_SWIZZLE_128B : CU_TENSOR_MAP_SWIZZLE_64B,
                CU_TENSOR_MAP_L2_PROMOTION_L2_256B, CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE);
    if (result != CUDA_SUCCESS) {
        fprintf(stderr, "cuTensorMapEncodeTiled: error %d\n", (int)result);
        exit(1);
    }
}

template <class TILE> fp_maps maps_of(const problem &p)
{
    constexpr fp_hopper_gemm g = TILE::config;
    const int panel = fp_hopper_gemm_panel(g), line = fp_hopper_gemm_input_panel(g);
    fp_maps maps = {};
    if (TILE::E4M3) {
        encode(&maps.in, p.codes, 1, p.rows, p.inner, g.rows, line);
        encode(&maps.weight, p.weight_codes, 1, p.columns, p.inner, g.columns / g.cluster, line);
    } else {
        encode(&maps.in, p.in, 2, p.rows, p.inner, g.rows, line);
        encode(&maps.weight, p.weight, 2, p.inner, p.columns, g.step / g.cluster, panel);
    }
    encode(g.out_e4m3 ? &maps.e4m3 : &maps.out, p.out, g.out_e4m3 ? 1 : 2, p.rows, p.columns,
           g.swap ? g.rows : FP_GEMM_STORED_ROWS, panel);
    if (g.adds)
        encode(&maps.residual, TILE::E4M3 ? p.residual : p.half_residual, 2, p.rows, p.columns,
               fp_hopper_gemm_residual_rows(g), panel);
    return maps;
}

/* As many thread blocks as there are tiles, or as the GPU holds at once.  Those that exchange a
 * layernorm's moments wait for each other; two neighbours are a cluster, as in a plan. */
template <class TILE> cudaLaunchConfig_t config_of(const problem &p, cudaLaunchAttribute (&two)[2])
{
    constexpr fp_hopper_gemm g = TILE::config;
    constexpr int bytes = fp_hopper_gemm_shared(g);
    const bool pairs = TILE::ENDING == NORM && p.columns / g.columns % 2 == 0;
    const int width = pairs ? 2 : g.cluster;
    const int tiles = (p.rows + g.cluster * g.rows - 1) / (g.cluster * g.rows) * g.cluster *
                      ((p.columns + g.columns - 1) / g.columns);
    int clusters;
    cudaLaunchConfig_t config = {};
    two[0].id = cudaLaunchAttributeClusterDimension;
    two[0].val.clusterDim = {(unsigned)width, 1, 1};
    two[1].id = cudaLaunchAttributeProgrammaticStreamSerialization;
    two[1].val.programmaticStreamSerializationAllowed = 1;
    config.gridDim = dim3(width);
    config.blockDim = dim3(TILE::threads);
    config.dynamicSmemBytes = bytes;
    config.attrs = two;
    config.numAttrs = 1;
    CHECK(cudaFuncSetAttribute(gemm<TILE>, cudaFuncAttributeMaxDynamicSharedMemorySize, bytes));
    CHECK(cudaOccupancyMaxActiveClusters(&clusters, gemm<TILE>, &config));
    config.gridDim = dim3(std::min(tiles, clusters * width));
    return config;
}

/* early: as in a plan, where the next kernel may begin when all thread blocks of this one have. */
template <class TILE> void launch_tile(const problem &p, bool early, cudaStream_t stream)
{
    cudaLaunchAttribute attributes[2] = {};
    cudaLaunchConfig_t config = config_of<TILE>(p, attributes);
    fp_args a = {};
    a.batch = 1, a.seq_len = a.tokens = p.rows, a.heads = 12, a.head_size = 64, a.ffn = 3072;
    a.early = early;
    a.eps = EPS;
    a.e4m3.alpha = ALPHA, a.e4m3.inverse = 1 / ALPHA;
    a.e4m3.factors = 0x50005000; /* FACTOR in fp16, twice */
    a.sync = p.sync;
    a.gemm = {p.columns, p.inner, nullptr, p.out, nullptr, p.bias, p.gamma, p.beta};
    config.stream = stream;
    config.numAttrs = early ? 2 : 1;
    CHECK(cudaLaunchKernelEx(&config, gemm<TILE>, a, maps_of<TILE>(p)));
}
