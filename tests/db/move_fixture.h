/* Databases whose results agree with their plans, and their texts. */
#ifndef FUSEPLAN_TESTS_DB_MOVE_FIXTURE_H
#define FUSEPLAN_TESTS_DB_MOVE_FIXTURE_H

#include "tests/db/fixture.h"

/* What a plan is measured with: each of its segments by one schedule. */
static inline struct db_trial trial_of_plan(unsigned value, struct db_choice choices[OP_COUNT])
{
    struct segment segments[OP_COUNT];
    struct db_trial t = plan_trial((int)value, 2);
    t.choice_count = plan_segments(plan_from_value(value), segments);
    t.choices = choices;
    for (int i = 0; i < t.choice_count; i++)
        choices[i] = (struct db_choice){segments[i], "generated", "rows=8"};
    return t;
}

static inline void add_plan_at(struct db *to, int64_t study, unsigned value, double ms,
                               const char *utc)
{
    struct db_choice choices[OP_COUNT];
    struct db_trial t = trial_of_plan(value, choices);
    t.median_ms = ms;
    t.ci_low_ms = ms - 0.125;
    t.ci_high_ms = ms + 0.125;
    t.stored_utc = utc;
    OK(db_trial_add(to, study, &t, &st));
}

/* The text of all results; the caller frees. */
static inline char *text_of(struct db *db)
{
    struct buf out = BUF_INIT;
    OK(db_export(db, &out, &st));
    return buf_detach(&out);
}

static inline char *text_at(const char *name)
{
    SCOPED_BY(db_close_at) struct db *db;
    OK(db_open(test_path(name), DB_WRITE, &db, &st));
    assert_whole(db);
    return text_of(db);
}

/* All that a result can have: an odd text, a failure with an infinite error, samples, a search that
 * goes on. */
static inline void fill(struct db *db, int64_t study)
{
    char id[HASH_TEXT_SIZE], running[HASH_TEXT_SIZE];
    struct db_choice choices[OP_COUNT], one = {{8, 9}, "library", ""};
    OK(db_search_start(db, study, "guided", "{\"baselines\":[43690]}", id, &st));
    OK(db_search_start(db, study, "random", "{}", running, &st));
    OK(db_search_end(db, id, "space", &st));
    struct db_trial ok = trial_of_plan(41115, choices), failed = ok, final = ok;
    ok.search = id;
    ok.median_ms = 0.1 + 0.2;
    ok.ci_low_ms = 1e-300;
    ok.ci_high_ms = 1.0 / 3;
    ok.ci_high_ms += 1;
    ok.conditions = "{\"sm_mhz\": 1980}";
    failed.status = TRIAL_FAILED;
    failed.reason_code = "compile";
    failed.reason = "a \"quoted\" text\n\twith caf\xc3\xa9 and \xff";
    failed.median_ms = failed.ci_low_ms = failed.ci_high_ms = NAN;
    failed.error = INFINITY;
    failed.kind = final.kind = DB_TRIAL_FINAL;
    failed.comparison = "other";
    failed.sample_count = 0;
    static const double samples[] = {1.25, 2, 2, 2.5, 2, 1.75};
    final.samples_ms = samples;
    final.comparison = id;
    final.packed = 1;
    final.precision = 1 << GEMM_OUT | 1 << GEMM_FFN2;
    final.search = id;
    struct db_trial segment = segment_trial(&one, 0.5);
    segment.resources = "{\"registers\":96}";
    const struct db_trial *const all[] = {&ok, &failed, &final, &segment};
    for (size_t i = 0; i < ARRAY_LEN(all); i++)
        OK(db_trial_add(db, study, all[i], &st));
}

static inline struct db_moved import_text(const char *name, const char *text)
{
    int64_t study;
    struct db_moved moved;
    const char *path = test_path("import.txt");
    SCOPED_BY(db_close_at) struct db *db = open_named(name, &study);
    write_text(test_path("import.txt"), text);
    OK(db_import(db, &path, 1, &moved, &st));
    return moved;
}

#endif
