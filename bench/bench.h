/* bench: builds, loads, verifies and times candidates on one target.
 *
 * The only folder that compiles, loads or runs emitted code, and it does so in a worker process: a
 * candidate that crashes, hangs or lies costs one worker restart and one result that says so.
 * Nothing above bench knows which target it works on.
 *
 * To add a target: a row in targets[] (target.c), its code in the worker. */
#ifndef FUSEPLAN_BENCH_H
#define FUSEPLAN_BENCH_H

#include "codegen/codegen.h"

#include <signal.h>

/* ---- target.c, fingerprint.c: where it runs -------------------------------------------------- */

struct target_name {
    enum target_kind kind;
    int device; /* cuda:N; 0 for cpu */
};

/* "cpu", "cuda", "cuda:1"; null: cuda where its device node is there, else cpu. */
int target_parse(const char *text, struct target_name *out, struct status *st);

/* The element type used when the user names none, and whether the target has a type at all. */
enum dtype target_default_dtype(enum target_kind kind);
int target_check_dtype(enum target_kind kind, enum dtype dtype, struct status *st);

/* What makes two measurements comparable.  Fields that a target lacks are empty. */
struct fingerprint {
    char device[128];    /* "Intel(R) Xeon(R) Processor", "NVIDIA H200" */
    char uuid[64];       /* of a GPU; of a machine: hash of machine id */
    char capability[64]; /* "sm_90"; of a CPU its vector extension: "avx512" */
    int units;           /* threads used, or SMs */
    char driver[64];     /* of a GPU; the kernel release of a CPU */
    char compiler[128];  /* "gcc 12.2.0", "nvcc 13.0" */
    char libraries[128]; /* "OpenBLAS 0.3.21" */
    char protocol[16];   /* version of the measurement protocol: "2" */
};

/* What of it can be known at once: no compiler is asked, so that compiler and libraries are empty.
 * All is empty where this build lacks the target. */
void fingerprint_device(struct target_name target, struct fingerprint *out);

/* What code is compiled for to run a workload there. */
struct build_target target_build(struct target_name target, const struct workload *w);

/* A stable text of all fields, for hashing and storing. */
void fingerprint_text(const struct fingerprint *f, struct buf *out);

/* ---- conditions.c: what a GPU was like while it was measured --------------------------------- */

/* Read right after a measurement's timing.  Recorded, never a reason to drop a sample. */
struct conditions {
    bool known;                                        /* else all is 0: the target does not say */
    int sm_mhz, max_sm_mhz, memory_mhz, temperature_c; /* sm: of the multiprocessors */
    double power_w, power_limit_w;
    unsigned slowed_by;  /* NVML's bits of what holds its clocks down */
    int other_processes; /* that compute on it; -1 where the system does not say */
    bool mig;            /* it is a part of a GPU */
};

/* "power cap, temperature"; nothing where nothing slows it. */
void slowdown_text(unsigned slowed_by, struct buf *out);

/* {"sm_mhz": 1980, ..., "slowed_by": ["power_cap"], ...}; nothing where they are not known. */
void conditions_json(const struct conditions *c, struct buf *out);

/* What was out of order during many measurements. */
struct disturbance {
    int measured;       /* with known conditions */
    int slowed;         /* of these, while the GPU slowed itself down for more than its power cap */
    unsigned slowed_by; /* the reasons of those */
    int other_processes; /* the most at a time */
    bool mig;
};

void disturbance_add(struct disturbance *d, const struct conditions *c);

/* A line for people; nothing where all was in order. */
void disturbance_sharing_text(const struct disturbance *d, struct buf *out);
void disturbance_slowdown_text(const struct disturbance *d, struct buf *out);

/* ---- trial: what a measurement gives --------------------------------------------------------- */

struct resources { /* 0 where a target does not say */
    int registers; /* of a thread */
    int shared_static_bytes, shared_dynamic_bytes;
    int stack_bytes;                   /* of a thread's local memory */
    int spill_bytes, spill_load_bytes; /* a thread's registers, stored there and read back */
    char compiler_warning[160];        /* "C7511: wgmma.mma_async instructions are ..." */
    int grid[3], block[3];
    double occupancy;
};

struct trial {
    enum trial_status status;
    struct status reason; /* of a failure or censoring */
    struct interval ms;   /* a segment: one layer's launch; a plan: one pass through all L layers */
    int sample_count;
    double *samples_ms; /* in the order taken, owned */
    int layers_timed;   /* fewer than L in the search phase; ms is scaled to L */
    double error;       /* largest relative error against the oracle */
    double build_s, verify_s, time_s;
    struct resources resources; /* of a segment */
    struct conditions conditions;
};

void trial_release(struct trial *t);

/* What a device can do at most, at its highest clocks, in the workload's type; NaN where unknown.
 */
struct limits {
    double flops_per_s, bytes_per_s; /* of its memory */
};

/* ---- session.c, run.c, dump.c, trace.c: a workload on a target ------------------------------- */

struct bench_options {
    struct target_name target;
    const char *cache_dir;   /* null: FUSEPLAN_CACHE, else the XDG place */
    const char *worker_path; /* null: beside the running program, else libexec */
    const char *compiler;    /* null: on a CPU FUSEPLAN_CC, CC, else cc; on a GPU
                                auto, which nvcc and nvrtc may replace */
    int arch;                /* to compile for; 0: the device's own */
    int jobs;                /* compilers at a time; 0: one a core */
    struct inputs inputs;
    bool afresh;                               /* verify what earlier sessions found right, too */
    double compile_deadline_s, run_deadline_s; /* 0: 60 and 30 (grown with the workload) */
    const volatile sig_atomic_t *stop; /* null, or set by a signal handler: calls return soon with
                                          STATUS_INTERRUPTED and leave everything stored intact */
};

struct bench;

/* Whether a workload, its mask not built yet, fits into the memory there is; else
 * STATUS_ENVIRONMENT. */
int bench_check_memory(const struct workload *w, struct status *st);

/* w is copied; its mask must be built.  Checks the memory that the workload needs.  The worker is
 * started by the first call that needs it. */
int bench_open(const struct bench_options *options, const struct workload *w, struct bench **out,
               struct status *st);
void bench_close(struct bench *b);
const struct fingerprint *bench_fingerprint(const struct bench *b);
const struct build_target *bench_target(const struct bench *b);
const struct workload *bench_workload(const struct bench *b); /* less the bits of its mask */
struct inputs bench_inputs(const struct bench *b);
struct disturbance bench_disturbance(const struct bench *b); /* of all measurements so far */
struct limits bench_limits(const struct bench *b);           /* known once something was measured */

/* Compiles what the cache lacks, in parallel; results[i] (may be null) gets OK or STATUS_COMPILE,
 * STATUS_TIMEOUT, STATUS_UNFIT.  progress may be null.  Returns -1 only where the environment or an
 * interrupt ends the work. */
typedef void bench_progress(void *ctx, int done, int total);
int bench_build(struct bench *b, const struct choice *choices, int count, struct status *results,
                bench_progress *progress, void *ctx, struct status *st);

/* How long to sample; max_samples 0 verifies only.  The search phase races: few samples, stopped
 * early when the time is above censor_above_ms (0: never).  An exhaustive one never sets that, and
 * takes fewer still. */
struct sampling {
    int min_samples, max_samples;
    double min_seconds, max_seconds; /* of timing, warm-up apart; without all_layers a device that
                                        nothing else disturbs, a GPU, needs no least time */
    double censor_above_ms;
    bool all_layers; /* else as few as keep the weights out of the caches, scaled to L */
};
extern const struct sampling sampling_search, sampling_exhaustive, sampling_final;

/* Builds, verifies and times one segment alone.  Returns 0 with *out filled whatever becomes of the
 * candidate; -1 only where the environment or an interrupt ends the work. */
int bench_segment(struct bench *b, const struct choice *c, const struct sampling *how,
                  struct trial *out, struct status *st);

/* The same for a whole plan: each segment verified alone, the plan verified layer by layer, then
 * timed. */
int bench_plan(struct bench *b, const struct candidate *c, const struct sampling *how,
               struct trial *out, struct status *st);

/* Times n candidates interleaved, round-robin in random order, all layers; trials[i] for
 * candidates[i].  Samples of one round are pairs: sample k of every trial was taken in round k. */
int bench_compare(struct bench *b, const struct candidate *candidates, int n,
                  const struct sampling *how, struct trial *trials, struct status *st);

/* Runs a candidate once and writes x, mask, y and all weights as .npy into dir, which must be new
 * or empty: all of them or none. */
int bench_dump(struct bench *b, const struct candidate *c, const char *dir, struct status *st);

/* When a launch ran: seconds since the first one began. */
struct launch_time {
    double start_s, seconds;
};

/* Runs a candidate a few times with a clock beside each launch; (*out)[l * c->count + i] is choice
 * i in layer l.  Time and gap of each are medians.  The caller frees *out. */
int bench_trace(struct bench *b, const struct candidate *c, struct launch_time **out,
                struct status *st);

/* ---- environment.c: what doctor reports ------------------------------------------------------ */

struct env_check {
    char *subject, *found, *advice; /* owned; advice is empty where all is well */
    enum { ENV_OK, ENV_WARNING, ENV_MISSING } state;
    bool required; /* a missing required thing makes doctor exit 1 */
};

/* One row a thing that can be missing or mismatched; the caller frees with env_checks_free. */
int env_check_all(struct env_check **out);
void env_checks_free(struct env_check *checks, int count);

#endif
