#include "sim.h"
#include <map>
#include <set>
#include <random>
namespace sim { extern std::function<void(int, u32, u32)> on_wgmma; }
#include "hopper_gemm.cuh"
#include "gemm_config.h" /* constexpr fp_hopper_gemm G0; HEADS_IN, HEADS_OUT, TURN; int RANKS; DEPTH */
using namespace fp; using namespace fp::hopper_gemm;
constexpr fp_hopper_gemm with_depth(fp_hopper_gemm g)
{
    const int bytes = fp_hopper_gemm_shared(g); fp_hopper_gemm h = g; h.depth = 1;
    const int step = fp_hopper_gemm_shared(h) - bytes; g.depth = (227 * 1024 - bytes) / step;
    if (DEPTH > 0 && DEPTH < g.depth) g.depth = DEPTH;
    return g;
}
static constexpr fp_hopper_gemm G = with_depth(G0);
using S = shape<fp16, G>;
constexpr int W = 64;
#if HEADS_IN
using View = head_view<fp16, W>;
#else
using View = token_view<fp16>;
#endif
#if TURN
using Store = store_turned_qkv<fp16, W>;
#elif HEADS_OUT
using Store = store_qkv<fp16, W>;
#else
using Store = store_tokens<fp16>;
#endif
using End = ending<fp16, either<S::GATE || !HEADS_OUT, apply_gelu<fp16, keep>, keep>, Store>;
static std::mt19937 g; static int R(int n) { return (int)(g() % (unsigned)n); }
static fp_args a; static fp_maps maps; static int M, N, K, ranks, live, heads; static std::vector<u16> bias, gam, bet; static std::vector<float> tabl;
static unsigned char *in, *wt, *res; static size_t in_n, wt_n, res_n;
static void tag(unsigned char *p, unsigned long i, int kind) { u16 *w = (u16 *)p; for (int k = 0; k < 2; k++) w[k * 4] = i & 0x1fff, w[k * 4 + 1] = i >> 13, w[k * 4 + 2] = 0x1200 + kind, w[k * 4 + 3] = 1; }
struct tg { int kind; long i; }; /* 0 zero, -1 garbage */
__attribute__((no_sanitize("thread"), noinline)) static tg tag_at(u32 at)
{
    const u16 *w = (const u16 *)(sim::arena + at); bool z = true; for (int i = 0; i < 8; i++) z = z && !w[i];
    if (z) return {0, 0};
    if (w[2] < 0x1201 || w[2] > 0x1203 || w[0] != w[4] || w[1] != w[5] || w[2] != w[6]) return {-1, 0};
    return {w[2] - 0x1200, w[0] | (long)w[1] << 13};
}
constexpr int E = S::ELEMENT, PER = 16 / E;
static void where(tg t, int &x, int &y) /* input: row, k; weight: k, n */
{
    if (t.kind == 1) {
        if (HEADS_IN) { long c = t.i % (W / 8), r = t.i / (W / 8); int s = (int)(r % a.seq_len); r /= a.seq_len; int h = (int)(r % heads); int b = (int)(r / heads); x = b * a.seq_len + s, y = h * W + (int)c * 8; }
        else x = (int)(t.i / (K / PER)), y = (int)(t.i % (K / PER)) * PER;
    } else if (S::E4M3) y = (int)(t.i / (K / PER)), x = (int)(t.i % (K / PER)) * PER;
    else x = (int)(t.i / (N / 8)), y = (int)(t.i % (N / 8)) * 8;
}
__attribute__((no_sanitize("thread"))) static void hook(int what, u32 base, u32 co)
{
    const u32 at = what == 'b' || what == 'a' ? base : base + co * 16;
    tg t = tag_at(at); if (t.kind < 0) sim::fail("garbage is multiplied: %c at %u", what, at & 0xfffff);
    if (t.kind == 3) sim::fail("a residual is multiplied");
    /* all of the operand's rows: rows of tags differ by one row */
    int x = -1, y = -1; if (t.kind) where(t, x, y);
    if (what == 'A' || what == 'B') {
        const int rows = what == 'A' ? 64 : S::SWAP ? S::BM : S::BN;
        for (int r = 0; r < rows; r++) { tg o = tag_at(base + r * 128 + ((co ^ (r % 8)) & 7) * 16); int p, q; if (o.kind == 0) continue; where(o, p, q); if (o.kind != t.kind && t.kind) sim::fail("operand of two kinds"); if (o.kind == 1 ? (p != x + r || q != y) : (q != y + r || p != x)) sim::fail("operand's row %d is %d %d, of %d %d", r, p, q, x, y); }
    } else {
        const int line = S::LINE;
        for (int r = 0; r < 16; r++) { const int sw = line == 128 ? r % 8 : r / 2 % 4; tg o = tag_at(base + r * line + sw * 16); int p, q; if (o.kind == 0) continue; where(o, p, q); if (o.kind != 2 || p != x + r || q != y) sim::fail("weight's row %d is %d %d, of %d %d", r, p, q, x, y); }
    }
    sim::log('T', (sim::u64)t.kind, (sim::u64)(u32)x << 32 | (u32)y);
}
static void build(int seed)
{
    g.seed(seed);
    ranks = G.norm != FP_NORM_NONE ? RANKS : 1 + R(3);
    heads = 1; N = ranks * S::BN;
    if (HEADS_OUT) { N = 3 * W * (1 + R(2)); heads = N / 3 / W; if (S::BN % 64) N = N; }
    else if (G.norm == FP_NORM_NONE && !G.gate && !G.out_e4m3 && R(2)) N -= 32;
    const int most = G.kept ? G.kept : R(2) ? 3 : 2 * G.depth + 3;
    K = (1 + R(most)) * S::BK - (R(2) ? 0 : 32); if (G.split > 1) K = G.split * S::BK * (1 + R(3)) - (R(2) ? 32 : 0);
    if (HEADS_IN) { heads = (K + W - 1) / W; K = heads * W; }
    const int high = G.rows * G.cluster;
    int strips = G.split > 1 ? 1 + R(2) : 1 + R(6);
    M = strips * high - (R(2) ? R(high) : 0); if (M < 1) M = 1;
    a = {}; a.batch = 1, a.seq_len = M, a.heads = heads, a.head_size = W; a.tokens = M; live = R(3) ? M : 1 + R(M); a.live = &live; a.backwards = R(2); a.early = 1; a.ffn = 1 << 20;
    if (HEADS_IN || HEADS_OUT) a.live = nullptr;
    static unsigned char *mem; const size_t MEM = 64 << 20; if (!mem) mem = (unsigned char *)aligned_alloc(4096, MEM), sim::garena = mem, sim::gbytes = MEM;
    size_t at = 0; auto take = [&](size_t n) { unsigned char *p = mem + at; at += (n + 255) / 256 * 256; if (at > MEM) abort(); memset(p, 0, n); return p; };
    in_n = (size_t)M * K * E / 16; in = take(in_n * 16); for (size_t i = 0; i < in_n; i++) tag(in + i * 16, i, 1);
    free(wt); wt_n = (size_t)K * N * E / 16; wt = (unsigned char *)aligned_alloc(256, (wt_n * 16 + 255) / 256 * 256); for (size_t i = 0; i < wt_n; i++) tag(wt + i * 16, i, 2);
    res_n = (size_t)M * N / 8; res = take(res_n * 16); for (size_t i = 0; i < res_n; i++) tag(res + i * 16, i, 3);
    unsigned char *out = take((size_t)M * N * 2 + 4096), *sum = take((size_t)M * N * 2), *o8 = take((size_t)M * N);
    bias.assign(N + 64, 0), gam.assign(N + 64, 0), bet.assign(N + 64, 0); tabl.assign((size_t)M * W, 0);
    const int st = (M + high - 1) / high * G.cluster; a.sync = (unsigned *)take(4 * (FP_SYNC_TILES + 2ul * st * ranks * ranks * G.rows));
    a.gemm.columns = N, a.gemm.inner = K; a.gemm.in = in, a.gemm.out = out, a.gemm.residual = res; a.e4m3.in = in, a.e4m3.weight = wt, a.e4m3.out = o8, a.e4m3.alpha = a.e4m3.inverse = 1;
    memset((void *)&maps, 0, sizeof maps);
    auto put = [](fp_map &m, sim::map x) { memcpy(&m, &x, sizeof x); };
    const int panel = fp_hopper_gemm_panel(G), line = fp_hopper_gemm_input_panel(G), sc = fp_hopper_gemm_stored_columns(G);
    put(maps.in, {in, (long)K * E, M, K, E, line, G.rows, 128});
    if (G.e4m3) put(maps.weight, {wt, (long)K, N, K, 1, line, G.columns / G.cluster, 128}); else put(maps.weight, {wt, N * 2l, K, N, 2, panel, G.step / G.cluster, panel * 2});
    const int on = G.gate ? N / 2 : N, orows = G.swap ? G.rows : 16;
    put(maps.out, {out, on * 2l, M, on, 2, sc, orows, sc * 2}); put(maps.e4m3, {o8, on, M, on, 1, sc, orows, sc}); put(maps.sum, {sum, N * 2l, M, N, 2, sc, orows, sc * 2});
    put(maps.residual, {res, N * 2l, M, N, 2, panel, fp_hopper_gemm_residual_rows(G), panel * 2});
    if (G.split > 1 && G.keeps) maps.sum_rows = sum;
}
static void body(int ar)
{
#if HEADS_IN
    const View v{(const u16 *)in, a.seq_len, heads, nullptr};
#else
    const View v{(const u16 *)in, K};
#endif
#if TURN
    const Store st{{(u16 *)a.gemm.out, a.batch, a.seq_len, a.heads, nullptr}, tabl.data()};
#elif HEADS_OUT
    const Store st{(u16 *)a.gemm.out, a.batch, a.seq_len, a.heads, nullptr};
#else
    const Store st{(u16 *)a.gemm.out, N};
#endif
    const End e{bias.data(), G.adds ? (const u16 *)res : nullptr, {}, st, gam.data(), bet.data(), 1e-5f, G.split > 1 ? (u16 *)maps.sum_rows : nullptr};
    fp::hopper_gemm::run<fp16, G>(a, maps, v, e, sim::arena + ((size_t)ar << 20));
}
static long checked;
static void check(int launches, int grid)
{
    const int wpb = fp_hopper_gemm_threads(G) / 32; size_t w = 0; const int step = S::E4M3 ? 32 : 16, rows = live;
    for (int l = 0; l < launches; l++) {
        std::map<std::pair<int, int>, std::map<int, int>> seen; /* of warp-in-group 0..3: (row, n) -> k count */
        for (int b = 0; b < grid; b++) for (int x = 0; x < wpb; x++, w++) {
            auto &lg = sim::logs[w]; std::vector<sim::logged> t; for (auto &e : lg) if (e.what == 'T') t.push_back(e);
            if (t.size() % 2) sim::fail("odd operands");
            std::map<std::pair<int, int>, int> next; std::pair<int, int> last = {-1, -1};
            for (size_t i = 0; i < t.size(); i += 2) {
                auto &I = t[i].a == 1 ? t[i] : t[i + 1], &Wt = t[i].a == 1 ? t[i + 1] : t[i];
                if (I.a == 0 || Wt.a == 0 || I.a != 1 || Wt.a != 2) { if ((t[i].a == 1 && t[i + 1].a == 1) || (t[i].a == 2 && t[i + 1].a == 2)) sim::fail("operands of the same kind"); continue; }
                const int row = (int)(I.b >> 32), k = (int)(u32)I.b, wk = (int)(Wt.b >> 32), n = (int)(u32)Wt.b;
                if (k != wk) sim::fail("steps of the operands differ: %d %d (block %d warp %d)", k, wk, b, x);
                auto key = std::make_pair(row, n);
                if (next.count(key) ? next[key] != k : k % S::BK != 0 || (G.split == 1 && k != 0)) sim::fail("step %d is multiplied, not %d", k, next.count(key) ? next[key] : 0);
                next[key] = k + step;
                if (x % 4 == 0) seen[key][k]++;
            }
        }
        for (auto &[k, v] : seen) { int kk = 0; for (auto &[at, n] : v) { if (at != kk || n != 1) sim::fail("row %d column %d: step %d %d times (next %d)", k.first, k.second, at, n, kk); kk += step; } if (kk < K) sim::fail("row %d column %d ends at step %d of %d", k.first, k.second, kk, K); checked++; }
        std::set<int> r, c; for (auto &[k, v] : seen) r.insert(k.first), c.insert(k.second);
        const int rstep = S::SWAP ? S::BM : 64, cstep = S::SWAP ? 64 : S::BN; size_t wr = (rows + rstep - 1) / rstep, wc = (N + cstep - 1) / cstep;
        if (seen.size() < wr * wc) sim::fail("only %zu products of %zu x %zu", seen.size(), wr, wc);
    }
    const unsigned *s = a.sync; const int st = (M + G.rows * G.cluster - 1) / (G.rows * G.cluster) * G.cluster;
    for (size_t i = 0; i < FP_SYNC_TILES + (G.norm == FP_NORM_MEMORY ? 2ul * st * ranks * ranks * G.rows : 0); i++) if (s[i]) sim::fail("word %zu of sync is left", i);
}
template <class S> static void names(std::vector<std::pair<size_t, std::string>> &f)
{
    typename S::smem *s = nullptr;
#define F(m) f.push_back({(size_t)&s->m, #m});
        F(input) F(weight) F(out) F(row) F(full) F(empty) F(ready) F(turn) F(landed) F(done) F(handed) F(residual_full) F(residual_empty)
        if constexpr (S::BETWEEN) F(residual)
        if constexpr (S::STRIPS) { F(weights) F(shared) F(columns) F(taken) F(part) }
}
int main(int argc, char **argv)
{
    const int from = argc > 1 ? atoi(argv[1]) : 1, to = argc > 2 ? atoi(argv[2]) : 10; long steps = 0;
    sim::on_wgmma = hook; if (getenv("V")) printf("depth %d shared %d\n", G.depth, fp_hopper_gemm_shared(G));
    auto name = [](u32 off) -> std::string {
        std::vector<std::pair<size_t, std::string>> f; names<S>(f);
        std::sort(f.begin(), f.end()); std::string r = "?"; size_t at = 0; for (auto &[o, n] : f) if (o <= off) r = n, at = o;
        return r + "+" + std::to_string(off - at); };
    for (int sd = from; sd <= to; sd++) {
        build(sd);
        const int wide = (N + S::BN - 1) / S::BN, strips = (live + S::BM * G.cluster - 1) / (S::BM * G.cluster);
        const bool strip = G.norm != FP_NORM_NONE && G.split == 1;
        int grid, cluster = G.norm == FP_NORM_CLUSTER ? ranks : G.cluster > 1 ? G.cluster : G.split;
        const int groups = 1 + R(3);
        if (G.split > 1) grid = (M + S::BM - 1) / S::BM * wide * G.split;
        else if (strip || G.kept) grid = min(groups, 2) * (strip ? ranks : wide) * G.cluster + (G.norm == FP_NORM_CLUSTER || G.cluster > 1 ? 0 : R(2));
        else grid = min(groups, max(1, strips * wide)) * G.cluster;
        if (grid * fp_hopper_gemm_threads(G) > 8000) continue;
        const int launches = R(3) == 0 && grid <= 4 ? 2 : 1;
        std::vector<sim::launch> L(launches, {grid, fp_hopper_gemm_threads(G), cluster, body});
        if (getenv("V")) printf("seed %d: M %d live %d N %d K %d grid %d launches %d\n", sd, M, live, N, K, grid, launches), fflush(stdout);
        sim::run(L, (unsigned)sd * 104729, name); check(launches, grid); steps += sim::steps_run;
    }
    printf("ok: depth %d, seeds %d..%d, %ld steps, %ld products of warps checked\n", G.depth, from, to, steps, checked);
}
