#include "db/db_int.h"

/* ---- workloads of a family ------------------------------------------------------------------- */

static const char *chain_name(const struct db_workload *w)
{
    return w->chain != NULL && w->chain[0] != '\0' ? w->chain : "bert";
}

/* Whether workloads agree in all but their masks. */
static bool agree(const struct db_workload *a, const struct db_workload *b)
{
    return a->batch == b->batch && a->seq_len == b->seq_len && a->heads == b->heads &&
           a->head_size == b->head_size && a->ffn == b->ffn && a->layers == b->layers &&
           a->eps == b->eps && strcmp(a->dtype, b->dtype) == 0 &&
           strcmp(a->lengths, b->lengths) == 0 && strcmp(chain_name(a), chain_name(b)) == 0;
}

struct relative {
    char *text; /* of the workload, owned */
    double distance;
};

struct family {
    const struct db_workload *workload;
    const char *target_kind;
    struct mask_spec mask;
    struct relative *relatives; /* (count) owned */
    size_t count;
};

static void add_relative(void *ctx, const struct db_workload *w, const char *target_kind)
{
    struct family *f = ctx;
    struct mask_spec mask;
    if (strcmp(target_kind, f->target_kind) != 0 || !agree(w, f->workload) ||
        strcmp(w->text, f->workload->text) == 0 || mask_parse(w->mask, &mask, STATUS_IGNORED) != 0)
        return;
    double distance = mask_distance(&f->mask, &mask);
    mask_spec_release(&mask);
    if (isnan(distance))
        return;
    f->relatives = mem_resize(f->relatives, f->count + 1, sizeof(*f->relatives));
    f->relatives[f->count++] = (struct relative){mem_strdup(w->text), distance};
}

static int by_distance(const void *a, const void *b)
{
    const struct relative *x = a, *y = b;
    int order = (x->distance > y->distance) - (x->distance < y->distance);
    return order != 0 ? order : strcmp(x->text, y->text);
}

/* ---- studies --------------------------------------------------------------------------------- */

/* The study of one workload that says most, if a plan ran in it; 1, 0 or -1. */
static int find_study(struct db *db, const struct db_wanted *w, const char *workload,
                      int64_t *study, struct status *st)
{
    struct status missing = STATUS_INIT;
    struct db_study found;
    SCOPED_BUF texts = BUF_INIT;
    SCOPED_BY(db_best_release) struct db_best best = {.value = -1};
    int64_t trial = 0;
    if (db_study_find(db, workload, w->target_kind, w->near, study, &missing) != 0)
        return status_unless_missing(&missing, st);
    if (db_study_read(db, *study, &texts, &found, st) != 0)
        return -1;
    if (w->same_device && strcmp(found.target.device, w->near->target.device) != 0)
        return 0;
    return db_winner(db, *study, &best, &trial, st);
}

int db_study_near(struct db *db, const struct db_wanted *w, int64_t *study, struct status *st)
{
    if (!w->family)
        return find_study(db, w, w->workload->text, study, st);
    struct family f = {.workload = w->workload, .target_kind = w->target_kind};
    if (mask_parse(w->workload->mask, &f.mask, st) != 0)
        return -1;
    int found = db_workloads(db, add_relative, &f, st);
    mask_spec_release(&f.mask);
    if (f.count > 0)
        qsort(f.relatives, f.count, sizeof(*f.relatives), by_distance);
    for (size_t i = 0; i < f.count; i++) {
        if (found == 0)
            found = find_study(db, w, f.relatives[i].text, study, st);
        free(f.relatives[i].text);
    }
    free(f.relatives);
    return found;
}
