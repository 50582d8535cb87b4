/* A search as the options say. */
#include "cmd/plans.h"
#include "cmd/search_int.h"
#include "cmd/sweep_int.h"

/* Says which plans are searched, if the values of --space are not canonical. */
static void note_space(const struct options *o)
{
    unsigned lo = o->space[0], hi = o->space[1], others = 0;
    for (unsigned value = lo; value <= hi; value++)
        others += plan_canonical(value) != value;
    if (others == 0 || !options_has(o, OPT(SPACE)))
        return;
    SCOPED struct plan *plans = mem_alloc(PLAN_SPACE, sizeof(*plans));
    int count = plan_space(lo, hi, plans);
    if (lo == hi)
        note(o, "%u names the same plan as %u, which is searched", lo, plan_canonical(lo));
    else
        note(o,
             "the %u values of --space name %d plans, which are searched by their canonical values",
             hi - lo + 1, count);
}

/* ---- a plan of a pack ------------------------------------------------------------------------ */

/* The plan that a pack has for a workload of which the database knows none on this device; 1 with
 * *out, 0 or -1. */
static int find_first(const struct options *o, const struct session *s, struct candidate *out,
                      struct status *st)
{
    SCOPED_BY(found_study_close) struct found_study pack = {.db = NULL};
    SCOPED_BY(db_best_release) struct db_best best = {.value = -1};
    struct fingerprint here;
    struct db_study stored;
    SCOPED_BUF texts = BUF_INIT;
    int64_t study;
    int known = study_of_device(o, s->db, s->target, &s->workload, &study, st);
    if (known == 0)
        packs_find(o, s->target, &s->workload, &pack);
    fingerprint_device(s->target, &here);
    bool found = pack.db != NULL && db_best(pack.db, pack.study, &best, STATUS_IGNORED) == 0 &&
                 candidate_of_best(&best, bench_target(s->bench), out, STATUS_IGNORED) == 0 &&
                 db_study_read(pack.db, pack.study, &texts, &stored, STATUS_IGNORED) == 0;
    if (found)
        pack_note(o, "the search begins with a plan", pack.pack, &stored, &best, &here);
    return known < 0 ? -1 : found;
}

/* ---- the command ----------------------------------------------------------------------------- */

static int search(const struct options *o, struct session *s, struct tune_options *t,
                  struct tune_report *out, struct status *st)
{
    struct candidate first;
    if (o->precision != 0) /* they are compared in the workload's dtype: see search_precision.c */
        t->baselines.count = 0;
    if (options_has(o, OPT(AGAIN)))
        return tune_again(s->bench, s->db, t, out, st);
    int found = find_first(o, s, &first, st);
    t->first = found > 0 ? &first : NULL;
    return found < 0 ? -1 : tune(s->bench, s->db, t, out, st);
}

int search_run(const struct options *o, struct session *s, struct tune_report *out,
               struct status *st)
{
    struct best_plan best;
    *s = (struct session){.bench = NULL};
    *out = (struct tune_report){.best.value = -1};
    struct tune_options t = {.search = {.strategy = &strategies[o->strategies.items[0]],
                                        .space_lo = o->space[0],
                                        .space_hi = o->space[1],
                                        .budget = o->budget,
                                        .time_limit_s = o->time_limit_s,
                                        .seed = o->seed,
                                        .quantile = o->quantile,
                                        .stop = &session_stop},
                             .rigor = o->rigor,
                             .say = note_line,
                             .retry_failed = options_has(o, OPT(RETRY_FAILED)),
                             .by_neighbour = session_turn != NULL,
                             .step = progress_search,
                             .ctx = (void *)(uintptr_t)o};
    if (o->rigor != RIGOR_MEASURE && options_has(o, OPT(STRATEGY)))
        return status_set(st, STATUS_USAGE,
                          "--strategy '%s' with --rigor %s, which asks no strategy; leave one of "
                          "them out",
                          t.search.strategy->name, rigor_names[o->rigor]);
    if (o->strategies.count > 1)
        return status_set(st, STATUS_USAGE,
                          "--strategy names %d strategies, and a search has one; 'fuseplan replay' "
                          "compares several",
                          o->strategies.count);
    if (options_has(o, OPT(AGAIN)) && t.retry_failed)
        return status_set(st, STATUS_USAGE,
                          "--again times nothing but the best plan and the baselines, and "
                          "--retry-failed what failed; leave one of them out");
    if (session_best(o, SCOPE_STORED, &best, st) != 0 ||
        baselines_from_options(o, &best, &t.baselines, st) != 0)
        return -1;
    note_space(o);
    if (session_open(o, 0, DB_WRITE, s, st) != 0)
        return -1;
    return search(o, s, &t, out, st);
}

int search_end(const struct options *o, const struct tune_report *r)
{
    if (session_stop != 0)
        note(o, "interrupted; all results are stored, and the same command goes on from here");
    else if (r->best.value < 0 && r->total_trials == 0)
        note(o, "no plan was tried within the time limit; raise --time-limit");
    else if (r->best.value < 0)
        note(o, "no plan ran; 'fuseplan bench %d' with this workload says why", VALUE_UNFUSED);
    return session_stop != 0 ? EXIT_INTERRUPTED : r->best.value < 0 ? EXIT_NO_RESULT : EXIT_SUCCESS;
}
