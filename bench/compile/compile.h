/* bench/compile: from choices to binaries, on the parent's side.
 *
 * Runs compilers and keeps the binaries that they build, but loads none of them.  Questions that
 * need a driver or a library, which may crash, go to the worker's program. */
#pragma once

#include "bench/bench.h"

#include <jansson.h>
#include <sys/types.h>

/* ---- process.c: child processes that can always be stopped --------------------------------------
 *
 * Each child leads a process group of its own, which a terminal's Ctrl-C does not reach.  All that
 * it started ends with it, also what has left its group, and it ends with fuseplan, however that
 * ends: supervisor.c. */

enum { PROCESS_SAID_MAX = 8192 };

struct process {
    pid_t pid;         /* its supervisor's; 0: never started, or ended and waited for */
    int output;        /* its stderr, and its stdout unless that is an answer; -1 after their end */
    struct buf said;   /* at most PROCESS_SAID_MAX bytes of its output */
    bool keep_last;    /* said holds the last bytes of the output, not the first */
    int answers;       /* its stdout where that is an answer; -1 after its end */
    struct buf answer; /* the last PROCESS_SAID_MAX bytes of it */
    double limit_s;    /* 0: no deadline */
    struct patience waited;
    bool overdue;    /* it was killed at its deadline */
    int wait_status; /* once it has ended, as from waitpid() */
};

#define PROCESS_INIT ((struct process){.output = -1, .answers = -1})

struct process_spec {
    const char *path; /* not searched on PATH */
    const char *const *argv;
    char *const *env;          /* null: the parent's */
    int fds[2];                /* become 3 and 4 in the child; -1: none */
    double limit_s;            /* of waiting for it; 0: no deadline */
    uint64_t max_memory_bytes; /* that it may map; 0: as the parent */
    int niceness;              /* 0: as the parent */
    bool keep_last;
    bool answers; /* its stdout is what it is asked for; messages are on its stderr alone */
    bool
        may_leave_daemons; /* if it ends by itself, what left its group goes on: sccache's server */
};

/* The caller releases *out even after a failure. */
int process_start(const struct process_spec *spec, struct process *out, struct status *st);

/* Reads the output so far, without waiting. */
void process_drain(struct process *p);

/* Whether the child has ended by itself, and all that it started with it. */
bool process_ended(struct process *p);

/* Kills the child and all that it started; does nothing on one that has ended. */
void process_dismiss(const struct process *p); /* does not wait for its end */
void process_kill(struct process *p);          /* waits */
void process_release(struct process *p);       /* kills the child if it runs */

/* Whether the child has ended by itself, or is past its deadline, at which it is killed. */
bool process_over(struct process *p);

/* Waits until one of n running children is over, and returns its index.  -1 with STATUS_TIMEOUT at
 * `until`, as clock_seconds(), or with STATUS_INTERRUPTED once *stop is set (stop may be null). */
int process_wait_any(struct process *const *list, int n, double until,
                     const volatile sig_atomic_t *stop, struct status *st);

/* Appends "exit status 1" or "SIGSEGV (Segmentation fault)". */
void process_describe_end(int wait_status, struct buf *out);

/* Returns how a process ended and the first line of what it said, "exit status 1: no such file".
 * The text takes the place of p->said. */
const char *process_failure(struct process *p);

/* Runs a program to its end, whatever that is; its output is in out->said and out->answer.  One
 * that a signal ends is run once more: the signal may be the machine's.  The caller releases *out
 * even after a failure. */
int process_run(const struct process_spec *spec, const volatile sig_atomic_t *stop,
                struct process *out, struct status *st);

/* Replaces path by the program that a shell would find; false where there is none. */
bool process_find(const char *name, struct buf *path);

/* The child's side of process_start(), right after fork(): starts the program, whose stdout goes to
 * `answers` and whose stderr to `output`, outlives it to end all that it leaves behind, and ends as
 * it did.  On SIGTERM, and where `parent` ends, all of it ends. */
_Noreturn void supervisor_run(const struct process_spec *spec, pid_t parent, int answers,
                              int output);

/* ---- cache.c: what was built and verified once --------------------------------------------------
 *
 * An entry's name is the hash of everything that it depends on.  It ends with a hash of its own
 * bytes, which shows damage.  Entries are written under a temporary name and renamed: any number of
 * processes may share a cache.  A cache that grows too large loses the entries that were used least
 * recently. Files of the user's own in its directories are neither counted nor touched. */

struct cache {
    char *dir;
    uint64_t max_bytes;
};

/* CACHE_LOG: what the compiler printed about the binary of the same key.  CACHE_DEVICE: a GPU as
 * its driver describes it. */
enum cache_kind { CACHE_BINARY, CACHE_LOG, CACHE_VERDICT, CACHE_DEVICE, CACHE_KIND_COUNT };

/* dir null: FUSEPLAN_CACHE, else the XDG place.  FUSEPLAN_CACHE_MAX_BYTES bounds the size; 2 GiB is
 * the default.  Makes the directories. */
int cache_open(const char *dir, struct cache *out, struct status *st);
void cache_release(struct cache *c);

/* Makes the directories again, which the user may have removed. */
int cache_make_dirs(const struct cache *c, struct status *st);

/* Replaces path by an entry's.  dlopen() ignores the hash at the end of a binary. */
void cache_dir(const struct cache *c, enum cache_kind kind, struct buf *dir); /* appends it */
void cache_path(const struct cache *c, enum cache_kind kind, const char *key, struct buf *path);

/* Marks the entry at a path from cache_path() as used, which puts its removal off; false where
 * there is no such entry. */
bool cache_use(const char *path);

/* Whether an undamaged entry exists; removes a damaged one.  Appends the bytes to data and writes
 * their hash to content_hash; both may be null. */
bool cache_get(const struct cache *c, enum cache_kind kind, const char *key, struct buf *data,
               char content_hash[HASH_TEXT_SIZE]);
int cache_put(const struct cache *c, enum cache_kind kind, const char *key, const void *data,
              size_t len, struct status *st);

/* Writes headers into a directory named by their hash, unless they are there, and replaces dir by
 * its path. */
int cache_headers(const struct cache *c, const struct kernel_file *files, int count,
                  struct buf *dir, struct status *st);

/* What a failure to write there is prefixed with. */
#define CACHE_UNWRITABLE                                                                           \
    "the cache cannot be written (is its disk full, or short of inodes?); FUSEPLAN_CACHE names "   \
    "another directory"

/* As file_write(); a failure says what to do. */
int cache_write(const char *path, const void *data, size_t len, struct status *st);

/* A directory for what a compiler writes on its way to a binary.  The caller releases *out even
 * after a failure. */
int cache_scratch(const struct cache *c, struct scratch_dir *out, struct status *st);

uint64_t cache_bytes(const struct cache *c); /* of all entries */
void cache_trim(const struct cache *c);      /* down to its bound; removes what was left over */

/* ---- compile.c: one compiler at work --------------------------------------------------------- */

/* Arguments of a compiler, each of which may hold blanks.  {0} holds none. */
struct arguments {
    char **items; /* null-terminated where there are any; owned */
    int count;
};
void arguments_add(struct arguments *a, const char *text);
void arguments_add_words(struct arguments *a, const char *words); /* splits at blanks */
void arguments_text(const struct arguments *a, struct buf *out); /* appends all, joined by blanks */
void arguments_release(struct arguments *a);

/* A compiler takes 200 MB for a segment, nvcc and NVRTC 600 MB for the largest one. */
#define COMPILER_MAX_BYTES ((uint64_t)8 << 30)

/* A compiler that works, with its arguments. */
struct toolchain {
    enum target_kind kind;
    char *path;                    /* of the compiler */
    struct arguments flags;        /* before -I, -o and the source */
    struct arguments libs;         /* after the source */
    const char *probe;             /* a source that it compiles if it works at all */
    const char *source_suffix;     /* ".c" */
    const char *binary_suffix;     /* ".so" */
    uint64_t max_memory_bytes;     /* that the compiler may map; 0: no bound */
    int niceness;                  /* of the compiler; 0: as this program */
    bool logs;                     /* it prints what ptxas_read() reads, which is kept */
    char openmp[256];              /* OpenMP's file where it is another than gcc's; else empty */
    char identity[HASH_TEXT_SIZE]; /* of compiler, arguments and the machine that they build for */
    struct fingerprint where;  /* compiler and libraries; the rest by target_ops.fingerprint() */
    struct status passed_over; /* why an installed compiler that is faster does not serve, or OK */
};

struct toolchain_request {
    int device;
    int arch;                          /* of a GPU, to compile for; 0: the device's own */
    bool no_device;                    /* no GPU is asked; then `arch` names one */
    const char *compiler;              /* as in bench_options */
    const char *worker;                /* its program; null: the one that belongs to this program */
    const volatile sig_atomic_t *stop; /* as in bench_options */
    bool anew; /* the compiler's probe is built, also if the cache holds it */
};

void toolchain_release(struct toolchain *tc);

/* Appends what "PATH WORD... --version" prints.  words may be null.  advice: what to do about a
 * compiler that does not work. */
int compiler_version(const char *path, const struct arguments *words, const char *advice,
                     const volatile sig_atomic_t *stop, struct buf *out, struct status *st);

/* Appends path, size and time of a program or library: they change with its release.  The path is
 * the same however its directory is spelt. */
void identity_add_file(const char *path, struct buf *identity);

struct compile {
    struct process process;
    struct scratch_dir scratch; /* for the source, the output and the compiler's own files */
    char *source, *output;      /* paths, owned */
    double started;
};

/* Writes what sources of the target include, and replaces dir by its directory. */
int compile_headers(const struct toolchain *tc, const struct cache *c, struct buf *dir,
                    struct status *st);

/* Starts to compile the text of a source.  headers: the directory of its includes.  The
 * caller releases *out even after a failure. */
int compile_start(const struct toolchain *tc, const struct cache *c, const char *text,
                  const char *headers, double limit_s, struct compile *out, struct status *st);

/* Once the process has ended: stores binary and log in the cache, unless key is null.  Fails with
 * STATUS_COMPILE, STATUS_TIMEOUT or, where the cache cannot be written or the machine stopped the
 * compiler, STATUS_ENVIRONMENT. */
int compile_finish(struct compile *job, const struct toolchain *tc, const struct cache *c,
                   const char *key, struct status *st);
void compile_release(struct compile *job); /* kills the process if it runs, removes the files */

/* What a compiler that the machine stopped twice makes a user ask. */
#define MACHINE_QUESTION "is the disk full, memory short, or does another program stop it"

/* Compiles one source and waits for it, as compile_start() and compile_finish().  STATUS_TIMEOUT,
 * too, once the clock shows `until`. */
int compile_source(const struct toolchain *tc, const struct cache *c, const char *text,
                   const char *headers, const char *key, double limit_s, double until,
                   const volatile sig_atomic_t *stop, struct status *st);

/* Builds the compiler's probe, unless the cache holds it; key gets its name there. */
int compile_probe(const struct toolchain *tc, const struct cache *c,
                  const struct toolchain_request *request, char key[HASH_TEXT_SIZE],
                  struct status *st);

/* Builds the probe again after a failure: if that fails too, the failure is not the candidate's.
 * STATUS_ENVIRONMENT, STATUS_TIMEOUT once the clock shows `until`, or STATUS_INTERRUPTED once *stop
 * is set. */
int compile_recheck(const struct toolchain *tc, const struct cache *c, double until,
                    const volatile sig_atomic_t *stop, struct status *st);

/* ---- worker_program.c: the worker's program and questions to it ------------------------------ */

/* Replaces path by the worker's program: `option`, else (null) beside the running program, else in
 * ../libexec/fuseplan of its directory. */
int worker_find(const char *option, struct buf *path, struct status *st);

/* The worker's environment: child_environment() with the settings of its threads, which only where
 * they run plans are bound to cores: elsewhere threads run the oracle, beside the threads of other
 * workers. preload: "LD_PRELOAD=..." or null.  Null-terminated; the caller frees the array alone.
 */
char **worker_environment(bool bound, char *preload);

enum { PROBE_LIMIT_S = 60 }; /* a driver takes seconds to start */

/* Runs from->worker with a question and an argument (may be null) and reads the JSON object of its
 * WORKER_ANSWER line.  bound: as for worker_environment().  The caller owns *out, which is null on
 * a failure: STATUS_NOT_FOUND if it knows no answer, STATUS_ENVIRONMENT if the machine keeps it
 * from one. */
int worker_ask(const struct toolchain_request *from, const char *question, const char *argument,
               bool bound, json_t **out, struct status *st);

/* Begins to ask a question without argument.  *out is for worker_answer(), which waits and then
 * does as worker_ask(); who needs no answer releases it. */
void worker_ask_early(const struct toolchain_request *from, const char *question,
                      struct process *out);
int worker_answer(const struct toolchain_request *from, const char *question, struct process *asked,
                  json_t **out, struct status *st);

/* ---- cpu_compiler.c: gcc or clang ------------------------------------------------------------ */

#define CPU_COMPILER_ADVICE                                                                        \
    "install a C compiler with OpenMP and OpenBLAS: apt install gcc libc6-dev "                    \
    "libopenblas-openmp-dev"
#define CLANG_ADVICE "clang needs LLVM's OpenMP too: apt install libomp-dev libopenblas-openmp-dev"

/* Finds the compiler that the request names and proves that what it builds runs in a worker.
 * Release *out in any case. */
int cpu_compiler_find(const struct toolchain_request *request, const struct cache *c,
                      struct toolchain *out, struct status *st);

/* ---- gpu.c: the device as the worker's probe describes it ------------------------------------ */

struct gpu {
    struct fingerprint where; /* what the GPU says: compiler, libraries and protocol are empty */
    int arch;                 /* 90 for sm_90 */
    int cuda;                 /* the version that its driver supports: 13000 for 13.0 */
    int mhz, max_mhz;         /* its clock; 0 where unknown */
    int processes;            /* that compute on it; -1: unknown */
    char throttled[128];      /* why it slows itself down; empty where it does not */
};

void gpu_set_arch(struct gpu *gpu, int arch);

/* Asks the driver, which may take seconds to start. */
int gpu_find(const struct toolchain_request *request, struct gpu *out, struct status *st);

/* Takes the answer from the cache if one was kept since this machine started, with the same driver,
 * by a process of the same control group, and with the same devices to choose from; else as
 * gpu_find().  The clock, the processes and what
 * throttles the GPU may be outdated.  proc: "/proc". */
int gpu_recall(const struct toolchain_request *request, const struct cache *c, const char *proc,
               struct gpu *out, struct status *st);

/* ---- cuda_compiler.c: NVRTC or nvcc ---------------------------------------------------------- */

#define NVCC_ADVICE                                                                                \
    "install NVIDIA's CUDA toolkit (12 or 13) and put nvcc on PATH, or name its directory with "   \
    "CUDA_HOME"

/* Replaces path by nvcc: the one on PATH, else that of toolkit_root().  *why names what led there:
 * "on PATH", a variable, or "the usual place".  STATUS_NOT_FOUND where there is none. */
int nvcc_find(struct buf *path, const char **why, struct status *st);

/* Finds the compiler that the request names, else the fastest that serves the GPU, and proves that
 * it does.  All of *out is filled in but its libraries. */
int cuda_compiler_find(const struct toolchain_request *request, const struct gpu *gpu,
                       const struct cache *c, struct toolchain *out, struct status *st);

/* ---- ptxas.c: what NVIDIA's assembler prints about a kernel ---------------------------------- */

/* Makes nvcc and NVRTC print it; costs no time. */
#define PTXAS_FLAGS "-Xptxas -v"

/* Fills in what the log of a source with one kernel says.  Spills of the functions that the kernel
 * calls are added to its own. */
void ptxas_read(const char *log, struct resources *out);

/* Whether the compiler warned that wgmma instructions, which should overlap, are serialized. */
bool ptxas_serialises(const struct resources *r);
