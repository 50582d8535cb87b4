/* Kernels that make a call's lists of blocks from its lengths, before the first segment. */
#include "lengths.h"

enum { THREADS_MAX = 1024 };

extern "C" __global__ void encoder_take_lengths(const __grid_constant__ fp_lengths_chunk c)
{
    for (int i = (int)threadIdx.x; i < c.count; i += (int)blockDim.x)
        c.to[i] = c.value[i];
}

extern "C" __global__ void encoder_copy_lengths(const __grid_constant__ fp_given_lengths c)
{
    for (int i = (int)threadIdx.x; i < c.count; i += (int)blockDim.x) {
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

/* The rows of real tokens in the order of the batch. */
static __device__ void list_tokens(const fp_cut_lists &c)
{
    int before = 0;
    for (int first = 0; first < c.batch; first += (int)blockDim.x) {
        int b = first + (int)threadIdx.x, all, length = b < c.batch ? c.lengths[b] : 0;
        int at = before + scan(length, &all) - length;
        for (int i = 0; i < length; i++)
            c.token_row[at + i] = b * c.seq_len + i;
        before += all;
    }
}

/* One thread block. */
extern "C" __global__ void encoder_cut_lists(const __grid_constant__ fp_cut_lists c)
{
    const int blocks = c.from.blocks, rows = c.batch * blocks;
    int before = 0;
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

/* A tile a thread. */
extern "C" __global__ void encoder_cut_tiles(const __grid_constant__ fp_cut_tiles c)
{
    const int each = c.lists > 1 ? 1 : c.batch, n = c.from.count * each;
    for (int i = (int)(blockIdx.x * blockDim.x + threadIdx.x); i < n;
         i += (int)(gridDim.x * blockDim.x))
        fp_cut_tile(&c, i / each, i);
}
