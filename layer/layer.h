/* layer: what one encoder layer is.
 *
 * The operator chain, how a plan cuts it, attention masks, the workload to be made fast, and the
 * least work that a segment does.  Pure: no file, no clock, no device, no target.
 *
 * An *operator* is one of the 15 rows of the chain.  A *plan* cuts the chain into contiguous
 * *segments*, each exactly one kernel launch.
 *
 * CONTRIBUTING.md has the steps to replace an operator and to add a mask. */
#pragma once

#include "base/base.h"
#include "layer/chain.h"
#include "layer/mask.h"

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
enum { VALUE_MAX = 65535, VALUE_UNFUSED = 43690, VALUE_FUSED = 41115, PLAN_SPACE = 16640 };

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

/* Appends the value and, where it has one, its name: "43690 (unfused: ...)". */
void plan_add(unsigned value, struct buf *out);

/* "unfused ", "fused " or "": goes before a value where there is no room for its name. */
const char *plan_word(unsigned value);

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
char *segment_text(struct segment s, char out[12]); /* "10-11", "7"; returns out */

bool segment_is_attention(struct segment s); /* the one that the hand-written operator serves */

/* A slot is what is timed alone and has choices of its own: slot i is segment i by generated code,
 * the last slot the attention segment by the hand-written operator. */
enum { SLOT_HANDWRITTEN = SEGMENT_COUNT, SLOT_COUNT };
struct segment slot_segment(int slot);
int slot_of(struct segment s, bool handwritten);
int plan_slots(struct plan p, int out[OP_COUNT]); /* as plan_segments() */

/* The tensors and weights that a segment reads or writes for others, as sets.  Its outputs are that
 * of its last operator and those that an operator behind the segment or the next layer reads. */
uint32_t segment_inputs(const struct chain *c, struct segment s);
uint32_t segment_outputs(const struct chain *c, struct segment s);
uint32_t segment_weights(const struct chain *c, struct segment s);

/* Appends "scores+mask+softmax+context+merge_heads". */
void segment_describe(const struct chain *c, struct segment s, struct buf *out);

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
bool plan_in_space(struct plan p, const struct plan *space, int count);

/* ---- workload.c, workload_kinds.c, workload_text.c: what is to be made fast ------------------ */

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

/* The same of a layer; precision: GEMMs whose operands are e4m3, as bits. */
double layer_tolerance(enum dtype dtype, unsigned precision);

/* The largest sizes that a workload may have; SEQ_LEN_MAX is that of seq_len. */
enum { BATCH_MAX = 65536, HEADS_MAX = 1024, HEAD_SIZE_MAX = 4096 };
enum { FFN_MAX = 1 << 20, LAYERS_MAX = 1024, HIDDEN_MAX = 1 << 16 };

/* The least and the largest eps.  A smaller one may be 0 where kernels compute, in floats. */
#define EPS_MIN         1e-37
#define EPS_MAX         1.0
#define ROPE_THETA_MIN  1.0
#define ROPE_THETA_MAX  1e12
#define ROPE_FACTOR_MAX 1e6

struct workload {
    const struct chain *chain; /* borrowed: it outlives the workload */
    int batch, seq_len, heads, head_size, ffn, layers;
    int hidden; /* D where it is not heads * head_size and the chain says so; else 0 */
    double eps;
    double rope_theta;  /* the base of rotary embeddings; 0 where the chain has none */
    double rope_factor; /* by which their longest wave is longer; 0: not given, as 1 */
    enum dtype dtype;
    int *lengths; /* (batch) real tokens of each row, owned; null: all are seq_len */
    struct mask_spec mask_spec;
    struct mask mask;          /* set by workload_build_mask() */
    struct block_lists blocks; /* set by workload_build_mask() */
    struct cover cover;        /* set by workload_build_mask(); no part if none is better */
    /* Layers may be of two kinds.  Layers 0, every, 2 every, ... are as above, and the others as
     * `local`: its mask and rope_theta are its own, all else is the same. */
    int every;              /* at least 2; 0 where all layers are of one kind */
    struct workload *local; /* owned; null where all layers are of one kind */
};

/* BERT-base with a full mask: chain_bert, heads 12, head_size 64, layers 12, eps 1e-5, fp32.  The
 * caller sets batch and seq_len, and ffn unless it is 4D. */
void workload_init(struct workload *w);
void workload_release(struct workload *w);

/* Makes the layers between every `every`th local: they have this mask and base of rotary
 * embeddings.  The caller checks the workload afterwards. */
int workload_add_local(struct workload *w, const char *mask, double rope_theta, int every,
                       struct status *st);

/* Copies all but the bits of the mask; the block lists and the cover of dst tell what it keeps. */
void workload_copy(struct workload *dst, const struct workload *src);

/* Checks the chain and every number, sets ffn to 4D if it is 0, drops lengths that are all seq_len,
 * a hidden size that is heads * head_size and a kind that no layer has, and resolves the mask of
 * each kind.  Takes the chain whose hidden size is one of its own, or is not, as `hidden` says.  A
 * workload too large for any target is refused with the memory that it needs. */
int workload_check(struct workload *w, struct status *st);

/* Builds the mask, its block lists and its cover of a workload that was checked, for each kind of
 * layers.  npy as for mask_build(), of the first kind. */
int workload_build_mask(struct workload *w, const struct buf *npy, struct status *st);
/* Which pairs are kept and no padding: bytes 0 or 1, (S,S), or (B,S,S) with lengths or if the batch
 * rows' masks differ.  Returns the number of dimensions; the caller frees *out. */
int workload_kept(const struct workload *w, int64_t shape[3], unsigned char **out);

enum { KINDS_MAX = 2 };

static inline int workload_kinds(const struct workload *w)
{
    return w->local != NULL ? 2 : 1;
}

/* Of a layer, 0 or 1; and what layers of a kind are.  Layer k is the first of kind k.  Kind 0 is w
 * itself: functions that give a mean over the kinds give it for kind 0, and kind 1's own number for
 * kind 1. */
int layer_kind(const struct workload *w, int layer);
const struct workload *workload_of_kind(const struct workload *w, int kind);
const struct workload *workload_of_layer(const struct workload *w, int layer);

/* Whether a segment computes another thing in layers of another kind: it masks or rotates. */
bool segment_has_kinds(const struct workload *w, struct segment s);

/* How many of the first `layers` layers are of kind 0. */
int workload_global_layers(const struct workload *w, int layers);

/* The mean over all layers of what each kind has. */
double workload_mean(const struct workload *w, const double *of_kind);

/* The mean of the pairs that a layer's mask keeps, summed over the batch. */
double workload_pairs(const struct workload *w);

/* What its layers have as bits: as enum encoder_functions of exported libraries
 * (kernels/library/encoder.h). */
unsigned workload_functions(const struct workload *w);

static inline int workload_hidden(const struct workload *w)
{
    return w->hidden != 0 ? w->hidden : w->heads * w->head_size;
}

/* A: of all heads side by side. */
static inline int workload_heads_columns(const struct workload *w)
{
    return w->heads * w->head_size;
}

/* Real tokens, summed over the batch; tokens past a length are padding, never computed. */
int64_t workload_tokens(const struct workload *w);

/* Set the lengths of a workload whose batch and seq_len are set: from "n1,n2,...", one number a
 * batch row; or drawn around an average as docs/masks.md says. */
int workload_parse_lengths(struct workload *w, const char *text, struct status *st);
int workload_draw_lengths(struct workload *w, int average, uint64_t seed, struct status *st);

/* As in memory: padding counts, and tables are fp32. */
double weight_bytes(int weight, const struct workload *w);

/* Upper bound of the bytes that it takes to run and verify any plan: all tensors of one layer, the
 * same again as the oracle keeps them in fp32 of a layer of each kind, the weights of all layers,
 * the masks.  Takes any numbers, checked or not. */
double workload_bytes(const struct workload *w);

/* Appends the normalised text that identifies the workload in the database, e.g.
 * "b=1 s=128 h=12 w=64 f=3072 l=12 eps=1e-05 dtype=fp32 lengths=full mask=causal".  A chain that is
 * not BERT's follows, " chain=pre+rope+hidden rope=10000:2 hidden=512", the last two of chains that
 * rotate, with a factor if there is one, and that have a hidden size of their own; then a second
 * kind of layers, " local=sliding:w=64 local_rope=500 every=3". */
void workload_text(const struct workload *w, struct buf *out);
void lengths_text(const struct workload *w, struct buf *out); /* "full", or "5,7" */
void chain_text(const struct workload *w, struct buf *out);   /* from the chain's name on */
/* "10000", or "10000:2" with a factor. */
void rope_text(double theta, double factor, struct buf *out);
int rope_parse(const char *what, const char *text, double *theta, double *factor,
               struct status *st);
/* Reads such a text; release *out on failure too.  A file's mask has its hash for a path. */
int workload_parse(const char *text, struct workload *out, struct status *st);

/* ---- inputs.c: from what the layers' inputs and weights are drawn ---------------------------- */

enum ranges {
    RANGES_UNIFORM, /* weights as their `draw` says */
    RANGES_WIDE,    /* all weights in +-0.4 */
    RANGES_COUNT
};
extern const char *const ranges_names[RANGES_COUNT]; /* "uniform", "wide" */

/* Determines all values of all layers that are drawn. */
struct drawing {
    uint64_t seed;
    enum ranges ranges;
};

struct drawn {
    double middle, range; /* values are drawn uniformly in middle +- range */
};
struct drawn weight_drawn(const struct weight *weight, enum ranges ranges);

/* The rotations of rotary embeddings, (S,W), as layer/rotations.h says. */
void rope_table(const struct workload *w, float *out);

/* ---- cost.c: the least that a segment costs -----------------------------------------------------
 *
 * Operations and bytes that no implementation avoids, for one layer of a workload whose mask is
 * built, or the mean of its kinds of layers.  Divided by a measured time they give the achieved
 * TFLOP/s and GB/s. */

/* Floating-point operations of one layer, counted as kernel libraries do: two for a multiply-add,
 * none for other arithmetic.  Attention counts kept pairs alone. */
double segment_flops(struct segment s, const struct workload *w);

/* Each input and each weight read once, each output written once.  Padding does not count.  Of a
 * tensor (B,H,S,S) the kept elements count.  Each of q, k and v counts whole if an operator of the
 * segment reads it. */
double segment_bytes(struct segment s, const struct workload *w);
double tensor_bytes(int tensor, const struct workload *w); /* of one, counted likewise */
