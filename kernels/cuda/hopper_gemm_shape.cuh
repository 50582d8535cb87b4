/* What the parts of hopper_gemm.cuh share: the template's numbers, shared memory, the epilogue's
 * arguments, and where tiles and steps are. */
#ifndef FUSEPLAN_CUDA_HOPPER_GEMM_SHAPE_CUH
#define FUSEPLAN_CUDA_HOPPER_GEMM_SHAPE_CUH

#include "hopper.cuh"
#include "tokens.cuh"
#include "wgmma.cuh"

namespace fp
{

/* Whether a layernorm follows, and how the thread blocks that share its rows exchange what they
 * know of them: those of a cluster by their shared memory, others by mailboxes in memory. */
enum gemm_norm { NORM_NONE, NORM_CLUSTER, NORM_MEMORY };

/* The most thread blocks that share rows: those of a cluster that every GPU can run. */
constexpr int NORM_RANKS = 8;

/* The most tiles that make up a row after a split. */
constexpr int RANKS_OF_SPLIT = 16;

/* Of the columns of a row that a thread block has: their mean, and the sum of their squared
 * distances from it. */
struct alignas(8) moments {
    float mean, squares;
};

/* What normalises the sums x of a row, before gamma and beta: x * factor + shift. */
struct alignas(8) scaling {
    float factor, shift;
};

template <bool which, class A, class B> struct either_of {
    using type = A;
};
template <class A, class B> struct either_of<false, A, B> {
    using type = B;
};
template <bool which, class A, class B> using either = typename either_of<which, A, B>::type;

template <class D_, int BM_, int BN_, int BK_, int TEAMS_, int GROUPS_, int STAGES_, int SPLIT_,
          gemm_norm NORM_, int CLUSTER_, bool SWAP_, bool ADDS_>
struct hopper_gemm_shape {
    using D = D_;
    static constexpr int BM = BM_, BN = BN_, BK = BK_, TEAMS = TEAMS_, GROUPS = GROUPS_,
                         STAGES = STAGES_, SPLIT = SPLIT_, CLUSTER = CLUSTER_;
    static constexpr gemm_norm NORM = NORM_;
    static constexpr bool SWAP = SWAP_, ADDS = ADDS_; /* a residual is added */
    static constexpr int CONSUMERS = TEAMS * GROUPS;
    /* Products of a warpgroup: 64 rows of the tile each, if SWAP 64 columns. */
    static constexpr int MI = (SWAP ? BN : BM) / (64 * GROUPS);
    static constexpr int PANEL = BN % 64 == 0 ? 64 : 32, LINE = PANEL * 2, PANELS = BN / PANEL;
    static constexpr bool LARGE = BM >= 128;
    /* Each warp stores its own rows, a panel after the other, by way of SLOTS places in s.out.  If
     * SWAP a warp has some columns of all rows, and s.out is for the whole tile. */
    static constexpr bool BY_WARPS = !SWAP && SPLIT == 1;
    static constexpr int SLOTS = MI * PANELS > 1 ? 2 : 1, SLOT_BYTES = WARP_ROWS * LINE;
    /* A warpgroup of each team has two products: it adds the residual to one of them while the
     * other one is computed, see hopper_gemm_multiply.cuh.  The residual comes a panel after the
     * other, by way of PLACES places, and is added by CHUNKS chunks of columns.  Tiles of 96
     * columns take longer so. */
    static constexpr bool BETWEEN = ADDS && TEAMS == 2 && MI == 2 && !SWAP && PANEL == 64;
    static constexpr int PLACES = 2, PLACE_BYTES = BM * LINE, CHUNK = 32, CHUNKS = BN / CHUNK;
    /* Other residuals come in PIECES steps of the ring, PIECE rows each, in the weight's place;
     * those of a split do not. */
    static constexpr int PIECES = (BM + 63) / 64, PIECE = BM / PIECES, PIECE_BYTES = PIECE * BN * 2,
                         RESIDUAL_STEPS = ADDS && SPLIT == 1 && !BETWEEN ? PIECES : 0;
    /* Two warpgroups share the rows of a large tile: the second one issues its last APART steps
     * after the first one has issued all of its own. */
    static constexpr int APART = 2;
    static constexpr bool IN_TURN = LARGE && !SWAP && GROUPS == 2;
    /* A group of thread blocks takes the tiles of a row strip, one each. */
    static constexpr bool STRIPS = NORM != NORM_NONE && SPLIT == 1;
    /* Both teams end the last tile of a thread block, which nothing else would hide: the one that
     * multiplies it hands its first product to the other one, in the places of two steps of the
     * weight.  That takes time, which only a layernorm wins back. */
    static constexpr bool SHARES = BETWEEN && NORM == NORM_MEMORY;
    /* Steps of zeros follow a short inner dimension.  So every chunk has a product beside it, after
     * one step of both products, and the ring holds steps of one tile alone when that tile's sums
     * are handed over there. */
    static constexpr int MIN_STEPS = !BETWEEN ? 0 : CHUNKS + 1 > STAGES ? CHUNKS + 1 : STAGES;
    static constexpr int A_BYTES = BM * BK * 2, B_BYTES = BK * BN * 2;
    static constexpr int A_PANEL = 64, A_PANEL_BYTES = BM * A_PANEL * 2; /* columns of the input */
    static constexpr int LDS = BN + 8; /* floats of a row of sums that are added up */
    /* s.out: after a split the sums of others. */
    static constexpr int TILE_BYTES = BM * BN * 2, SUMS_BYTES = (BM - BM / SPLIT) * LDS * 4,
                         STORED_BYTES = CONSUMERS * 4 * SLOTS * SLOT_BYTES;
    static constexpr int OUT_BYTES = SPLIT > 1 ? SUMS_BYTES : BY_WARPS ? STORED_BYTES : TILE_BYTES;
    static constexpr int ALIGN = 1024; /* of the swizzle's pattern */

    static_assert(BK % A_PANEL == 0, "whole panels of the input");
    static_assert(PIECE * PIECES == BM && PIECE % WARP_ROWS == 0, "whole rows of warps");
    static_assert(TEAMS == 1 || STAGES > RESIDUAL_STEPS,
                  "a place in the ring beside those of a residual");
    static_assert(is_half<D> && (SWAP ? BN : BM) % (64 * GROUPS) == 0 && BN % PANEL == 0,
                  "whole warpgroups");
    static_assert(!SWAP || (BM % 16 == 0 && BM <= 256), "a product takes all rows of the tile");
    static_assert(!SWAP || SPLIT == 1, "a split takes sums by rows");
    static_assert(TEAMS == 1 || GROUPS == 1,
                  "turns are between teams, or between the warpgroups of one");
    static_assert(!IN_TURN || APART <= STAGES, "the ring holds the second one's last steps");
    static_assert(!SHARES || STAGES > 2, "the last step has another place than the sums");
    static_assert(CLUSTER == 1 || (SPLIT == 1 && NORM != NORM_CLUSTER),
                  "a cluster shares one thing");
    static_assert(BK % (8 * CLUSTER) == 0,
                  "a cluster loads whole patterns of the swizzle for each other");
    static_assert(SPLIT == 1 || (CONSUMERS == 1 && MI == 1 && NORM != NORM_CLUSTER),
                  "a cluster takes one tile of 64 rows");
    static_assert(SPLIT == 1 || NORM == NORM_NONE || BN == 64 || BN == 128,
                  "the lanes that add up a row are a power of two");

    struct alignas(16) ring_smem {
        unsigned char a[STAGES][A_BYTES], b[STAGES][B_BYTES];
    };
    struct residual_smem : ring_smem {
        unsigned char residual[PLACES][PLACE_BYTES];
    };
    struct plain_smem : either<BETWEEN, residual_smem, ring_smem> {
        unsigned char out[OUT_BYTES];
        u32 row[BM]; /* where rows that are gathered begin, in units of 16 bytes */
        u64 full[STAGES], empty[STAGES], ready[TEAMS], turn[CONSUMERS], landed[TEAMS], done[TEAMS],
            handed, residual_full[PLACES], residual_empty[PLACES];
    };
    struct norm_smem : plain_smem {
        alignas(16) u32 weights[BN]; /* gamma and beta of its columns, see load_columns() */
        u64 shared[2];               /* complete when all moments of a tile are here */
        u64 columns;                 /* complete when the weights are here */
        u64 taken[TEAMS];            /* complete when a team has read the moments of its tile */
        /* Of each thread block's columns.  With mailboxes SWAP has room for the scalings here, and
         * others need none. */
        moments part[NORM == NORM_CLUSTER ? 2 : 1][NORM == NORM_CLUSTER ? NORM_RANKS : 1]
                    [NORM == NORM_CLUSTER || SWAP ? BM : 1];
    };
    using smem = either<STRIPS, norm_smem, plain_smem>;
};

/* What becomes of the sums.  bias, residual: null for none.  Activation: an epilogue of tokens.cuh
 * that ends in keep, or keep; its packed() makes elements of two values.  gamma, beta, eps: of the
 * layernorm, if one follows. */
template <class D, class Activation, class Store> struct gemm_end {
    const elem<D> *bias, *residual; /* (N); (B,S,N) */
    Activation activation;
    Store store;
    const elem<D> *gamma, *beta; /* (N) */
    float eps;
};

/* What all roles know: the problem, shared memory, tiles, the ring. */
template <class S_, class View, class End> struct gemm_work {
    using S = S_;
    using D = typename S::D;
    using smem = typename S::smem;
    static constexpr int BM = S::BM, BN = S::BN, BK = S::BK, STAGES = S::STAGES, SPLIT = S::SPLIT,
                         CLUSTER = S::CLUSTER, MI = S::MI, PANEL = S::PANEL, LINE = S::LINE;
    static constexpr gemm_norm NORM = S::NORM;
    static constexpr bool STRIPS = S::STRIPS, SWAP = S::SWAP;
    static constexpr int RASTER = 8, STORERS = 64; /* STORERS: threads */

    using sums = fragment<D, SWAP ? BM : BN>[MI];

    /* Rows of the input, or of the result, that are no neighbours in memory. */
    static constexpr bool GATHERS = !View::in_rows, SCATTERS = !decltype(End::store)::in_rows;

    const fp_args &a;
    const fp_maps &maps;
    const int n, k;   /* N, K */
    const int strips; /* of rows; those that a cluster takes one below the other count as one */
    const View in;
    const End end;
    smem &s;

    static FP_DEVICE smem &align(void *shared)
    {
        u32 gap = (S::ALIGN - shared_address(shared) % S::ALIGN) % S::ALIGN;
        return *reinterpret_cast<smem *>(static_cast<unsigned char *>(shared) + gap);
    }

    FP_DEVICE gemm_work(const fp_args &args, const fp_maps &m, int columns, int inner,
                        const View &v, const End &e, void *shared)
        : a(args), maps(m), n(columns), k(inner),
          strips((live_tokens(args) + CLUSTER * BM - 1) / (CLUSTER * BM)), in(v), end(e),
          s(align(shared))
    {
    }

    /* Of 64 rows and 8 columns; if SWAP of 64 columns and 8 rows. */
    static FP_DEVICE float (&block(sums &c, int m, int p))[2][2]
    {
        return c[m][p];
    }

    /* The first row of a warp's 16, in the tile; if SWAP the first column. */
    static FP_DEVICE int warp_row(int member, int m)
    {
        return (member * MI + m) * 64 + static_cast<int>(threadIdx.x) % FOUR_WARPS / 32 * WARP_ROWS;
    }

    /* A team leaves out the product that the other team ends; NONE: it ends the whole tile. */
    static constexpr int NONE = -1;

    static FP_DEVICE bool ends(int m, int left_out)
    {
        return !S::SHARES || m != left_out;
    }

    /* ---- tiles ------------------------------------------------------------------------------- */

    struct tile {
        int m0, n0;
    };

    /* x / y for 0 <= x < 2^20, of at most 2 units in the last place: the half keeps it on its side
     * of a whole number.  It takes half as long as a division of integers. */
    static FP_DEVICE int quotient(int x, int y)
    {
        return static_cast<int>(__fdividef(static_cast<float>(x) + 0.5f, static_cast<float>(y)));
    }

    /* Tiles that share the rows of a norm. */
    FP_DEVICE int ranks() const
    {
        return n / BN;
    }

    /* Thread blocks that share a tile, the strip of a norm, or what they load. */
    FP_DEVICE int sharers() const
    {
        return STRIPS ? ranks() * CLUSTER : SPLIT * CLUSTER;
    }

    /* Whole groups of thread blocks that share a tile or a strip, of so many thread blocks. */
    FP_DEVICE int groups_in(u32 blocks) const
    {
        return STRIPS ? quotient(static_cast<int>(blocks), sharers())
                      : static_cast<int>(blocks) / (SPLIT * CLUSTER);
    }

    FP_DEVICE int groups() const
    {
        return groups_in(gridDim.x);
    }

    /* This thread block's number in its group. */
    FP_DEVICE int part() const
    {
        return (static_cast<int>(blockIdx.x) - groups_in(blockIdx.x) * sharers()) / CLUSTER;
    }

    FP_DEVICE int first_tile() const
    {
        const int group = groups_in(blockIdx.x);
        /* With mailboxes a grid may end in a part of a group, which has no work. */
        return !STRIPS || NORM != NORM_MEMORY || group < groups() ? group : tiles();
    }

    /* This thread block's own strip. */
    static FP_DEVICE int strip_of(int number)
    {
        return number * CLUSTER + cluster_rank<CLUSTER>();
    }

    FP_DEVICE int tiles() const
    {
        return STRIPS ? strips : strips * across();
    }

    /* Tiles side by side. */
    FP_DEVICE int across() const
    {
        return (n + BN - 1) / BN;
    }

    /* The tile after this one; of a cluster none. */
    FP_DEVICE int next_tile(int number, int ahead = 1) const
    {
        return SPLIT > 1 ? tiles() : number + ahead * groups();
    }

    /* RASTER strips take the same columns of the weight one after another, while L2 holds these.
     * For a norm the tiles of a group are a strip. */
    FP_DEVICE tile locate(int number) const
    {
        if (STRIPS)
            return {strip_of(number) * BM, part() * BN};
        const int wide = across();
        const int first = quotient(number, RASTER * wide) * RASTER;
        const int height = min(RASTER, strips - first), within = number - first * wide;
        const int over = quotient(within, height);
        return {strip_of(first + within - over * height) * BM, over * BN};
    }

    /* The steps of K that this thread block takes. */
    FP_DEVICE int first_step() const
    {
        return SPLIT == 1 ? 0 : part() * share();
    }

    FP_DEVICE int steps() const
    {
        const int all = (k + BK - 1) / BK;
        return SPLIT == 1 ? max(all, S::MIN_STEPS) : max(min(share(), all - first_step()), 0);
    }

    FP_DEVICE int share() const
    {
        return ((k + BK - 1) / BK + SPLIT - 1) / SPLIT;
    }

    /* A step of the ring, and the parity of its phase. */
    struct position {
        u32 slot, phase;

        FP_DEVICE void advance()
        {
            if (++slot == STAGES)
                slot = 0, phase ^= 1;
        }
    };

    static FP_DEVICE position ring_at(u32 index)
    {
        return {index % STAGES, index / STAGES & 1};
    }

    /* The first step of this thread block's i-th tile.  Those of a residual follow the others. */
    FP_DEVICE position ring_of(u32 i) const
    {
        return ring_at(i * (steps() + S::RESIDUAL_STEPS));
    }

    /* Where 16 bytes lie in panels of so many rows; column: within the tile. */
    static FP_DEVICE u32 offset(int rows, int row, int column)
    {
        const int chunk = column % PANEL / VEC<D>;
        const int swizzled = PANEL == 64 ? chunk ^ row % 8 : chunk ^ row / 2 % 4;
        return column / PANEL * (rows * LINE) + row * LINE + swizzled * 16;
    }

    /* Where this lane's line of four 8x8 matrices lies in panels of so many rows: a warp's 16
     * rows, from `first` on, and columns; if SWAP first rows and 16 columns from `first` on. */
    static FP_DEVICE u32 first_matrices(u32 panels, int rows, int first)
    {
        const int lane = static_cast<int>(threadIdx.x) % 32;
        return panels + (SWAP ? offset(rows, lane / 16 * 8 + lane % 8, first + lane / 8 % 2 * 8)
                              : offset(rows, first + lane % 16, lane / 16 * 8));
    }

    /* Those that are p blocks of 8 columns away; if SWAP p blocks of 8 rows, and m panels. */
    static FP_DEVICE u32 matrices_at(u32 first, int rows, int m, int p)
    {
        constexpr int CHUNKS = PANEL / 8;
        return SWAP ? first + p * (8 * LINE) + m * (rows * LINE)
                    : (first ^ p % CHUNKS * 16) + p / CHUNKS * (rows * LINE);
    }

    /* All threads of a team meet. */
    static FP_DEVICE void meet(int team)
    {
        asm volatile("bar.sync %0, %1;" ::"r"(1 + team), "n"(S::GROUPS * FOUR_WARPS) : "memory");
    }

    /* A warp has left its columns of the tile in s.out. */
    static FP_DEVICE void finish_tile(u32 done)
    {
        proxy_fence();
        mbarrier_arrive_warp(done);
    }
};

} // namespace fp

#endif
