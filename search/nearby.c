/* Workloads whose segments were timed, as the databases hold them. */
#include "search/estimate_int.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- which studies --------------------------------------------------------------------------- */

struct study_near {
    struct db *db; /* borrowed */
    int64_t id;
    struct workload workload; /* without its mask */
    char device[128], protocol[16], init[16];
    uint64_t seed;
    int units;
    int fits;     /* how much it has in common with what is asked for */
    double ratio; /* of its tokens to those of the workload asked for, or the inverse */
    int index;    /* as they were found */
};

struct finding {
    const struct estimate_question *q;
    struct db *db;              /* that is being read */
    struct study_near *studies; /* (count) owned, the newest of each database first */
    int count;
};

static bool is_wanted(const char *wanted, const char *text)
{
    return wanted != NULL && wanted[0] != '\0' && strcmp(wanted, text) == 0;
}

static double ratio(double a, double b)
{
    return fmax(a, b) / fmax(fmin(a, b), 1);
}

static double tokens_ratio(const struct workload *a, const struct workload *b)
{
    return ratio((double)workload_tokens(a), (double)workload_tokens(b));
}

/* Padding changes what some implementations compute, so workloads with and without lengths tell
 * nothing of one another. */
static bool is_alike(const struct workload *a, const struct workload *b)
{
    return same_layers(a, b) && (a->lengths == NULL) == (b->lengths == NULL) &&
           tokens_ratio(a, b) <= KNOWN_FACTOR;
}

static void note_study(void *ctx, const struct db_listed *l)
{
    struct finding *f = ctx;
    const struct db_study *here = f->q->here;
    struct study_near s = {
        .db = f->db, .id = l->study, .seed = l->workload.seed, .units = (int)l->target.units};
    struct status unreadable = STATUS_INIT; /* of another version */
    if (strcmp(l->target.kind, target_names[f->q->target]) != 0)
        return;
    if (workload_parse(l->workload.text, &s.workload, &unreadable) != 0 ||
        s.workload.mask_spec.path != NULL || !is_alike(&s.workload, f->q->workload)) {
        workload_release(&s.workload);
        return;
    }
    snprintf(s.device, sizeof(s.device), "%s", l->target.device);
    snprintf(s.protocol, sizeof(s.protocol), "%s", l->protocol);
    snprintf(s.init, sizeof(s.init), "%s", l->workload.init);
    s.fits = 4 * is_wanted(here->target.device, s.device) +
             2 * is_wanted(here->protocol, s.protocol) + is_wanted(here->init, s.init);
    s.ratio = tokens_ratio(&s.workload, f->q->workload);
    s.index = f->count;
    f->studies = mem_resize(f->studies, (size_t)f->count + 1, sizeof(*f->studies));
    f->studies[f->count++] = s;
}

/* The nearest first; of as many tokens, the newest of the first database. */
static int by_tokens(const void *a, const void *b)
{
    const struct study_near *x = a, *y = b;
    return x->ratio != y->ratio ? (x->ratio > y->ratio) - (x->ratio < y->ratio)
                                : x->index - y->index;
}

static bool go_together(const struct study_near *a, const struct study_near *b)
{
    return strcmp(a->device, b->device) == 0 && strcmp(a->protocol, b->protocol) == 0 &&
           strcmp(a->init, b->init) == 0 && a->seed == b->seed;
}

/* ---- what they know -------------------------------------------------------------------------- */

static bool is_read(const struct known_workloads *k, const struct workload *w)
{
    struct buf one, other;
    bool same = false;
    buf_init(&one);
    workload_text(w, &one);
    for (int i = 0; i < k->count && !same; i++) {
        buf_init(&other);
        workload_text(&k->items[i].workload, &other);
        same = strcmp(one.ptr, other.ptr) == 0;
        buf_release(&other);
    }
    buf_release(&one);
    return same;
}

static void release(struct known_workload *w)
{
    workload_release(&w->workload);
    slot_records_release(w->slots);
    history_release(&w->plans);
}

static bool any_ran(const struct known_workload *w)
{
    for (int i = 0; i < SLOT_COUNT; i++)
        if (w->slots[i].impl != NULL)
            return true;
    return false;
}

static int read_one(const struct study_near *s, struct known_workloads *k, struct status *st)
{
    struct known_workload w = {.plans = {.count = 0}};
    workload_copy(&w.workload, &s->workload);
    int result = slot_records_read(s->db, s->id, k->target, w.slots, st);
    if (result == 0)
        result = study_history(s->db, s->id, &w.plans, st);
    if (result == 0 && any_ran(&w)) {
        result = workload_build_mask(&w.workload, NULL, st);
        mask_release(&w.workload.mask);
        if (result == 0) {
            k->items = mem_resize(k->items, (size_t)k->count + 1, sizeof(*k->items));
            k->items[k->count++] = w;
            return 0;
        }
    }
    release(&w);
    return result;
}

int known_read(struct db *const databases[2], const struct estimate_question *q,
               struct known_workloads *out, struct status *st)
{
    struct finding f = {.q = q};
    const struct study_near *first = NULL;
    int result = 0;
    *out = (struct known_workloads){.target = q->target};
    for (int i = 0; i < 2 && result == 0; i++) {
        f.db = databases[i];
        if (f.db != NULL)
            result = db_list(f.db, note_study, &f, st);
    }
    if (f.count > 0)
        qsort(f.studies, (size_t)f.count, sizeof(*f.studies), by_tokens);
    for (int i = 0; i < f.count; i++)
        if (first == NULL || f.studies[i].fits > first->fits)
            first = &f.studies[i];
    for (int i = 0; i < f.count && first != NULL && out->count < KNOWN_MOST && result == 0; i++)
        if (go_together(first, &f.studies[i]) && !is_read(out, &f.studies[i].workload))
            result = read_one(&f.studies[i], out, st);
    if (out->count > 0 && first != NULL) {
        out->units = first->units;
        snprintf(out->device, sizeof(out->device), "%s", first->device);
        snprintf(out->protocol, sizeof(out->protocol), "%s", first->protocol);
    }
    for (int i = 0; i < f.count; i++)
        workload_release(&f.studies[i].workload);
    free(f.studies);
    return result;
}

void known_release(struct known_workloads *k)
{
    for (int i = 0; i < k->count; i++)
        release(&k->items[i]);
    free(k->items);
    *k = (struct known_workloads){.count = 0};
}

/* ---- how near they are ----------------------------------------------------------------------- */

double workload_distance(const struct workload *a, const struct workload *b)
{
    const struct block_lists *x = &a->blocks, *y = &b->blocks;
    return fmax(tokens_ratio(a, b), ratio((double)(x->blocks_full + x->blocks_partial),
                                          (double)(y->blocks_full + y->blocks_partial)));
}

bool is_seen(const struct view *v, int i)
{
    return i != v->judged && (v->left_out == NULL || !v->left_out[i]);
}

const struct workload *estimated(const struct view *v)
{
    return v->judged >= 0 ? &v->k->items[v->judged].workload : v->asked;
}

int by_key(const void *a, const void *b)
{
    const struct ranked *x = a, *y = b;
    return x->key != y->key ? (x->key > y->key) - (x->key < y->key) : x->index - y->index;
}

int nearest_first(const struct view *v, struct ranked *out)
{
    int count = 0;
    for (int i = 0; i < v->k->count; i++)
        if (is_seen(v, i))
            out[count++] =
                (struct ranked){i, workload_distance(estimated(v), &v->k->items[i].workload)};
    qsort(out, (size_t)count, sizeof(*out), by_key);
    return count;
}
