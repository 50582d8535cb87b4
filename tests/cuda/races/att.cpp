#include "sim.h"
#include <map>
#include <set>
#include <random>
namespace sim { extern std::function<void(int, u32, u32)> on_wgmma; }
#include "hopper_attention.cuh"
#include "att_config.h" /* constexpr fp_hopper_attention A; constexpr int OPS */
using namespace fp;
using namespace fp::hopper_attention;
using S = shape<fp16, OPS, A>;
static std::mt19937 g; static long total_checked; static int current_seed;
#ifndef SCALE
#define SCALE 2
#endif
static int R(int n) { return (int)(g() % (unsigned)n); }
static void put_tag(unsigned char *p, unsigned long idx, bool bad)
{
    u16 *w = (u16 *)p; w[0] = idx & 0x1fff, w[1] = idx >> 13 & 0x1fff, w[2] = 0x1234, w[3] = bad ? 0x7c00 : 1; w[4] = w[0], w[5] = w[1], w[6] = 0x1234, w[7] = 2;
}
__attribute__((no_sanitize("thread"), noinline)) static long tag_of(const unsigned char *p) /* -1 zero, -2 garbage */
{
    const u16 *w = (const u16 *)p; bool z = true; for (int i = 0; i < 8; i++) z = z && !w[i];
    if (z) return -1;
    if (w[2] != 0x1234 || w[6] != 0x1234 || w[0] != w[4] || w[1] != w[5]) return -2;
    return w[0] | (long)w[1] << 13;
}
struct problem {
    int B, H, Sq, blocks, parts; std::vector<int> lengths; int live;
    std::vector<int> tile, head, rest; std::vector<unsigned long long> words; std::vector<int> qt, kt;
    std::vector<float> table; std::vector<u16> bias;
};
struct where { int b, h, token, which, chunk; };
static problem P; static fp_args a; static fp_attention io; static fp_maps maps;
static where place_of(long idx)
{
    const int C = A.head_size / 8;
    if (S::SPLIT) { long row = idx / (3 * P.H * C); int c = (int)(idx % (3 * P.H * C)); return {(int)(row / P.Sq), c / C % P.H, (int)(row % P.Sq), c / C / P.H, c % C}; }
    long r = idx / C; int t = (int)(r % P.Sq); r /= P.Sq; int h = (int)(r % P.H); r /= P.H; return {(int)(r % P.B), h, t, (int)(r / P.B), (int)(idx % C)};
}
static int len_of(int b) { return S::JOINED ? P.live : P.lengths[b]; }
/* decodes 64 rows that lie in smem: returns b,h and for each key index its token or -1 */
__attribute__((no_sanitize("thread"), noinline)) static bool decode(u32 at, bool keys, int which, int &b, int &h, int (&tok)[64])
{
    const unsigned char *p = (const unsigned char *)sim::ptr(at); b = h = -1;
    for (int r = 0; r < 64; r++) {
        const int q = r / 8, t = r % 8 / 2, e = r % 2, idx = keys ? 16 * t + 2 * q + e : r; tok[idx] = -1;
        for (int c = 0; c < A.head_size / 8; c++) {
            long x = tag_of(p + c / 8 * S::PANEL + r * 128 + ((c % 8) ^ (r % 8)) * 16);
            if (x == -2) sim::fail("garbage in %c row %d chunk %d", which == 0 ? 'q' : which == 1 ? 'k' : 'v', r, c);
            if (x == -1) { if (c && tok[idx] != -1) sim::fail("part of a row"); continue; }
            where w = place_of(x);
            if (w.which != which || w.chunk != c) sim::fail("row %d chunk %d has which %d chunk %d, not %d", r, c, w.which, w.chunk, which);
            const int token = S::JOINED ? w.b * P.Sq + w.token : w.token, bb = S::JOINED ? 0 : w.b;
            if (b < 0) b = bb, h = w.h;
            if (b != bb || h != w.h || (c && tok[idx] != token)) sim::fail("rows of several heads or tokens (which %d row %d chunk %d: b %d/%d h %d/%d tok %d/%d)", which, r, c, b, bb, h, w.h, tok[idx], token);
            tok[idx] = token;
        }
    }
    return b >= 0;
}
/* block that these tokens are in a part: -1 none, -2 not a block */
static int block_of(const int (&tok)[64], int part, bool keys, int b)
{
    if (!S::ORDERED) {
        for (int i = 0; i < 64; i++) if (tok[i] >= 0) {
            int blk = (tok[i] - i) / 64; if ((tok[i] - i) % 64) return -2;
            for (int j = 0; j < 64; j++) if (tok[j] != (blk * 64 + j < len_of(b) ? blk * 64 + j : -1) && !(S::JOINED && tok[j] == -1)) return -2;
            return blk;
        }
        return -1;
    }
    const auto &of = keys ? P.kt : P.qt;
    for (int blk = 0; blk < P.blocks; blk++) {
        bool same = true, any = false;
        for (int j = 0; j < 64 && same; j++) { int t = of[(part * P.blocks + blk) * 64 + j]; if (t >= len_of(b)) t = -1; same = t == tok[j]; any |= t >= 0; }
        if (same && any) return blk;
    }
    return -2;
}
struct ev { int what, b, h, blk[2]; long v; };
static void hook(int what, u32 at, u32 co)
{
    const u32 base = sim::block_base(), align = (u32)((unsigned char *)&S::align(sim::arena + base) - (sim::arena + base));
    int b, h, tok[64];
    auto rec = [&](int w, u32 where, bool keys, int which) {
        decode(where, keys, which, b, h, tok);
        int b0 = b < 0 ? -1 : block_of(tok, 0, keys, b), b1 = b < 0 ? -1 : P.parts > 1 ? block_of(tok, 1, keys, b) : -2;
        if (b0 == -2 && b1 == -2) sim::fail("%c: rows are of no block (first tokens %d %d %d)", w, tok[0], tok[1], tok[2]);
        sim::log(w, (u64)(b + 1) << 32 | (u32)(h + 1), (u64)(u32)b0 << 32 | (u32)b1);
    };
    if (what == 'Q' && co == 0) { if constexpr (!S::QREG) rec('Q', at, false, 0); }
    else if (what == 'K' && co == 0) rec('K', at, true, 1);
    else if (what == 'V') { if (getenv("DBG")) printf("V at %u co %u base %u\n", at, co, base);
        u32 off; { typename S::smem *n = nullptr; off = (u32)(size_t)&n->v; }
        u32 first = at; if ((first - base - align - off) % S::TILE == 0) rec('V', first, true, 2);
    }
}
static void build(unsigned seed, int grid)
{
    g.seed(seed); (void)grid;
    P = {}; const bool longs = SCALE > 1 && R(3) == 0;
    P.B = 1 + R(2), P.H = 1 + R(2); P.blocks = longs ? 36 + R(4) * (A.cluster > 1 ? 8 : 1) : 1 + R(8); if (S::C == 1 && !longs && R(3) == 0) P.blocks = 1;
    if (longs) P.B = P.H = 1;
    P.Sq = P.blocks * 64 - (R(2) ? R(63) : 0); P.parts = S::ORDERED ? 1 + R(2) : 1;
    for (int b = 0; b < P.B; b++) P.lengths.push_back(R(2) ? P.Sq : 1 + R(P.Sq));
    const int total = P.B * P.Sq;
    P.live = S::JOINED ? (R(2) ? total : 1 + R(total)) : total;
    const int qblocks = S::JOINED ? (total + 63) / 64 : P.blocks, kblocks = qblocks;
    const int lists = S::JOINED ? 1 : R(2) ? 1 : P.B, E = S::ENTRY;
    int nwords = 0;
    std::vector<std::array<int, 4>> rest_all;
    P.rest.clear();
    for (int part = 0; part < P.parts; part++)
        for (int l = 0; l < lists; l++) {
            std::vector<std::pair<int, std::vector<std::array<int, 4>>>> rows;
            for (int q = 0; q < qblocks; q += S::G) {
                std::vector<std::array<int, 4>> es; const int dense = R(4), limit = S::JOINED ? 32 : 99;
                std::vector<int> order; for (int k = 0; k < kblocks; k++) order.push_back(k);
                if (R(2)) std::shuffle(order.begin(), order.end(), g);
                for (int k : order) {
                    if (dense == 0 ? R(4) : dense == 1 ? R(2) : dense == 2 ? 0 : R(8) == 0) continue;
                    std::array<int, 4> e = {k, -2, -2, -2}; bool any = false;
                    for (int i = 0; i < S::G; i++) if (q + i < qblocks && (R(3) || S::G == 1)) { e[1 + i] = R(2) ? -1 : nwords++; any = true; }
                    if (any && (int)es.size() < limit) es.push_back(e);
                }
                if (R(8) == 0) es.clear();
                rows.push_back({q, es});
            }
            std::stable_sort(rows.begin(), rows.end(), [](auto &x, auto &y) { return x.second.size() > y.second.size(); });
            for (auto &[q, es] : rows) {
                const int n = (int)es.size(), at = (int)P.rest.size() / E;
                for (int v : {l, part * P.blocks + q, n, at}) P.tile.push_back(v);
                for (int i = 0; i < 32; i++) for (int j = 0; j < E; j++) P.head.push_back(i < n ? es[i][j] : 0x1234567);
                for (int i = 32; i < n; i++) for (int j = 0; j < E; j++) P.rest.push_back(es[i][j]);
            }
        }
    P.rest.resize(P.rest.size() + 64 * E, 0);
    P.words.resize((size_t)nwords * 64 + 64);
    for (int i = 0; i < nwords; i++) for (int r = 0; r < 64; r++) P.words[(size_t)i * 64 + r] = (unsigned long long)(i % 0x7fff + 1) * 0x0001000100010001ull;
    if (S::ORDERED) for (int part = 0; part < P.parts; part++) for (auto *of : {&P.qt, &P.kt}) {
        std::vector<int> t; for (int i = 0; i < P.blocks * 64; i++) t.push_back(i < P.Sq ? i : -1);
        std::shuffle(t.begin(), t.end(), g); of->insert(of->end(), t.begin(), t.end());
    }
    P.table.resize((size_t)P.H * (2 * P.Sq - 1)); for (size_t i = 0; i < P.table.size(); i++) P.table[i] = (float)i;
    P.bias.resize(3 * P.H * A.head_size + 64);
    /* memory */
    static unsigned char *mem; const size_t MEM = 48 << 20;
    if (!mem) mem = (unsigned char *)aligned_alloc(4096, MEM), sim::garena = mem, sim::gbytes = MEM;
    size_t at = 0; auto take = [&](size_t n) { unsigned char *p = mem + at; at += (n + 255) / 256 * 256; if (at > MEM) abort(); memset(p, 0, n); return p; };
    a = {}; a.batch = P.B, a.seq_len = P.Sq, a.heads = P.H, a.head_size = A.head_size, a.tokens = total; a.lengths = S::JOINED ? nullptr : P.lengths.data();
    a.live = S::JOINED ? &P.live : nullptr; a.early = 1; a.backwards = R(2);
    const size_t chunks = (size_t)total * 3 * P.H * (A.head_size / 8);
    unsigned char *in = take(chunks * 16); for (size_t i = 0; i < chunks; i++) put_tag(in + i * 16, i, S::JOINED && i / (3 * P.H * (A.head_size / 8)) % 7 == 3 && place_of((long)i).which == 2);
    a.tensor[0] = in; a.tensor[1] = take((size_t)total * P.H * A.head_size * 2 + 64); a.e4m3.out = take((size_t)total * P.H * A.head_size);
    a.sync = (unsigned *)take(4 * (FP_SYNC_TILES + P.B * P.H + 4)); a.workspace = (float *)take(4ul * P.B * P.H * P.Sq + 64);
    a.weight[0] = P.bias.data(); a.weight[1] = P.table.data();
    a.mask.lists = lists, a.mask.blocks = P.blocks;
    a.tiles.count = (int)P.tile.size() / 4, a.tiles.parts = P.parts, a.tiles.tile = P.tile.data(), a.tiles.head = P.head.data(), a.tiles.rest = P.rest.data(), a.tiles.words = P.words.data();
    if (S::ORDERED) a.tiles.query_token = P.qt.data(), a.tiles.key_token = P.kt.data();
    io = {}; io.in = &a.tensor[0], io.bias = &a.weight[0], io.score_bias = &a.weight[1], io.out = &a.tensor[1];
    sim::map m; if (S::SPLIT) m = {in, 3L * P.H * A.head_size * 2, total, 3 * P.H * A.head_size, 2, 64, 64, 128}; else m = {in, A.head_size * 2, 3 * P.B * P.H * P.Sq, A.head_size, 2, 64, 64, 128};
    memset(&maps, 0, sizeof maps); memcpy(&maps.in, &m, sizeof m);
}
static std::map<std::tuple<int, int, int>, std::vector<std::array<int, 4>>> lists_of; /* part, list, first block */
static void check_logs(int launches, int grid)
{
    lists_of.clear(); const int E = S::ENTRY;
    for (size_t i = 0; i < P.tile.size() / 4; i++) {
        auto *t = &P.tile[i * 4]; const int part = S::ORDERED && t[1] >= P.blocks; std::vector<std::array<int, 4>> es;
        for (int k = 0; k < t[2]; k++) { std::array<int, 4> e = {}; const int *f = k < 32 ? &P.head[(i * 32 + k) * E] : &P.rest[(t[3] + k - 32) * E]; for (int j = 0; j < E; j++) e[j] = f[j]; es.push_back(e); }
        lists_of[{part, t[0], t[1] - part * P.blocks}] = es;
    }
    const int wpb = (fp_hopper_attention_threads(A) + 31) / 32; size_t w = 0; std::map<std::tuple<int, int, int, int, int, int>, int> seen; long checked = 0;
    for (int l = 0; l < launches; l++) for (int b = 0; b < grid; b++) for (int x = 0; x < wpb; x++, w++) {
        if (x >= 4 * S::C) continue;
        const int group = S::C == 1 ? 0 : x / 4 % S::G, share = x / 4 / S::G, first = A.cluster > 1 ? b % A.cluster : share, stride = S::SHARES * A.cluster;
        auto &lg = sim::logs[w];
        /* split into tiles */
        struct tl { int b = -1, h = -1, q[2] = {-1, -1}; bool known = false; std::vector<std::array<int, 4>> K, V; std::vector<long> M, S; };
        std::vector<tl> ts; 
        auto same = [&](tl &t, int b, int h, int q0, int q1) { return t.b == b && t.h == h && t.q[0] == q0 && t.q[1] == q1; };
        bool sopen = false;
        for (auto &e : lg) {
            const int eb = (int)(e.a >> 32) - 1, eh = (int)(u32)e.a - 1, b0 = (int)(e.b >> 32), b1 = (int)(u32)e.b;
            if (e.what == 'L') {
                if (!S::QREG) continue;
                unsigned char c[16]; memcpy(c, &e.b, 8); memcpy(c + 8, &e.b, 8); long t = -1; { const u16 *p = (u16 *)c; if (p[2] == 0x1234) t = p[0] | (long)p[1] << 13; else if (e.b == 0) t = -1; }
                const u32 off = (u32)(e.a & 0xfffff) % 1024; if (off % 1024 != (u32)(x % 4 * 16 * 128 % 1024)) {} 
                u32 rel = (u32)(e.a & 0xfffff); const unsigned char *base = sim::arena; (void)base;
                typename S::smem *n = nullptr; (void)n;
                if (rel % S::TILE != (u32)(x % 4 * 16 * 128)) continue; /* column 0, panel 0 (smem begins aligned) */
                tl k; if (t >= 0) { where p = place_of(t); if (p.which != 0) sim::fail("q is not q"); if (p.chunk) continue; k.known = true; k.b = S::JOINED ? 0 : p.b, k.h = p.h; const int token = S::JOINED ? p.b * P.Sq + p.token : p.token;
                    for (int part = 0; part < 2; part++) { k.q[part] = -2; if (!S::ORDERED) { if (!part) k.q[0] = token % 64 == x % 4 * 16 ? token / 64 : -2; } else if (part < P.parts) for (int bl = 0; bl < P.blocks; bl++) if (P.qt[(part * P.blocks + bl) * 64 + x % 4 * 16] == token) k.q[part] = bl; } }
                ts.push_back(k); continue;
            }
            if (e.what == 'Q') { if (ts.empty() || !same(ts.back(), eb, eh, b0, b1)) { tl k; k.known = eb >= 0; k.b = eb, k.h = eh, k.q[0] = b0, k.q[1] = b1; ts.push_back(k); } continue; }
            if (ts.empty()) { ts.push_back({}); }
            if (e.what == 'K') ts.back().K.push_back({eb, eh, b0, b1}), sopen = true;
            if (e.what == 'V') ts.back().V.push_back({eb, eh, b0, b1});
            if (e.what == 'M') ts.back().M.push_back((long)e.a);
            if (e.what == 'S' && sopen) ts.back().S.push_back((long)e.a), sopen = false;
        }
        for (auto &t : ts) {
            if (t.K != t.V) sim::fail("warp %zu: keys and values differ (%zu and %zu)", w, t.K.size(), t.V.size());
            if (!t.known) continue;
            bool ok = false;
            for (int part = 0; part < P.parts && !ok; part++) {
                if (t.q[part] < 0) continue;
                const int list = a.mask.lists > 1 ? t.b : 0, tb = t.q[part] / S::G * S::G; if (t.q[part] - tb != group) continue;
                auto it = lists_of.find({part, list, tb}); if (it == lists_of.end()) continue;
                std::vector<int> blks; std::vector<long> M;
                for (int i = first; i < (int)it->second.size(); i += stride) { auto &e = it->second[i]; const int wd = e[1 + group]; if (wd == -2) continue; blks.push_back(e[0]); if (wd >= 0) M.push_back(wd % 0x7fff + 1), M.push_back(wd % 0x7fff + 1); }
                bool m = blks.size() == t.K.size() && M == t.M;
                for (size_t i = 0; i < blks.size() && m; i++) m = (t.K[i][2 + part] == blks[i] && t.K[i][0] == t.b && t.K[i][1] == t.h) || t.K[i][0] < 0;
                if (m && S::SCORE_BIAS) for (size_t i = 0; i < blks.size() && m; i++) {
                    const int row = group * 64 + x % 4 * 16 + 8, count = 2 * P.Sq - 1, ix = (blks[i] - tb - S::G) * 64 + P.Sq + S::G * 64 - 1 - row; const long want = ix >= 0 && ix < count ? (long)t.h * count + ix : 0;
                    m = i < t.S.size() && t.S[i] == want; }
                if (m) { ok = true; seen[{l, t.b, t.h, part, t.q[part], share + 10 * (A.cluster > 1 ? b % A.cluster : 0) + 100 * (x % 4)}]++; checked++; }
            }
            if (!ok) sim::fail("launch %d block %d warp %d: tile b %d h %d q %d/%d has %zu keys, no such list", l, b, x, t.b, t.h, t.q[0], t.q[1], t.K.size());
        }
    }
    for (auto &[k, n] : seen) if (n != 1 && P.parts == 1) sim::fail("a tile is taken %d times", n);
    for (int i = 0; i < FP_SYNC_TILES + P.B * P.H; i++) if (a.sync[i]) sim::fail("counter %d is left at %u", i, a.sync[i]);
    total_checked += checked;
}
int main(int argc, char **argv)
{
    const int from = argc > 1 ? atoi(argv[1]) : 1, to = argc > 2 ? atoi(argv[2]) : 10; long steps = 0;
    sim::on_wgmma = hook;
    auto name = [](u32 off) -> std::string {
        typename S::smem *s = nullptr; struct { const char *n; size_t at, each; } f[] = {{"q", (size_t)&s->q, S::TILE}, {"k", (size_t)&s->k, S::TILE}, {"v", (size_t)&s->v, S::TILE}, {"words", (size_t)&s->words, 512}, {"join", (size_t)&s->join, 1}, {"bias", (size_t)&s->bias, 1}, {"token", (size_t)&s->token, 1}, {"item", (size_t)&s->item, 32}, {"marks", (size_t)&s->marks, 4}, {"later", (size_t)&s->later, 4}, {"drawn", (size_t)&s->drawn, 4}, {"full_k", (size_t)&s->full_k, 8}, {"full_v", (size_t)&s->full_v, 8}, {"empty_k", (size_t)&s->empty_k, 8}, {"empty_v", (size_t)&s->empty_v, 8}, {"full_q", (size_t)&s->full_q, 8}, {"empty_q", (size_t)&s->empty_q, 8}, {"end", sizeof *s, 1}};
        for (int i = 0; i < 17; i++) if (off >= f[i].at && off < f[i + 1].at) return std::string(f[i].n) + "[" + std::to_string((off - f[i].at) / f[i].each) + "]";
        return "?"; };
    for (int s = from; s <= to; s++) {
        build(s, 0); current_seed = s;
        const int rows = S::JOINED ? (P.live + 63) / 64 : a.tiles.count, each = a.mask.lists == 1 && !S::JOINED ? P.B * P.H : P.H, tiles = rows * each;
        int grid = S::DRAWS ? min(tiles + (R(4) == 0), 1 + R(fp_hopper_attention_threads(A) > 300 ? 2 : 3)) : tiles * A.cluster;
        if (grid < 1) grid = 1;
        if (!S::DRAWS && grid > 24) { continue; }
        const int launches = (S::DRAWS && R(3) == 0) ? 2 : 1;
        std::vector<sim::launch> L(launches, {grid, fp_hopper_attention_threads(A), A.cluster, [](int ar) { fp::hopper_attention::run<fp16, OPS, A>(a, io, sim::arena + ((size_t)ar << 20), &maps); }});
        sim::run(L, (unsigned)s * 7919, name);
        check_logs(launches, grid);
        steps += sim::steps_run;
    }
    printf("ok: seeds %d..%d, %ld steps, %ld tiles of warps checked\n", from, to, steps, total_checked);
}
