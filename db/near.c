#include "db/db_int.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* ---- masks of a family ----------------------------------------------------------------------- */

/* Where the mask's parameters begin in the text of a workload, which its mask ends: at ':' or at
 * the end.  Null for the mask of a file and for another chain than BERT's, which have no family. */
static const char *parameters_of(const char *workload)
{
    const char *mask = strstr(workload, " mask=");
    if (mask == NULL || strncmp(mask, " mask=file:", strlen(" mask=file:")) == 0 ||
        strstr(mask, " chain=") != NULL)
        return NULL;
    return mask + strcspn(mask, ":");
}

/* The value of the parameter whose name ends at `end`, in other parameters; NaN if they lack it. */
static double same_parameter(const char *name, const char *end, const char *others)
{
    size_t len = (size_t)(end - name);
    for (const char *at = others; *at != '\0'; at += strcspn(at, ",")) {
        at += *at == ':' || *at == ',';
        if (strncmp(at, name, len) == 0 && at[len] == '=')
            return strtod(at + len + 1, NULL);
    }
    return NAN;
}

/* How far parameters are apart: the sum over the parameters of `a` of |log(value / other value)|.
 */
static double distance(const char *a, const char *b)
{
    double sum = 0;
    for (const char *at = a; *at != '\0'; at += strcspn(at, ",")) {
        at += *at == ':' || *at == ',';
        const char *end = at + strcspn(at, "=");
        if (*end == '\0')
            break;
        double x = strtod(end + 1, NULL), y = same_parameter(at, end, b);
        sum += isnan(y) ? 1 : fabs(log((x + 1) / (y + 1)));
    }
    return sum;
}

struct relative {
    char *text; /* of the workload, owned */
    double distance;
};

struct family {
    const char *workload, *parameters, *target_kind;
    struct relative *relatives; /* (count) owned */
    size_t count;
};

static void add_relative(void *ctx, const struct db_workload *w, const char *target_kind)
{
    struct family *f = ctx;
    size_t len = (size_t)(f->parameters - f->workload);
    const char *parameters = parameters_of(w->text);
    if (parameters == NULL || strcmp(target_kind, f->target_kind) != 0 ||
        (size_t)(parameters - w->text) != len || strncmp(w->text, f->workload, len) != 0 ||
        strcmp(w->text, f->workload) == 0)
        return;
    f->relatives = mem_resize(f->relatives, f->count + 1, sizeof(*f->relatives));
    f->relatives[f->count++] =
        (struct relative){mem_strdup(w->text), distance(f->parameters, parameters)};
}

static int by_distance(const void *a, const void *b)
{
    const struct relative *x = a, *y = b;
    int order = (x->distance > y->distance) - (x->distance < y->distance);
    return order != 0 ? order : strcmp(x->text, y->text);
}

/* ---- studies --------------------------------------------------------------------------------- */

struct device {
    const char *wanted;
    bool same;
};

static void compare_device(void *ctx, const struct db_study *s)
{
    struct device *d = ctx;
    d->same = strcmp(s->target.device, d->wanted) == 0;
}

/* The study of one workload that says most, if a plan ran in it; 1, 0 or -1. */
static int find_study(struct db *db, const struct db_wanted *w, const char *workload,
                      int64_t *study, struct status *st)
{
    struct status missing = STATUS_INIT;
    struct device device = {w->near->target.device, false};
    struct db_best best = {.value = -1};
    int64_t trial = 0;
    if (db_study_find(db, workload, w->target_kind, w->near, study, &missing) != 0) {
        if (missing.code != STATUS_NOT_FOUND)
            *st = missing;
        return missing.code == STATUS_NOT_FOUND ? 0 : -1;
    }
    if (db_study_read(db, *study, compare_device, &device, st) != 0)
        return -1;
    if (w->same_device && !device.same)
        return 0;
    int ran = db_winner(db, *study, &best, &trial, st);
    db_best_release(&best);
    return ran;
}

int db_study_near(struct db *db, const struct db_wanted *w, int64_t *study, struct status *st)
{
    if (!w->family)
        return find_study(db, w, w->workload, study, st);
    struct family f = {.workload = w->workload,
                       .parameters = parameters_of(w->workload),
                       .target_kind = w->target_kind};
    int found = f.parameters != NULL ? db_workloads(db, add_relative, &f, st) : 0;
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
