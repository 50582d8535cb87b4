#include "search/search.h"
#include "tests/db/fixture.h"

#include <jansson.h>

static int keep_text(void *ctx, const struct db_trial *t)
{
    snprintf(ctx, 1024, "%s", t->resources);
    return 0;
}

/* Stores one trial of segment 0-0 with these resources; what the row says of them. */
static void stored_resources(const struct resources *r, char text[1024])
{
    struct status st;
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
    json_t *got = json_loads(text, 0, NULL);
    json_t *want =
        json_pack("{s:i, s:i, s:i, s:i, s:i, s:i, s:s, s:[iii], s:[iii], s:f}", "registers", 255,
                  "shared_static_bytes", 16, "shared_dynamic_bytes", 55296, "stack_bytes", 24,
                  "spill_bytes", 20, "spill_load_bytes", 28, "compiler_warning", r.compiler_warning,
                  "grid", 132, 1, 1, "block", 384, 1, 1, "occupancy", 0.1875);
    ck_assert_msg(json_equal(got, want), "%s", text);
    json_decref(want);
    json_decref(got);
}
END_TEST

START_TEST(no_resources_are_no_text)
{
    char text[1024] = "";
    stored_resources(&(struct resources){.registers = 0}, text);
    ck_assert_str_eq(text, "");
}
END_TEST

int main(void)
{
    Suite *s = suite_create("record");
    TCase *t = tcase_create("record");
    tcase_add_checked_fixture(t, test_dir_setup, test_dir_teardown);
    tcase_add_test(t, resources_are_json);
    tcase_add_test(t, no_resources_are_no_text);
    suite_add_tcase(s, t);
    return suite_run(s);
}
