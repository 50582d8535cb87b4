/* A database that another wrote: rows that hold anything, or pages with changed bytes, with or
 * without checksums that say so.  Every reader must refuse it or read it. */
#include "db/db.h"
#include "tests/stress/fuzz/damage.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* ---- the database before --------------------------------------------------------------------- */

static void make_database(const char *path)
{
    static const char *const results = FUZZ_CORPUS "/import/results";
    struct db *db;
    struct db_moved moved;
    struct status st = STATUS_INIT;
    const struct db_model model = {.name = "plans", .quantile = 0.1, .rows = "", .report = "{}"};
    fuzz_require(db_open(path, DB_WRITE, &db, &st) == 0 &&
                     db_import(db, &results, 1, &moved, &st) == 0 && moved.added > 3 &&
                     db_model_put(db, 1, &model, &st) == 0,
                 "a database can be made");
    db_close(db);
}

/* ---- readers --------------------------------------------------------------------------------- */

static int see_trial(void *ctx, const struct db_trial *t)
{
    (void)ctx;
    fuzz_require(t->value >= -1 && t->value <= VALUE_MAX && t->choice_count <= OP_COUNT &&
                     t->sample_count >= 0,
                 "a trial that was read is within its bounds");
    for (int i = 0; i < t->choice_count; i++)
        fuzz_require(t->choices[i].segment.first >= 0 && t->choices[i].segment.last < OP_COUNT &&
                         t->choices[i].impl != NULL,
                     "so are its choices");
    return 0;
}

static void see_listed(void *ctx, const struct db_listed *l)
{
    (void)ctx;
    fuzz_require(l->value >= -1 && l->value <= VALUE_MAX && l->workload.text != NULL,
                 "a study that was read is one");
}

static void see_workload(void *ctx, const struct db_workload *w, const char *kind)
{
    (void)ctx;
    fuzz_require(w->text != NULL && kind != NULL, "so is a workload");
}

static void see_search(void *ctx, const struct db_search *s)
{
    (void)ctx;
    fuzz_require(s->id != NULL && s->options != NULL, "so is a search");
}

static void see_value(void *ctx, int value)
{
    (void)ctx;
    fuzz_require(value >= 0 && value <= VALUE_MAX, "so is a value");
}

static void see_model(void *ctx, const struct db_model *m)
{
    (void)ctx;
    fuzz_require(m->rows != NULL, "so is a model");
}

static void see_problem(void *ctx, const char *problem)
{
    (void)ctx;
    fuzz_require(utf8_is_plain(problem), "a problem can be printed");
}

static void read_all(struct db *db, int64_t study)
{
    struct db_best best;
    struct db_time time;
    struct db_info info;
    struct buf text;
    int problems;
    struct status said[14];
    for (size_t i = 0; i < ARRAY_LEN(said); i++)
        said[i] = STATUS_INIT;
    buf_init(&text);
    for (int kind = DB_TRIAL_SEGMENT; kind <= DB_TRIAL_FINAL; kind++)
        db_trials(db, study, (enum db_trial_kind)kind, see_trial, NULL, &said[kind]);
    if (db_best(db, study, &best, &said[3]) == 0)
        db_best_release(&best);
    db_time(db, study, 36507, "9b38128c", &time, &said[4]);
    db_time_release(&time);
    db_list(db, see_listed, NULL, &said[5]);
    db_workloads(db, see_workload, NULL, &said[6]);
    db_searches(db, study, see_search, NULL, &said[7]);
    db_plan_values(db, study, see_value, NULL, &said[8]);
    db_model_get(db, study, "plans", see_model, NULL, &said[9]);
    if (db_export(db, &text, &said[10]) == 0)
        fuzz_require(memchr(text.ptr, 0x1b, text.len) == NULL, "no escape leaves the database");
    db_compared(db, study, &text, &said[11]);
    db_info(db, &info, &said[12]);
    db_check(db, see_problem, NULL, &problems, &said[13]);
    buf_release(&text);
}

/* ---- an input -------------------------------------------------------------------------------- */

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    enum { MOST = 16 };
    static struct buf whole;
    static const char *path;
    struct fuzz_bytes in = {data, size};
    struct buf file;
    struct db *db;
    struct status st = STATUS_INIT;
    if (path == NULL) {
        path = fuzz_path("t.db");
        make_database(path);
        damage_schema(path);
        buf_init(&whole);
        fuzz_require(file_read(path, 0, &whole, &st) == 0, "it can be read");
    }
    uint32_t kind = fuzz_take(&in, 1);
    buf_init(&file);
    buf_add(&file, whole.ptr, whole.len);
    if (kind >= 128)
        damage_bytes(&file, &in, MOST, kind >= 192);
    fuzz_write(path, file.ptr, file.len);
    buf_release(&file);
    if (kind < 128)
        damage_rows(path, &in, MOST);
    if (db_open(path, DB_READ, &db, &st) == 0) {
        read_all(db, 1);
        db_close(db);
    }
    return 0;
}
