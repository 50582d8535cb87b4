/* bench/worker, its tensors and weights on the device.  Part of bench/worker/worker_int.h. */
#ifndef FUSEPLAN_BENCH_TENSORS_INT_H
#define FUSEPLAN_BENCH_TENSORS_INT_H

#include "bench/oracle/oracle.h"

struct device;
struct device_ops;

/* ---- tensors.c: the tensors and weights on the device -------------------------------------------
 *
 * What a layer hands to the next alternates between two tensors, so that layer l reads what l-1
 * wrote; the inputs of layer 0 are kept apart.  The other tensors of a layer are shared by all
 * layers, and tables by all layers of a kind.
 *
 * Layers of packed programs hand over tensors whose real rows lie one after another.  These
 * functions take and give rows as they lie with padding; rows of padding hold anything.
 *
 * tensors_init() allocates what every plan needs: the inputs of layer 0, what layers hand on, and
 * all weights.
 * tensors_get() allocates a tensor inside a layer when it is first asked for: (B,H,S,S) are large,
 * and most plans need none. */

/* What plans with GEMMs of e4m3 keep beside the others: see e4m3.c. */
struct e4m3_tensors {
    struct e4m3_scales {
        float in[GEMM_COUNT], weight[GEMM_COUNT];
    } * scales;                                      /* (L), owned; null: not asked for so far */
    void *tensor[TENSOR_COUNT], *first[2], *flow[2]; /* as those of struct tensors */
    void *(*weight)[GEMM_COUNT];                     /* (L) */
    void *(*placed)[GEMM_COUNT];                     /* (L) see e4m3_get_placed() */
    uint8_t *codes;                                  /* what e4m3_read() returned last, owned */
};

struct tensors {
    const struct workload *w;
    const struct device_ops *ops;
    struct device *device; /* borrowed */
    struct inputs inputs;
    bool packed;                  /* of the program at hand */
    void *tensor[TENSOR_COUNT];   /* tensors inside a layer alone */
    void *first[2][TENSOR_COUNT]; /* [packed] the inputs of layer 0 */
    uint32_t fed[2];              /* [packed] which of these are filled (bits) */
    void *flow[2][TENSOR_COUNT];  /* [layer % 2] the inputs of the next layer */
    void *kept[2][TENSOR_COUNT];  /* [packed] copies for tensors_recall(); null: none */
    unsigned kept_of;             /* the precision of the plan they were copied for */
    void *(*weight)[WEIGHT_MAX];  /* (L) tables are those of the first layer of each kind */
    bool (*drawn)[WEIGHT_MAX];    /* (L) the weight holds its values */
    struct e4m3_tensors e4m3;
    float *values; /* what tensors_read() returned last, owned */
    void *padded;  /* what tensors_view() returned of packed rows, owned */
};

/* Release it even if it fails. */
int tensors_init(struct tensors *k, const struct workload *w, const struct device_ops *target,
                 struct device *d, struct inputs inputs, struct status *st);
void tensors_release(struct tensors *k);

/* The tensors inside a layer that have memory (bits). */
uint32_t tensors_held(const struct tensors *k);

/* Frees the tensors inside a layer except those in `keep` (bits). */
void tensors_trim(struct tensors *k, uint32_t keep);

/* Allocates tensor t of a layer, unless it has memory.  *out is null on failure. */
int tensors_get(struct tensors *k, int layer, int t, void **out, struct status *st);

/* A weight on the device, filled when it is first asked for. */
void *tensors_weight(struct tensors *k, int layer, int id);

/* The functions below take tensors that have memory. */

/* Poisons the tensors in `set` (bits) of a layer. */
void tensors_poison(struct tensors *k, int layer, uint32_t set);

/* The next rows of tensor t after *rows, which begins as {0, 0}: as many as memory on the host is
 * spent on at a time.  False: there are none. */
bool tensors_next_rows(const struct tensors *k, int t, struct rows *rows);

/* Rows of tensor t of a layer as stored; valid until the next call. */
const void *tensors_view(struct tensors *k, int layer, int t, struct rows rows);

/* A hash of the real rows of tensor t of a layer, computed by the device; false where it computes
 * none, or rows of padding lie between them. */
bool tensors_hash(struct tensors *k, int layer, int t, uint64_t *out);

/* Lets the device read memory that it always has; false where it computes no hash. */
bool tensors_touch(struct tensors *k);

/* All elements of tensor t of a layer, which the caller may change; valid until the next call. */
float *tensors_read(struct tensors *k, int layer, int t);

void tensors_fill(struct tensors *k, int layer, int t, struct rows rows, const float *values);

/* Fills an input of a layer.  Layer 0's are filled only once, for no program writes them. */
void tensors_feed(struct tensors *k, int layer, int t, const struct flow *in);

/* Keeps a copy of tensor t of a layer on the device, if that can copy and has the memory. */
void tensors_keep(struct tensors *k, int layer, int t);

/* Gives tensor t of a layer the values that tensors_keep() copied.  False: there is no copy. */
bool tensors_recall(struct tensors *k, int layer, int t);

/* Frees these copies: they are only worth memory that nothing else needs.  tensors_get() does so by
 * itself.  False: there are none. */
bool tensors_forget(struct tensors *k);

/* Fills layer 0's inputs and the drawn weights anew, and forgets the copies.  A wrong program may
 * have written anywhere, and other programs, verified or not, read these. */
void tensors_refill(struct tensors *k, const struct flow *in);

/* ---- e4m3.c: tensors and weights in e4m3 --------------------------------------------------------
 *
 * Tensors are those that GEMMs read, by the numbers of what they are copies of: of what layers hand
 * on the writer's or the reader's. */

struct reference; /* reference.c */

int e4m3_input(const struct chain *c, int gemm); /* the tensor that a GEMM reads */

/* The scales of inputs, once layer 0 is known.  Those of weights follow when e4m3_get_weight()
 * fills them. */
void e4m3_find_scales(struct tensors *k, const struct reference *r);

/* Of what a layer stores for a GEMM of its own or of the next one. */
float e4m3_out_scale(const struct tensors *k, int layer, int gemm);

int e4m3_get(struct tensors *k, int layer, int t, void **out, struct status *st);
int e4m3_get_weight(struct tensors *k, int layer, int gemm, void **out, struct status *st);

/* The weight, and the bias behind the GEMM, whose columns have the order of a tensor in e4m3: for
 * who stores columns where they stand. */
int e4m3_get_placed(struct tensors *k, int layer, int gemm, void **weight, void **bias,
                    struct status *st);

/* The functions below take tensors that have memory. */
void e4m3_poison(struct tensors *k, int layer, int t);

/* values, codes: (B,S,columns), in order.  Codes are valid until the next call, and NaN in rows of
 * padding. */
void e4m3_fill(struct tensors *k, int layer, int t, float scale, const float *values);
const uint8_t *e4m3_read(struct tensors *k, int layer, int t);

/* As tensors_refill(); frees the tensors inside a layer; frees all. */
void e4m3_refill(struct tensors *k, const struct flow *in);
void e4m3_trim(struct tensors *k);
void e4m3_release(struct tensors *k);

#endif
