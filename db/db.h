/* db: everything measured, in SQLite.
 *
 * Only this folder includes sqlite3.h.  Every call is one transaction, so what a call has stored
 * survives `kill -9`.  The database holds names, never indices; its column names carry the units;
 * times are UTC text.  To change the schema: a new migration in schema.c, never an edit of an old
 * one. */
#pragma once

#include "layer/layer.h"
#include "layer/trial.h"

struct db;

/* ---- open.c: the connection ------------------------------------------------------------------ */

enum db_mode {
    DB_READ,   /* neither creates nor migrates; STATUS_NOT_FOUND if the file does not exist */
    DB_UPDATE, /* migrates an older version; STATUS_NOT_FOUND if the file does not exist */
    DB_WRITE   /* migrates an older version; creates the file and its directory */
};

/* The path or, if that is null, the variable FUSEPLAN_DB, else fuseplan.db in the directory of
 * fuseplan's data.  The caller frees. */
char *db_place(const char *path);

/* path: as db_place() takes it. */
int db_open(const char *path, enum db_mode mode, struct db **out, struct status *st);

/* Opens a database that is empty, and gone once it is closed. */
int db_open_scratch(struct db **out, struct status *st);
void db_close(struct db *db);
SCOPED_CLOSE(db, db_close)
const char *db_path(const struct db *db);

/* Which trials all calls below are about, but those that write, move and check: plans in which
 * these GEMMs have operands of e4m3 (bits) and no others, and segments in which no others.  At
 * first 0. */
void db_set_precision(struct db *db, unsigned precision);

/* Whom merging, importing, exporting and checking tell how far they are; at first nobody. */
void db_listen(struct db *db, struct listener listener);

/* ---- study.c: what trials are compared within ------------------------------------------------ */

/* A workload and a target are kept as texts, so that db need not know what they mean. */
struct db_workload {
    const char *text; /* normalised, the key: workload_text() */
    int64_t batch, seq_len, heads, head_size, ffn, layers;
    double eps;
    const char *dtype, *lengths, *mask;
    const char *chain; /* chain_text(); empty or null: "bert" */
    uint64_t seed;
    const char *init; /* "uniform" or "wide" */
};

/* seed and init are the caller's to set.  The texts live in *text, until that changes. */
struct db_workload db_workload_of(const struct workload *w, struct buf *text);

struct db_target {
    const char *kind; /* "cpu", "cuda" */
    const char *device, *uuid, *capability, *driver, *compiler, *libraries;
    int64_t units;
};

/* Trials are compared within one *study*: one workload on one target under one protocol, with the
 * same inputs.  Finds the study or creates it. */
int db_study(struct db *db, const struct db_workload *w, const struct db_target *t,
             const char *protocol, int64_t *study, struct status *st);

/* What a study holds constant beside its workload. */
struct db_study {
    struct db_target target;
    const char *protocol, *init, *mask; /* mask: of a row read */
    uint64_t seed;
};

/* Finds the study of a workload text and a target kind that says most about `near`.  Studies in
 * which a plan ran come before the others, then the study that has most in common with `near`
 * (compiler and libraries do not count, the device counts as four, the protocol as two; null:
 * nothing is in common), then the one measured last.
 * STATUS_NOT_FOUND if there is none. */
int db_study_find(struct db *db, const char *workload_text, const char *target_kind,
                  const struct db_study *near, int64_t *study, struct status *st);

/* Reads a study, whose texts live in *texts, until that changes.  STATUS_NOT_FOUND if there is no
 * such study. */
int db_study_read(struct db *db, int64_t study, struct buf *texts, struct db_study *out,
                  struct status *st);

/* Calls row() for each other study on the same target, with the same protocol and inputs, of
 * layers of the same heads, ffn and number, the newest first; the caller compares the rest.  The
 * text lives until row() returns; row() must not use db. */
typedef void db_study_beside(void *ctx, int64_t study, const char *workload_text);
int db_studies_beside(struct db *db, int64_t study, db_study_beside *row, void *ctx,
                      struct status *st);

/* Calls row() for each workload and kind of target of which a best plan is known, the one measured
 * last first; of w only seed and init are not set.  The texts live until row() returns. */
typedef void db_workload_row(void *ctx, const struct db_workload *w, const char *target_kind);
int db_workloads(struct db *db, db_workload_row *row, void *ctx, struct status *st);

/* ---- near.c: a study that stands in for another ---------------------------------------------- */

struct db_wanted {
    const struct db_workload *workload;
    const char *target_kind;
    const struct db_study *near; /* as of db_study_find(), not null */
    bool same_device;            /* only studies on a device of the same name */
    bool family;                 /* of workloads that differ in the mask's parameters alone,
                                    the nearest parameters first; not of this workload */
};

/* Finds a study in which a plan ran; 1: found, 0: there is none, -1: failed. */
int db_study_near(struct db *db, const struct db_wanted *w, int64_t *study, struct status *st);

/* ---- list.c: what is known of each study ----------------------------------------------------- */

struct db_listed {
    int64_t study;
    struct db_workload workload;
    struct db_target target;
    const char *protocol, *created_utc, *stored_utc; /* stored_utc: of its newest trial */
    int64_t trials, plans;                           /* plans: trials of kind plan */
    int value;                                       /* of the best plan known; -1 if none ran */
    bool final;                                      /* it won a comparison */
    struct interval ms;                              /* the best plan's */
};

/* Calls row() for each study, the one measured last first.  The texts live until row() returns. */
typedef void db_list_row(void *ctx, const struct db_listed *l);
int db_list(struct db *db, db_list_row *row, void *ctx, struct status *st);

/* ---- trial.c: what was measured -------------------------------------------------------------- */

enum db_trial_kind { DB_TRIAL_SEGMENT, DB_TRIAL_PLAN, DB_TRIAL_FINAL };

/* How one segment ran.  A plan's choices cover operators 0..14 in order. */
struct db_choice {
    struct segment segment;
    const char *impl, *schedule;
};
struct db_trial {
    enum db_trial_kind kind;
    int value;     /* canonical; -1 for a segment */
    int packed;    /* 1: it ran without rows of padding */
    int precision; /* GEMMs whose operands are e4m3, as bits; of a segment those that it touches */
    enum trial_status status;
    const char *reason_code, *reason;        /* why it was censored or failed; empty if ok */
    double median_ms, ci_low_ms, ci_high_ms; /* NaN if it failed (stored as NULL) */
    double build_s, verify_s, time_s, error;
    int layers_timed, choice_count, sample_count;
    const struct db_choice *choices; /* one for a segment, 1..15 for a plan */
    const double *samples_ms;        /* (sample_count) stored if kind is DB_TRIAL_FINAL */
    const char *comparison; /* of a final: a text unique in the study, the same for all finals that
                               were timed interleaved; else empty */
    const char *resources;  /* JSON text, may be empty */
    const char *conditions; /* JSON text, may be empty */
    const char *search;     /* the id of the search that asked for it, may be empty */
    const char *stored_utc; /* to store: null or empty for the time now */
    const char *strategy;   /* of a row read: its search's; empty if unknown */
};
struct interval db_trial_ms(const struct db_trial *t);

/* Stores a trial with its choices and samples: all of it or nothing.  A study has one segment trial
 * of a choice and one plan trial of a plan: if another process stored that trial first, its row
 * stays, this trial is dropped, and the call succeeds.  But a stored failure gives way: it moves to
 * the table failure. */
int db_trial_add(struct db *db, int64_t study, const struct db_trial *t, struct status *st);

/* Stores many in one transaction: the finals of a comparison. */
int db_trials_add(struct db *db, int64_t study, const struct db_trial *trials, int count,
                  struct status *st);

/* Calls row() for each stored trial of a kind, oldest first.  The texts live until row() returns;
 * samples_ms is null.  A result of row() other than 0 ends the walk.  row() must not use db. */
typedef int db_trial_row(void *ctx, const struct db_trial *t);
int db_trials(struct db *db, int64_t study, enum db_trial_kind kind, db_trial_row *row, void *ctx,
              struct status *st);

/* db_trials() without the choices, in a fifth of the time. */
int db_trial_times(struct db *db, int64_t study, enum db_trial_kind kind, db_trial_row *row,
                   void *ctx, struct status *st);

/* ---- best.c: the best plan known ------------------------------------------------------------- */

/* Plans tie where the median of their times' ratios, round by round, is this near to 1. */
#define DB_TIE 0.005

/* The best plan known is the winner of the newest comparison: the fastest, or of those that tie
 * with it the one of the largest value, so that searches end alike.  A plan stored later replaces
 * it if that plan's time in its search beats the winner's time in its own search: times of a
 * comparison compare only with one another.  Without a comparison the plan of the lowest median is
 * the best. Comparisons with the strategy "bench" do not count: a user picked their plans.
 * STATUS_NOT_FOUND if no stored plan ran.  Free with db_best_release(). */
struct db_best {
    int value;
    bool packed;        /* its time is that without rows of padding */
    unsigned precision; /* db_set_precision()'s */
    bool final;         /* it won a comparison: the times are from there */
    struct interval ms;
    char *comparison;     /* that it won, owned; empty if final is false */
    char *search_options; /* of the search that stored these times, owned; empty if unknown */
    char *device;         /* that was measured, owned */
    char measured_utc[CLOCK_UTC_SIZE];
    int choice_count;
    struct db_choice choices[OP_COUNT];   /* owned texts */
    double choice_ms[OP_COUNT];           /* of the segment alone; NaN if unknown */
    int64_t plans_total;                  /* distinct plans with a trial of any kind */
    int64_t plans_failed, plans_censored; /* distinct plans with a trial of that status */
};
int db_best(struct db *db, int64_t study, struct db_best *out, struct status *st);
void db_best_release(struct db_best *b);

/* Calls row() for each plan of which the study has a trial of any kind, by rising value. */
typedef void db_value_row(void *ctx, int value);
int db_plan_values(struct db *db, int64_t study, db_value_row *row, void *ctx, struct status *st);

/* What a plan took in a comparison, or in its plan trial if `comparison` is empty. */
struct db_time {
    struct interval ms; /* NaN unless the trial is ok */
    char *reason;       /* why it is not ok, owned */
    int sample_count;
    double *samples_ms; /* (sample_count) in the order of the rounds, owned */
    char *conditions;   /* JSON text, may be empty, owned */
    bool packed;        /* it is the time without rows of padding */
    char stored_utc[CLOCK_UTC_SIZE];
};

/* 1: found, 0: the plan has no such trial, -1: failed.  Free with db_time_release() in any case. */
int db_time(struct db *db, int64_t study, int value, const char *comparison, struct db_time *out,
            struct status *st);
void db_time_release(struct db_time *t);

/* 1 with the value of another plan that ran in most rounds of a comparison, the fastest of these;
 * 0: there is none, *rival stays; -1: failed. */
int db_rival(struct db *db, int64_t study, int value, const char *comparison, int *rival,
             struct status *st);

/* Appends the text of the newest comparison of a search in which a plan ran; appends nothing if a
 * plan trial was stored after it.  Comparisons with the strategy "bench" do not count. */
int db_compared(struct db *db, int64_t study, struct buf *out, struct status *st);

/* ---- search.c: searches, for the record ------------------------------------------------------ */

/* Stores that a search begins and ends; db_search_start() writes its new id. */
int db_search_start(struct db *db, int64_t study, const char *strategy, const char *options_json,
                    char id[HASH_TEXT_SIZE], struct status *st);
int db_search_end(struct db *db, const char *id, const char *stopped_by, struct status *st);

struct db_search {
    const char *id, *strategy, *options; /* options: JSON */
    const char *started_utc, *ended_utc;
    const char *stopped_by; /* empty, as ended_utc: it was killed, or still runs */
};

/* Calls row() for each search of a study, oldest first.  The texts live until row() returns. */
typedef void db_search_row(void *ctx, const struct db_search *s);
int db_searches(struct db *db, int64_t study, db_search_row *row, void *ctx, struct status *st);

/* ---- merge.c: results of other databases --------------------------------------------------------
 *
 * Results are studies with their searches and trials.  Models are no results: `train` makes them
 * anew.  Of a study's plan, of its segment's schedule and of a comparison's plan there is one
 * result.  Where two databases have different results, the result measured later stays, so that the
 * outcome does not depend on the order of merging, and merging twice changes nothing. */

struct db_moved {
    int64_t results;   /* trials read */
    int64_t added;     /* were not there */
    int64_t same;      /* were there */
    int64_t conflicts; /* differed from what was there */
    int64_t replaced;  /* of the conflicts: took the place of what was there */
};

/* Adds the results of the databases at paths: of all databases or of none.  out: (count). */
int db_merge(struct db *db, const char *const *paths, int count, struct db_moved *out,
             struct status *st);

/* ---- text_write.c, merge.c: results as text -----------------------------------------------------
 *
 * docs/database.md describes the lines.  Equal results give equal bytes, in whatever order they
 * were stored. */

/* Appends the text of all results. */
int db_export(struct db *db, struct buf *out, struct status *st);

/* Appends those lines of it that say what the best plans are, where they won a comparison: of each
 * study its searches, the trial by which the plan won, and those of its choices alone.
 * STATUS_NOT_FOUND if there is none. */
int db_export_pack(struct db *db, struct buf *out, struct status *st);

/* Adds results as db_merge() does: of all files or nothing.  A path "-" is standard input.
 * STATUS_USAGE with file and line if a text is not as described. */
int db_import(struct db *db, const char *const *paths, int count, struct db_moved *out,
              struct status *st);

/* Adds those of a file's results that are of the workload of this text; the others are not even
 * checked. */
int db_import_workload(struct db *db, const char *path, const char *workload, struct status *st);

/* Whether a file begins as db_import() expects; true of "-". */
int db_import_check(const char *path, struct status *st);

/* ---- forget.c -------------------------------------------------------------------------------- */

/* The studies that agree with each member that is not null. */
struct db_forget {
    const char *workload;    /* its text */
    const char *target_kind; /* "cpu", "cuda" */
    const char *init;        /* "uniform" or "wide" */
    const uint64_t *seed;    /* of the inputs */
    const char *older_than;  /* a protocol: studies of a smaller number */
    bool failed;             /* forget the trials that failed; else all of the study */
    bool dry_run;            /* change nothing */
};

/* Calls row() for each study of which something is to be forgotten, with the number of trials,
 * before anything is.  After a failure nothing is forgotten. */
typedef void db_forget_row(void *ctx, const struct db_listed *l, int64_t trials);
int db_forget(struct db *db, const struct db_forget *what, db_forget_row *row, void *ctx,
              struct status *st);

/* ---- model.c: models of files ---------------------------------------------------------------- */

/* From what a model is trained, each time that it is asked. */
struct db_model {
    const char *name;
    uint64_t seed;
    double quantile;  /* of "high performance" */
    const char *rows; /* plans and times as model_data_text() writes them */
};

/* Stores a model in place of the one of its name.  report: JSON, figures on held-out plans. */
int db_model_put(struct db *db, const struct db_model *m, const char *report, struct status *st);

/* Reads the model of a name, whose rows live in *rows, until that changes.  STATUS_NOT_FOUND if
 * there is none. */
int db_model_get(struct db *db, const char *name, struct buf *rows, struct db_model *out,
                 struct status *st);

/* ---- info.c: what is stored ------------------------------------------------------------------ */

struct db_info {
    int64_t schema_version, bytes, studies, workloads, targets, trials, samples, models, searches;
};
int db_info(struct db *db, struct db_info *out, struct status *st);

/* ---- check.c: is it whole -------------------------------------------------------------------- */

/* Runs SQLite's own checks, the checks of foreign keys, and the rules that the schema cannot state.
 * Calls row() for each problem found; *problems: their number. */
typedef void db_check_row(void *ctx, const char *problem);
int db_check(struct db *db, db_check_row *row, void *ctx, int *problems, struct status *st);
