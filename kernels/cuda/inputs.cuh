/* What a program's plan computes with: GPU memory, drawn inputs and weights, the mask.
 *
 * Value i of array a is drawn uniformly in middle +- range from splitmix64(seed + a * 2^40 + i),
 * and so is the same everywhere. */
#ifndef INPUTS_CUH
#define INPUTS_CUH

#include "plan.h"

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <numeric>
#include <vector>

static void check(cudaError_t error, const char *what)
{
    if (error == cudaSuccess)
        return;
    fprintf(stderr, "%s: %s\n", what, cudaGetErrorString(error));
    exit(1);
}

template <class T> static T *allocate(long count)
{
    void *memory = nullptr;
    size_t bytes = (size_t)std::max(count, 1l) * sizeof(T);
    check(cudaMalloc(&memory, bytes), "cannot allocate GPU memory");
    check(cudaMemset(memory, 0, bytes), "cannot clear GPU memory");
    return (T *)memory;
}

template <class T> static const T *upload(const T *from, long count)
{
    T *to = allocate<T>(count);
    check(cudaMemcpy(to, from, (size_t)count * sizeof(T), cudaMemcpyHostToDevice),
          "cannot copy to the GPU");
    return to;
}

static __device__ uint64_t splitmix64(uint64_t x)
{
    x += 0x9E3779B97F4A7C15u;
    x = (x ^ x >> 30) * 0xBF58476D1CE4E5B9u;
    x = (x ^ x >> 27) * 0x94D049BB133111EBu;
    return x ^ x >> 31;
}

static __global__ void draw_each(uint64_t first, double middle, double range, long n,
                                 plan_element *out)
{
    long i = (long)blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n)
        return;
    double unit = (double)(splitmix64(first + (uint64_t)i) >> 11) * 0x1p-53;
    out[i] = plan_element((float)(middle + (2 * unit - 1) * range));
}

static plan_element *draw(uint64_t array, double middle, double range, long n)
{
    enum { THREADS = 256 };
    plan_element *out = allocate<plan_element>(n);
    draw_each<<<(unsigned)((n + THREADS - 1) / THREADS), THREADS>>>(plan_seed + (array << 40),
                                                                    middle, range, n, out);
    check(cudaGetLastError(), "cannot draw values");
    return out;
}

/* The query blocks, those with the most key blocks first, so that the last ones are short. */
static const int *upload_order(const struct fp_blocks &mask)
{
    std::vector<int> order((size_t)(mask.lists * mask.blocks));
    std::iota(order.begin(), order.end(), 0);
    std::stable_sort(order.begin(), order.end(), [&](int a, int b) {
        return mask.start[a + 1] - mask.start[a] > mask.start[b + 1] - mask.start[b];
    });
    return upload(order.data(), (long)order.size());
}

static struct fp_blocks upload_mask()
{
    struct fp_blocks mask = plan_mask;
    long rows = (long)mask.lists * mask.blocks, entries = mask.start[rows];
    int partial = entries > 0 ? *std::max_element(mask.bits, mask.bits + entries) + 1 : 0;
    mask.order = upload_order(plan_mask);
    mask.start = upload(plan_mask.start, rows + 1);
    mask.full = upload(plan_mask.full, rows);
    mask.key_block = upload(plan_mask.key_block, entries);
    mask.bits = upload(plan_mask.bits, entries);
    mask.words = upload(plan_mask.words, (long)partial * FP_BLOCK);
    return mask;
}

static struct fp_tiles upload_tiles(const struct plan_tiles &t, const struct fp_blocks &mask)
{
    return {t.count,
            t.parts,
            upload(t.tile, t.tile_ints),
            upload(t.head, t.head_ints),
            upload(t.rest, t.rest_ints),
            t.words ? upload(t.words, t.words_count) : mask.words,
            t.query_token ? upload(t.query_token, t.tokens) : nullptr,
            t.key_token ? upload(t.key_token, t.tokens) : nullptr};
}

/* The rows of real tokens. */
static std::vector<int> token_rows()
{
    std::vector<int> rows;
    for (int b = 0; b < BATCH; b++)
        for (int i = 0; i < (plan_lengths ? plan_lengths[b] : SEQ_LEN); i++)
            rows.push_back(b * SEQ_LEN + i);
    return rows;
}

#endif
