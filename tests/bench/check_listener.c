/* What a bench tells its listener while it works. */
#include "tests/bench/fixture.h"

static struct status st;

/* What a bench has told its listener. */
struct told {
    int compiled, verifying, timing;
    int64_t rounds;
};

static void listen(void *ctx, const struct step *step)
{
    struct told *told = ctx;
    if (strcmp(step->phase, "compiling") == 0) {
        ck_assert_int_le(step->done, step->total);
        told->compiled = (int)step->done;
    }
    told->verifying += strncmp(step->phase, "verifying", 9) == 0;
    if (strcmp(step->phase, "timing") == 0) {
        ck_assert(step->left_s >= 0);
        ck_assert_int_ge(step->done, told->rounds);
        ck_assert_int_le(step->done, step->total);
        told->rounds = step->done;
        told->timing++;
    }
}

START_TEST(builds_are_told)
{
    struct status results[4];
    struct told told = {.compiled = 0};
    struct bench_options o = small_options(test_path("cache"));
    o.listener = (struct listener){listen, &told};
    struct bench *b = small_bench(&o);
    struct choice c[] = {choice_of(9, 9), choice_of(14, 14), choice_of(11, 11), choice_of(9, 9)};
    OK(bench_build(b, c, 4, results, &st));
    ck_assert_int_eq(told.compiled, 4);
    for (int i = 0; i < 4; i++)
        ck_assert_int_eq(results[i].code, STATUS_OK);
    bench_close(b);
}
END_TEST

START_TEST(rounds_are_told)
{
    const struct sampling how = {.min_samples = 9, .max_samples = 9, .all_layers = true};
    struct told told = {.compiled = 0};
    struct bench_options o = small_options(test_cache());
    o.listener = (struct listener){listen, &told};
    struct bench *b = small_bench(&o);
    struct candidate both[] = {candidate_of(b, "8-9"), candidate_of(b, "13-14")};
    struct trial trials[2];
    OK(bench_compare(b, both, 2, &how, trials, &st));
    ck_assert_int_gt(told.verifying, 0);
    ck_assert_int_gt(told.timing, 0);
    ck_assert_int_ge(told.rounds, 8); /* told before each sample */
    trial_release(&trials[0]);
    trial_release(&trials[1]);
    bench_close(b);
}
END_TEST

SUITE("bench/listener", test_dir_setup, test_dir_teardown, ONCE(builds_are_told),
      ONCE(rounds_are_told))
