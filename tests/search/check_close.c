/* How sure a search is: what it states is true of every plan of a space. */
#include "made_up.h"
#include "space_fixture.h"

static struct history history;
static struct segment_times times; /* that the search knows */
static struct certainty certainty;
static struct plan plans[PLAN_SPACE];
static int plan_count, layers;

static const struct segment_times *known_times(void *ctx)
{
    return &times;
}

static double now(void *ctx)
{
    return 0;
}

static struct evaluator evaluator(void)
{
    struct evaluator e = recorded_space_evaluator(&space);
    e.segments = known_times;
    e.now = now;
    return e;
}

static void open_space(const char *path)
{
    read_space(path);
    times = space.segments;
    plan_count = plan_space(space.lo, space.hi, plans);
    layers = space.layers;
}

static void close_space(void)
{
    history_release(&history);
    recorded_space_release(&space);
}

static struct search_options options_with(const char *strategy, int budget)
{
    return (struct search_options){.strategy = strategy_find(strategy),
                                   .space_lo = space.lo,
                                   .space_hi = space.hi,
                                   .budget = budget,
                                   .seed = 1,
                                   .quantile = 0.1};
}

static void search_first(const char *strategy, int budget)
{
    const struct search_options o = options_with(strategy, budget);
    const struct evaluator e = evaluator();
    struct search_result found;
    OK(search_loop(&o, &e, &history, NULL, NULL, &found, &st));
}

/* Returns how many plans that measures. */
static int close_with(double share)
{
    const struct search_options o = options_with("guided", 0);
    const struct closing how = {.share = share, .most = CLOSE_MOST, .layers = layers};
    const struct evaluator e = evaluator();
    struct search_result found;
    int before = history.count;
    OK(search_close(&o, &how, &e, &history, &found, &st));
    ck_assert_int_eq(found.stopped_by, STOP_SPACE);
    return history.count - before;
}

static double best_ms(void)
{
    return history.items[history_best(&history)].outcome.ms;
}

/* The statement of `gain`, of each plan whose segments were all timed; returns how many plans not
 * measured are faster than the best one. */
static int check_gain(void)
{
    int faster = 0, open = 0;
    for (int i = 0; i < space.count; i++) {
        struct plan p = space.plans[i];
        double sum = layers * additive_ms(&times, p);
        if (history_has(&history, p) || space.outcomes[i].status == TRIAL_FAILED)
            continue;
        open++;
        if (isnan(sum) || space.outcomes[i].ms >= best_ms())
            continue;
        faster++;
        ck_assert_msg(1 - space.outcomes[i].ms / sum > certainty.gain, "%u beats %g by %g",
                      plan_value(p), sum, 1 - space.outcomes[i].ms / sum);
    }
    if (recorded_space_is_whole(&space))
        ck_assert_int_eq(certainty.open, open);
    return faster;
}

/* No measured plan beats its sum by more, and one does by as much. */
static void check_largest(void)
{
    bool reached = false;
    for (int i = 0; i < history.count; i++) {
        double sum = layers * additive_ms(&times, history.items[i].plan);
        double gain = 1 - history.items[i].outcome.ms / sum;
        ck_assert(!(gain > certainty.largest + 1e-12));
        reached |= gain == certainty.largest;
    }
    ck_assert(reached);
}

static void state(void)
{
    certainty_of(&history, &times, space.failed, plans, plan_count, layers, &certainty);
    ck_assert(certainty.known);
}

static const char *const recorded[] = {RECORDED_SPACES NULL};

static void made_up(void)
{
    static struct made_up m;
    struct buf text = BUF_INIT;
    made_up_init(&m, 1, 32768, 49152);
    made_up_recorded(&m, &text);
    write_space(&text);
}

static const char *space_of(int i)
{
    if (recorded[i] == NULL)
        made_up();
    return recorded[i] != NULL ? recorded[i] : space_path();
}

static void a_converged_search_is_sure(void)
{
    search_first("guided", 0);
    double before_ms = best_ms();
    int measured = close_with(CLOSE_SHARE);
    state();
    ck_assert_int_le(measured, CLOSE_MOST);
    ck_assert_double_ge(certainty.gain, 1 - CLOSE_SHARE - 1e-12);
    for (int i = history.count - measured; i < history.count; i++) {
        double sum = layers * additive_ms(&times, history.items[i].plan);
        ck_assert_double_lt(CLOSE_SHARE * sum, before_ms); /* none is measured for nothing */
    }
    ck_assert_int_eq(certainty.untimed_count, 0);
    check_largest();
    check_gain();
    ck_assert_int_eq(close_with(CLOSE_SHARE), 0); /* nothing is left */
}

static bool has(struct plan p, int slot)
{
    int slots[OP_COUNT], count = plan_slots(p, slots);
    for (int i = 0; i < count; i++)
        if (slots[i] == slot)
            return true;
    return false;
}

static double hope_of(int slot)
{
    for (int i = 0; i < certainty.untimed_count; i++)
        if (certainty.untimed[i].slot == slot)
            return certainty.untimed[i].hope;
    return NAN;
}

/* Segments of the best plan were never timed, one at a time: then the best plan is faster than what
 * is found, and its segment meets the hope or the plan beats its sum. */
static void a_segment_never_timed(void)
{
    int slots[OP_COUNT], hidden = 0;
    int count = plan_slots(space.plans[space.best], slots);
    for (int k = 0; k < count; k++) {
        struct segment s = slot_segment(slots[k]);
        if (s.first == s.last || slots[k] == SLOT_HANDWRITTEN)
            continue;
        times = space.segments;
        times.ms[slots[k]] = NAN;
        search_first("random", 1);
        close_with(CLOSE_SHARE);
        state();
        ck_assert_int_eq(certainty.untimed_count, 1);
        struct covers covers;
        find_covers(&times, &covers);
        double limit = hope_of(slots[k]) * covers.split[s.first][s.last];
        double own = space.segments.ms[slots[k]];
        for (int i = 0; i < space.count; i++) {
            double ms = space.outcomes[i].ms;
            if (!has(space.plans[i], slots[k]) || !(ms < best_ms()))
                continue;
            double sum = layers * additive_ms(&space.segments, space.plans[i]);
            hidden++;
            ck_assert_msg(own < limit || 1 - ms / sum > certainty.gain,
                          "%u: segment %d-%d takes %g, its limit is %g", plan_value(space.plans[i]),
                          s.first, s.last, own, limit);
        }
        history_release(&history);
    }
    ck_assert_int_gt(hidden, 0);
}

/* A sanitizer finds in the made-up space, the last one, what it finds in the others. */
#ifdef __SANITIZE_ADDRESS__
enum { FIRST_SPACE = ARRAY_LEN(recorded) - 1 };
#else
enum { FIRST_SPACE = 0 };
#endif

/* A space is read once: that takes longer than a search. */
TEST_LOOP(what_is_stated_is_true, FIRST_SPACE, ARRAY_LEN(recorded))
{
    open_space(space_of(_i));
    a_converged_search_is_sure();
    history_release(&history);
    a_segment_never_timed();
    close_space();
}

/* No more than the budget, and of all plans none beyond the `most` of the least sums. */
TEST(closing_has_bounds)
{
    struct closing how = {.share = 0.5, .most = 12, .layers = 1};
    struct search_result found;
    open_space(space_of(ARRAY_LEN(recorded) - 1));
    search_first("random", 1);
    struct search_options o = options_with("guided", 5);
    const struct evaluator e = evaluator();
    OK(search_close(&o, &how, &e, &history, &found, &st));
    ck_assert_int_eq(found.stopped_by, STOP_BUDGET);
    ck_assert_int_eq(history.count, 5);
    o.budget = 0;
    OK(search_close(&o, &how, &e, &history, &found, &st));
    ck_assert_int_eq(found.stopped_by, STOP_SPACE);
    ck_assert_int_le(history.count, 13);
    state();
    ck_assert_int_eq(certainty.open, plan_count - history.count);
    close_space();
}

SUITE("search/close", test_dir_setup, test_dir_teardown)
