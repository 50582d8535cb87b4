/* layer, its tables: the operators of one encoder layer and what they compute, read and store.
 * Part of layer/layer.h. */
#pragma once

#include "base/base.h"

struct workload;

/* ---- chain.c, chain_functions.c: the operator chain --------------------------------------------
 *
 * A *chain* is one kind of encoder layer: 15 operators, its weights, and what it hands to the next
 * layer.  B batch, S sequence length, H heads, W head size, A = H*W, D hidden, F ffn.  D
 * equals A unless the chain has `hidden`.  Tensor 0 is the layer's input x (B,S,D); tensor 1+i is
 * the output of operator i.  The last tensor, n (B,S,D), is an input of chains that normalise
 * before a sublayer: x normalised, which the layer before computed.  The layout of a tensor is the
 * same for all plans. */

enum {
    OP_COUNT = 15,
    TENSOR_NONE = -1,
    TENSOR_X = 0,
    TENSOR_Y = OP_COUNT,
    TENSOR_N,
    TENSOR_COUNT,
    BOUNDARY_COUNT = OP_COUNT - 1,
    SEGMENT_COUNT = OP_COUNT * (OP_COUNT + 1) / 2
};

#define TENSOR_OF(op) ((op) + 1)

/* A set of tensors or weights has bit n for number n. */
#define SET_OF(n) ((uint32_t)1 << (n))

enum { WEIGHT_MAX = 14, WEIGHT_NONE = -1 }; /* the most weights of a layer */

/* DIM_NONE has no elements.  2S-1 is the number of distances of two tokens. */
enum dim {
    DIM_NONE,
    DIM_1,
    DIM_D,
    DIM_3D,
    DIM_A,
    DIM_3A,
    DIM_F,
    DIM_2F,
    DIM_H,
    DIM_W,
    DIM_S,
    DIM_2S_1,
    DIM_COUNT
};
extern const char *const dim_names[DIM_COUNT]; /* "3D" */

enum weight_draw {
    WEIGHT_UNIFORM,          /* 0 +- 0.05 */
    WEIGHT_ONE_PLUS_UNIFORM, /* 1 +- 0.05 */
    WEIGHT_HALF_UNIFORM,     /* 0 +- 0.5 */
    WEIGHT_ROTATION          /* not drawn: what rope_table() computes */
};

/* A weight that a chain lacks has no name and no elements. */
struct weight {
    const char *name;
    enum dim rows, cols; /* row-major (rows, cols); vectors have one row */
    enum weight_draw draw;
    bool table; /* one for all layers, in fp32 whatever the dtype */
};

/* What a weight is to the operator that reads it. */
enum weight_role {
    ROLE_MATRIX, /* (K,N) of a GEMM */
    ROLE_BIAS,   /* (columns) added before all else */
    ROLE_GAMMA,  /* (columns) times a normalised row */
    ROLE_BETA,   /* (columns) added to that */
    ROLE_TABLE,  /* what a score_mod adds to scores, or a split turns q and k by */
    ROLE_COUNT
};
enum { ROLES_OPTIONAL = 1 << ROLE_BIAS | 1 << ROLE_BETA };

enum layout {
    LAYOUT_TOKENS,    /* (B,S,columns): one row a token */
    LAYOUT_QKV_HEADS, /* 3x(B,H,S,W): q, k and v one after another */
    LAYOUT_SCORES,    /* (B,H,S,S): masked scores are unspecified, their probabilities 0 */
    LAYOUT_HEADS      /* (B,H,S,W): the context */
};

/* What must be held at once to compute an operator, and which roles and tensors it has. */
enum op_kind {
    KIND_GEMM,       /* input (rows,K) @ matrix (K,N): needs whole rows of its input */
    KIND_SPLIT,      /* input + bias; columns go to the heads of q, k and v */
    KIND_SCORES,     /* q @ k^T of one head */
    KIND_SCORE_MOD,  /* changes each score by its query, key and head */
    KIND_SOFTMAX,    /* needs all keys of a query row */
    KIND_CONTEXT,    /* input @ v of one head */
    KIND_MERGE,      /* columns of all heads side by side */
    KIND_ADD,        /* input + bias + skip */
    KIND_ACTIVATION, /* a function of each element of input + bias */
    KIND_GATE, /* of each pair of columns 2c, 2c+1 of input + bias: function(first) * second */
    KIND_NORM, /* needs a whole row: normalised, times gamma, plus beta */
    KIND_COUNT
};

/* Elementwise or a permutation: joins the operator before it. */
bool kind_is_pointwise(enum op_kind kind);

/* The targets and libraries that have a kernel of a function; of CUDA by wgmma or without. */
enum { ON_CPU = 1, ON_MMA = 2, ON_HOPPER = 4, ON_CUDA = ON_MMA | ON_HOPPER, ON_CUBLASLT = 8 };

/* What operators compute: X(id, name, kind, roles, kernels).  The id is the name of its kernel on a
 * CPU, FP_BIAS_GELU.  Its name is that in names of shared kernels, and of an activation's functor
 * on a GPU, apply_gelu.  roles: the weights that it takes, as bits; an operator may lack its bias
 * and its beta.  A gate has an activation for its function.  Activations stand one after another,
 * gelu first, as the words of --activation do.
 *
 * cuBLASLt computes BIAS_GELU_TANH in the place of BIAS_GELU; codegen/cuda_library.c says how far
 * the two differ.  c = 0.044715.  Rotary embeddings are those of Su et al., RoFormer (2021), with
 * the halves of a head as pairs: for c < W/2 and the table's cos and sin of a token's place in its
 * sequence, y_c = x_c cos - x_(c+W/2) sin and y_(c+W/2) = x_(c+W/2) cos + x_c sin, of q and k. */
/* clang-format off */
#define CHAIN_FUNCTIONS(X)                                                                         \
    X(GEMM, "gemm", KIND_GEMM, MATRIX, ON_CPU | ON_CUDA | ON_CUBLASLT)                             \
    X(BIAS_SPLIT_HEADS, "split", KIND_SPLIT, BIAS, ON_CPU | ON_CUDA)                               \
    X(BIAS_ROPE_SPLIT_HEADS, "rope_split", KIND_SPLIT, BIAS | TABLE, ON_CPU | ON_CUDA) /* and turns q and k */\
    X(SCORES, "scores", KIND_SCORES, 0, ON_CPU | ON_CUDA)       /* times 1/sqrt(W) */              \
    X(MASK, "mask", KIND_SCORE_MOD, 0, ON_CPU | ON_CUDA)        /* drops keys that it does not keep */ \
    X(BIAS_MASK, "bias_mask", KIND_SCORE_MOD, TABLE, ON_CPU | ON_CUDA) /* score(i,j) + table[h][j-i + S-1], then mask */ \
    X(SOFTMAX, "softmax", KIND_SOFTMAX, 0, ON_CPU | ON_CUDA)                                       \
    X(CONTEXT, "context", KIND_CONTEXT, 0, ON_CPU | ON_CUDA)                                       \
    X(MERGE_HEADS, "merge_heads", KIND_MERGE, 0, ON_CPU | ON_CUDA)                                 \
    X(BIAS_RESIDUAL, "residual", KIND_ADD, BIAS, ON_CPU | ON_CUDA | ON_CUBLASLT)                   \
    X(BIAS_GELU, "gelu", KIND_ACTIVATION, BIAS, ON_CPU | ON_CUDA | ON_CUBLASLT) /* y/2 * (1 + erf(y / sqrt(2))) */ \
    X(BIAS_GELU_TANH, "gelu_tanh", KIND_ACTIVATION, BIAS, ON_CPU | ON_CUDA | ON_CUBLASLT) /* y/2 * (1 + tanh(sqrt(2/pi) * (y + c y^3))) */ \
    X(BIAS_QUICK_GELU, "quick_gelu", KIND_ACTIVATION, BIAS, ON_CPU | ON_CUDA) /* y / (1 + exp(-1.702 y)) */ \
    X(BIAS_RELU, "relu", KIND_ACTIVATION, BIAS, ON_CPU | ON_CUDA | ON_CUBLASLT) /* max(y, 0) */             \
    X(BIAS_SILU, "silu", KIND_ACTIVATION, BIAS, ON_CPU | ON_CUDA) /* y / (1 + exp(-y)) */            \
    X(LAYERNORM, "layernorm", KIND_NORM, GAMMA | BETA, ON_CPU | ON_CUDA)                           \
    X(RMSNORM, "rmsnorm", KIND_NORM, GAMMA, ON_CPU | ON_CUDA)            /* y / sqrt(mean(y^2) + eps) * gamma */
/* clang-format on */

enum function_id {
#define X(id, name, kind, roles, kernels) FUNCTION_##id,
    CHAIN_FUNCTIONS(X)
#undef X
        FUNCTION_COUNT
};

struct op_function {
    const char *name; /* "split" */
    const char *cpu;  /* "FP_BIAS_SPLIT_HEADS" */
    enum op_kind kind;
    unsigned roles;   /* as bits */
    unsigned kernels; /* ON_CPU | ... */
};
extern const struct op_function op_functions[FUNCTION_COUNT];

struct op {
    const char *name;     /* "qkv_gemm": in emitted function names and output */
    const char *computes; /* one line for people */
    enum op_kind kind;
    enum function_id function;
    int8_t input; /* the tensor that it works on; of scores that with q and k */
    int8_t skip;  /* of an add: the second tensor; else TENSOR_NONE */
    int8_t qkv;   /* of scores and context: the tensor with q, k and v; else TENSOR_NONE */
    int8_t weight[ROLE_COUNT]; /* numbers of the chain's weights, or WEIGHT_NONE */
    enum layout layout;        /* of its output */
    enum dim columns;          /* of its output, heads side by side; unused for scores */
};

/* An output that the next layer reads as its tensor `to`. */
struct carried {
    int8_t from, to;
};
enum { CARRIED_MAX = 2 };

struct chain {
    const char *name; /* "bert", "pre+silu+gate" */
    struct op ops[OP_COUNT];
    struct weight weights[WEIGHT_MAX]; /* a weight has the same number in all chains */
    struct carried carried[CARRIED_MAX];
    int carried_count;
};

/* What a family of encoders has in another way than BERT. */
struct chain_functions {
    bool pre; /* norms stand before attention and before the feed-forward network, not behind */
    bool rms; /* they are RMS norms, Zhang and Sennrich (2019), without beta */
    enum function_id activation; /* of KIND_ACTIVATION */
    bool gate;       /* W1 (D,2F): columns 2c hold what is activated, columns 2c+1 its factor */
    bool rope;       /* rotary embeddings */
    bool score_bias; /* a number for each head and distance is added to the scores */
    bool hidden;     /* D is not A: a matrix (D,3A) leads into attention and one (A,D) out of it */
};

extern const struct chain chain_bert;

/* BERT's layer with other functions, which lives as long as the process.  A chain that normalises
 * before is turned by one norm, so that its operators stand where BERT's do: operator 0 reads n,
 * operator 13 adds operator 8's sum and is the next layer's x, and operator 14 is the first norm of
 * the next layer, the model's last norm in the last. */
const struct chain *chain_of(struct chain_functions functions);
struct chain_functions chain_functions(const struct chain *c); /* what chain_of() was asked for */

/* By name: "bert", or what differs from it, in this order and with '+' between: pre, rms, an
 * activation, gate, rope, bias, hidden.  Null if there is none of this name. */
const struct chain *chain_find(const char *name);

/* The numbers of weights. */
enum chain_weight {
    WEIGHT_WQKV,
    WEIGHT_BQKV,
    WEIGHT_WO,
    WEIGHT_BO,
    WEIGHT_GAMMA1,
    WEIGHT_BETA1,
    WEIGHT_W1,
    WEIGHT_B1,
    WEIGHT_W2,
    WEIGHT_B2,
    WEIGHT_GAMMA2,
    WEIGHT_BETA2,
    WEIGHT_ROPE,      /* (S,W): cos and sin of pair c of head columns at 2c and 2c+1 */
    WEIGHT_SCORE_BIAS /* (H,2S-1) */
};

const char *tensor_name(const struct chain *c, int tensor);       /* "x", "layernorm1" */
const char *tensor_shape_text(const struct chain *c, int tensor); /* "(B,S,3D)" */
enum layout tensor_layout(const struct chain *c, int tensor);
enum dim tensor_columns(const struct chain *c, int tensor); /* heads side by side */

/* Elements of a dimension, a tensor or a weight of the workload's chain; padding counts.  n has
 * none in a chain that lacks it. */
int64_t dim_size(enum dim d, const struct workload *w);
double dim_bound(enum dim d,
                 const struct workload *w); /* of sizes not checked, which may overflow */
int64_t tensor_elements(int tensor, const struct workload *w);
int64_t weight_elements(int weight, const struct workload *w);

/* What an operator reads, and what one layer hands to the next, as sets. */
uint32_t op_tensors(const struct op *op);
uint32_t op_weights(const struct op *op);
uint32_t chain_carried(const struct chain *c);
uint32_t chain_inputs(const struct chain *c); /* x, and n of chains that have it */

/* The tensor that a layer hands on as tensor t, or t itself. */
int chain_handed_on_as(const struct chain *c, int t);

bool chain_has_tensor(const struct chain *c, int tensor); /* all have all but n */

/* The operator whose output a tensor is; null: it is an input. */
const struct op *tensor_op(const struct chain *c, int tensor);

/* Of an activation or a gate. */
const char *op_activation(const struct op *op); /* "gelu"; null: it has none */

/* The four GEMMs, numbered in order: what may have operands of e4m3. */
enum { GEMM_QKV, GEMM_OUT, GEMM_FFN1, GEMM_FFN2, GEMM_COUNT };
extern const char *const gemm_names[GEMM_COUNT];  /* "qkv", "out", "ffn1", "ffn2" */
extern const char *const gemm_inputs[GEMM_COUNT]; /* "x", "context", "norm1", "activation" */
int chain_gemm(const struct chain *c, int gemm);  /* its operator */

/* The precision of a plan: a set of them, as bits 1 << GEMM_QKV, ..., whose operands are e4m3; all
 * else has the workload's dtype.  Appends it as text: the dtype's name for none of them, "fp8" for
 * all, else names in order, "qkv,ffn1". */
enum { GEMM_ALL = (1 << GEMM_COUNT) - 1 };
void precision_text(unsigned precision, const char *dtype, struct buf *out);

/* Appends the names of a set of GEMMs, "qkv, ffn1", with `between` between two. */
void gemms_text(unsigned gemms, const char *between, struct buf *out);

/* "fp16" stands for none of them, whatever the dtype; names may come in any order. */
int precision_parse(const char *text, unsigned *out, struct status *st);

/* Appends the names of operators first..last with `separator` between them. */
void add_op_names(const struct chain *c, int first, int last, const char *separator,
                  struct buf *out);

/* ---- chain_check.c ------------------------------------------------------------------------------
 *
 * Checks a chain: operators read what is there before them, roles and functions fit kinds, layouts
 * and widths agree, one operator splits heads, every weight is read once and by the role of its
 * shape, and every output is read.  A failure names the first operator or weight that is wrong. */
int chain_check(const struct chain *c, struct status *st);
