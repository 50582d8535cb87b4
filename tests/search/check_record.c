/* What the row of a trial says of it. */
#include "search/search.h"
#include "tests/candidate.h"
#include "tests/db/fixture.h"

static struct db *db;
static int64_t study;
static const struct trial took_1_ms = {.status = TRIAL_OK, .ms = {1, 1, 1}};

static void setup(void)
{
    test_dir_setup();
    db = open_fresh(&study);
}

static void teardown(void)
{
    db_close(db);
    test_dir_teardown();
}

static int keep_resources(void *ctx, const struct db_trial *t)
{
    snprintf(ctx, 1024, "%s", t->resources);
    return 0;
}

static const struct {
    struct resources resources;
    const char *text;
} told[] = {
    {{.registers = 0}, ""},
    {{.registers = 255,
      .shared_static_bytes = 16,
      .shared_dynamic_bytes = 55296,
      .stack_bytes = 24,
      .spill_bytes = 20,
      .spill_load_bytes = 28,
      .compiler_warning = "C7507: 'setmaxnreg' \"ignored\"",
      .grid = {132, 1, 1},
      .block = {384, 1, 1},
      .occupancy = 0.1875},
     "{\"registers\":255,\"shared_static_bytes\":16,\"shared_dynamic_bytes\":55296,"
     "\"stack_bytes\":24,\"spill_bytes\":20,\"spill_load_bytes\":28,\"grid\":[132,1,1],"
     "\"block\":[384,1,1],\"occupancy\":0.1875,"
     "\"compiler_warning\":\"C7507: 'setmaxnreg' \\\"ignored\\\"\"}"},
};

TEST_LOOP(resources_are_json, 0, ARRAY_LEN(told))
{
    const struct candidate c = {
        .count = 1, .choices = {{.segment = {0, 0}, .impl = impl_find(TARGET_CPU, "generated")}}};
    char text[1024] = "";
    struct trial t = took_1_ms;
    t.resources = told[_i].resources;
    OK(trial_store(db, study, DB_TRIAL_SEGMENT, &c, &t, "", &st));
    OK(db_trials(db, study, DB_TRIAL_SEGMENT, keep_resources, text, &st));
    ck_assert_str_eq(text, told[_i].text);
}

SUITE("search/record", setup, teardown)
