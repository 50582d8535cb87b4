/* Inside the library: its plans, a handle, a run, and what its files hand to those above: checks.c,
 * launch.c, layers.c, device.c, model.c, library.c. */
#ifndef PLAN_H
#define PLAN_H

#include "encoder.h"
#include "segment.h"

#include <stdbool.h>

enum { TENSORS = 17, TENSOR_X = 0, TENSOR_SUM = 14, TENSOR_Y = 15, TENSOR_N = 16 };

/* Of a layer: the twelve of struct encoder_weights, and what all layers share.  Kernels take those
 * before FIRST_GAMMA. */
enum { ROPE = 12, SCORE_BIAS, FIRST_GAMMA, FIRST_BETA, WEIGHTS };

/* Kinds of layers: global ones, and local ones if there are any. */
enum { KINDS = 2 };

/* What a kind of layers has of its own in a plan: its mask, of sequences without padding, in host
 * memory. */
struct plan_mask {
    struct fp_blocks lists;
    long entries, words;            /* key blocks in the lists; blocks of their words */
    const struct plan_tiles *tiles; /* of a GPU; null: no segment reads tiles */
};

/* A plan_bB_sS.c holds one. */
struct plan {
    struct encoder_plan about;
    const struct plan_segment *segments; /* (about.kernels), in the order in which they run */
    /* Where tensors lie in the workspace, in elements from the first one's place; -1: nowhere.
     * Tensor 0 is a layer's input, 1+i the output of operator i.  Tensors that are not in use at
     * the same time share memory.  Where tensor 0 has a place, layers write their outputs to it and
     * to the call's y in turn, otherwise to y; likewise tensor 16 and yn. */
    long tensor_at[TENSORS];
    long tensor_elements; /* of all places */
    struct plan_mask masks[KINDS];
};

/* plans.c */
extern const struct encoder_info encoder_library;
extern const struct plan *const encoder_plans[]; /* smallest first */

struct plan_weight {
    const char *name; /* null: layers have none */
    size_t at;        /* its place in struct encoder_weights, or in struct encoder_model */
    long elements;
};
extern const struct plan_weight encoder_layer_weights[WEIGHTS];

struct encoder {
    int layers;
    double eps;
    void *weights;         /* one block of the device's memory */
    const void **weight;   /* (layers, WEIGHTS), pointers into it */
    float **score_bias;    /* (plans), likewise: (heads, 2S-1) of the plan's S, or null */
    struct device *device; /* what device.c keeps; null where nothing is open */
};

/* What a call of encoder_run() works with. */
struct run {
    const struct encoder *e;
    const struct plan *plan;
    int index; /* the plan's */
    const struct encoder_call *call;
    void *stream; /* in which it runs */
    void *x, *y;  /* of all layers, the call's own or in the workspace */
    void *yn;     /* likewise, of layers whose norms stand before */
    char *places; /* of the plan's tensors */
    void *flow;   /* the output of every other layer; null: all write y */
    void *flow_n; /* likewise of yn */
    bool padded;  /* a sequence of the plan's batch has fewer tokens than the plan's */
    bool packed;  /* and the layers run without rows of padding */
    struct fp_args args;
    struct run_space space;
    struct run_mask masks[KINDS];
    bool began; /* a segment of this run was launched */
};

/* Real tokens of a sequence of the plan's batch, which may have more sequences than the call's. */
static inline int encoder_length(const struct run *r, int sequence)
{
    if (sequence >= r->call->batch)
        return 0;
    return r->call->lengths != NULL ? r->call->lengths[sequence] : r->call->seq_len;
}

/* ---- checks.c -------------------------------------------------------------------------------- */

/* Keeps the message for encoder_message(); returns the status. */
int encoder_fail(enum encoder_status status, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

bool encoder_on_cpu(void);

/* Whether layers have this one of enum encoder_functions. */
bool encoder_has(unsigned function);

/* How many kinds of layers there are; that of a layer, 0: global. */
int encoder_kinds(void);
int encoder_kind(int layer);

/* Parts of a block of memory, one after another.  A null base counts the bytes. */
struct carving {
    char *base;
    size_t used;
};
void *encoder_carve(struct carving *c, size_t bytes);

/* Check a call: first all arguments except the memory, then x, y and the workspace.  p: of the
 * plan; needed: bytes of its workspace.  Null and 0: no plan is large enough. */
int encoder_check_call(const struct encoder *e, const struct encoder_call *c);
int encoder_check_memory(const struct encoder *e, const struct encoder_call *c,
                         const struct encoder_plan *p, size_t needed);

int encoder_check_eps(const char *whose, double eps);

/* Comes before what does not outlive a fork(): a parallel region of OpenMP, a call of CUDA. Refuses
 * a child of a process that called this. */
int encoder_start(void);

/* Whether the process is such a child. */
bool encoder_is_forked(void);

/* ---- given.c: a model's weights as they are given -------------------------------------------- */

/* Of a layer's weight; 0: layers have none. */
size_t encoder_weight_elements(int weight);
size_t encoder_weight_bytes(int weight); /* in the library */

const void *encoder_given_weight(const struct encoder_model *m, int layer, int weight);

/* Whether the weights are fp32, and the library has them in a half type. */
bool encoder_is_rounded(const struct encoder_model *m);

/* Copy one in the library's type, to the host or to the device; no table. */
int encoder_read_weight(const struct encoder_model *m, int layer, int weight, void *to);
int encoder_copy_weight(const struct encoder_model *m, int layer, int weight, void *to);

/* ---- launch.c: a run, in the target's way -------------------------------------------------------
 *
 * Functions that can fail return an enum encoder_status, here and below. */

/* Takes the target's part of the workspace: r->space, r->masks, and of the arguments what is
 * there. */
void encoder_carve_run(const struct plan *p, struct carving *c, struct run *r);

/* Fills in the masks and what the arguments of all layers share, and starts work on lengths. */
int encoder_begin(struct run *r);

/* Copies the real rows of the call's x to r->x. */
int encoder_take_x(const struct run *r);

/* Copies the real rows of what the layers wrote to the call's y or yn, unless they are the same,
 * and writes zeros to the other rows. */
int encoder_give(const struct run *r, void *from, void *to);

/* Writes the norm of the first layer's x to n, of real rows. */
int encoder_normalise(const struct run *r, const void *x, void *n);

int encoder_launch(struct run *r, int layer, int segment);

/* Does a call of encoder_embed() that is checked, or puts it into its stream. */
int encoder_launch_embed(const struct encoder_embedding *e);

/* ---- layers.c: a run, the same for every target ---------------------------------------------- */

/* Does a call's work, or puts it into r->stream: from the call's x to its y. */
int encoder_work(struct run *r);

/* ---- device.c -----------------------------------------------------------------------------------
 *
 * Of a GPU, memory.c has what allocates and graphs.c encoder_submit(). */

/* Refuses a device that cannot run the library. */
int encoder_device_check(void);

int encoder_device_allocate(size_t bytes, void **out);
void encoder_device_free(void *memory);
int encoder_device_copy(void *to, const void *from, size_t bytes, bool from_device);
int encoder_device_read(void *to, const void *from, size_t bytes); /* to the host */

/* What all plans keep on the device beside the weights. */
int encoder_device_open(const struct encoder_model *m, struct encoder *e);
void encoder_device_close(struct encoder *e);

/* What encoder_run() does once the call is checked and r filled in: encoder_work(), in the target's
 * way. */
int encoder_submit(struct run *r);

#endif
