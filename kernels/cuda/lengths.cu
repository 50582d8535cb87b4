/* Kernels that run before the first segment, which clear counters, make a call's lists of blocks
 * from its lengths and bring x to the layers, and one behind the last segment, which completes
 * y. */
#include "lengths.h"

enum { THREADS_MAX = 1024 };

static __device__ void clear(const fp_clearing &c)
{
    for (int i = (int)threadIdx.x; i < c.count; i += (int)blockDim.x)
        c.words[i] = 0;
}

/* One thread block.  A kernel, so that a graph of a call has kernels alone where it can: CUDA
 * launches such graphs fastest. */
extern "C" __global__ void encoder_clear_words(const __grid_constant__ fp_clearing c)
{
    clear(c);
}

extern "C" __global__ void encoder_take_lengths(const __grid_constant__ fp_lengths_chunk c)
{
    for (int i = (int)threadIdx.x; i < c.count; i += (int)blockDim.x)
        c.to[i] = c.value[i];
}

static __device__ void copy_lengths(const fp_given_lengths &c)
{
    for (int i = (int)threadIdx.x; c.from != nullptr && i < c.count; i += (int)blockDim.x) {
        int length = i < c.batch ? c.from[i] : 0;
        c.to[i] = length < 0 ? 0 : length > c.seq_len ? c.seq_len : length;
    }
}

/* The sum of x over this thread and those before it, and over all. */
static __device__ int scan(int x, int *all)
{
    __shared__ int sums[THREADS_MAX];
    const int me = (int)threadIdx.x, n = (int)blockDim.x;
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

/* Where each sequence begins among the real tokens, and all rows of the batch: those of real tokens
 * first, each in order. */
static __device__ void list_tokens(const fp_cut_lists &c)
{
    int real = 0;
    if (c.unpacked == nullptr)
        return;
    for (int first = 0; first < c.batch; first += (int)blockDim.x) {
        int b = first + (int)threadIdx.x, all, length = b < c.batch ? c.lengths[b] : 0;
        int end = real + scan(length, &all);
        if (b < c.batch)
            c.offset[b] = end - length;
        real += all;
    }
    if (threadIdx.x == 0)
        c.offset[c.batch] = real;
    __syncthreads();
    for (int row = (int)threadIdx.x; row < c.batch * c.seq_len; row += (int)blockDim.x) {
        int b = row / c.seq_len, i = row % c.seq_len, length = c.lengths[b];
        int padding = real + b * c.seq_len - c.offset[b] + i - length;
        c.unpacked[i < length ? c.offset[b] + i : padding] = row;
    }
}

/* One thread block. */
extern "C" __global__ void encoder_cut_lists(const __grid_constant__ fp_cut_lists c)
{
    const int blocks = c.from.blocks, rows = c.batch * blocks;
    int before = 0;
    clear(c.clearing);
    copy_lengths(c.given);
    __syncthreads();
    list_tokens(c);
    for (int first = 0; first < rows; first += (int)blockDim.x) {
        int at = first + (int)threadIdx.x, b = at / blocks, block = at % blocks, all;
        bool live = at < rows;
        int from = c.from.lists > 1 ? at : block, spare = c.from_words + at;
        fp_word *words = c.words + (long)spare * FP_BLOCK;
        struct fp_list_row row = {nullptr, nullptr, 0, 0};
        if (live)
            fp_cut_row(&c.from, from, block * FP_BLOCK, c.lengths[b], spare, words, &row);
        int entry = before + scan(row.count, &all) - row.count;
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

/* A row a thread block.  Behind the last segment it may begin before that one has ended: see
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
    for (int row = (int)blockIdx.x; row < c.batch * c.seq_len; row += (int)gridDim.x) {
        const int b = row / c.seq_len, i = row % c.seq_len;
        const bool real = i < c.lengths[b];
        if (c.in ? !real : real && c.layers == c.call)
            continue;
        const int first = c.offset != nullptr ? c.offset[b] : b * c.pitch;
        piece *outside = (piece *)c.call + (long)row * c.pieces,
              *inside = (piece *)c.layers + (long)(first + i) * c.pieces,
              *to = c.in ? inside : outside, *from = c.in ? outside : inside;
        for (int p = (int)threadIdx.x; p < c.pieces; p += (int)blockDim.x)
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
