/* bench/worker: loads, verifies and times candidates, in a process of its own that a candidate may
 * crash.
 *
 * Of bench/ it includes only bench.h, wire/ and oracle/.
 *
 * Only device_*.c knows a target; the other files work through struct device_ops.  To add a target:
 * its device_ops and a row in devices[] (serve.c). */
#ifndef FUSEPLAN_BENCH_WORKER_INT_H
#define FUSEPLAN_BENCH_WORKER_INT_H

#include "bench/bench.h"
#include "bench/oracle/oracle.h"
#include "bench/wire/wire.h"
#include "kernels/cuda/stamps.h"

#include <pthread.h>

/* ---- device_cpu.c, device_cuda.c: memory, code and time of one target ---------------------------
 *
 * Memory is addressed by the device's own pointers and holds elements of the workload's type, but
 * for tables.  A device queues its work and does it in that order; only upload(), view() and time()
 * wait for the queue's end.  A failure that leaves the device unusable ends the worker: its parent
 * starts another. */

enum { SAMPLES_AT_ONCE = 16 };

struct device;   /* an open device with the workload's masks on it */
struct function; /* a loaded segment; free() it, its code stays loaded */
struct replay;   /* a sequence of launches that runs as often as it is asked for */

/* What a segment reads and stores in e4m3; see kernels/cuda/abi.h. */
struct launch_e4m3 {
    void *in, *weight, *out; /* null where it has none */
    float alpha, out_scale;  /* 1 where it has none */
};

struct launch {
    const struct function *function; /* null: a library runs it */
    const struct choice *choice;     /* borrowed until prepare() returns */
    int kind;                        /* of the layer: see workload_of_kind() */
    bool packed;                     /* tensors of token rows are: see kernels/cuda/abi.h */
    void *tensor[TENSOR_COUNT];      /* null where the segment does not touch it */
    void *weight[WEIGHT_MAX];
    struct launch_e4m3 e4m3;
};

/* What the thread blocks of a launch left; none where it is not stamped. */
struct launch_stamps {
    int blocks;
    const struct fp_stamps *of_block;
};

struct device_ops {
    /* Does beforehand what open() and first launches would, without the device.  May be null. */
    void (*start)(void);
    int (*open)(int index, const struct workload *w, struct device **out, struct status *st);
    void (*close)(struct device *d);
    /* Opens the library that runs some segments, and has it do what it does once.  May be null. */
    void (*open_library)(struct device *d);

    int (*load)(struct device *d, const char *path, const char *symbol, struct function **out,
                struct status *st);

    int (*alloc)(struct device *d, int64_t bytes, void **out, struct status *st);
    void (*free)(struct device *d, void *memory);
    /* Stores elements as `dtype`: the workload's, or fp32 of tables. */
    void (*upload)(struct device *d, void *to, enum dtype dtype, const float *from,
                   int64_t elements);
    /* Copies bytes as they are.  Null where nothing is in e4m3. */
    void (*write)(struct device *d, void *to, const void *from, int64_t bytes);
    /* The elements as stored, in host memory that holds them until the next view() or upload(). */
    const void *(*view)(struct device *d, const void *memory, int64_t elements);
    void (*poison)(struct device *d, void *memory, int64_t elements); /* fills it with NaN */
    /* Copies what the device holds.  Null where an upload takes no longer. */
    void (*copy)(struct device *d, void *to, const void *from, int64_t elements);
    /* A number that other bytes hardly have, always computed there or always refused of as many
     * bytes (false).  Null where view() costs nothing. */
    bool (*hash)(struct device *d, const void *memory, int64_t bytes, uint64_t *out);

    int (*prepare)(struct device *d, const struct launch *launches, int count, struct replay **out,
                   struct status *st);
    void (*release)(struct replay *r);
    /* Runs launches first..first+count-1 once. */
    int (*run)(struct replay *r, int first, int count, struct status *st);
    /* Takes `samples` samples, at most SAMPLES_AT_ONCE.  Sample i runs all launches `repeats`
     * times, which takes seconds[i]. */
    int (*time)(struct replay *r, int repeats, int samples, double *seconds, struct status *st);

    /* Runs all launches, and lends their stamps until the next call.  Null where there are none. */
    int (*stamps)(struct replay *r, struct launch_stamps *out, struct status *st);

    /* The resources of the first launch.  The pointer is null where the target does not say, as are
     * conditions and limits. */
    void (*resources)(const struct replay *r, struct resources *out);

    /* Bytes of cache near the cores.  Weights must exceed them, or they would stay there. */
    int64_t (*cache_bytes)(struct device *d);

    /* What the device is like, or was since watch(), which comes before the timing and may
     * be null. */
    void (*watch)(struct device *d);
    void (*conditions)(struct device *d, struct conditions *out);

    void (*limits)(struct device *d, struct limits *out);

    /* The device runs nothing but this worker's queue, so that samples are steady.  But the first
     * of several samples includes the time in which the host fills the queue. */
    bool undisturbed;
};
extern const struct device_ops device_cpu, device_cuda;

/* ---- packing.c: where the rows of real tokens lie with padding ------------------------------- */

/* Null and 0 without lengths. */
struct packing {
    int tokens;
    int *unpacked; /* (tokens) the row in (B*S) of each; owned */
    int *offset;   /* (B+1) the first of each sequence; owned */
};
void packing_init(struct packing *p, const struct workload *w);
void packing_release(struct packing *p);

/* ---- core_use.c: how far other programs took cores from this process ------------------------- */

struct core_use { /* in seconds; negative if the system does not say */
    double clock_s, busy_s, own_s, stopped_s, waited_s;
};
void core_use_begin(struct core_use *u);
void core_use_end(const struct core_use *begin, struct conditions *out);

#include "bench/worker/tensors_int.h"

/* ---- reference.c: the oracle's results, computed when first asked for ---------------------------
 *
 * Layers are compared on all rows, each with the inputs that the layer before it gives it.  Or only
 * the first of each kind is, and later layers are compared on a sample of their rows, all with the
 * inputs that layer 0 gives: that costs the oracle a small part. */

struct reference {
    const struct workload *w;
    struct inputs inputs;
    const struct rounding *rounding; /* (L) of each layer, borrowed; null: it is exact */
    int beat_ms;                     /* between two calls of beat() */
    bool nice;                       /* layer 0 is not urgent: its thread gives way to others */
    bool running;                    /* a thread computes layer `known` */
    pthread_t thread;
    bool sampling; /* a thread computes samples */
    pthread_t sampler;
    pthread_mutex_t lock;          /* of the next four */
    pthread_cond_t end;            /* `ended` became true */
    bool ended;                    /* the thread of layer `known` is done */
    bool stopped;                  /* the sampler begins no more layers */
    int sampled;                   /* later layers up to this one have samples */
    int known;                     /* layers computed on all rows */
    struct flow *in;               /* (L+1) inputs of a layer, rounded to the type; 0's are drawn */
    struct oracle_results *layer;  /* (L) of the first of each kind all but its inputs, of others
                                      what  they carry */
    struct oracle_results *sample; /* (L) samples of what layers after the first carry */
    double sample_s;               /* seconds that one sample is expected to take */
};

/* How long the samples that are not computed yet will take, in seconds; after reference_need(). */
double reference_left_s(struct reference *r);

void reference_init(struct reference *r, const struct workload *w, struct inputs inputs);
void reference_release(struct reference *r);

/* Computes the first layer that is not known in a thread.  reference_need() waits for its end, and
 * nothing that it gives may be touched before. */
void reference_start(struct reference *r);

/* Whether a thread computes a whole layer. */
bool reference_computes(struct reference *r);

/* Once layer 0 is known, computes samples of the others in a thread, by a quarter of the cores. */
void reference_start_samples(struct reference *r);

/* Computes the layers of 0..layers-1 that are not known yet; calls beat() before each, and again
 * and again while it computes all rows of a layer: however slow the machine, no candidate is to
 * blame. */
void reference_need(struct reference *r, int layers, bool all_rows,
                    void (*beat)(void *ctx, int layer), void *ctx);

/* The inputs of a layer that is known, and what it must give. */
const struct flow *reference_input(const struct reference *r, int layer, bool all_rows);
const struct oracle_results *reference_output(const struct reference *r, int layer, bool all_rows);

/* ---- program.c: choices -> launches ---------------------------------------------------------- */

struct part { /* one segment of a program */
    struct choice choice;
    char *name;                      /* "segment 2-6 (generated)" */
    const struct function *function; /* null: a library runs it */
    uint32_t tensors; /* inputs, outputs and what passes between the segment's stages */
    struct e4m3_use e4m3;
    char *verdict;              /* the name under which to report a pass; null: there is none */
    bool verified;              /* by an earlier request, perhaps of another process */
    char right[HASH_TEXT_SIZE]; /* of a segment alone, the hash of what the oracle has accepted in
                                   layer 0; empty: not known */
    bool recalled; /* `right` is of an earlier request, perhaps of a process with other inputs */
};

struct program {
    int part_count;
    struct part parts[OP_COUNT];
    bool alone;            /* one segment, not a whole plan */
    bool packed;           /* token rows are packed, but not where its parts are verified alone */
    unsigned precision;    /* GEMMs whose operands are e4m3, as bits */
    int layers;            /* timed */
    bool all_rows;         /* compared with the oracle's in every layer, not only in layer 0 */
    double tolerance;      /* of a segment */
    struct replay *replay; /* the parts of all layers, one after another */
    double error;          /* the largest seen while verifying */
    double once_s;         /* the time of its first whole run */
    char result[HASH_TEXT_SIZE]; /* the hash of what its runs must give, verified of a plan */
    double look_s;               /* the least time that it took to hash it */
};

struct worker;

/* Loads a candidate's segments, each once for all candidates, and prepares its launches.  Release
 * *out even if it fails. */
int program_load(struct worker *k, const json_t *candidate, int layers, struct program *out,
                 struct status *st);
void program_release(struct worker *k, struct program *p);

/* Frees all loaded functions. */
void program_forget(struct worker *k);

/* One launch of a part on the tensors of one layer with the weights of another, packed if the
 * tensors are. */
int program_launch(struct worker *k, const struct part *part, int tensors_of, int weights_of,
                   struct launch *out, struct status *st);

/* Fills the inputs of segment s, which have memory, from the oracle, in a layer that is the first
 * of its kind.  Layer 0's go to the device once, and are copied there from then on. */
void program_feed(struct worker *k, struct segment s, int layer);

/* Fills what a segment reads in e4m3, too. */
void program_feed_part(struct worker *k, const struct part *part, int layer);

/* ---- verify.c -------------------------------------------------------------------------------- */

/* Verifies each part that was not verified before, alone, on the oracle's inputs, in the first
 * layer of each kind.  Then, of a plan, compares the result of all layers in one run with the
 * result of layers run one by one, and the output of each of the first `compared` layers with the
 * oracle's.  A wrong result is STATUS_WRONG. Of a segment alone, the result of its first whole run
 * is what later runs must give. */
int verify_program(struct worker *k, struct program *p, int compared, struct status *st);

/* Fills all tensors that a program writes, or its result, with NaN.  A number that is found there
 * later was written later. */
void verify_spoil(struct worker *k, const struct program *p);
void verify_spoil_result(struct worker *k, const struct program *p);

/* ---- verify_e4m3.c ------------------------------------------------------------------------------
 *
 * A GEMM in e4m3 is compared with sums in double of the same codes, another result in e4m3 with the
 * numbers that become its codes, and a copy with what it is a copy of, bit by bit. */

/* What the first layer of a kind gives if one of its GEMMs, and nothing before it, is of e4m3. */
const struct oracle_results *verify_rounded_gemm(struct worker *k, int layer, int gemm);

/* The most that the error of such a GEMM may be. */
double verify_gemm_tolerance(const struct worker *k, int gemm);

/* The oracle's layers with a program's precision. */
struct reference *verify_rounded_layers(struct worker *k, unsigned precision);

/* Whether a part's output in e4m3 is right, which others read only so, or the copy of one. */
struct oracle_error verify_codes(struct worker *k, const struct part *part, int layer, float scale,
                                 const struct oracle_results *right);
int verify_copy(struct worker *k, const struct part *part, int layer, float scale,
                struct status *st);

/* Frees what the worker keeps for them. */
void verify_e4m3_release(struct worker *k);

/* Compares the result of the run before with that of verify_program().  when: "after timing". */
int verify_result(struct worker *k, struct program *p, const char *when, struct status *st);

/* After timing: compares the result once more, and that of one more run, before which all that the
 * program writes is poisoned.  A segment is verified alone in that run.  kept: no other program has
 * run since the last timed run. */
int verify_again(struct worker *k, struct program *p, bool kept, struct status *st);

/* ---- sampling.c: when to sample and when to stop ------------------------------------------------
 *
 * It knows no device: contenders supply the samples. */

struct contender {
    /* Takes one sample.  *seconds: how long that took; *ms: the time measured.  This contender's
     * next ahead-1 samples will follow without another contender's between them, so that all may be
     * taken at once. */
    int (*sample)(void *ctx, int ahead, double *seconds, double *ms, struct status *st);
    void *ctx;
    struct trial *trial; /* gets status, reason and samples */
    double elapsed_s;    /* of its samples */
    double verify_s;     /* what verifying it again will take, once all have ended */
    bool out;            /* censored or failed: samples no more */
    bool rests;          /* far slower than another one: samples no more */
};

/* Seconds to run before the first sample: all contenders together, for the device's clocks, and
 * each contender, for its own data. */
struct warm_up {
    double device_s, each_s;
};

/* Takes one sample of each contender in every round, in random order, until all are satisfied or
 * out, or another round would end after how->limit_s, which begins with the warm-up and leaves time
 * to verify all again.  Calls beat() before each sample. */
void measure(struct contender *contenders, int n, const struct sampling *how,
             const struct warm_up *warm, uint64_t shuffle, void (*beat)(void *ctx, int contender),
             void *ctx);

/* How far it is. */
struct sampling_progress {
    int rounds, most; /* taken; what the slowest may take until its limits stop it */
    double left_s;    /* until `most` rounds are taken */
};
struct sampling_progress sampling_progress(const struct contender *contenders, int n,
                                           const struct sampling *how);

/* ---- stamps.c: where the time of a layer goes ------------------------------------------------ */

/* The microseconds of each phase of `count` launches that ran one after another.  NaN where they
 * are not known; all of them are where the launch has no stamps: then its time counts as the
 * hand-over of the next one that has. */
void stamps_times(const struct launch_stamps *launches, int count, double (*us)[STAMP_PHASES]);

/* The request "stamps": runs a candidate and says for each of its parts what stamps_times() gives,
 * in the median. */
int worker_stamps(struct worker *k, const json_t *request, json_t *reply, struct status *st);

/* ---- dump.c ---------------------------------------------------------------------------------- */

/* Runs a program once and writes its inputs and outputs, and with `whole` the mask and the weights
 * that it reads, as .npy files into dir: see bench_dump(), bench_dump_segment() and
 * bench_dump_flow(). */
int dump_program(struct worker *k, struct program *p, const char *dir, bool whole,
                 struct status *st);

/* ---- serve.c: requests and replies ----------------------------------------------------------- */

struct worker {
    int channel, mask_fd;
    char token[TOKEN_SIZE]; /* see wire.h */
    struct workload w;
    struct inputs inputs; /* owns `trained` */
    enum target_kind target;
    const struct device_ops *ops;
    struct device *device;
    struct tensors tensors;
    struct reference reference;
    struct oracle_results rounded_gemm[KINDS_MAX][GEMM_COUNT]; /* see verify_rounded_gemm() */
    struct reference rounded;                                  /* see verify_rounded_layers() */
    struct rounding *rounding;                                 /* (L) of `rounded`, owned */
    void *loaded;       /* functions by path, a tree of program.c's */
    int candidate;      /* index of the one being served */
    double last_beat_s; /* when the parent last heard of it, clock_seconds() */
    double last_run_s;  /* when the device was last timed */
};

/* Serves until the parent hangs up.  Returns the process's exit status. */
int worker_serve(int channel, int mask_fd);

/* ---- say.c: what the parent hears of the work ------------------------------------------------ */

/* Sends any message and takes it over. */
void worker_say(struct worker *k, json_t *message);

/* Tells the parent what the worker does next; a deadline starts anew. */
void worker_doing(struct worker *k, const char *what, ...) PRINTF_LIKE(2, 3);
void worker_timing(struct worker *k, const struct sampling_progress *so_far);
void worker_passed(struct worker *k, const struct part *part, double error);

/* ---- wait.c: the oracle, and a device that waits for it ---------------------------------------
 */

/* "idle_s" of a request: so many seconds ago another session ended its work on the device. */
void worker_note_use(struct worker *k, const json_t *request);
struct warm_up worker_warm_up(const struct worker *k);

/* reference_need() that tells the parent of each layer, and readies the device meanwhile. */
void worker_need_reference(struct worker *k, struct reference *r, int layers, bool all_rows);

/* ---- measure.c: the request to verify and time candidates ------------------------------------ */

/* The fewest layers whose weights and tensors exceed cache_bytes; at least 2, at most all. */
int layers_to_time(const struct workload *w, int64_t cache_bytes);

int worker_measure(struct worker *k, const json_t *request, json_t *reply, struct status *st);

#endif
