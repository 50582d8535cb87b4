/* A tune() on a fake bench with a database of its own. */
#ifndef FUSEPLAN_TESTS_TUNE_FIXTURE_H
#define FUSEPLAN_TESTS_TUNE_FIXTURE_H

#include "fake_bench.h"
#include "tests/suite.h"

static struct db *db;
static struct bench *bench;
static struct tune_options options;
static struct tune_report report;
static struct buf said; /* all lines that people are told, one after another */

static inline struct baselines usual_baselines(void)
{
    return (struct baselines){2, {plan_from_value(VALUE_UNFUSED), plan_from_value(41115)}};
}

/* Leaves the options to the suite. */
static void open_all(void)
{
    st = STATUS_INIT;
    buf_init(&said);
    bench = fake_open();
    ck_assert_ptr_nonnull(bench);
    test_dir_setup();
    OK(db_open(test_path("db"), DB_WRITE, &db, &st));
}

static void teardown(void)
{
    tune_report_release(&report);
    buf_release(&said);
    db_close(db);
    fake_close();
    test_dir_teardown();
}

static inline void collect(void *ctx, const char *line)
{
    buf_addf(&said, "%s\n", line);
}

static inline void run_by(int (*how)(struct bench *, struct db *, const struct tune_options *,
                                     struct tune_report *, struct status *))
{
    options.clock = fake_clock;
    options.say = collect;
    tune_report_release(&report);
    OK(how(bench, db, &options, &report, &st));
    ck_assert_int_eq(st.code, STATUS_OK);
}

static inline void run(void)
{
    run_by(tune);
}

/* ---- what is told ---------------------------------------------------------------------------- */

/* How often people were told that. */
static inline int said_times(const char *what)
{
    int n = 0;
    for (const char *at = said.len > 0 ? said.ptr : ""; (at = strstr(at, what)) != NULL; at++)
        n++;
    return n;
}

#endif
