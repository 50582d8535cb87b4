/* Layers of two kinds, measured. */
#include "tests/bench/fixture.h"

/* Layers 0 and 2 of 3 are causal; in the other a query sees its own key alone. */
static struct bench *open_kinds(const char *chain, struct bench_options *o)
{
    struct workload w;
    small_workload(&w);
    w.chain = chain_find(chain);
    w.rope_theta = 100;
    w.layers = 3;
    OK(workload_add_local(&w, "sliding:w=0", 10, 2, &st));
    OK(workload_check(&w, &st));
    OK(workload_build_mask(&w, NULL, &st));
    return bench_of(o, &w);
}

static const char *const plans[] = {"0-1,2-6", "1-5,6-9,10-14"};

/* Plans and their segments agree with the oracle in layers of both kinds. */
TEST_LOOP(plans_run_both_kinds, 0, ARRAY_LEN(plans))
{
    static const struct sampling all = {
        .min_samples = 6, .max_samples = 6, .all_layers = true, .all_rows = true};
    struct bench_options o = small_options(test_path("cache"));
    SCOPED_BY(bench_close_at) struct bench *b = open_kinds("pre+gate+rope", &o);
    struct trial t = plan_trial(b, plans[_i], &all);
    ck_assert_double_lt(t.error, 1e-5);
    check_ok(&t);
    t = segment_trial(b, 1, 5);
    check_ok(&t);
}

/* A segment that is wrong in local layers alone. */
TEST(fault_of_one_kind_is_found)
{
    char compiler[128];
    write_faulty_compiler(test_dir);
    struct bench_options o = small_options(test_path("cache"));
    snprintf(compiler, sizeof(compiler), "%s", test_path("compiler"));
    o.compiler = compiler;
    SCOPED_BY(bench_close_at) struct bench *b = open_kinds("bert", &o);
    write_text(test_path("faults/02_06.c"),
               "{ honest(a); if (a->mask.words[1] == 2) a->tensor[7][0] += 1; }");
    struct trial t = segment_trial(b, 2, 6);
    check_failed(&t, STATUS_WRONG, "segment 2-6 (generated) in local layers: wrong result");
    t = segment_trial(b, 2, 5);
    check_ok(&t);
}

SUITE("kinds", test_dir_setup, test_dir_teardown)
