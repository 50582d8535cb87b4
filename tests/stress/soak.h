/* A program that disturbs searches on purpose and checks afterwards that nothing was lost.
 *
 * machine.c: processes and files as /proc shows them.  lane.c: one fuseplan at a time with a
 * database, a cache and a temporary directory of its own.  account.c: what it reported against what
 * it stored.  samples.c: what searches may not need more and more of.  soak.c: the
 * program. */
#ifndef FUSEPLAN_TESTS_SOAK_H
#define FUSEPLAN_TESTS_SOAK_H

#include "base/base.h"

#include <sqlite3.h>
#include <sys/types.h>

/* ---- machine.c ------------------------------------------------------------------------------- */

struct task {
    pid_t pid, parent;
    char state, name[32];
};
struct tasks {
    struct task *items; /* owned */
    int count;
};

/* All processes that descend from one, without it and without zombies. */
void tasks_below(pid_t root, struct tasks *out);
void tasks_release(struct tasks *t);

struct usage {
    long rss_kib;
    int descriptors;
};
bool usage_read(pid_t pid, struct usage *out); /* false: it has ended */

/* Files and directories below a directory, which is not counted. */
int files_below(const char *dir);

/* Puts a file's first bytes in its place; whether it had more.  The old file itself stays as it is,
 * because others may have a link to it, or have it loaded. */
bool file_cut_short(const char *path);

/* Prints and ends this program, with all lanes. */
_Noreturn void give_up(const char *fmt, ...) PRINTF_LIKE(1, 2);

/* ---- lane.c ---------------------------------------------------------------------------------- */

struct lane {
    const char *program, *name;
    char *dir;      /* of all its files, owned */
    char *compiler; /* owned; null: cc */
    bool shares_binaries;
    pid_t pid; /* 0: nothing runs */
    double started_s;
    int status; /* of the last run, as of waitpid() */
    int runs;
};

void lane_init(struct lane *l, const char *program, const char *root, const char *name);
void lane_release(struct lane *l);

/* A path below its directory, in one of four buffers used in turn. */
const char *lane_path(const struct lane *l, const char *name);

/* Writes a compiler that plants faults into sources: see planted[] in account.c. */
void lane_plant(struct lane *l);

/* Removes some of its binaries, or cuts them short. */
void lane_touch_binaries(const struct lane *l, bool spoil, struct rng *r);

/* A resource that the next run has little of; resource -1: none. */
struct lack {
    int resource;
    unsigned long amount;
};

/* Starts `fuseplan arguments`, whose words have no blanks.  It dies with this program. */
void lane_start(struct lane *l, const char *arguments, struct lack lack);

/* Whether it has ended, or nothing ran. */
bool lane_ended(struct lane *l);
void lane_signal(const struct lane *l, int number);

/* Nobody else of a search is killed before it has stored so many more trials: the second death in
 * a row would be the candidate's. */
enum { APART = 2 };

/* A worker or a compiler of a lane, drawn; pid 0: there is none. */
struct task lane_draw(const struct lane *l, bool worker, struct rng *r);

/* The last line that it printed. */
const char *lane_said(const struct lane *l);

/* Whether its search says that it works: signals are caught from then on. */
bool lane_began(const struct lane *l);

/* How many temporary files it has. */
int lane_files(const struct lane *l);

struct account;

/* Waits for the end of all processes below this one but another lane's, which get 2 s.  To be
 * called once a search has ended. */
void tasks_expect_end(struct account *a, const struct lane *other, const char *after);

/* ---- account.c ------------------------------------------------------------------------------- */

/* What is wrong; each complaint is printed at once. */
struct account {
    sqlite3 *db;                                    /* only read; null until there is one */
    bool planted;                                   /* the faulty lane's candidates have faults */
    int64_t last_id;                                /* of the trials taken into `hash` */
    uint64_t hash;                                  /* of all trials in their order */
    int64_t trials, reported, failed, of_layers[3]; /* trials of workloads of so many layers */
    double longest_end_s; /* until all that a search had started was gone */
    int complaints;
};
void complain(struct account *a, const char *fmt, ...) PRINTF_LIKE(2, 3);
void account_release(struct account *a);

/* Takes the trials stored since the last call.  Workloads of FAULTY_LAYERS layers fail where their
 * lane's compiler plants faults, and nowhere else; all other trials go well. */
enum { STEADY_LAYERS = 1, FAULTY_LAYERS = 2 };
void account_take(struct account *a, const char *db);

/* Whether all trials taken are as they were. */
void account_whole(struct account *a);

/* Plans as the events of runs reported them. */
enum { PLANS = 65536 };
struct report {
    bool once; /* of one workload: each plan is measured once */
    bool failed[PLANS];
    int count[PLANS], total;
    double ms[PLANS];
};

/* Reads a file of events; a run that was killed leaves half a line. */
void report_read(struct account *a, struct report *r, const char *events);

/* Each plan reported is stored as it was reported.  At most `untold` plans are stored of which no
 * event says: a kill may come between the two.  seq_len 0: of all workloads of so many layers. */
void report_match(struct account *a, const struct report *r, int seq_len, int layers, int untold);

/* ---- samples.c ------------------------------------------------------------------------------- */

enum { SAMPLE_MEMORY, SAMPLE_DESCRIPTORS, SAMPLE_FILES, SAMPLE_KINDS };
struct samples {
    double *values[SAMPLE_KINDS]; /* owned, of each kind as many */
    int count;
};
void samples_take(struct samples *s, const struct lane *l);

/* Complains if the last quarter of the samples has more than the second: the first one warms up. */
void samples_judge(const struct samples *s, struct account *a);
void samples_release(struct samples *s);

#endif
