/* What the files that launch kernels share. */
#ifndef LAUNCH_H
#define LAUNCH_H

#include "plan.h"

#include <cuda_runtime_api.h>

/* The driver's cuTensorMapEncodeTiled(). */
typedef int encoder_encode(void *out, int type, unsigned rank, void *at, const uint64_t *size,
                           const uint64_t *pitch, const unsigned *box, const unsigned *step,
                           int interleave, int swizzle, int promotion, int fill);

/* How a segment's kernel is launched on this device. */
struct fitted {
    int grid, shared_bytes;
    bool alone; /* a multiprocessor holds one of its thread blocks */
};

/* A struct plan_mask on the device. */
struct device_mask {
    void *memory; /* in one block */
    struct fp_blocks lists;
    struct fp_tiles tiles; /* count is 0 where no kernel reads tiles */
};

/* What a handle keeps for a plan. */
struct plan_state {
    struct device_mask masks[KINDS];
    struct fitted *fitted;     /* (kernels) */
    struct product **products; /* (layers, kernels), null where a kernel runs */
};

/* A GEMM's weight of a layer in e4m3. */
struct codes {
    void *at;
    float scale;
};

struct device {
    int number;
    int cache_bytes; /* of the second level */
    bool dependent;  /* a kernel may begin before the one in front of it has ended */
    encoder_encode *encode;
    struct plan_state *plans; /* (plans) */
    struct codes *codes;      /* (layers, PLAN_GEMMS), at null where a GEMM has none */
    void *codes_memory;       /* of all of them */
    struct graphs *graphs;
};

static inline struct cudaLaunchAttribute_st encoder_cluster_of(int thread_blocks)
{
    struct cudaLaunchAttribute_st attribute = {.id = cudaLaunchAttributeClusterDimension};
    attribute.val.clusterDim.x = (unsigned)thread_blocks;
    attribute.val.clusterDim.y = attribute.val.clusterDim.z = 1;
    return attribute;
}

/* ---- memory.c -------------------------------------------------------------------------------- */

/* The status of a call of the runtime; keeps a message that begins with `what`. */
int encoder_check(cudaError_t error, const char *what);

/* ---- mask.c: the mask on the device, and lists for lengths ----------------------------------- */

int encoder_mask_open(const struct plan_mask *m, struct device_mask *out);

/* Launches a kernel that is no segment's.  Behind the segments it may begin before the last one has
 * ended, and waits by itself. */
int encoder_launch_outside(const struct run *r, const void *kernel, void *argument, int blocks,
                           int threads);

/* Clears the counters of a call that is not padded. */
int encoder_clear(const struct run *r);

/* Makes the tiles of joined rows, where a plan has any. */
int encoder_joined_begin(struct run *r);

/* Hands lengths in host memory over to the device, where encoder_lengths_begin() finds them. */
int encoder_lengths_take(const struct run *r);

/* Starts the kernels that clear the counters and make the lists; r->args names these. */
int encoder_lengths_begin(struct run *r);

/* Whether launches depend on the lengths: cuBLASLt must be told how many packed rows there are. */
bool encoder_rows_given(const struct run *r);

/* ---- e4m3.c: GEMMs whose operands are e4m3 --------------------------------------------------- */

/* Rounds the weights of these GEMMs, once it has checked that the scales are theirs. */
int encoder_e4m3_open(const struct encoder_model *m, struct encoder *e);

/* The weight of one, and the scale of the input that a layer stores for one. */
const struct codes *encoder_codes(const struct encoder *e, int layer, int gemm);
float encoder_scale_of_output(const struct encoder *e, int layer, int gemm);

/* What a segment of a layer is told of them. */
struct fp_e4m3 encoder_e4m3_of(const struct run *r, int layer, const struct plan_e4m3 *of);

/* Rounds what the first layer's first GEMM reads; rows.c. */
int encoder_quantise(const struct run *r, const struct plan_e4m3 *of);

/* ---- graphs.c: the launches of a call as one ------------------------------------------------- */

struct graphs;
int encoder_graphs_open(struct graphs **out);
void encoder_graphs_close(struct graphs *g); /* takes null */

/* ---- maps.c: tensor maps --------------------------------------------------------------------- */

/* *out is null if no segment needs one. */
int encoder_maps_find(encoder_encode **out);
int encoder_maps_encode(encoder_encode *encode, const struct plan_map *map, const struct fp_args *a,
                        struct fp_maps *out);

/* ---- products.c: segments that cuBLASLt runs ------------------------------------------------- */

struct product_calls {
    /* Prepares a segment for each layer, and runs it once: cuBLASLt loads kernels in its first
     * call, which cannot be captured. */
    int (*open)(struct encoder *e, int plan, int segment);
    void (*close)(struct product *p);
    int (*run)(const struct product *p, const struct run *r, const struct plan_product *of);
};
extern const struct product_calls encoder_products;

#endif
