/* A recorded space, plain or packed, as a search on it reads it and as `db import` does, up to the
 * database: that is a directory, which is refused last. */
#include "search/search_int.h"
#include "tests/fuzz/fuzz.h"

#include <math.h>

static struct recorded_space space; /* 300 KB: not on the stack */

static void check_space(void)
{
    struct evaluator e = recorded_space_evaluator(&space);
    fuzz_require(space.count > 0 && space.best >= 0 && space.best < space.count,
                 "the best plan is one of the space");
    for (int i = 0; i < space.count; i++) {
        struct outcome out;
        struct status st = STATUS_INIT;
        fuzz_require(e.measure(e.ctx, space.plans[i], &out, &st) == 0, "its plans are found");
        fuzz_require(out.status == TRIAL_FAILED || (out.ms > 0 && isfinite(out.ms)),
                     "a plan that ran has a time");
        e.fails(e.ctx, space.plans[i]);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const char *dir;
    struct buf bytes;
    struct db *db = NULL;
    struct db_moved moved;
    struct status st = STATUS_INIT;
    if (dir == NULL)
        fuzz_require(file_make_dirs(dir = fuzz_path("db"), &st) == 0, "there is a directory");
    buf_init(&bytes);
    buf_add(&bytes, data, size);
    if (recorded_space_unpack(&bytes, &space, &st) == 0) {
        check_space();
        fuzz_require(space_import(&space, dir, &db, &moved, &st) != 0, "no database is there");
        recorded_space_release(&space);
    }
    buf_release(&bytes);
    return 0;
}
