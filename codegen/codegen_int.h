/* What the files of codegen share among themselves. */
#pragma once

#include "codegen/codegen.h"

/* ---- lower.c: segment -> stages -----------------------------------------------------------------
 *
 * All emitters start from these stages.  An operator joins the stage before it if it needs nothing
 * but what the same thread, or thread block, of that stage holds. */

struct stage {
    const struct chain *chain;
    enum stage_kind kind;
    int8_t first, last; /* operators */
    uint32_t stores; /* tensors that it must write for the caller or for later stages, as a set */
};

enum lowering {
    LOWERING_TILED,   /* a GEMM's tiles are independent; a layernorm after it is another stage */
    LOWERING_ROWWISE, /* a stage holds whole rows, so that a layernorm or another GEMM joins it */
    LOWERING_ONE      /* as tiled, but no stage stores more than its last operator's output */
};

/* Returns the number of stages.  All threads meet between two stages. */
int lower_segment(const struct chain *chain, struct segment s, enum lowering how,
                  struct stage out[OP_COUNT]);

/* Whether a stage holds an operator of that kind. */
bool stage_has(const struct stage *s, enum op_kind kind);

/* ---- impl.c ---------------------------------------------------------------------------------- */

/* For `applicable`: stores the reason and returns false. */
static inline bool inapplicable(const char **why, const char *reason)
{
    *why = reason;
    return false;
}

/* ---- choice.c -------------------------------------------------------------------------------- */

/* Whether a knob is off its default. */
bool choice_turns(const struct choice *c, int knob);

/* "_of_e4m3_to_e4m3", in the name of its function. */
void add_e4m3_name(const struct choice *c, struct buf *out);

/* ---- schedule.c ------------------------------------------------------------------------------ */

/* Advances to the next schedule, the last knob first; false after the last schedule. */
bool schedule_next(const struct impl *impl, struct schedule *s);

void knob_label(const struct knob *knob, int pick, struct buf *out); /* appends it */

/* The index of the knob whose name is the first len characters of `name`, or -1. */
int knob_find(const struct impl *impl, const char *name, size_t len);

/* ---- emit_head.c ----------------------------------------------------------------------------- */

/* "stage_07_08_out_gemm_out_bias_residual" */
void add_stage_name(const struct chain *c, int first, int last, struct buf *out);

/* Appends a line of the comment at the top: stage `index` (from 0), its operators, its work. */
void add_stage_line(const struct chain *c, int index, int first, int last, const char *summary,
                    struct buf *out);

/* The name of an operator of attention in kernels/<target>/attention.h: "FP_SCORES". */
const char *attention_name(const struct op *op);

/* The tensor from which operators first..last take q, k and v; TENSOR_NONE: they take none. */
int attention_qkv(const struct chain *c, int first, int last);

/* Begins the comment at the top: operators with their operations, tensors, weights. */
void add_header(const struct choice *c, const struct build_target *t, struct buf *out);

/* The head of a kernel that these segments share. */
void add_shared_header(const struct choice *c, const struct segment *segments, int count,
                       const struct build_target *t, struct buf *out);

/* ---- cpu.c ----------------------------------------------------------------------------------- */

/* The knobs of the CPU's `generated`, in the order of its row in impls[]. */
enum cpu_knob { CPU_KNOB_LOWERING, CPU_KNOB_ROW_BLOCK, CPU_KNOB_COL_BLOCK };

/* lower_segment() with the choice's lowering. */
int cpu_stages(const struct choice *c, struct stage out[OP_COUNT]);

bool cpu_applicable(const struct choice *c, const struct build_target *t, const char **why);
uint32_t cpu_tensors(const struct choice *c);

/* ---- emit_cpu.c ------------------------------------------------------------------------------ */

void emit_cpu_generated(const struct choice *c, const struct build_target *t, struct buf *out);
void emit_cpu_handwritten(const struct choice *c, const struct build_target *t, struct buf *out);

/* ---- emit_cpu_stage.c ------------------------------------------------------------------------ */

/* One line for people: what the stage does. */
const char *cpu_stage_summary(const struct stage *stage);

/* The kernel header that the stage needs. */
const char *cpu_stage_header(const struct stage *stage);

/* Appends the function that runs the stage. */
void emit_cpu_stage(const struct stage *stage, struct buf *out);

/* ---- kernels: text embedded at build time ---------------------------------------------------- */

/* The texts of kernel_files(), and of an exported library: kernels/library and the target's own. */
enum kernel_group {
    KERNEL_CPU,
    KERNEL_CUDA,
    KERNEL_LIBRARY,
    KERNEL_CPU_LIBRARY,
    KERNEL_CUDA_LIBRARY,
    KERNEL_PRODUCTS, /* for segments that cuBLASLt runs */
    KERNEL_HOST,     /* for programs that use the library */
    KERNEL_CPU_HOST,
    KERNEL_CUDA_HOST,
    KERNEL_PROGRAM, /* of `generate` */
    KERNEL_EXPORT,  /* what only an exported library has */
    KERNEL_STAMPS,  /* in front of the source of a kernel that is stamped */
    KERNEL_GROUPS
};
int kernel_group(enum kernel_group group, const struct kernel_file **out);

/* ---- standalone.c: an exported library, and a program on it -------------------------------------
 *
 * In the texts of kernels/library the word "encoder" stands for the library's name, and @NAME@ for
 * what the target or the plans decide. */

struct filling;

/* "@NAME@", and what stands for it: a text in which further words are filled in, or what `add`
 * appends. */
struct placeholder {
    const char *name, *text;
    void (*add)(const struct filling *f, struct buf *out);
};

/* What a target's library has of its own; the rest is common to all. */
struct library_target {
    const char *suffix;  /* of its kernels: ".cu" */
    const char *defines; /* the first lines of each */
    enum kernel_group group, host;
    const struct placeholder *placeholders; /* until one without a name */
    /* plan_bB_sS.c: the declarations of a segment, and its row of segments[]. */
    void (*declare_function)(const struct standalone_spec *s, const struct standalone_plan *p,
                             int segment, struct buf *out);
    void (*define_segment)(const struct standalone_spec *s, const struct standalone_plan *p,
                           int segment, struct buf *out);
    /* The tiles of a kind of layers, as PREFIXquery_tiles, if a segment reads any; null: none does.
     * Returns whether there are any. */
    bool (*add_tiles)(const struct standalone_plan *p, int kind, const char *prefix,
                      struct buf *out);
    /* plans.c: the scales of e4m3; null: the target has none. */
    void (*add_scales)(const struct standalone_spec *s, struct buf *out);
};

/* What texts are filled in with. */
struct filling {
    const struct standalone_spec *spec;
    const struct library_target *target;
    const struct standalone *files; /* so far: the library's */
};

/* emit_cpu_standalone.c, emit_cuda_standalone.c */
extern const struct library_target cpu_library, cuda_library;

/* ---- placement.c: the memory of tensors between segments ----------------------------------------
 *
 * Tensors that are in use at the same time lie apart, others share memory: there is less of it to
 * allocate, and L2 keeps more of what is still to be read.
 *
 * Source: Pisarchyk, Lee: Efficient memory management for deep neural net inference, 2020 ("greedy
 * by size"). */

struct placement {
    /* Elements from the first place to each tensor; -1: the tensor is never in memory, or not in
     * this one.  What the next layer reads has no place: it lies in the output of all layers.
     * TENSOR_X has one where the segment that writes the next layer's still reads it, so that
     * layers must take turns between two places; likewise TENSOR_N.  Behind the tensors the GEMMs'
     * inputs in e4m3, of which two take the memory of an element. */
    int64_t at[TENSOR_COUNT + GEMM_COUNT];
    int64_t elements; /* of all places */
};

void placement_find(const struct candidate *c, const struct workload *w, struct placement *out);

/* ---- standalone_header.c: what the library's header says of its chain ------------------------ */

void add_family(const struct filling *f, struct buf *out);
void add_layer(const struct filling *f, struct buf *out);
void add_fields(const struct filling *f, struct buf *out);

/* ---- standalone_plan.c: its data ------------------------------------------------------------- */

void add_plan_source(const struct standalone_spec *s, const struct library_target *target,
                     const struct standalone_plan *p, struct buf *out);
void add_plans_source(const struct standalone_spec *s, const struct library_target *target,
                      struct buf *out);
void add_drawn(const struct standalone_spec *s, struct buf *out); /* drawn.h */

/* ---- standalone_text.c: what its files have in common ---------------------------------------- */

/* Appends the library's name in place of the word "encoder", in capitals in place of "ENCODER", and
 * returns the word's length; 0 for another word.  HuggingFace's names keep theirs. */
size_t add_library_word(const char *name, const char *at, struct buf *out);

/* The library's name; that of a choice's function in it. */
void add_library_name(const struct standalone_spec *s, bool capitals, struct buf *out);
void add_library_symbol(const struct standalone_spec *s, const struct choice *c, struct buf *out);

bool calls_library(const struct standalone_spec *s);

/* "static const int PREFIXNAME[] = {...};" */
void add_ints(const char *prefix, const char *name, const int *values, int64_t count,
              struct buf *out);
void add_words(const char *prefix, const char *name, const uint64_t *values, int64_t count,
               struct buf *out);
