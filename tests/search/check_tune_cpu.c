/* tune() from end to end on the real CPU target: the two baselines of a tiny workload, for
 * which 20 segments are compiled.  What a larger budget does is in check_tune.c, on a
 * fake bench. */
#include "search/search.h"
#include "tests/workload.h"

#include <stdlib.h>

static struct workload workload;
static struct db *db;
static struct bench *bench;
static struct status st;

static void setup(void)
{
    st = STATUS_INIT;
    test_dir_setup();
    workload = (struct workload){.chain = &chain_bert,
                                 .batch = 1,
                                 .seq_len = 8,
                                 .heads = 1,
                                 .head_size = 8,
                                 .ffn = 16,
                                 .layers = 1,
                                 .eps = 1e-5};
    workload_ready(&workload, "full", NULL, NULL);
    OK(db_open(test_path("db"), DB_WRITE, &db, &st));
    struct bench_options options = {
        .target = {TARGET_CPU, 0}, .cache_dir = test_cache(), .inputs = {.seed = 1}};
    OK(bench_open(&options, &workload, &bench, &st));
}

static void teardown(void)
{
    bench_close(bench);
    db_close(db);
    workload_release(&workload);
    test_dir_teardown();
}

START_TEST(baselines_are_measured_once)
{
    struct tune_options options = {
        .search = {.strategy = strategy_find("random"),
                   .space_lo = 32768,
                   .space_hi = 49152,
                   .budget = 2,
                   .seed = 1,
                   .quantile = 0.1},
        .baselines = {2, {plan_from_value(VALUE_UNFUSED), plan_from_value(41115)}}};
    struct tune_report first, again;
    OK(tune(bench, db, &options, &first, &st));
    ck_assert_int_eq(first.new_trials, 2);
    ck_assert_int_eq(first.failed_trials, 0);
    ck_assert(first.best.final);
    ck_assert(first.baselines[0].ms.low > 0 &&
              first.baselines[0].ms.low <= first.baselines[0].ms.median);
    ck_assert(first.baselines[1].ms.median > 0);
    for (int i = 0; i < first.best.choice_count; i++)
        ck_assert(first.best.choice_ms[i] > 0);

    OK(tune(bench, db, &options, &again, &st));
    ck_assert_int_eq(again.new_trials, 0);
    ck_assert_int_eq(again.best.value, first.best.value);
    ck_assert_double_eq(again.best.median_ms, first.best.median_ms);
    ck_assert_double_lt(again.seconds, 5);
    struct db_info info;
    OK(db_info(db, &info, &st));
    ck_assert_int_eq(info.searches, 1);
    tune_report_release(&first);
    tune_report_release(&again);
}
END_TEST

SUITE("search/tune on the CPU", setup, teardown, ONCE(baselines_are_measured_once))
