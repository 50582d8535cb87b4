/* What a team of 128x192 does with a tile, in cycles, by the stamps of ../latency/traced.cuh.
 *
 * Operator 10 (M,768) x (768,3072) at 16384 rows: two teams multiply in turn.  A tile's period is
 * that of a team, two tiles of the thread block.  Where products and what follows them take longer
 * than the products of both teams, the tensor cores wait:
 *
 *   products   from the team's turn to its sums
 *   finish     from the sums to the last store that is asked for
 *   period     from sums to sums
 *   idle       period less the products of both teams, whose first steps overlap
 *
 * Medians over thread blocks, teams and tiles, without a team's first tile and those for which the
 * trace has no room. */
#include "../latency/traced.cuh"

#include "gemm_ours.cuh"

enum { ROWS = 16384, COLUMNS = 3072, INNER = 768, LAUNCHES = 5, TEAM_WARPS = 4 };

/* There is one traced source: this one. */
extern "C" int trace_register(const void *)
{
    return 0;
}

struct cycles {
    std::vector<float> products, finish, period;
};

/* The events of a team's first warp.  A tile's first one is that its turn has come. */
static void add_team(cycles &c, const trace_event *e)
{
    unsigned long long turn = 0, sums = 0, before = 0, stored = 0;
    int tiles = 0;
    for (int i = 0; i < TRACE_EVENTS && e[i].kind != TRACE_END && e[i].kind != TRACE_NONE; i++) {
        if (e[i].kind == TRACE_STORED)
            stored = e[i].time;
        if (e[i].kind == TRACE_STEP && turn == 0) {
            turn = e[i].time;
            if (tiles > 1 && stored > sums)
                c.finish.push_back((float)(stored - sums));
        }
        if (e[i].kind != TRACE_SUMS)
            continue;
        before = sums, sums = e[i].time;
        if (tiles++ > 0) {
            c.products.push_back((float)(sums - turn));
            c.period.push_back((float)(sums - before));
        }
        turn = 0;
    }
}

template <bool E4M3, ending ENDING> static void measure(const problem &p, const char *name)
{
    using tile = tile_of<E4M3, 128, 192, 128, 2, 1, 1, false, ENDING>;
    constexpr size_t BLOCK = TRACE_WARPS * TRACE_EVENTS;
    std::vector<trace_event> events(TRACE_BLOCKS * BLOCK);
    cycles c;
    for (int launch = 0; launch < LAUNCHES; launch++) {
        void *traced;
        CHECK(cudaGetSymbolAddress(&traced, fp::traced));
        CHECK(cudaMemset(traced, 0, events.size() * sizeof(trace_event)));
        launch_tile<tile>(p, true, nullptr);
        CHECK(cudaMemcpy(events.data(), traced, events.size() * sizeof(trace_event),
                         cudaMemcpyDeviceToHost));
        for (size_t block = 0; block < TRACE_BLOCKS && launch > 0; block++)
            for (int team = 0; team < 2; team++)
                add_team(c, &events[block * BLOCK + team * TEAM_WARPS * TRACE_EVENTS]);
    }
    const auto print = [](const std::vector<float> &all) {
        printf(" %.0f (%.0f, %.0f) |", quantile(all, 0.5), quantile(all, 0.1), quantile(all, 0.9));
    };
    printf("| %s |", name);
    print(c.products);
    print(c.finish);
    print(c.period);
    printf(" %.0f |\n", quantile(c.period, 0.5) - 2 * quantile(c.products, 0.5));
}

int main()
{
    problem p = {};
    p.rows = ROWS, p.columns = COLUMNS, p.inner = INNER;
    p.codes = drawn_tensor<__nv_fp8_e4m3>((size_t)ROWS * INNER, 4, 1);
    p.weight_codes = drawn_tensor<__nv_fp8_e4m3>((size_t)COLUMNS * INNER, 4, 2);
    p.in = drawn_tensor<__half>((size_t)ROWS * INNER, 1, 3);
    p.weight = drawn_tensor<__half>((size_t)COLUMNS * INNER, 1.0f / 32, 4);
    p.out = drawn_tensor<__half>((size_t)ROWS * COLUMNS, 0, 5);
    printf(
        "\n| 10 at 16384 rows, 128x192: cycles (10 %%, 90 %%) | products | finish | period | idle "
        "|\n|---|---|---|---|---|\n");
    measure<true, PLAIN>(p, "e4m3");
    measure<true, GELU>(p, "e4m3, GELU, fp16 out");
    measure<true, GELU_E4M3>(p, "e4m3, GELU, e4m3 out");
    measure<false, PLAIN>(p, "fp16");
    measure<false, GELU>(p, "fp16, GELU");
}
