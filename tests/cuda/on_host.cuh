/* CUDA C++ as C++ of the host, to see where kernels on Hopper load and store.
 *
 * Their text is compiled with empty `asm`.  What a thread asks of TMA and of mailboxes is recorded
 * with its place in memory.  The caller sets threadIdx and blockIdx, and runs the threads of a
 * launch one after another.
 *
 * Not modelled: values of sums and results, which are arbitrary; mbarriers, for which no thread
 * waits; what the lanes of a warp tell each other. */
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <numeric>
#include <set>
#include <tuple>
#include <vector>

static struct {
    unsigned x;
} threadIdx, blockIdx, blockDim, gridDim;

template <class T> struct alignas(2 * sizeof(T)) vector_2 {
    T x, y;
};
template <class T> struct alignas(4 * sizeof(T)) vector_4 {
    T x, y, z, w;
};
using int2 = vector_2<int>;
using int4 = vector_4<int>;
using uint2 = vector_2<unsigned>;
using uint4 = vector_4<unsigned>;
using float2 = vector_2<float>;
using float4 = vector_4<float>;
using std::max, std::min;

/* __fdividef() errs by 2 units in the last place at most: here by turns up and down. */
static float inexact = 1 + 1 / 4194304.0f;

#define make_uint2(...)               (uint2{__VA_ARGS__})
#define make_uint4(...)               (uint4{__VA_ARGS__})
#define make_float2(...)              (float2{__VA_ARGS__})
#define rsqrtf(x)                     (1 / sqrtf(x))
#define atomicInc(counter, last)      (++*(counter))
#define atomicAdd(counter, x)         (*(counter) += (x))
#define __fdividef(x, y)              ((x) / (y) * (inexact = 2 - inexact))
#define __uint_as_float(x)            __builtin_bit_cast(float, static_cast<unsigned>(x))
#define __float_as_uint(x)            __builtin_bit_cast(unsigned, static_cast<float>(x))
#define __byte_perm(x, y, selector)   (x)
#define __ldg(from)                   (*(from))
#define __shfl_sync(lanes, x, lane)   (x)
#define __shfl_xor_sync(lanes, x, by) (x)
#define __reduce_or_sync(lanes, x)    (x)
#define __all_sync(lanes, x)          true
#define __any_sync(lanes, x)          false
#define __cvta_generic_to_shared(p)   reinterpret_cast<size_t>(p)
#define __nanosleep(ns)
#define __syncwarp()
#define __syncthreads()
#define __threadfence()
#define __CUDACC__
#define __host__
#define __device__
#define __forceinline__ inline
#define __shared__      static
#define volatile(...) ("") /* asm volatile("...") */
#define asm(...)

#include "hopper.cuh"

static const char *checked; /* the kernel */

static void check(bool holds, const char *what)
{
    if (holds)
        return;
    printf("%s: not so: %s\n", checked, what);
    exit(EXIT_FAILURE);
}

/* ---- what a thread asks for ------------------------------------------------------------------ */

enum kind { TILE, LOAD, STORE, SEND, RECEIVE }; /* TILE: a thread begins it */

struct event {
    enum kind kind;
    const void *what; /* a tensor map, or the word of a mailbox */
    int column, row;
};
static std::vector<event> events;
static std::vector<std::vector<unsigned>> groups; /* of its stores: where they read */
static unsigned char shared[256 << 10];

/* GEMMs find these before the instructions of hopper.cuh. */
namespace fp::hopper_gemm
{

static const auto box_load = [](u32, const fp_map *map, int column, int row, auto...) {
    events.push_back({LOAD, map, column, row});
};
static const auto box_load_dropped = box_load, box_multicast = box_load;
static const auto box_store = [](const fp_map *map, int column, int row, u32 from) {
    events.push_back({STORE, map, column, row});
    groups.back().push_back(from);
};
static const auto box_stores_end = []() { groups.push_back({}); };
template <int PENDING> static void box_stores_read()
{
    while (groups.size() > PENDING + 1)
        groups.erase(groups.begin());
}
static const auto store_matrix = [](u32 at, auto &) {
    for (const auto &group : groups)
        for (u32 from : group)
            check(at / 1024 != from / 1024, "a place is written once its store has read it");
};
static const auto bulk_load = [](u32 to, const void *from, int bytes, u32) {
    memcpy(shared + (to - shared_address(shared)), from, bytes);
};
static const auto store_relaxed = [](u64 *to, u64 word) {
    events.push_back({word != 0 ? SEND : RECEIVE, to, 0, 0}); /* the reader empties a mailbox */
};
static const auto load_relaxed = [](auto...) -> u64 { return 1; }; /* no mailbox is empty */
static const auto load_relaxed_if = load_relaxed;

} // namespace fp::hopper_gemm
