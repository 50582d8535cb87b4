/* The comparisons side by side: the finals and, in an exhaustive search, a refining before them. */
#include "search/tuner_int.h"

/* So many of the fastest plans try other schedules before the finals of a search that does not
 * treat all plans alike; fewer where a near workload has taught which ones are fast. */
enum { FITTED = 4, FITTED_TAUGHT = 2 };

/* Of the finals of an exhaustive search that had no time to refine. */
#define MARK_UNREFINED " unrefined"

/* The 256 fastest of a whole space: noise and the layers that a search leaves out put far fewer
 * plans before the best one.  The 95 % interval of 9 samples leaves out one on each side. */
static const struct contest refining = {
    .name = "plans",
    .fastest = 256,
    .how = {.min_samples = 9, .max_samples = 9, .all_layers = true},
    .share = 0.7,
    .mark = " refined",
    .mark_cut_short = " refined in part"};

/* Writes the candidates of which no segment is known to fail; returns how many. */
static int runnable(const struct tuner *t, const struct observation *items, int count,
                    struct candidate *out)
{
    int kept = 0;
    for (int i = 0; i < count; i++) {
        struct status fails = STATUS_INIT;
        if (plan_candidate(&t->segments, NULL, items[i].plan, &out[kept], &fails) == 0)
            kept++;
        else
            tuner_say(t, "%u is left out of the finals: %s", plan_value(items[i].plan),
                      fails.message);
    }
    return kept;
}

static int store(struct tuner *t, const char *mark, const struct candidate *candidates,
                 const struct trial *trials, int count, struct status *st)
{
    SCOPED_BUF comparison = BUF_INIT;
    buf_addf(&comparison, "%s", t->search_id);
    if (++t->comparisons > 1) /* no two of a search share a text */
        buf_addf(&comparison, " %d", t->comparisons);
    buf_addf(&comparison, "%s", mark);
    return comparison_store(t->db, t->study, candidates, trials, count, comparison.ptr,
                            t->search_id, st);
}

/* Appends the other ways in which plans run: with the schedules that were fitted to them and, with
 * lengths, with rows of padding.  Baselines run on packed tokens, as the search has timed them.  A
 * taught search does not run again what a plan's fitted schedules have beaten. */
static int add_ways(const struct tuner *t, struct candidate *candidates, int count)
{
    int all = count;
    for (int i = 0; i < count; i++) {
        const struct candidate *fitted = fitted_find(&t->fitted, candidates[i].plan);
        if (t->taught && fitted != NULL) {
            candidates[i] = *fitted;
            candidates[i].packed = t->segments.packed;
        }
        if (t->segments.packed && !baselines_have(&t->o->baselines, candidates[i].plan)) {
            candidates[all] = candidates[i];
            candidates[all++].packed = false;
        }
        if (fitted != NULL && !same_choices(fitted, &candidates[i])) {
            candidates[all] = *fitted;
            candidates[all++].packed = t->segments.packed;
        }
    }
    return all;
}

/* Puts the fastest of each plan that ran in several ways in its place. */
static void keep_fastest(struct candidate *candidates, struct trial *trials, int count, int all)
{
    for (int other = count; other < all; other++) {
        int i = 0;
        while (!plan_equal(candidates[i].plan, candidates[other].plan))
            i++;
        if (trials[other].status != TRIAL_OK ||
            (trials[i].status == TRIAL_OK && trials[i].ms.median <= trials[other].ms.median))
            continue;
        struct trial slower = trials[i];
        struct candidate its = candidates[i];
        trials[i] = trials[other], candidates[i] = candidates[other];
        trials[other] = slower, candidates[other] = its;
    }
}

static void say_failures(const struct tuner *t, const struct candidate *candidates,
                         const struct trial *trials, int count)
{
    for (int i = 0; i < count; i++)
        if (trials[i].status == TRIAL_FAILED)
            tuner_say(t, "%u fails in the finals%s: %s", plan_value(candidates[i].plan),
                      t->segments.packed && !candidates[i].packed ? " with rows of padding" : "",
                      trials[i].reason.message);
}

/* Stores the first `count` trials, by which plans are judged, and in front of them those of the
 * others that failed: who reads a plan's newest trial finds the former. */
static int store_ways(struct tuner *t, const char *mark, const struct candidate *candidates,
                      const struct trial *trials, int count, int all, struct status *st)
{
    SCOPED struct candidate *stored = mem_alloc((size_t)all + 1, sizeof(*stored));
    SCOPED struct trial *of_stored = mem_alloc((size_t)all + 1, sizeof(*of_stored));
    int n = 0;
    for (int i = count; i < all; i++)
        if (trials[i].status == TRIAL_FAILED)
            stored[n] = candidates[i], of_stored[n++] = trials[i];
    for (int i = 0; i < count; i++)
        stored[n] = candidates[i], of_stored[n++] = trials[i];
    return store(t, mark, stored, of_stored, n, st);
}

/* Times the contenders interleaved and stores the trials.  Adds what ran to out, if it is given. */
static int compare(struct tuner *t, const struct lineup *l, const char *mark, struct history *out,
                   struct status *st)
{
    enum { WAYS = 3 };
    SCOPED struct candidate *candidates =
        mem_alloc(WAYS * (size_t)l->count + 1, sizeof(*candidates));
    SCOPED struct trial *trials = mem_alloc(WAYS * (size_t)l->count + 1, sizeof(*trials));
    int kept = runnable(t, l->items, l->count, candidates);
    int all = out == NULL ? add_ways(t, candidates, kept) : kept;
    int result = kept > 0 ? bench_compare(t->bench, candidates, all, &l->how, trials, st) : 0;
    if (result == 0) {
        say_failures(t, candidates, trials, all);
        keep_fastest(candidates, trials, kept, all);
        result = store_ways(t, mark, candidates, trials, kept, all, st);
    }
    for (int i = 0; i < kept; i++) {
        if (result == 0 && out != NULL && trials[i].status == TRIAL_OK)
            history_add(out, candidates[i].plan, outcome_of(TRIAL_OK, trials[i].ms));
    }
    for (int i = 0; i < all; i++)
        trial_release(&trials[i]);
    return result;
}

static int hold(struct tuner *t, const struct contest *contest, const struct history *from,
                struct history *out, struct status *st)
{
    if (history_best(from) < 0)
        return 0;
    SCOPED_BY(lineup_release) struct lineup l = lineup_in_time(t, from, contest);
    if (l.count > 0) {
        tuner_step(t, PHASE_FINALS, 0, 0, NULL);
        tuner_say(t, "timing %d %s side by side%s", l.count, contest->name,
                  l.cut_short ? ", as many as the time limit allows" : "");
        return compare(t, &l, l.cut_short ? contest->mark_cut_short : contest->mark, out, st);
    }
    if (!t->told.no_time)
        tuner_say(t, "no time is left to compare %s; a search with more time compares them first",
                  contest->name);
    t->told.no_time = true;
    return 0;
}

/* Schedules in plans: the fastest of those that will contend try other ones. */
static int try_schedules(struct tuner *t, const struct contest *finals, const struct history *from,
                         struct status *st)
{
    if (is_exhaustive(t) || history_best(from) < 0)
        return 0;
    SCOPED_BY(lineup_release) struct lineup l = lineup_in_time(t, from, finals);
    const int most = t->taught ? FITTED_TAUGHT : FITTED;
    return fit_schedules(t, l.items, l.fastest < most ? l.fastest : most, st);
}

struct refined {
    const char *comparison;
    struct history *out;
};

static int refined_row(void *ctx, const struct db_trial *row)
{
    const struct refined *r = ctx;
    if (strcmp(row->comparison, r->comparison) == 0 && row->status == TRIAL_OK)
        history_add(r->out, plan_from_value((unsigned)row->value), outcome_of_row(row));
    return 0;
}

/* mark_cut_short begins with mark. */
static bool refines(const char *comparison)
{
    return strstr(comparison, refining.mark) != NULL;
}

/* Adds the plans that the finals choose from: those of the refining with which an interrupted
 * search ended, else those that an exhaustive search refines here. */
static int refine(struct tuner *t, const char *compared, struct history *out, struct status *st)
{
    struct refined r = {compared, out};
    if (refines(compared))
        return db_trial_times(t->db, t->study, DB_TRIAL_FINAL, refined_row, &r, st);
    if (is_exhaustive(t))
        return hold(t, &refining, &t->history, out, st);
    return 0;
}

static int newest_refining(void *ctx, const struct db_trial *row)
{
    bool *cut_short = ctx;
    if (refines(row->comparison))
        *cut_short = strstr(row->comparison, refining.mark_cut_short) != NULL;
    return 0;
}

/* Whether a time limit cut the newest refining short, or left it out (lacking), and this search has
 * time for all of it. */
static int can_widen(struct tuner *t, bool lacking, bool *out, struct status *st)
{
    *out = lacking;
    if (!lacking && db_trial_times(t->db, t->study, DB_TRIAL_FINAL, newest_refining, out, st) != 0)
        return -1;
    if (*out) {
        SCOPED_BY(lineup_release) struct lineup l = lineup_in_time(t, &t->history, &refining);
        *out = l.count > 0 && !l.cut_short;
    }
    return 0;
}

/* 1 if a comparison lacks a baseline that could have been in it, 0 if not; -1 on a failure. */
static int lacks_baseline(const struct tuner *t, const char *comparison, struct status *st)
{
    const struct baselines *wanted = &t->o->baselines;
    int found = 1;
    for (int i = 0; i < wanted->count && found > 0; i++) {
        struct candidate c;
        struct plan p = wanted->plans[i];
        if (history_find(&t->history, p) == NULL ||
            plan_candidate(&t->segments, NULL, p, &c, STATUS_IGNORED) != 0)
            continue;
        SCOPED_BY(db_time_release) struct db_time time;
        found = db_time(t->db, t->study, (int)plan_value(p), comparison, &time, st);
    }
    return found < 0 ? -1 : found == 0;
}

/* Whether the finals had no time for a refining before them. */
static bool lacks_refining(const char *comparison)
{
    return strstr(comparison, MARK_UNREFINED) != NULL;
}

/* Appends the text of the comparison after which no plan was measured; nothing if there is none, if
 * it lacks a baseline, or if a wider refining is due.  *held: it was that of the finals. */
static int read_compared(struct tuner *t, struct buf *out, bool *held, struct status *st)
{
    bool widen = false;
    int result = db_compared(t->db, t->study, out, st);
    if (result == 0 && out->len > 0 && is_exhaustive(t))
        result = can_widen(t, lacks_refining(out->ptr), &widen, st);
    int lacks =
        result == 0 && out->len > 0 && !refines(out->ptr) ? lacks_baseline(t, out->ptr, st) : 0;
    if (lacks < 0)
        result = -1;
    if (widen || lacks > 0)
        buf_reset(out);
    *held = out->len > 0 && !refines(out->ptr);
    return result;
}

int finals_held(struct tuner *t, bool *out, struct status *st)
{
    SCOPED_BUF compared = BUF_INIT;
    return read_compared(t, &compared, out, st);
}

/* So many seconds of each plan tell plans of a GPU apart, as no other program disturbs them: the
 * samples of an interval are enough of a plan that takes longer. */
#define UNDISTURBED_S 0.06

struct sampling final_sampling(enum target_kind target)
{
    struct sampling how = sampling_final;
    if (target == TARGET_CUDA) {
        how.min_samples = SAMPLES_OF_AN_INTERVAL;
        how.min_seconds = UNDISTURBED_S;
    }
    return how;
}

int measure_finals(struct tuner *t, struct status *st)
{
    SCOPED_BY(history_release) struct history refined = {.count = 0};
    struct contest finals = {.name = "finalists",
                             .how = final_sampling(t->segments.target),
                             .share = 1,
                             .mark = "",
                             .mark_cut_short = ""};
    SCOPED_BUF compared = BUF_INIT;
    bool held;
    if (read_compared(t, &compared, &held, st) != 0)
        return -1;
    if (held)
        return 0;
    if (refine(t, compared.ptr, &refined, st) != 0)
        return -1;
    if (is_exhaustive(t) && refined.count == 0)
        finals.mark = finals.mark_cut_short = MARK_UNREFINED; /* a later search holds both */
    struct finalist found[FINALISTS_MOST];
    const struct history *from = refined.count > 0 ? &refined : &t->history;
    finals.fastest = finalists_of(from, &t->segments.times, found);
    return try_schedules(t, &finals, from, st) == 0 ? hold(t, &finals, from, NULL, st) : -1;
}

int compare_again(struct tuner *t, struct plan p, struct status *st)
{
    const struct contest again = {.name = "plans",
                                  .fastest = 0,
                                  .how = sampling_final, /* nothing else takes time */
                                  .share = 1,
                                  .mark = "",
                                  .mark_cut_short = ""};
    SCOPED_BY(history_release) struct history best = {.count = 0};
    for (int i = 0; i < t->history.count; i++)
        if (plan_equal(t->history.items[i].plan, p))
            history_add(&best, p, t->history.items[i].outcome);
    return hold(t, &again, &best, NULL, st);
}
