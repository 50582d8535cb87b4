/* How fast a layer's weights reach shared memory.
 *
 * STREAM: thread blocks take the 14.16 MB of each of 12 layers in turn, with so many pieces on the
 * way at once.  REFILL: 96 thread blocks each ask for 98304 bytes at once, which lie in memory, or
 * in L2 since a prefetch 4 us earlier: cycles from the first request to the last byte. */
#include "latency.cuh"

constexpr size_t LAYER = 14155776;
constexpr int LAYERS = 12, REFILL = 98304, REFILL_BLOCKS = 96, MOST_PLACES = 12;

extern __shared__ __align__(128) char memory[];

__global__ void stream(const char *weights, int piece, int places)
{
    __shared__ uint64_t full[MOST_PLACES];
    if (threadIdx.x != 0)
        return;
    for (int i = 0; i < places; i++)
        barrier_init(&full[i]);
    const long pieces = (long)(LAYER * LAYERS / piece);
    const long mine = (pieces - blockIdx.x + gridDim.x - 1) / gridDim.x;
    for (long i = 0; i < mine + places; i++) {
        const int place = (int)(i % places);
        if (i >= places && i - places < mine)
            barrier_wait(&full[place], (int)(i / places - 1) & 1);
        if (i < mine) {
            barrier_expect(&full[place], piece);
            bulk_copy(memory + place * piece,
                      weights + (i * gridDim.x + blockIdx.x) * (size_t)piece, piece, &full[place]);
        }
    }
}

__global__ void refill(const char *from, bool prefetched, int pieces, float *cycles)
{
    __shared__ uint64_t full;
    if (threadIdx.x != 0)
        return;
    barrier_init(&full);
    from += (size_t)blockIdx.x * REFILL;
    const int bytes = REFILL / pieces;
    for (int i = 0; i < pieces && prefetched; i++)
        asm volatile("cp.async.bulk.prefetch.L2.global [%0], %1;" ::"l"(from + i * bytes),
                     "r"(bytes));
    for (const long long until = nanoseconds() + 4000; nanoseconds() < until;)
        ;
    const long long start = clock64();
    barrier_expect(&full, REFILL);
    for (int i = 0; i < pieces; i++)
        bulk_copy(memory + i * bytes, from + i * bytes, bytes, &full);
    barrier_wait(&full, 0);
    cycles[blockIdx.x] = (float)(clock64() - start);
}

static void time_stream(const char *weights, int blocks, int piece, int places)
{
    std::vector<float> us;
    for (int run = 0; run < 25; run++)
        us.push_back(
            timed(nullptr,
                  [&] { stream<<<blocks, 32, piece * places>>>(weights, piece, places); }) *
            1000 / LAYERS);
    CHECK(cudaGetLastError());
    const double median = quantile(us, 0.5);
    printf("STREAM %3d blocks, %2d pieces of %2d KB: %.2f us a layer, %.2f TB/s\n", blocks, places,
           piece / 1024, median, (double)LAYER / median / 1e6);
}

static void time_refill(const char *weights, float *cycles, bool prefetched, int pieces)
{
    std::vector<float> median, last;
    for (int run = 0; run < 36; run++) {
        refill<<<REFILL_BLOCKS, 32, REFILL>>>(weights + (size_t)(run % LAYERS) * LAYER, prefetched,
                                              pieces, cycles);
        std::vector<float> got(REFILL_BLOCKS);
        CHECK(
            cudaMemcpy(got.data(), cycles, REFILL_BLOCKS * sizeof(float), cudaMemcpyDeviceToHost));
        median.push_back(quantile(got, 0.5));
        last.push_back(quantile(got, 1));
    }
    printf("REFILL from %s, %2d pieces: %.0f cycles, the last thread block %.0f\n",
           prefetched ? "L2" : "memory", pieces, quantile(median, 0.5), quantile(last, 0.5));
}

int main()
{
    char *weights;
    float *cycles;
    CHECK(cudaMalloc(&weights, LAYER * LAYERS));
    CHECK(cudaMemset(weights, 1, LAYER * LAYERS));
    CHECK(cudaMalloc(&cycles, REFILL_BLOCKS * sizeof(float)));
    CHECK(cudaFuncSetAttribute(stream, cudaFuncAttributeMaxDynamicSharedMemorySize,
                               16384 * MOST_PLACES));
    CHECK(cudaFuncSetAttribute(refill, cudaFuncAttributeMaxDynamicSharedMemorySize, REFILL));
    for (int blocks : {96, 132})
        for (int piece : {8192, 16384})
            for (int places : {1, 3, 6, 12})
                time_stream(weights, blocks, piece, places);
    for (bool prefetched : {false, true})
        for (int pieces : {1, 4, 16})
            time_refill(weights, cycles, prefetched, pieces);
}
