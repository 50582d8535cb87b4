/* layer: what one encoder layer is.
 *
 * The operator chain, how a plan cuts it, attention masks, the workload to be made fast, and the
 * least work that a segment does.  Pure: no file, no clock, no device, no target.  What is read
 * from or written to disk passes through as bytes.
 *
 * Words: an *operator* is one of the 15 rows of the chain; a *plan* cuts the chain into contiguous
 * *segments*, each exactly one kernel launch.
 *
 * To add an operator: a row in ops[] (chain.c).  To add a mask: a row in mask.c.  CONTRIBUTING.md
 * has the exact steps. */
#ifndef FUSEPLAN_LAYER_H
#define FUSEPLAN_LAYER_H

#include "base/base.h"

struct workload;

/* ---- chain.c: the operator chain ---------------------------------------------------------------
 *
 * One BERT encoder layer.  B batch, S sequence length, H heads, W head size, D = H*W, F ffn.
 * Tensor 0 is the layer's input x (B,S,D); tensor 1+i is the output of operator i.  One tensor has
 * one layout and one type, the same for all plans:
 *   (B,S,C)      rows of C elements, one row a token
 *   3x(B,H,S,W)  q, k and v one after another
 *   (B,H,S,S)    scores; masked positions are unspecified after ops 2 and 3, and 0 after op 4 */

enum { OP_COUNT = 15, TENSOR_COUNT = 16, TENSOR_X = 0, BOUNDARY_COUNT = 14, SEGMENT_COUNT = 120 };

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
enum weight_draw { WEIGHT_UNIFORM, WEIGHT_ONE_PLUS_UNIFORM }; /* in +-0.05; 1 +- 0.05 */

struct weight {
    const char *name;
    enum dim rows, cols; /* row-major (rows, cols); vectors have one row */
    enum weight_draw draw;
};
extern const struct weight weights[WEIGHT_COUNT];

enum layout {
    LAYOUT_TOKENS,    /* (B,S,columns) */
    LAYOUT_QKV_HEADS, /* 3 x (B,H,S,W) */
    LAYOUT_SCORES,    /* (B,H,S,S) */
    LAYOUT_HEADS      /* (B,H,S,W) */
};

enum anchor {
    ANCHOR_NONE,     /* elementwise or a permutation: joins what stands before it */
    ANCHOR_GEMM,     /* (rows, K) @ weight (K, N): needs whole rows of its input */
    ANCHOR_SCORES,   /* q @ k^T of one head */
    ANCHOR_CONTEXT,  /* probs @ v of one head */
    ANCHOR_SOFTMAX,  /* needs all keys of a query row */
    ANCHOR_LAYERNORM /* needs a whole row of D */
};

/* What a thread block must hold so that the operator needs nothing from another one. */
enum extent {
    EXTENT_ELEMENT,   /* one element, wherever it lies */
    EXTENT_TOKEN_ROW, /* all columns of a token's row */
    EXTENT_QUERY_ROW, /* all keys of one query row of one head */
    EXTENT_HEAD       /* all rows of one head's k or v, and query rows of q or probs */
};

struct op {
    const char *name;       /* "qkv_gemm": in emitted function names and output */
    const char *notes_name; /* "gemm0": the name in the notes this tool grew out of */
    const char *computes;   /* one line for people */
    enum anchor anchor;
    enum extent needs;
    uint16_t reads;     /* bit t: reads tensor t */
    uint16_t weights;   /* bit w: reads weight w */
    enum layout layout; /* of its output */
    enum dim columns;   /* of its output, heads side by side; none of scores */
};
extern const struct op ops[OP_COUNT];

enum layout tensor_layout(int tensor);

/* Elements of a dimension, a tensor or a weight. */
int64_t dim_size(enum dim d, const struct workload *w);
int64_t tensor_elements(int tensor, const struct workload *w);
int64_t weight_elements(enum weight_id id, const struct workload *w);

/* "(B,S,3D)" */
const char *tensor_shape_text(int tensor);

/* The tensor that an operator works on: the one before it.  What else it reads is a residual; -1
 * where it reads nothing else. */
int op_input(int op);
int op_residual(int op);

/* Weight n of an operator, in the chain's order. */
enum weight_id op_weight(int op, int n);

const char *tensor_name(int tensor); /* "x", "layernorm1" */

/* What a tensor has of each token: its columns, or all heads of it side by side. */
enum dim tensor_columns(int tensor);

/* Appends the names of operators first..last with `separator` between them. */
void add_op_names(int first, int last, const char *separator, struct buf *out);

/* Floating-point operations of one operator of one layer: a multiply-add counts two, other
 * arithmetic is left out (as kernel libraries count); attention counts kept elements only.
 * kept: kept (query, key) pairs summed over the batch, see struct block_lists. */
double op_flops(int op, const struct workload *w, int64_t kept);

/* ---- plan.c, plan_parse.c: the fusion mask and the plan ----------------------------------------
 *
 * A plan is a struct plan wherever it is handed on.  Text and values are its forms on the command
 * line, in files and in the database: read by plan_from_value() and the parsers, written by
 * plan_value().
 *
 * A value 0..65535 is written as 16 bits pos0 (most significant) .. pos15.  pos1..pos15 stand for
 * ops 0..14; neighbours with equal bits are fused.  pos0 asks for the hand-written operator, which
 * serves ATTENTION_FIRST..ATTENTION_LAST where they are exactly one segment. */

enum { ATTENTION_FIRST = 2, ATTENTION_LAST = 6 };
enum { VALUE_MAX = 65535, VALUE_UNFUSED = 43690, VALUE_FIRST_VERSION = 41115, PLAN_SPACE = 16640 };

struct plan {
    uint16_t fused;   /* bit b (0..13): ops b and b+1 are in one segment */
    bool handwritten; /* the hand-written operator runs; false in plans that it cannot serve */
};

struct segment {
    int8_t first, last; /* operators, inclusive */
};

/* The plan of these boundaries; handwritten counts where ATTENTION_FIRST..LAST are one segment. */
struct plan plan_of(uint16_t fused, bool handwritten);

struct plan plan_from_value(unsigned value);
unsigned plan_value(struct plan p); /* canonical */
unsigned plan_canonical(unsigned value);

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

/* What is measured alone and chosen for by itself has a slot: each segment as generated at its
 * number, and the attention segment by the hand-written operator behind them. */
enum { SLOT_HANDWRITTEN = SEGMENT_COUNT, SLOT_COUNT };
struct segment slot_segment(int slot);
int slot_of(struct segment s, bool handwritten);
int plan_slots(struct plan p, int out[OP_COUNT]); /* of its segments in order; their number */

/* What a segment reads and writes that others see: tensors, and weights, as bits.  Its outputs are
 * those of its operators that a later operator outside it reads, and its last operator's. */
uint16_t segment_inputs(struct segment s);
uint16_t segment_outputs(struct segment s);
uint16_t segment_weights(struct segment s);

/* Appends the names of its operators: "scores+mask+softmax+context+merge_heads". */
void segment_describe(struct segment s, struct buf *out);

/* The notes' line without a newline: `num pos0 segment_num start_1 end_1 ...`. */
void plan_translate(unsigned value, struct buf *out);

/* 6826 | 0x1aaa | 0b... | 16 binary digits. */
int plan_parse_value(const char *text, unsigned *value, struct status *st);

/* lo..hi | all (all stands for every distinct plan: 0..65535) | one value. */
int plan_parse_range(const char *text, unsigned *lo, unsigned *hi, struct status *st);

/* "2-6,8-9" in operator numbers; what is not named stays on its own. */
int plan_parse_segments(const char *text, bool handwritten, struct plan *out, struct status *st);

/* The distinct plans that lo..hi name, by ascending canonical value.  Returns how many. */
int plan_space(unsigned lo, unsigned hi, struct plan out[PLAN_SPACE]);

/* ---- mask.c, mask_spec.c, mask_bits.c: attention masks -----------------------------------------
 *
 * keep(i, j): query row i sees key column j.  A name and optional parameters: "sliding:w=64".
 * docs/masks.md defines each. */

enum { MASK_BLOCK = 64, MASK_PARAM_MAX = 4, MASK_PARAM_DEFAULT = -1, SEQ_LEN_MAX = 65536 };

struct mask_spec {
    const struct mask_kind *kind;      /* row of mask.c's table */
    int64_t param[MASK_PARAM_MAX];     /* MASK_PARAM_DEFAULT until mask_resolve() */
    char *path;                        /* file: masks; owned */
    char content_hash[HASH_TEXT_SIZE]; /* file: masks, set by mask_build() */
};

/* A mask as bits: matrix b (0 for all batch rows if matrices == 1), row i, word j/64, bit j%64. */
struct mask {
    int seq_len, matrices, row_words;
    uint64_t *bits;     /* (matrices, seq_len, row_words); bits past seq_len are 0 */
    bool borrowed;      /* the bits are another's, who keeps them; else they are owned */
    int64_t empty_rows; /* rows that keep nothing: they give zeros */
};

int mask_parse(const char *text, struct mask_spec *out, struct status *st);
void mask_spec_release(struct mask_spec *spec);
void mask_spec_copy(struct mask_spec *dst, const struct mask_spec *src);

/* Fills the parameters not given with the defaults of a sequence length, 1..SEQ_LEN_MAX. */
int mask_resolve(struct mask_spec *spec, int seq_len, struct status *st);

/* The normalised text of a resolved mask: "strided:t=32"; of a built file mask "file:HASH", the
 * hash taken over shape and kept bits. */
void mask_text(const struct mask_spec *spec, struct buf *out);

/* Builds a resolved mask.  npy: the file's bytes where spec names a file, else null; a file mask
 * may be (S,S) or (batch,S,S).  Release with mask_release(). */
int mask_build(struct mask_spec *spec, int batch, int seq_len, const struct buf *npy,
               struct mask *out, struct status *st);
void mask_release(struct mask *m);
size_t mask_bytes(const struct mask *m); /* of its bits */
bool mask_keep(const struct mask *m, int batch_row, int i, int j);

/* Rows for --help and completion: "strided", "strided:t=N", "causal: the last t keys and ...". */
int mask_kind_count(void);
void mask_kind_info(int index, const char **name, const char **usage, const char **summary);

/* ---- blocks.c: lists of 64x64 attention blocks -------------------------------------------------
 *
 * For each list (one for all batch rows, or one a batch row where matrices or lengths differ) and
 * each block of 64 query rows: the key blocks that hold a kept element, full ones first, each group
 * ascending.  Full: every key of the block is kept for every query row below the length, and all 64
 * keys exist.  Keys past a length are masked; rows past it keep nothing. */

struct block_lists {
    int lists, blocks;  /* blocks = ceil(S/64) query blocks a list */
    int *start;         /* (lists*blocks + 1) first entry of (list, query block) */
    int *full;          /* (lists*blocks) how many of its entries are full */
    int *key_block;     /* (entries) */
    int *bits;          /* (entries) index of the 64 row words in words/64, or -1 where full */
    uint64_t *words;    /* (bit blocks, 64): bit c of word r keeps key c for query row r */
    int64_t bit_blocks; /* partial entries */
    int64_t kept;       /* kept elements, summed over the batch */
    int64_t blocks_full, blocks_partial, blocks_all; /* summed over the batch */
};

/* lengths: batch entries or null. */
void block_lists_build(const struct mask *m, int batch, const int *lengths,
                       struct block_lists *out);
void block_lists_release(struct block_lists *l);

/* ---- workload.c: what is to be made fast ---------------------------------------------------- */

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
    double tolerance; /* of a segment: relative norm of the error */
};
extern const struct dtype_info dtypes[DTYPE_COUNT];
enum dtype dtype_from_name(const char *name); /* DTYPE_COUNT where unknown */

struct workload {
    int batch, seq_len, heads, head_size, ffn, layers;
    double eps;
    enum dtype dtype;
    int *lengths; /* batch entries, owned; null: all are seq_len */
    struct mask_spec mask_spec;
    struct mask mask;          /* after workload_build_mask() */
    struct block_lists blocks; /* likewise */
};

/* BERT-base with a full mask: heads 12, head_size 64, layers 12, eps 1e-5, fp32; batch, seq_len and
 * ffn are 0 and must be set (ffn 0 becomes 4D in workload_check). */
void workload_init(struct workload *w);
void workload_release(struct workload *w);

/* All but the bits of the mask, which dst lacks: its block lists tell what is kept. */
void workload_copy(struct workload *dst, const struct workload *src);

/* Checks every number, fills ffn, drops lengths that are all seq_len, resolves the mask's
 * parameters.  A workload too large for any target is refused with the memory that it needs. */
int workload_check(struct workload *w, struct status *st);

/* After workload_check: builds the mask and its block lists. npy as for mask_build(). */
int workload_build_mask(struct workload *w, const struct buf *npy, struct status *st);

static inline int workload_hidden(const struct workload *w)
{
    return w->heads * w->head_size;
}

/* Real tokens, summed over the batch: rows past a length are never computed. */
int64_t workload_tokens(const struct workload *w);

/* "n1,n2,..." with one number a batch row.  Set batch and seq_len before this and the next. */
int workload_parse_lengths(struct workload *w, const char *text, struct status *st);

/* The lengths of `--avg-seq-len average`, see docs/masks.md. */
int workload_draw_lengths(struct workload *w, int average, uint64_t seed, struct status *st);

/* Bytes needed to run and verify any plan: all tensors of a layer (those of (B,H,S,S) count) and
 * once more in the oracle's double precision, weights of all layers, mask.  An upper bound for the
 * check "does it fit" before anything is allocated; safe for any numbers. */
double workload_bytes(const struct workload *w);

/* The normalised text that identifies the workload in the database, e.g.
 * "b=1 s=128 h=12 w=64 f=3072 l=12 eps=1e-05 dtype=fp32 lengths=full mask=causal". */
void workload_text(const struct workload *w, struct buf *out);

/* ---- inputs.c: what inputs and weights are drawn from ------------------------------------------
 */

enum ranges {
    RANGES_UNIFORM, /* weights as weights[].draw says */
    RANGES_WIDE,    /* all weights in +-0.4 */
    RANGES_COUNT
};
extern const char *const ranges_names[RANGES_COUNT]; /* "uniform", "wide": --init; stored */

/* All values of all layers follow from it. */
struct inputs {
    uint64_t seed;
    enum ranges ranges;
};

/* Values are drawn uniformly in middle +- range. */
struct drawn {
    double middle, range;
};
struct drawn weight_drawn(enum weight_id id, enum ranges ranges);

/* ---- cost.c: the least that a segment costs ----------------------------------------------------
 *
 * What no implementation can do without, for one layer of a workload whose mask is built; achieved
 * TFLOP/s and GB/s divide it by the measured time. */

/* The sum of op_flops() over its operators. */
double segment_flops(struct segment s, const struct workload *w);

/* Each input read once, each weight read once, each output written once, in the type's size:
 *   bytes * (sum of elements of inputs, weights and outputs)
 * Rows past a length do not count.  Of a tensor (B,H,S,S) the kept elements count; of q, k and v
 * those that an operator of the segment reads, whole whatever the mask keeps. */
double segment_bytes(struct segment s, const struct workload *w);

#endif
