/* What all steps of attention on Hopper know: pairs of elements, the numbers of its configuration,
 * shared memory, the state of a row, and the counter by which two parts of a mask are joined. */
#ifndef FUSEPLAN_CUDA_HOPPER_ATTENTION_WORK_CUH
#define FUSEPLAN_CUDA_HOPPER_ATTENTION_WORK_CUH

#include "hopper.cuh"
#include "hopper_attention.h"
#include "wgmma.cuh"

namespace fp::hopper_attention
{

constexpr int WORD_SKIP = -2; /* in the place of a query block: it skips this key block */

/* x, which is equal in all lanes, in a form that the compiler knows to be uniform. */
FP_DEVICE u32 uniform(u32 x)
{
    return __reduce_or_sync(0xffffffffu, x);
}

/* Sums of two pairs, rounded once; bits of exponents, and what makes a carry of full ones. */
template <class D> struct pairs;
template <> struct pairs<fp16> {
    static constexpr u32 EXPONENTS = 0x7c007c00, LOWEST = 0x04000400;
    static FP_DEVICE u32 add(u32 x, u32 y)
    {
        u32 r;
        asm("add.rn.f16x2 %0, %1, %2;" : "=r"(r) : "r"(x), "r"(y));
        return r;
    }
};
template <> struct pairs<bf16> {
    static constexpr u32 EXPONENTS = 0x7f807f80, LOWEST = 0x00800080;
    static FP_DEVICE u32 add(u32 x, u32 y)
    {
        u32 r;
        asm("add.rn.bf16x2 %0, %1, %2;" : "=r"(r) : "r"(x), "r"(y));
        return r;
    }
};

/* Maxima and sums of a lane's two rows so far; `top` is of the whole row, `start` minus its
 * shift(), `sum` of the lane's columns.  limit: what `top` is raised at, as bits; least where that
 * is negative.  With FOLDS neither top nor sum is used, and limit is of shifted scores. */
struct row_state {
    float top[2], start[2], sum[2];
    int limit[2];
};

/* What the warpgroups that compute must know of a tile. */
struct tile_item {
    int entries; /* -1: no tile is left */
    int batch, head, block, length, part;
    int stored; /* whether the first part was stored when the tile was loaded */
    int unused;
};

/* OPS: bits of fp_attention_op.  Kernels call the numbers of the configuration C warpgroups that
 * compute, G query blocks of a tile, STAGES of the ring and P warps that load. */
template <class D_, int OPS, const fp_hopper_attention &A> struct shape {
    using D = D_;
    static constexpr int W = A.head_size, C = A.consumers, G = A.rows, STAGES = A.ring,
                         P = A.producers, CLUSTER = A.cluster;
    static constexpr bool SPLIT = OPS & FP_SPLIT, BIAS = OPS & FP_BIAS, MERGE = OPS & FP_MERGE,
                          SCORE_BIAS = OPS & FP_BIAS_MASK;
    static constexpr bool DRAWS = A.draws, OVERLAP = A.overlap, QREG = A.q_in_registers,
                          ORDERED = A.ordered, OUT_E4M3 = A.out_e4m3, JOINED = A.joined,
                          TMA = A.tma;
    /* Products do what fp32 instructions do elsewhere, each of which holds up the tensor cores for
     * a cycle: q comes scaled, scores begin with minus the shift, and columns of ones beside v give
     * a row's sum. */
    static constexpr bool FOLDS = TMA;
    /* Who copies keys waits for them and makes them visible to products; else who multiplies does,
     * which is slower here, and faster where three warpgroups share a ring. */
    static constexpr bool LANDS = DRAWS && C == 2 && W <= 64;
    static_assert(is_half<D> && W % 8 == 0 && W <= 128, "a row is one or two lines of 128 bytes");
    static_assert(C % G == 0 && C / G <= 2, "the rows of a block are of one or two warpgroups");
    static_assert(!QREG || OVERLAP, "ptxas 13.0.88 puts p over q, which the next step needs");
    static_assert(!OVERLAP || STAGES >= 3, "a block is announced while the next one is loaded");
    static_assert(!OVERLAP || C == G, "k of a warpgroup's next entry says that v has landed");
    static_assert(STAGES >= 2 * (C / G) && STAGES % (C / G) == 0,
                  "a share has a slot twice in turn");
    static_assert(!DRAWS || C == G, "shares begin with a slot of their own");
    static_assert(CLUSTER == 1 || (C == 1 && !DRAWS), "a cluster has one tile of one block");
    static_assert(!ORDERED || DRAWS, "a part waits for tiles that were drawn before its own");
    static_assert(!(OPS & FP_ROPE), "q and k come turned");
    static_assert(!ORDERED || !SCORE_BIAS, "ordered tokens have no distance by their places");
    static_assert(!JOINED || (SPLIT && MERGE && !ORDERED && !SCORE_BIAS),
                  "rows of several sequences are neighbours in tensors of tokens");
    static_assert(
        !TMA || (W == 64 && DRAWS && OVERLAP && QREG && !ORDERED && !JOINED),
        "a box has whole lines of neighbouring rows, and v comes with the next entry's k");
    static_assert(!FOLDS || STAGES * G * BLOCK * 8 % 1024 == 0,
                  "ones begin where the swizzle's pattern does");
    static_assert(!JOINED || (C == 1 && DRAWS && !OVERLAP), "each warpgroup looks through v");

    /* A line has 64 columns, of the last panel perhaps fewer.  Products take steps of 16: columns
     * behind a head's are zeros up to there, and nothing beyond. */
    static constexpr int LINE = 128, PANELS = (W + 63) / 64, PANEL = BLOCK * LINE,
                         TILE = PANEL * PANELS, STEPS = (W + 15) / 16;
    static constexpr int CONTEXT = FOLDS ? W + 8 : W;           /* columns of the products with v */
    static constexpr int SHARES = C / G, TILES = DRAWS ? 2 : 1; /* tiles at hand */
    static constexpr int ENTRY = G == 1 ? 2 : 4;                /* ints of an entry of fp_tiles */

    /* What a thread leaves for who joins partial results, in units of four floats: its context, two
     * maxima and two sums. */
    static constexpr int JOIN = W / 8 + 1;

    /* Distances of a key block from a tile, and one more.  The first one is that of the first key
     * from the last query. */
    static constexpr int DISTANCES = (G + 1) * BLOCK;

    struct smem {
        unsigned char q[TILES][G][TILE]; /* the context in the end */
        unsigned char k[STAGES][TILE], v[STAGES][TILE];
        u64 words[STAGES][G][BLOCK];               /* at a multiple of 128: elsewhere 5 % slower */
        u32 ones[fp_hopper_attention_ones(A) / 4]; /* FOLDS: of 16 keys */
        float4 join[SHARES > 1 ? (SHARES - 1) * G *JOIN *FOUR_WARPS : 1];
        alignas(16) u16 bias[TILES][2][W]; /* of q, of v */
        /* The tokens of q's rows; with SCORE_BIAS floats, of the distances of each key block.  As a
         * union with these it would cost covers other code. */
        int token[ORDERED      ? TILES
                  : SCORE_BIAS ? STAGES
                               : 1][ORDERED      ? G * BLOCK
                                    : SCORE_BIAS ? DISTANCES
                                                 : 4];
        tile_item item[TILES];
        u32 marks[TILES][2][G]; /* of the first 32 entries: skip, partial */
        u32 later[2][2][G];     /* of the 32 entries after those, in two buffers; JOINED: [0] has
                                   bits of keys */
        int drawn[2];
        u64 full_k[STAGES], full_v[STAGES], empty_k[STAGES], empty_v[STAGES];
        u64 full_q[TILES], empty_q[TILES];
    };
    static constexpr int ALIGN = 1024; /* of the swizzle's pattern */
    static_assert(sizeof(smem) + ALIGN == fp_hopper_attention_shared(A, SCORE_BIAS),
                  "what the host gives");

    /* Whether a line of a panel has this chunk of 8 columns: of the head, of the products. */
    static FP_DEVICE bool has(int panel, int chunk)
    {
        return W % 64 == 0 || panel * 64 + chunk * 8 < W;
    }
    static FP_DEVICE bool reads(int panel, int chunk)
    {
        return W % 64 == 0 || panel * 64 + chunk * 8 < STEPS * 16;
    }

    static FP_DEVICE smem &align(void *shared)
    {
        u32 gap = (ALIGN - shared_address(shared) % ALIGN) % ALIGN;
        return *reinterpret_cast<smem *>(static_cast<unsigned char *>(shared) + gap);
    }

    /* A row's largest score as the exponent that is subtracted from all of its scores. */
    static constexpr float unit = inverse_root<W> * LOG2_E;

    static FP_DEVICE float shift(float top)
    {
        return top <= 0.5f * MASKED ? 0.0f : top * unit;
    }

    /* All warpgroups that share the rows of a block wait for one another. */
    static FP_DEVICE void meet(int group)
    {
        asm volatile("bar.sync %0, %1;" ::"r"(1 + group), "n"(SHARES * FOUR_WARPS) : "memory");
    }
};

/* What a warpgroup holds of its rows. */
template <class S> struct block_rows {
    using D = typename S::D;
    u32 q[S::STEPS][4]; /* with QREG */
    u32 low_q;          /* else its descriptor */
    row_state state;
    fragment<D, BLOCK> c;
    fragment<D, S::CONTEXT> o; /* with FOLDS the last eight columns are sums */
    u32 p[4][4];
    bool masked; /* of the key block at hand some keys are; which ones the lane's rows keep */
    u32 kept;
};

/* Counts the warps that have stored a head: warps of the first part of the mask before warps of the
 * second. */
template <class S> struct part_counter {
    const fp_args &a;

    FP_DEVICE u32 *at(const tile_item &t) const
    {
        return a.sync + FP_SYNC_TILES + t.batch * a.heads + t.head;
    }

    FP_DEVICE u32 warps() const
    {
        return static_cast<u32>((a.mask.blocks + S::G - 1) / S::G * (4 * S::C));
    }

    FP_DEVICE bool first_stored(const tile_item &t) const
    {
        return load_acquire(at(t)) >= warps();
    }

    FP_DEVICE void await_first(const tile_item &t) const
    {
        if (t.stored)
            return;
        if (threadIdx.x % 32 == 0)
            while (!first_stored(t))
                __nanosleep(20);
        __syncwarp();
    }

    /* After the warp's last store.  The counter wraps to 0 with the last arrival; nobody reads what
     * the second part stores. */
    FP_DEVICE void arrive(const tile_item &t) const
    {
        if (threadIdx.x % 32 == 0) {
            if (t.part == 0)
                __threadfence();
            atomicInc(at(t), 2 * warps() - 1);
        }
    }
};

} // namespace fp::hopper_attention

#endif
