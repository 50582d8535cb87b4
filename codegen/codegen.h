/* codegen: segments -> stages -> source text.
 *
 * Pure: no file, no clock, no device.
 *
 * Words beside layer.h's: a *stage* is a piece of a segment that runs without waiting for other
 * threads; an *implementation* is one way to run a segment, a *schedule* the values of its knobs, a
 * *choice* a segment with both, a *candidate* a plan with its choices.
 *
 * Sections stand in this order: what runs a segment, from architectures to choices; source text.
 *
 * To add an implementation: a file and a row in impls[].  CONTRIBUTING.md has the exact steps. */
#ifndef FUSEPLAN_CODEGEN_H
#define FUSEPLAN_CODEGEN_H

#include "layer/layer.h"

/* ---- arch.c: GPU architectures ------------------------------------------------------------------
 *
 * By number: 80 is sm_80, 90 is sm_90a. */

enum { CUDA_ARCH_MIN = 80, CUDA_ARCH_HOPPER = 90, ARCH_LIST_MAX = 16 };

struct arch_list {
    int count;
    int arch[ARCH_LIST_MAX]; /* ascending */
};

/* "sm_80,sm_90a" in any order. */
int arch_parse_list(const char *text, struct arch_list *out, struct status *st);

void arch_name(int arch, struct buf *out);               /* appends "sm_90a" */
void arch_words(const char *separator, struct buf *out); /* appends all that are known */

/* Whether code for one runs on a device of another. */
bool arch_runs(int arch, int device);

/* The first release of CUDA that compiles for it, 12080 for 12.8; 0 where that is not known. */
int arch_toolkit(int arch);

/* The most shared memory that a thread block of it can have; of an unknown one that of sm_90a. */
int arch_shared_bytes(int arch);

/* Appends nvcc's options for a program that runs on all of a list.  Not -arch: for sm_90a that also
 * compiles for compute_90, which lacks what sm_90a has. */
void arch_options(const struct arch_list *list, struct buf *out);

/* ---- target.c: what code is compiled for ----------------------------------------------------- */

enum target_kind { TARGET_CPU, TARGET_CUDA, TARGET_COUNT };
extern const char *const target_names[TARGET_COUNT];

struct build_target {
    enum target_kind kind;
    enum dtype dtype;
    int head_size;
    int arch; /* of a GPU: 90 for sm_90; 0 where there is none to ask: nothing is refused for it */
    bool library; /* of a GPU: cuBLASLt is there, or nobody was asked */
};

/* capability: the device's as its fingerprint has it, "sm_90".  library: as the field. */
struct build_target build_target_of(enum target_kind kind, const char *capability, bool library,
                                    const struct workload *w);

/* Whether there is code for the workload's sizes: every segment has a choice then. */
int build_check(const struct build_target *t, const struct workload *w, struct status *st);

/* Appends the compiler's options for one binary beside its flags, "-arch=sm_90a"; none on a CPU. */
void build_options(const struct build_target *t, struct buf *out);

/* ---- impl.c: implementations ----------------------------------------------------------------- */

enum { KNOB_MAX = 6, KNOB_VALUES_MAX = 8 };

struct knob {
    const char *name;
    bool compile_time; /* part of the source; else a run-time argument of the same binary */
    int count;
    int values[KNOB_VALUES_MAX];         /* the first is the default */
    const char *labels[KNOB_VALUES_MAX]; /* in place of numbers, or null */
};

struct schedule {
    int8_t pick[KNOB_MAX]; /* index into each knob's values */
};

struct impl;
struct cuda_launch;

struct choice {
    struct segment segment;
    const struct impl *impl;
    struct schedule schedule;
};

struct impl {
    const char *name; /* unique within its target; stored by name */
    enum target_kind target;
    bool handwritten; /* serves pos0 = 1: where it is applicable no other implementation is */
    bool library;     /* choice_product() says what a library runs: its text is not compiled to be
                         measured, only by who builds a program of its own */
    const char *summary;
    /* Whether it can run the choice's segment there, and whether every knob that is not at its
     * default makes a difference.  On a refusal *why says why not. */
    bool (*applicable)(const struct choice *c, const struct build_target *t, const char **why);
    /* The tensors that its function writes, as bits. */
    uint16_t (*tensors)(const struct choice *c);
    /* Appends the whole source file.  Byte-identical for equal input. */
    void (*emit)(const struct choice *c, const struct build_target *t, struct buf *out);
    /* Null where the target's functions are called, not launched, and where a library launches. */
    void (*launch)(const struct choice *c, const struct workload *w, struct cuda_launch *out);
    int knob_count;
    struct knob knobs[KNOB_MAX];
};
extern const struct impl impls[];
extern const int impl_count;

const struct impl *impl_find(enum target_kind target, const char *name);

/* ---- schedule.c: schedules as text ----------------------------------------------------------- */

void schedule_text(const struct impl *impl, const struct schedule *s, struct buf *out);
int schedule_parse(const struct impl *impl, const char *text, struct schedule *out,
                   struct status *st);

/* ---- choice.c: what runs a segment, and a plan ----------------------------------------------- */

/* Every choice for a segment on a target, the default of each implementation first; writes at most
 * max, returns how many there are. `handwritten` selects the implementations of pos0 = 1. */
int choices_for(const struct build_target *t, struct segment s, bool handwritten, int max,
                struct choice *out);

bool choice_equal(const struct choice *a, const struct choice *b);

/* A choice from what names it where it is stored or sent.  schedule is as schedule_text() writes
 * it, every knob in order.  Fails with STATUS_NOT_FOUND where the target lacks the implementation,
 * STATUS_USAGE for anything else; out->impl is null then.  Whether the choice is applicable is
 * another question. */
int choice_parse(enum target_kind target, struct segment s, const char *impl, const char *schedule,
                 struct choice *out, struct status *st);

int choice_knob(const struct choice *c, const char *knob); /* its value */

struct candidate {
    struct plan plan;
    int count;
    struct choice choices[OP_COUNT];
};

/* The plan with the default choice of each segment. */
void candidate_default(const struct build_target *t, struct plan p, struct candidate *out);

/* The name of the function in a choice's source, unique among all sources of a target:
 * "segment_08_09_out_bias_residual_layernorm1". */
void choice_symbol(const struct choice *c, struct buf *out);

/* The tensors that a choice's function writes, as bits: its segment's outputs, and those between
 * its stages.  Its caller provides all of them. */
uint16_t choice_tensors(const struct choice *c);

bool choice_applicable(const struct choice *c, const struct build_target *t, const char **why);
void choice_emit(const struct choice *c, const struct build_target *t, struct buf *out);

/* ---- choice.c, cuda_library.c: how a choice of the CUDA target runs -----------------------------
 *
 * One of a library is a call, any other the launch of a kernel. */

/* A kernel's launch, but for what the device decides.  More thread blocks than tiles would idle; a
 * cooperative launch takes at most as many as are resident at once, and any number is right. */
struct cuda_launch {
    int threads;             /* of a thread block */
    int shared_bytes;        /* dynamic */
    bool cooperative;        /* stages meet at grid barriers */
    int64_t tiles;           /* of the stage that has most */
    int64_t sync_words;      /* of fp_args.sync */
    int64_t workspace_bytes; /* of fp_args.workspace */
};

/* Of a choice that is no library's. */
void choice_launch(const struct choice *c, const struct workload *w, struct cuda_launch *out);

/* Memory that a library's algorithm may work in: NVIDIA's advice for sm_90, where it is most. */
enum { CUDA_LIBRARY_WORKSPACE_BYTES = 32 << 20 };

/* A segment as one product of token rows: out = in @ weight (+ bias) (+ residual), or its GELU. */
struct cuda_product {
    int in, out, residual; /* tensors; residual -1: none */
    int weight, bias;      /* enum weight_id; bias -1: none */
    bool gelu;
};

/* Of a library's choice. */
void choice_product(const struct choice *c, struct cuda_product *out);

/* ---- emit_*.c and kernels: source text ----------------------------------------------------------
 *
 * An emitted CPU source is compiled with `cc CPU_FLAGS -I KERNELS -o x.so x.c CPU_LIBRARIES`,
 * KERNELS being a directory that holds kernel_files().  No flag changes a result: they let the
 * compiler vectorise selections and square roots, which could otherwise trap or set errno. */

#if defined(__x86_64__)
#define CPU_ARCH_FLAGS "-march=native -mprefer-vector-width=512"
#else
#define CPU_ARCH_FLAGS "-mcpu=native"
#endif
#define CPU_CODE_FLAGS "-O3 " CPU_ARCH_FLAGS " -fno-math-errno -fno-trapping-math -fopenmp"
#define CPU_FLAGS      CPU_CODE_FLAGS " -fPIC -shared"
#define CPU_LIBRARIES  "-lopenblas -lm"

/* An emitted CUDA source is compiled with `nvcc -cubin CUDA_FLAGS <build_options()> -I KERNELS`, or
 * by NVRTC with the same options.  kernels/cuda/abi.h is C as well: what a launch passes. */
#define CUDA_FLAGS "-std=c++17"

/* Headers that emitted sources include, embedded into the program at build time. */
struct kernel_file {
    const char *name; /* "attention.h" */
    const char *text;
    size_t len;
};
int kernel_files(enum target_kind target, const struct kernel_file **out);

/* ---- standalone*.c, emit_*_standalone.c: a plan as a program of its own -------------------------
 *
 * All files of a directory in which `make` builds a program that runs and times a plan, without
 * fuseplan: segments, kernels, plan.h, plan.c, the program and a Makefile. */

struct standalone_spec {
    struct build_target target;
    const struct workload *workload; /* its mask is built */
    const struct candidate *candidate;
    struct arch_list archs; /* that a GPU's program is built for; target.arch is one of them */
    struct inputs inputs;
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

#endif
