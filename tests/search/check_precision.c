/* Plans whose GEMMs have operands of e4m3, on a fake bench. */
#include "search/precision.h"
#include "tests/workload.h"
#include "tune_guided.h"

/* ---- what precisions lose -------------------------------------------------------------------- */

#define ROW(precision, gemms, scales, last)                                                        \
    "{\"precision\":\"" precision "\",\"gemms\":" gemms ",\"weight_scales\":" scales               \
    ",\"errors\":[9," #last "]}"
#define FP8(gemms, last) ROW("fp8", "\"" gemms "\"", "\"tensor\"", last)
#define SINGLES                                                                                    \
    FP8("qkv", 0.012) "," FP8("out", 0.006) "," FP8("ffn1", 0.018) "," FP8("ffn2", 0.016)

static struct precision_errors read_errors(const char *text)
{
    struct precision_errors e;
    write_text(test_path("errors.json"), text);
    OK(precision_errors_read(test_path("errors.json"), DTYPE_FP16, &e, &st));
    return e;
}

TEST(errors_add_up_as_squares)
{
    const unsigned two = 1 << GEMM_QKV | 1 << GEMM_FFN2;
    struct precision_errors e =
        read_errors("[" ROW("bf16", "null", "null", 0.9) "," SINGLES "," ROW(
            "fp8", "\"qkv out ffn1 ffn2\"", "\"column\"", 0.5) "]");
    ck_assert_double_eq_tol(precision_error(&e, two), 0.02, 1e-12);
    ck_assert_double_eq(precision_error(&e, 1 << GEMM_OUT), 0.006);
    ck_assert_double_eq_tol(precision_error(&e, GEMM_ALL), sqrt(7.6e-4), 1e-12);
    ck_assert(isnan(precision_error(&e, 0)));
    e = read_errors("[" ROW("fp16", "null", "null", 0.0014) "," SINGLES
                                                            "," FP8("qkv out ffn1 ffn2", 0.03) "]");
    ck_assert_double_eq(precision_error(&e, GEMM_ALL), 0.03); /* as it was measured */
    ck_assert_double_eq(precision_error(&e, 0), 0.0014);
}

/* Of rows beside bf16, those of plans in bf16. */
TEST(errors_are_of_the_type_beside)
{
#define BESIDE(type, gemms, last)                                                                  \
    "{\"precision\":\"fp8\",\"gemms\":\"" gemms "\",\"weight_scales\":\"tensor\","                 \
    "\"beside\":\"" type "\",\"errors\":[" #last "]}"
    struct precision_errors e = read_errors(
        "[" ROW("fp16", "\"\"", "null", 0.001) "," SINGLES "," BESIDE("bf16", "qkv", 0.5) "]");
    ck_assert_double_eq(e.measured[0], 0.001);
    ck_assert_double_eq(e.measured[1 << GEMM_QKV], 0.012);
    FAILS(precision_errors_read(test_path("errors.json"), DTYPE_BF16, &e, &st), STATUS_USAGE,
          "has no error of out alone in fp8 beside bf16; expected what 'fuseplan accuracy -t bf16");
    const char *text =
        "[" ROW("fp16", "\"\"", "null", 0.001) "," ROW("bf16", "\"\"", "null", 0.01) "," BESIDE(
            "bf16", "qkv", 0.2) "," BESIDE("bf16", "out",
                                           0.1) "," BESIDE("bf16", "ffn1",
                                                           0.1) "," BESIDE("bf16", "ffn2", 0.1) "]";
    write_text(test_path("errors.json"), text);
    OK(precision_errors_read(test_path("errors.json"), DTYPE_BF16, &e, &st));
    ck_assert_double_eq(e.measured[0], 0.01);
    ck_assert_double_eq(e.measured[1 << GEMM_QKV], 0.2);
#undef BESIDE
}

TEST(other_files_are_no_errors)
{
    static const char *const texts[] = {
        "",
        "{}",
        "[]",
        "[" FP8("qkv", 0.1) "]",
        "[3, null]",
        "[" FP8("qkv", 0.1) "," FP8("out", 0.1) "," FP8("ffn1", 0.1) "," ROW(
            "fp8", "\"ffn2\"", "\"column\"", 0.1) "]"};
    struct precision_errors e;
    for (size_t i = 0; i < ARRAY_LEN(texts); i++) {
        write_text(test_path("errors.json"), texts[i]);
        FAILS(precision_errors_read(test_path("errors.json"), DTYPE_FP16, &e, &st), STATUS_USAGE,
              "expected what 'fuseplan accuracy -t fp16 --calibration FILE --format json' prints");
    }
}

static void make_hopper(unsigned precision)
{
    fake.hopper = true;
    fake.precision = precision;
    fake.e4m3 = 0.1;
    fake.workload.batch = 8;
    fake.workload.seq_len = 512;
    fake.workload.dtype = DTYPE_FP16;
    workload_ready(&fake.workload, "full", NULL, NULL);
}

/* Each is within the error, and none is with a further GEMM. */
TEST(largest_precisions_within_an_error)
{
    static const double most[] = {0.001, 0.0061, 0.0175, 0.0201, 0.025, 1};
    const struct precision_errors e = read_errors("[" SINGLES "]");
    unsigned found[GEMM_ALL];
    make_hopper(0);
    for (size_t i = 0; i < ARRAY_LEN(most); i++) {
        int count = precisions_within(&e, most[i], bench_target(bench), found);
        for (unsigned p = 1; p <= GEMM_ALL; p++) {
            bool within = precision_error(&e, p) <= most[i], listed = false, inside = false;
            for (int k = 0; k < count; k++) {
                listed = listed || found[k] == p;
                inside = inside || (p & ~found[k]) == 0;
            }
            ck_assert_int_eq(inside, within);
            for (int g = 0; g < GEMM_COUNT && listed; g++)
                ck_assert((p >> g & 1) != 0 || precision_error(&e, p | 1u << g) > most[i]);
        }
        ck_assert_int_eq(count == 0, most[i] == 0.001);
    }
    fake.hopper = false;
    ck_assert_int_eq(precisions_within(&e, 1, bench_target(bench), found), 0);
}

/* ---- searches -------------------------------------------------------------------------------- */

/* All plans of a search have its precision, in which their segments have kernels, and those of
 * another one are not seen. */
TEST(a_search_has_one_precision)
{
    make_hopper(0);
    run();
    int before = report.total_trials, all = report.space;
    double best_ms = report.best.ms.median;
    options.baselines.count = 0;
    options.search.budget = 0;
    fake.precision = GEMM_ALL;
    db_set_precision(db, GEMM_ALL);
    run();
    ck_assert_int_eq(report.total_trials, report.new_trials);
    ck_assert(0 < report.space && report.space < all / 10);
    ck_assert_uint_eq(report.best.precision, GEMM_ALL);
    ck_assert_double_lt(report.best.ms.median, best_ms);
    for (int i = 0; i < report.best.choice_count; i++) {
        struct segment s = report.best.choices[i].segment;
        ck_assert(segment_gemms(&chain_bert, s) == 0 ||
                  strstr(report.best.choices[i].schedule, "e4m3=") != NULL);
    }
    int plans = fake.plans;
    run(); /* nothing is left to measure */
    ck_assert_int_eq(fake.plans, plans);
    fake.precision = 0;
    options.baselines = usual_baselines();
    options.search.budget = 20;
    db_set_precision(db, 0);
    run();
    ck_assert_int_eq(report.total_trials, before);
    ck_assert_uint_eq(report.best.precision, 0);
    struct slot_record slots[SLOT_COUNT]; /* what `report` shows */
    int64_t study;
    OK(study_open(bench, db, &study, &st));
    OK(slot_records_read(db, study, TARGET_CUDA, slots, &st));
    for (int i = 0; i < SLOT_COUNT; i++)
        ck_assert(slots[i].schedule == NULL || strstr(slots[i].schedule, "e4m3=") == NULL);
    slot_records_release(slots);
}

/* An exhaustive search measures the plans that have kernels in its precision, and tries no others.
 */
TEST(the_space_of_a_precision_is_measured)
{
    make_hopper(1 << GEMM_OUT | 1 << GEMM_FFN2);
    db_set_precision(db, fake.precision);
    options.rigor = RIGOR_EXHAUSTIVE;
    options.baselines.count = 0;
    options.search.budget = 0;
    run();
    ck_assert_int_gt(report.space, 10);
    ck_assert_int_eq(report.space_trials, report.space);
    ck_assert_int_eq(report.total_trials, report.space);
    ck_assert_int_eq(report.failed_trials, 0);
    ck_assert_str_eq(report.stopped_by, "space");
}

/* Their best plans have times of one comparison, which a search in fp16 does not hold again. */
TEST(precisions_are_compared)
{
    const unsigned precisions[] = {0, 1 << GEMM_FFN1, GEMM_ALL};
    const struct baselines baselines = usual_baselines();
    const struct precision_errors e = read_errors("[" SINGLES "]");
    struct precision_errors stored;
    char comparison[100] = "";
    int64_t study;
    make_hopper(0);
    FAILS(compare_precisions(bench, db, precisions, 3, &baselines, &e, &st), STATUS_NOT_FOUND,
          "no plan without e4m3 is known");
    st = STATUS_INIT;
    for (int i = 0; i < 3; i++) {
        fake.precision = precisions[i];
        options.baselines.count = i == 0 ? baselines.count : 0;
        db_set_precision(db, fake.precision);
        run();
    }
    OK(compare_precisions(bench, db, precisions, 3, &baselines, &e, &st));
    OK(study_open(bench, db, &study, &st));
    OK(precision_errors_stored(db, study, &stored, &st));
    ck_assert_double_eq(stored.measured[1 << GEMM_FFN1], 0.018);
    for (unsigned p = 0; p <= GEMM_ALL; p++) /* with what is not measured, and follows from it */
        ck_assert(isnan(e.measured[p]) ? isnan(stored.measured[p])
                                       : stored.measured[p] == e.measured[p]);
    for (int i = 0; i < 3; i++) {
        SCOPED_BY(db_best_release) struct db_best best;
        db_set_precision(db, precisions[i]);
        OK(db_best(db, study, &best, &st));
        ck_assert(best.final);
        ck_assert_uint_eq(best.precision, precisions[i]);
        ck_assert(i == 0 || strcmp(best.comparison, comparison) == 0);
        snprintf(comparison, sizeof(comparison), "%s", best.comparison);
    }
    int compares = fake.compares;
    fake.precision = 0;
    options.baselines = baselines;
    db_set_precision(db, 0);
    run();
    ck_assert_int_eq(fake.compares, compares);
    for (int i = 0; i < report.baseline_count; i++)
        ck_assert(!isnan(report.baselines[i].speedup.median));
}

SUITE("search/precision", setup, teardown)
