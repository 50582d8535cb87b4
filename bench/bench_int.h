/* bench's private parts on the parent's side.  Nothing here loads or runs a candidate. */
#ifndef FUSEPLAN_BENCH_INT_H
#define FUSEPLAN_BENCH_INT_H

#include "bench/bench.h"
#include "bench/message_int.h"

#include <sys/types.h>

/* ---- process.c: child processes that can always be stopped --------------------------------------
 *
 * Each child leads a process group of its own, so that a terminal's Ctrl-C does not reach it and
 * stopping it stops whatever it started; it dies with its parent. */

enum { PROCESS_SAID_MAX = 8192 };

struct process {
    pid_t pid;       /* 0: never started, or ended and waited for */
    int output;      /* its stdout and stderr, non-blocking; -1 after their end */
    struct buf said; /* PROCESS_SAID_MAX bytes of its output */
    bool keep_last;  /* of the output keep the last bytes, not the first */
    double deadline; /* as clock_seconds(); 0: none */
    bool overdue;    /* it was killed at its deadline */
    int wait_status; /* of an ended one, as from waitpid() */
};

#define PROCESS_INIT ((struct process){.output = -1})

struct process_spec {
    const char *path; /* resolved: no search on PATH */
    const char *const *argv;
    char *const *env; /* null: the parent's */
    int fds[2];       /* become 3 and 4 in the child; -1: none */
    double limit_s;   /* 0: no deadline */
    bool keep_last;
};

int process_start(const struct process_spec *spec, struct process *out, struct status *st);

/* Reads what it has said so far without waiting. */
void process_drain(struct process *p);

/* Whether it has ended by itself; if so it is waited for and the rest of its group is killed. */
bool process_ended(struct process *p);

/* Kills its group and waits; harmless on one that has ended. */
void process_kill(struct process *p);
void process_release(struct process *p); /* kills it first where it runs */

/* Waits until one of n running children ends or is overdue (it is killed then) and returns its
 * index; -1 with STATUS_INTERRUPTED once *stop is set. */
int process_wait_any(struct process *const *list, int n, const volatile sig_atomic_t *stop,
                     struct status *st);

/* "exit status 1", "SIGSEGV (segmentation fault)". */
void process_describe_end(int wait_status, struct buf *out);

/* Runs a program to its end; its output is in out->said.  Release out after a success only. */
int process_run(const struct process_spec *spec, const volatile sig_atomic_t *stop,
                struct process *out, struct status *st);

/* The path of a program as a shell would find it; false where there is none. */
bool process_find(const char *name, struct buf *path);

/* ---- cache.c, cache_trim.c: what was built and verified once ------------------------------------
 *
 * An entry is named by the hash of all that it depends on and ends with a hash of its own bytes, so
 * that a damaged one is noticed.  Entries are written under a temporary name and renamed: any
 * number of processes may share a cache.  What was used least recently goes first when it grows too
 * large.  The directory may hold a user's own files: they are neither counted nor touched. */

struct cache {
    char *dir;
    uint64_t max_bytes;
};

/* A log is what the compiler said of the binary of the same key, a device what its driver says. */
enum cache_kind { CACHE_BINARY, CACHE_LOG, CACHE_VERDICT, CACHE_DEVICE, CACHE_KIND_COUNT };

/* dir null: FUSEPLAN_CACHE, else the XDG place.  FUSEPLAN_CACHE_MAX_BYTES bounds the size. */
int cache_open(const char *dir, struct cache *out, struct status *st);
void cache_release(struct cache *c);

/* Where an entry lies.  A trailing hash does not disturb dlopen(). */
void cache_path(const struct cache *c, enum cache_kind kind, const char *key, struct buf *path);

/* Whether a sound entry exists; a damaged one is removed.  data (may be null) gets its bytes,
 * content_hash (may be null) their hash. */
bool cache_get(const struct cache *c, enum cache_kind kind, const char *key, struct buf *data,
               char content_hash[HASH_TEXT_SIZE]);
int cache_put(const struct cache *c, enum cache_kind kind, const char *key, const void *data,
              size_t len, struct status *st);

/* The directory that holds exactly these headers, named by hash. */
int cache_headers(const struct cache *c, const struct kernel_file *files, int count,
                  struct buf *dir, struct status *st);

/* A path that no other process uses, in a directory of the cache; the caller removes the file. */
void cache_temporary(const struct cache *c, const char *suffix, struct buf *path);

/* Bytes in the cache, and removal of what exceeds its bound. */
uint64_t cache_bytes(const struct cache *c);
void cache_trim(const struct cache *c);

/* ---- lock.c: one measurement at a time on a device ------------------------------------------- */

/* Who times has the device alone; those who only run and verify share it. */
enum lock_use { LOCK_TO_TIME, LOCK_TO_RUN };

/* Waits for its turn among all users' processes, whatever it is for; gives up with
 * STATUS_ENVIRONMENT, naming a holder, after wait_s. */
int lock_take(struct target_name target, enum lock_use use, double wait_s,
              const volatile sig_atomic_t *stop, int *lock, struct status *st);
void lock_drop(int lock); /* -1: none */

/* ---- target.c, target_cpu.c, target_cuda.c: what differs between targets --------------------- */

/* Fills in what a compiler's log says of a kernel. */
typedef void toolchain_log(const char *log, struct resources *out);

/* A compiler that works, with its flags. */
struct toolchain {
    char *path;                    /* of the compiler */
    char *flags;                   /* before -I, -o and the source, blanks between; owned */
    const char *libs;              /* after the source, likewise */
    const char *probe;             /* a source that it compiles wherever it works */
    const char *source_suffix;     /* ".c" */
    const char *binary_suffix;     /* ".so" */
    toolchain_log *read_log;       /* null: its log is not kept */
    char version[128];             /* "gcc 12.2.0" */
    char libraries[128];           /* "OpenBLAS 0.3.21 openmp SkylakeX" */
    char identity[HASH_TEXT_SIZE]; /* of compiler, flags and the machine that they build for */
    struct fingerprint where;      /* the device that they build for, where one was asked */
    struct status passed_over;     /* why a faster compiler that is there does not serve, or OK */
};

struct toolchain_request {
    int device;
    int arch;                          /* of a GPU, to compile for; 0: the device's own */
    const char *compiler;              /* as in bench_options */
    const char *worker;                /* its program; null: the one that belongs to this program */
    const volatile sig_atomic_t *stop; /* as in bench_options */
};

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
void toolchain_release(struct toolchain *tc);

/* ---- environment.c --------------------------------------------------------------------------- */

void env_add(struct env_list *list, const char *subject, bool required, int state,
             const char *advice, const char *found, ...) PRINTF_LIKE(6, 7);

/* The worker's program: `option`, else beside the running program, else in its libexec. */
int worker_find(const char *option, struct buf *path, struct status *st);

/* ---- compile.c: one compiler at work --------------------------------------------------------- */

struct compile {
    struct process process;
    char *source, *output; /* temporary files, owned */
    double started;
};

/* headers: the directory that the source includes from, or null. */
int compile_start(const struct toolchain *tc, const struct cache *c, const char *text,
                  const char *headers, double limit_s, struct compile *out, struct status *st);

/* After its process has ended: stores what it built and said in the cache, unless key is null.
 * STATUS_COMPILE, STATUS_TIMEOUT or, where the cache cannot be written, STATUS_ENVIRONMENT. */
int compile_finish(struct compile *job, const struct toolchain *tc, const struct cache *c,
                   const char *key, struct status *st);
void compile_release(struct compile *job); /* stops it where it runs, removes its files */

/* All of it for one source. */
int compile_source(const struct toolchain *tc, const struct cache *c, const char *text,
                   const char *headers, const char *key, double limit_s,
                   const volatile sig_atomic_t *stop, struct status *st);

/* Whether the compiler still builds its probe: else what it failed at says nothing about a
 * candidate.  STATUS_ENVIRONMENT, or STATUS_INTERRUPTED once *stop is set. */
int compile_recheck(const struct toolchain *tc, const struct cache *c, double limit_s,
                    const volatile sig_atomic_t *stop, struct status *st);

/* ---- ptxas.c: what NVIDIA's assembler says of a kernel --------------------------------------- */

/* Makes it say so; the same for nvcc and NVRTC, and free. */
#define PTXAS_FLAGS "-Xptxas -v"

/* Reads the log of a source with one kernel; what its functions spill counts with it. */
toolchain_log ptxas_read;

/* Whether the compiler warned that products which should overlap wait for one another. */
bool ptxas_serialises(const struct resources *r);

/* ---- build.c: choices -> binaries ------------------------------------------------------------ */

/* What is known of one choice in this session. */
struct binary {
    struct choice choice;
    struct status status;              /* of its build */
    bool built;                        /* status says how it went */
    char key[HASH_TEXT_SIZE];          /* in the cache, CACHE_BINARY */
    char content_hash[HASH_TEXT_SIZE]; /* of the binary */
    char *path;                        /* owned */
    double error;                      /* of its verification; negative: not verified yet */
    char verdict[HASH_TEXT_SIZE];      /* in the cache, CACHE_VERDICT; empty until looked for */
    struct resources resources;        /* as far as the compiler says */
};

struct builder {
    const struct cache *cache;
    const struct toolchain *toolchain;
    struct build_target target;
    double deadline_s;
    int jobs;
    const volatile sig_atomic_t *stop;
    struct binary **binaries; /* owned */
    int count;
};

void builder_release(struct builder *b);

/* The binary of a choice, not yet built where it was never asked for. */
struct binary *builder_find(struct builder *b, const struct choice *c);

/* Adds what the compiler said to what the device said. */
void binary_describe(const struct binary *b, struct resources *r);

int builder_build(struct builder *b, const struct choice *choices, int count,
                  struct status *results, bench_progress *progress, void *ctx, struct status *st);

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

/* ---- session.c, run.c, ask.c ----------------------------------------------------------------- */

#define PROTOCOL_VERSION "2"

struct bench {
    struct target_name target;
    const struct target_ops *ops;
    struct workload w;
    uint64_t seed;
    bool notes, afresh;
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
