/* Workloads that are ready to run. */
#ifndef FUSEPLAN_TESTS_WORKLOAD_H
#define FUSEPLAN_TESTS_WORKLOAD_H

#include "layer/layer.h"
#include "tests/suite.h"

/* Checks a workload whose sizes are set and builds its mask.  lengths and npy may be null. */
static inline void workload_ready(struct workload *w, const char *mask, const char *lengths,
                                  const struct buf *npy)
{
    OK(mask_parse(mask, &w->mask_spec, &st));
    OK(lengths != NULL ? workload_parse_lengths(w, lengths, &st) : 0);
    OK(workload_check(w, &st));
    OK(workload_build_mask(w, npy, &st));
}

/* Of the usual layers. */
static inline struct workload workload_sized(int batch, int seq_len)
{
    struct workload w;
    workload_init(&w);
    w.batch = batch;
    w.seq_len = seq_len;
    return w;
}

/* 195 tokens; D = 128, F = 136. */
static inline struct workload workload_of_195(enum dtype dtype)
{
    struct workload w = workload_sized(3, 65);
    w.heads = 2;
    w.ffn = 136;
    w.dtype = dtype;
    return w;
}

/* Real tokens of a batch row. */
static inline int length_of(const struct workload *w, int b)
{
    return w->lengths != NULL ? w->lengths[b] : w->seq_len;
}

#endif
