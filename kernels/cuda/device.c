/* What the library keeps on a GPU beside the weights. */
#include "launch.h"

#include <stdlib.h>

/* The library's code must have a kernel for the device. */
static int check_kernel(const void *kernel, int device)
{
    struct cudaFuncAttributes attributes;
    int major = 0, minor = 0;
    cudaError_t error = cudaFuncGetAttributes(&attributes, kernel);
    if (error != cudaErrorNoKernelImageForDevice && error != cudaErrorInvalidDeviceFunction)
        return encoder_check(error, "cannot load a kernel");
    cudaGetLastError();
    cudaDeviceGetAttribute(&major, cudaDevAttrComputeCapabilityMajor, device);
    cudaDeviceGetAttribute(&minor, cudaDevAttrComputeCapabilityMinor, device);
    return encoder_fail(ENCODER_WRONG_DEVICE,
                        "GPU %d has compute capability %d.%d; the library has code for %s", device,
                        major, minor, encoder_library.archs);
}

int encoder_device_check(void)
{
    int device = 0, status = encoder_start();
    if (status == ENCODER_OK)
        status = encoder_check(cudaGetDevice(&device), "cannot use a GPU");
    for (int i = 0; i < encoder_library.plans && status == ENCODER_OK; i++)
        for (int s = 0; s < encoder_plans[i]->about.kernels && status == ENCODER_OK; s++)
            if (encoder_plans[i]->segments[s].kernel != NULL)
                status = check_kernel(encoder_plans[i]->segments[s].kernel, device);
    return status;
}

/* What a kernel's launch depends on. */
struct room {
    int multiprocessors;
    int shared_bytes; /* the most that a thread block may have */
    bool dependent;   /* a kernel may begin before the one in front of it has ended */
};

/* Dynamic shared memory of a thread block.  Where each has a multiprocessor to itself, it takes
 * more than half of the shared memory there, so that the launch may begin early: see common.cuh. */
static int shared_bytes_of(const struct plan_segment *s, const struct room *room)
{
    int half = room->shared_bytes / 2 + 1;
    bool spread = room->dependent && !s->cooperative && s->tiles <= room->multiprocessors;
    return spread && s->shared_bytes < half ? half : s->shared_bytes;
}

/* The most that a launch of a kernel takes.  Plans of several sizes share kernels, and a kernel is
 * given shared memory for all of its launches. */
static int most_shared_bytes(const void *kernel, const struct room *room)
{
    int most = 0;
    for (int i = 0; i < encoder_library.plans; i++)
        for (int k = 0; k < encoder_plans[i]->about.kernels; k++) {
            const struct plan_segment *s = &encoder_plans[i]->segments[k];
            int bytes = s->kernel == kernel ? shared_bytes_of(s, room) : 0;
            most = bytes > most ? bytes : most;
        }
    return most;
}

/* Thread blocks of a cluster: the launch gives it, or the kernel's code; 0 if neither does. */
static int cluster_blocks(const struct plan_segment *s)
{
    struct cudaFuncAttributes attributes = {.requiredClusterWidth = 0};
    if (s->cluster == 0 && cudaFuncGetAttributes(&attributes, s->kernel) != cudaSuccess)
        cudaGetLastError();
    return s->cluster > 0 ? s->cluster : attributes.requiredClusterWidth;
}

/* How many thread blocks are resident at once, in clusters if the segment has these. */
static int find_resident(const struct plan_segment *s, int shared_bytes, int multiprocessors,
                         long *out)
{
    int count = 0, of = cluster_blocks(s);
    struct cudaLaunchAttribute_st cluster = encoder_cluster_of(of);
    const struct cudaLaunchConfig_st config = {.gridDim = {(unsigned)of, 1, 1},
                                               .blockDim = {(unsigned)s->threads, 1, 1},
                                               .dynamicSmemBytes = (size_t)shared_bytes,
                                               .attrs = &cluster,
                                               .numAttrs = 1};
    cudaError_t error = of > 0 ? cudaOccupancyMaxActiveClusters(&count, s->kernel, &config)
                               : cudaOccupancyMaxActiveBlocksPerMultiprocessor(
                                     &count, s->kernel, s->threads, (size_t)shared_bytes);
    *out = (long)count * (of > 0 ? of : multiprocessors);
    return encoder_check(error, "cannot ask for a kernel's occupancy");
}

/* A cooperative or persistent launch takes no more thread blocks than are resident at once. */
static int fit(const struct plan_segment *s, const struct room *room, struct fitted *out)
{
    long resident = 0;
    out->shared_bytes = shared_bytes_of(s, room);
    int status =
        encoder_check(cudaFuncSetAttribute(s->kernel, cudaFuncAttributeMaxDynamicSharedMemorySize,
                                           most_shared_bytes(s->kernel, room)),
                      "cannot give a kernel its shared memory");
    if (status == ENCODER_OK)
        status = find_resident(s, out->shared_bytes, room->multiprocessors, &resident);
    if (status == ENCODER_OK && s->at_once && s->tiles > resident)
        status =
            encoder_fail(ENCODER_WRONG_DEVICE,
                         "%ld thread blocks of a kernel wait for each other, and the GPU holds "
                         "%ld at once",
                         s->tiles, resident);
    bool bounded = s->cooperative || s->persistent;
    out->grid = (int)(bounded && s->tiles > resident ? resident : s->tiles);
    out->alone = resident <= room->multiprocessors;
    return status;
}

static int open_plan(struct encoder *e, int index, const struct room *room)
{
    const struct plan *p = encoder_plans[index];
    struct plan_state *state = &e->device->plans[index];
    size_t segments = (size_t)p->about.kernels;
    state->fitted = calloc(segments, sizeof(*state->fitted));
    state->products = calloc((size_t)e->layers * segments, sizeof(*state->products));
    int status = ENCODER_OK;
    if (state->fitted == NULL || state->products == NULL)
        status = encoder_fail(ENCODER_NO_MEMORY, "out of memory");
    for (int s = 0; s < p->about.kernels && status == ENCODER_OK; s++)
        if (p->segments[s].kernel != NULL)
            status = fit(&p->segments[s], room, &state->fitted[s]);
        else
            status = p->segments[s].product->by->open(e, index, s);
    for (int kind = 0; kind < encoder_kinds() && status == ENCODER_OK; kind++)
        status = encoder_mask_open(&p->masks[kind], &state->masks[kind]);
    return status;
}

static int find_attribute(enum cudaDeviceAttr attribute, int device, int *out)
{
    return encoder_check(cudaDeviceGetAttribute(out, attribute, device), "cannot ask the GPU");
}

int encoder_device_open(const struct encoder_model *m, struct encoder *e)
{
    int major = 0, status;
    struct room room = {0};
    e->device = calloc(1, sizeof(*e->device));
    if (e->device != NULL)
        e->device->plans = calloc((size_t)encoder_library.plans, sizeof(*e->device->plans));
    if (e->device == NULL || e->device->plans == NULL)
        return encoder_fail(ENCODER_NO_MEMORY, "out of memory");
    status = encoder_check(cudaGetDevice(&e->device->number), "cannot use a GPU");
    if (status == ENCODER_OK)
        status = find_attribute(cudaDevAttrComputeCapabilityMajor, e->device->number, &major);
    if (status == ENCODER_OK)
        status = find_attribute(cudaDevAttrMultiProcessorCount, e->device->number,
                                &room.multiprocessors);
    if (status == ENCODER_OK)
        status = find_attribute(cudaDevAttrMaxSharedMemoryPerBlockOptin, e->device->number,
                                &room.shared_bytes);
    if (status == ENCODER_OK)
        status = find_attribute(cudaDevAttrL2CacheSize, e->device->number, &e->device->cache_bytes);
    e->device->dependent = room.dependent = major >= 9;
    if (status == ENCODER_OK)
        status = encoder_e4m3_open(m, e);
    for (int i = 0; i < encoder_library.plans && status == ENCODER_OK; i++)
        status = open_plan(e, i, &room);
    if (status == ENCODER_OK)
        status = encoder_maps_find(&e->device->encode);
    if (status == ENCODER_OK)
        status = encoder_graphs_open(&e->device->graphs);
    if (status == ENCODER_OK)
        status = encoder_check(cudaDeviceSynchronize(), "cannot copy to the GPU");
    return status;
}

static void products_close(const struct encoder *e, int index)
{
    const struct plan *p = encoder_plans[index];
    struct product **products = e->device->plans[index].products;
    for (int i = 0; products != NULL && i < e->layers * p->about.kernels; i++)
        if (products[i] != NULL)
            p->segments[i % p->about.kernels].product->by->close(products[i]);
}

void encoder_device_close(struct encoder *e)
{
    if (e->device == NULL || encoder_is_forked()) /* CUDA refuses to free what the parent made */
        return;
    encoder_graphs_close(e->device->graphs);
    for (int i = 0; i < encoder_library.plans && e->device->plans != NULL; i++) {
        struct plan_state *state = &e->device->plans[i];
        products_close(e, i);
        for (int kind = 0; kind < KINDS; kind++)
            encoder_device_free(state->masks[kind].memory);
        free(state->products);
        free(state->fitted);
    }
    encoder_device_free(e->device->codes_memory);
    free(e->device->codes);
    free(e->device->plans);
    free(e->device);
}
