/* The actions of the command sweep, each titled by its .c file. */
#pragma once

#include "cmd/cmd.h"

#include <sys/types.h>

/* The options of a row: those that name its workload, and those of its search. */
#define OPTS_NAMING (OPTS_WORKLOAD | OPT(INIT))
#define OPTS_ROW                                                                                   \
    (OPTS_NAMING | OPT(BASELINE) | OPT(SPACE) | OPT(BUDGET) | OPT(TIME_LIMIT) |                    \
     OPT(RETRY_FAILED) | OPT(RIGOR) | OPT(STRATEGY) | OPT(QUANTILE) | OPT(COMPILER) | OPT(ARCH))

/* ---- sweep_table.c: a table of workloads --------------------------------------------------------
 *
 * A line has the options of a row, as `db list` prints them; '#' begins a comment.  Lists of -b and
 * -s, and several -m, are a row each.  Options of the command line hold for all rows; a row's own
 * win.  Of equal rows the first counts. */

enum sweep_state { ROW_MISSING, ROW_CUT_SHORT, ROW_FAILED, ROW_DONE, ROW_STATE_COUNT };
extern const char *const sweep_state_names[ROW_STATE_COUNT];

struct table_row {
    struct options o;   /* its texts belong to the table */
    char *text;         /* the options that name it, owned: " -b 1 -s 128" */
    char *family, *key; /* see struct sweep_row; equal for equal rows alone; owned */
    enum sweep_state state;
    char *reason;        /* why it is not done, owned; may be null */
    struct db_best best; /* value -1: none is known */
    bool unstable;       /* see plan_unstable() */
    char uuid[64];       /* of the device that was measured, for the same inputs by the protocol of
                            today; "": unknown */
    double seconds;      /* that its search took here; NaN: there was none */
};

struct table {
    struct table_row *rows;
    struct sweep_row *order; /* as sweep_order() sorts the rows, with their shards */
    int count;
    struct parsed *parsed; /* what rows borrow from */
    int parsed_count;
};

/* Reads and checks all rows.  STATUS_USAGE names file and line.  target: of rows that name none; of
 * several GPUs any one says which rows are meant.  Release *out in any case. */
int table_read(const struct options *o, const char *path, const char *target, struct table *out,
               struct status *st);
void table_release(struct table *t);

/* Splits a text as a shell does, at blanks outside of quotes; '#' begins a comment. */
int words_split(const char *text, struct names *out, struct status *st);

/* ---- sweep_known.c: what a database knows of rows -------------------------------------------- */

/* Sets what is known of all rows: their best plans, and the states of rows that were not searched
 * here.  A database that does not exist knows nothing. */
int table_known(const char *db, struct table *t, struct status *st);

/* Prints the rows of a shard, of all with shard -1, in the order of the table; returns how many are
 * not done. */
int sweep_print(const struct options *o, const struct table *t, int shard);

/* ---- sweep_search.c: a row's search, as a process ----------------------------------------------
 */

/* What a search has said so far: its compilers are idle; it measures no more. */
enum search_says { SEARCH_WORKS, SEARCH_LENDS, SEARCH_LEAVES };

struct search_process {
    pid_t pid; /* 0: none runs */
    int said;  /* what it says on standard error: a file without a name; -1: none */
    int turn;  /* the other end of its struct turn; -1: none */
    enum search_says says;
};
#define SEARCH_PROCESS_INIT ((struct search_process){0, -1, -1, SEARCH_WORKS})

/* A search that `sweep run` starts takes turns with its others.  The word stands in front of the
 * command, and the search inherits its turn. */
#define TURN_WORD "--in-turn"
int turn_inherit(struct status *st);
extern struct turn *session_turn; /* null: there is none */

/* Starts a search, which waits for its turn, and ends with this process.  target: unless the row
 * names one; jobs: 0 for as many as it takes by itself; db: null for the usual one.  The caller
 * waits for its end, and then releases *out. */
int search_start(const struct options *row, const char *target, int jobs, const char *db,
                 struct search_process *out, struct status *st);
void search_give_turn(struct search_process *p);
enum search_says search_asks(struct search_process *p);
char *search_said(const struct search_process *p); /* its last line; the caller frees it */
void search_release(struct search_process *p);

/* ---- sweep_save.c: results as texts in a directory --------------------------------------------
 *
 * A run writes a file of its own, "I-of-N.HOST.RANDOM.ndjson", and renames it into its place. */

struct saving {
    char *path; /* of the own file, owned; null: nothing is saved */
    char hash[HASH_TEXT_SIZE];
    double ended_s, took_s; /* the last writing; 0: there was none */
};

/* Makes the directory, and takes what texts of the shard hold into the database. */
int saving_begin(const struct options *o, const char *db, struct saving *out, struct status *st);

/* Writes what the database holds, if that has changed.  Writing takes at most a twentieth of the
 * time: a text has all rows so far.  last: what was not written for that reason is. */
int saving_write(struct saving *s, const char *db, bool last, struct status *st);
void saving_release(struct saving *s);

/* Adds the texts of a directory whose names begin with `prefix`, each alone.  A text that cannot be
 * added is named, and the others are added.  Returns how many could not, or -1. */
int texts_import(const char *dir, const char *prefix, struct db *db, struct status *st);

/* The largest N of the texts of a directory; 1 where there is none. */
int saved_shards(const char *dir);

/* ---- sweep_turns.c: the searches of a run -------------------------------------------------------
 */

enum { SLOTS_MAX = 64 };

/* A search and the position of its row. */
struct row_search {
    struct search_process process;
    int at;
    double start_s; /* when it got its turn; 0: it waits for it */
};
#define ROW_SEARCH_INIT ((struct row_search){.process = SEARCH_PROCESS_INIT, .at = -1})

/* A device.  One search has the turn.  Those of the next row and of the first row of the next
 * family, whose kernels are others, prepare and wait. */
struct slot {
    char target[16];
    struct fingerprint device; /* without a compiler */
    struct row_search now, next, family;
    bool failed; /* one ended before its turn, and begins anew at its turn */
};

struct sweep {
    const struct options *o;
    struct table *table;
    struct sweep_row *rows; /* of the shard, in order */
    int count, ended;
    bool *taken;
    int *home; /* the device that has results of the row; -1: any may search it */
    struct slot slots[SLOTS_MAX];
    int slot_count;
    char *own_dir;  /* of a database for this run alone; null: --db names one */
    const char *db; /* may be null */
    struct saving saving;
    double start_s;
    const char *last_reason; /* of the last row that the machine failed */
    int same;                /* rows in a row with that reason */
    bool broken_off;         /* a search was ended by a signal: the same command may go on */
};

void sweep_tell(const struct sweep *s); /* how many rows are done */

/* Looks at a device: notes that its search ended, and starts others, or with `more` unset stops
 * those that wait. */
int sweep_look(struct sweep *s, struct slot *slot, bool more, struct status *st);
bool sweep_is_busy(const struct slot *slot);
void sweep_stop(const struct slot *slot); /* the search that has the turn */

/* Whether so many rows in a row failed for one reason that the machine does. */
bool sweep_gives_up(const struct sweep *s);

/* ---- the actions; each returns an exit status, or -1 ----------------------------------------- */

typedef int sweep_action(const struct options *o, struct status *st);
sweep_action sweep_plan_run, sweep_collect_run; /* sweep_collect.c */
sweep_action sweep_run_run;                     /* sweep_run.c */
sweep_action sweep_compile_run;                 /* sweep_compile.c */
sweep_action sweep_script_run;                  /* sweep_script.c */
sweep_action sweep_verify_run;                  /* sweep_verify.c */
