/* db: everything measured, in SQLite.
 *
 * The only folder that includes sqlite3.h.  Every call is a transaction of its own, so that what
 * was stored survives `kill -9`.  Names are stored, not indices; units are in column names; times
 * are UTC text.  To change the schema: a new migration in schema.c, never an edit of an old one. */
#ifndef FUSEPLAN_DB_H
#define FUSEPLAN_DB_H

#include "layer/layer.h"

struct db;

/* ---- open.c: the connection ------------------------------------------------------------------ */

enum db_mode {
    DB_READ,   /* never creates or migrates; STATUS_NOT_FOUND where the file does not exist */
    DB_UPDATE, /* never creates, likewise; migrates older versions */
    DB_WRITE   /* creates the file and its directory, migrates older versions */
};

/* path null: FUSEPLAN_DB, else fuseplan.db in the XDG data place. */
int db_open(const char *path, enum db_mode mode, struct db **out, struct status *st);
void db_close(struct db *db);
const char *db_path(const struct db *db);

/* ---- study.c: what trials are compared within ------------------------------------------------ */

/* The key's parts are texts, so that db need not know what they mean. */
struct db_workload {
    const char *text; /* normalised, unique: workload_text() */
    int64_t batch, seq_len, heads, head_size, ffn, layers;
    double eps;
    const char *dtype, *lengths, *mask;
    uint64_t seed;
    const char *init; /* "uniform" or "wide" */
};

struct db_target {
    const char *kind; /* "cpu", "cuda" */
    const char *device, *uuid, *capability, *driver, *compiler, *libraries;
    int64_t units;
};

/* A *study* is what trials are compared within: one workload on one target under one protocol.
 * Finds or creates it. */
int db_study(struct db *db, const struct db_workload *w, const struct db_target *t,
             const char *protocol, int64_t *study, struct status *st);

/* What a study holds constant beside its workload; the texts live until row() returns. */
struct db_study {
    struct db_target target;
    const char *protocol, *init;
    uint64_t seed;
};

/* The study of a workload text and target kind, without creating one: of those with a plan that
 * works the one most like `near` (compiler and libraries apart; null: none is), of equals the one
 * measured last.  STATUS_NOT_FOUND where there is none. */
int db_study_find(struct db *db, const char *workload_text, const char *target_kind,
                  const struct db_study *near, int64_t *study, struct status *st);

typedef void db_study_row(void *ctx, const struct db_study *s);
int db_study_read(struct db *db, int64_t study, db_study_row *row, void *ctx, struct status *st);

/* ---- trial.c: what was measured -------------------------------------------------------------- */

enum db_trial_kind { DB_TRIAL_SEGMENT, DB_TRIAL_PLAN, DB_TRIAL_FINAL };

/* A plan's choices say how each segment ran; they cover operators 0..14 in order. */
struct db_choice {
    struct segment segment;
    const char *impl, *schedule;
};
struct db_trial {
    enum db_trial_kind kind;
    int value; /* canonical; -1 for a segment */
    enum trial_status status;
    const char *reason_code, *reason;        /* of censored and failed; else empty */
    double median_ms, ci_low_ms, ci_high_ms; /* NaN where failed (stored as NULL) */
    double build_s, verify_s, time_s, error;
    int layers_timed, choice_count, sample_count;
    const struct db_choice *choices; /* one for a segment, 1..15 for a plan */
    const double *samples_ms;        /* stored where kind is DB_TRIAL_FINAL */
    const char *comparison; /* of finals: the same text for all that were timed interleaved,
                               unique in the study; else empty */
    const char *resources;  /* JSON text, may be empty */
    const char *conditions; /* the same */
    const char *search;     /* which search asked: id text, may be empty */
    const char *stored_utc; /* of a row read; when adding, db takes the time */
    const char *strategy;   /* of a row read: of that search; empty where it is not known */
};

/* One row with its choices and samples, in one transaction: all of it is stored or nothing.  A
 * study has one segment trial of a choice and one plan trial of a plan: where another process has
 * stored it already, that row stays, this one is dropped, and the call succeeds. */
int db_trial_add(struct db *db, int64_t study, const struct db_trial *t, struct status *st);

/* Many in one transaction: the finals of a comparison. */
int db_trials_add(struct db *db, int64_t study, const struct db_trial *trials, int count,
                  struct status *st);

/* Calls row() for each stored trial of a kind, oldest first; the texts live until it returns.  A
 * non-zero result of row() ends the walk.  Samples are not read.  row() must not use db. */
typedef int db_trial_row(void *ctx, const struct db_trial *t);
int db_trials(struct db *db, int64_t study, enum db_trial_kind kind, db_trial_row *row, void *ctx,
              struct status *st);

/* The same, without choices: for times alone, in a fifth of the time. */
int db_trial_times(struct db *db, int64_t study, enum db_trial_kind kind, db_trial_row *row,
                   void *ctx, struct status *st);

/* ---- best.c: the best plan known ------------------------------------------------------------- */

/* The best plan known: the fastest of the newest comparison, or of the plans stored since one that
 * was faster in the search than that one was; without a comparison that of the lowest plan median.
 * Comparisons of searches with the strategy "bench" decide nothing: any plans may be in them.
 * STATUS_NOT_FOUND where no plan is stored ok.  Free with db_best_release. */
struct db_best {
    int value;
    bool final; /* from finalists compared side by side */
    double median_ms, ci_low_ms, ci_high_ms;
    struct interval unfused, first_version; /* ms, of the same comparison (where final is false: of
                                               single trials); NaN where unknown */
    int choice_count;
    struct db_choice choices[OP_COUNT];                /* owned texts */
    double choice_ms[OP_COUNT];                        /* the segment alone; NaN where unknown */
    int64_t plans_total, plans_failed, plans_censored; /* distinct values with any trial, with one
                                                          that failed, with one censored */
};
int db_best(struct db *db, int64_t study, struct db_best *out, struct status *st);
void db_best_release(struct db_best *b);

/* Appends the text of the newest comparison that a search made and in which a plan ran; nothing
 * where a plan was stored since. */
int db_compared(struct db *db, int64_t study, struct buf *out, struct status *st);

/* ---- search.c: searches, for the record ------------------------------------------------------ */

int db_search_start(struct db *db, int64_t study, const char *strategy, const char *options_json,
                    char id[HASH_TEXT_SIZE], struct status *st);
int db_search_end(struct db *db, const char *id, const char *stopped_by, struct status *st);

/* ---- model.c: trained models ----------------------------------------------------------------- */

struct db_model {
    const char *name; /* unique within a study, or among those of files (study 0) */
    const char *kind; /* what its bytes are: "regressor+classifier" */
    int64_t features_version;
    const char *data_hash;
    uint64_t seed;
    double quantile, threshold_ms; /* of "high performance" */
    const void *bytes;
    size_t len;
    const char *report; /* JSON: figures on held-out plans */
};

/* Replaces the model of that name. study 0: trained from a file. */
int db_model_put(struct db *db, int64_t study, const struct db_model *m, struct status *st);
typedef int db_model_row(void *ctx, const struct db_model *m);
/* One model by name and kind: row() is called once. STATUS_NOT_FOUND where there is none. */
int db_model_get(struct db *db, int64_t study, const char *name, const char *kind,
                 db_model_row *row, void *ctx, struct status *st);

/* ---- info.c: what is stored ------------------------------------------------------------------ */

struct db_info {
    int64_t schema_version, bytes, studies, workloads, targets, trials, samples, models, searches;
};
int db_info(struct db *db, struct db_info *out, struct status *st);

/* ---- check.c: is it whole -------------------------------------------------------------------- */

/* SQLite's own checks, foreign keys, and the rules that SQL cannot state.  Each problem found goes
 * to row(); returns 0 with *problems their number. */
typedef void db_check_row(void *ctx, const char *problem);
int db_check(struct db *db, db_check_row *row, void *ctx, int *problems, struct status *st);

#endif
