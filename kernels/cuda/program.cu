/* Runs a plan's segments layer after layer on drawn inputs and prints the time of one pass.  With
 * the name of a file as argument it writes the output there, a NumPy array (B,S,D) of fp32.
 *
 * plan.h and plan.cu say which plan, workload and segments.  A pass is one CUDA graph. */
#define PLAN_ABOUT ""

#include "arguments.h"
#include "inputs.cuh"
#include "maps.cuh"
#include "output.cuh"

#include <algorithm>
#include <cstdio>
#include <vector>

enum { TENSORS = 16, WEIGHTS = 12, ARRAY_X = 15, ARRAYS_PER_LAYER = 16 };
enum { X = 0, Y = TENSORS - 1 };
enum { SAMPLES_MIN = 11, SAMPLES_MAX = 1001 };
static const double warm_up_ms = 500, timing_ms = 2000;

/* ---- what runs ---------------------------------------------------------------------------- */

/* The arguments that all layers share; the buffers of a layer's input and output alternate. */
static struct fp_args common;
static plan_element *x, *flow[2];
static const plan_element *weights[LAYERS][WEIGHTS];
static int grid[SEGMENTS];
static bool dependent; /* a kernel may begin before the one in front of it has ended */
static struct fp_tiles query_tiles[SEGMENTS];

static void prepare()
{
    std::vector<int> rows = token_rows();
    long sync_words = 1, workspace_bytes = 1;
    for (int i = 0; i < SEGMENTS; i++) {
        const plan_segment &s = plan_segments[i];
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
    for (int i = 0; i < SEGMENTS; i++)
        if (plan_segments[i].query_tiles)
            query_tiles[i] = upload_tiles(*plan_segments[i].query_tiles, common.mask);
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

/* A cooperative launch takes no more thread blocks than are resident at once.  Since compute
 * capability 9.0 kernels can wait for the one in front of them. */
static void size_grids()
{
    cudaDeviceProp device;
    check(cudaGetDeviceProperties(&device, 0), "cannot ask the GPU");
    dependent = device.major >= 9;
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
        bool bounded = s.cooperative || s.persistent;
        grid[i] = (int)(bounded ? std::min(s.tiles, resident) : s.tiles);
    }
}

static void launch(int segment, struct fp_args *a, cudaStream_t stream)
{
    const plan_segment &s = plan_segments[segment];
    if (!s.kernel) {
        s.call(*a, s.algorithm, stream);
        return;
    }
    struct fp_maps maps = {};
    void *parameters[] = {a, &maps};
    a->tiles = query_tiles[segment];
    if (s.maps)
        encode_maps(s.maps, *a, &maps);
    cudaLaunchAttribute attribute = {};
    cudaLaunchConfig_t config = {};
    config.gridDim = dim3((unsigned)grid[segment]);
    config.blockDim = dim3((unsigned)s.threads);
    config.dynamicSmemBytes = (size_t)s.shared_bytes;
    config.stream = stream;
    config.attrs = &attribute;
    if (s.cooperative) {
        attribute.id = cudaLaunchAttributeCooperative;
        attribute.val.cooperative = 1;
        config.numAttrs = 1;
    } else if (dependent) {
        attribute.id = cudaLaunchAttributeProgrammaticStreamSerialization;
        attribute.val.programmaticStreamSerializationAllowed = 1;
        config.numAttrs = 1;
    }
    check(cudaLaunchKernelExC(&config, s.kernel, parameters), "cannot launch a kernel");
}

/* cuBLASLt loads kernels in its first calls, which cannot be captured.  So it is called once
 * before; the results are overwritten. */
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

/* ---- time --------------------------------------------------------------------------------- */

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

int main(int argc, char **argv)
{
    std::vector<double> samples;
    const plan_element *y;
    cudaStream_t stream;
    const char *path = output_path(argc, argv);
    FILE *out = output_open(path), *report = out == stdout ? stderr : stdout;
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
    fprintf(report, "plan %d: %.4f ms, the median of %zu passes through %d layers (%.4f to %.4f)\n",
            PLAN_VALUE, samples[samples.size() / 2], samples.size(), LAYERS, samples.front(),
            samples.back());
    std::vector<float> output = download(y);
    fprintf(report, "mean square of the output: %.6f\n", mean_square(output));
    if (out)
        output_write(out, path, output.data());
    return report_end(report);
}
