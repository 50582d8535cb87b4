/* What the programs of this folder are asked for, and which choices they run.
 *
 * Options, then DTYPE BATCH SEQ_LEN MASK; a MASK of "random" is a drawn NumPy file. */
#ifndef FUSEPLAN_TESTS_CUDA_REQUEST_H
#define FUSEPLAN_TESTS_CUDA_REQUEST_H

#include "bench/bench.h"

#define REQUEST_USAGE                                                                              \
    "[OPTION...] DTYPE BATCH SEQ_LEN MASK\n"                                                       \
    "  -a N     draw lengths with this average\n"                                                  \
    "  -c NAME  a chain other than BERT's: pre+rms+silu+gate+rope+bias\n"                          \
    "  -l MASK  layers 1, 3, ... are local, with this mask and another base of rotations\n"        \
    "  -H N     attention heads (12)\n"                                                            \
    "  -W N     head size (64)\n"                                                                  \
    "  -D N     hidden size (heads * head size)\n"                                                 \
    "  -F N     feed-forward size (4 * hidden size)\n"                                             \
    "  -L N     layers (1)\n"                                                                      \
    "  -w FILE  weights of a HuggingFace BERT, not drawn ones\n"                                   \
    "  -e LIST  GEMMs in e4m3: fp8 for all, or qkv,out,ffn1,ffn2\n"                                \
    "  -t NAME  target (cuda)\n"                                                                   \
    "  -C NAME  compiler\n"                                                                        \
    "  -d N     seconds that a kernel may take\n"

struct request {
    struct bench_options options;
    struct workload workload; /* its mask is built */
    unsigned precision;       /* GEMMs in e4m3, as bits */
    char name[256];           /* "fp16 (2,100) strided W=32 with lengths pre+rope" */
};

/* `more` are further options of the program, as for getopt(); it is called with each that is
 * there.  Ends the program where the command line is wrong. */
void request_read(struct request *r, int argc, char **argv, const char *usage, const char *more,
                  void (*option)(int letter, const char *value));
void request_release(struct request *r);

/* Prints what failed and ends the program. */
_Noreturn void give_up(const struct status *st);

/* A number from 0 on, or the end of the program. */
int read_number(const char *what, const char *text);

enum { CHOICES_MAX = 4096 };

/* Sets of choices: "all" segments; "stages", of `generated` the segments of one stage and the whole
 * layer, and what others serve; "I-J,I-J,...".  Of each implementation that serves a segment the
 * schedules that differ in at most `turned` knobs from its plainest one.  Writes at most
 * CHOICES_MAX; returns how many, 0 for an unknown name. */
int list_choices(const struct build_target *t, const char *set, int turned, struct choice *out);

/* The plainest schedules for one segment; `handwritten` as in a plan.  At most `max`. */
int list_segment(const struct build_target *t, struct segment s, bool handwritten, int max,
                 struct choice *out);

double seconds_since(double start);

/* The target of a bench with the request's precision. */
struct build_target request_target(const struct request *r, const struct bench *b);

#endif
