/* bench's private parts on the parent's side.  Nothing here loads or runs a candidate. */
#pragma once

#include "bench/bench.h"
#include "bench/compile/builder.h"
#include "bench/wire/wire.h"

/* ---- lock.c: one measurement at a time on a device ------------------------------------------- */

/* A process that times has the device alone.  Processes that only run and verify share it. */
enum lock_use { LOCK_TO_TIME, LOCK_TO_RUN };

#define LOCK_QUEUE_LIMIT_S 300. /* for other processes to finish their measurements */

struct lock_device {
    struct target_name name;
    const char *uuid; /* in the place of the number, which differs between processes; empty: none */
};

struct lock_wait {
    double limit_s; /* infinite: LOCK_QUEUE_LIMIT_S alone */
    const volatile sig_atomic_t *stop;
    void (*say)(void *ctx, const char *line); /* may be null */
    void *ctx;
    struct listener listener; /* is told that this process waits */
    long named;               /* the process that say() named last; 0: none */
    bool stopped;             /* and said to be stopped */
};

/* Takes the lock of a device.  All users' processes wait for it in one queue, and none overtakes
 * the process at its head.  A process that has to wait says at once who holds the lock, its
 * command, since when, and whether it is stopped.  Gives up with a message that names the holder:
 * after limit_s with STATUS_TIMEOUT, after LOCK_QUEUE_LIMIT_S with STATUS_ENVIRONMENT, once *stop
 * is set with STATUS_INTERRUPTED.  *lock is for lock_drop(), -1 on failure. */
int lock_take(struct lock_device device, enum lock_use use, struct lock_wait *wait, int *lock,
              struct status *st);
void lock_drop(int lock); /* -1: does nothing */

/* ---- target.c, target_cpu.c, target_cuda.c: what differs between targets --------------------- */

struct target_ops {
    /* Finds the compiler and proves what it builds.  The caller releases *out even on a failure. */
    int (*toolchain)(const struct toolchain_request *request, const struct cache *c,
                     struct toolchain *out, struct status *st);
    /* Fills in all but compiler and libraries.  A device that *out names already is not asked. */
    void (*fingerprint)(int device, struct fingerprint *out);
    /* Adds rows to doctor's report.  tc: the toolchain, or null with the reason in problem. */
    void (*checks)(const struct toolchain *tc, const struct status *problem, struct env_list *out);
    /* Adds the rows of checks() about what makes times vary: load, clock governor.  May be null. */
    void (*noise)(struct env_list *out);
    bool builds_beside; /* compilers do not disturb what the device times */
};
extern const struct target_ops target_cpu, target_cuda;

/* Null, with the reason in *st, where this build lacks the target. */
const struct target_ops *target_ops_of(enum target_kind kind, struct status *st);

/* ---- environment.c --------------------------------------------------------------------------- */

/* Adds a row to doctor's report.  Its advice is left out where state is ENV_OK. */
void env_add(struct env_list *list, const char *subject, bool required, int state,
             const char *advice, const char *found, ...) PRINTF_LIKE(6, 7);

/* ---- client.c: the worker as its parent sees it ---------------------------------------------- */

/* Called for each event that the worker reports on its way to a reply. */
typedef void client_event(void *ctx, const json_t *event);

struct client {
    struct process process;
    enum target_kind target;
    int channel; /* -1: no worker */
    /* The OpenMP that candidates run on, where it is not the worker's own, or null.  The worker
     * gets it in the place of its own: OpenBLAS, in a team of another one, starts threads of its
     * own. */
    const char *openmp;
    bool opened;         /* the worker has the device */
    bool dismissed;      /* by client_dismiss() */
    bool killed;         /* the last worker ended by a signal that came from outside */
    unsigned kept_from;  /* by its sandbox, as the worker says; 0 until it does */
    struct buf received; /* not yet a whole line */
    char token[TOKEN_SIZE];
    char doing[256]; /* the worker's last announcement: "verifying segment 2-6 (generated)" */
    int candidate;   /* index in the request that the announcement is about; -1: none */
    double limit_s;  /* between two events */
    uint64_t max_memory_bytes; /* that the worker may map; 0: no bound */
    double until;              /* of all that it does, as clock_seconds() */
    const volatile sig_atomic_t *stop;
    client_event *event;
    /* Called while the parent waits for the worker; true: it wants to be called soon again.  May be
     * null. */
    bool (*meanwhile)(void *ctx);
    void *ctx;
};

int client_start(struct client *c, enum target_kind target, const char *worker, int mask_fd,
                 struct status *st);
void client_stop(struct client *c);

/* Ends the worker and does not wait for it: what it gives back, memory of the device and of the
 * oracle's results, takes the system a while.  client_stop() waits. */
void client_dismiss(struct client *c);

/* Whether there is a worker.  One that has ended since its last reply is no candidate's fault. */
bool client_works(struct client *c);

/* Sends a request and waits for its reply, at most most_s.  *st says how the request ended.  A
 * crash, a message without the token, limit_s without an event, most_s in all or `until` stop the
 * worker; *st then says what the worker was doing.  c->killed is set where neither this process nor
 * the candidate can have sent the signal that ended it.  The caller owns *reply, which is null
 * where none came. */
int client_call(struct client *c, const json_t *request, double most_s, json_t **reply,
                struct status *st);

/* ---- session.c, run.c, dump.c ---------------------------------------------------------------- */

struct bench {
    struct target_name target;
    const struct target_ops *ops;
    struct workload w;
    struct inputs inputs;
    struct trained *trained;        /* what inputs.trained points to, owned */
    struct calibration calibration; /* what inputs.calibration points to, owned */
    bool afresh;
    const volatile sig_atomic_t *stop;
    struct cache cache;
    struct toolchain toolchain;
    struct builder builder;
    struct buf worker;    /* path of its program */
    int mask_fd;          /* the mask's bits in memory, inherited by the worker */
    bool confined;        /* whether the worker is to be in a sandbox */
    const char *writable; /* where the worker that is started next may write; null: nowhere */
    struct client client;
    struct turn *turn;              /* may be null */
    double turn_s;                  /* when it came, if another session had the device until then */
    bool began_early;               /* a compiler ran: session_begin_early() was called */
    struct limits limits;           /* as the worker says */
    double oracle_left_s;           /* likewise */
    struct lock_wait wait;          /* for the device; limit_s is set for each turn */
    double until;                   /* when the limit is over, as clock_seconds() */
    struct disturbance disturbance; /* of all measurements so far */
    char verdict_base[HASH_TEXT_SIZE]; /* of all that a verdict depends on but the choice */
    uint64_t shuffles;                 /* random orders drawn so far, one for each measurement */
    int candidates;                    /* of the request that the worker serves */
    double timing_s;                   /* the longest that one candidate was timed */
    int kills;                         /* of workers from outside, during this measurement */
};

static inline struct lock_device session_device(const struct bench *b)
{
    const bool numbered = b->target.kind == TARGET_CPU; /* of which a machine has one */
    return (struct lock_device){b->target, numbered ? "" : b->toolchain.where.uuid};
}

/* What runs: the choices of a plan, or one segment alone. */
struct runnable {
    const struct choice *choices;
    int count;
    bool alone, packed;
};

static inline struct runnable runnable_of(const struct candidate *c)
{
    return (struct runnable){.choices = c->choices, .count = c->count, .packed = c->packed};
}

/* Builds a candidate, adds it to a request and sends that under the device's lock.  Takes the
 * request over.  The caller owns *reply, which may be null. */
int run_request(struct bench *b, struct runnable what, enum lock_use use, json_t *request,
                json_t **reply, struct status *st);

/* What a worker may map, so that a greedy candidate fails alone: twice what the workload needs,
 * what its threads and the oracle's, which starts beside them, map (stacks, OpenBLAS, the
 * allocator), and code.  A GPU's driver and AddressSanitizer map more than any machine has. */
uint64_t session_memory_bound(enum target_kind target, const struct workload *w);

/* Whether a call of the worker failed for the limit of bench_limit(): that is no
 * candidate's fault. */
bool session_limit_over(const struct bench *b, const struct status *failed);

/* The first time starts the worker, which computes with the oracle what it can without the device,
 * and opens the device if it is free.  The next user of the worker says what fails.  bench: struct
 * bench, which calls no worker. */
void session_begin_early(void *bench);

/* Lets compilers that start now be as urgent as the oracle, if nothing was measured so far: the
 * device waits for both.  Later ones give way to the worker.  Returns their usual niceness. */
int session_hurry(struct bench *b);

/* Starts the worker and gives it the workload, unless it runs. */
int session_start_worker(struct bench *b, struct status *st);

/* Starts the worker unless it runs, and sends it a request, which is taken over.  The caller owns
 * *reply, which may be null. */
int session_call(struct bench *b, json_t *request, json_t **reply, struct status *st);

/* ---- request.c: a candidate in a request ----------------------------------------------------- */

/* The choices of a plan, or of one segment alone, all of which must be built.  Each carries the key
 * of its verdict, whether it was verified, and the hash of what it stored then. */
json_t *request_of(struct bench *b, struct runnable what);

/* A client_event.  Stores the verdict on a segment as soon as the worker reports it: it holds even
 * if the plan fails later.  Tells the bench's listener what the worker does. */
client_event request_event;

/* Puts the choice's name in front of the message. */
void request_blame(const struct choice *c, struct status *reason);
