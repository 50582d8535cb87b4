/* The tensor maps of a launch: what the tensor memory accelerator (TMA) must know of matrices.
 *
 * The driver's function is asked for by name, so that the library needs no -lcuda; numbers are
 * those of cuda.h. */
#include "launch.h"

static bool any_maps(void)
{
    for (int i = 0; i < encoder_library.plans; i++)
        for (int s = 0; s < encoder_plans[i]->about.kernels; s++)
            if (encoder_plans[i]->segments[s].maps != NULL)
                return true;
    return false;
}

int encoder_maps_find(encoder_encode **out)
{
    static const char name[] = "cuTensorMapEncodeTiled";
    void *found = NULL;
    enum cudaDriverEntryPointQueryResult result = cudaDriverEntryPointSuccess;
    *out = NULL;
    if (!any_maps())
        return ENCODER_OK;
#if CUDART_VERSION >= 12050
    cudaError_t error =
        cudaGetDriverEntryPointByVersion(name, &found, 12000, cudaEnableDefault, &result);
#else
    cudaError_t error = cudaGetDriverEntryPoint(name, &found, cudaEnableDefault, &result);
#endif
    int status = encoder_check(error, "cannot ask the driver for tensor maps");
    if (status == ENCODER_OK && result != cudaDriverEntryPointSuccess)
        status = encoder_fail(ENCODER_OLD_DRIVER,
                              "the driver has no tensor maps: install one for CUDA 12 or later");
    *out = (encoder_encode *)found;
    return status;
}

static void *matrix(const struct plan_map *m, int number, const struct fp_args *a)
{
    if (m->e4m3 && number == PLAN_MAP_E4M3)
        return a->e4m3.out;
    if (m->e4m3)
        return (void *)(m->weight ? a->e4m3.weight : a->e4m3.in);
    return m->weight ? (void *)a->weight[m->index] : a->tensor[m->index];
}

int encoder_maps_encode(encoder_encode *encode, const struct plan_map *map, const struct fp_args *a,
                        struct fp_maps *out)
{
    enum { UINT8, UINT16, RANK = 2, DEALT_RANK = 4, SWIZZLE_32 = 1, PROMOTE_256 = 3 };
    static const unsigned step[DEALT_RANK] = {1, 1, 1, 1};
    struct fp_map *maps = &out->in;
    out->sum_rows = a->tensor[map[PLAN_MAP_SUM].index];
    for (int i = 0; i < PLAN_MAPS; i++) {
        const struct plan_map *m = &map[i];
        if (m->size[0] == 0)
            continue;
        const unsigned bytes = m->e4m3 ? 1 : (unsigned)encoder_library.element_bytes;
        const uint64_t line = m->size[0] * bytes;
        /* Of dealt rows 16t+2p+e the dimensions are e, t and p. */
        const uint64_t size[DEALT_RANK] = {m->size[0], m->size[1], 4, 8};
        const uint64_t pitch[DEALT_RANK - 1] = {line, 16 * line, 2 * line};
        const unsigned box[DEALT_RANK] = {m->box[0], m->dealt ? 2 : m->box[1], 4, 8};
        int swizzle =
            SWIZZLE_32 + (int)(m->box[0] * bytes / 64); /* lines of 32, 64 and 128 bytes */
        if (encode(&maps[i], m->e4m3 ? UINT8 : UINT16, m->dealt ? DEALT_RANK : RANK,
                   matrix(m, i, a), size, pitch, box, step, 0, swizzle, PROMOTE_256, 0) != 0)
            return encoder_fail(ENCODER_DEVICE_FAILED, "the driver refuses a tensor map");
    }
    return ENCODER_OK;
}
