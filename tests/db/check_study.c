/* Studies, which trials are compared within, and searches, which ask for them. */
#include "tests/db/one_fixture.h"
#include "tests/workload.h"

TEST(study_is_found_again)
{
    int64_t again, found;
    OK(db_study(db, &a_workload, &a_target, "1", &again, &st));
    ck_assert_int_eq(study, again);
    OK(db_study_find(db, a_workload.text, "cpu", NULL, &found, &st));
    ck_assert_int_eq(found, study);

    struct db_info info;
    OK(db_info(db, &info, &st));
    ck_assert_int_eq(info.studies, 1);
    ck_assert_int_eq(info.workloads, 1);
    ck_assert_int_eq(info.targets, 1);
}

/* A workload's chain is a part of its text, and a column; BERT's is neither in a text. */
TEST(chains_are_kept)
{
    SCOPED_BUF text = BUF_INIT;
    struct db_workload of;
    int64_t id;
    SCOPED_BY(workload_release) struct workload w = workload_sized(1, 1);
    of = db_workload_of(&w, &text);
    ck_assert_ptr_null(strstr(of.text, "chain"));
    of.init = "uniform";
    OK(db_study(db, &of, &a_target, "1", &id, &st));
    w.chain = chain_find("pre");
    buf_reset(&text);
    of = db_workload_of(&w, &text);
    ck_assert_str_eq(strstr(of.text, " mask="), " mask=full chain=pre");
    of.init = "uniform";
    OK(db_study(db, &of, &a_target, "1", &id, &st));
    expect_sql(db->handle, 2, "SELECT count(*) FROM workload WHERE chain = 'bert'");
    expect_sql(db->handle, 1,
               "SELECT count(*) FROM workload WHERE chain = 'pre' AND text LIKE '% chain=pre'");
}

TEST(what_is_not_comparable_is_another_study)
{
    int64_t ids[6] = {study};
    struct db_workload other = a_workload, seeded = a_workload, wide = a_workload;
    struct db_target faster = a_target;
    other.text = "b=2";
    seeded.seed = 7;
    wide.init = "wide";
    faster.units = 64;
    OK(db_study(db, &other, &a_target, "1", &ids[1], &st));
    OK(db_study(db, &seeded, &a_target, "1", &ids[2], &st));
    OK(db_study(db, &wide, &a_target, "1", &ids[3], &st));
    OK(db_study(db, &a_workload, &faster, "1", &ids[4], &st));
    OK(db_study(db, &a_workload, &a_target, "2", &ids[5], &st));
    for (size_t i = 0; i < ARRAY_LEN(ids); i++)
        for (size_t k = 0; k < i; k++)
            ck_assert_int_ne(ids[i], ids[k]);
}

TEST(find_prefers_the_study_measured_last)
{
    int64_t new, found;
    OK(db_study(db, &a_workload, &a_target, "2", &new, &st));
    OK(db_study_find(db, a_workload.text, "cpu", NULL, &found, &st));
    ck_assert_int_eq(found, new);

    struct db_trial t = plan_trial(43690, 2), f = final_trial(43690, 2, "c");
    OK(db_trial_add(db, study, &t, &st)); /* the newer one knows nothing yet */
    OK(db_study_find(db, a_workload.text, "cpu", NULL, &found, &st));
    ck_assert_int_eq(found, study);
    OK(db_trial_add(db, new, &f, &st));
    OK(db_study_find(db, a_workload.text, "cpu", NULL, &found, &st));
    ck_assert_int_eq(found, new);

    FAILS(db_study_find(db, "b=9", "cpu", NULL, &found, &st), STATUS_NOT_FOUND, "b=9");
    FAILS(db_study_find(db, a_workload.text, "cuda", NULL, &found, &st), STATUS_NOT_FOUND, "cuda");
}

TEST(find_prefers_the_study_most_like_what_is_asked_for)
{
    int64_t elsewhere, empty, found;
    struct db_target other = a_target;
    struct db_workload seeded = a_workload;
    other.device = "another processor";
    seeded.seed = 7;
    struct db_study near = {.target = a_target, .protocol = "1", .init = "uniform", .seed = 7};
    OK(db_study(db, &seeded, &other, "1", &elsewhere, &st));
    OK(db_study(db, &seeded, &a_target, "1", &empty, &st));
    struct db_trial t = plan_trial(43690, 2);
    OK(db_trial_add(db, study, &t, &st));
    OK(db_trial_add(db, elsewhere, &t, &st));
    near.seed = a_workload.seed;
    OK(db_study_find(db, a_workload.text, "cpu", &near, &found, &st));
    ck_assert_int_eq(found, study);
    near.target = other;
    OK(db_study_find(db, a_workload.text, "cpu", &near, &found, &st));
    ck_assert_int_eq(found, elsewhere); /* as near as the other, and measured later */
    near.target = a_target;
    near.seed = 7;
    OK(db_study_find(db, a_workload.text, "cpu", &near, &found, &st));
    ck_assert_int_ne(found, empty); /* it is the same, but knows nothing */
}

/* Of another card's study with the same driver and this card's with another driver. */
TEST(find_prefers_the_device_to_its_driver)
{
    struct db_target here = a_target, card = a_target, host = a_target;
    int64_t of_card, of_host, found;
    card.driver = card.uuid = card.capability = "other";
    host.device = "another processor";
    card.units = host.units = 99;
    OK(db_study(db, &a_workload, &card, "1", &of_card, &st));
    OK(db_study(db, &a_workload, &host, "1", &of_host, &st));
    struct db_trial t = plan_trial(43690, 2);
    OK(db_trial_add(db, of_card, &t, &st));
    OK(db_trial_add(db, of_host, &t, &st));
    struct db_study near = {.target = here, .protocol = "1", .init = "uniform"};
    OK(db_study_find(db, a_workload.text, "cpu", &near, &found, &st));
    ck_assert_int_eq(found, of_card);
}

static void add_text(void *ctx, int64_t id, const char *text)
{
    ck_assert_int_ne(id, study);
    buf_addf(ctx, "%s;", text);
}

/* A table of workloads has hundreds of studies. */
TEST(beside_are_studies_of_equal_layers)
{
    struct db_workload mask = a_workload, halves = a_workload, twice = a_workload,
                       heads = a_workload;
    const struct db_workload *others[] = {&mask, &halves, &twice, &heads};
    SCOPED_BUF texts = BUF_INIT;
    int64_t id;
    mask.text = "mask";
    halves.text = "halves";
    halves.batch *= 2;
    halves.seq_len /= 2;
    twice.text = "twice";
    twice.batch *= 2;
    heads.text = "heads";
    heads.heads *= 2;
    for (size_t i = 0; i < ARRAY_LEN(others); i++)
        OK(db_study(db, others[i], &a_target, "1", &id, &st));
    OK(db_studies_beside(db, study, add_text, &texts, &st));
    ck_assert_str_eq(texts.ptr, "twice;halves;mask;");
}

static void add_name(void *ctx, const struct db_workload *w, const char *target_kind)
{
    buf_addf(ctx, "%s on %s, %d;", w->text, target_kind, (int)w->seq_len);
}

TEST(workloads_of_which_a_plan_ran_are_listed_last_measured_first)
{
    int64_t first, empty, again;
    struct db_workload other = a_workload, unmeasured = a_workload, seeded = a_workload;
    SCOPED_BUF names = BUF_INIT;
    other.text = "b=2";
    other.seq_len = 64;
    unmeasured.text = "b=3";
    seeded.seed = 7;
    OK(db_study(db, &other, &a_target, "1", &first, &st));
    OK(db_study(db, &unmeasured, &a_target, "1", &empty, &st));
    OK(db_study(db, &seeded, &a_target, "1", &again, &st));
    struct db_trial t = plan_trial(43690, 2), failed = failed_trial(43690, "wrong");
    OK(db_trial_add(db, study, &t, &st));
    OK(db_trial_add(db, first, &t, &st));
    OK(db_trial_add(db, empty, &failed, &st));
    struct db_trial final = final_trial(43690, 2, "bench"); /* names no best plan */
    char search[HASH_TEXT_SIZE];
    OK(db_search_start(db, empty, "bench", "{}", search, &st));
    final.search = search;
    OK(db_trial_add(db, empty, &final, &st));
    OK(db_workloads(db, add_name, &names, &st));
    ck_assert_str_eq(names.ptr, "b=2 on cpu, 64;b=1 s=128 mask=causal on cpu, 128;");

    buf_reset(&names);
    OK(db_trial_add(db, again, &t, &st)); /* another study of the first workload */
    OK(db_workloads(db, add_name, &names, &st));
    ck_assert_str_eq(names.ptr, "b=1 s=128 mask=causal on cpu, 128;b=2 on cpu, 64;");
}

TEST(study_is_read_as_stored)
{
    struct db_study out;
    SCOPED_BUF texts = BUF_INIT;
    OK(db_study_read(db, study, &texts, &out, &st));
    ck_assert_str_eq(out.target.device, a_target.device);
    ck_assert_str_eq(out.target.libraries, a_target.libraries);
    ck_assert_str_eq(out.protocol, "1");
    ck_assert_str_eq(out.init, "uniform");
    ck_assert(out.seed == a_workload.seed);
    ck_assert_int_eq(out.target.units, a_target.units);
    FAILS(db_study_read(db, study + 1, &texts, &out, &st), STATUS_NOT_FOUND, "no study");
}

TEST(searches_have_ids_of_their_own)
{
    char first[HASH_TEXT_SIZE], second[HASH_TEXT_SIZE];
    OK(db_search_start(db, study, "guided", "{\"budget\":48}", first, &st));
    OK(db_search_start(db, study, "guided", "{\"budget\":48}", second, &st));
    ck_assert_uint_eq(strlen(first), HASH_TEXT_SIZE - 1);
    ck_assert_str_ne(first, second);
    OK(db_search_end(db, second, "budget", &st));
    expect_sql(
        db->handle, 1,
        "SELECT count(*) FROM search WHERE stopped_by = 'budget' AND ended_utc >= started_utc");
    expect_sql(db->handle, 1, "SELECT count(*) FROM search WHERE stopped_by IS NULL");
    FAILS(db_search_end(db, "nobody's", "budget", &st), STATUS_NOT_FOUND, "nobody's");
    FAILS(db_search_start(db, study + 1, "guided", "{}", first, &st), STATUS_DATABASE, "");
    ck_assert_str_eq(first, "");
}

/* The clock goes back while a search runs, and before the next one. */
TEST(last_search_is_the_newest)
{
    char first[HASH_TEXT_SIZE], second[HASH_TEXT_SIZE];
    OK(db_search_start(db, study, "guided", "{}", first, &st));
    exec_sql(db->handle, "UPDATE search SET started_utc = '2999-01-01T00:00:00.999Z'");
    OK(db_search_end(db, first, "budget", &st));
    OK(db_search_start(db, study, "random", "{}", second, &st));
    expect_sql(db->handle, 1, "SELECT count(*) FROM search WHERE ended_utc = started_utc");
    expect_sql(db->handle, 1,
               "SELECT count(*) FROM search WHERE started_utc = '2999-01-01T00:00:01.000Z'"
               " AND strategy = 'random'");
}

TEST(model_replaces_the_one_of_its_name)
{
    struct db_model m = {.name = "m", .quantile = 0.1, .rows = "0101010101010101 1.5\n"};
    struct db_model stored;
    SCOPED_BUF rows = BUF_INIT;
    for (m.seed = UINT64_MAX - 1; m.seed != 0; m.seed++)
        OK(db_model_put(db, &m, "{}", &st));
    OK(db_model_get(db, "m", &rows, &stored, &st));
    ck_assert_uint_eq(stored.seed, UINT64_MAX);
    ck_assert_str_eq(stored.rows, m.rows);
    FAILS(db_model_get(db, "other", &rows, &stored, &st), STATUS_NOT_FOUND, "no model 'other'");
    assert_whole(db);
}

SUITE("db/study", setup, teardown)
