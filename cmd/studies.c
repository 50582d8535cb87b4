#include "cmd/studies_int.h"

int study_find(const struct options *o, enum db_mode mode, bool near, struct target_name target,
               const struct workload *w, struct found_study *out, struct status *st)
{
    *out = (struct found_study){.db = NULL};
    if (db_open(o->db, mode, &out->db, st) != 0)
        return -1;
    int found = near ? study_near_workload(o, out->db, target, w, &out->study, st) : 0;
    if (found == 0)
        found = study_of_workload(o, out->db, target, w, &out->study, st);
    if (found >= 0)
        return 0;
    db_close(out->db);
    out->db = NULL;
    return -1;
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
