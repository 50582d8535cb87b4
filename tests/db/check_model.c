#include "tests/db/one_fixture.h"

static const struct db_model a_model = {.name = "best",
                                        .features = 1,
                                        .seed = UINT64_MAX,
                                        .quantile = 0.1,
                                        .rows = "",
                                        .report = "{\"spearman\":0.9}"};

static int models_seen;

static void compare_model(void *ctx, const struct db_model *got)
{
    const struct db_model *m = ctx;
    models_seen++;
    ck_assert_str_eq(got->name, m->name);
    ck_assert_int_eq(got->features, m->features);
    ck_assert_uint_eq(got->seed, m->seed);
    ck_assert_double_eq(got->quantile, m->quantile);
    ck_assert_str_eq(got->rows, m->rows);
    ck_assert_str_eq(got->report, m->report);
}

static void expect(int64_t of, const struct db_model *m)
{
    models_seen = 0;
    OK(db_model_get(db, of, m->name, compare_model, (void *)m, &st));
    ck_assert_int_eq(models_seen, 1);
}

START_TEST(models_come_back_by_study_and_name)
{
    struct db_model of_file = a_model, named = a_model;
    of_file.rows = "0101010101010101 1.5\n1101010101010101 2\n";
    named.name = "other";
    OK(db_model_put(db, study, &a_model, &st));
    OK(db_model_put(db, study, &named, &st));
    OK(db_model_put(db, 0, &of_file, &st));
    expect(study, &a_model);
    expect(study, &named);
    expect(0, &of_file);
    assert_whole(db);
}
END_TEST

START_TEST(putting_again_replaces)
{
    struct db_model better = a_model;
    better.seed = 7;
    better.report = "{}";
    int64_t places[] = {study, 0};
    for (size_t i = 0; i < ARRAY_LEN(places); i++) {
        struct db_model first = a_model;
        first.rows = better.rows = places[i] == 0 ? "0101010101010101 1\n" : "";
        OK(db_model_put(db, places[i], &first, &st));
        OK(db_model_put(db, places[i], &better, &st));
        expect(places[i], &better);
    }
    expect_sql(db->handle, 2, "SELECT count(*) FROM model");
}
END_TEST

START_TEST(unknown_models_and_studies_are_told)
{
    FAILS(db_model_get(db, study, "best", compare_model, NULL, &st), STATUS_NOT_FOUND,
          "no model 'best'");
    FAILS(db_model_put(db, study + 1, &a_model, &st), STATUS_DATABASE, "FOREIGN KEY");
}
END_TEST

SUITE("db/model", setup, teardown, ONCE(models_come_back_by_study_and_name),
      ONCE(putting_again_replaces), ONCE(unknown_models_and_studies_are_told))
