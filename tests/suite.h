/* What every suite's main does: run one Suite, forked, and say how it went. */
#ifndef FUSEPLAN_TESTS_SUITE_H
#define FUSEPLAN_TESTS_SUITE_H

#include <check.h>
#include <stdlib.h>

static inline int suite_run(Suite *s)
{
    SRunner *runner = srunner_create(s);
    srunner_run_all(runner, CK_NORMAL);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}

#endif
