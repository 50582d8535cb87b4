/* bench/compile: from choices to binaries, on the parent's side.
 *
 * Runs compilers and keeps what they built; it loads nothing of it.  What only a process that may
 * die can tell, the worker's program is asked. */
#ifndef FUSEPLAN_BENCH_COMPILE_H
#define FUSEPLAN_BENCH_COMPILE_H

#include "bench/bench.h"

#include <jansson.h>
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

/* Makes what the user may have removed since. */
int cache_make_dirs(const struct cache *c, struct status *st);

/* Where an entry lies.  A trailing hash does not disturb dlopen(). */
void cache_path(const struct cache *c, enum cache_kind kind, const char *key, struct buf *path);

/* Whether the entry at a path that cache_path() gave is there, whose turn to be removed then comes
 * later. */
bool cache_use(const char *path);

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

/* ---- compile.c: one compiler at work --------------------------------------------------------- */

/* Fills in what a compiler's log says of a kernel. */
typedef void toolchain_log(const char *log, struct resources *out);

/* Arguments of a compiler, each of which may hold blanks. */
struct arguments {
    char **items; /* null-terminated where there are any; owned */
    int count;
};
void arguments_add(struct arguments *a, const char *text);
void arguments_add_words(struct arguments *a, const char *words); /* parted by blanks */
void arguments_text(const struct arguments *a, struct buf *out);  /* appends them, blanks between */
void arguments_release(struct arguments *a);

/* A compiler that works, with its flags. */
struct toolchain {
    char *path;                    /* of the compiler */
    struct arguments flags;        /* before -I, -o and the source */
    struct arguments libs;         /* after the source */
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

void toolchain_release(struct toolchain *tc);

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

/* ---- worker_program.c: the worker's program, asked one question ------------------------------ */

/* Where it lies: `option`, else beside the running program, else in its libexec. */
int worker_find(const char *option, struct buf *path, struct status *st);

enum {
    PROBE_LIMIT_S = 60 /* a driver that starts cold takes seconds */
};

/* Runs it and reads the one JSON object that it prints.  argument may be null. */
int worker_ask(const struct toolchain_request *from, const char *question, const char *argument,
               json_t **out, struct status *st);

/* ---- cpu_compiler.c: gcc or clang ------------------------------------------------------------ */

#define CPU_COMPILER_ADVICE                                                                        \
    "install a C compiler with OpenMP and OpenBLAS: apt install gcc libc6-dev "                    \
    "libopenblas-openmp-dev"

/* Finds the compiler that was asked for and proves that what it builds runs in a worker. */
int cpu_compiler_find(const struct toolchain_request *request, const struct cache *c,
                      struct toolchain *out, struct status *st);

/* ---- gpu.c: the device as the worker's probe describes it ------------------------------------ */

struct gpu {
    char name[128], uuid[64], driver[64];
    int arch;  /* 90 for sm_90 */
    int units; /* multiprocessors */
    int cuda;  /* the version that its driver supports: 13000 for 13.0 */
    int mhz, max_mhz, processes;
    char throttled[128];
};

int gpu_find(const struct toolchain_request *request, struct gpu *out, struct status *st);

/* What was said of it since this machine started, with the same driver and the same devices to
 * choose from, kept in the cache; else as gpu_find(), which waits for the driver to start.  Only
 * what does not change by itself is right: not its clock, its load or what throttles it.  proc:
 * "/proc". */
int gpu_recall(const struct toolchain_request *request, const struct cache *c, const char *proc,
               struct gpu *out, struct status *st);

/* Fills in what the device says, and no more. */
void gpu_describe(const struct gpu *gpu, struct fingerprint *out);

/* ---- cuda_compiler.c: NVRTC or nvcc ---------------------------------------------------------- */

/* Finds the compiler that was asked for, or the fastest that serves the GPU, and proves that it
 * does.  out->where describes the GPU; out gets the rest. */
int cuda_compiler_find(const struct toolchain_request *request, const struct gpu *gpu,
                       const struct cache *c, struct toolchain *out, struct status *st);

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

/* Whether the binaries of choices that were built are still there; STATUS_ENVIRONMENT where another
 * program removed one. */
int builder_check(struct builder *b, const struct choice *choices, int count, struct status *st);

int builder_build(struct builder *b, const struct choice *choices, int count,
                  struct status *results, bench_progress *progress, void *ctx, struct status *st);

#endif
