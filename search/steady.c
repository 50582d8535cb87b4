/* Whether a plan's time can be relied on. */
#include "search/study_int.h"

/* A time in the finals is far from that in the search if the intervals, made wider by this, do not
 * meet.  A search times fewer layers, which may differ by what stays in the caches. */
#define FAR_RATIO 1.25

/* Whether the samples fall into two groups that are the plan's own: where those of a plan beside it
 * in the same rounds change with them, the machine's pace did, which comparisons leave out. */
static bool falls_apart(const struct trial *final, const struct trial *beside, struct groups *g)
{
    const size_t n = (size_t) final->sample_count;
    if (!stats_two_groups(final->samples_ms, n, g))
        return false;
    if (beside == NULL || beside->status != TRIAL_OK || beside->sample_count < final->sample_count)
        return true;
    SCOPED double *ratios = mem_alloc(n, sizeof(*ratios));
    struct groups of_ratios;
    for (size_t i = 0; i < n; i++)
        ratios[i] = final->samples_ms[i] / beside->samples_ms[i];
    return stats_two_groups(ratios, n, &of_ratios);
}

const struct trial *trial_fastest(const struct trial *trials, int count, const struct trial *but)
{
    const struct trial *fastest = NULL;
    for (const struct trial *t = trials; t < trials + count; t++)
        if (t != but && t->status == TRIAL_OK &&
            (fastest == NULL || t->sample_count > fastest->sample_count ||
             (t->sample_count == fastest->sample_count && t->ms.median < fastest->ms.median)))
            fastest = t;
    return fastest;
}

static void add_reason(struct buf *out, const char *text)
{
    buf_addf(out, "%s%s", out->len > 0 ? "; " : "", text);
}

void unstable_text(const struct trial *final, const struct trial *beside, struct interval in_search,
                   struct buf *out)
{
    char text[160];
    struct groups g;
    if (final->status != TRIAL_OK)
        return;
    if (falls_apart(final, beside, &g)) {
        snprintf(text, sizeof(text),
                 "its samples fall into two groups, %.4g ms and %.4g ms (%.0f %%)", g.low, g.high,
                 100 * g.high_share);
        add_reason(out, text);
    }
    if (final->ms.low > FAR_RATIO * in_search.high || final->ms.high * FAR_RATIO < in_search.low) {
        snprintf(text, sizeof(text), "it took %.4g ms in its search and %.4g ms side by side",
                 in_search.median, final->ms.median);
        add_reason(out, text);
    }
    if (conditions_crowded(&final->conditions)) {
        snprintf(text, sizeof(text), "its threads waited %.0f %% of their time for a core%s",
                 100 * final->conditions.waited_share,
                 conditions_throttled(&final->conditions) ? ", by the control group's quota" : "");
        add_reason(out, text);
    }
}

int trial_read(struct db *db, int64_t study, int value, const char *comparison, struct trial *out,
               bool *packed, char stored_utc[CLOCK_UTC_SIZE], struct status *st)
{
    SCOPED_BY(db_time_release) struct db_time t;
    int found = db_time(db, study, value, comparison, &t, st);
    if (packed != NULL)
        *packed = t.packed;
    *out = (struct trial){.status = isfinite(t.ms.median) ? TRIAL_OK : TRIAL_FAILED,
                          .ms = t.ms,
                          .sample_count = t.sample_count,
                          .samples_ms = t.samples_ms};
    if (found == 0)
        status_set(&out->reason, STATUS_NOT_FOUND, "it was not measured");
    else if (found > 0 && out->status != TRIAL_OK)
        status_set(&out->reason, STATUS_UNFIT, "%s", t.reason);
    if (stored_utc != NULL)
        snprintf(stored_utc, CLOCK_UTC_SIZE, "%s", t.stored_utc);
    conditions_parse(t.conditions != NULL ? t.conditions : "", &out->conditions);
    t.samples_ms = NULL; /* out owns them */
    return found;
}

int plan_unstable(struct db *db, int64_t study, int value, const char *comparison,
                  char out[UNSTABLE_SIZE], struct status *st)
{
    bool packed, own_packed;
    out[0] = '\0';
    if (comparison[0] == '\0')
        return 0;
    SCOPED_BY(trial_release) struct trial final, own, beside;
    int rival = value;
    bool read = trial_read(db, study, value, comparison, &final, &packed, NULL, st) >= 0;
    read = trial_read(db, study, value, "", &own, &own_packed, NULL, st) >= 0 && read;
    read = db_rival(db, study, value, comparison, &rival, st) >= 0 && read;
    read = trial_read(db, study, rival, comparison, &beside, NULL, NULL, st) >= 0 && read;
    SCOPED_BUF text = BUF_INIT;
    if (read)
        unstable_text(&final, rival != value ? &beside : NULL,
                      packed == own_packed ? own.ms : NO_INTERVAL, &text);
    snprintf(out, UNSTABLE_SIZE, "%s", text.len > 0 ? text.ptr : "");
    return read ? 0 : -1;
}

int plan_conditions(struct db *db, int64_t study, int value, const char *comparison,
                    struct conditions *out, struct status *st)
{
    SCOPED_BY(trial_release) struct trial trial;
    int found = trial_read(db, study, value, comparison, &trial, NULL, NULL, st);
    *out = trial.conditions;
    return found < 0 ? -1 : 0;
}
