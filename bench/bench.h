/* bench: builds, loads, verifies and times candidates on one target.
 *
 * The only folder that compiles, loads or runs emitted code, and it does so in a worker process: a
 * candidate that crashes, hangs or lies costs one worker restart and one result that says so.
 * Nothing above bench knows which target it works on.
 *
 * To add a target: a row in targets[] (target.c), its code in the worker. */
#pragma once

#include "bench/trained/trained.h"
#include "codegen/codegen.h"
#include "layer/trial.h"

#include <jansson.h>

/* ---- target.c, fingerprint.c: where it runs -------------------------------------------------- */

struct target_name {
    enum target_kind kind;
    int device; /* cuda:N; 0 for cpu */
};

/* text: "cpu", "cuda" or "cuda:1"; null: cuda where its device node exists, else cpu. */
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
    char protocol[16];   /* version of the measurement protocol: "3" */
};

/* Fills in what is known without asking a compiler: compiler and libraries stay empty.  All fields
 * do where this build lacks the target. */
void fingerprint_device(struct target_name target, struct fingerprint *out);

/* The version of the measurement protocol of all targets. */
#define PROTOCOL_VERSION "7"

/* What code is compiled for so that the target's own device runs it. */
struct build_target target_build(struct target_name target, const struct workload *w);

/* Appends a stable text of all fields, for hashing and storing. */
void fingerprint_text(const struct fingerprint *f, struct buf *out);

/* A device's peak rates at its highest clocks; NaN where unknown. */
struct limits {
    double flops_per_s; /* in the workload's type */
    double bytes_per_s; /* of the device's memory */
};

/* ---- conditions.c: what a device was like while it was measured ------------------------------ */

/* Recorded, never a reason to drop a sample. */
struct conditions {
    /* Of a CPU, over the timing. */
    bool cpu;             /* false: no CPU, or the system does not say */
    double waited_share;  /* of their time in which the threads waited for a core */
    double other_cores;   /* how many cores other programs kept busy */
    double stopped_share; /* of their time in which the control group's quota stopped the threads */

    /* Of a GPU, right after the timing. */
    bool known; /* false: the target does not say; all is 0 */
    int sm_mhz, max_sm_mhz, memory_mhz, temperature_c; /* sm: of the multiprocessors */
    double power_w, power_limit_w;
    unsigned slowed_by;  /* NVML's bits: the reasons that hold the clocks down */
    int other_processes; /* that compute on the GPU; -1 where the system does not say */
    bool mig;            /* the device is one instance of a GPU divided by MIG */
    struct limits peaks; /* for readers of stored trials; the worker does not send them */
};

/* Appends "power cap, temperature"; nothing where slowed_by is 0. */
void slowdown_text(unsigned slowed_by, struct buf *out);

/* Appends {"sm_mhz": 1980, ..., "slowed_by": ["power_cap"], ...}; nothing where c is not known. */
void conditions_json(const struct conditions *c, struct buf *out);

/* Reads what conditions_json() wrote; from other text nothing is known. */
void conditions_parse(const char *json, struct conditions *out);

/* Whether the threads of a CPU waited for a core so long that a quiet machine would have given
 * other times. */
bool conditions_crowded(const struct conditions *c);

/* Whether it was rather a control group's quota that kept them waiting than other programs. */
bool conditions_throttled(const struct conditions *c);

/* What disturbed a number of measurements. */
struct disturbance {
    int measured;  /* measurements with known conditions */
    int crowded;   /* of a CPU: measurements in which threads waited for a core */
    int throttled; /* crowded measurements in which threads waited for their quota above all */
    double waited_share; /* in the worst crowded measurement */
    int slowed;          /* measurements that a slowdown disturbed, any but the power cap's */
    unsigned slowed_by;  /* the reasons of the slowdowns, as in conditions */
    int other_processes; /* the most at a time */
    bool mig;
};

void disturbance_add(struct disturbance *d, const struct conditions *c);

/* Appends a line for people; nothing where nothing disturbed. */
void disturbance_sharing_text(const struct disturbance *d, struct buf *out);
void disturbance_crowd_text(const struct disturbance *d, struct buf *out);
void disturbance_slowdown_text(const struct disturbance *d, struct buf *out);

/* ---- trial: what a measurement gives --------------------------------------------------------- */

struct resources { /* a field is 0 where the target does not say */
    int registers; /* of a thread */
    int shared_static_bytes, shared_dynamic_bytes;
    int stack_bytes;                   /* a thread's stack frame in local memory */
    int spill_bytes, spill_load_bytes; /* a thread's registers stored there, and loaded back */
    char compiler_warning[160];        /* "C7511: wgmma.mma_async instructions are ..." */
    int grid[3], block[3];
    double occupancy;
};

struct trial {
    enum trial_status status;
    struct status reason; /* of a failure or censoring */
    struct interval ms;   /* of a segment: its launch in one layer; of a plan: all L layers */
    int sample_count;
    double *samples_ms;               /* in the order taken, owned */
    int layers_timed;                 /* fewer than L in the search phase; ms is scaled to L */
    double error;                     /* largest relative error against the oracle */
    double build_s, verify_s, time_s; /* build_s: of a segment bench_build_seconds() */
    struct resources resources;       /* of a segment */
    struct conditions conditions;
};
struct interval trial_ms(const struct trial *t); /* NO_INTERVAL unless it ran */

void trial_release(struct trial *t);

/* ---- turn.c: sessions that take turns on a device -----------------------------------------------
 *
 * The session of the next workload is opened while this one's still measures.  It builds and starts
 * its worker, and uses no device before its turn. */

struct turn {
    int fd;     /* of a socket to the program that gives turns; an end of file gives this one.  The
                   session sends a byte: its compilers are idle, and others do not disturb the
                   device.  It closes the socket, -1 then, when its turn is over. */
    bool waits; /* the turn has not come */
};

/* ---- session.c, run.c, dump.c: a workload on a target ---------------------------------------- */

struct bench_options {
    struct target_name target;
    const char *cache_dir;     /* null: FUSEPLAN_CACHE, else the XDG place */
    const char *worker_path;   /* null: beside the running program, else libexec */
    const char *compiler;      /* CPU: a program, null: FUSEPLAN_CC, CC, else cc;
                                  GPU: "nvrtc", "nvcc", "auto" or null: the fastest that serves */
    int arch;                  /* of a GPU, to compile for, such as 90; 0: the device's own */
    int jobs;                  /* compilers at a time; 0: one a core */
    struct inputs inputs;      /* without trained weights */
    const char *weights;       /* a file of trained weights; null: they are drawn */
    const char *prefix;        /* of the names of its model's tensors; null: there is one model */
    const char *calibration;   /* a file of scales of e4m3 for these weights; may be null */
    unsigned precision;        /* of the target: GEMMs whose operands are e4m3, as bits */
    bool builds_only;          /* for bench_build() alone: no device is asked where arch names the
                                  GPU, and no worker is started */
    bool afresh;               /* verify also what an earlier session verified */
    double compile_deadline_s; /* of one compilation; 0: 60 */
    double run_deadline_s;     /* of one step in the worker; 0: 30 and more for more FLOPs */
    const volatile sig_atomic_t *stop; /* null, or set by a signal handler: calls return soon with
                                          STATUS_INTERRUPTED and leave everything stored intact */
    struct turn *turn;                 /* null: the session begins at once */
    struct listener listener;          /* is told what is being compiled, verified and timed */
    /* Takes a line for people, such as for whom this process waits.  May be null. */
    void (*say)(void *ctx, const char *line);
    void *say_ctx;
};

struct bench;

/* Fails with STATUS_ENVIRONMENT where a workload needs more memory than is available.  Its mask
 * need not be built yet. */
int bench_check_memory(const struct workload *w, struct status *st);

/* Copies w, whose mask must be built, and finds the compiler.  Checks the memory as
 * bench_check_memory() does.  The first call that needs the worker starts it.  *out is for
 * bench_close(), null on a failure. */
int bench_open(const struct bench_options *options, const struct workload *w, struct bench **out,
               struct status *st);
void bench_close(struct bench *b);
SCOPED_CLOSE(bench, bench_close)
const struct fingerprint *bench_fingerprint(const struct bench *b);
const struct build_target *bench_target(const struct bench *b);
const struct workload *bench_workload(const struct bench *b); /* without the bits of its mask */
struct inputs bench_inputs(const struct bench *b);

/* The calls that follow fail with STATUS_TIMEOUT so many seconds from now, waiting for the device
 * or a compiler; a worker that is at work then has a few more. */
void bench_limit(struct bench *b, double seconds);
struct disturbance bench_disturbance(const struct bench *b); /* of all measurements so far */
struct limits bench_limits(const struct bench *b);           /* known once the worker has started */

/* Compiles in parallel the choices whose binaries the cache lacks.  results[i] gets STATUS_OK,
 * STATUS_COMPILE, STATUS_TIMEOUT or STATUS_UNFIT for choices[i].  results may be null.  Returns -1
 * only where the environment or an interrupt ends the work. */
int bench_build(struct bench *b, const struct choice *choices, int count, struct status *results,
                struct status *st);

/* How far the build of a choice is. */
struct built {
    bool done;
    struct status status; /* as bench_build() gives it; STATUS_OK until then */
};

/* Builds count + ahead choices as bench_build(), in their order.  On a GPU it returns once one of
 * the first `count` choices is done, and compilers go on with the other choices while the device
 * works.  The next call names anew which choices are wanted.  On a CPU, whose times compilers would
 * disturb, it returns once all choices are done.  After so many seconds it returns in any case.
 * count 0: no choice is wanted any more. */
int bench_build_some(struct bench *b, const struct choice *choices, int count, int ahead,
                     double seconds, struct built *out, struct status *st);

/* Whether compilers run while the device works. */
bool bench_builds_beside(const struct bench *b);

/* Whether the session's turn has not come. */
bool bench_waits(const struct bench *b);

/* Waits for the turn.  Where compilers do not disturb the device, it meanwhile builds the choices
 * and starts the worker, which computes with the oracle, both at a low priority. */
int bench_take_turn(struct bench *b, const struct choice *choices, int count, struct status *st);

/* Nothing is measured any more: ends the worker, without a wait, and the turn of a session that has
 * one, for which the worker's end is waited for. */
void bench_end_turn(struct bench *b);

/* The seconds of building a choice in this session, 0 if the cache had its binary.  Of the time in
 * which k compilers ran side by side each took 1/k, so that the seconds of all add up. */
double bench_build_seconds(struct bench *b, const struct choice *c);

/* How long the oracle will still compute for a comparison of all layers, in seconds; 0 before the
 * first trial. */
double bench_oracle_left_seconds(const struct bench *b);

/* How long to sample.  A search takes few samples and censors: it stops early once the time is
 * above censor_above_ms.  An exhaustive search takes fewer samples and never censors. */
enum { SAMPLES_OF_AN_INTERVAL = 6 }; /* the fewest of a 95 % order-statistic interval */

struct sampling {
    int min_samples, max_samples;    /* max_samples 0: verify, do not time */
    double min_seconds, max_seconds; /* of timing, without the warm-up; a GPU heeds min_seconds only
                                        with all_layers, because nothing else disturbs it */
    double limit_s;         /* of the whole call, waiting and verifying included: the samples of an
                               interval are enough where more would end later; 0: none */
    double censor_above_ms; /* 0: never */
    bool beside_first; /* the others are ways beside the first one: a way that is slower for certain
                          needs no more than the samples of an interval */
    bool all_layers;   /* false: time as few as keep the weights out of the caches, scale to L */
    bool all_rows; /* with all_layers: compare all rows of each layer with the oracle's, not only
                      a sample of the layers after the first */
};
extern const struct sampling sampling_search, sampling_exhaustive, sampling_final, sampling_bench;

/* Builds, verifies and times one segment alone, with lengths on packed tokens or on all rows.
 * Returns 0 with *out filled in even if the candidate fails, and -1 only where the environment or
 * an interrupt ends the work.  The caller releases *out with trial_release() after a 0. */
int bench_segment(struct bench *b, const struct choice *c, bool packed, const struct sampling *how,
                  struct trial *out, struct status *st);

/* Does the same for a whole plan: verifies each segment alone, then the plan layer by layer, and
 * times it. */
int bench_plan(struct bench *b, const struct candidate *c, const struct sampling *how,
               struct trial *out, struct status *st);

/* Times n candidates interleaved: each round takes one sample of every candidate, in random order.
 * trials[i] is of candidates[i]; sample k of every trial was taken in round k. */
int bench_compare(struct bench *b, const struct candidate *candidates, int n,
                  const struct sampling *how, struct trial *trials, struct status *st);

/* Runs a candidate once and writes x, mask, y and all weights as .npy, and workload.json, into dir:
 * y follows from these files alone.  Writes all of them or none.  dir must be new or empty; with
 * `replace` set it may hold other files, which stay. */
int bench_dump(struct bench *b, const struct candidate *c, const char *dir, bool replace,
               struct status *st);

/* Writes what goes into the first layer and comes out of the last one alone: x and y.  Compares
 * layer 0 with the oracle; bench_compare() compares all. */
int bench_dump_flow(struct bench *b, const struct candidate *c, const char *dir, struct status *st);

/* Does the same as bench_dump() for one segment alone, in layer 0, all of whose inputs and outputs
 * have rows of tokens: its inputs and outputs are files by the names of their tensors. */
int bench_dump_segment(struct bench *b, const struct choice *c, const char *dir, bool replace,
                       struct status *st);

/* ---- stamps.c: where the time of a plan's layers goes
 * ---------------------------------------------
 *
 * Kernels of a GPU are compiled once more and leave the times at which their thread blocks come to
 * each step (kernels/cuda/stamps.h).  Times count from the end of the kernel in front, so that the
 * phases of all kernels add up to the time of a layer.  Up to the last phase they are those of the
 * median thread block. */

enum stamp_phase {
    STAMP_HAND_OVER,  /* until its wait for the kernel in front returns */
    STAMP_LOADS,      /* until the first product has its operands */
    STAMP_PRODUCTS,   /* until the last product is complete; also a softmax between them */
    STAMP_EPILOGUE,   /* until the thread block ends: what follows sums, exchanges, stores */
    STAMP_UNDIVIDED,  /* loads, products and epilogue of a kernel that does not tell them apart */
    STAMP_LAST_BLOCK, /* until the last thread block ends */
    STAMP_PHASES
};
extern const char *const stamp_names[STAMP_PHASES]; /* "hand_over", ... */

struct stamps {
    struct status reason;        /* why there are none; STATUS_OK: there are */
    double plain_ms, stamped_ms; /* of all layers, the plan's own kernels and those with stamps,
                                    in turns */
    int count;                   /* of the plan's kernels */
    double us[OP_COUNT][STAMP_PHASES]; /* NaN where not known.  A kernel of a library has no stamps:
                                          its time is in the hand-over of the next one that has. */
};

/* Builds, verifies, times and runs a candidate of a GPU with stamps.  Returns -1 only where the
 * environment or an interrupt ends the work. */
int bench_stamps(struct bench *b, const struct candidate *c, struct stamps *out, struct status *st);

/* ---- message.c: a workload as it is printed -------------------------------------------------- */

json_t *workload_json(const struct workload *w, enum target_kind target);

/* ---- environment.c: what doctor reports ------------------------------------------------------ */

struct env_check {
    char *subject, *found, *advice; /* owned; advice is empty where state is ENV_OK */
    enum { ENV_OK, ENV_WARNING, ENV_MISSING } state;
    bool required; /* a missing required thing makes doctor exit 1 */
};

struct env_list {
    struct env_check *rows; /* owned */
    int count;
};

/* Replaces path by that of make, which builds libraries. */
int env_find_make(struct buf *path, struct status *st);

/* One row for each thing that can be missing or mismatched. */
void env_check_all(struct env_list *out);

/* Only the rows that say what makes times on a target vary: load, clock governor. */
void env_check_noise(struct target_name target, struct env_list *out);
void env_list_release(struct env_list *list);
