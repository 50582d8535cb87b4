/* A study that stands in for the one that a query asks for. */
#include "tests/db/fixture.h"

#include <inttypes.h>

static struct db *db;
static const struct db_study here = {
    .target = {.device = "here", .uuid = "1"}, .protocol = "1", .init = "uniform"};

static void setup(void)
{
    memory_dir_setup();
    OK(db_open(test_path("t.db"), DB_WRITE, &db, &st));
}

static void teardown(void)
{
    db_close(db);
    test_dir_teardown();
}

/* Of a text "b=1 mask=full" or "b=1 mask=full chain=raw". */
static struct db_workload workload_of(const char *text)
{
    static char mask[80], chain[20];
    struct db_workload w = a_workload;
    mask[0] = chain[0] = '\0';
    ck_assert_int_ge(sscanf(text, "b=%" SCNd64 " mask=%79s chain=%19s", &w.batch, mask, chain), 2);
    w.text = text;
    w.mask = mask;
    w.chain = chain[0] != '\0' ? chain : "bert";
    return w;
}

/* A study with a plan that ran, or with one that failed. */
static int64_t add(const char *text, const char *device, const char *uuid, bool ran)
{
    int64_t study;
    struct db_workload w = workload_of(text);
    struct db_target t = a_target;
    struct db_trial trial = ran ? plan_trial(50, 2) : failed_trial(50, "wrong");
    t.device = device;
    t.uuid = uuid;
    OK(db_study(db, &w, &t, "1", &study, &st));
    OK(db_trial_add(db, study, &trial, &st));
    return study;
}

static void check(const char *text, bool same_device, bool family, int64_t expected)
{
    struct db_workload asked = workload_of(text);
    struct db_wanted w = {&asked, "cpu", &here, same_device, family};
    int64_t study = 0;
    int found = db_study_near(db, &w, &study, &st);
    ck_assert_msg(found >= 0, "%s", st.message);
    ck_assert_int_eq(found > 0 ? study : 0, expected);
}

TEST(the_workload_on_this_model_or_on_any)
{
    check("b=1 mask=full", false, false, 0);
    int64_t other = add("b=1 mask=full", "there", "1", true);
    check("b=1 mask=full", true, false, 0);
    check("b=1 mask=full", false, false, other);
    int64_t model = add("b=1 mask=full", "here", "2", true);
    check("b=1 mask=full", true, false, model);
    check("b=2 mask=full", false, false, 0);
}

TEST(another_chain_is_no_relative)
{
    int64_t other = add("b=1 mask=sliding:w=5 chain=raw", "here", "1", true);
    check("b=1 mask=sliding:w=3", false, true, 0);
    check("b=1 mask=sliding:w=3 chain=raw", false, true, other);
    check("b=1 mask=sliding:w=5 chain=raw", false, false, other);
}

TEST(a_study_in_which_nothing_ran_is_none)
{
    add("b=1 mask=full", "here", "1", false);
    check("b=1 mask=full", false, false, 0);
}

TEST(nearest_parameters_of_the_family)
{
    int64_t far = add("b=1 mask=sliding:w=512", "here", "1", true);
    int64_t near = add("b=1 mask=sliding:w=64", "there", "1", true);
    add("b=1 mask=sliding_causal:w=32", "here", "1", true);
    add("b=2 mask=sliding:w=32", "here", "1", true);
    add("b=1 mask=sliding:w=31", "here", "1", false);
    check("b=1 mask=sliding:w=32", false, true, near);
    check("b=1 mask=sliding:w=32", true, true, far);
    check("b=1 mask=sliding:w=300", false, true, far);
    check("b=1 mask=sliding:w=64", false, true, far); /* the workload itself is no relative */
    check("b=1 mask=strided:t=32", false, true, 0);
}

TEST(several_parameters_and_none)
{
    int64_t a = add("b=1 mask=bigbird:g=2,w=3,n=3,seed=0", "here", "1", true);
    add("b=1 mask=bigbird:g=1,w=30,n=30,seed=0", "here", "1", true);
    add("b=1 mask=file:0123", "here", "1", true);
    add("b=1 mask=full", "here", "1", true);
    check("b=1 mask=bigbird:g=1,w=3,n=3,seed=7", false, true, a);
    check("b=1 mask=file:4567", false, true, 0);
    check("b=1 mask=full", false, true, 0);
}

SUITE("db/near", setup, teardown)
