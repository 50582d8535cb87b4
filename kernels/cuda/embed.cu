/* The embeddings of a call's tokens, as encoder.h says: a kernel in front of all others. */
#include "elements.h"
#include "segment.h"

struct alignas(16) piece {
    uint32_t word[4];
};

/* Where the piece of 16 bytes begins in each table, with which a row of x begins. */
struct places {
    long word, type, position;
};

static __device__ float sum_of(float x, int lanes)
{
    for (int step = lanes / 2; step > 0; step /= 2)
        x += __shfl_xor_sync(~0u, x, step);
    return x;
}

template <encoder_dtype T, int EACH>
static __device__ void add(const void *array, long at, float *sum)
{
    if (array == nullptr)
        return;
    const piece from = static_cast<const piece *>(array)[at];
    for (int i = 0; i < EACH; i++)
        sum[i] += element_load(T, &from, (size_t)i);
}

/* What stands before the norm, less the mean: piece p of the row. */
template <encoder_dtype T, int EACH>
static __device__ void take(const encoder_embedding &e, const places &at, int p, float mean,
                            float *x)
{
    for (int i = 0; i < EACH; i++)
        x[i] = 0;
    add<T, EACH>(e.word, at.word + p, x);
    add<T, EACH>(e.type, at.type + p, x);
    add<T, EACH>(e.position, at.position + p, x);
    for (int i = 0; i < EACH; i++)
        x[i] -= mean;
}

/* The row that is a token's; where the tables have no such rows, NaN. */
template <encoder_dtype T, int EACH>
static __device__ void embed_row(const fp_embedding &c, int row, int lane, int lanes)
{
    const encoder_embedding &e = c.call;
    const int place = row % e.seq_len, pieces = c.columns / EACH;
    const long long id = e.ids[row], type = e.types != nullptr ? e.types[row] : 0;
    const bool bad =
        id < 0 || id >= e.word_rows || (e.type != nullptr && (type < 0 || type >= e.type_rows));
    long position = place;
    if (e.position != nullptr && e.padding_id >= 0) {
        int count = 0;
        for (int i = lane; i <= place; i += lanes)
            count += e.ids[row - place + i] != e.padding_id;
        count = (int)sum_of((float)count, lanes);
        position = e.padding_id + (id == e.padding_id ? 0 : count);
    }
    const places at = {bad ? 0 : (long)id * pieces, bad ? 0 : (long)type * pieces,
                       position * pieces};
    float x[EACH], mean = 0, square = 0;
    for (int p = lane; p < pieces; p += lanes) {
        take<T, EACH>(e, at, p, 0, x);
        for (int i = 0; i < EACH; i++)
            mean += x[i];
    }
    mean = sum_of(mean, lanes) / (float)c.columns;
    for (int p = lane; p < pieces; p += lanes) {
        take<T, EACH>(e, at, p, mean, x);
        for (int i = 0; i < EACH; i++)
            square += x[i] * x[i];
    }
    const float deviation = sqrtf(sum_of(square, lanes) / (float)c.columns + (float)e.eps);
    const float scale = bad ? element_from_bits(0x7fc00000) : 1 / deviation;
    for (int p = lane; p < pieces; p += lanes) {
        float gamma[EACH] = {0}, beta[EACH] = {0};
        piece to;
        take<T, EACH>(e, at, p, mean, x);
        add<T, EACH>(e.gamma, p, gamma);
        add<T, EACH>(e.beta, p, beta);
        for (int i = 0; i < EACH; i++)
            element_store(T, &to, (size_t)i, x[i] * scale * gamma[i] + beta[i]);
        static_cast<piece *>(e.x)[(long)row * pieces + p] = to;
    }
}

/* A row a warp. */
extern "C" __global__ void encoder_embed_rows(const __grid_constant__ fp_embedding c)
{
    const encoder_embedding &e = c.call;
    const int lanes = (int)blockDim.x < 32 ? (int)blockDim.x : 32, warps = (int)blockDim.x / lanes;
    const int warp = (int)threadIdx.x / lanes, lane = (int)threadIdx.x % lanes;
    for (int row = (int)blockIdx.x * warps + warp; row < e.batch * e.seq_len;
         row += (int)gridDim.x * warps) {
        if (e.mask != nullptr
                ? e.mask[row] == 0
                : e.lengths != nullptr && row % e.seq_len >= e.lengths[row / e.seq_len])
            continue;
        if (c.dtype == ENCODER_FP16)
            embed_row<ENCODER_FP16, 8>(c, row, lane, lanes);
        else if (c.dtype == ENCODER_BF16)
            embed_row<ENCODER_BF16, 8>(c, row, lane, lanes);
        else
            embed_row<ENCODER_FP32, 4>(c, row, lane, lanes);
    }
}
