/* How calls of an exported CUDA library get into a stream: launch by launch, or as a graph.
 * library.sh builds it with the library, and with the stand-in of CUDA's runtime, which counts.
 *   graphs           all tests
 *   graphs lengths   those of lengths
 *   graphs direct    the same where calls with lengths in host memory take no graphs */
#define _GNU_SOURCE /* of host.h */
#include "calls.h"

#include <pthread.h>

enum { GRAPHS = 8, IDLE = 64 };            /* as graphs.c of the library has them */
enum { THREADS = 3, CALLS = 3, RUNS = 9 }; /* together they need more graphs than there are */

static struct encoder_call c; /* of the test that runs, with memory of its own */
static bool direct;           /* calls with lengths in host memory take no graphs */

/* ---- what is tested -------------------------------------------------------------------------- */

/* The second call in the same memory records a graph, and later ones launch it, in any stream. */
static void test_calls_that_come_again(void)
{
    cudaStream_t stream;
    struct fake_counts before = fake_counts();
    CHECK(is_right(&c, want, NULL) && went_directly(before));
    before = fake_counts();
    CHECK(is_right(&c, want, NULL));
    CHECK(since(before).instantiated == 1 && since(before).enqueued == 0);
    before = fake_counts();
    CHECK(is_right(&c, want, NULL) && went_by_graph(before, 0));
    cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking);
    c.stream = stream;
    before = fake_counts();
    CHECK(is_right(&c, want, NULL) && went_by_graph(before, 0));
    cudaStreamDestroy(stream);
}

/* Memory that never comes again costs no graph. */
static void test_new_memory(void)
{
    struct encoder_call calls[GRAPHS + 1];
    fake_compute(false);
    struct fake_counts before = fake_counts();
    for (int i = 0; i <= GRAPHS; i++) {
        calls[i] = begin();
        CHECK(encoder_run(handle, &calls[i]) == ENCODER_OK);
    }
    CHECK(went_directly(before));
    fake_compute(true);
    for (int i = 0; i <= GRAPHS; i++)
        call_delete(&calls[i]);
}

/* A graph reads the lengths that lie in the device's memory at the time. */
static void test_device_lengths(void)
{
    int *real = device_new(sizeof(lengths));
    c.device_lengths = real;
    for (int i = 0; i < 6; i++) {
        const int *now = i % 2 == 0 ? lengths : others;
        memcpy(real, now, sizeof(lengths));
        struct fake_counts before = fake_counts();
        CHECK(is_right(&c, i % 2 == 0 ? want_lengths : want_others, now));
        CHECK(i < 2 || went_by_graph(before, 0));
    }
}

/* Tokens lie where a mask says: rows of x go there, and those of y are found there. */
static void test_device_mask(void)
{
    const size_t row = (size_t)hidden() * sizeof(float);
    long long *mask = device_new((size_t)(BATCH * SEQ_LEN) * sizeof(*mask));
    c.device_mask = mask;
    for (int i = 0; i < 4; i++) {
        const int *real = i % 2 == 0 ? lengths : others;
        const float *wanted = i % 2 == 0 ? want_lengths : want_others;
        memset((void *)c.x, 0xff, bytes());
        memset(c.y, 0xff, bytes());
        for (int b = 0; b < BATCH; b++)
            for (int s = 0, n = 0; s < SEQ_LEN; s++) {
                bool kept =
                    real[b] - n >= SEQ_LEN - s || (s % 5 != 0 && s % 2 == i / 2 && n < real[b]);
                mask[b * SEQ_LEN + s] = kept ? 1 + s : 0;
                if (kept)
                    memcpy((char *)c.x + (size_t)(b * SEQ_LEN + s) * row,
                           (const char *)x + (size_t)(b * SEQ_LEN + n++) * row, row);
            }
        if (encoder_plan_at(0)->packed == 0) {
            CHECK(encoder_run(handle, &c) == ENCODER_BAD_ARGUMENT && said("not packed"));
            continue;
        }
        CHECK(encoder_run(handle, &c) == ENCODER_OK);
        for (int b = 0; b < BATCH; b++)
            for (int s = 0, n = 0; s < SEQ_LEN; s++) {
                const float *y = (const float *)c.y + (size_t)(b * SEQ_LEN + s) * (size_t)hidden();
                const float *in_order = wanted + (size_t)(b * SEQ_LEN + n) * (size_t)hidden();
                bool kept = mask[b * SEQ_LEN + s] != 0;
                for (int k = 0; k < hidden(); k++)
                    CHECK(kept ? y[k] == in_order[k] : y[k] == 0);
                n += kept;
            }
    }
    device_delete(mask);
    c.device_mask = NULL;
    memcpy((void *)c.x, x, bytes());
}

/* Lengths in host memory differ from call to call, too, and a smaller batch has its own. */
static void test_host_lengths(void)
{
    for (int i = 0; i < 6; i++) {
        struct fake_counts before = fake_counts();
        c.lengths = i % 2 == 0 ? lengths : others;
        CHECK(is_right(&c, i % 2 == 0 ? want_lengths : want_others, c.lengths));
        CHECK(direct ? went_directly(before) : i < 2 || went_by_graph(before, 1));
    }
    struct encoder_call less = c;
    less.batch = 1;
    less.lengths = NULL;
    for (int i = 0; i < 3; i++) {
        struct fake_counts before = fake_counts();
        CHECK(encoder_run(handle, &less) == ENCODER_OK);
        CHECK(same_rows(less.y, want, (const int[]){SEQ_LEN, 0}));
        CHECK(direct ? went_directly(before) : i < 2 || went_by_graph(before, 1));
    }
    struct fake_counts before = fake_counts();
    c.lengths = NULL; /* the same memory without lengths is another graph */
    CHECK(is_right(&c, want, NULL) && went_directly(before));
}

/* A graph gives way to another once it is idle, not before: memory that takes turns with more than
 * a handle has graphs for does not make it record graphs all the time. */
static void test_many_addresses(void)
{
    struct encoder_call calls[GRAPHS + 1];
    fake_compute(false);
    struct fake_counts before = fake_counts();
    for (int i = 0; i <= GRAPHS; i++)
        calls[i] = begin();
    for (int round = 0; round < 3; round++)
        for (int i = 0; i <= GRAPHS; i++)
            CHECK(encoder_run(handle, &calls[i]) == ENCODER_OK);
    CHECK(since(before).instantiated == GRAPHS && since(before).executables == GRAPHS);
    before = fake_counts();
    for (int i = 0; i <= IDLE; i++)
        CHECK(encoder_run(handle, &calls[i % 2]) == ENCODER_OK);
    fake_compute(true);
    CHECK(since(before).graph_launches == IDLE + 1 && since(before).enqueued == 0);
    before = fake_counts();
    CHECK(is_right(&calls[GRAPHS], want, NULL));
    CHECK(since(before).instantiated == 1 && since(before).executables == GRAPHS);
    before = fake_counts();
    CHECK(is_right(&calls[GRAPHS], want, NULL) && went_by_graph(before, 0));
    for (int i = 0; i <= GRAPHS; i++)
        call_delete(&calls[i]);
}

/* In a stream that the caller captures every launch is one of the caller's graph. */
static void test_capture(void)
{
    cudaStream_t stream;
    cudaGraph_t graph;
    cudaGraphExec_t all;
    for (int i = 0; i < 3; i++)
        CHECK(is_right(&c, want, NULL));
    cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking);
    c.stream = stream;
    CHECK(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal) == cudaSuccess);
    struct fake_counts before = fake_counts();
    memset(c.y, 0xff, bytes());
    CHECK(encoder_run(handle, &c) == ENCODER_OK);
    CHECK(since(before).graph_launches == 0 && since(before).enqueued == 0);
    CHECK(cudaStreamEndCapture(stream, &graph) == cudaSuccess);
    cudaGraphInstantiate(&all, graph, 0);
    cudaGraphDestroy(graph);
    CHECK(!same_rows(c.y, want, NULL));
    CHECK(cudaGraphLaunch(all, NULL) == cudaSuccess && same_rows(c.y, want, NULL));
    cudaGraphExecDestroy(all);
    cudaStreamDestroy(stream);
}

/* While the caller captures a stream, in the mode that forbids allocations everywhere, a call in
 * another stream records its graph. */
static void test_beside_a_capture(void)
{
    cudaStream_t stream;
    cudaGraph_t graph;
    void *memory;
    cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking);
    CHECK(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal) == cudaSuccess);
    struct fake_counts before = fake_counts();
    for (int i = 0; i < 3; i++)
        CHECK(is_right(&c, want, NULL));
    CHECK(since(before).instantiated == 1 && since(before).graph_launches == 2);
    CHECK(cudaMalloc(&memory, 1) == cudaErrorStreamCaptureUnsupported); /* the mode is as before */
    CHECK(cudaStreamEndCapture(stream, &graph) == cudaSuccess);
    cudaGraphDestroy(graph);
    cudaStreamDestroy(stream);
}

/* Where no graph can be made, calls do without, and no more are tried. */
static void check_without_graphs(enum fake_failure failure)
{
    struct fake_counts before = fake_counts();
    fake_fail(failure);
    for (int i = 0; i < 3; i++)
        CHECK(is_right(&c, want, NULL) && went_directly(before));
    fake_fail(FAIL_NOTHING);
    CHECK(is_right(&c, want, NULL) && went_directly(before));
}

static void test_no_capture(void)
{
    check_without_graphs(FAIL_CAPTURE);
}

static void test_no_graph(void)
{
    check_without_graphs(FAIL_INSTANTIATE);
}

/* While the graph is recorded, and directly after that. */
static void test_no_launch(void)
{
    CHECK(is_right(&c, want, NULL));
    fake_fail(FAIL_LAUNCH);
    CHECK(encoder_run(handle, &c) == ENCODER_DEVICE_FAILED && said("cannot launch a kernel"));
    fake_fail(FAIL_NOTHING);
}

static void test_no_graph_launch(void)
{
    for (int i = 0; i < 2; i++)
        CHECK(is_right(&c, want, NULL));
    fake_fail(FAIL_GRAPH_LAUNCH);
    CHECK(encoder_run(handle, &c) == ENCODER_DEVICE_FAILED && said("cannot launch a graph"));
    fake_fail(FAIL_NOTHING);
    CHECK(is_right(&c, want, NULL));
}

/* What a thread runs. */
struct turns {
    struct encoder_call calls[CALLS];
    int right;
};

static void *run_in_turns(void *thread)
{
    struct turns *t = thread;
    for (int i = 0; i < RUNS; i++)
        t->right += is_right(&t->calls[i % CALLS], want, NULL);
    return NULL;
}

static void *run_call(void *call)
{
    for (int i = 0; i < CALLS; i++)
        CHECK(encoder_run(handle, call) == ENCODER_OK);
    return NULL;
}

/* Results of calls that use the same memory at once mean nothing, but nobody launches a graph that
 * another thread launches, which CUDA forbids. */
static void test_same_memory(void)
{
    pthread_t threads[THREADS];
    for (int i = 0; i < 2; i++)
        CHECK(is_right(&c, want, NULL));
    for (int i = 0; i < THREADS; i++)
        pthread_create(&threads[i], NULL, run_call, &c);
    for (int i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
}

/* Threads that share a handle, each with memory of its own, though one may end before another
 * begins. */
static void test_threads(void)
{
    pthread_t threads[THREADS];
    struct turns turns[THREADS] = {0};
    for (int i = 0; i < THREADS * CALLS; i++)
        turns[i / CALLS].calls[i % CALLS] = begin();
    for (int i = 0; i < THREADS; i++)
        pthread_create(&threads[i], NULL, run_in_turns, &turns[i]);
    for (int i = 0; i < THREADS; i++) {
        pthread_join(threads[i], NULL);
        CHECK(turns[i].right == RUNS);
    }
    CHECK(fake_counts().executables == GRAPHS);
    for (int i = 0; i < THREADS * CALLS; i++)
        call_delete(&turns[i / CALLS].calls[i % CALLS]);
}

/* The tests of lengths come first. */
static void (*const tests[])(void) = {
    test_device_lengths, test_device_mask,    test_host_lengths,    test_calls_that_come_again,
    test_new_memory,     test_many_addresses, test_capture,         test_no_capture,
    test_no_graph,       test_no_launch,      test_no_graph_launch, test_beside_a_capture,
    test_same_memory,    test_threads};
enum { TESTS = sizeof(tests) / sizeof(tests[0]), TESTS_OF_LENGTHS = 3 };

int main(int argc, char **argv)
{
    direct = argc > 1 && strcmp(argv[1], "direct") == 0;
    draw_model(1);
    x = draw((size_t)(BATCH * SEQ_LEN * hidden()), 0);
    open_handle();
    want = compute(NULL);
    want_lengths = compute(lengths);
    want_others = compute(others);
    close_handle();
    for (int i = 0; i < (argc == 1 ? TESTS : TESTS_OF_LENGTHS); i++) {
        open_handle();
        c = begin();
        tests[i]();
        call_delete(&c);
        close_handle();
    }
    free(x);
    free(want);
    free(want_lengths);
    free(want_others);
    free_model();
    return report();
}
