/* bench/worker: loads, verifies and times candidates, and may die of them.
 *
 * A program of its own: of bench/ it includes bench.h, wire/ and oracle/ alone.
 *
 * Only device_*.c knows a target; the rest works through struct device_ops.  To add a target: its
 * device_ops and a row in device.c. */
#ifndef FUSEPLAN_BENCH_WORKER_INT_H
#define FUSEPLAN_BENCH_WORKER_INT_H

#include "bench/bench.h"
#include "bench/oracle/oracle.h"
#include "bench/wire/wire.h"

/* ---- device.c, device_cpu.c, device_cuda.c: memory, code and time of one target -----------------
 *
 * Memory is addressed by the device's own pointers and holds elements of the workload's type.  What
 * a device is asked for happens in that order, but only view() and time() wait for its end.  A
 * failure that leaves the device unusable ends the worker: its parent starts another. */

enum { SAMPLES_AT_ONCE = 16 };

struct device;   /* an open device with the workload's mask on it */
struct function; /* a loaded segment, owned by the device */
struct replay;   /* launches that run one after another, again and again */

struct launch {
    const struct function *function;
    const struct choice *choice; /* borrowed until prepare() returns */
    void *tensor[TENSOR_COUNT];  /* null where the segment does not touch it */
    void *weight[WEIGHT_COUNT];
};

struct device_ops {
    int (*open)(int index, const struct workload *w, struct device **out, struct status *st);
    void (*close)(struct device *d);

    int (*load)(struct device *d, const char *path, const char *symbol, const struct function **out,
                struct status *st);

    int (*alloc)(struct device *d, int64_t elements, void **out, struct status *st);
    void (*free)(struct device *d, void *memory);
    int (*upload)(struct device *d, void *to, const float *from, int64_t elements,
                  struct status *st);
    /* The elements as they are stored, where the host can read them; until the next view() or
     * upload(). */
    int (*view)(struct device *d, const void *memory, int64_t elements, const void **out,
                struct status *st);
    int (*poison)(struct device *d, void *memory, int64_t elements, struct status *st); /* NaN */

    int (*prepare)(struct device *d, const struct launch *launches, int count, struct replay **out,
                   struct status *st);
    void (*release)(struct replay *r);
    /* Runs launches first..first+count-1 once. */
    int (*run)(struct replay *r, int first, int count, struct status *st);
    /* Runs all of it again and again; seconds[i] is what the i-th `repeats` times took.  At most
     * SAMPLES_AT_ONCE samples. */
    int (*time)(struct replay *r, int repeats, int samples, double *seconds, struct status *st);

    /* Runs all of it once; out[i] is when launch i of count ran. */
    int (*trace)(struct device *d, struct replay *r, int count, struct launch_time *out,
                 struct status *st);

    /* What the first launch takes; null where a target does not say. */
    void (*resources)(const struct replay *r, struct resources *out);

    /* Bytes of memory near the cores, which weights must exceed so as not to stay there. */
    int64_t (*cache_bytes)(struct device *d);

    /* What it is like now; null where a target does not say. */
    void (*conditions)(struct device *d, struct conditions *out);

    /* Nobody else computes on it, and it runs what it was told in advance: once it has begun, its
     * times are steady.  The first of several is not: the host's time for asking is in it. */
    bool undisturbed;

    /* Null where a target does not say. */
    void (*limits)(struct device *d, struct limits *out);
};
extern const struct device_ops device_cpu, device_cuda;

/* Null where this build lacks the target. */
const struct device_ops *device_ops_of(enum target_kind kind);

/* ---- bank.c: the tensors and weights on the device ----------------------------------------------
 *
 * What every plan needs is allocated at once.  The tensors inside a layer are when first asked for:
 * (B,H,S,S) are large and most plans need none; one that finds no memory for them is unfit.  A
 * layer's input and output alternate between two tensors, so that layer l reads what l-1 wrote; x,
 * the input of layer 0, is kept apart. */

struct bank {
    const struct workload *w;
    const struct device_ops *ops;
    struct device *device; /* borrowed */
    struct inputs inputs;
    void *tensor[TENSOR_COUNT]; /* those inside a layer; 0 and the last are unused */
    void *x, *flow[2];
    bool x_filled;
    void *(*weight)[WEIGHT_COUNT]; /* (L) */
    bool (*drawn)[WEIGHT_COUNT];   /* (L) the weight holds its values */
    float *values;                 /* what bank_read() gave last, owned */
    int64_t value_count;           /* that it has room for */
};

/* Release it even where it fails. */
int bank_init(struct bank *k, const struct workload *w, const struct device_ops *on,
              struct device *d, struct inputs inputs, struct status *st);
void bank_release(struct bank *k);

/* The tensors inside a layer that have memory (bits). */
uint16_t bank_held(const struct bank *k);

/* Gives the memory of all of these back but for those in `keep`. */
void bank_trim(struct bank *k, uint16_t keep);

/* The memory of tensor t of a layer; its failure is the candidate's. */
int bank_tensor(struct bank *k, int layer, int t, void **out, struct status *st);
int bank_weight(struct bank *k, int layer, enum weight_id id, void **out, struct status *st);

/* Poisons the tensors in `set` (bits) of a layer. */
int bank_poison(struct bank *k, int layer, uint16_t set, struct status *st);

/* Values of tensor t of a layer, where they are on the device; until the next call. */
int bank_read(struct bank *k, int layer, int t, const float **out, struct status *st);

/* Fills the input of a layer.  No program writes layer 0's: like the weights it is filled once. */
int bank_feed(struct bank *k, int layer, const float *x, struct status *st);

/* A program that is wrong may have written anywhere: fills x and the weights anew, which the next
 * ones read, and those that were verified before it. */
int bank_refill(struct bank *k, struct status *st);

/* ---- reference.c: what the oracle says, computed when first asked for ------------------------ */

struct reference {
    const struct workload *w;
    struct inputs inputs;
    struct oracle_layer first; /* every tensor of layer 0 */
    int known;                 /* layers computed */
    float **x;                 /* (L+1) input of a layer, rounded to the type; x[0] is drawn */
    double **y;                /* (L) output of a layer for exactly that input */
};

void reference_init(struct reference *r, const struct workload *w, struct inputs inputs);
void reference_release(struct reference *r);

/* Makes layers 0..layers-1 known; beat() is called before each one's computation. */
void reference_need(struct reference *r, int layers, void (*beat)(void *ctx, int layer), void *ctx);

/* ---- program.c: choices -> launches ---------------------------------------------------------- */

struct part { /* one segment of a program */
    struct choice choice;
    char *name; /* "segment 2-6 (generated)" */
    const struct function *function;
    uint16_t tensors; /* all it touches: inputs, outputs and what passes between its stages */
    char *verdict;    /* where it must be verified: what to call its verdict; else null */
};

struct program {
    int part_count;
    struct part parts[OP_COUNT];
    bool alone;                  /* one segment, not a whole plan */
    int layers;                  /* timed */
    double tolerance;            /* of a segment */
    struct replay *replay;       /* the parts of all layers, one after another */
    double error;                /* largest that was seen while verifying */
    double once_s;               /* of a plan: what its first whole run took */
    char result[HASH_TEXT_SIZE]; /* of a plan: of the last layer's output, see result_hash() */
};

struct worker;

int program_load(struct worker *k, const json_t *candidate, int layers, struct program *out,
                 struct status *st);
void program_release(struct worker *k, struct program *p);

/* Forgets all functions; the device frees them. */
void program_forget(struct worker *k);

/* One launch of a part on the tensors of one layer with the weights of another. */
int program_launch(struct worker *k, const struct part *part, int tensors_of, int weights_of,
                   struct launch *out, struct status *st);

/* Inputs of segment s on the device: layer 0's, from the oracle. */
int program_feed(struct worker *k, struct segment s, struct status *st);

/* ---- verify.c -------------------------------------------------------------------------------- */

/* Each part alone that has no verdict yet, then, of a plan, its first `compared` layers against the
 * oracle, each fed the oracle's input, and all of them in one run against one by one.  A wrong
 * result is STATUS_WRONG. */
int verify_program(struct worker *k, struct program *p, int compared, struct status *st);

/* Poisons a plan's result: what is found there later was written after this. */
int verify_spoil(struct worker *k, const struct program *p, struct status *st);

/* After timing: the same result as before.  `run`: in one run more, because what the last timed one
 * gave is lost. */
int verify_again(struct worker *k, struct program *p, bool run, struct status *st);

/* ---- sampling.c: when to sample and when to stop
 * -------------------------------------------------
 *
 * Knows nothing of devices: contenders give samples. */

struct contender {
    /* One sample: how long it took, and the time that it stands for.  At least `ahead` of this
     * contender follow one another from this one on: they may be taken at once. */
    int (*sample)(void *ctx, int ahead, double *seconds, double *ms, struct status *st);
    void *ctx;
    struct trial *trial; /* status, reason and samples are filled in */
    double elapsed_s;    /* of its samples */
    bool out;            /* censored or failed: samples no more */
};

/* What runs before the first sample, in seconds: all together, for the device's clocks, and each
 * contender, for its own data. */
struct warm_up {
    double device_s, each_s;
};

/* One sample of each in every round, in random order.  beat() is called before each sample. */
void measure(struct contender *contenders, int n, const struct sampling *how,
             const struct warm_up *warm, uint64_t shuffle, void (*beat)(void *ctx, int contender),
             void *ctx);

/* ---- trace.c: when each launch runs ---------------------------------------------------------- */

/* The launches of a program, one after another, from several passes: [[start_s, seconds], ...]. */
int trace_program(struct worker *k, struct program *p, json_t **out, struct status *st);

/* passes is (pass_count, launches), ascending and without overlap in each.  Of each launch the
 * median time and the median of the gap before it. */
void trace_settle(const struct launch_time *passes, int pass_count, int launches,
                  struct launch_time *out);

/* ---- dump.c ---------------------------------------------------------------------------------- */

int dump_program(struct worker *k, struct program *p, const char *dir, struct status *st);

/* ---- serve.c: requests and replies ----------------------------------------------------------- */

struct worker {
    int channel;
    struct workload w;
    enum target_kind target;
    const struct device_ops *ops;
    struct device *device;
    struct bank bank;
    struct reference reference;
    void *loaded;       /* functions by path, a tree of program.c's */
    int candidate;      /* index of the one being served */
    double last_beat_s; /* when the parent last heard of it */
    double last_run_s;  /* when the device was last timed, clock_seconds() */
};

/* Serves until the parent hangs up. */
int worker_serve(int channel, int mask_fd);

/* ---- say.c: what the parent hears of the work ------------------------------------------------ */

/* Sends any message and takes it over. */
void worker_say(struct worker *k, json_t *message);

/* Tells the parent what is done next; a deadline starts anew. */
void worker_doing(struct worker *k, const char *what, ...) PRINTF_LIKE(2, 3);
void worker_passed(struct worker *k, const char *verdict, double error);

/* Makes the oracle's layers known, saying so. */
void worker_need_reference(struct worker *k, int layers);

/* ---- measure.c: the request to verify and time candidates ------------------------------------ */

/* As few layers as keep weights out of a cache of that many bytes. */
int layers_to_time(const struct workload *w, int64_t cache_bytes);

int worker_measure(struct worker *k, const json_t *request, json_t *reply, struct status *st);

#endif
