#include "search/search.h"
#include "tests/candidate.h"
#include "tests/db/fixture.h"

static int keep_text(void *ctx, const struct db_trial *t)
{
    snprintf(ctx, 1024, "%s", t->resources);
    return 0;
}

/* Stores one trial of segment 0-0 with these resources; what the row says of them. */
static void stored_resources(const struct resources *r, char text[1024])
{
    struct db *db;
    int64_t study;
    const struct candidate c = {
        .count = 1, .choices = {{.segment = {0, 0}, .impl = impl_find(TARGET_CPU, "generated")}}};
    const struct trial t = {.status = TRIAL_OK, .ms = {1, 1, 1}, .resources = *r};
    OK(db_open(test_path("test.db"), DB_WRITE, &db, &st));
    OK(db_study(db, &a_workload, &a_target, "1", &study, &st));
    OK(trial_store(db, study, DB_TRIAL_SEGMENT, &c, &t, "", &st));
    OK(db_trials(db, study, DB_TRIAL_SEGMENT, keep_text, text, &st));
    db_close(db);
}

START_TEST(resources_are_json)
{
    const struct resources r = {.registers = 255,
                                .shared_static_bytes = 16,
                                .shared_dynamic_bytes = 55296,
                                .stack_bytes = 24,
                                .spill_bytes = 20,
                                .spill_load_bytes = 28,
                                .compiler_warning = "C7507: 'setmaxnreg' \"ignored\"",
                                .grid = {132, 1, 1},
                                .block = {384, 1, 1},
                                .occupancy = 0.1875};
    char text[1024] = "";
    stored_resources(&r, text);
    ck_assert_str_eq(text,
                     "{\"registers\":255,\"shared_static_bytes\":16,\"shared_dynamic_bytes\":55296,"
                     "\"stack_bytes\":24,\"spill_bytes\":20,\"spill_load_bytes\":28,"
                     "\"grid\":[132,1,1],\"block\":[384,1,1],\"occupancy\":0.1875,"
                     "\"compiler_warning\":\"C7507: 'setmaxnreg' \\\"ignored\\\"\"}");
}
END_TEST

START_TEST(no_resources_are_no_text)
{
    char text[1024] = "";
    stored_resources(&(struct resources){.registers = 0}, text);
    ck_assert_str_eq(text, "");
}
END_TEST

static int keep_comparison(void *ctx, const struct db_trial *t)
{
    ck_assert_str_ne(t->search, "");
    ck_assert_str_eq(t->comparison, t->search);
    ++*(int *)ctx;
    return 0;
}

/* Of a search that compares once. */
START_TEST(comparison_is_named_by_its_search)
{
    struct db *db;
    int64_t study;
    char id[HASH_TEXT_SIZE];
    int rows = 0;
    struct candidate c[2];
    const struct trial t[2] = {{.status = TRIAL_OK, .ms = {1, 1, 1}},
                               {.status = TRIAL_OK, .ms = {2, 2, 2}}};
    candidate_default(&(struct build_target){.chain = &chain_bert, .kind = TARGET_CPU},
                      plan_from_value(VALUE_UNFUSED), &c[0]);
    c[1] = c[0];
    OK(db_open(test_path("test.db"), DB_WRITE, &db, &st));
    OK(db_study(db, &a_workload, &a_target, "1", &study, &st));
    OK(db_search_start(db, study, "bench", "{}", id, &st));
    OK(comparison_store(db, study, c, t, 2, id, id, &st));
    OK(db_trials(db, study, DB_TRIAL_FINAL, keep_comparison, &rows, &st));
    ck_assert_int_eq(rows, 2);
    db_close(db);
}
END_TEST

SUITE("record", test_dir_setup, test_dir_teardown, ONCE(resources_are_json),
      ONCE(no_resources_are_no_text), ONCE(comparison_is_named_by_its_search))
