/* A recorded space in a file of the test's own. */
#ifndef FUSEPLAN_TESTS_SPACE_FIXTURE_H
#define FUSEPLAN_TESTS_SPACE_FIXTURE_H

#include "search/space.h"
#include "search/study_int.h"
#include "tests/suite.h"

static struct recorded_space space; /* 300 KB: not on the stack */
/* The values that a search chooses from. */
enum { SPACE_LO = 32768, SPACE_HI = 49152 };

static inline const char *space_path(void)
{
    return test_path("a.ndjson");
}

/* Takes the text over. */
static inline void write_space(struct buf *text)
{
    OK(file_write(space_path(), text->ptr, text->len, &st));
    buf_release(text);
}

static inline void read_space(const char *from)
{
    OK(recorded_space_read(from, SPACE_LO, SPACE_HI, &space, &st));
}

#endif
