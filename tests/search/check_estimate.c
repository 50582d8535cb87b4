/* Plans for workloads that were left out, judged on recorded ones. */
#include "tests/search/held_out.h"

#include "search/search_int.h"
#include "search/space_int.h"
#include "tests/suite.h"

#include <math.h>

static const char *const tables[] = {RECORDED_TABLES};
static const char *const spaces[] = {RECORDED_SPACES};
static struct known_workloads known;
static struct plan all_plans[PLAN_SPACE];
static int plan_count;
static struct status st;

/* ---- how good they are ----------------------------------------------------------------------- */

static struct held_out_summary judge(bool tokens)
{
    static struct held_out all[TABLES_MAX];
    ck_assert_int_eq(known.count, ARRAY_LEN(tables));
    for (int i = 0; i < known.count; i++)
        all[i] = held_out_judge(&known, i, tokens);
    return held_out_summarise(all, known.count);
}

/* Without one workload, and without all that have as many tokens. */
static const struct {
    bool tokens;
    int within, beyond;
    double error_median;
} hardships[] = {{false, 27, 0, 0.03}, {true, 25, 2, 0.05}};

START_TEST(held_out_workloads_are_estimated)
{
    struct held_out_summary s = judge(hardships[_i].tokens);
    ck_assert_double_ge(s.holds, 0.85);
    ck_assert_double_ge(s.inside, 0.85);
    ck_assert_int_ge(s.judged, 10);
    ck_assert_double_le(s.regret_median, 0.05);
    ck_assert_int_ge(s.within, hardships[_i].within);
    ck_assert_int_le(s.beyond, hardships[_i].beyond);
    ck_assert_double_le(s.error_median, hardships[_i].error_median);
}
END_TEST

/* A few long rows of blocks keep a few multiprocessors busy while the others wait. */
START_TEST(attention_takes_as_long_as_its_longest_rows)
{
    static const struct segment whole[] = {{1, 5}, {1, 6}, {2, 5}};
    for (int i = 0; i < known.count; i++) {
        const struct known_workload *w = &known.items[i];
        bool left_out[TABLES_MAX] = {false};
        left_out[i] = true;
        if (w->workload.batch * w->workload.seq_len != 512)
            continue;
        struct estimate e = estimate_plans(&known, left_out, &w->workload, all_plans, plan_count);
        for (size_t k = 0; k < ARRAY_LEN(whole); k++) {
            int slot = slot_of(whole[k], false);
            ck_assert_double_le(fabs(log(e.us[slot] / w->slots[slot].us.median)), 0.1);
        }
    }
}
END_TEST

/* Stripes in plain order keep a few elements of all 2080 blocks below the diagonal, and the search
 * takes the cover, which has 191. */
START_TEST(attention_may_read_a_cover)
{
    const int whole = slot_of((struct segment){1, 6}, false);
    for (int i = 0; i < known.count; i++) {
        const struct workload *w = &known.items[i].workload;
        if (w->batch != 1 || w->seq_len != 4096 || w->cover.parts == 0)
            continue;
        struct estimate e = estimate_plans(&known, NULL, w, all_plans, plan_count);
        ck_assert_double_le(e.us[whole], 30); /* 15 us for 190 blocks of another mask */
    }
}
END_TEST

static int find(const struct workload *w)
{
    for (int i = 0; i < known.count; i++)
        if (known.items[i].workload.batch == w->batch &&
            known.items[i].workload.seq_len == w->seq_len &&
            known.items[i].workload.mask_spec.kind == w->mask_spec.kind)
            return i;
    ck_abort_msg("no table of this workload");
}

/* Every plan of these was measured. */
START_TEST(plans_are_good_where_all_were_measured)
{
    static struct recorded_space space;
    struct workload w;
    enum target_kind kind;
    bool left_out[TABLES_MAX] = {false};
    ck_assert_int_eq(recorded_space_read(spaces[_i], &space, &st), 0);
    ck_assert_int_eq(space_workload(&space, &kind, &w, &st), 0);
    int i = find(&w);
    left_out[i] = true;
    struct estimate e =
        estimate_plans(&known, left_out, &known.items[i].workload, all_plans, plan_count);
    int at = space.at[plan_key(e.plans[0].plan)];
    ck_assert_double_le(space.outcomes[at].ms / space.outcomes[space.best].ms - 1, 0.05);
    double least = INFINITY;
    for (int p = 0; p < e.count; p++)
        least = fmin(least, space.outcomes[space.at[plan_key(e.plans[p].plan)]].ms);
    ck_assert_double_le(least / space.outcomes[space.best].ms - 1, 0.02);
    workload_release(&w);
    recorded_space_release(&space);
}
END_TEST

/* ---- what an estimate says ------------------------------------------------------------------- */

START_TEST(plans_come_in_order_with_intervals)
{
    struct estimate e =
        estimate_plans(&known, NULL, &known.items[0].workload, all_plans, plan_count);
    ck_assert_int_eq(e.count, ESTIMATED_MOST);
    ck_assert_int_eq(e.known, known.count);
    ck_assert_int_eq(e.nearest, 0);
    for (int i = 0; i < e.count; i++) {
        struct interval ms = e.plans[i].ms;
        ck_assert(ms.low < ms.median && ms.median < ms.high);
        ck_assert(i == 0 || e.plans[i - 1].ms.median <= ms.median);
    }
}
END_TEST

/* Of spaces that were recorded whole. */
static bool has_all_segments(const struct known_workload *w)
{
    for (int slot = 0; slot < SLOT_COUNT; slot++)
        if (w->slots[slot].impl == NULL)
            return false;
    return true;
}

/* A plan with a segment that was timed in none of the others. */
static struct plan unknown_plan(const bool *left_out)
{
    for (int slot = 0; slot < SLOT_HANDWRITTEN; slot++) {
        struct segment s = slot_segment(slot);
        bool timed = false;
        for (int i = 0; i < known.count; i++)
            timed |= !left_out[i] && known.items[i].slots[slot].impl != NULL;
        if (!timed)
            return plan_of((uint16_t)((1 << s.last) - (1 << s.first)), false);
    }
    ck_abort_msg("all segments were timed");
}

START_TEST(unknown_segments_are_in_no_plan)
{
    bool left_out[TABLES_MAX] = {false};
    for (int i = 0; i < known.count; i++)
        left_out[i] = has_all_segments(&known.items[i]);
    struct plan unknown = unknown_plan(left_out);
    struct estimate e = estimate_plans(&known, left_out, &known.items[0].workload, &unknown, 1);
    ck_assert_int_eq(e.count, 0);
    struct plan unfused = plan_of(0, false);
    e = estimate_plans(&known, left_out, &known.items[0].workload, &unfused, 1);
    ck_assert_int_eq(e.count, 1);
    ck_assert(plan_equal(e.plans[0].plan, unfused));
}
END_TEST

/* ---- where nothing near is known ------------------------------------------------------------- */

START_TEST(two_workloads_are_too_few)
{
    bool left_out[TABLES_MAX] = {false};
    const struct workload *w = &known.items[0].workload;
    for (int i = NEAR_LEAST; i < known.count; i++)
        left_out[i] = true;
    ck_assert_int_gt(estimate_plans(&known, left_out, w, all_plans, plan_count).count, 0);
    left_out[NEAR_LEAST - 1] = true;
    struct estimate e = estimate_plans(&known, left_out, w, all_plans, plan_count);
    ck_assert_int_eq(e.count, 0);
    ck_assert_int_eq(e.known, NEAR_LEAST - 1);
}
END_TEST

/* An estimate of a full mask for so many times the tokens of the largest workload known. */
static struct estimate estimate_beyond(int factor)
{
    struct workload w;
    workload_init(&w);
    w.dtype = DTYPE_FP16;
    w.batch = 16 * factor;
    w.seq_len = 1024;
    mask_spec_release(&w.mask_spec);
    ck_assert_int_eq(mask_parse("strided", &w.mask_spec, &st), 0);
    ck_assert_int_eq(workload_check(&w, &st), 0);
    ck_assert_int_eq(workload_build_mask(&w, NULL, &st), 0);
    struct estimate e = estimate_plans(&known, NULL, &w, all_plans, plan_count);
    workload_release(&w);
    return e;
}

START_TEST(far_workloads_are_refused)
{
    ck_assert_int_gt(estimate_beyond(NEAR_FACTOR).count, 0);
    ck_assert_int_eq(estimate_beyond(2 * NEAR_FACTOR).count, 0);
}
END_TEST

/* ---- what counts as known -------------------------------------------------------------------- */

/* The tables of some workloads as results in a database of the test's own. */
static struct db *imported(int count)
{
    static struct recorded_space space;
    struct db *db = NULL;
    struct db_moved moved;
    for (int i = 0; i < count; i++) {
        db_close(db);
        ck_assert_int_eq(recorded_space_read(tables[i], &space, &st), 0);
        ck_assert_int_eq(space_import(&space, test_path("a.db"), &db, &moved, &st), 0);
        recorded_space_release(&space);
    }
    return db;
}

static int known_count(struct db *db, const struct workload *w, enum target_kind target)
{
    const struct db_study here = {.target = {.device = "another"}, .protocol = "none"};
    const struct estimate_question q = {w, target, &here};
    struct db *databases[2] = {NULL, db};
    struct known_workloads k;
    ck_assert_int_eq(known_read(databases, &q, &k, &st), 0);
    ck_assert_str_eq(k.device, k.count > 0 ? "NVIDIA H200" : "");
    int out = k.count;
    known_release(&k);
    return out;
}

START_TEST(only_like_layers_are_known)
{
    struct workload w;
    struct db *db = imported(NEAR_LEAST);
    workload_copy(&w, &known.items[0].workload);
    ck_assert_int_eq(known_count(db, &w, TARGET_CUDA), NEAR_LEAST);
    ck_assert_int_eq(known_count(db, &w, TARGET_CPU), 0);
    w.ffn++;
    ck_assert_int_eq(known_count(db, &w, TARGET_CUDA), 0);
    w.ffn--;
    ck_assert_int_eq(workload_draw_lengths(&w, w.seq_len / 2, 1, &st), 0);
    ck_assert_int_eq(known_count(db, &w, TARGET_CUDA), 0);
    workload_release(&w);
    db_close(db);
}
END_TEST

/* The same table as if of workloads of other batches: the nearest of them are read. */
START_TEST(only_the_nearest_are_read)
{
    enum { STORED = KNOWN_MOST + 2 };
    static struct recorded_space space;
    const struct db_study here = {.target = {.device = ""}, .protocol = ""};
    struct workload w;
    struct db *db = NULL, *databases[2] = {NULL, NULL};
    struct db_moved moved;
    struct known_workloads k;
    ck_assert_int_eq(recorded_space_read(tables[0], &space, &st), 0);
    for (int batch = STORED; batch > 0; batch--) {
        db_close(db);
        json_object_set_new(json_object_get(space.header, "workload"), "batch",
                            json_integer(batch));
        ck_assert_int_eq(space_import(&space, test_path("a.db"), &db, &moved, &st), 0);
    }
    recorded_space_release(&space);
    databases[0] = db;
    workload_copy(&w, &known.items[0].workload);
    w.batch = 1;
    const struct estimate_question q = {&w, TARGET_CUDA, &here};
    ck_assert_int_eq(known_read(databases, &q, &k, &st), 0);
    ck_assert_int_eq(k.count, KNOWN_MOST);
    for (int i = 0; i < k.count; i++)
        ck_assert_int_eq(k.items[i].workload.batch, i + 1);
    known_release(&k);
    workload_release(&w);
    db_close(db);
}
END_TEST

/* The same device and protocol come first, though others were measured later. */
START_TEST(devices_do_not_mix)
{
    static struct recorded_space space;
    struct db *db = imported(2), *databases[2];
    struct db_moved moved;
    struct known_workloads k;
    const char *const devices[] = {"NVIDIA H200", "a GPU", "none of both"};
    const int counts[] = {2, 1, 2};
    db_close(db);
    ck_assert_int_eq(recorded_space_read(tables[2], &space, &st), 0);
    space.target.device = devices[1];
    ck_assert_int_eq(space_import(&space, test_path("a.db"), &db, &moved, &st), 0);
    recorded_space_release(&space);
    databases[0] = databases[1] = db; /* what both hold counts once */
    for (size_t i = 0; i < ARRAY_LEN(devices); i++) {
        const struct db_study here = {.target = {.device = devices[i]}, .protocol = ""};
        const struct estimate_question q = {&known.items[0].workload, TARGET_CUDA, &here};
        ck_assert_int_eq(known_read(databases, &q, &k, &st), 0);
        ck_assert_int_eq(k.count, counts[i]);
        known_release(&k);
    }
    db_close(db);
}
END_TEST

/* The tests share the tables, which take a second to read. */
int main(void)
{
    const struct suite_test tests[] = {
        LOOP(held_out_workloads_are_estimated, 0, ARRAY_LEN(hardships)),
        ONCE(attention_takes_as_long_as_its_longest_rows),
        ONCE(attention_may_read_a_cover),
        LOOP(plans_are_good_where_all_were_measured, 0, ARRAY_LEN(spaces)),
        ONCE(plans_come_in_order_with_intervals),
        ONCE(unknown_segments_are_in_no_plan),
        ONCE(two_workloads_are_too_few),
        ONCE(far_workloads_are_refused),
        ONCE(only_like_layers_are_known),
        ONCE(only_the_nearest_are_read),
        ONCE(devices_do_not_mix)};
    int result = EXIT_FAILURE;
    if (tables_read(tables, ARRAY_LEN(tables), &known, &st) != 0) {
        fprintf(stderr, "%s\n", st.message);
    } else {
        plan_count = plan_space(32768, 49152, all_plans);
        result = suite_main("estimate", test_dir_setup, test_dir_teardown, tests, ARRAY_LEN(tests));
    }
    known_release(&known);
    return result;
}
