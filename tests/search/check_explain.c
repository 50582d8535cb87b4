/* What a plan's explanation says of its kernels and its neighbours. */
#include "search/search.h"

#include "tests/workload.h" /* before `st` is declared */

#include "tests/db/one_fixture.h"

static const struct build_target cpu = {.chain = &chain_bert, .kind = TARGET_CPU, .head_size = 64};
static const char schedule[] = "lowering=tiled row_block=256 col_block=even";
static struct workload workload;
static struct explanation e;

static void setup_all(void)
{
    setup();
    workload = workload_sized(1, 128);
    workload_ready(&workload, "causal", NULL, NULL);
}

static void teardown_all(void)
{
    workload_release(&workload);
    teardown();
}

static void explain(struct plan p)
{
    OK(explain_plan(db, study, &cpu, &workload, p, &e, &st));
}

static void add(struct db_trial t)
{
    OK(db_trial_add(db, study, &t, &st));
}

static void add_segment(int first, int last, double ms)
{
    const struct db_choice c = {{(int8_t)first, (int8_t)last}, "generated", schedule};
    add(segment_trial(&c, ms));
}

static struct plan plan_in(const char *segments)
{
    struct plan p;
    OK(plan_parse_segments(segments, false, &p, &st));
    return p;
}

/* A plan trial or, with a comparison, a final. */
static void add_plan(struct plan p, double ms, const char *comparison)
{
    struct segment s[OP_COUNT];
    struct db_choice c[OP_COUNT];
    int n = plan_segments(p, s);
    for (int i = 0; i < n; i++)
        c[i] = (struct db_choice){s[i], "generated", schedule};
    struct db_trial t = comparison[0] != '\0' ? final_trial((int)plan_value(p), ms, comparison)
                                              : plan_trial((int)plan_value(p), ms);
    double samples[ARRAY_LEN(some_samples)];
    for (size_t i = 0; i < ARRAY_LEN(samples); i++)
        samples[i] = ms * some_samples[i]; /* the same noise for all plans of a comparison */
    t.samples_ms = samples;
    t.choices = c;
    t.choice_count = n;
    add(t);
}

static const struct neighbour *find(struct plan p)
{
    for (int i = 0; i < e.neighbour_count; i++)
        if (plan_equal(e.neighbours[i].plan, p))
            return &e.neighbours[i];
    ck_abort_msg("no such neighbour");
}

/* ---- kernels --------------------------------------------------------------------------------- */

TEST(tensors_are_made_once_and_read_where_they_are)
{
    struct rng rng = {7};
    for (int n = 0; n < 200; n++) {
        uint16_t written = 1u << TENSOR_X;
        OK(explain_plan(NULL, 0, &cpu, &workload,
                        plan_of((uint16_t)rng_below(&rng, 1 << BOUNDARY_COUNT), n % 2 == 0), &e,
                        &st));
        for (int i = 0; i < e.count; i++) {
            const struct explained_kernel *k = &e.kernels[i];
            uint16_t own = 0;
            for (int op = k->choice.segment.first; op <= k->choice.segment.last; op++)
                own |= (uint16_t)(1u << TENSOR_OF(op));
            ck_assert_uint_eq(k->keeps + k->passes + k->writes, own); /* disjoint */
            ck_assert_uint_eq(k->reads & ~written, 0);
            written |= k->writes;
            ck_assert_double_nan(k->us.median);
        }
        ck_assert(e.source == TIME_UNKNOWN && isnan(e.least_us));
    }
}

TEST(bounds_come_from_the_devices_peaks_where_these_are_stored)
{
    const struct db_choice c = {{0, 0}, "generated", schedule};
    struct db_trial t = segment_trial(&c, 0.5);
    t.conditions =
        "{\"sm_mhz\": 1980, \"peak_flops_per_s\": 9.89e14, \"peak_bytes_per_s\": 4.8e12}";
    add_segment(7, 7, 1e-6); /* faster than these allow */
    add(t);
    explain(plan_from_value(VALUE_UNFUSED));
    ck_assert(e.device_rates);
    ck_assert_double_eq(e.rates.flops_per_s, 9.89e14);
    ck_assert_double_eq(e.rates.bytes_per_s, 4.8e12);
    ck_assert_double_eq_tol(e.kernels[0].least_us,
                            1e6 * segment_bytes((struct segment){0, 0}, &workload) / 4.8e12, 1e-9);
}

TEST(gemms_in_e4m3_have_twice_the_peak_and_half_the_bytes)
{
    static const char peaks[] = "{\"peak_flops_per_s\": 9.89e14, \"peak_bytes_per_s\": 4.8e12}";
    const struct db_choice c = {{0, 0}, "generated", schedule};
    SCOPED_BY(workload_release) struct workload w = workload_of_195(DTYPE_FP16);
    w.heads = 12;
    w.ffn = 3072;
    w.batch = 64;
    workload_ready(&w, "full", NULL, NULL);
    struct build_target all = build_target_of(TARGET_CUDA, "sm_90", false, &w);
    all.precision = GEMM_ALL;
    const struct plan p = plan_in("1-6,7-9,10-11,12-14");
    const double tokens = 64 * 65, columns = 768;
    struct db_trial t = segment_trial(&c, 0.5);
    t.conditions = peaks;
    add(t);
    OK(explain_plan(db, study, &all, &w, p, &e, &st));
    ck_assert_int_eq(e.count, 5);
    ck_assert_double_eq_tol(e.kernels[0].least_us,
                            1e6 * 2 * tokens * columns * 3 * columns / (2 * 9.89e14), 1e-9);
    ck_assert(!e.kernels[0].memory_bound);
    /* The context in e4m3, x; its own sum, and that in e4m3; the weight in e4m3, three rows. */
    ck_assert_double_eq(e.kernels[2].work.bytes,
                        tokens * columns * (1 + 2 + 2 + 1) + columns * columns + 3 * columns * 2);
    ck_assert_double_eq(e.kernels[2].work.flops, 2 * tokens * columns * columns);
    for (int i = 0; i < e.count; i++) {
        const struct explained_kernel *k = &e.kernels[i];
        double bytes = 0;
        for (int tensor = 0; tensor < TENSOR_COUNT; tensor++) {
            bytes += (k->reads >> tensor & 1) * explained_bytes(k, &w, tensor, false);
            bytes += (k->writes >> tensor & 1) * explained_bytes(k, &w, tensor, true);
        }
        for (int id = 0; id < WEIGHT_MAX; id++)
            bytes += (segment_weights(w.chain, k->choice.segment) >> id & 1) *
                     explained_weight_bytes(k, &w, id);
        ck_assert_double_eq_tol(bytes, k->work.bytes, 1e-3);
    }
}

/* ---- neighbours ------------------------------------------------------------------------------ */

TEST(neighbours_differ_by_one_cut)
{
    for (unsigned value = 32768; value <= 49151; value += 37) {
        struct plan p = plan_from_value(value);
        OK(explain_plan(NULL, 0, &cpu, &workload, p, &e, &st));
        int single = 0;
        for (int i = 0; i < e.neighbour_count; i++) {
            const struct neighbour *n = &e.neighbours[i];
            unsigned differ = n->plan.fused ^ p.fused;
            int bits = __builtin_popcount(differ);
            ck_assert(!plan_equal(n->plan, p));
            for (int k = 0; k < i; k++)
                ck_assert(!plan_equal(n->plan, e.neighbours[k].plan));
            ck_assert_int_eq(bits, n->change == CHANGE_MOVED ? 2 : n->change != CHANGE_ATTENTION);
            ck_assert(n->change != CHANGE_MOVED || (differ & differ << 1) != 0);
            single += bits == 1;
        }
        ck_assert_int_eq(single, BOUNDARY_COUNT);
    }
}

TEST(times_of_one_kind_are_compared)
{
    struct plan unfused = plan_from_value(VALUE_UNFUSED), norm = plan_in("8-9");
    add_plan(unfused, 10, "");
    add_plan(norm, 9, "");
    add_plan(plan_in("0-1"), 11, "");
    struct db_trial failed = failed_trial((int)plan_value(plan_in("3-4")), "wrong");
    add(failed);
    add_plan(unfused, 20, "a comparison");
    add_plan(norm, 19, "a comparison");
    add_segment(12, 12, 0.3);
    add_segment(13, 13, 0.2);
    add_segment(12, 13, 0.45);
    explain(unfused);
    ck_assert(e.source == TIME_COMPARED && e.ms.median == 20);
    const struct neighbour *n = find(norm);
    ck_assert_int_eq(n->source, TIME_COMPARED);
    ck_assert_double_eq_tol(n->ratio.median, 0.95, 1e-9); /* from pairs, whose noise is the same */
    ck_assert_double_eq_tol(n->ratio.low, 0.95, 1e-9);
    ck_assert_ptr_eq(n, &e.neighbours[0]);
    n = find(plan_in("0-1"));
    ck_assert_int_eq(n->source, TIME_SEARCHED);
    ck_assert_double_eq_tol(n->ratio.median, 1.1, 1e-9);
    ck_assert_double_nan(n->ratio.low);
    n = find(plan_in("12-13"));
    ck_assert_int_eq(n->source, TIME_PREDICTED);
    ck_assert_double_eq_tol(n->ms, 20 - 0.05 * workload.layers, 1e-9);
    n = find(plan_in("3-4"));
    ck_assert_int_eq(n->source, TIME_TRIED);
    ck_assert_str_eq(n->reason, "because");
    ck_assert_int_eq(find(plan_in("4-5"))->source, TIME_UNKNOWN);
}

SUITE("explain", setup_all, teardown_all)
