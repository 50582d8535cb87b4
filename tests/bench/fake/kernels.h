/* The kernels of the made-up GPU: the oracle's operators on tensors of fp32, or of the type that
 * FAKE_DTYPE names, and of e4m3, with faults. */
#ifndef FUSEPLAN_TESTS_BENCH_FAKE_KERNELS_H
#define FUSEPLAN_TESTS_BENCH_FAKE_KERNELS_H

#include "kernels/cuda/abi.h"
#include "kernels/cuda/stamps.h"

#include <stdbool.h>

enum { ILLEGAL_ADDRESS = 700 };

/* A segment's kernel, of BERT's chain or the one that FAKE_CHAIN names.  The text of its "cubin" is
 * "fake", the kind and a number of runs; "stamped" follows if it leaves stamps.  Kinds:
 *   right
 *   wrong    adds 1 to the first element of its output
 *   nothing  writes nothing
 *   waking   takes 2 ms up to the given run
 *   fault    faults
 *   hang     never ends
 *   fickle   is right the first time only
 *   stale    adds what lay in its output
 *   tired    is wrong after the given run
 *   lazy     writes nothing after the given run
 *   half     writes the output of its last operator alone after the given run
 *   vandal   is wrong, and writes over its weights
 *   messy    is wrong, and leaves an arrival counter behind, which makes the next kernel wrong
 *   leaky    is a little wrong where a number lies behind packed tokens
 *   vast     finds no memory when it is loaded
 * and with e4m3:
 *   unordered  takes a weight's columns in order
 *   scaled     stores by half of the scale
 *   wraps      stores NaN for what is beyond 448
 *   uncopied   stores no e4m3 */
struct fake_code {
    char kind[16];
    int first, last; /* operators */
    int runs, rested_runs;
    bool hashes;           /* it is no segment's */
    bool stamped, stepped; /* stepped: its stamps tell products apart */
};

/* 0 or ILLEGAL_ADDRESS.  A fault adds a byte to the file that FAKE_GPU_FAULTS names. */
int fake_code_run(struct fake_code *c, const struct fp_args *a);

#endif
