/* What the files of codegen share among themselves. */
#ifndef FUSEPLAN_CODEGEN_INT_H
#define FUSEPLAN_CODEGEN_INT_H

#include "codegen/codegen.h"

/* ---- lower.c: segment -> stages -----------------------------------------------------------------
 *
 * All emitters start from these stages.  An operator joins the stage before it if it needs nothing
 * but what the same thread, or thread block, of that stage holds. */

enum stage_kind {
    STAGE_ELEMENTWISE, /* a bias, residual, GELU or permutation pass */
    STAGE_GEMM,        /* tiles of a GEMM with an epilogue */
    STAGE_ROWS,        /* blocks of token rows: layernorm and the operators around it; with rowwise
                          lowering also GEMMs one after another on the same rows */
    STAGE_ATTENTION,   /* query blocks of one head: any run of scores to context.  The loader of a
                          whole run may split the heads; the store of the context may merge them. */
};

struct stage {
    enum stage_kind kind;
    int8_t first, last; /* operators */
    uint16_t stores;    /* tensors that it must write for the caller or for later stages, as bits */
};

enum lowering {
    LOWERING_TILED,  /* a GEMM's tiles are independent; a layernorm after it is another stage */
    LOWERING_ROWWISE /* a stage holds whole rows, so that a layernorm or another GEMM joins it */
};

/* Returns the number of stages.  All threads meet between two stages. */
int lower_segment(struct segment s, enum lowering how, struct stage out[OP_COUNT]);

/* Whether a stage holds an operator of that anchor. */
bool stage_has(const struct stage *s, enum anchor anchor);

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

/* ---- schedule.c ------------------------------------------------------------------------------ */

/* Advances to the next schedule, the last knob first; false after the last schedule. */
bool schedule_next(const struct impl *impl, struct schedule *s);

void knob_label(const struct knob *knob, int pick, struct buf *out); /* appends it */

/* The index of the knob whose name is the first len characters of `name`, or -1. */
int knob_find(const struct impl *impl, const char *name, size_t len);

/* ---- emit_head.c ----------------------------------------------------------------------------- */

/* "stage_07_08_out_gemm_out_bias_residual" */
void add_stage_name(int first, int last, struct buf *out);

/* Appends a line of the comment at the top: stage `index` (from 0), its operators, what it does. */
void add_stage_line(int index, int first, int last, const char *summary, struct buf *out);

/* Begins the comment at the top: operators with their operations, tensors, weights. */
void add_header(const struct choice *c, const struct build_target *t, struct buf *out);

/* ---- cpu.c ----------------------------------------------------------------------------------- */

/* The knobs of the CPU's `generated`, in the order of its row in impls[]. */
enum cpu_knob { CPU_KNOB_LOWERING, CPU_KNOB_ROW_BLOCK, CPU_KNOB_COL_BLOCK };

/* lower_segment() with the choice's lowering. */
int cpu_stages(const struct choice *c, struct stage out[OP_COUNT]);

bool cpu_applicable(const struct choice *c, const struct build_target *t, const char **why);
uint16_t cpu_tensors(const struct choice *c);

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

/* The sources of a program that runs a plan, beside those that are emitted. */
int kernel_program(enum target_kind target, const struct kernel_file **out);

/* The header with the command line of such a program. */
const struct kernel_file *kernel_arguments(void);

/* The header with the host code that calls cuBLASLt. */
const struct kernel_file *kernel_library(void);

/* ---- standalone.c, standalone_plan.c: a program that runs a plan --------------------------------
 */

/* What a target's program has of its own; the rest is common to all. */
struct program {
    const char *suffix;    /* of its sources: ".cu" */
    const char *word_type; /* of the mask's words in its abi.h */
    /* Of its Makefile: the compiler with its flags, the rule for an object where make has none, and
     * the patterns of its headers. */
    const char *compiler, *rule, *headers;
    void (*add_variables)(const struct standalone_spec *s, struct buf *out); /* of its Makefile */
    /* plan.h: the lines of #include after that of abi.h, or null; struct plan_segment. */
    void (*add_includes)(const struct standalone_spec *s, struct buf *out);
    void (*declare_segments)(const struct standalone_spec *s, struct buf *out);
    /* plan.c: the declaration of a segment's function, and its row of plan_segments[]. */
    void (*declare_function)(const struct standalone_spec *s, int segment, struct buf *out);
    void (*define_segment)(const struct standalone_spec *s, int segment, struct buf *out);
};

/* emit_cpu_standalone.c, emit_cuda_standalone.c */
extern const struct program cpu_program, cuda_program;

bool calls_library(const struct candidate *c);

/* "static const int NAME[] = {...};" */
void add_ints(const char *name, const int *values, int64_t count, struct buf *out);
void add_words(const char *name, const char *type, const uint64_t *values, int64_t count,
               struct buf *out);

void add_plan_h(const struct standalone_spec *s, const struct program *program, struct buf *out);
void add_plan_c(const struct standalone_spec *s, const struct program *program, struct buf *out);

#endif
