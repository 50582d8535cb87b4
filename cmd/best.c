#include "cmd/plans.h"

int best_of_study(const struct session *s, struct db_best *out, struct status *st)
{
    struct status missing = STATUS_INIT;
    if (db_best(s->db, s->study, out, &missing) == 0)
        return 0;
    if (missing.code == STATUS_NOT_FOUND)
        return known_refuse(s->db, &missing, st);
    *st = missing;
    return -1;
}

struct noting {
    const struct options *o;
    const struct db_best *best;
    const char *pack; /* that it is from; null: the database */
    struct fingerprint here;
    char unstable[UNSTABLE_SIZE];
};

/* Says which plan the best is, and where its time is from. */
static void note_best(const struct noting *n, const struct db_study *study)
{
    const char *device = study->target.device;
    bool elsewhere = n->here.device[0] != '\0' && strcmp(n->here.device, device) != 0;
    SCOPED_BUF name = BUF_INIT;
    plan_add((unsigned)n->best->value, &name);
    note(n->o, "the best plan known is %s%s: %.*f ms on '%s'%s", name.ptr,
         n->best->packed ? ", packed" : "", ms_decimals(n->best->ms.median), n->best->ms.median,
         device, elsewhere ? ", another device than the one here" : "");
    if (n->pack != NULL)
        pack_note(n->o, "it is", n->pack, study, n->best, &n->here);
    if (n->unstable[0] != '\0')
        note(n->o, "its time is unstable, and it may not be the fastest: %s", n->unstable);
}

static int find_best(const struct options *o, enum scope scope, struct best_plan *out,
                     struct status *st)
{
    SCOPED_BY(session_close) struct session s;
    SCOPED_BY(db_best_release) struct db_best best = {.value = -1};
    struct noting noting = {.o = o, .best = &best};
    struct db_study study;
    SCOPED_BUF texts = BUF_INIT;
    if (session_open_study(o, DB_READ, scope, &s, st) != 0 || best_of_study(&s, &best, st) != 0 ||
        plan_unstable(s.db, s.study, best.value, best.comparison, noting.unstable, st) != 0 ||
        db_study_read(s.db, s.study, &texts, &study, st) != 0)
        return -1;
    fingerprint_device(s.target, &noting.here);
    noting.pack = s.pack;
    *out = (struct best_plan){.known = true,
                              .plan = plan_from_value((unsigned)best.value),
                              .padded = s.workload.lengths != NULL && !best.packed,
                              .median_ms = best.ms.median};
    note_best(&noting, &study);
    return 0;
}

/* Whether a list with commas between its words has the word. */
static bool lists_best(const char *list)
{
    for (const char *word = list; word != NULL; word = strchr(word, ',')) {
        word += *word == ',';
        size_t len = strcspn(word, ",");
        if (len == strlen(BEST_WORD) && strncmp(word, BEST_WORD, len) == 0)
            return true;
    }
    return false;
}

int session_best(const struct options *o, enum scope scope, struct best_plan *out,
                 struct status *st)
{
    *out = (struct best_plan){.known = false};
    for (int i = 0; i < o->operand_count; i++)
        if (strcmp(o->operands[i], BEST_WORD) == 0)
            return find_best(o, scope, out, st);
    if (o->baseline == NULL || !lists_best(o->baseline) || find_best(o, scope, out, st) == 0)
        return 0;
    return status_prefix(st, "--baseline");
}

static int default_plan(const struct options *o, struct plan *out, struct status *st)
{
    struct target_name target;
    SCOPED_BY(workload_release) struct workload w;
    SCOPED_BUF name = BUF_INIT;
    if (workload_from_options(o, true, &target, &w, st) != 0)
        return -1;
    struct build_target build = target_build(target, &w);
    build.precision = o->precision;
    if (!plan_expected(&build, out))
        *out = plan_from_value(VALUE_FUSED);
    plan_add(plan_value(*out), &name);
    note(o, "the default plan is %s", name.ptr);
    return 0;
}

int plan_from_text(const struct options *o, const char *text, const struct best_plan *best,
                   struct plan *out, struct status *st)
{
    unsigned value;
    *out = (struct plan){.fused = 0};
    if (best->known && strcmp(text, BEST_WORD) == 0) {
        *out = best->plan;
        return 0;
    }
    if (strcmp(text, DEFAULT_WORD) == 0)
        return default_plan(o, out, st);
    if (plan_parse_value(text, &value, st) != 0)
        return -1;
    if (plan_canonical(value) != value)
        note(o, "%u names the same plan as %u", value, plan_canonical(value));
    *out = plan_from_value(value);
    return 0;
}

void words_plans(struct buf *out)
{
    buf_adds(out, BEST_WORD " " DEFAULT_WORD);
}
