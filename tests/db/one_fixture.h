/* One fresh database with one study for each test of a suite. */
#ifndef FUSEPLAN_TESTS_DB_ONE_FIXTURE_H
#define FUSEPLAN_TESTS_DB_ONE_FIXTURE_H

#include "tests/db/fixture.h"

static struct db *db;
static int64_t study;

static inline void setup(void)
{
    memory_dir_setup();
    db = open_fresh(&study);
}

static inline void teardown(void)
{
    db_close(db);
    test_dir_teardown();
}

#endif
