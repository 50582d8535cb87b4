/* bench's private parts on the parent's side.  Nothing here loads or runs a candidate. */
#ifndef FUSEPLAN_BENCH_INT_H
#define FUSEPLAN_BENCH_INT_H

#include "bench/bench.h"
#include "bench/compile/compile.h"
#include "bench/wire/wire.h"

/* ---- lock.c: one measurement at a time on a device ------------------------------------------- */

/* Who times has the device alone; those who only run and verify share it. */
enum lock_use { LOCK_TO_TIME, LOCK_TO_RUN };

/* Waits for its turn among all users' processes, whatever it is for; gives up with
 * STATUS_ENVIRONMENT, naming a holder, after wait_s. */
int lock_take(struct target_name target, enum lock_use use, double wait_s,
              const volatile sig_atomic_t *stop, int *lock, struct status *st);
void lock_drop(int lock); /* -1: none */

/* ---- target.c, target_cpu.c, target_cuda.c: what differs between targets --------------------- */

struct env_list {
    struct env_check *rows; /* owned */
    int count;
};

struct target_ops {
    /* Finds the compiler and proves that what it builds runs in a worker. */
    int (*toolchain)(const struct toolchain_request *request, const struct cache *c,
                     struct toolchain *out, struct status *st);
    void (*fingerprint)(int device, const struct toolchain *tc, struct fingerprint *out);
    /* The worker's environment: a null-terminated array of owned texts, itself owned. */
    char **(*worker_env)(void);
    /* Rows of doctor's report.  tc: as found, or null with the reason in problem. */
    void (*checks)(const struct toolchain *tc, const struct status *problem, struct env_list *out);
};
extern const struct target_ops target_cpu, target_cuda;

/* Null where this build lacks the target; says so in *st. */
const struct target_ops *target_ops_of(enum target_kind kind, struct status *st);

/* ---- environment.c --------------------------------------------------------------------------- */

void env_add(struct env_list *list, const char *subject, bool required, int state,
             const char *advice, const char *found, ...) PRINTF_LIKE(6, 7);

/* ---- client.c: the worker as its parent sees it ---------------------------------------------- */

/* Called for each event that the worker reports on its way to a reply. */
typedef void client_event(void *ctx, const json_t *event);

struct client {
    struct process process;
    int channel;         /* -1: no worker */
    struct buf received; /* not yet a whole line */
    char doing[256];     /* what it last said it would do */
    int candidate;       /* the one that it was doing it to; -1: none */
};

#define CLIENT_INIT ((struct client){.channel = -1, .candidate = -1})

int client_start(struct client *c, const char *worker, char *const *env, int mask_fd,
                 struct status *st);
void client_stop(struct client *c);

/* Sends a request and waits for its reply.  No event may take longer than limit_s.  On a crash, a
 * deadline or garbage the worker is stopped and *st says what happened to what it was doing. */
int client_call(struct client *c, const json_t *request, double limit_s,
                const volatile sig_atomic_t *stop, client_event *event, void *ctx, json_t **reply,
                struct status *st);

/* ---- session.c, run.c, dump.c, trace.c ------------------------------------------------------- */

#define PROTOCOL_VERSION "2"

struct bench {
    struct target_name target;
    const struct target_ops *ops;
    struct workload w;
    struct inputs inputs;
    bool afresh;
    double run_limit_s;
    const volatile sig_atomic_t *stop;
    struct cache cache;
    struct toolchain toolchain;
    struct fingerprint fingerprint;
    struct builder builder;
    struct buf worker; /* path of its program */
    char **worker_env; /* owned, null-terminated */
    int mask_fd;       /* the mask's bits in memory, inherited by the worker */
    struct client client;
    struct limits limits;              /* as the worker says */
    struct disturbance disturbance;    /* of all measurements so far */
    char verdict_base[HASH_TEXT_SIZE]; /* of all that a verdict depends on but the binary */
    uint64_t shuffles;                 /* random orders drawn so far */
};

/* Builds a plan, adds it to a request, which is taken over, and asks the worker under the device's
 * lock.  The caller owns *reply, which may be null. */
int run_request(struct bench *b, const struct candidate *c, enum lock_use use, json_t *request,
                json_t **reply, struct status *st);

/* Starts the worker and gives it the workload, if it does not run. */
int session_start_worker(struct bench *b, struct status *st);

/* ---- request.c: a candidate in a request ----------------------------------------------------- */

/* A plan's choices, all built, or one segment alone.  Those that have no verdict yet carry the name
 * of one, to be verified for it. */
json_t *request_of(struct bench *b, const struct choice *choices, int count, bool alone);

/* A client_event: a verdict is kept at once, for whatever becomes of the plan, its segment is
 * right.
 */
client_event request_keep_verdict;

/* Puts the choice's name in front. */
void request_blame(const struct choice *c, struct status *reason);

#endif
