/* The tensor maps of a launch: what the tensor memory accelerator (TMA) must know of matrices.
 *
 * The driver's function is asked for by name, so that the program needs no header of the driver and
 * no -lcuda; numbers are those of cuda.h. */
#ifndef MAPS_CUH
#define MAPS_CUH

#include "inputs.cuh"

#include <cstring>

typedef int encode_map(void *out, int type, unsigned rank, void *at, const uint64_t *size,
                       const uint64_t *pitch, const unsigned *box, const unsigned *step,
                       int interleave, int swizzle, int promotion, int fill);

static encode_map *find_encode_map()
{
    enum { SINCE = 12000 };
    void *found = nullptr;
    cudaDriverEntryPointQueryResult result;
    check(cudaGetDriverEntryPointByVersion("cuTensorMapEncodeTiled", &found, SINCE,
                                           cudaEnableDefault, &result),
          "cannot ask the driver for tensor maps");
    if (result != cudaDriverEntryPointSuccess) {
        fprintf(stderr, "the driver has no tensor maps: install one for CUDA 12 or later\n");
        exit(1);
    }
    return (encode_map *)found;
}

/* map: PLAN_MAPS descriptions. */
static void encode_maps(const struct plan_map *map, const struct fp_args &a, struct fp_maps *out)
{
    enum { UINT16 = 1, RANK = 2, SWIZZLE_64 = 2, SWIZZLE_128 = 3, PROMOTE_256 = 3 };
    static encode_map *const encode = find_encode_map();
    static const unsigned step[RANK] = {1, 1};
    struct fp_map *maps = &out->in;
    for (int i = 0; i < PLAN_MAPS; i++) {
        const struct plan_map &m = map[i];
        if (m.size[0] == 0)
            continue;
        void *at = m.weight ? const_cast<void *>(a.weight[m.index]) : a.tensor[m.index];
        const uint64_t pitch[RANK - 1] = {m.size[0] * sizeof(plan_element)};
        int swizzle = m.box[0] == 64 ? SWIZZLE_128 : SWIZZLE_64;
        if (encode(&maps[i], UINT16, RANK, at, m.size, pitch, m.box, step, 0, swizzle, PROMOTE_256,
                   0) != 0) {
            fprintf(stderr, "the driver refuses a tensor map\n");
            exit(1);
        }
    }
}

#endif
