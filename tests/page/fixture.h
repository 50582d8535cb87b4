/* A page of a made-up database: every plan of the default space, timed, with texts that try to
 * leave their places in JSON and HTML. */
#ifndef FUSEPLAN_TESTS_PAGE_FIXTURE_H
#define FUSEPLAN_TESTS_PAGE_FIXTURE_H

#include "tests/suite.h"

/* Of the device; it must arrive as it is. */
#define HOSTILE_TEXT   "A&B \"<b>\" </script><script>window.hostile = 1</script><!-- \\u003c "
#define HOSTILE_DEVICE HOSTILE_TEXT "\xe2\x80\xa8"    /* a line separator */
#define HOSTILE_SHOWN  HOSTILE_TEXT "\\xe2\\x80\\xa8" /* as the page has it: escaped */

enum { PAGE_PLANS = 16384 };

/* The page, which page_suite() makes before the tests. */
const char *page_path(void);

/* Has `fuseplan report` write the page, then runs the tests, each between setup and
 * teardown; either may be null. */
int page_suite(const char *name, SFun setup, SFun teardown, const struct suite_test *tests,
               size_t count);

#endif
