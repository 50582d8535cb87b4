#include "cmd/studies_int.h"

int databases_open(const struct options *o, enum db_mode mode, struct db *out[2], struct status *st)
{
    struct status missing = STATUS_INIT;
    out[0] = out[1] = NULL;
    if (mode == DB_READ && db_open_system(&out[1], st) != 0)
        return -1;
    if (db_open(o->db, mode, &out[0], &missing) == 0)
        return 0;
    if (missing.code == STATUS_NOT_FOUND && out[1] != NULL)
        return 0;
    *st = missing;
    return -1;
}

/* 1: a plan ran in the study, 0: none did, -1: failed. */
static int has_plan(struct db *db, int64_t study, struct status *st)
{
    struct db_best best = {.value = -1};
    struct status missing = STATUS_INIT;
    int result = db_best(db, study, &best, &missing);
    db_best_release(&best);
    if (result == 0 || missing.code == STATUS_NOT_FOUND)
        return result == 0;
    *st = missing;
    return -1;
}

/* In the user's database, unless no plan ran there and the system's has a study. */
static int find_exact(const struct options *o, struct db *const databases[2],
                      struct target_name target, const struct workload *w, struct found_study *out,
                      struct status *st)
{
    struct status missing = STATUS_INIT;
    int answered = 0;
    for (int i = 0; i < 2 && answered == 0; i++) {
        int64_t study;
        struct status failed = STATUS_INIT;
        if (databases[i] == NULL)
            continue;
        if (study_of_workload(o, databases[i], target, w, &study, &failed) == 0) {
            *out = (struct found_study){databases[i], study, i == 1};
            answered = i == 0 && databases[1] != NULL ? has_plan(databases[0], study, st) : 1;
        } else if (failed.code == STATUS_NOT_FOUND) {
            missing = failed;
        } else {
            *st = failed;
            answered = -1;
        }
    }
    if (answered < 0)
        return -1;
    if (out->db == NULL)
        *st = missing;
    return out->db != NULL ? 0 : -1;
}

static int find_near(const struct options *o, struct db *const databases[2],
                     struct target_name target, const struct workload *w, struct found_study *out,
                     struct status *st)
{
    struct db *db;
    int64_t study;
    int found = study_near_workload(o, databases, target, w, &db, &study, st);
    if (found > 0)
        *out = (struct found_study){db, study, db == databases[1]};
    return found;
}

int study_find(const struct options *o, enum db_mode mode, bool near, struct target_name target,
               const struct workload *w, struct found_study *out, struct status *st)
{
    struct db *databases[2];
    struct found_study found = {.db = NULL};
    *out = found;
    int result = databases_open(o, mode, databases, st);
    int stands_in = result == 0 && near ? find_near(o, databases, target, w, &found, st) : 0;
    if (stands_in < 0)
        result = -1;
    else if (result == 0 && stands_in == 0)
        result = find_exact(o, databases, target, w, &found, st);
    if (result == 0)
        *out = found;
    for (int i = 0; i < 2; i++)
        if (databases[i] != out->db)
            db_close(databases[i]);
    return result;
}

int study_find_known(const struct options *o, struct target_name target, const struct workload *w,
                     struct found_study *out, struct status *st)
{
    struct status missing = STATUS_INIT;
    if (study_find(o, DB_READ, false, target, w, out, &missing) == 0 ||
        missing.code == STATUS_NOT_FOUND)
        return 0;
    *st = missing;
    return -1;
}

int session_find_known(const struct options *o, const struct session *s, const char *what,
                       struct found_study *out, struct status *st)
{
    if (study_find_known(o, s->target, &s->workload, out, st) != 0)
        return -1;
    if (out->system)
        note(o, "%s from the system's database, '%s'", what, db_path(out->db));
    return 0;
}
