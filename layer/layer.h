/* layer: what one encoder layer is.
 *
 * The operator chain, how a plan cuts it, attention masks, the workload to be made fast, and the
 * least work that a segment does.  Pure: no file, no clock, no device, no target.
 *
 * An *operator* is one of the 15 rows of the chain.  A *plan* cuts the chain into contiguous
 * *segments*, each exactly one kernel launch.
 *
 * CONTRIBUTING.md has the steps to replace an operator and to add a mask. */
#ifndef FUSEPLAN_LAYER_H
#define FUSEPLAN_LAYER_H

#include "base/base.h"
#include "layer/mask.h"

struct workload;

/* ---- chain.c: the operator chain ----------------------------------------------------------------
 *
 * One BERT encoder layer.  B batch, S sequence length, H heads, W head size, D = H*W, F ffn.
 * Tensor 0 is the layer's input x (B,S,D); tensor 1+i is the output of operator i.  The layout of a
 * tensor is the same for all plans. */

enum {
    OP_COUNT = 15,
    TENSOR_COUNT = OP_COUNT + 1,
    TENSOR_X = 0,
    TENSOR_Y = TENSOR_COUNT - 1,
    BOUNDARY_COUNT = OP_COUNT - 1,
    SEGMENT_COUNT = OP_COUNT * (OP_COUNT + 1) / 2
};

#define TENSOR_OF(op) ((op) + 1)

/* The weights of one layer, in the order in which their values are drawn. */
#define CHAIN_WEIGHTS(X)                                                                           \
    X(WQKV, "wqkv", DIM_D, DIM_3D, WEIGHT_UNIFORM)                                                 \
    X(BQKV, "bqkv", DIM_1, DIM_3D, WEIGHT_UNIFORM)                                                 \
    X(WO, "wo", DIM_D, DIM_D, WEIGHT_UNIFORM)                                                      \
    X(BO, "bo", DIM_1, DIM_D, WEIGHT_UNIFORM)                                                      \
    X(GAMMA1, "gamma1", DIM_1, DIM_D, WEIGHT_ONE_PLUS_UNIFORM)                                     \
    X(BETA1, "beta1", DIM_1, DIM_D, WEIGHT_UNIFORM)                                                \
    X(W1, "w1", DIM_D, DIM_F, WEIGHT_UNIFORM)                                                      \
    X(B1, "b1", DIM_1, DIM_F, WEIGHT_UNIFORM)                                                      \
    X(W2, "w2", DIM_F, DIM_D, WEIGHT_UNIFORM)                                                      \
    X(B2, "b2", DIM_1, DIM_D, WEIGHT_UNIFORM)                                                      \
    X(GAMMA2, "gamma2", DIM_1, DIM_D, WEIGHT_ONE_PLUS_UNIFORM)                                     \
    X(BETA2, "beta2", DIM_1, DIM_D, WEIGHT_UNIFORM)

enum weight_id {
#define X(id, name, rows, cols, draw) WEIGHT_##id,
    CHAIN_WEIGHTS(X)
#undef X
        WEIGHT_COUNT
};

enum dim { DIM_1, DIM_D, DIM_3D, DIM_F };
enum weight_draw { WEIGHT_UNIFORM, WEIGHT_ONE_PLUS_UNIFORM }; /* 0 +- 0.05, 1 +- 0.05 */

struct weight {
    const char *name;
    enum dim rows, cols; /* row-major (rows, cols); vectors have one row */
    enum weight_draw draw;
};
extern const struct weight weights[WEIGHT_COUNT];

enum layout {
    LAYOUT_TOKENS,    /* (B,S,columns): one row a token */
    LAYOUT_QKV_HEADS, /* 3x(B,H,S,W): q, k and v one after another */
    LAYOUT_SCORES,    /* (B,H,S,S): masked scores are unspecified, their probabilities 0 */
    LAYOUT_HEADS      /* (B,H,S,W): the context */
};

enum anchor {
    ANCHOR_NONE,     /* elementwise or a permutation: joins the operator before it */
    ANCHOR_GEMM,     /* (rows, K) @ weight (K, N): needs whole rows of its input */
    ANCHOR_SCORES,   /* q @ k^T of one head */
    ANCHOR_CONTEXT,  /* probs @ v of one head */
    ANCHOR_SOFTMAX,  /* needs all keys of a query row */
    ANCHOR_LAYERNORM /* needs a whole row of D */
};

/* What an elementwise operator computes: X(id, activation).  The id is the name of its kernel on a
 * CPU, FP_BIAS_GELU; the activation, if any, is that of its functor on a GPU, apply_gelu.
 * BIAS_GELU_TANH is in no row of ops[]: cuBLASLt computes it in the place of BIAS_GELU, and
 * codegen/cuda_library.c says how far the two differ.  c = 0.044715. */
#define CHAIN_POINTWISE(X)                                                                         \
    X(NONE, NULL)                  /* the operator is not elementwise */                           \
    X(BIAS_SPLIT_HEADS, NULL)      /* + bias; columns go to the heads of q, k and v */             \
    X(MASK, NULL)                  /* drops the scores of keys that the mask does not keep */      \
    X(MERGE_HEADS, NULL)           /* columns of all heads side by side */                         \
    X(BIAS_RESIDUAL, NULL)         /* + bias + residual */                                         \
    X(BIAS_GELU, "gelu")           /* y = x + bias; y/2 * (1 + erf(y / sqrt(2))) */                \
    X(BIAS_GELU_TANH, "gelu_tanh") /* y = x + bias; y/2 * (1 + tanh(sqrt(2/pi) * (y + c y^3))) */

enum pointwise {
#define X(id, activation) POINTWISE_##id,
    CHAIN_POINTWISE(X)
#undef X
        POINTWISE_COUNT
};

struct op {
    const char *name;         /* "qkv_gemm": in emitted function names and output */
    const char *computes;     /* one line for people */
    enum anchor anchor;       /* what must be held at once to compute it */
    enum pointwise pointwise; /* of ANCHOR_NONE */
    uint16_t reads;           /* bit t: reads tensor t */
    uint16_t weights;         /* bit w: reads weight w */
    enum layout layout;       /* of its output */
    enum dim columns;         /* of its output, heads side by side; unused for scores */
};
extern const struct op ops[OP_COUNT];

const char *tensor_name(int tensor);       /* "x", "layernorm1" */
const char *tensor_shape_text(int tensor); /* "(B,S,3D)" */
enum layout tensor_layout(int tensor);
enum dim tensor_columns(int tensor); /* heads side by side */
int qkv_tensor(void);                /* the one that holds q, k and v of each head */

/* Elements of a dimension, a tensor or a weight; padding counts. */
int64_t dim_size(enum dim d, const struct workload *w);
int64_t tensor_elements(int tensor, const struct workload *w);
int64_t weight_elements(enum weight_id id, const struct workload *w);

/* The tensor that an operator works on, and the other one that it reads, if any; -1: none. */
int op_input(int op);
int op_residual(int op);

/* How many weights an operator reads, and number n of them in the order of CHAIN_WEIGHTS. */
int op_weight_count(int op);
enum weight_id op_weight(int op, int n);
const char *op_activation(int op); /* "gelu"; null: none */

/* Appends the names of operators first..last with `separator` between them. */
void add_op_names(int first, int last, const char *separator, struct buf *out);

/* ---- plan.c, plan_parse.c: the fusion mask and the plan -----------------------------------------
 *
 * A plan is a struct plan wherever it is handed on.  On the command line, in files and in the
 * database it is a value 0..65535, whose 16 bits are pos0 (most significant) .. pos15.  pos1..pos15
 * stand for operators 0..14: neighbours with equal bits are fused.  pos0 asks for the hand-written
 * operator, which runs ATTENTION_FIRST..ATTENTION_LAST if they are exactly one segment.
 *
 * Several values name one plan.  The canonical one has pos1 = 0, and pos0 = 1 where that changes
 * nothing. */

enum { ATTENTION_FIRST = 2, ATTENTION_LAST = 6 };
enum { VALUE_MAX = 65535, VALUE_UNFUSED = 43690, PLAN_SPACE = 16640 };

struct plan {
    uint16_t fused;   /* bit b (0..13): ops b and b+1 are in one segment */
    bool handwritten; /* the hand-written operator runs; false in plans that it cannot serve */
};

struct segment {
    int8_t first, last; /* operators, inclusive */
};

/* handwritten is ignored if it cannot serve the plan. */
struct plan plan_of(uint16_t fused, bool handwritten);

struct plan plan_from_value(unsigned value);
unsigned plan_value(struct plan p);      /* canonical */
unsigned plan_canonical(unsigned value); /* the canonical value of the same plan */

/* A number below PLAN_KEYS that no other plan has: for sets and tables of plans. */
enum { PLAN_KEYS = 1 << (BOUNDARY_COUNT + 1) };
static inline unsigned plan_key(struct plan p)
{
    return p.fused | (unsigned)p.handwritten << BOUNDARY_COUNT;
}

static inline bool plan_equal(struct plan a, struct plan b)
{
    return plan_key(a) == plan_key(b);
}

/* All segments in order, single operators too; returns their number (1..15). */
int plan_segments(struct plan p, struct segment out[OP_COUNT]);

/* Segments are numbered 0..119 by first, then last. */
int segment_index(struct segment s);
struct segment segment_at(int index);

bool segment_is_attention(struct segment s); /* the one that the hand-written operator serves */

/* A slot is what is timed alone and has choices of its own: slot i is segment i by generated code,
 * the last slot the attention segment by the hand-written operator. */
enum { SLOT_HANDWRITTEN = SEGMENT_COUNT, SLOT_COUNT };
struct segment slot_segment(int slot);
int slot_of(struct segment s, bool handwritten);
int plan_slots(struct plan p, int out[OP_COUNT]); /* as plan_segments() */

/* The tensors and weights that a segment reads or writes for others, as bits.  Its outputs are that
 * of its last operator and those that an operator behind the segment reads. */
uint16_t segment_inputs(struct segment s);
uint16_t segment_outputs(struct segment s);
uint16_t segment_weights(struct segment s);

/* Appends "scores+mask+softmax+context+merge_heads". */
void segment_describe(struct segment s, struct buf *out);

/* Appends `value pos0 n start_1 end_1 ... start_n end_n`: its n segments of several operators by
 * their first and last position, 1..15. */
void plan_translate(unsigned value, struct buf *out);

/* 6826, 0x1aaa, 0b... or 16 binary digits. */
int plan_parse_value(const char *text, unsigned *value, struct status *st);
/* lo..hi, one value, or "all", which is 0..65535. */
int plan_parse_range(const char *text, unsigned *lo, unsigned *hi, struct status *st);
/* "2-6,8-9" in operator numbers; an operator that is not named is a segment of its own. */
int plan_parse_segments(const char *text, bool handwritten, struct plan *out, struct status *st);

/* The plans that values lo..hi name, each once, by ascending canonical value; returns how many. */
int plan_space(unsigned lo, unsigned hi, struct plan out[PLAN_SPACE]);

/* ---- workload.c, workload_text.c: what is to be made fast ------------------------------------ */

#define DTYPES(X)                                                                                  \
    X(FP32, "fp32", 4, 1e-5)                                                                       \
    X(TF32, "tf32", 4, 4e-3)                                                                       \
    X(FP16, "fp16", 2, 2e-3)                                                                       \
    X(BF16, "bf16", 2, 1e-2)

enum dtype {
#define X(id, name, bytes, tolerance) DTYPE_##id,
    DTYPES(X)
#undef X
        DTYPE_COUNT
};

struct dtype_info {
    const char *name;
    int bytes;        /* of a stored element */
    double tolerance; /* the most that norm(error) / norm(result) of a segment may be */
};
extern const struct dtype_info dtypes[DTYPE_COUNT];
enum dtype dtype_from_name(const char *name); /* DTYPE_COUNT if unknown */

/* The largest sizes that a workload may have; SEQ_LEN_MAX is that of seq_len. */
enum { BATCH_MAX = 65536, HEADS_MAX = 1024, HEAD_SIZE_MAX = 4096 };
enum { FFN_MAX = 1 << 20, LAYERS_MAX = 1024 };

/* The least and the largest eps.  A smaller one may be 0 where kernels compute, in floats. */
#define EPS_MIN 1e-37
#define EPS_MAX 1.0

struct workload {
    int batch, seq_len, heads, head_size, ffn, layers;
    double eps;
    enum dtype dtype;
    int *lengths; /* (batch) real tokens of each row, owned; null: all are seq_len */
    struct mask_spec mask_spec;
    struct mask mask;          /* set by workload_build_mask() */
    struct block_lists blocks; /* set by workload_build_mask() */
    struct cover cover;        /* set by workload_build_mask(); no part if none is better */
};

/* BERT-base with a full mask: heads 12, head_size 64, layers 12, eps 1e-5, fp32.  The caller sets
 * batch and seq_len, and ffn unless it is 4D. */
void workload_init(struct workload *w);
void workload_release(struct workload *w);

/* Copies all but the bits of the mask; the block lists and the cover of dst tell what it keeps. */
void workload_copy(struct workload *dst, const struct workload *src);

/* Checks every number, sets ffn to 4D if it is 0, drops lengths that are all seq_len and resolves
 * the mask.  A workload too large for any target is refused with the memory that it needs. */
int workload_check(struct workload *w, struct status *st);

/* Builds the mask, its block lists and its cover of a workload that was checked.  npy as for
 * mask_build(). */
int workload_build_mask(struct workload *w, const struct buf *npy, struct status *st);
/* Which pairs are kept and no padding: bytes 0 or 1, (S,S), or (B,S,S) with lengths or if the batch
 * rows' masks differ.  Returns the number of dimensions; the caller frees *out. */
int workload_kept(const struct workload *w, int64_t shape[3], unsigned char **out);

static inline int workload_hidden(const struct workload *w)
{
    return w->heads * w->head_size;
}

/* Real tokens, summed over the batch; tokens past a length are padding, never computed. */
int64_t workload_tokens(const struct workload *w);

/* Set the lengths of a workload whose batch and seq_len are set: from "n1,n2,...", one number a
 * batch row; or drawn around an average as docs/masks.md says. */
int workload_parse_lengths(struct workload *w, const char *text, struct status *st);
int workload_draw_lengths(struct workload *w, int average, uint64_t seed, struct status *st);

/* Upper bound of the bytes that it takes to run and verify any plan: all tensors of one layer, the
 * same again as the oracle keeps them in fp32, the weights of all layers, the mask.  Takes any
 * numbers, checked or not. */
double workload_bytes(const struct workload *w);

/* Appends the normalised text that identifies the workload in the database, e.g.
 * "b=1 s=128 h=12 w=64 f=3072 l=12 eps=1e-05 dtype=fp32 lengths=full mask=causal". */
void workload_text(const struct workload *w, struct buf *out);
void lengths_text(const struct workload *w, struct buf *out); /* of these "full", or "5,7" */
/* Reads such a text; release *out on failure too.  A file's mask has its hash for a path. */
int workload_parse(const char *text, struct workload *out, struct status *st);

/* ---- inputs.c: from what the layers' inputs and weights are drawn ---------------------------- */

enum ranges {
    RANGES_UNIFORM, /* weights as weights[].draw says */
    RANGES_WIDE,    /* all weights in +-0.4 */
    RANGES_COUNT
};
extern const char *const ranges_names[RANGES_COUNT]; /* "uniform", "wide" */

struct trained; /* bench/trained/ */

/* Determines all values of all layers. */
struct inputs {
    uint64_t seed;
    enum ranges ranges;
    const struct trained *trained; /* weights of a file; null: they are drawn too */
};

struct drawn {
    double middle, range; /* values are drawn uniformly in middle +- range */
};
struct drawn weight_drawn(enum weight_id id, enum ranges ranges);

/* ---- cost.c: the least that a segment costs -----------------------------------------------------
 *
 * Operations and bytes that no implementation avoids, for one layer of a workload whose mask is
 * built.  Divided by a measured time they give the achieved TFLOP/s and GB/s. */

/* Floating-point operations of one operator of one layer, counted as kernel libraries do: two for a
 * multiply-add, none for other arithmetic.  kept: the (query, key) pairs that the mask keeps,
 * summed over the batch, as in struct block_lists; attention counts these alone. */
double op_flops(int op, const struct workload *w, int64_t kept);

double segment_flops(struct segment s, const struct workload *w); /* the sum of op_flops() */

/* Each input and each weight read once, each output written once.  Padding does not count.  Of a
 * tensor (B,H,S,S) the kept elements count.  Each of q, k and v counts whole if an operator of the
 * segment reads it. */
double segment_bytes(struct segment s, const struct workload *w);
double tensor_bytes(int tensor, const struct workload *w); /* of one, counted likewise */

#endif
