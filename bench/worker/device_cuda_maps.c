/* The operands of a GEMM: its tensor maps, what the tensor memory accelerator (TMA) must know of
 * the matrices that it copies, and fp_args.gemm. */
#include "bench/worker/device_cuda_int.h"

static void *matrix(const struct cuda_map *m, int number, const struct fp_args *a)
{
    if (m->e4m3 && number == CUDA_MAP_E4M3)
        return a->e4m3.out;
    if (m->e4m3)
        return cuda_pointer((uintptr_t)(m->weight ? a->e4m3.weight : a->e4m3.in));
    return m->weight ? cuda_pointer((uintptr_t)a->weight[m->index]) : a->tensor[m->index];
}

static int encode(const struct device *d, const struct cuda_launch *l, int number,
                  const struct fp_args *a, struct fp_map *out, struct status *st)
{
    enum { RANK = 2, DEALT_RANK = 4 };
    const struct cuda_map *m = &l->maps[number];
    const bool dealt = l->dealt && number == CUDA_MAP_IN;
    const unsigned bytes = m->e4m3 ? 1 : (unsigned)d->element_bytes;
    static const unsigned step[DEALT_RANK] = {1, 1, 1, 1};
    _Alignas(128) struct fp_map map; /* the driver requires it */
    /* Of dealt rows 16t+2p+e the dimensions are e, t and p. */
    const unsigned long long size[DEALT_RANK] = {(unsigned long long)m->size[0],
                                                 (unsigned long long)m->size[1], 4, 8};
    const unsigned long long line = size[0] * bytes;
    const unsigned long long pitch[DEALT_RANK - 1] = {line, 16 * line, 2 * line};
    const unsigned box[DEALT_RANK] = {(unsigned)m->box[0], dealt ? 2 : (unsigned)m->box[1], 4, 8};
    int error = d->cu->cuTensorMapEncodeTiled(
        &map, m->e4m3 ? CU_TENSOR_MAP_DATA_TYPE_UINT8 : CU_TENSOR_MAP_DATA_TYPE_UINT16,
        dealt ? DEALT_RANK : RANK, matrix(m, number, a), size, pitch, box, step,
        CU_TENSOR_MAP_INTERLEAVE_NONE,
        CU_TENSOR_MAP_SWIZZLE_32B + (int)(box[0] * bytes / 64), /* lines of 32, 64 and 128 bytes */
        CU_TENSOR_MAP_L2_PROMOTION_L2_256B, CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE);
    if (cuda_check(d->cu, error, STATUS_LAUNCH, "cannot describe a matrix for TMA", st) != 0)
        return -1;
    memcpy(out, &map, sizeof(*out));
    return 0;
}

static struct fp_gemm gemm_of(const struct cuda_operands *o, const struct fp_args *a)
{
    return (struct fp_gemm){.columns = (int)o->columns,
                            .inner = (int)o->inner,
                            .in = a->tensor[o->in],
                            .out = a->tensor[o->out],
                            .residual = o->residual >= 0 ? a->tensor[o->residual] : NULL,
                            .bias = o->bias >= 0 ? a->weight[o->bias] : NULL,
                            .gamma = o->gamma >= 0 ? a->weight[o->gamma] : NULL,
                            .beta = o->beta >= 0 ? a->weight[o->beta] : NULL};
}

int cuda_encode_maps(const struct device *d, const struct cuda_launch *l, struct fp_args *a,
                     struct fp_maps *out, struct status *st)
{
    struct fp_map *const to[CUDA_MAPS] = {
        [CUDA_MAP_IN] = &out->in,   [CUDA_MAP_WEIGHT] = &out->weight,
        [CUDA_MAP_OUT] = &out->out, [CUDA_MAP_RESIDUAL] = &out->residual,
        [CUDA_MAP_SUM] = &out->sum, [CUDA_MAP_E4M3] = &out->e4m3};
    out->sum_rows = a->tensor[l->maps[CUDA_MAP_SUM].index];
    for (int i = 0; i < CUDA_MAPS; i++)
        if (l->maps[i].size[0] > 0 && encode(d, l, i, a, to[i], st) != 0)
            return -1;
    if (l->maps[CUDA_MAP_WEIGHT].size[0] > 0)
        a->gemm = gemm_of(&l->operands, a);
    return 0;
}
