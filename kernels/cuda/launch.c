/* What of a run depends on its target: GPUs, by CUDA's runtime. */
#include "launch.h"

int encoder_begin(struct run *r)
{
    const struct device_mask *masks = r->e->device->plans[r->index].masks;
    r->args.tokens = r->plan->about.batch * r->plan->about.seq_len;
    for (int kind = 0; kind < encoder_kinds(); kind++) {
        r->masks[kind].lists = masks[kind].lists;
        r->masks[kind].tiles = masks[kind].tiles;
    }
    if (r->padded)
        return encoder_lengths_begin(r);
    int status = encoder_clear(r);
    return status == ENCODER_OK ? encoder_joined_begin(r) : status;
}

static struct fp_gemm gemm_of(const struct plan_gemm *g, const struct fp_args *a)
{
    return (struct fp_gemm){.columns = g->columns,
                            .inner = g->inner,
                            .in = a->tensor[g->in],
                            .out = a->tensor[g->out],
                            .residual = g->residual >= 0 ? a->tensor[g->residual] : NULL,
                            .bias = g->bias >= 0 ? a->weight[g->bias] : NULL,
                            .gamma = g->gamma >= 0 ? a->weight[g->gamma] : NULL,
                            .beta = g->beta >= 0 ? a->weight[g->beta] : NULL};
}

/* A kernel may begin before the one in front of it has ended, from compute capability 9.0 on, and
 * waits by itself.  The first one does not: the lists of a call's lengths are still being made. */
static int launch_kernel(struct run *r, const struct plan_segment *s, const struct fitted *how)
{
    struct fp_args args = r->args;
    _Alignas(128) struct fp_maps maps; /* the driver requires it */
    void *parameters[] = {&args, &maps};
    struct cudaLaunchAttribute_st attributes[2] = {{.id = cudaLaunchAttributeIgnore}};
    struct cudaLaunchConfig_st config = {.gridDim = {(unsigned)how->grid, 1, 1},
                                         .blockDim = {(unsigned)s->threads, 1, 1},
                                         .dynamicSmemBytes = (size_t)how->shared_bytes,
                                         .stream = (cudaStream_t)r->stream,
                                         .attrs = attributes,
                                         .numAttrs = s->cluster > 0 ? 2 : 1};
    if (s->maps != NULL) {
        if (s->gemm.columns > 0)
            args.gemm = gemm_of(&s->gemm, &args);
        int status = encoder_maps_encode(r->e->device->encode, s->maps, &args, &maps);
        if (status != ENCODER_OK)
            return status;
    }
    if (s->cooperative) {
        attributes[0].id = cudaLaunchAttributeCooperative;
        attributes[0].val.cooperative = 1;
    } else if (r->e->device->dependent && r->began) {
        attributes[0].id = cudaLaunchAttributeProgrammaticStreamSerialization;
        attributes[0].val.programmaticStreamSerializationAllowed = 1;
    }
    attributes[1] = encoder_cluster_of(s->cluster);
    r->began = true;
    return encoder_check(cudaLaunchKernelExC(&config, s->kernel, parameters),
                         "cannot launch a kernel");
}

/* A kernel may begin beside the one in front of it where its thread blocks cannot gather on few
 * multiprocessors; see common.cuh. */
static bool next_begins_early(const struct run *r, int segment)
{
    int next = (segment + 1) % r->plan->about.kernels;
    return r->e->device->plans[r->index].fitted[next].alone && !r->plan->segments[next].cooperative;
}

int encoder_launch(struct run *r, int layer, int segment)
{
    const struct plan_segment *s = &r->plan->segments[segment];
    const struct plan_state *state = &r->e->device->plans[r->index];
    r->args.mask = r->masks[encoder_kind(layer)].lists;
    r->args.tiles = r->masks[encoder_kind(layer)].tiles;
    r->args.early = next_begins_early(r, segment);
    r->args.backwards = fp_goes_backwards(&r->args, layer * r->plan->about.kernels + segment,
                                          encoder_library.element_bytes, r->e->device->cache_bytes);
    r->args.e4m3 = encoder_e4m3_of(r, layer, &s->e4m3);
    int status = layer == 0 && s->e4m3.in == 0 ? encoder_quantise(r, &s->e4m3) : ENCODER_OK;
    if (status != ENCODER_OK)
        return status;
    if (s->kernel != NULL)
        return launch_kernel(r, s, &state->fitted[segment]);
    r->began = true;
    return s->product->by->run(state->products[layer * r->plan->about.kernels + segment], r,
                               s->product);
}
