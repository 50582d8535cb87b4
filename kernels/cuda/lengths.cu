/* Kernels that run before the first segment, which clear counters, make a call's lists of blocks
 * from its lengths and bring x to the layers, and one behind the last segment, which completes
 * y. */
#include "lengths.h"

enum { THREADS_MAX = 1024 };

/* By all thread blocks: plans have up to megabytes of counters. */
static __device__ void clear(const fp_clearing &c)
{
    for (int i = (int)(blockIdx.x * blockDim.x + threadIdx.x); i < c.count;
         i += (int)(gridDim.x * blockDim.x))
        c.words[i] = 0;
}

/* A kernel, so that a graph of a call has kernels alone where it can: CUDA launches such graphs
 * fastest. */
extern "C" __global__ void encoder_clear_words(const __grid_constant__ fp_clearing c)
{
    clear(c);
}

extern "C" __global__ void encoder_take_lengths(const __grid_constant__ fp_lengths_chunk c)
{
    for (int i = (int)threadIdx.x; i < c.count; i += (int)blockDim.x)
        c.to[i] = c.value[i];
}

/* Of sequence b, as the call gives it, or as a kernel in front has put it where it lies. */
static __device__ int length_of(const fp_cut_lists &c, int b)
{
    const fp_given_lengths &g = c.given;
    if (g.from == nullptr)
        return c.lengths[b];
    int length = b < g.batch ? g.from[b] : 0;
    return length < 0 ? 0 : length > g.seq_len ? g.seq_len : length;
}

static __device__ void copy_lengths(const fp_cut_lists &c)
{
    for (int i = (int)threadIdx.x; c.given.from != nullptr && i < c.given.count;
         i += (int)blockDim.x)
        c.given.to[i] = length_of(c, i);
}

/* The sum of x over this thread and those before it, and over all; x is 0 from thread `count` on.
 * sums: of all threads. */
static __device__ int scan(int x, int count, int *sums, int *all)
{
    const int me = (int)threadIdx.x, n = (int)blockDim.x < count ? (int)blockDim.x : count;
    __syncthreads();
    sums[me] = x;
    for (int step = 1; step < n; step *= 2) {
        __syncthreads();
        int before = me >= step ? sums[me - step] : 0;
        __syncthreads();
        sums[me] += before;
    }
    __syncthreads();
    *all = sums[n - 1];
    return sums[me];
}

static __device__ int count_tokens(const fp_cut_lists &c, int *sums)
{
    int real = 0;
    for (int first = 0; first < c.batch; first += (int)blockDim.x) {
        int b = first + (int)threadIdx.x, all;
        scan(b < c.batch ? length_of(c, b) : 0, c.batch - first, sums, &all);
        real += all;
    }
    return real;
}

/* Where each sequence begins among the real tokens, and all rows of the batch: those of real tokens
 * first, each in order.  Each thread block lists the rows of some sequences. */
static __device__ void list_tokens(const fp_cut_lists &c, int *sums)
{
    const int n = (int)blockDim.x, real = count_tokens(c, sums);
    int before = 0;
    for (int first = 0; first < c.batch; first += n) {
        int b = first + (int)threadIdx.x, end = first + n < c.batch ? first + n : c.batch, all;
        int length = b < c.batch ? length_of(c, b) : 0;
        int last = before + scan(length, c.batch - first, sums, &all);
        if (blockIdx.x == 0 && b < c.batch)
            c.offset[b] = last - length;
        for (int s = first + (int)blockIdx.x; s < end; s += (int)gridDim.x) {
            int tokens = length_of(c, s), begin = before + sums[s - first] - tokens;
            int padding = real + s * c.seq_len - begin - tokens;
            for (int i = (int)threadIdx.x; i < c.seq_len; i += n)
                c.unpacked[i < tokens ? begin + i : padding + i] = s * c.seq_len + i;
        }
        before += all;
    }
    if (blockIdx.x == 0 && threadIdx.x == 0)
        c.offset[c.batch] = real;
}

/* A sequence a thread block. */
extern "C" __global__ void encoder_read_mask(const __grid_constant__ fp_reading c)
{
    __shared__ int sums[THREADS_MAX];
    const int n = (int)blockDim.x, s = c.seq_len;
    for (int b = (int)blockIdx.x; b < c.count; b += (int)gridDim.x) {
        const long long *mask = c.mask + (long)b * s;
        int real = 0, before = 0, all;
        for (int first = 0; b < c.batch && first < s; first += n) {
            int i = first + (int)threadIdx.x;
            scan(i < s && mask[i] != 0, s - first, sums, &all);
            real += all;
        }
        if (threadIdx.x == 0)
            c.lengths[b] = real;
        for (int first = 0; b < c.batch && first < s; first += n) {
            int i = first + (int)threadIdx.x, kept = i < s && mask[i] != 0;
            int rank = before + scan(kept, s - first, sums, &all);
            if (i < s)
                c.place[(long)b * s + (kept != 0 ? rank - 1 : real + i - rank)] = i;
            before += all;
        }
    }
}

/* All thread blocks clear counters, and list tokens, where they are packed; the first one does all
 * else. */
extern "C" __global__ void encoder_cut_lists(const __grid_constant__ fp_cut_lists c)
{
    __shared__ int sums[THREADS_MAX];
    const int blocks = c.from.blocks, rows = c.batch * blocks;
    int before = 0;
    clear(c.clearing);
    if (c.unpacked != nullptr)
        list_tokens(c, sums);
    if (blockIdx.x != 0)
        return;
    copy_lengths(c);
    __syncthreads();
    for (int first = 0; first < rows; first += (int)blockDim.x) {
        int at = first + (int)threadIdx.x, b = at / blocks, block = at % blocks, all;
        bool live = at < rows;
        int from = c.from.lists > 1 ? at : block, spare = c.from_words + at;
        fp_word *words = c.words + (long)spare * FP_BLOCK;
        struct fp_list_row row = {nullptr, nullptr, 0, 0};
        if (live)
            fp_cut_row(&c.from, from, block * FP_BLOCK, c.lengths[b], spare, words, &row);
        int entry = before + scan(row.count, rows - first, sums, &all) - row.count;
        if (live) {
            c.start[at] = entry;
            c.start[at + 1] = entry + row.count; /* as the next row's thread says */
            c.full[at] = row.full;
            row = {c.key_block + entry, c.bits + entry, 0, 0};
            fp_cut_row(&c.from, from, block * FP_BLOCK, c.lengths[b], spare, words, &row);
        }
        before += all;
    }
}

/* A row a warp.  Behind the last segment it may begin before that one has ended: see
 * common.cuh. */
extern "C" __global__ void encoder_move_rows(const __grid_constant__ fp_moving c)
{
    struct alignas(16) piece {
        int word[4];
    };
    const piece zeros = {{0, 0, 0, 0}};
#if __CUDA_ARCH__ >= 900
    asm volatile("griddepcontrol.wait;" ::: "memory");
#endif
    const int lanes = (int)blockDim.x < 32 ? (int)blockDim.x : 32, warps = (int)blockDim.x / lanes;
    const int warp = (int)threadIdx.x / lanes, lane = (int)threadIdx.x % lanes;
    for (int row = (int)blockIdx.x * warps + warp; row < c.batch * c.seq_len;
         row += (int)gridDim.x * warps) {
        const int b = row / c.seq_len, i = row % c.seq_len;
        const bool real = i < c.lengths[b];
        if (c.in ? !real : real && c.layers == c.call)
            continue;
        const int first = c.offset != nullptr ? c.offset[b] : b * c.pitch;
        const int given = c.place != nullptr ? b * c.seq_len + c.place[row] : row;
        piece *outside = (piece *)c.call + (long)given * c.pieces,
              *inside = (piece *)c.layers + (long)(first + i) * c.pieces,
              *to = c.in ? inside : outside, *from = c.in ? outside : inside;
        for (int p = lane; p < c.pieces; p += lanes)
            to[p] = real ? from[p] : zeros;
    }
}

/* A tile a thread. */
extern "C" __global__ void encoder_cut_tiles(const __grid_constant__ fp_cut_tiles c)
{
    const int each = c.lists > 1 ? 1 : c.batch, n = c.from.count * each;
    for (int i = (int)(blockIdx.x * blockDim.x + threadIdx.x); i < n;
         i += (int)(gridDim.x * blockDim.x))
        fp_cut_tile(&c, i / each, i);
}

/* A tile a thread block, a row a thread. */
extern "C" __global__ void encoder_join_tiles(const __grid_constant__ fp_join_tiles c)
{
    const int tiles = (fp_joined_rows(&c) + FP_BLOCK - 1) / FP_BLOCK;
    for (int t = (int)blockIdx.x; t < tiles; t += (int)gridDim.x)
        for (int r = (int)threadIdx.x; r < FP_BLOCK; r += (int)blockDim.x)
            fp_join_row(&c, t, r);
}
