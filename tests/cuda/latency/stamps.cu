/* Where the time of a layer goes: stamps of an exported library's kernels, see traced.cuh.
 *
 * Runs 12 layers at each of the library's sizes and prints the time of a layer.  Of a traced
 * library it prints two tables for the last eight layers, medians over layers and runs.  First,
 * after the last thread block of the kernel in front has ended, for the first, the median and the
 * last thread block:
 *
 *   begun      the first warp is there
 *   waited     the first warp knows that the kernel in front has ended
 *   first      what the first products need is there
 *   last       what the last products need is there
 *   sums       the last product is complete
 *   end        the last warp ends
 *
 * Then what lies between these, of a thread block, in the median, A to E. */
#include "latency.cuh"
#include "trace.h"

#include "encoder.h"

#include <cuda_fp16.h>
#include <map>
#include <set>
#include <string>

enum { LAYERS = 12, JUDGED = 8, RUNS = 9, TIMED = 60 };
enum step { BEGUN, WAITED, FIRST, LAST, SUMS, END, STEPS };

/* Traced sources add to it before main() begins. */
static std::vector<const void *> &symbols()
{
    static std::vector<const void *> all;
    return all;
}

extern "C" int trace_register(const void *symbol)
{
    symbols().push_back(symbol);
    return 0;
}

static void check(int status)
{
    if (status == ENCODER_OK)
        return;
    fprintf(stderr, "stamps: %s: %s\n", encoder_status_text(status), encoder_message());
    exit(1);
}

static std::vector<__half> drawn(size_t count, float middle, float most)
{
    static uint32_t state = 1;
    std::vector<__half> out(count);
    for (__half &x : out) {
        state = state * 1664525 + 1013904223;
        x = __float2half(middle + most * ((float)(state >> 8) / (1 << 23) - 1));
    }
    return out;
}

static encoder *make_encoder()
{
    const encoder_info *l = encoder_describe();
    const size_t d = (size_t)l->heads * l->head_size, f = l->ffn;
    const std::vector<__half> matrix = drawn(d * std::max(3 * d, f), 0, 0.05f),
                              bias = drawn(std::max(3 * d, f), 0, 0.05f),
                              gamma = drawn(d, 1, 0.05f);
    const void *m = matrix.data(), *b = bias.data(), *g = gamma.data();
    const std::vector<encoder_weights> weights(LAYERS, {m, b, m, b, g, b, m, b, m, b, g, b});
    encoder_model model = {};
    model.heads = l->heads, model.head_size = l->head_size, model.ffn = l->ffn;
    model.dtype = l->dtype, model.layers = LAYERS, model.eps = l->eps;
    model.weights = weights.data();
    encoder *e;
    check(encoder_create(&model, &e));
    return e;
}

/* ---- from events to times ----------------------------------------------------------------------
 */

/* A launch; times of its thread blocks, in nanoseconds. */
struct launch {
    int columns, inner;
    std::vector<double> at[STEPS];

    double end() const
    {
        return *std::max_element(at[END].begin(), at[END].end());
    }
};

using events = const trace_event (*)[TRACE_EVENTS]; /* of a thread block's warps */

/* A multiprocessor's clock: when its cycles and the GPU's nanoseconds were read at once. */
struct clocks {
    std::map<int, std::vector<std::pair<double, double>>> pairs;
    std::map<int, double> from; /* nanoseconds at the first cycles */
    double each = 0;            /* nanoseconds of a cycle, the same in all */
    std::map<int, unsigned long long> cycles;
    unsigned long long nanoseconds = 0;

    /* What is counted from: doubles have room for differences. */
    void begin(events e)
    {
        nanoseconds = nanoseconds == 0 ? e[0][1].time : nanoseconds;
        cycles.insert({(int)e[0][0].at, e[0][0].time});
    }

    double since(int multiprocessor, unsigned long long time) const
    {
        return (double)(long long)(time - cycles.at(multiprocessor));
    }

    void add(events e)
    {
        const int multiprocessor = (int)e[0][0].at;
        begin(e);
        pairs[multiprocessor].push_back(
            {since(multiprocessor, e[0][0].time), (double)(long long)(e[0][1].time - nanoseconds)});
    }

    /* Least squares. */
    void fit()
    {
        double xy = 0, xx = 0;
        std::map<int, std::pair<double, double>> means;
        for (const auto &[number, all] : pairs) {
            double x = 0, y = 0;
            for (const auto &[a, b] : all)
                x += a / (double)all.size(), y += b / (double)all.size();
            for (const auto &[a, b] : all)
                xy += (a - x) * (b - y), xx += (a - x) * (a - x);
            means[number] = {x, y};
        }
        each = xy / xx;
        for (const auto &[number, mean] : means)
            from[number] = mean.second - mean.first * each;
    }

    double ns(int multiprocessor, unsigned long long time) const
    {
        return from.at(multiprocessor) + since(multiprocessor, time) * each;
    }
};

/* Attention has steps that no mbarrier counts the bytes of. */
static void add_block(launch &l, events e, const clocks &c)
{
    std::set<uint32_t> counted;
    unsigned long long at[STEPS] = {e[0][0].time, ~0ull, ~0ull, 0, 0, 0};
    for (int w = 0; w < TRACE_WARPS; w++)
        for (const trace_event &x : std::vector<trace_event>(e[w], e[w] + TRACE_EVENTS))
            if (x.kind == TRACE_EXPECTED)
                counted.insert(x.at);
    for (int w = 0; w < TRACE_WARPS; w++) {
        unsigned long long first = 0, last = 0;
        for (int i = 0; i < TRACE_EVENTS && e[w][i].kind != TRACE_NONE; i++) {
            const trace_event &x = e[w][i];
            if (x.kind == TRACE_WAITED)
                at[WAITED] = std::min(at[WAITED], x.time);
            if (x.kind == TRACE_STEP && (l.inner == 0 || counted.count(x.at) > 0)) {
                first = first == 0 ? x.time : first;
                last = x.time;
            }
            if (x.kind == TRACE_SUMS && last > 0) {
                at[FIRST] = std::min(at[FIRST], first);
                at[LAST] = std::max(at[LAST], last);
                at[SUMS] = std::max(at[SUMS], x.time);
            }
            if (x.kind == TRACE_END)
                at[END] = std::max(at[END], x.time);
        }
    }
    if (at[WAITED] == ~0ull || at[SUMS] == 0) /* it had no tile */
        return;
    for (int i = 0; i < STEPS; i++)
        l.at[i].push_back(c.ns((int)e[0][0].at, at[i]));
}

/* All launches of a run in their order. */
static std::vector<launch> launches_of(const std::vector<std::vector<trace_event>> &traces)
{
    constexpr size_t BLOCK = TRACE_WARPS * TRACE_EVENTS, SLOT = TRACE_BLOCKS * BLOCK;
    std::vector<launch> all;
    clocks c;
    const auto each_block = [&](auto what) {
        for (const std::vector<trace_event> &trace : traces)
            for (size_t at = 0; at < trace.size(); at += BLOCK)
                if (trace[at].kind == TRACE_BEGUN)
                    what((events)&trace[at], at % SLOT == 0);
    };
    each_block([&](events e, bool) { c.add(e); });
    c.fit();
    each_block([&](events e, bool first) {
        if (first)
            all.push_back({(int)e[0][2].time, (int)e[0][2].at});
        add_block(all.back(), e, c);
    });
    std::sort(all.begin(), all.end(),
              [](const launch &a, const launch &b) { return a.end() < b.end(); });
    return all;
}

/* ---- tables
 * -------------------------------------------------------------------------------------- */

static const char *name_of(const launch &l)
{
    return l.inner == 0               ? "1-6"
           : l.inner > l.columns      ? "12-14"
           : l.columns == l.inner     ? "7-9"
           : l.columns == 3 * l.inner ? "0"
                                      : "10-11";
}

struct row {
    std::vector<float> at[STEPS][3], between[STEPS]; /* [BEGUN]: of the whole launch */
};

static void judge(const std::vector<launch> &all, std::map<std::string, row> &rows)
{
    for (size_t i = all.size() * (LAYERS - JUDGED) / LAYERS; i < all.size(); i++) {
        const launch &l = all[i];
        const double from = all[i - 1].end();
        row &r = rows[name_of(l)];
        for (int s = 0; s < STEPS; s++) {
            std::vector<float> after, between;
            for (size_t b = 0; b < l.at[s].size(); b++) {
                after.push_back((float)(l.at[s][b] - from));
                between.push_back(
                    (float)(l.at[s][b] - (s == WAITED ? from : l.at[s > 0 ? s - 1 : 0][b])));
            }
            for (int part = 0; part < 3; part++)
                r.at[s][part].push_back(quantile(after, part * 0.5));
            r.between[s].push_back(s == BEGUN ? (float)(l.end() - from) : quantile(between, 0.5));
        }
    }
}

static void print(std::map<std::string, row> &rows)
{
    static const char *const order[] = {"0", "1-6", "7-9", "10-11", "12-14"};
    double sum[STEPS] = {};
    printf(
        "| ns after the end of the kernel in front: first, median, last | begun | waited | first "
        "| last | sums | end |\n|---|---|---|---|---|---|---|\n");
    for (const char *name : order) {
        printf("| %s |", name);
        for (auto &step : rows[name].at) {
            for (const std::vector<float> &part : step)
                printf(" %.0f", quantile(part, 0.5));
            printf(" |");
        }
        printf("\n");
    }
    printf("\n| ns | A: waited | B: first | C: last | D: sums | E: end | all of the launch | "
           "10 %%, 90 %% |\n|---|---|---|---|---|---|---|---|\n");
    for (const char *name : order) {
        row &r = rows[name];
        printf("| %s |", name);
        for (int s = 1; s <= STEPS; s++) {
            const double ns = quantile(r.between[s % STEPS], 0.5);
            printf(" %.0f |", ns);
            sum[s % STEPS] += ns;
        }
        printf(" %.0f, %.0f |\n", quantile(r.between[BEGUN], 0.1), quantile(r.between[BEGUN], 0.9));
    }
    printf("| sum |");
    for (int s = 1; s <= STEPS; s++)
        printf(" %.0f |", sum[s % STEPS]);
    printf(" |\n");
}

/* ---- runs
 * ---------------------------------------------------------------------------------------- */

static std::vector<std::vector<trace_event>> download(bool clear)
{
    std::vector<std::vector<trace_event>> out;
    for (const void *symbol : symbols()) {
        void *at;
        size_t bytes;
        CHECK(cudaGetSymbolAddress(&at, symbol));
        CHECK(cudaGetSymbolSize(&bytes, symbol));
        out.emplace_back(clear ? 0 : bytes / sizeof(trace_event));
        if (clear)
            CHECK(cudaMemset(at, 0, bytes));
        else
            CHECK(cudaMemcpy(out.back().data(), at, bytes, cudaMemcpyDeviceToHost));
    }
    return out;
}

static void measure(const encoder *e, const encoder_plan *p, cudaStream_t stream)
{
    const size_t count = (size_t)p->batch * p->seq_len * 768;
    const std::vector<__half> x = drawn(count, 0, 1);
    encoder_call call = {};
    void *device_x;
    CHECK(cudaMalloc(&device_x, count * 2));
    CHECK(cudaMalloc(&call.y, count * 2));
    CHECK(cudaMemcpy(device_x, x.data(), count * 2, cudaMemcpyHostToDevice));
    call.batch = p->batch, call.seq_len = p->seq_len, call.x = device_x, call.stream = stream;
    call.workspace_bytes = encoder_workspace_bytes(p->batch, p->seq_len);
    CHECK(cudaMalloc(&call.workspace, call.workspace_bytes));
    std::vector<float> us;
    for (int run = 0; run < TIMED; run++) {
        const float ms = timed(stream, [&] {
            for (int i = 0; i < 10; i++)
                check(encoder_run(e, &call));
        });
        if (run >= 5)
            us.push_back(ms * 1000 / 10 / LAYERS);
    }
    printf("\n(%d,%d), plan %d, %s: %.2f us a layer (10 %% %.2f, 90 %% %.2f)\n\n", p->batch,
           p->seq_len, p->value, symbols().empty() ? "untraced" : "traced", quantile(us, 0.5),
           quantile(us, 0.1), quantile(us, 0.9));
    std::map<std::string, row> rows;
    for (int run = 0; run < RUNS && !symbols().empty(); run++) {
        check(encoder_run(e, &call)); /* clocks go up */
        CHECK(cudaStreamSynchronize(stream));
        download(true);
        check(encoder_run(e, &call));
        CHECK(cudaStreamSynchronize(stream));
        const std::vector<launch> all = launches_of(download(false));
        if (all.size() != (size_t)LAYERS * p->kernels) {
            fprintf(stderr,
                    "stamps: %zu launches have traces, not %d: weights lie elsewhere than "
                    "traced.cuh takes for granted\n",
                    all.size(), LAYERS * p->kernels);
            exit(1);
        }
        judge(all, rows);
    }
    if (!symbols().empty())
        print(rows);
    CHECK(cudaFree(device_x));
    CHECK(cudaFree(call.y));
    CHECK(cudaFree(call.workspace));
}

int main()
{
    cudaStream_t stream;
    CHECK(cudaStreamCreate(&stream));
    encoder *e = make_encoder();
    for (int i = 0; i < encoder_describe()->plans; i++)
        measure(e, encoder_plan_at(i), stream);
    encoder_destroy(e);
}
