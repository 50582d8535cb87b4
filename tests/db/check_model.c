#include "tests/db/one_fixture.h"

static const struct db_model a_model = {.name = "best",
                                        .kind = "regressor",
                                        .features_version = 1,
                                        .data_hash = "abc",
                                        .seed = UINT64_MAX,
                                        .quantile = 0.1,
                                        .threshold_ms = 2.5,
                                        .bytes = "a\0b",
                                        .len = 3,
                                        .report = "{\"spearman\":0.9}"};

static int models_seen;

static int compare_model(void *ctx, const struct db_model *got)
{
    const struct db_model *m = ctx;
    models_seen++;
    ck_assert_str_eq(got->name, m->name);
    ck_assert_str_eq(got->kind, m->kind);
    ck_assert_int_eq(got->features_version, m->features_version);
    ck_assert_str_eq(got->data_hash, m->data_hash);
    ck_assert_uint_eq(got->seed, m->seed);
    ck_assert_double_eq(got->quantile, m->quantile);
    ck_assert_double_eq(got->threshold_ms, m->threshold_ms);
    ck_assert_uint_eq(got->len, m->len);
    ck_assert_mem_eq(got->bytes, m->bytes, m->len);
    ck_assert_str_eq(got->report, m->report);
    return 0;
}

static void expect(int64_t of, const struct db_model *m)
{
    models_seen = 0;
    OK(db_model_get(db, of, m->name, m->kind, compare_model, (void *)m, &st));
    ck_assert_int_eq(models_seen, 1);
}

START_TEST(models_come_back_by_study_name_and_kind)
{
    struct db_model classifier = a_model, of_file = a_model, named = a_model;
    classifier.kind = "classifier";
    classifier.threshold_ms = 3;
    of_file.data_hash = "file's";
    named.name = "other";
    named.len = 0;
    OK(db_model_put(db, study, &a_model, &st));
    OK(db_model_put(db, study, &classifier, &st));
    OK(db_model_put(db, study, &named, &st));
    OK(db_model_put(db, 0, &of_file, &st));
    expect(study, &a_model);
    expect(study, &classifier);
    expect(study, &named);
    expect(0, &of_file);
    assert_whole(db);
}
END_TEST

START_TEST(putting_again_replaces)
{
    struct db_model better = a_model;
    better.bytes = "xyz12";
    better.len = 5;
    better.data_hash = "def";
    better.report = "{}";
    int64_t places[] = {study, 0};
    for (size_t i = 0; i < ARRAY_LEN(places); i++) {
        OK(db_model_put(db, places[i], &a_model, &st));
        OK(db_model_put(db, places[i], &better, &st));
        expect(places[i], &better);
    }
    ck_assert_int_eq(count_sql(db->handle, "SELECT count(*) FROM model"), 2);
}
END_TEST

START_TEST(unknown_models_and_studies_are_told)
{
    FAILS(db_model_get(db, study, "best", "regressor", compare_model, NULL, &st), STATUS_NOT_FOUND,
          "no regressor model 'best'");
    FAILS(db_model_put(db, study + 1, &a_model, &st), STATUS_DATABASE, "FOREIGN KEY");
}
END_TEST

SUITE("db/model", setup, teardown, ONCE(models_come_back_by_study_name_and_kind),
      ONCE(putting_again_replaces), ONCE(unknown_models_and_studies_are_told))
