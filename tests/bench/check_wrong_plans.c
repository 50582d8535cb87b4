/* Plans that go wrong once they were verified, planted by a compiler that edits their source. */
#include "tests/bench/fixture.h"

static struct status st; /* of the call that a test is about */

static void setup(void)
{
    test_dir_setup();
    write_faulty_compiler(test_dir);
}

static struct bench_options faulty_options(void)
{
    static char compiler[256];
    struct bench_options o = small_options(test_path("cache"));
    snprintf(compiler, sizeof(compiler), "%s", test_path("compiler"));
    o.compiler = compiler;
    return o;
}

static void plant(int first, int last, const char *text)
{
    char name[64];
    snprintf(name, sizeof(name), "faults/%02d_%02d.c", first, last);
    write_text(test_path(name), text);
}

/* Of a plan of one layer, whose tensors keep what an earlier run wrote: a segment that stops
 * working once it was verified, and one that is wrong in every seventh run, each found while it is
 * timed or right after. */
START_TEST(later_faults_are_noticed)
{
    static const struct {
        int first, last;
        const char *code;
    } later[] = {
        {0, 6, "{ static int calls; if (++calls <= 12) honest(a); }"},
        {7, 14, "{ static int calls; honest(a); if (++calls % 7 == 0) a->tensor[15][0] += 1; }"},
    };
    struct workload w;
    struct bench *b;
    struct bench_options o = faulty_options();
    small_workload(&w);
    w.layers = 1;
    OK(bench_open(&o, &w, &b, &st));
    workload_release(&w);
    plant(later[_i].first, later[_i].last, later[_i].code);
    struct trial t = plan_trial(b, "0-6,7-14", &sampling_search);
    check_failed(&t, STATUS_WRONG, "the plan gives another result than before");
    bench_close(b);
}
END_TEST

SUITE("wrong plans", setup, test_dir_teardown, LOOP(later_faults_are_noticed, 0, 2))
