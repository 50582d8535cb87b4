/* What the suites of db/ share: a database in a directory of the test's own, and rows to store. */
#ifndef FUSEPLAN_TESTS_DB_FIXTURE_H
#define FUSEPLAN_TESTS_DB_FIXTURE_H

#include "db/db_int.h"
#include "tests/suite.h"

#define UNUSED __attribute__((unused))

/* test_dir in memory, where the system has one: databases are synced to no disk. */
static inline void memory_dir_setup(void)
{
    strcpy(test_dir, access("/dev/shm", W_OK) == 0 ? "/dev/shm/fuseplan-check-XXXXXX"
                                                   : "/tmp/fuseplan-check-XXXXXX");
    ck_assert_ptr_nonnull(mkdtemp(test_dir));
}

static const struct db_workload a_workload UNUSED = {.text = "b=1 s=128 mask=causal",
                                                     .batch = 1,
                                                     .seq_len = 128,
                                                     .heads = 12,
                                                     .head_size = 64,
                                                     .ffn = 3072,
                                                     .layers = 12,
                                                     .eps = 1e-5,
                                                     .dtype = "fp32",
                                                     .lengths = "full",
                                                     .mask = "causal",
                                                     .seed = UINT64_MAX,
                                                     .init = "uniform"};

static const struct db_target a_target UNUSED = {.kind = "cpu",
                                                 .device = "a processor",
                                                 .uuid = "1234",
                                                 .capability = "avx2",
                                                 .driver = "6.1",
                                                 .compiler = "gcc 12.2.0",
                                                 .libraries = "OpenBLAS",
                                                 .units = 2};

/* 0-1 2-6 7-14; the hand-written operator's plan and the unfused one are told by value only. */
static const struct db_choice some_choices[] UNUSED = {{{0, 1}, "generated", "mb=64"},
                                                       {{2, 6}, "handwritten", ""},
                                                       {{7, 14}, "generated", "mb=32 nb=8"}};

static const double some_samples[] UNUSED = {1.25, 1.0, 0.75, 1.5, 0.875, 1.0};

static inline struct db_trial plan_trial(int value, double median_ms)
{
    return (struct db_trial){.kind = DB_TRIAL_PLAN,
                             .value = value,
                             .status = TRIAL_OK,
                             .reason_code = "",
                             .reason = "",
                             .median_ms = median_ms,
                             .ci_low_ms = median_ms > 0.25 ? median_ms - 0.125 : median_ms / 2,
                             .ci_high_ms = median_ms + 0.125,
                             .build_s = 0.5,
                             .verify_s = 0.25,
                             .time_s = 0.125,
                             .error = 1e-6,
                             .layers_timed = 4,
                             .choice_count = ARRAY_LEN(some_choices),
                             .sample_count = ARRAY_LEN(some_samples),
                             .choices = some_choices,
                             .samples_ms = some_samples,
                             .comparison = "",
                             .resources = "",
                             .conditions = "",
                             .search = ""};
}

static inline struct db_trial final_trial(int value, double median_ms, const char *comparison)
{
    enum { KEPT = 32 };
    static double samples[KEPT][ARRAY_LEN(some_samples)]; /* of the last finals */
    static int made;
    struct db_trial t = plan_trial(value, median_ms);
    t.kind = DB_TRIAL_FINAL;
    t.comparison = comparison;
    t.samples_ms = samples[made % KEPT];
    for (size_t i = 0; i < ARRAY_LEN(some_samples); i++)
        samples[made % KEPT][i] = some_samples[i] * (isfinite(median_ms) ? median_ms : 1);
    made++;
    return t;
}

static inline struct db_trial segment_trial(const struct db_choice *choice, double median_ms)
{
    struct db_trial t = plan_trial(-1, median_ms);
    t.kind = DB_TRIAL_SEGMENT;
    t.choice_count = 1;
    t.choices = choice;
    return t;
}

static inline struct db_trial failed_trial(int value, const char *code)
{
    struct db_trial t = plan_trial(value, NAN);
    t.status = TRIAL_FAILED;
    t.reason_code = code;
    t.reason = "because";
    t.ci_low_ms = t.ci_high_ms = NAN;
    t.sample_count = 0;
    return t;
}

static inline struct db *open_named(const char *name, int64_t *study)
{
    struct db *db;
    OK(db_open(test_path(name), DB_WRITE, &db, &st));
    OK(db_study(db, &a_workload, &a_target, "1", study, &st));
    return db;
}

static inline struct db *open_fresh(int64_t *study)
{
    return open_named("t.db", study);
}

static inline void exec_sql(sqlite3 *handle, const char *sql)
{
    char *message = NULL;
    int result = sqlite3_exec(handle, sql, NULL, NULL, &message);
    ck_assert_msg(result == SQLITE_OK, "%s: %s", sql, message);
}

/* A connection that fuseplan knows nothing of, as the sqlite3 shell's, but that
 * renews checksums. */
static inline sqlite3 *open_raw(const char *path)
{
    const int flags = SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE;
    sqlite3 *handle;
    ck_assert_int_eq(sqlite3_open_v2(path, &handle, flags, pages_layer()), SQLITE_OK);
    return handle;
}

static inline int keep_count(void *out, int columns, char **values, char **names)
{
    *(int *)out = (int)strtol(values[0], NULL, 10);
    return 0;
}

static inline int count_sql(sqlite3 *handle, const char *sql)
{
    int count = -1;
    ck_assert_int_eq(sqlite3_exec(handle, sql, keep_count, &count, NULL), SQLITE_OK);
    return count;
}

static inline void expect_sql(sqlite3 *handle, int count, const char *sql)
{
    int found = count_sql(handle, sql);
    ck_assert_msg(found == count, "%s: %d, expected %d", sql, found, count);
}

static inline void print_problem(void *ctx, const char *problem)
{
    printf("problem: %s\n", problem);
}

static inline void assert_whole(struct db *db)
{
    int problems = -1;
    OK(db_check(db, print_problem, NULL, &problems, &st));
    ck_assert_int_eq(problems, 0);
}

#endif
