/* The layers of @FAMILY@ as one call: y = layer[n-1](... layer[0](x)).
 *
 * Layer, with A = heads * head_size, D = hidden, F = ffn, and all matrices row-major:
 *
@LAYER@ *
 * x and y are (batch, seq_len, D), of the element type of encoder_describe().  PyTorch's
 * nn.Linear stores the transpose of each matrix.
 *
 * Threads: all functions may be called by any thread at any time; a handle may run in several
 * threads or streams at once if each call has a workspace of its own.  Its graphs (see below) are
 * under a lock, which a call takes for less than a microsecond.  encoder_destroy() needs that no
 * call with its handle is under way, on the device too.  On a GPU encoder_create() and
 * encoder_destroy() allocate, free and wait, which CUDA refuses while a stream is captured.
 *
 * Streams in which calls run at once on a GPU, by any handles, must have the same priority.  In
 * some kernels thread blocks wait for others of their launch.  A launch of a higher priority could
 * keep those from starting, wait for thread blocks of its own in turn, and neither would ever end.
 *
 * Processes: OpenMP's threads and CUDA do not outlive a fork().  Once a process has run the library
 * on a CPU, or has created a handle on a GPU, the children that it forks are refused with
 * ENCODER_FORKED, in encoder_run() and on a GPU in encoder_create().  In such a child
 * encoder_destroy() frees the memory of the host alone.  A handle that was created on a CPU before
 * the fork runs in each child if the parent has not run the library.  Parallel regions of OpenMP
 * that other code of the parent ran are not known here: a run in a child may then wait for ever.
 *
 * Unloading: dlclose() leaves the shared library loaded (-z nodelete), as OpenMP's threads wait in
 * code that it would unload.  Link a shared object of yours with the static library in the same
 * way.
 *
 * Errors: a function that can fail returns an enum encoder_status, and encoder_message() says more
 * about the calling thread's last failure.  A failed call changes nothing but the workspace and
 * what it was to write.  One failure has no status: see encoder_run(). */
#ifndef ENCODER_H
#define ENCODER_H

#include <stddef.h>

#if defined(__GNUC__)
#define ENCODER_API __attribute__((visibility("default")))
#else
#define ENCODER_API
#endif

#ifdef __cplusplus
extern "C" {
#endif

enum encoder_status {
    ENCODER_OK,
    ENCODER_BAD_ARGUMENT, /* a pointer, a size, a length or a type that cannot be */
    ENCODER_NO_PLAN,      /* no plan of the library is large enough for the batch */
    ENCODER_NO_MEMORY,
    ENCODER_NO_DEVICE,     /* there is no GPU, or none that can be used */
    ENCODER_WRONG_DEVICE,  /* the library has no code for this GPU */
    ENCODER_OLD_DRIVER,    /* the GPU's driver is older than the toolkit that built the library */
    ENCODER_DEVICE_FAILED, /* a call of the driver failed */
    ENCODER_FORKED         /* the process was forked from one that used the library */
};

/* One constant line for a status; never null. */
ENCODER_API const char *encoder_status_text(int status);

/* What the last failure in the calling thread was about: "layer 3: wo is null".  Valid until the
 * thread's next call; "" before the first failure. */
ENCODER_API const char *encoder_message(void);

/* ---- what the library is --------------------------------------------------------------------- */

enum encoder_dtype {
    ENCODER_FP32,
    ENCODER_TF32, /* fp32 in memory, products in tf32 */
    ENCODER_FP16,
    ENCODER_BF16
};

struct encoder_info {
    const char *generator; /* "fuseplan 0.2.0" */
    const char *target;    /* "cpu" or "cuda" */
    const char *archs;     /* of a GPU: what the code is compiled for, "sm_80,sm_90a"; else "" */
    enum encoder_dtype dtype;
    int element_bytes;
    int heads, head_size, hidden, ffn;
    int layers;         /* of the workload that was tuned; a handle may have any number */
    double eps;         /* likewise */
    int plans;          /* how many batches and sequence lengths have a plan */
    int seq_len;        /* of the longest plan */
    unsigned functions; /* ENCODER_PRE and others: in what layers differ from BERT's */
    double rope_theta;  /* of the workload that was tuned; 0: layers turn no heads */
    double rope_factor; /* likewise; 0: not given, as 1 */
    int global_every;   /* layers 0, N, 2N, ... of a model are global, the others local; 0: all */
    double local_rope_theta; /* as rope_theta, of local layers */
    unsigned precision;      /* GEMMs whose operands are e4m3, as enum encoder_gemms; 0: none */
};

/* The library rounds the weights of these GEMMs in encoder_create().  Their inputs have the scales
 * of the calibration that it was exported with, which is of one model: another one is refused. */
enum encoder_gemms {
    ENCODER_QKV = 1, /* wqkv */
    ENCODER_OUT = 2, /* wo */
    ENCODER_FFN1 = 4,
    ENCODER_FFN2 = 8
};

enum encoder_functions {
    ENCODER_PRE = 1, /* norms stand before attention and before the feed-forward network */
    ENCODER_RMS = 2, /* they are RMS norms, without beta */
    ENCODER_GATE = 4,
    ENCODER_ROPE = 8,        /* rotary embeddings */
    ENCODER_SCORE_BIAS = 16, /* a number for each head and distance is added to the scores */
    ENCODER_LOCAL = 32       /* some layers are local, with a mask of their own */
};
ENCODER_API const struct encoder_info *encoder_describe(void);

/* One plan: which kernels run batches of up to this size. */
struct encoder_plan {
    int batch, seq_len;
    int value;            /* the plan's fusion mask */
    int kernels;          /* launches a layer */
    int packed;           /* 1: calls with lengths leave out rows of padding between x and y */
    const char *mask;     /* attention mask, "causal", of global layers; holds beside the lengths */
    const char *workload; /* all that was tuned for */
    const char *measured_on; /* the device that chose the schedules; null: default schedules */
};

/* index: 0..plans-1, smallest first; null for any other. */
ENCODER_API const struct encoder_plan *encoder_plan_at(int index);

/* The index of the plan that runs (batch, seq_len): the one of exactly this size, else the one of
 * the fewest tokens that is large enough in both; -1: none is. */
ENCODER_API int encoder_find(int batch, int seq_len);

/* ---- a model --------------------------------------------------------------------------------- */

/* Matrices (rows, columns) and vectors of one layer.@FIELDS@ */
struct encoder_weights {
    const void *wqkv;   /* (D, 3A) */
    const void *bqkv;   /* (3A) */
    const void *wo;     /* (A, D) */
    const void *bo;     /* (D) */
    const void *gamma1; /* (D) */
    const void *beta1;  /* (D) */
    const void *w1;     /* (D, F) */
    const void *b1;     /* (F) */
    const void *w2;     /* (F, D) */
    const void *b2;     /* (D) */
    const void *gamma2; /* (D) */
    const void *beta2;  /* (D) */
};

struct encoder_model {
    int heads, head_size, ffn; /* must be those of encoder_describe() */
    /* The type of all weights: likewise, or fp32 where that is a half type, to which they are
     * rounded. */
    enum encoder_dtype dtype;
    int layers;    /* at least 1 */
    double eps;    /* of the layernorms, 1e-37..1: 1e-12 for HuggingFace's BERT */
    int on_device; /* weights point to the GPU's memory; 0: to the host's; 0 on a CPU */
    const struct encoder_weights *weights; /* (layers) */
    /* What all layers share, null where they have none: see `functions`. */
    const void *first_gamma; /* (D) of the norm before the first layer; null: n is x there */
    const void *first_beta;  /* (D); null: zeros */
    double rope_theta;       /* the base of rotary embeddings, 1..1e12 */
    const float *rope;       /* (S, head_size), S of encoder_describe(): cos and sin of place s and
                              * pair c at s, 2c and s, 2c+1; null: of s * rope_theta^(-2c/W), or
                              * with a factor f s * (f rope_theta)^(-2c/W) / f^(2/W) */
    const float *score_bias; /* (heads, 2S-1), S likewise: number h, j-i + S-1 is added
                              * to the score of query i and key j of head h, before the mask */
    int hidden;              /* D, that of encoder_describe(); 0: heads * head_size */
    double rope_factor;      /* of rotary embeddings, 1..1e6; 0: not given, as 1 */
    double local_rope_theta; /* as rope_theta, of local layers */
    const float *local_rope; /* as rope, likewise */
};

struct encoder; /* a handle */

/* Copies all weights to the current device, so that the caller may free them afterwards, and makes
 * a handle, which only runs on this device.  Waits for the copies.  *out is null on failure. */
ENCODER_API int encoder_create(const struct encoder_model *model, struct encoder **out);

/* Takes null. */
ENCODER_API void encoder_destroy(struct encoder *e);

/* Bytes of workspace that a run of this size needs; 0 if no plan is large enough.  The same for all
 * handles of the library. */
ENCODER_API size_t encoder_workspace_bytes(int batch, int seq_len);

/* ---- running --------------------------------------------------------------------------------- */

/* All zero but what is needed.  On a GPU x, y and workspace are memory of the handle's device, on
 * a CPU of the host; aligned to 16 bytes (64 are best).  y and the part of the workspace that
 * encoder_workspace_bytes() counts must overlap neither each other nor x or the lengths. */
struct encoder_call {
    int batch, seq_len;
    const void *x; /* (batch, seq_len, D); rows past a length may hold anything */
    void *y;       /* likewise, of any contents; rows past a length are zeros afterwards */
    /* (batch) real tokens of each sequence, 1..seq_len; null: all of them.  In host memory; read
     * before the call returns, and a graph that captures the call keeps these lengths. */
    const int *lengths;
    /* The same in the GPU's memory, read when the work runs: a graph may run again with others.
     * cuBLASLt computes all rows of a packed plan then, while other kernels stop behind the last
     * real token.  Lengths outside 0..seq_len are taken as the nearest of these.  Null on a CPU,
     * and where `lengths` is not. */
    const int *device_lengths;
    void *workspace; /* any contents */
    size_t workspace_bytes;
    void *stream;  /* cudaStream_t; null: the default stream.  On a CPU null. */
    void *yn;      /* like y: the norm of y where norms stand before; null: not wanted */
    void *outputs; /* (layers-1, batch, seq_len, D), each like y: what all layers but the last hand
                    * on; null: not wanted */
    /* In place of device_lengths, where the plan is packed: (batch, seq_len) in the GPU's memory, 0
     * where a row of x is none of a token.  Tokens of a sequence lie where others are not 0, and
     * follow each other in this order; so they do in y, whose other rows are zeros. */
    const long long *device_mask;
};

/* Runs all layers.  On a GPU the call returns once the work is in the stream, and never waits for
 * the device.  On a CPU it returns when y is computed, by the caller's OpenMP threads, each of
 * which keeps some scratch memory from its first call on.  Where there is no memory for it, the
 * program ends by abort().
 *
 * On a GPU a handle keeps CUDA graphs of up to 8 calls, so that a call that comes again is one
 * launch.  A call comes again if the batch, seq_len, x, y, yn, outputs, workspace,
 * device_lengths and device_mask are as before, and if a sequence is shorter than its plan's, or
 * none is, as before; contents and the stream may differ.  The runs of one graph follow one
 * another, also in different streams.
 *   - The second such call records a graph, and so allocates and takes about as long as two calls.
 *     It may do so while other streams are captured.  All other calls allocate nothing.
 *   - It must come within the next 32 calls that differ.  A graph that was not used by 64 calls may
 *     give way to another.
 *   - Lengths in host memory are handed over by a launch of their own.  Packed plans with segments
 *     by cuBLASLt take no graph with such lengths, nor where a batch is smaller than its plan's.
 *   - In a stream that the caller captures no graph is used: the caller's gets all launches.
 *   - A handle that fails to record a graph goes on without further ones, and the call succeeds.
 * encoder_destroy() destroys the graphs. */
ENCODER_API int encoder_run(const struct encoder *e, const struct encoder_call *call);

/* ---- what a first layer reads ---------------------------------------------------------------- */

/* All zero but what is needed.  Tables are (rows, D), vectors (D), of the library's type; they and
 * x are aligned to 16 bytes.  All is memory of the current GPU, or for a CPU of the host; it stays
 * the caller's. */
struct encoder_embedding {
    int batch, seq_len;
    const long long *ids;   /* (batch, seq_len): rows of word */
    const long long *types; /* likewise of type; null: row 0 */
    /* Which of them are tokens, one of both; null: all are. */
    const long long *mask; /* (batch, seq_len): not 0 where a token is */
    const int *lengths;    /* (batch): tokens come first */
    const void *word;
    const void *type;     /* null: none is added */
    const void *position; /* likewise */
    long word_rows, type_rows, position_rows;
    /* -1: row p of position is that of place p of a sequence.  Else, as in RoBERTa, row
     * padding_id + n of the n-th id of a sequence that is not padding_id, and row padding_id of all
     * others. */
    long padding_id;
    const void *gamma, *beta; /* beta null: zeros */
    double eps;               /* 1e-37..1 */
    void *x;                  /* (batch, seq_len, D) */
    void *stream;             /* as in struct encoder_call */
};

/* Writes rows of x that are tokens', and no others: word[id] + type[t] + position[p], of which the
 * layernorm is taken in fp32.  encoder_run() reads none of the others, given the same mask or
 * lengths.  It returns as encoder_run() does.
 *
 * An id or a type of a token that is no row of its table is ENCODER_BAD_ARGUMENT on a CPU.  On a
 * GPU, for which the call does not wait, that token's row is NaN. */
ENCODER_API int encoder_embed(const struct encoder_embedding *e);

#ifdef __cplusplus
}
#endif

#endif
