/* A recorded space in a file of the test's own. */
#ifndef FUSEPLAN_TESTS_SPACE_FIXTURE_H
#define FUSEPLAN_TESTS_SPACE_FIXTURE_H

#include "search/search_int.h"
#include "search/space_int.h"
#include "tests/suite.h"

static struct recorded_space space; /* 300 KB: not on the stack */
static struct status st;

static inline const char *space_path(void)
{
    return test_path("a.space.gz");
}

static inline void write_bytes(const void *bytes, size_t len)
{
    ck_assert_int_eq(file_write(space_path(), bytes, len, &st), 0);
}

static inline void write_packed(const char *text)
{
    struct buf packed;
    buf_init(&packed);
    gzip_pack(text, strlen(text), &packed);
    write_bytes(packed.ptr, packed.len);
    buf_release(&packed);
}

static inline void read_space(const char *from)
{
    int result = recorded_space_read(from, &space, &st);
    ck_assert_msg(result == 0, "%s", st.message);
}

#endif
