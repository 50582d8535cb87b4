#include "cmd/generate_int.h"
#include "cmd/plans.h"

/* ---- what the database knows ----------------------------------------------------------------- */

static int read_trial(void *ctx, const struct db_trial *row)
{
    struct schedules *s = ctx;
    int i = candidate_find(&s->candidate, s->target, &row->choices[0]);
    if (i >= 0 && row->status == TRIAL_OK) {
        s->measured++;
        s->resources[i] = json_loads(row->resources, 0, NULL);
    } else if (i >= 0 && row->status == TRIAL_FAILED) {
        s->failed[i] = mem_strdup(row->reason);
    }
    return 0;
}

struct comparison {
    const struct candidate *fastest; /* on the measured device */
    struct schedules *out;
};

/* Marks a choice in whose place a faster one was measured. */
static int compare_trial(void *ctx, const struct db_trial *row)
{
    struct comparison *c = ctx;
    struct schedules *s = c->out;
    int i = candidate_find(c->fastest, s->target, &row->choices[0]);
    if (i >= 0 && row->status == TRIAL_OK)
        s->replaced[i] = !choice_equal(&c->fastest->choices[i], &s->candidate.choices[i]);
    return 0;
}

static int compare(struct db *db, int64_t study, const struct choosing *c, struct chosen *part,
                   struct status *st)
{
    struct candidate fastest;
    struct schedules *s = &part->schedules;
    struct build_target device = c->build;
    device.arch = s->device_arch;
    const struct choice_source from = {.db = db, .study = study, .target = &device};
    if (study_candidate(&from, s->candidate.plan, &fastest, st) != 0)
        return -1;
    struct comparison comparison = {&fastest, s};
    return db_trials(db, study, DB_TRIAL_SEGMENT, compare_trial, &comparison, st);
}

static int read_study(struct db *db, int64_t study, const struct choosing *c, struct chosen *part,
                      struct status *st)
{
    struct schedules *s = &part->schedules;
    struct fingerprint here;
    struct db_study stored;
    SCOPED_BUF texts = BUF_INIT;
    fingerprint_device(c->target, &here);
    if (db_study_read(db, study, &texts, &stored, st) != 0)
        return -1;
    const struct db_target *t = &stored.target;
    s->device = mem_strdup(t->device);
    s->libraries = mem_strdup(t->libraries);
    s->elsewhere = here.device[0] != '\0' && strcmp(here.device, t->device) != 0;
    s->device_arch = build_target_of(TARGET_CUDA, t->capability, true, &part->workload).arch;
    if (db_trials(db, study, DB_TRIAL_SEGMENT, read_trial, s, st) != 0)
        return -1;
    return compare(db, study, c, part, st);
}

int schedules_choose(const struct options *o, const struct choosing *c, struct chosen *part,
                     struct status *st)
{
    SCOPED_BY(found_study_close) struct found_study found;
    part->schedules.target = c->build.kind;
    if (study_find_known(o, SCOPE_KNOWN, c->target, &part->workload, &found, st) != 0)
        return -1;
    const struct choice_source from = {
        .db = found.db, .study = found.study, .target = &c->build, .archs = &c->archs};
    part->schedules.pack = found.pack;
    found.pack = NULL;
    if (study_candidate(&from, part->plan, &part->schedules.candidate, st) != 0)
        return -1;
    return found.db != NULL ? read_study(found.db, found.study, c, part, st) : 0;
}

void schedules_release(struct schedules *s)
{
    for (int i = 0; i < OP_COUNT; i++) {
        json_decref(s->resources[i]);
        free(s->failed[i]);
    }
    free(s->pack);
    free(s->device);
    free(s->libraries);
    *s = (struct schedules){.measured = 0};
}

/* ---- for people ------------------------------------------------------------------------------ */

/* Appends the replaced segments: "0, 10-11". */
static void replaced_text(const struct schedules *s, struct buf *out)
{
    char range[12];
    for (int i = 0; i < s->candidate.count; i++)
        if (s->replaced[i])
            buf_addf(out, "%s%s", out->len > 0 ? ", " : "",
                     segment_text(s->candidate.choices[i].segment, range));
}

/* Says what a plan measured on one GPU runs with on others; false if that is what was measured. */
static bool note_replaced(const struct options *o, const struct choosing *c,
                          const struct schedules *s)
{
    SCOPED_BUF replaced = BUF_INIT, archs = BUF_INIT, measured = BUF_INIT;
    replaced_text(s, &replaced);
    for (int i = 0; i < c->archs.count; i++) {
        buf_adds(&archs, i > 0 ? "," : "");
        arch_name(c->archs.arch[i], &archs);
    }
    arch_name(s->device_arch, &measured);
    if (replaced.len > 0)
        note(o,
             "the plan was measured on '%s'; so that it runs on %s, ops %s take schedules that "
             "were slower there; '--arch %s' keeps the fastest",
             s->device, archs.ptr, replaced.ptr, measured.ptr);
    return replaced.len > 0;
}

static void note_failed(const struct options *o, const struct schedules *s)
{
    char range[12];
    for (int i = 0; i < s->candidate.count; i++)
        if (s->failed[i] != NULL)
            note(o, "the schedule of ops %s failed when it was measured: %s",
                 segment_text(s->candidate.choices[i].segment, range), s->failed[i]);
}

void schedules_note(const struct options *o, const struct choosing *c, const struct chosen *part)
{
    const struct schedules *s = &part->schedules;
    if (s->device == NULL) {
        note(o, "segments run with default schedules: no times of this workload are stored; "
                "'fuseplan search' finds faster ones");
        return;
    }
    const char *where = s->elsewhere ? ", another device than the one here" : "";
    if (s->pack != NULL)
        note(o, "schedules are from the pack '%s'", s->pack);
    if (note_replaced(o, c, s)) {
        note_failed(o, s);
        return;
    }
    if (s->measured == s->candidate.count)
        note(o, "segments run with the fastest schedules known, measured on '%s'%s", s->device,
             where);
    else
        note(o,
             "%d of %d segments run with the fastest schedules known, measured on '%s'%s; the "
             "others run with default schedules, 'fuseplan search' finds faster ones",
             s->measured, s->candidate.count, s->device, where);
    note_failed(o, s);
}
