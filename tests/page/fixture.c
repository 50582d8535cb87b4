#include "tests/page/fixture.h"
#include "db/db.h"
#include "tests/made_up.h"

#include <math.h>

enum { LAYERS = 12, SEED = 7, SAMPLES = 6, FINALISTS = 3 };

static struct status st;

/* The rows of a database; fill() frees their choices and samples. */
struct rows {
    struct db_trial *items;
    int count;
};

static struct db_trial *add(struct rows *r, enum db_trial_kind kind, int value, double ms)
{
    struct db_trial *t = &r->items[r->count++];
    *t = (struct db_trial){.kind = kind,
                           .value = value,
                           .status = TRIAL_OK,
                           .reason_code = "",
                           .reason = "",
                           .median_ms = ms,
                           .ci_low_ms = 0.995 * ms,
                           .ci_high_ms = 1.005 * ms,
                           .layers_timed = LAYERS,
                           .sample_count = SAMPLES,
                           .comparison = "",
                           .resources = "",
                           .conditions = "",
                           .search = ""};
    return t;
}

static void choose(struct db_trial *t, const struct segment *segments, int count, bool handwritten)
{
    struct db_choice *choices = mem_alloc((size_t)count, sizeof(*choices));
    for (int i = 0; i < count; i++)
        choices[i] = (struct db_choice){segments[i], "generated", "rows=64"};
    for (int i = 0; i < count; i++)
        if (handwritten && segment_is_attention(segments[i]))
            choices[i] = (struct db_choice){segments[i], "handwritten", ""};
    t->choices = choices;
    t->choice_count = count;
}

static void add_plan(struct rows *r, enum db_trial_kind kind, struct plan p, double ms)
{
    struct segment segments[OP_COUNT];
    int count = plan_segments(p, segments);
    struct db_trial *t = add(r, kind, (int)plan_value(p), ms);
    choose(t, segments, count, p.handwritten);
}

static void add_segments(struct rows *r, const struct made_up *m)
{
    for (int i = 0; i < SLOT_COUNT; i++) {
        struct segment s = slot_segment(i);
        struct db_trial *t = add(r, DB_TRIAL_SEGMENT, -1, m->times.ms[i]);
        choose(t, &s, 1, i == SLOT_HANDWRITTEN);
        t->conditions = "{\"peak_flops_per_s\":1e12,\"peak_bytes_per_s\":2e10}";
    }
}

/* Three plans side by side, sample by sample. */
static void add_finals(struct rows *r, const struct made_up *m, const char *search)
{
    const unsigned values[FINALISTS] = {plan_value(m->space[m->best]), 43690, 41115};
    for (int i = 0; i < FINALISTS; i++) {
        double *samples = mem_alloc(SAMPLES, sizeof(*samples));
        add_plan(r, DB_TRIAL_FINAL, plan_from_value(values[i]), LAYERS * made_up_ms(m, values[i]));
        struct db_trial *t = &r->items[r->count - 1];
        for (int k = 0; k < SAMPLES; k++)
            samples[k] = t->median_ms * (1 + 0.001 * k);
        t->samples_ms = samples;
        t->comparison = "first";
        t->search = search;
    }
}

/* The plans in a random order; two of them did not run. */
static void add_plans(struct rows *r, const struct made_up *m, const char *search)
{
    struct rng rng = {SEED};
    int *order = mem_alloc(PLAN_SPACE, sizeof(*order));
    for (int i = 0; i < m->count; i++) {
        int j = (int)rng_below(&rng, (uint32_t)i + 1);
        order[i] = order[j];
        order[j] = i;
    }
    for (int i = 0; i < m->count; i++) {
        add_plan(r, DB_TRIAL_PLAN, m->space[order[i]], LAYERS * m->ms[order[i]]);
        r->items[r->count - 1].search = search;
    }
    struct db_trial *failed = &r->items[r->count - 1], *slow = failed - 1;
    failed->status = TRIAL_FAILED;
    failed->reason_code = "compile";
    failed->reason = "</script>\xff<!--";
    failed->median_ms = failed->ci_low_ms = failed->ci_high_ms = NAN;
    slow->status = TRIAL_CENSORED;
    slow->reason_code = "timeout";
    slow->reason = "too slow";
    free(order);
}

static void fill(struct db *db, const struct made_up *m)
{
    const struct db_workload workload = {
        .text = "b=2 s=200 h=12 w=64 f=3072 l=12 eps=1e-05 dtype=fp32 lengths=200,77 "
                "mask=bigbird:g=14,w=14,n=1,seed=0",
        .batch = 2,
        .seq_len = 200,
        .heads = 12,
        .head_size = 64,
        .ffn = 3072,
        .layers = LAYERS,
        .eps = 1e-5,
        .dtype = "fp32",
        .lengths = "200,77",
        .mask = "bigbird:g=14,w=14,n=1,seed=0",
        .init = "uniform"};
    const struct db_target target = {.kind = "cpu",
                                     .device = HOSTILE_DEVICE,
                                     .uuid = "1",
                                     .capability = "avx2",
                                     .driver = "Linux 6.1",
                                     .compiler = "gcc 12.2.0",
                                     .libraries = "OpenBLAS 0.3.21",
                                     .units = 2};
    char search[HASH_TEXT_SIZE];
    int64_t study;
    struct rows rows = {.items =
                            mem_alloc(PLAN_SPACE + SLOT_COUNT + FINALISTS, sizeof(*rows.items))};
    OK(db_study(db, &workload, &target, "2", &study, &st));
    OK(db_search_start(db, study, "exhaustive", "{\"baselines\":[43690,41115]}", search, &st));
    add_segments(&rows, m);
    add_plans(&rows, m, search);
    add_finals(&rows, m, search);
    OK(db_trials_add(db, study, rows.items, rows.count, &st));
    OK(db_search_end(db, search, "space", &st));
    for (int i = 0; i < rows.count; i++) {
        free((void *)rows.items[i].choices);
        free((void *)rows.items[i].samples_ms);
    }
    free(rows.items);
}

static void make_page(void)
{
    struct made_up *m = mem_alloc(1, sizeof(*m));
    struct db *db;
    char command[1000];
    test_dir_setup();
    made_up_init(m, SEED, 32768, 49152);
    ck_assert_int_eq(m->count, PAGE_PLANS);
    OK(db_open(test_path("page.db"), DB_WRITE, &db, &st));
    fill(db, m);
    db_close(db);
    snprintf(command, sizeof(command), "%s report -q --db %s -o %s", FUSEPLAN, test_path("page.db"),
             test_path("page.html"));
    ck_assert_int_eq(system(command), 0);
    free(m);
}

const char *page_path(void)
{
    return test_path("page.html");
}

int page_suite(const char *name, SFun setup, SFun teardown, const struct suite_test *tests,
               size_t count)
{
    Suite *s = suite_create(name);
    TCase *t = tcase_create(name);
    tcase_add_unchecked_fixture(t, make_page, test_dir_teardown);
    tcase_add_checked_fixture(t, setup, teardown);
    for (size_t i = 0; i < count; i++)
        tcase_add_test(t, tests[i].test);
    suite_add_tcase(s, t);
    return suite_run(s);
}
