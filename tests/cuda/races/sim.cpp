#include "sim.h"
#include <deque>
#include <memory>
#include <random>
#include <cstdarg>
#include <sys/mman.h>
#include <unordered_map>
#undef __host__
#undef __device__
#undef __shared__
dim threadIdx, blockIdx, blockDim, gridDim;
extern "C" void switch_ctx(void **save, void *to);
asm(R"(
.globl switch_ctx
switch_ctx:
 push %rbp
 push %rbx
 push %r12
 push %r13
 push %r14
 push %r15
 mov %rsp,(%rdi)
 mov %rsi,%rsp
 pop %r15
 pop %r14
 pop %r13
 pop %r12
 pop %rbx
 pop %rbp
 ret
)");
namespace sim {
unsigned char *arena, *garena; size_t gbytes;
bool verbose; long steps_run;
std::vector<std::vector<logged>> logs;
std::function<void(int, u32, u32)> on_wgmma;
using VC = std::vector<u32>;
static int N, T, NW; /* ids, threads, warps */
enum { POOL = 1024 };
static void join(VC &a, const VC &b) { u32 *x = a.data(); const u32 *y = b.data(); for (int i = 0; i < N; i++) x[i] = x[i] > y[i] ? x[i] : y[i]; }
using Snap = std::shared_ptr<const VC>;
using List = std::vector<int>;
struct CpArrive { u32 seq, mb; };
struct Thread {
    void *sp; int launch, block, arena, tid, warp; bool done = false, waited = false, blocked = false;
    VC G, A, F; Snap snapG, snapA;
    u32 cseq = 0; std::vector<u32> outstanding; std::vector<u32> groups; std::vector<CpArrive> arrives; List waiters; 
    u32 wcommit = 0;
    std::vector<std::vector<std::pair<u32,u32>>> bulk; /* groups of stores: M id, epoch (pending ones) */
    std::vector<std::pair<u32,u32>> bulk_open; 
    u32 cgen[1] = {0}; const char *at = "";u32 at_x = 0, at_y = 0;
};
static std::vector<Thread> th; static int cur = -1; static void *main_sp;
static std::vector<int> runnable; static int alive;
static std::mt19937 rng;
static u32 rnd(u32 n) { return rng() % n; }
static std::function<std::string(u32)> namer;
static std::vector<launch> L;
static std::vector<int> launch_left; static std::vector<VC> launch_end; static std::vector<List> launch_wait;
static std::vector<int> block_first_arena;
static std::vector<int> block_live; static std::vector<int> &live_blocks() { return block_live; }
static Thread &me() { return th[cur]; }
void fail(const char *fmt, ...)
{
    va_list v; va_start(v, fmt); printf("FAIL "); vprintf(fmt, v); printf("\n"); 
    if (cur >= 0) printf("  in launch %d block %d thread %d\n", me().launch, me().block, me().tid);
    fflush(stdout); _Exit(1);
}
static void to_main() { switch_ctx(&me().sp, main_sp); }
static u32 yield_p = 3;
static void maybe_yield() { if (rnd(yield_p) == 0) { runnable.push_back(cur); to_main(); } }
void yield() { runnable.push_back(cur); to_main(); }
static void wake(List &l) { for (int t : l) { th[t].blocked = false; runnable.push_back(t); } l.clear(); }
template <class P> static void wait_until(List &l, const char *what, u32 x, u32 y, const P &p)
{
    while (!p()) { me().blocked = true; me().at = what, me().at_x = x, me().at_y = y; l.push_back(cur); to_main(); }
    me().at = "";
}
/* ---- shadow ---- */
struct Cell { u32 wid = ~0u, wep = 0; bool atomic = false; std::vector<std::pair<u32,u32>> readers; };
static std::vector<std::unique_ptr<Cell[]>> pages; static std::vector<std::unique_ptr<Cell[]>> gpages;
enum { PAGE = 1024 };
static Cell *cell_of(const void *p)
{
    const unsigned char *c = (const unsigned char *)p;
    std::vector<std::unique_ptr<Cell[]>> *v; size_t off;
    if (c >= arena && c < arena + (64 << 20)) v = &pages, off = c - arena;
    else if (c >= garena && c < garena + gbytes) v = &gpages, off = c - garena;
    else return nullptr;
    off /= 2;
    if ((*v)[off / PAGE] == nullptr) (*v)[off / PAGE].reset(new Cell[PAGE]);
    return &(*v)[off / PAGE][off % PAGE];
}
static std::string who(u32 id)
{
    char b[99];
    if (id == ~0u) return "none";
    if ((int)id < T) snprintf(b, 99, "generic of block %d thread %d (launch %d)", th[id].block, th[id].tid, th[id].launch);
    else if ((int)id < 2 * T) snprintf(b, 99, "cp.async of block %d thread %d", th[id - T].block, th[id - T].tid);
    else if ((int)id < 2 * T + NW) snprintf(b, 99, "wgmma of warp %d", (int)id - 2 * T);
    else snprintf(b, 99, "TMA/bulk %d", (int)id - 2 * T - NW);
    return b;
}
static std::string where(const void *p)
{
    const unsigned char *c = (const unsigned char *)p; char b[99];
    if (c >= arena && c < arena + (64 << 20)) { u32 a = (u32)(c - arena); snprintf(b, 99, "block %u +%u ", a >> 20, a & 0xfffff); return b + namer(a & 0xfffff); }
    snprintf(b, 99, "global +%zu", (size_t)(c - garena)); return b;
}
static void race(const char *what, const void *p, u32 id, u32 before)
{
    fail("race: %s %s by %s, not ordered after %s", what, where(p).c_str(), who(id).c_str(), who(before).c_str());
}
static void access(const void *p, int n, bool write, bool atomic, u32 id, u32 ep, const VC &vc)
{
    const unsigned char *c = (const unsigned char *)((uintptr_t)p & ~(uintptr_t)1), *e = (const unsigned char *)p + n;
    for (; c < e; c += 2) {
        Cell *x = cell_of(c);
        if (!x) return;
        if (x->wid != ~0u && x->wid != id && !(atomic && x->atomic) && vc[x->wid] < x->wep) race(write ? "write of" : "read of", c, id, x->wid);
        if (x->wid == id && (int)id >= T && vc[id] < x->wep && x->wep != ep) race(write ? "write of" : "read of", c, id, x->wid);
        if (write) {
            for (auto &r : x->readers) if (r.first != id && vc[r.first] < r.second) race("write of", c, id, r.first);
            x->readers.clear(); x->wid = id, x->wep = ep, x->atomic = atomic;
        } else {
            auto &r = x->readers; size_t k = 0;
            for (size_t i = 0; i < r.size(); i++) if (r[i].first != id && vc[r[i].first] < r[i].second) r[k++] = r[i];
            r.resize(k); r.push_back({id, ep});
        }
    }
}
static void check_waited(const void *p)
{
    const unsigned char *c = (const unsigned char *)p;
    if (c >= garena && c < garena + gbytes && !me().waited) fail("touches memory before await_dependencies: +%zu", (size_t)(c - garena));
}
static bool ours(const void *p) { auto c = (const unsigned char *)p; return (c >= arena && c < arena + (64 << 20)) || (c >= garena && c < garena + gbytes); }
static long dbg = getenv("DBGADDR") ? atol(getenv("DBGADDR")) : -1;
#define DBG(w) if (dbg >= 0 && (unsigned char *)p <= arena + dbg && (unsigned char *)p + n > arena + dbg) printf("%s %ld n %d thread %d from %p\n", w, (long)((unsigned char *)p - arena), n, cur, __builtin_return_address(0));
void rd(const void *p, int n) { DBG("rd") if (cur < 0 || !ours(p)) return; if ((unsigned char *)p < arena + (64 << 20) && (unsigned char *)p >= arena && live_blocks()[((unsigned char *)p - arena) >> 20] == 0) fail("reads shared memory of a block that has ended"); check_waited(p); access(p, n, false, false, cur, me().G[cur], me().G); }
void wr(const void *p, int n) { DBG("wr") if (cur < 0 || !ours(p)) return; check_waited(p); access(p, n, true, false, cur, me().G[cur], me().G); }
void *ptr(u32 at) { if (at >= (64u << 20)) fail("address %u", at); return arena + at; }
u32 block_base() { return (u32)me().arena << 20; }
static void tick() { me().G[cur]++; me().snapG = nullptr; }
static Snap snapG() { if (!me().snapG) me().snapG = std::make_shared<VC>(me().G); return me().snapG; }
static Snap snapA() { if (!me().snapA) me().snapA = std::make_shared<VC>(me().A); return me().snapA; }
static void acq(const VC &g, const VC &a) { join(me().G, g); join(me().G, a); join(me().A, a); me().snapG = me().snapA = nullptr; }
/* ---- mbarriers ---- */
struct MB { bool init = false; int count = 0, pending = 0; long tx = 0; u32 phase = 0; VC cG, cA, dG, dA; List waiters; u32 at; };
static std::unordered_map<u32, MB> mbs;
static MB &mb_of(u32 at) { if (live_blocks()[at >> 20] == 0) fail("mbarrier of a block that has ended"); MB &m = mbs[at]; if (!m.init) fail("mbarrier %s is not initialised", where(ptr(at)).c_str()); return m; }
void mb_init(u32 at, u32 n)
{
    MB &m = mbs[at]; if (m.init) fail("mbarrier twice initialised"); 
    m.init = true; m.count = m.pending = (int)n; m.at = at; m.cG.assign(N, 0), m.cA.assign(N, 0), m.dG.assign(N, 0), m.dA.assign(N, 0);
}
static void settle(MB &m)
{
    if (m.pending < 0) fail("mbarrier %s: too many arrivals", where(ptr(m.at)).c_str());
    if (m.pending || m.tx) return;
    m.phase++; m.pending = m.count; 
    std::swap(m.cG, m.dG), std::swap(m.cA, m.dA);
    /* phases are cumulative by causality of whoever arrives; keep precise: clear */
    std::fill(m.cG.begin(), m.cG.end(), 0), std::fill(m.cA.begin(), m.cA.end(), 0);
    wake(m.waiters);
}
static void arrive(u32 at, long tx, bool release)
{
    maybe_yield();
    MB &m = mb_of(at);
    if (release) join(m.cG, me().G), tick(); 
    join(m.cA, me().A);
    m.tx += tx; m.pending--; settle(m);
}
void mb_arrive(u32 at) { arrive(at, 0, true); }
void mb_arrive_cluster(u32 at) { arrive(at, 0, true); }
void mb_expect(u32 at, u32 bytes) { arrive(at, bytes, true); }
void mb_wait(u32 at, u32 parity)
{
    maybe_yield();
    MB &m = mb_of(at);
    wait_until(m.waiters, "mbarrier", at, parity, [&] { return (m.phase & 1) != parity; });
    acq(m.dG, m.dA);
    maybe_yield();
}
void proxy_fence() { join(me().A, me().G); me().snapA = nullptr; tick(); }
/* ---- async operations ---- */
struct Op { int kind; int owner; u32 id, ep; Snap vc; u32 to; const void *from; int bytes, valid; u32 mb; map m; int col, row; bool dealt; float x, y; long hold = -1; };
static std::vector<Op> ops; static u32 hold_one_in = 20, hold_for = 30000;
static u32 pool_ep[POOL]; static u32 pool_next;
static u32 pool_id(u32 &ep) { u32 j = pool_next++ % POOL; ep = ++pool_ep[j]; return 2 * T + NW + j; }
void cp_async(u32 to, const void *from, int bytes, int valid)
{
    check_waited(from);
    Thread &t = me(); u32 s = ++t.cseq; t.outstanding.push_back(s);
    ops.push_back({'c', cur, (u32)(T + cur), s, snapG(), to, from, bytes, valid, 0, {}, 0, 0, false, 0, 0});
    if (to % bytes) fail("cp.async alignment");
}
static u32 landed_to(const Thread &t) { u32 m = t.cseq; for (u32 s : t.outstanding) m = std::min(m, s - 1); return m; }
void cp_commit() { me().groups.push_back(me().cseq); }
void cp_wait(int n)
{
    Thread &t = me(); const int k = (int)t.groups.size() - n; if (k <= 0) return;
    const u32 upto = t.groups[k - 1];
    wait_until(t.waiters, "cp.async.wait_group", n, 0, [&] { return landed_to(t) >= upto; });
    t.G[T + cur] = std::max(t.G[T + cur], upto); t.snapG = nullptr; tick();
    t.groups.erase(t.groups.begin(), t.groups.begin() + k);
}
static void run_arrives(int w)
{
    Thread &t = th[w]; const u32 l = landed_to(t);
    for (size_t i = 0; i < t.arrives.size();)
        if (t.arrives[i].seq <= l) {
            MB &m = mb_of(t.arrives[i].mb); m.cG[T + w] = std::max(m.cG[T + w], t.arrives[i].seq);
            m.pending--; t.arrives.erase(t.arrives.begin() + (long)i); settle(m);
        } else i++;
}
bool arrive_copies_releases_fences = true;
void mb_arrive_copies(u32 at)
{
    maybe_yield();
    MB &m = mb_of(at);
    if (arrive_copies_releases_fences) join(m.cA, me().A); /* what it has fenced before */
    me().arrives.push_back({me().cseq, at}); run_arrives(cur);
}
static map map_of(const void *p) { map m; memcpy(&m, p, sizeof m); return m; }
static u32 peer(u32 at, u32 rank)
{
    const int c = L[me().launch].cluster, first = me().arena - me().block % c;
    return (u32)(first + (int)rank) << 20 | (at & 0xfffff);
}
void mapa_(u32 &to, u32 at, u32 rank) { to = peer(at, rank); }
static void complete(u32 mb, u32 id, u32 ep, long bytes, const VC &vc, bool async)
{
    MB &m = mb_of(mb); join(m.cG, vc); if (async) join(m.cA, vc); m.cG[id] = std::max(m.cG[id], ep), m.cA[id] = std::max(m.cA[id], ep); m.tx -= bytes; settle(m);
}
void tma(u32 to, const void *mp, int col, int row, u32 mb, u32 mask, bool dealt)
{
    maybe_yield();
    map m = map_of(mp);
    check_waited(m.base);
    mb_of(mb);
    if (to % (m.line == 128 ? 128 : 64)) fail("TMA alignment");
    for (u32 r = 0; r < 16; r++) {
        if (mask && !(mask >> r & 1)) continue;
        u32 ep, id = pool_id(ep);
        ops.push_back({'t', cur, id, ep, snapA(), mask ? peer(to, r) : to, nullptr, 0, 0, mask ? peer(mb, r) : mb, m, col, row, dealt, 0, 0});
        if (!mask) break;
    }
}
void bulk_g2s(u32 to, const void *from, int bytes, u32 mb) { maybe_yield(); check_waited(from); u32 ep, id = pool_id(ep); ops.push_back({'b', cur, id, ep, snapA(), to, from, bytes, 0, mb, {}, 0, 0, false, 0, 0}); }
void bulk_s2s(u32 to, u32 from, int bytes, u32 mb) { maybe_yield(); u32 ep, id = pool_id(ep); ops.push_back({'b', cur, id, ep, snapA(), to, ptr(from), bytes, 0, mb, {}, 0, 0, false, 0, 0}); }
void st_async(u32 to, float x, float y, u32 mb) { maybe_yield(); u32 ep, id = pool_id(ep); /* generic by its snapshot */ ops.push_back({'x', cur, id, ep, snapG(), to, nullptr, 8, 0, mb, {}, 0, 0, false, x, y}); }
void tma_store(const void *mp, int col, int row, u32 from)
{
    maybe_yield();
    map m = map_of(mp); check_waited(m.base);
    u32 ep, id = pool_id(ep); me().bulk_open.push_back({id, ep});
    ops.push_back({'s', cur, id, ep, snapA(), from, nullptr, 0, 0, 0, m, col, row, false, 0, 0});
}
static std::unordered_map<u64, bool> store_done;
void bulk_commit() { me().bulk.push_back(me().bulk_open); me().bulk_open.clear(); }
void bulk_wait_read(int n)
{
    Thread &t = me();
    while ((int)t.bulk.size() > n) {
        for (auto [id, ep] : t.bulk[0]) {
            wait_until(t.waiters, "bulk.wait_group.read", n, 0, [&] { return store_done.count((u64)id << 32 | ep) > 0; });
            t.G[id] = std::max(t.G[id], ep), t.A[id] = std::max(t.A[id], ep); t.snapA = t.snapG = nullptr;
        }
        t.bulk.erase(t.bulk.begin());
    }
    tick();
}
static void run_op(size_t i)
{
    Op o = ops[i]; ops[i] = ops.back(); ops.pop_back();
    if (o.kind != 's' && block_live[o.to >> 20] == 0) fail("a copy lands in a block that has ended");
    if (o.kind == 'b' && (unsigned char *)o.from >= arena && (unsigned char *)o.from < arena + (64 << 20) && block_live[((unsigned char *)o.from - arena) >> 20] == 0) fail("a copy reads a block that has ended");
    if (o.kind == 's' && block_live[o.to >> 20] == 0) fail("a store reads a block that has ended");
    const int keep = cur; cur = -1; /* accesses below are explicit */
    if (o.kind == 'c') {
        if (o.valid) access(o.from, o.bytes, false, false, o.id, o.ep, *o.vc);
        access(ptr(o.to), o.bytes, true, false, o.id, o.ep, *o.vc);
        memset(ptr(o.to), 0, o.bytes); memcpy(ptr(o.to), o.from, o.valid);
        Thread &t = th[o.owner];
        t.outstanding.erase(std::find(t.outstanding.begin(), t.outstanding.end(), o.ep));
        run_arrives(o.owner); wake(t.waiters);
    } else if (o.kind == 't') {
        long bytes = 0; const int chunks = o.m.line / 16;
        for (int r = 0; r < o.m.box_rows; r++) {
            const int dr = o.dealt ? r % 16 / 2 * 8 + r / 16 * 2 + r % 2 : r;
            for (int c = 0; c < chunks; c++) {
                const int sw = o.m.line == 128 ? c ^ dr % 8 : c ^ dr / 2 % 4;
                u32 at = o.to + dr * o.m.line + sw * 16;
                const long row = o.row + r, cb = (long)o.col * o.m.elem + c * 16;
                access(ptr(at), 16, true, false, o.id, o.ep, *o.vc);
                if (row < o.m.rows && row >= 0 && cb < (long)o.m.cols * o.m.elem) memcpy(ptr(at), o.m.base + row * o.m.pitch + cb, 16);
                else memset(ptr(at), 0, 16);
            }
            bytes += o.m.line;
        }
        complete(o.mb, o.id, o.ep, bytes, *o.vc, true);
    } else if (o.kind == 'b') {
        access(o.from, o.bytes, false, false, o.id, o.ep, *o.vc);
        access(ptr(o.to), o.bytes, true, false, o.id, o.ep, *o.vc);
        memcpy(ptr(o.to), o.from, o.bytes); complete(o.mb, o.id, o.ep, o.bytes, *o.vc, true);
    } else if (o.kind == 'x') {
        access(ptr(o.to), 8, true, false, o.id, o.ep, *o.vc); float v[2] = {o.x, o.y}; memcpy(ptr(o.to), v, 8);
        complete(o.mb, o.id, o.ep, 8, *o.vc, false);
    } else if (o.kind == 's') {
        for (int r = 0; r < o.m.box_rows; r++) access(ptr(o.to + r * o.m.line), o.m.line, false, false, o.id, o.ep, *o.vc);
        store_done[(u64)o.id << 32 | o.ep] = true; wake(th[o.owner].waiters);
    }
    cur = keep;
}
/* ---- barriers of a block ---- */
struct Bar { int arrived = 0; u32 gen = 0; VC g, a; u32 x = 0; VC dg[2], da[2]; u32 dx[2]; List waiters; int n = 0; };
static std::vector<Bar> bars, warps_sync; struct Coll { int arrived = 0; u32 gen = 0; u64 v[2][32]; int kind = 0; List waiters; };
static std::vector<Coll> colls;
static u32 meet(Bar &b, int n, u32 x, const char *what, u32 id)
{
    if (b.g.empty()) { b.g.assign(N, 0), b.a.assign(N, 0); }
    if (b.arrived && b.n != n) fail("%s %u: %d and %d threads", what, id, b.n, n);
    b.n = n;
    join(b.g, me().G), join(b.a, me().A); tick(); b.x |= x;
    const u32 g = b.gen;
    if (++b.arrived == n) {
        b.dg[g & 1] = b.g, b.da[g & 1] = b.a, b.dx[g & 1] = b.x; std::fill(b.g.begin(), b.g.end(), 0), std::fill(b.a.begin(), b.a.end(), 0);
        b.x = 0, b.arrived = 0, b.gen++; wake(b.waiters);
    } else wait_until(b.waiters, what, id, n, [&] { return b.gen != g; });
    acq(b.dg[g & 1], b.da[g & 1]);
    return b.dx[g & 1];
}
void bar(int id, int n) { maybe_yield(); meet(bars[me().arena * 16 + id], n, 0, "bar", id); maybe_yield(); }
u32 bar_or(int id, int n, u32 x) { maybe_yield(); return meet(bars[me().arena * 16 + id], n, x, "bar", id); }
void syncthreads() { bar(0, L[me().launch].threads); }
void syncwarp() { meet(warps_sync[me().warp], 32, 0, "syncwarp", 0); maybe_yield(); }
u64 collective(u64 x, int kind, u64 (&all)[32])
{
    Coll &c = colls[me().warp]; const u32 g = c.gen;
    if (c.arrived && c.kind != kind) fail("lanes of a warp at different instructions %d %d", c.kind, kind);
    c.kind = kind; c.v[g & 1][me().tid % 32] = x;
    if (++c.arrived == 32) c.arrived = 0, c.gen++, wake(c.waiters);
    else wait_until(c.waiters, "collective", kind, 0, [&] { return c.gen != g; });
    memcpy(all, c.v[g & 1], sizeof all);
    return 0;
}
struct Cluster { int live = 0, arrived = 0; u32 gen = 0; VC g, a, dg, da; List waiters; };
static std::vector<Cluster> clusters; static std::vector<u32> cl_gen;
static Cluster &cluster() { return clusters[me().arena - me().block % L[me().launch].cluster]; }
static void cl_settle(Cluster &c)
{
    if (c.live == 0 || c.arrived < c.live) return;
    c.dg = c.g, c.da = c.a; std::fill(c.g.begin(), c.g.end(), 0), std::fill(c.a.begin(), c.a.end(), 0); c.arrived = 0; c.gen++; wake(c.waiters);
}
static void cl_arrive(bool release)
{
    maybe_yield();
    Cluster &c = cluster(); cl_gen[cur] = c.gen;
    if (release) { join(c.g, me().G), join(c.a, me().A); tick(); }
    c.arrived++; cl_settle(c);
}
void cl_arrive_release() { cl_arrive(true); }
void cl_arrive_relaxed() { cl_arrive(false); }
void cl_wait() { Cluster &c = cluster(); const u32 g = cl_gen[cur]; wait_until(c.waiters, "cluster", 0, 0, [&] { return c.gen != g; }); acq(c.dg, c.da); maybe_yield(); }
/* ---- memory ---- */
static std::unordered_map<const void *, VC> at_clock;
void threadfence() { me().F = me().G; tick(); }
static void atomic_access(void *p)
{
    maybe_yield(); check_waited(p);
    if (ours(p)) access(p, 4, true, true, cur, me().G[cur], me().G);
    VC &v = at_clock[p]; if (v.empty()) v.assign(N, 0); join(v, me().F);
}
u32 atomic_inc(u32 *p, u32 last) { atomic_access(p); u32 o = *p; *p = o >= last ? 0 : o + 1; return o; }
u32 atomic_add(u32 *p, u32 x) { atomic_access(p); u32 o = *p; *p += x; return o; }
u32 atomic_or(u32 *p, u32 x) { atomic_access(p); u32 o = *p; *p |= x; return o; }
u32 ld_acquire32(const u32 *p) { maybe_yield(); check_waited(p); auto i = at_clock.find(p); if (i != at_clock.end()) { join(me().G, i->second); me().snapG = nullptr; } return *p; }
u64 ld_relaxed64(const u64 *p) { maybe_yield(); check_waited(p); u64 x = *p; if (x == 0) yield(); return x; }
void st_relaxed(u64 *p, u64 x) { maybe_yield(); check_waited(p); if (x && *p) fail("a mailbox is written that is not empty"); *p = x; }
void grid_wait()
{
    Thread &t = me();
    if (t.launch > 0) {
        const int l = t.launch - 1;
        wait_until(launch_wait[l], "griddepcontrol", 0, 0, [&] { return launch_left[l] == 0; });
        acq(launch_end[l], launch_end[l]);
    }
    t.waited = true;
}
/* ---- wgmma ---- */
void wgmma_fence() { u64 a[32]; collective(0, 10, a); }
void wgmma_commit() { u64 a[32]; collective(0, 11, a); me().wcommit++; maybe_yield(); }
void wgmma_wait(int pending)
{
    u64 a[32]; collective(0, 12, a);
    const u32 id = 2 * T + me().warp, done = me().wcommit - pending;
    me().G[id] = std::max(me().G[id], done), me().A[id] = std::max(me().A[id], done); me().snapA = me().snapG = nullptr;
    maybe_yield();
}
void wgmma_read(u32 at, int bytes) { if (me().tid % 32 == 0) access(ptr(at), bytes, false, false, 2 * T + me().warp, me().wcommit + 1, me().A); }
void wgmma_log(int what, u64 x) { if (me().tid % 32 == 0 && on_wgmma) on_wgmma(what, (u32)(x >> 32), (u32)x); }
void log(int what, u64 a, u64 b) { if (me().tid % 32 == 0) logs[me().warp].push_back({what, a, b}); }
/* ---- run ---- */
static void entry()
{
    const int c = cur;
    threadIdx.x = th[c].tid, blockIdx.x = th[c].block, blockDim.x = L[th[c].launch].threads, gridDim.x = L[th[c].launch].blocks;
    L[th[c].launch].body(th[c].arena);
    Thread &t = th[c];
    if (!t.outstanding.empty()) { /* copies of a thread that returned: they land all the same */ }
    t.done = true; alive--;
    block_live[t.arena]--; Cluster &k = cluster(); k.live--; cl_settle(k);
    join(launch_end[t.launch], t.G); if (--launch_left[t.launch] == 0) wake(launch_wait[t.launch]);
    to_main(); abort();
}
void run(std::vector<launch> launches, unsigned seed, std::function<std::string(u32)> name)
{
    L = launches; namer = name; rng.seed(seed); T = NW = 0; int nb = 0;
    for (auto &l : L) T += l.blocks * l.threads, NW += l.blocks * ((l.threads + 31) / 32), nb += l.blocks;
    N = 2 * T + NW + POOL; memset(pool_ep, 0, sizeof pool_ep); pool_next = 0;
    if (!arena) { arena = (unsigned char *)mmap((void *)0x100000000000, 64 << 20, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0); }
    for (int b = 0; b < nb; b++) memset(arena + ((size_t)b << 20), 0xee, 256 << 10);
    pages.clear(); pages.resize((64 << 20) / 2 / PAGE); gpages.clear(); gpages.resize(gbytes / 2 / PAGE + 1);
    mbs.clear(); ops.clear(); at_clock.clear(); store_done.clear();
    th.assign(T, {}); logs.assign(NW, {}); bars.assign(nb * 16, {}); warps_sync.assign(NW, {}); colls.assign(NW, {}); clusters.assign(nb, {}); block_live.assign(nb, 0); cl_gen.assign(T, 0);
    launch_left.clear(); launch_end.clear(); launch_wait.assign(L.size(), {}); runnable.clear();
    static unsigned char *stacks; static size_t have; enum { STACK = 160 << 10 };
    if (have < (size_t)T * STACK) { have = (size_t)T * STACK; stacks = (unsigned char *)mmap(nullptr, have, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0); }
    int t = 0, w = 0, ar = 0;
    for (size_t l = 0; l < L.size(); l++) {
        launch_left.push_back(L[l].blocks * L[l].threads); launch_end.push_back(VC(N, 0));
        for (int b = 0; b < L[l].blocks; b++, ar++) {
            clusters[ar].g.assign(N, 0), clusters[ar].a.assign(N, 0), clusters[ar].dg.assign(N, 0), clusters[ar].da.assign(N, 0);
            clusters[ar - b % L[l].cluster].live += L[l].threads; block_live[ar] = L[l].threads;
            for (int i = 0; i < L[l].threads; i++, t++) {
                Thread &x = th[t]; x.launch = (int)l, x.block = b, x.arena = ar, x.tid = i, x.warp = w + i / 32;
                x.G.assign(N, 0), x.A.assign(N, 0), x.F.assign(N, 0); x.G[t] = 1;
                void **sp = (void **)(stacks + (size_t)(t + 1) * STACK - 64);
                *--sp = nullptr; *--sp = (void *)entry; for (int k = 0; k < 6; k++) *--sp = nullptr;
                x.sp = sp; runnable.push_back(t);
            }
            w += (L[l].threads + 31) / 32;
        }
    }
    alive = T; steps_run = 0;
    static const u32 pas[] = {2, 10, 50, 90}; u32 pa = pas[rnd(4)]; yield_p = 1 + rnd(3) * 4; hold_one_in = 3 + rnd(40); hold_for = rnd(3) ? 30000 : 2000;
    std::vector<long> begins(nb, 0); if (nb > 1 && rnd(2)) for (auto &b : begins) b = rnd(2) ? rnd(300000) : 0;
    long skipped = 0;
    std::vector<bool> slow(NW); int slow_left = 0; bool slow_ops = false; 
    while (alive || !ops.empty()) {
        steps_run++;
        if (slow_left-- <= 0) { 
            slow_left = 200 + rnd(20000); const u32 share = rnd(4); for (int i = 0; i < NW; i++) slow[i] = share && rnd(4) < share; slow_ops = rnd(3) == 0; pa = pas[rnd(4)]; }
        if (!ops.empty() && (runnable.empty() || rnd(100) < (slow_ops ? 1u : pa))) {
            size_t i = 0; bool got = false;
            for (int tries = 0; tries < 4 && !got; tries++) {
                i = rnd(ops.size()); if (rnd(4) == 0) i = ops.size() - 1;
                if (ops[i].hold < 0) ops[i].hold = steps_run + (rnd(hold_one_in) == 0 ? rnd(hold_for) : 0);
                got = ops[i].hold <= steps_run;
            }
            if (!got && runnable.empty()) { for (size_t k = 0; k < ops.size(); k++) if (ops[k].hold < ops[i].hold) i = k; got = true; }
            if (got) { run_op(i); continue; }
        }
        if (0) { size_t i = 0; run_op(i); continue; }
        if (runnable.empty()) {
            for (auto &x : th) if (!x.done && x.tid % 32 == 0) printf("  launch %d block %d warp %d: %s %s %u\n", x.launch, x.block, x.tid / 32, x.at, !strcmp(x.at, "mbarrier") ? where(ptr(x.at_x)).c_str() : "", x.at_y);
            cur = -1; fail("deadlock");
        }
        size_t k = rnd(runnable.size());
        for (int tries = 0; tries < 6 && slow[th[runnable[k]].warp]; tries++) k = rnd(runnable.size());
        if (begins[th[runnable[k]].arena] > steps_run) { if (++skipped < 50) continue; skipped = 0; steps_run += 2000; if (!ops.empty()) run_op(rnd(ops.size())); continue; } skipped = 0;
        cur = runnable[k]; runnable[k] = runnable.back(); runnable.pop_back();
        threadIdx.x = th[cur].tid, blockIdx.x = th[cur].block, blockDim.x = L[th[cur].launch].threads, gridDim.x = L[th[cur].launch].blocks;
        switch_ctx(&main_sp, th[cur].sp);
        cur = -1;
    }
    for (auto &[at, m] : mbs) if (m.tx) fail("bytes left");
}
} // namespace sim
#define HOOK(n) extern "C" void __tsan_read##n(void *p) { sim::rd(p, n); } extern "C" void __tsan_write##n(void *p) { sim::wr(p, n); } \
 extern "C" void __tsan_unaligned_read##n(void *p) { sim::rd(p, n); } extern "C" void __tsan_unaligned_write##n(void *p) { sim::wr(p, n); }
HOOK(1) HOOK(2) HOOK(4) HOOK(8) HOOK(16)
extern "C" void __tsan_read_range(void *p, long n) { sim::rd(p, (int)n); }
extern "C" void __tsan_write_range(void *p, long n) { sim::wr(p, (int)n); }
extern "C" void __tsan_func_entry(void *) {} extern "C" void __tsan_func_exit() {} extern "C" void __tsan_init() {}
extern "C" void __tsan_vptr_update(void *, void *) {} extern "C" void __tsan_vptr_read(void *) {}
