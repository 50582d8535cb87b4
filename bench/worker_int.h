/* The worker: loads, verifies and times candidates, and may die of them.
 *
 * Only device_*.c knows a target; the rest works through struct device_ops.  To add a target: its
 * device_ops and a row in device.c. */
#ifndef FUSEPLAN_BENCH_WORKER_INT_H
#define FUSEPLAN_BENCH_WORKER_INT_H

#include "bench/bench.h"
#include "bench/message_int.h"
#include "bench/oracle.h"

/* ---- device.c, device_cpu.c, device_cuda.c: memory, code and time of one target
 * ---------------------------------
 *
 * Memory is addressed by the device's own pointers and holds elements of the workload's type; the
 * host's side is always fp32.  A failure that leaves the device unusable ends the worker: its
 * parent starts another. */

struct device;   /* an open device with the workload's mask on it */
struct function; /* a loaded segment, owned by the device */
struct replay;   /* launches that run one after another, again and again */

struct launch {
    const struct function *function;
    const struct choice *choice; /* borrowed until prepare() returns */
    void *tensor[TENSOR_COUNT];  /* null where the segment does not touch it */
    void *weight[WEIGHT_COUNT];
    int knob[KNOB_MAX]; /* run-time knobs, at their places among the implementation's knobs */
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
    int (*download)(struct device *d, float *to, const void *from, int64_t elements,
                    struct status *st);
    int (*poison)(struct device *d, void *memory, int64_t elements, struct status *st); /* NaN */

    int (*prepare)(struct device *d, const struct launch *launches, int count, struct replay **out,
                   struct status *st);
    void (*release)(struct replay *r);
    /* Runs it `repeats` times and waits for the end; *seconds is what that took. */
    int (*run)(struct replay *r, int repeats, double *seconds, struct status *st);

    /* What the first launch takes; null where a target does not say. */
    void (*resources)(const struct replay *r, struct resources *out);

    /* Bytes of memory near the cores, which weights must exceed so as not to stay there. */
    int64_t (*cache_bytes)(struct device *d);

    bool undisturbed; /* its times are steady from the first: nobody else computes on it */

    /* Null where a target does not say. */
    void (*limits)(struct device *d, struct limits *out);
};
extern const struct device_ops device_cpu, device_cuda;

/* Null where this build lacks the target. */
const struct device_ops *device_ops_of(enum target_kind kind);

/* ---- bank.c: the tensors and weights on the device ---------------------------------------------
 *
 * What every plan needs is allocated at once.  The tensors inside a layer are when first asked for:
 * (B,H,S,S) are large and most plans need none; one that finds no memory for them is unfit.  A
 * layer's input and output alternate between two tensors, so that layer l reads what l-1 wrote; x,
 * the input of layer 0, is kept apart. */

struct bank {
    const struct workload *w;
    const struct device_ops *ops;
    struct device *device; /* borrowed */
    uint64_t seed;
    bool notes;
    void *tensor[TENSOR_COUNT]; /* those inside a layer; 0 and the last are unused */
    void *x, *flow[2];
    void *(*weight)[WEIGHT_COUNT]; /* (L) */
    bool (*drawn)[WEIGHT_COUNT];   /* (L) the weight holds its values */
};

/* Release it even where it fails. */
int bank_init(struct bank *k, const struct workload *w, const struct device_ops *on,
              struct device *d, uint64_t seed, bool notes, struct status *st);
void bank_release(struct bank *k);

/* The memory of tensor t of a layer; its failure is the candidate's. */
int bank_tensor(struct bank *k, int layer, int t, void **out, struct status *st);
int bank_weight(struct bank *k, int layer, enum weight_id id, void **out, struct status *st);

/* Poisons the tensors in `set` (bits) of a layer. */
int bank_poison(struct bank *k, int layer, uint16_t set, struct status *st);

/* ---- reference.c: what the oracle says, computed when first asked for
 * ---------------------------*/

struct reference {
    const struct workload *w;
    uint64_t seed;
    bool notes;
    struct oracle_layer first; /* every tensor of layer 0 */
    int known;                 /* layers computed */
    float **x;                 /* (L+1) input of a layer, rounded to the type; x[0] is drawn */
    double **y;                /* (L) output of a layer for exactly that input */
};

void reference_init(struct reference *r, const struct workload *w, uint64_t seed, bool notes);
void reference_release(struct reference *r);

/* Makes layers 0..layers-1 known; beat() is called before each one's computation. */
void reference_need(struct reference *r, int layers, void (*beat)(void *ctx, int layer), void *ctx);

/* ---- program.c: choices -> launches
 * ------------------------------------------------------------*/

struct part { /* one segment of a program */
    struct choice choice;
    char *name; /* "segment 2-6 (generated)" */
    const struct function *function;
    uint16_t tensors; /* all it touches: inputs, outputs and what passes between its stages */
    int knob[KNOB_MAX];
    char *verdict; /* where it must be verified: what to call its verdict; else null */
};

struct program {
    int part_count;
    struct part parts[OP_COUNT];
    bool alone;            /* one segment, not a whole plan */
    int layers;            /* timed */
    double tolerance;      /* of a segment */
    struct replay **layer; /* (layers) */
    struct replay *whole;  /* the layers, one after another */
    double error;          /* largest that was seen while verifying */
    float *result;         /* of a plan: output of the last layer, to compare with later runs */
};

struct worker;

int program_load(struct worker *k, const json_t *candidate, int layers, struct program *out,
                 struct status *st);
void program_release(struct worker *k, struct program *p);

/* One launch of a part on the tensors of one layer with the weights of another. */
int program_launch(struct worker *k, const struct part *part, int tensors_of, int weights_of,
                   struct launch *out, struct status *st);

/* Inputs of segment s on the device: layer 0's, from the oracle. */
int program_feed(struct worker *k, struct segment s, struct status *st);

/* ---- verify.c
 * ----------------------------------------------------------------------------------*/

/* Each part alone that has no verdict yet, then, of a plan, layer by layer and as a whole.  A wrong
 * result is STATUS_WRONG. */
int verify_program(struct worker *k, struct program *p, struct status *st);

/* After timing: the same result as before. */
int verify_again(struct worker *k, struct program *p, struct status *st);

/* ---- measure.c: when to sample and when to stop ------------------------------------------------
 *
 * Knows nothing of devices: contenders give samples. */

struct contender {
    /* One sample: how long it took, and the time that it stands for. */
    int (*sample)(void *ctx, double *seconds, double *ms, struct status *st);
    void *ctx;
    struct trial *trial; /* status, reason and samples are filled in */
    double elapsed_s;    /* of its samples */
    bool out;            /* censored or failed: samples no more */
};

/* One sample of each in every round, in random order.  warm_up_s: each runs at least this long
 * first. beat() is called before each sample. */
void measure(struct contender *contenders, int n, const struct sampling *how, double warm_up_s,
             uint64_t shuffle, void (*beat)(void *ctx, int contender), void *ctx);

/* ---- dump.c
 * ------------------------------------------------------------------------------------*/

int dump_program(struct worker *k, struct program *p, const char *dir, struct status *st);

/* ---- worker.c: requests and replies
 * ------------------------------------------------------------*/

struct worker {
    int channel;
    struct workload w;
    enum target_kind target;
    const struct device_ops *ops;
    struct device *device;
    struct bank bank;
    struct reference reference;
    int candidate;      /* index of the one being served */
    double last_beat_s; /* when the parent last heard of it */
    double last_run_s;  /* when the device was last timed, clock_seconds() */
};

/* Tells the parent what is done next; a deadline starts anew. */
void worker_doing(struct worker *k, const char *what, ...) PRINTF_LIKE(2, 3);
void worker_passed(struct worker *k, const char *verdict, double error);

/* Makes the oracle's layers known, saying so. */
void worker_need_reference(struct worker *k, int layers);

/* Serves until the parent hangs up. */
int worker_serve(int channel, int mask_fd);

#endif
