/* What all steps of a GEMM know: the numbers of its configuration, the problem, shared memory,
 * where tiles and steps of the ring are, and where matrices lie in panels. */
#ifndef FUSEPLAN_CUDA_HOPPER_GEMM_WORK_CUH
#define FUSEPLAN_CUDA_HOPPER_GEMM_WORK_CUH

#include "hopper.cuh"
#include "hopper_gemm.h"
#include "tokens.cuh"
#include "wgmma.cuh"

namespace fp::hopper_gemm
{

/* Of the columns of a row that a thread block has: their mean, and the sum of their squared
 * distances from it. */
struct alignas(8) moments {
    float mean, squares;
};

/* The address of something in shared memory. */
template <class T> FP_DEVICE u32 address(const T &x)
{
    return shared_address(&x);
}

/* What becomes of the sums.  bias, residual: null for none.  Activation: an epilogue of tokens.cuh
 * that ends in keep, or keep; its packed() makes elements of two values.  gamma, beta, eps: of the
 * layernorm, if one follows.  sum: (B,S,N), what it is of, after a split, if that is stored. */
template <class D, class Activation, class Store> struct ending {
    const elem<D> *bias, *residual; /* (N); (B,S,N) */
    Activation activation;
    Store store;
    const elem<D> *gamma, *beta; /* (N) */
    float eps;
    elem<D> *sum;
};

template <class D_, const fp_hopper_gemm &G> struct shape {
    using D = D_;
    static constexpr int BM = G.rows, BN = G.columns, BK = G.step, TEAMS = G.teams,
                         GROUPS = G.groups, STAGES = G.depth, SPLIT = G.split, CLUSTER = G.cluster;
    static constexpr fp_norm NORM = G.norm;
    static constexpr bool SWAP = G.swap, ADDS = G.adds, KEEPS = G.keeps, RMS = G.rms, GATE = G.gate,
                          E4M3 = G.e4m3, OUT_E4M3 = G.out_e4m3, OUT_BOTH = G.out_both,
                          BETWEEN = fp_hopper_gemm_between(G), BY_WARPS = !SWAP && SPLIT == 1,
                          PAIRS = OUT_E4M3 && NORM == FP_NORM_NONE, /* sums become e4m3 */
        UNSCALED =
            E4M3 && NORM != FP_NORM_NONE && !KEEPS && SPLIT == 1, /* norms take sums as they are */
        STRIPS = fp_hopper_gemm_strips(G), STAYS = G.kept > 0, LARGE = BM >= 128;
    /* Sums of e4m3 take a bias behind their last step, where alpha multiplies them: it is free. */
    static constexpr bool BIAS_LAST = E4M3 && BY_WARPS && !ADDS && NORM == FP_NORM_NONE;
    static constexpr int CONSUMERS = TEAMS * GROUPS, MI = fp_hopper_gemm_products(G), KEPT = G.kept;
    static constexpr bool SPARE = TEAMS == 2 && MI * BN <= 192; /* registers beside the sums */
    static constexpr int PANEL = fp_hopper_gemm_panel(G), LINE = PANEL * 2, PANELS = BN / PANEL;
    static constexpr int SLOTS = fp_hopper_gemm_slots(G), SLOT_BYTES = WARP_ROWS * LINE;
    /* A residual that is added between products comes a panel after the other, by way of PLACES
     * places, and is added by CHUNKS chunks of columns. */
    static constexpr int PLACES = FP_GEMM_PLACES, PLACE_BYTES = BM * LINE, CHUNK = 32,
                         CHUNKS = BN / CHUNK;
    /* Other residuals come in PIECES steps of the ring, PIECE rows each, in the weight's place;
     * those of a split do not. */
    static constexpr int PIECES = fp_hopper_gemm_pieces(G), PIECE = BM / PIECES,
                         PIECE_BYTES = PIECE * BN * 2,
                         RESIDUAL_STEPS = ADDS && SPLIT == 1 && !BETWEEN ? PIECES : 0;
    /* Both teams end the last tile of a thread block, which nothing else would hide: the one that
     * multiplies it hands its first product to the other one, in the places of two steps of the
     * weight.  That takes time, which only a layernorm wins back. */
    static constexpr bool SHARES = BETWEEN && NORM == FP_NORM_MEMORY;
    /* Steps of zeros follow a short inner dimension.  So every chunk has a product beside it, after
     * one step of both products, and the ring holds steps of one tile alone when that tile's sums
     * are handed over there. */
    static constexpr int MIN_STEPS = !BETWEEN ? 0 : CHUNKS + 1 > STAGES ? CHUNKS + 1 : STAGES;
    static constexpr int ELEMENT = fp_hopper_gemm_element(G); /* bytes of the operands' */
    static constexpr int A_BYTES = BM * BK * ELEMENT, B_BYTES = BK * BN * ELEMENT;
    static constexpr int A_PANEL = fp_hopper_gemm_input_panel(G), A_PANEL_BYTES = BM * FP_GEMM_LINE;

    static_assert(is_half<D> && (SWAP ? BN : BM) % (64 * GROUPS) == 0 && BN % PANEL == 0,
                  "whole warpgroups");
    static_assert(BK % A_PANEL == 0, "whole panels of the input");
    static_assert(PIECE * PIECES == BM && PIECE % WARP_ROWS == 0, "whole rows of warps");
    static_assert(!GATE || (BY_WARPS && PANEL == 64), "half a panel is a whole box");
    static_assert(!SWAP || (BM % 16 == 0 && BM <= 256), "a product takes all rows of the tile");
    static_assert(TEAMS == 1 || GROUPS == 1,
                  "turns are between teams, or between the warpgroups of one");
    static_assert(CLUSTER == 1 || (SPLIT == 1 && NORM != FP_NORM_CLUSTER),
                  "a cluster shares one thing");
    static_assert(!E4M3 || BN <= 256, "the weight comes in one box");
    static_assert(!OUT_E4M3 || (!SWAP && PANEL == 64), "warps store whole panels");
    static_assert(!OUT_BOTH || (OUT_E4M3 && NORM != FP_NORM_NONE), "of norms alone");
    static_assert((E4M3 ? BN : BK) % (8 * CLUSTER) == 0,
                  "a cluster loads whole patterns of the swizzle for each other");

    struct alignas(16) ring_smem {
        unsigned char input[STAGES][A_BYTES], weight[STAYS ? KEPT : STAGES][B_BYTES];
    };
    struct residual_smem : ring_smem {
        unsigned char residual[PLACES][PLACE_BYTES];
    };
    struct plain_smem : either<BETWEEN, residual_smem, ring_smem> {
        unsigned char out[fp_hopper_gemm_out_bytes(G)]; /* a tile, panels of warps, others' sums */
        u32 row[BM];             /* where rows that are gathered begin, in units of 16 bytes */
        u64 full[STAGES + KEPT], /* of steps of the ring, and of a weight that stays */
            empty[STAGES], ready[TEAMS], turn[CONSUMERS], landed[TEAMS], done[TEAMS], handed,
            residual_full[PLACES], residual_empty[PLACES];
    };
    struct norm_smem : plain_smem {
        alignas(16) u32 weights[BN]; /* gamma and beta of its columns, see load::columns() */
        u64 shared[2];               /* complete when all moments of a tile are here */
        u64 columns;                 /* complete when the weights are here */
        u64 taken[TEAMS];            /* complete when a team has read the moments of its tile */
        /* Of each thread block's columns.  With mailboxes SWAP has room for the scalings here, and
         * others need none. */
        moments part[NORM == FP_NORM_CLUSTER ? 2 : 1][NORM == FP_NORM_CLUSTER ? FP_GEMM_RANKS : 1]
                    [NORM == FP_NORM_CLUSTER || SWAP ? BM : 1];
    };
    using smem = either<STRIPS, norm_smem, plain_smem>;
    static_assert(sizeof(smem) + FP_GEMM_ALIGN == fp_hopper_gemm_shared(G), "the host's size");
    static_assert(WARP_ROWS == FP_GEMM_STORED_ROWS, "a box is what a warp stores");
    static_assert(!BY_WARPS || sizeof(smem::out) == CONSUMERS * 4 * SLOTS * SLOT_BYTES,
                  "each warp has its places");

    /* A step of the ring, and the parity of its phase. */
    struct position {
        u32 slot, phase;
        int adds = BIAS_LAST ? 0 : 1; /* 0: the step's first products overwrite the sums */

        FP_DEVICE void advance()
        {
            adds = 1;
            if (++slot == STAGES)
                slot = 0, phase ^= 1;
        }
    };

    /* Of 64 rows and BN columns each; if SWAP of 64 columns and BM rows. */
    using sums = fragment<D, SWAP ? BM : BN>[MI];

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

    static FP_DEVICE int lane()
    {
        return static_cast<int>(threadIdx.x) % 32;
    }

    /* All threads of a team meet. */
    static FP_DEVICE void meet(int team)
    {
        asm volatile("bar.sync %0, %1;" ::"r"(1 + team), "n"(GROUPS * FOUR_WARPS) : "memory");
    }

    /* ---- matrices in panels of 64 columns, for BN = 96 of 32 --------------------------------- */

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
        constexpr int WITHIN = PANEL / 8;
        return SWAP ? first + p * (8 * LINE) + m * (rows * LINE)
                    : (first ^ p % WITHIN * 16) + p / WITHIN * (rows * LINE);
    }
};

struct tile {
    int m0, n0;
};

/* A tile of a thread block, for one of the warpgroups that share it. */
struct item {
    int number;
    tile t;
    u32 nth; /* of the thread block's tiles */
    int team, member;
};

template <class S_, class View, class End> struct work {
    using S = S_;
    using D = typename S::D;
    using position = typename S::position;
    using smem = typename S::smem;
    static constexpr int BM = S::BM, BN = S::BN, SPLIT = S::SPLIT, CLUSTER = S::CLUSTER;
    static constexpr bool STRIPS = S::STRIPS || S::STAYS; /* a thread block keeps its columns */
    static constexpr int RASTER = 8, STORERS = 64;        /* STORERS: threads */

    /* Rows of the input, or of the result, that are no neighbours in memory. */
    static constexpr bool GATHERS = !View::in_rows, SCATTERS = !decltype(End::store)::in_rows;

    /* The size of heads that are turned before they are stored; 0: none are.  A tile has whole
     * heads. */
    static constexpr int TURNED = decltype(End::store)::turned;
    static_assert(BN % (TURNED > 0 ? TURNED : BN) == 0 && TURNED % 16 == 0,
                  "a thread has both columns of a pair");

    const fp_args &a;
    const fp_maps &maps;
    const int n, k;   /* N, K */
    const int strips; /* of rows; those that a cluster takes one below the other count as one */
    const View in;
    const End end;
    smem &s;

    static FP_DEVICE smem &align(void *shared)
    {
        u32 gap = (FP_GEMM_ALIGN - shared_address(shared) % FP_GEMM_ALIGN) % FP_GEMM_ALIGN;
        return *reinterpret_cast<smem *>(static_cast<unsigned char *>(shared) + gap);
    }

    FP_DEVICE work(const fp_args &args, const fp_maps &m, const View &v, const End &e, void *shared)
        : a(args), maps(m), n(args.gemm.columns), k(args.gemm.inner),
          strips((live_tokens(args) + CLUSTER * BM - 1) / (CLUSTER * BM)), in(v), end(e),
          s(align(shared))
    {
    }

    /* ---- tiles ------------------------------------------------------------------------------- */

    /* x / y for 0 <= x < 2^20, of at most 2 units in the last place: the half keeps it on its side
     * of a whole number.  It takes half as long as a division of integers. */
    static FP_DEVICE int quotient(int x, int y)
    {
        return static_cast<int>(__fdividef(static_cast<float>(x) + 0.5f, static_cast<float>(y)));
    }

    /* Tiles that share rows, of a norm or beside each other. */
    FP_DEVICE int ranks() const
    {
        return S::STAYS ? across() : n / BN;
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
        /* Without clusters a grid may end in a part of a group, which has no work. */
        return !STRIPS || S::NORM == FP_NORM_CLUSTER || group < groups() ? group : tiles();
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
     * For a norm the tiles of a group are a strip.  Layers that L2 has no room for run by large
     * tiles, of which 64x192 wins in e4m3 alone: others need not ask whether to go backwards. */
    FP_DEVICE tile locate(int number) const
    {
        if ((S::LARGE || (S::E4M3 && BN == 192)) && a.backwards)
            number = tiles() - 1 - number;
        if (STRIPS)
            return {strip_of(number) * BM, part() * BN};
        const int wide = across();
        const int first = quotient(number, RASTER * wide) * RASTER;
        const int height = min(RASTER, strips - first), within = number - first * wide;
        const int over = quotient(within, height);
        return {strip_of(first + within - over * height) * BM, over * BN};
    }

    FP_DEVICE item item_at(int number, u32 nth, int team, int member) const
    {
        return {number, locate(number), nth, team, member};
    }

    /* ---- steps ------------------------------------------------------------------------------- */

    /* The steps of K that this thread block takes. */
    FP_DEVICE int first_step() const
    {
        return SPLIT == 1 ? 0 : part() * share();
    }

    FP_DEVICE int steps() const
    {
        const int all = (k + S::BK - 1) / S::BK;
        return SPLIT == 1 ? max(all, S::MIN_STEPS) : max(min(share(), all - first_step()), 0);
    }

    FP_DEVICE int share() const
    {
        return ((k + S::BK - 1) / S::BK + SPLIT - 1) / SPLIT;
    }

    static FP_DEVICE position ring_at(u32 index)
    {
        return {index % S::STAGES, index / S::STAGES & 1};
    }

    /* The first step of this thread block's i-th tile.  Those of a residual follow the others. */
    FP_DEVICE position ring_of(u32 i) const
    {
        return ring_at(i * (steps() + S::RESIDUAL_STEPS));
    }

    /* ---- a layernorm through memory ---------------------------------------------------------- */

    /* Where the moments of a strip go that `sender` sends to `reader`: see hopper_gemm_moments.cuh.
     */
    FP_DEVICE u64 *mailbox(int strip, int reader, int sender) const
    {
        const int number = (strip * ranks() + reader) * ranks() + sender;
        return reinterpret_cast<u64 *>(a.sync + FP_SYNC_TILES) + static_cast<i64>(number) * BM;
    }

    /* The strip of a tile, and which of the tiles that make up its rows it is. */
    struct place {
        int strip, rank;
    };

    FP_DEVICE place place_of(int number) const
    {
        if constexpr (STRIPS)
            return {strip_of(number), part()};
        const tile t = locate(number);
        return {t.m0 / BM, t.n0 / BN};
    }
};

/* The names that every step has for its work W. */
#define FP_GEMM_STEP                                                                               \
    using D = typename W::D;                                                                       \
    using S = typename W::S;                                                                       \
    using position = typename S::position;                                                         \
    using sums = typename S::sums;                                                                 \
    static constexpr int BM = S::BM, BN = S::BN, BK = S::BK, MI = S::MI, PANEL = S::PANEL,         \
                         LINE = S::LINE

} // namespace fp::hopper_gemm

#endif
