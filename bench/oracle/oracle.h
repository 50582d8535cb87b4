/* The oracle: the chain in plain loops, in double, one function an operator.
 *
 * It defines what is right.  It serves verification and tests; no target runs it to compute. */
#ifndef FUSEPLAN_BENCH_ORACLE_H
#define FUSEPLAN_BENCH_ORACLE_H

#include "bench/trained/trained.h"
#include "layer/e4m3.h"

/* Rows of a tensor, numbered as they lie in memory; a row is the last axis. */
struct rows {
    int64_t first, count;
};
int64_t tensor_row_columns(const struct workload *w, int tensor);

/* ---- rows.c: which rows of a layer are computed ---------------------------------------------- */

/* Rows of a span, for all of which a head's keys and values are read once; and of one in a sample.
 */
enum { SPAN_ROWS = 16, SAMPLED_ROWS = 4 };

/* Real rows first .. first+count-1 of one batch row, at most SPAN_ROWS. */
struct span {
    int batch_row, first, count;
};

struct spans {
    int count;
    struct span *items; /* owned */
};
void spans_release(struct spans *s);

/* All real rows. */
struct spans spans_all(const struct workload *w);

/* A sample: of one sequence, another one in each layer, or of as many as it takes, at least 256
 * rows, or all there are.  Its first and last rows are always among them, and the others are drawn
 * evenly over its length. */
struct spans spans_sample(const struct workload *w, int layer, uint64_t seed);

/* ---- oracle.c, operators.c: one layer -----------------------------------------------------------
 *
 * Scores, masked or not, are computed of kept pairs alone; the scores of other pairs are 0. */

/* Gets rows of the tensors in a set, by several threads at once. */
struct oracle_taker {
    uint32_t tensors;
    void (*take)(void *ctx, int tensor, struct rows rows, const double *values);
    void *ctx;
};

struct rounding; /* rounding.c */

/* What a layer gets from the one before, by tensor: x, and n of chains that have it, (B,S,D) each;
 * null of all others. */
struct flow {
    float *tensor[TENSOR_COUNT];
};

/* Computes the rows of `spans` in a layer from its inputs, rounded to the workload's type, and its
 * weights.  Their queries read all keys and values of their sequences.  w is the layer's own: see
 * workload_of_layer(); its mask must be built.
 * rounding: of what the layer computes; null: nothing is rounded.
 * threads: how many to use, 0: as many as pay; the result does not depend on it. */
void oracle_layer_run(const struct workload *w, const struct flow *in, const float *const *weight,
                      const struct spans *spans, const struct rounding *rounding, int threads,
                      const struct oracle_taker *out);

/* Computes all rows of operators of a layer that read rows of tokens alone, from the tensors that
 * they read of others, (B,S,columns); else as oracle_layer_run(). */
void oracle_segment_run(const struct workload *w, struct segment s, const struct flow *in,
                        const float *const *weight, const struct rounding *rounding,
                        const struct oracle_taker *out);

/* ---- results.c: what the oracle computed, rounded to fp32 ---------------------------------------
 *
 * Of scores only the kept elements are stored. */
struct oracle_results {
    const struct workload *w;    /* borrowed */
    float *tensor[TENSOR_COUNT]; /* null: not wanted; owned, but that of scores and of masked scores
                                    are one */
    bool *real;                  /* (B,S) the rows that were computed */
    int64_t *kept;               /* (B*S+1) the pairs that the rows before keep in one head */
};

/* Makes room for these rows of the tensors in a set. */
void oracle_results_init(struct oracle_results *r, const struct workload *w, uint32_t tensors,
                         const struct spans *spans);
void oracle_results_release(struct oracle_results *r);

/* What fills them.  r must outlive it. */
struct oracle_taker oracle_results_taker(struct oracle_results *r);

/* Rows of a tensor, (count, columns): as they are stored, or written to `room`, where elements that
 * are not kept are 0. */
const float *oracle_results_rows(const struct oracle_results *r, int tensor, struct rows rows,
                                 float *room);

/* ---- compare.c: a target's tensor against the oracle's ------------------------------------------
 *
 * An error is ||out-ref|| / ||ref||, of the tensor and of each row.  Only rows that the oracle
 * computed count, and after ops 2 and 3 only kept elements.  A row's ||ref|| counts as no less than
 * the tensor's average for as many elements, because a single score near 0 owes its size to
 * cancellation.  A NaN or infinity is an infinite error. */
struct oracle_error {
    double tensor;       /* of the whole tensor */
    double worst_row;    /* the largest of a row */
    int64_t worst_index; /* that row's first element */
};

/* A tensor that is compared a piece at a time. */
struct comparison {
    const struct oracle_results *right;
    int tensor;
    struct norms *rows; /* owned */
};

void comparison_init(struct comparison *c, const struct oracle_results *right, int tensor);

/* Narrows the rows to the range from the first to the last row that counts; false: none does. */
bool comparison_narrow(const struct comparison *c, struct rows *rows);

/* Compares rows as stored in the workload's type. */
void comparison_add(struct comparison *c, struct rows rows, const void *stored);

/* The same of codes of e4m3, of numbers over `scale`: an element is off by its distance from the
 * numbers that are rounded to its code. */
void comparison_add_e4m3(struct comparison *c, struct rows rows, const uint8_t *codes, float scale);

/* The error of all rows that were compared.  Releases *c. */
struct oracle_error comparison_end(struct comparison *c);

/* tensor <= tolerance and worst_row <= 8 * tolerance. */
bool oracle_accepts(struct oracle_error e, double tolerance);

/* A tensor as stored, which is hashed a piece at a time.  What comparisons leave out in general
 * does not count: padded rows, and masked scores. */
struct result_hash {
    const struct workload *w;
    int tensor;
    char (*spans)[HASH_TEXT_SIZE]; /* owned */
};

/* The pieces of a tensor: whole sequences, or a multiple of so many rows of one, but for
 * its end. */
enum { HASHED_ROWS = 64 };

/* Whether real rows count as a whole. */
bool result_hash_is_whole(const struct workload *w, int tensor);

void result_hash_init(struct result_hash *h, const struct workload *w, int tensor);
void result_hash_add(struct result_hash *h, struct rows rows, const void *stored);

/* Returns out.  Releases *h. */
char *result_hash_end(struct result_hash *h, char out[HASH_TEXT_SIZE]);

/* ---- elements.c: fp32 and the stored types ------------------------------------------------------
 *
 * fp16 and bf16 take 2 bytes; tf32 is stored as fp32 with 13 bits of its fraction 0.  Rounding is
 * to nearest, ties to even; what is too large for fp16 becomes infinite. */
float element_round(enum dtype dtype, float value);
void elements_round(enum dtype dtype, const float *from, int64_t n, float *to);
void elements_pack(enum dtype dtype, const float *from, int64_t n, void *to);
void elements_unpack(enum dtype dtype, const void *from, int64_t n, float *to);

/* Rows of values that are stored in dtype as codes of e4m3 of value / scale, each column in its
 * place; and such codes with the columns in order.  layer/e4m3.h has e4m3_pack(). */
void e4m3_pack_rows(enum dtype dtype, const float *values, int64_t rows, int64_t columns,
                    float scale, uint8_t *codes);
void e4m3_order_rows(const uint8_t *codes, int64_t rows, int64_t columns, uint8_t *out);
float e4m3_unpack(uint8_t code);

/* Of the numbers that become a code, the one next to value; NaN of NaN. */
float e4m3_nearest(uint8_t code, float value);

/* ---- rounding.c: what plans round -------------------------------------------------------------
 *
 * A GEMM of e4m3 reads its input as e4m3(value / scale) * scale of each value as it is stored in
 * fp16, and so its weight.  Scales are powers of two. */

/* Of tensors inside a layer. */
struct rounding {
    enum dtype dtype;        /* of those in `stored`; others stay exact */
    uint32_t stored;         /* a set of tensors: see rounding_stored() */
    float scale[GEMM_COUNT]; /* of a GEMM's input in e4m3; 0: the GEMM reads it as it is */
};

/* The tensors that plans store: inputs of layers and of GEMMs, q, k and v, what is added later. */
uint32_t rounding_stored(const struct chain *c);

float e4m3_round(float value, float scale);

/* Rounds a GEMM's weight (rows,columns) to e4m3, by one scale, or one for each column.  The largest
 * value becomes one in (224,448]. */
void e4m3_round_weight(float *weight, int64_t rows, int64_t columns, bool by_column);

/* ---- scales.c: the scales of e4m3 where nothing is calibrated -----------------------------------
 *
 * By layer 0: the least power of two that leaves room for values twice as large as there, of layers
 * with odd numbers the next one, which costs nothing and shows kernels that take another layer's.
 */

/* in: of layer 0, which computed all tensors that GEMMs read and that it hands on.  out: (layers).
 */
void scales_of_layer(const struct workload *w, const struct flow *in,
                     const struct oracle_results *layer, float (*out)[GEMM_COUNT]);

/* Computes layer 0 for them.  *out has the fingerprint of the drawn weights, and no path; the
 * caller releases it with calibration_release(). */
void scales_draw(const struct workload *w, struct inputs in, struct calibration *out);

/* ---- inputs.c: the same inputs and weights everywhere -------------------------------------------
 *
 * Element i of array a of layer l is drawn as splitmix64(seed + (l * 16 + a) * 2^40 + i), its upper
 * 53 bits scaled to u in [0,1), then middle + (2u - 1) * range in double, rounded to fp32, then to
 * dtype.  a: the weight's number, drawn as weight_drawn() says; x is array 15 of layer 0, 0 +- 0.4.
 * Weights of a trained model are rounded to dtype.  Tables are not rounded.  All layers share a
 * score bias, layers of a kind their rotations. */
void inputs_weight(const struct workload *of, struct inputs in, int layer, int id, float *out);

/* Allocates and fills all weights of a layer.  rounding: null, or matrices of its GEMMs in e4m3 are
 * rounded, by_column: as in e4m3_round_weight(). */
void inputs_weights(const struct workload *of, struct inputs in, int layer,
                    const struct rounding *rounding, bool by_column, float *weight[WEIGHT_MAX]);
void weights_release(float *weight[WEIGHT_MAX]);

/* Allocates and fills the inputs of layer 0. */
void inputs_flow(const struct workload *w, struct inputs in, struct flow *out);

/* Sets n of layer 0 to its x normalised, by the first norm of a trained model, or to x if that has
 * none, else gamma 1 and beta 0. */
void flow_normalise(const struct workload *w, struct inputs in, struct flow *f);

/* Allocates what a layer hands on, not set. */
void flow_init(struct flow *f, const struct workload *w);
void flow_release(struct flow *f);

#endif
