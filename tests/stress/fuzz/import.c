/* The text form of results, as `db import` reads it, into a database that is empty each time. */
#include "db/db.h"
#include "tests/stress/fuzz/fuzz.h"

#include <unistd.h>

static void refuse_problem(void *ctx, const char *problem)
{
    fuzz_require(false, problem);
}

static const char path[] = "import.db";

/* An empty database as bytes. */
static const struct buf *empty_once(void)
{
    static struct buf bytes;
    struct db *db;
    struct status st = STATUS_INIT;
    if (fuzz_enter_dir()) {
        buf_init(&bytes);
        fuzz_require(db_open(path, DB_WRITE, &db, &st) == 0, "a database can be made");
        db_close(db);
        fuzz_require(file_read(path, 0, &bytes, &st) == 0, "it can be read");
    }
    return &bytes;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const char *const results = "results.txt";
    struct db *db;
    struct db_moved moved;
    int problems;
    struct status st = STATUS_INIT;
    const struct buf *empty = empty_once();
    fuzz_write(path, empty->ptr, empty->len);
    fuzz_write(results, data, size);
    fuzz_require(db_open(path, DB_WRITE, &db, &st) == 0, "the database opens");
    if (db_import(db, &results, 1, &moved, &st) == 0)
        fuzz_require(db_check(db, refuse_problem, NULL, &problems, &st) == 0 && problems == 0,
                     "what was imported is whole");
    db_close(db);
    return 0;
}
