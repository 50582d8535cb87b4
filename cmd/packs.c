#include "cmd/plans.h"

/* The directory of packs: FUSEPLAN_WISDOM, else that of the installation or of the build. */
static int find_directory(struct buf *out, struct status *st)
{
    const char *named = variable_value("FUSEPLAN_WISDOM");
    if (named != NULL) {
        buf_adds(out, named);
        return file_exists(named)
                   ? 0
                   : status_set(st, STATUS_USAGE,
                                "FUSEPLAN_WISDOM is '%s', and there is no such directory", named);
    }
    if (program_directory(out, st) != 0)
        return -1;
    buf_adds(out, "/../share/fuseplan/wisdom");
    return 0;
}

int pack_open(const char *path, const struct workload *only, struct db **out, struct status *st)
{
    struct db_moved moved;
    SCOPED_BUF text = BUF_INIT;
    if (db_open_scratch(out, st) != 0)
        return -1;
    if (only != NULL)
        workload_text(only, &text);
    if ((only != NULL ? db_import_workload(*out, path, text.ptr, st)
                      : db_import(*out, &path, 1, &moved, st)) == 0)
        return 0;
    db_close(*out);
    *out = NULL;
    return -1;
}

void pack_note(const struct options *o, const char *what, const char *pack,
               const struct db_study *s, const struct db_best *b, const struct fingerprint *here)
{
    bool own = here->uuid[0] != '\0' && strcmp(s->target.uuid, here->uuid) == 0;
    note(o, "%s from the pack '%s', measured on '%s' on %.10s%s", what, pack, s->target.device,
         b->measured_utc, own ? "" : ", not on this machine");
}

/* ---- a workload in packs --------------------------------------------------------------------- */

struct asked {
    const struct options *o;
    struct target_name target;
    const struct workload *w;
};

/* Whether a pack's study of the workload counts here; reads its plan. */
static int check_study(const struct asked *a, struct db *db, int64_t study, struct db_best *best,
                       struct status *st)
{
    const struct build_target here = target_build(a->target, a->w);
    struct candidate c;
    return db_best(db, study, best, st) == 0 ? candidate_of_best(best, &here, &c, st) : -1;
}

/* With --verbose says what a pack knows of the workload on other devices. */
static void note_others(const struct asked *a, const char *path, struct db *db)
{
    struct fingerprint here;
    struct db_study stored;
    SCOPED_BUF texts = BUF_INIT;
    int64_t study;
    if (!options_has(a->o, OPT(VERBOSE)) ||
        study_of_workload(a->o, db, a->target, a->w, &study, STATUS_IGNORED) != 0)
        return;
    fingerprint_device(a->target, &here);
    if (db_study_read(db, study, &texts, &stored, STATUS_IGNORED) == 0)
        note(a->o, "the pack '%s' has this workload of '%s', and the device here is '%s'", path,
             stored.target.device, here.device);
}

/* Takes the study of a pack in place of *out, if it counts and was measured later than `utc`. */
static void look(const struct asked *a, const char *path, struct found_study *out,
                 char utc[CLOCK_UTC_SIZE])
{
    SCOPED_BY(found_study_close) struct found_study pack = {.db = NULL};
    SCOPED_BY(db_best_release) struct db_best best = {.value = -1};
    struct status why = STATUS_INIT;
    if (pack_open(path, a->w, &pack.db, &why) != 0) {
        note(a->o, "a pack is left out: %s", why.message);
        return;
    }
    int found = study_of_device(a->o, pack.db, a->target, a->w, &pack.study, &why);
    if (found == 0)
        note_others(a, path, pack.db);
    if (found > 0 && check_study(a, pack.db, pack.study, &best, &why) != 0) {
        if (options_has(a->o, OPT(VERBOSE)))
            note(a->o, "the plan of the pack '%s' is left out: %s", path, why.message);
    } else if (found > 0 && strcmp(best.measured_utc, utc) > 0) {
        snprintf(utc, CLOCK_UTC_SIZE, "%s", best.measured_utc);
        pack.pack = mem_strdup(path);
        found_study_close(out);
        *out = pack;
        pack.db = NULL;
        pack.pack = NULL;
    }
}

void packs_find(const struct options *o, struct target_name target, const struct workload *w,
                struct found_study *out)
{
    const struct asked asked = {o, target, w};
    SCOPED_BY(names_release) struct names names = {.count = 0};
    struct status failed = STATUS_INIT;
    SCOPED_BUF path = BUF_INIT;
    char utc[CLOCK_UTC_SIZE] = "";
    *out = (struct found_study){.db = NULL};
    if (find_directory(&path, &failed) != 0 || directory_list(path.ptr, &names, &failed) != 0)
        note(o, "packs are left out: %s", failed.message);
    size_t directory = path.len;
    for (int i = 0; i < names.count; i++) {
        path.len = directory;
        buf_addf(&path, "/%s", names.items[i]);
        if (file_has_suffix(names.items[i], ".ndjson"))
            look(&asked, path.ptr, out, utc);
    }
}
