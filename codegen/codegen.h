/* codegen: what can run a segment, and its source text.
 *
 * Pure: no file, no clock, no device.
 *
 * A *stage* is a piece of a segment that runs without waiting for other threads.  An
 * *implementation* is one way to run a segment, a *schedule* the values of its knobs, a *choice* a
 * segment with both, a *candidate* a plan with its choices.
 *
 * CONTRIBUTING.md has the steps to add an implementation. */
#pragma once

#include "layer/layer.h"

/* ---- arch.c: GPU architectures by number: 80 is sm_80, 90 is sm_90a -------------------------- */

enum { CUDA_ARCH_MIN = 80, CUDA_ARCH_HOPPER = 90, ARCH_LIST_MAX = 16 };

struct arch_list {
    int count;
    int arch[ARCH_LIST_MAX]; /* ascending */
};

/* "sm_80,sm_90a" in any order. */
int arch_parse_list(const char *text, struct arch_list *out, struct status *st);

void arch_name(int arch, struct buf *out);               /* appends "sm_90a" */
void arch_words(const char *separator, struct buf *out); /* appends all that are known */

/* Whether code for `arch` runs on a device of architecture `device`. */
bool arch_runs(int arch, int device);

/* The first release of CUDA that compiles for it, 12080 for 12.8; 0 for an unknown architecture. */
int arch_toolkit(int arch);

/* The most shared memory that a thread block can have; for an unknown architecture sm_90a's. */
int arch_shared_bytes(int arch);

/* The architecture of a list, of one at least, whose schedules all of the list run: that of the
 * least shared memory, and sm_90a only if it is alone, since no other one has wgmma. */
int arch_common(const struct arch_list *list);

/* What the compiler's option CPU_ARCH_OPTION takes: "native", CPU_ARCH_EXAMPLE.  Only the compiler
 * knows all names; refused is what cannot be one. */
int cpu_check_processors(const char *name, struct status *st);

/* Appends nvcc's options for a program that runs on every architecture of a list.  It avoids -arch,
 * which for sm_90a also compiles for compute_90, where wgmma is missing. */
void arch_options(const struct arch_list *list, struct buf *out);

/* ---- target.c: what code is compiled for ----------------------------------------------------- */

enum target_kind { TARGET_CPU, TARGET_CUDA, TARGET_COUNT };
extern const char *const target_names[TARGET_COUNT];

struct build_target {
    const struct chain *chain; /* whose segments it runs */
    enum target_kind kind;
    enum dtype dtype;
    int head_size;
    int arch;     /* of a GPU: 90 for sm_90; 0: unknown, any architecture's code is allowed */
    bool library; /* of a GPU: cuBLASLt can be called, or is assumed to be callable */
    bool ordered; /* the workload's masks have covers, or are not built */
    bool joined;  /* tiles of them may have rows of several sequences, or they are not built */
    const struct workload *workload; /* which schedules are expected to be fast; null: unknown */
    unsigned precision;              /* GEMMs whose operands are e4m3, as bits 1 << GEMM_QKV, ... */
};

/* capability: the device's, as in its fingerprint: "sm_90".  The target refers to *w. */
struct build_target build_target_of(enum target_kind kind, const char *capability, bool library,
                                    const struct workload *w);

/* Fails if there is no code for the sizes or the precision; not every segment runs in e4m3. */
int build_check(const struct build_target *t, const struct workload *w, struct status *st);

/* Appends the target's compiler options, "-arch=sm_90a"; none on a CPU. */
void build_options(const struct build_target *t, struct buf *out);

/* ---- impl.c: implementations ----------------------------------------------------------------- */

enum { KNOB_MAX = 6, KNOB_VALUES_MAX = 24 };

struct knob {
    const char *name;
    bool compile_time; /* part of the source; else a run-time argument of the same binary */
    int count;
    int values[KNOB_VALUES_MAX];
    const char *labels[KNOB_VALUES_MAX]; /* the values as text; null: as decimal numbers */
};

struct schedule {
    int8_t pick[KNOB_MAX]; /* index into each knob's values; choice_value() returns the value */
    uint8_t precision;     /* the plan's, as far as it concerns the segment: see segment_gemms() */
};

struct impl;
struct cuda_launch;

struct choice {
    const struct chain *chain;
    struct segment segment;
    const struct impl *impl;
    struct schedule schedule;
    bool stamped; /* of a GPU: its kernel leaves stamps, see kernels/cuda/stamps.h */
};

struct impl {
    const char *name; /* unique within its target; stored by name */
    enum target_kind target;
    bool handwritten; /* for pos0 = 1; where it is applicable, no generated code is chosen */
    bool library; /* a library call, see choice_product(); its source is a comment that names it */
    /* Whether it can run the segment there, and every knob that is not at its first value makes a
     * difference.  If not, *why is the reason.  That it has the segment's functions and stores its
     * outputs is no question for it: see choice_applicable(). */
    bool (*applicable)(const struct choice *c, const struct build_target *t, const char **why);
    /* Which functions it has: functions with one of these kernels, ON_CPU | ..., and the kinds of
     * operators among them, as bits.  Which weights they can do without, as bits of enum
     * weight_role. */
    unsigned kernels, kinds, without;
    unsigned e4m3; /* GEMMs whose operands in e4m3 it can read, and write for others, as bits */
    /* Appends what the segment computes, "gemm_bias_gelu".  Segments for which it appends the same
     * share a kernel, to which the launch names their tensors and weights.  Null: every segment has
     * a kernel of its own. */
    void (*add_name)(const struct choice *c, struct buf *out);
    /* The tensors that its function writes, as a set.  Null: that of the last operator alone. */
    uint32_t (*tensors)(const struct choice *c);
    /* Appends the whole source file, byte-identical for equal input. */
    void (*emit)(const struct choice *c, const struct build_target *t, struct buf *out);
    /* Null on a CPU and for a library. */
    void (*launch)(const struct choice *c, const struct workload *w, struct cuda_launch *out);
    /* Microseconds that an applicable choice is expected to take, to compare schedules; NaN where
     * the model does not reach, or the mask is not built.  Null if nothing is known.  It reads
     * the blocks of w's own mask, no means over kinds of layers. */
    double (*expected_us)(const struct choice *c, const struct workload *w);
    int knob_count;
    struct knob knobs[KNOB_MAX];
};
extern const struct impl impls[];
extern const int impl_count; /* at most IMPLS_MAX */
enum { IMPLS_MAX = 8 };

const struct impl *impl_find(enum target_kind target, const char *name);

/* ---- schedule.c: schedules as text ----------------------------------------------------------- */

/* "tile=128x96 split=2 norm=barrier resident=1", followed by " e4m3=ffn1+ffn2" if it has a
 * precision.  The parser takes any of them in any order; a knob that is left out has its first
 * value. */
void schedule_text(const struct impl *impl, const struct schedule *s, struct buf *out);
int schedule_parse(const struct impl *impl, const char *text, struct schedule *out,
                   struct status *st);

/* ---- choice.c: what runs a segment, and a plan ----------------------------------------------- */

/* Microseconds that an applicable choice is expected to take; NaN: nothing is known. */
double choice_expected_us(const struct choice *c, const struct workload *w);

/* Microseconds: a search does not try a schedule that is expected to take longer, where another one
 * of its implementation is expected to take least_us.  check_cuda_expected holds it to times that
 * GPUs took: at 161 of 162 points the fastest schedule is tried. */
double choice_far_behind_us(double least_us);

bool choice_equal(const struct choice *a, const struct choice *b);

/* The value of a knob, by its index in the implementation's knobs or by its name.  0 if the
 * implementation has no knob of that name. */
int choice_value(const struct choice *c, int knob);
int choice_knob(const struct choice *c, const char *knob);

struct candidate {
    struct plan plan;
    bool packed;        /* with lengths: tensors of token rows have no rows of padding */
    unsigned precision; /* GEMMs whose operands are e4m3, as bits 1 << GEMM_QKV, ... */
    int count;
    struct choice choices[OP_COUNT];
};

/* Whether two candidates are one plan with the same choices, packed or not. */
bool same_choices(const struct candidate *a, const struct candidate *b);

/* The name of the function in a choice's source: "segment_08_09_out_bias_residual_layernorm1", or
 * of a kernel that several segments share "segment_gemm_bias_gelu_hopper_gemm".  Sources of a
 * target with the same name are the same. */
void choice_symbol(const struct choice *c, struct buf *out);

/* The tensors that a choice's function writes, as a set: its segment's outputs, and those through
 * which its stages pass data.  The caller provides memory for all of them. */
uint32_t choice_tensors(const struct choice *c);

/* The GEMMs that a segment touches: it computes them or what they read, of the next layer too. */
unsigned segment_gemms(const struct chain *chain, struct segment s);

/* What a choice's function has in e4m3. */
struct e4m3_use {
    int in;    /* the segment's GEMM whose operands are; -1: none */
    int out;   /* the GEMM that reads the output of the segment's last operator so; -1: none */
    bool both; /* others read that output, too: it is stored in the workload's type as well */
};

/* False if the segment would hand e4m3 to itself or have two such GEMMs. */
bool choice_e4m3(const struct choice *c, struct e4m3_use *out);

/* The least that a segment does in a precision. */
struct work {
    double flops;
    double paced_flops; /* by the rate of the workload's type: those in e4m3 are twice as fast */
    double bytes;       /* of an operand in e4m3 half as many, and both of a tensor stored twice */
};
struct work segment_work(struct segment s, const struct workload *w, unsigned precision);

/* Whether the implementation has the segment's functions and the schedule's precision, stores its
 * outputs, and is applicable for what only it knows.  If not, *why is the reason. */
bool choice_applicable(const struct choice *c, const struct build_target *t, const char **why);
void choice_emit(const struct choice *c, const struct build_target *t, struct buf *out);

/* ---- choices.c: what may run a segment ------------------------------------------------------- */

/* Every choice for a segment on a target, the default of each implementation first: the schedule
 * expected to be the fastest, or the first one that is applicable.  Implementations come in the
 * order of impls[], those first that usually win.  Writes at most max, returns how many there are.
 * handwritten: the choices of hand-written implementations if one is applicable, else of the
 * others. */
int choices_for(const struct build_target *t, struct segment s, bool handwritten, int max,
                struct choice *out);

/* A failure names the first segment that has no choice on the target, in its precision. */
int plan_check(const struct build_target *t, struct plan p, struct status *st);

/* The plan of the least sum of times that the defaults of its segments are expected to take; false
 * if no plan has such a time for all of its segments. */
bool plan_expected(const struct build_target *t, struct plan *out);

/* The choice that stored or sent names mean.  schedule: exactly as schedule_text() writes it. Fails
 * with STATUS_NOT_FOUND if the target lacks the implementation, with STATUS_USAGE for anything
 * else; out->impl is null then.  Does not check that the choice is applicable. */
int choice_parse(enum target_kind target, const struct chain *chain, struct segment s,
                 const char *impl, const char *schedule, struct choice *out, struct status *st);

/* ---- stages.c: the stages of a segment ------------------------------------------------------- */

enum stage_kind {
    STAGE_ELEMENTWISE, /* a bias, residual, GELU or permutation pass */
    STAGE_GEMM,        /* tiles of a GEMM with an epilogue */
    STAGE_ROWS,        /* blocks of token rows: layernorm and the operators around it; with rowwise
                          lowering also GEMMs one after another on the same rows */
    STAGE_ATTENTION,   /* query blocks of one head: any run of scores to context.  The loader of a
                          whole run may split the heads; the store of the context may merge them. */
};

/* The kinds of the stages in which generated code with the first values of all knobs runs a
 * segment; returns their number. */
int segment_stages(enum target_kind target, const struct chain *chain, struct segment s,
                   enum stage_kind kinds[OP_COUNT]);

#include "codegen/launch.h"

/* ---- emit_*.c and kernels: source text ----------------------------------------------------------
 *
 * An emitted CPU source is compiled with `cc CPU_FLAGS -I KERNELS -o x.so x.c CPU_LIBRARIES`.  The
 * directory KERNELS holds kernel_files().  No flag changes a result: -fno-math-errno and
 * -fno-trapping-math let the compiler vectorise square roots and selections. */

#if defined(__x86_64__)
#define CPU_ARCH_OPTION      "-march"
#define CPU_ARCH_FLAGS(arch) CPU_ARCH_OPTION "=" arch " -mprefer-vector-width=512"
#define CPU_ARCH_EXAMPLE     "x86-64-v3" /* a processor of many machines */
#else
#define CPU_ARCH_OPTION      "-mcpu"
#define CPU_ARCH_FLAGS(arch) CPU_ARCH_OPTION "=" arch
#define CPU_ARCH_EXAMPLE     "neoverse-n1"
#endif
#define CPU_CODE_FLAGS(arch)                                                                       \
    "-O3 " CPU_ARCH_FLAGS(arch) " -fno-math-errno -fno-trapping-math -fopenmp"
#define CPU_FLAGS     CPU_CODE_FLAGS("native") " -fPIC -shared"
#define CPU_LIBRARIES "-lopenblas -lm"

/* An emitted CUDA source is compiled with `nvcc -cubin CUDA_FLAGS <build_options()> -I KERNELS`, or
 * by NVRTC with the same options.  Host code in C includes kernels/cuda/abi.h too. */
#define CUDA_FLAGS "-std=c++17"

/* Headers that emitted sources include, embedded into the program at build time. */
struct kernel_file {
    const char *name; /* "attention.h" */
    const char *text;
    size_t len;
};
int kernel_files(enum target_kind target, const struct kernel_file **out);

/* ---- standalone*.c, emit_*_standalone.c: plans as a library ------------------------------------
 *
 * The files of a directory that needs no fuseplan: plans as a C library, with an example; or the
 * same library with a program that runs and times its only plan on drawn inputs. */

#define STANDALONE_NAME "encoder" /* of a library, unless it is given another */

struct standalone_plan {
    const struct workload *workload; /* as tuned */
    const struct workload *full;     /* the same without lengths, which a call gives; mask built */
    const struct candidate *candidate;
    const char *measured_on; /* the device that chose the schedules; null: default schedules */
};

/* The scales of a model's inputs of GEMMs, in e4m3. */
struct standalone_scales {
    int layers;
    uint64_t model; /* the fingerprint of its weights, see layer/e4m3.h */
    float (*in)[GEMM_COUNT];
};

/* All plans differ in batch and seq_len alone. */
struct standalone_spec {
    struct build_target target;
    struct arch_list archs; /* of a GPU: the library runs on all; target.arch is one of them */
    const char *processors; /* of a CPU: those that it runs on, as for cpu_check_processors() */
    const char *name;       /* of the library and of its functions */
    const struct standalone_plan *plans; /* plans of fewest tokens first */
    int count;
    const struct standalone_scales *scales; /* null: no plan has GEMMs in e4m3 */
    const struct drawing *inputs;           /* of the program; null: a library with an example */
};

struct standalone_file {
    char *name;
    struct buf text;
};

struct standalone {
    struct standalone_file *files; /* owned */
    int count;
};

void standalone_emit(const struct standalone_spec *spec, struct standalone *out);
void standalone_release(struct standalone *p);
