/* Runs a plan's segments layer after layer on drawn inputs and prints the time of one pass.  With a
 * file's name the output goes there, a NumPy array (B,S,D) of fp32.
 *
 * What plan, workload and segments: plan.h and plan.cu.  Values are drawn by splitmix64 with a
 * stated index, so that they are the same everywhere: value i of array a is uniform in +-range
 * around middle, from splitmix64(seed + a * 2^40 + i).  A pass is one CUDA graph. */
#include "plan.h"

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <numeric>
#include <vector>

enum { TENSORS = 16, WEIGHTS = 12, ARRAY_X = 15, ARRAYS_PER_LAYER = 16 };
enum { X = 0, Y = TENSORS - 1 };
enum { SAMPLES_MIN = 11, SAMPLES_MAX = 1001 };
static const double warm_up_ms = 500, timing_ms = 2000;

static void check(cudaError_t error, const char *what)
{
    if (error == cudaSuccess)
        return;
    fprintf(stderr, "%s: %s\n", what, cudaGetErrorString(error));
    exit(1);
}

/* ---- memory ------------------------------------------------------------------------------- */

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

/* Query blocks with the most key blocks first, so that no long one is left at the end. */
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

/* The rows of the tokens that are no padding. */
static std::vector<int> token_rows()
{
    std::vector<int> rows;
    for (int b = 0; b < BATCH; b++)
        for (int i = 0; i < (plan_lengths ? plan_lengths[b] : SEQ_LEN); i++)
            rows.push_back(b * SEQ_LEN + i);
    return rows;
}

/* ---- what runs ---------------------------------------------------------------------------- */

/* Arguments but for weights and the layer's own tensors; its input and output alternate. */
static struct fp_args common;
static plan_element *x, *flow[2];
static const plan_element *weights[LAYERS][WEIGHTS];
static int grid[SEGMENTS];

static void prepare()
{
    std::vector<int> rows = token_rows();
    long sync_words = 1, workspace_bytes = 1;
    for (const plan_segment &s : plan_segments) {
        sync_words = std::max(sync_words, s.sync_words);
        workspace_bytes = std::max(workspace_bytes, s.workspace_bytes);
    }
    common.batch = BATCH;
    common.seq_len = SEQ_LEN;
    common.heads = HEADS;
    common.head_size = HEAD_SIZE;
    common.ffn = FFN;
    common.tokens = (int)rows.size();
    common.eps = plan_eps;
    if (plan_lengths) {
        common.token_row = upload(rows.data(), (long)rows.size());
        common.lengths = upload(plan_lengths, BATCH);
    }
    common.mask = upload_mask();
    common.sync = allocate<unsigned>(sync_words);
    common.workspace = (float *)allocate<char>(workspace_bytes);
    for (int t = 1; t < Y; t++)
        if (plan_tensor_elements[t] > 0)
            common.tensor[t] = allocate<plan_element>(plan_tensor_elements[t]);
    x = draw(ARRAY_X, 0, 0.4, plan_tensor_elements[X]);
    for (plan_element *&y : flow)
        y = allocate<plan_element>(plan_tensor_elements[Y]);
    for (int l = 0; l < LAYERS; l++)
        for (int i = 0; i < WEIGHTS; i++) {
            const struct plan_weight *w = &plan_weights[i];
            weights[l][i] =
                draw((uint64_t)(l * ARRAYS_PER_LAYER + i), w->middle, w->range, w->elements);
        }
}

/* A cooperative launch takes no more thread blocks than are resident at once. */
static void size_grids()
{
    cudaDeviceProp device;
    check(cudaGetDeviceProperties(&device, 0), "cannot ask the GPU");
    for (int i = 0; i < SEGMENTS; i++) {
        const plan_segment &s = plan_segments[i];
        int blocks = 0;
        if (!s.kernel)
            continue;
        check(cudaFuncSetAttribute(s.kernel, cudaFuncAttributeMaxDynamicSharedMemorySize,
                                   s.shared_bytes),
              "cannot give a kernel its shared memory");
        check(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, s.kernel, s.threads,
                                                            (size_t)s.shared_bytes),
              "cannot ask for a kernel's occupancy");
        long resident = (long)blocks * device.multiProcessorCount;
        grid[i] = (int)(s.cooperative ? std::min(s.tiles, resident) : s.tiles);
    }
}

static void launch(int segment, struct fp_args *a, cudaStream_t stream)
{
    const plan_segment &s = plan_segments[segment];
    if (!s.kernel) {
        s.call(*a, s.algorithm, stream);
        return;
    }
    void *parameters[] = {a};
    dim3 blocks((unsigned)grid[segment]), threads((unsigned)s.threads);
    size_t shared = (size_t)s.shared_bytes;
    check(s.cooperative
              ? cudaLaunchCooperativeKernel(s.kernel, blocks, threads, parameters, shared, stream)
              : cudaLaunchKernel(s.kernel, blocks, threads, parameters, shared, stream),
          "cannot launch a kernel");
}

/* A library loads its kernels in its first calls, which cannot be captured; what these compute is
 * computed anew. */
static void load_libraries(cudaStream_t stream)
{
    struct fp_args a = common;
    a.tensor[X] = x;
    a.tensor[Y] = flow[0];
    std::copy(weights[0], weights[0] + WEIGHTS, a.weight);
    for (int s = 0; s < SEGMENTS; s++)
        if (!plan_segments[s].kernel)
            launch(s, &a, stream);
}

/* All layers as one graph; *y is the last one's output. */
static cudaGraphExec_t capture(cudaStream_t stream, const plan_element **y)
{
    cudaGraph_t graph;
    cudaGraphExec_t all;
    struct fp_args a = common;
    load_libraries(stream);
    a.tensor[Y] = x;
    check(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal), "cannot capture");
    for (int l = 0; l < LAYERS; l++) {
        a.tensor[X] = a.tensor[Y];
        a.tensor[Y] = flow[l % 2];
        std::copy(weights[l], weights[l] + WEIGHTS, a.weight);
        for (int s = 0; s < SEGMENTS; s++)
            launch(s, &a, stream);
    }
    check(cudaStreamEndCapture(stream, &graph), "cannot capture");
    check(cudaGraphInstantiate(&all, graph, 0), "cannot make a graph");
    check(cudaGraphDestroy(graph), "cannot make a graph");
    *y = (const plan_element *)a.tensor[Y];
    return all;
}

/* ---- time and result ---------------------------------------------------------------------- */

/* Milliseconds of one pass. */
static double pass(cudaGraphExec_t all, cudaStream_t stream)
{
    static cudaEvent_t begin, end;
    float ms = 0;
    if (!begin) {
        check(cudaEventCreate(&begin), "cannot make an event");
        check(cudaEventCreate(&end), "cannot make an event");
    }
    check(cudaEventRecord(begin, stream), "cannot time");
    check(cudaGraphLaunch(all, stream), "cannot run the plan");
    check(cudaEventRecord(end, stream), "cannot time");
    check(cudaEventSynchronize(end), "the plan failed");
    check(cudaEventElapsedTime(&ms, begin, end), "cannot time");
    return ms;
}

/* The output (B,S,D) as fp32, zeros in padding. */
static std::vector<float> download(const plan_element *y)
{
    const long hidden = (long)HEADS * HEAD_SIZE;
    std::vector<plan_element> host((size_t)plan_tensor_elements[Y]);
    std::vector<float> real(host.size());
    check(cudaMemcpy(host.data(), y, host.size() * sizeof(plan_element), cudaMemcpyDeviceToHost),
          "cannot copy from the GPU");
    for (int row : token_rows())
        std::copy_n(&host[(size_t)(row * hidden)], hidden, &real[(size_t)(row * hidden)]);
    return real;
}

/* Of the real tokens' output: equal for plans that compute the same, up to rounding. */
static double mean_square(const std::vector<float> &y)
{
    const long hidden = (long)HEADS * HEAD_SIZE;
    std::vector<int> rows = token_rows();
    double sum = 0;
    for (int row : rows)
        for (long i = 0; i < hidden; i++) {
            double value = y[(size_t)(row * hidden + i)];
            sum += value * value;
        }
    return sum / ((double)rows.size() * (double)hidden);
}

/* NumPy's format, version 1.0: magic, the header's length (118), the header, the data. */
static void write_npy(const char *path, const std::vector<float> &y)
{
    char shape[100];
    snprintf(shape, sizeof(shape),
             "{'descr': '<f4', 'fortran_order': False, 'shape': (%d, %d, %d), }", BATCH, SEQ_LEN,
             HEADS * HEAD_SIZE);
    FILE *out = fopen(path, "wb");
    bool ok = out && fwrite("\x93NUMPY\1\0\x76\0", 1, 10, out) == 10 &&
              fprintf(out, "%-117s\n", shape) == 118 &&
              fwrite(y.data(), sizeof(float), y.size(), out) == y.size();
    if (!out || fclose(out) != 0 || !ok) {
        perror(path);
        exit(1);
    }
}

int main(int argc, char **argv)
{
    std::vector<double> samples;
    const plan_element *y;
    cudaStream_t stream;
    check(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking), "cannot use a GPU");
    prepare();
    size_grids();
    check(cudaDeviceSynchronize(), "cannot draw values");
    cudaGraphExec_t all = capture(stream, &y);
    for (double ms = 0; ms < warm_up_ms;)
        ms += pass(all, stream);
    for (double ms = 0;
         samples.size() < SAMPLES_MIN || (samples.size() < SAMPLES_MAX && ms < timing_ms);) {
        samples.push_back(pass(all, stream));
        ms += samples.back();
    }
    std::sort(samples.begin(), samples.end());
    printf("plan %d: %.4f ms, the median of %zu passes through %d layers (%.4f to %.4f)\n",
           PLAN_VALUE, samples[samples.size() / 2], samples.size(), LAYERS, samples.front(),
           samples.back());
    std::vector<float> output = download(y);
    printf("mean square of the output: %.6f\n", mean_square(output));
    if (argc > 1)
        write_npy(argv[1], output);
    return 0;
}
