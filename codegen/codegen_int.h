/* What the files of codegen share among themselves. */
#ifndef FUSEPLAN_CODEGEN_INT_H
#define FUSEPLAN_CODEGEN_INT_H

#include "codegen/codegen.h"

/* ---- emit_cpu.c ----------------------------------------------------------------------------- */

/* The knobs of the CPU's `generated`, in the order of its row in impls[]. */
enum cpu_knob { CPU_KNOB_LOWERING, CPU_KNOB_ROW_BLOCK, CPU_KNOB_COL_BLOCK };

void emit_cpu_generated(const struct choice *c, const struct build_target *t, struct buf *out);
void emit_cpu_handwritten(const struct choice *c, const struct build_target *t, struct buf *out);

/* ---- emit_cpu_stage.c ----------------------------------------------------------------------- */

/* "stage_07_08_out_gemm_out_bias_residual" */
void cpu_stage_name(const struct stage *stage, struct buf *out);

/* One line for people: what the stage does. */
const char *cpu_stage_summary(const struct stage *stage);

/* The kernel header that the stage needs. */
const char *cpu_stage_header(const struct stage *stage);

/* Appends the function that runs the stage. */
void emit_cpu_stage(const struct stage *stage, struct buf *out);

/* Appends `names of operators first..last` with `separator` between them. */
void add_op_names(int first, int last, const char *separator, struct buf *out);

/* ---- standalone.c, emit_cpu_standalone.c ---------------------------------------------------- */

/* The text of a new file, to be filled before the next is added. */
struct buf *standalone_add(struct standalone *p, const char *name);

/* Appends what is not a segment and not a kernel. */
void emit_cpu_standalone(const struct standalone_spec *spec, struct standalone *out);

#endif
