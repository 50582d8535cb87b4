/* The input of the first layer's first GEMM in e4m3: a kernel that runs before the first segment.
 * All later inputs are rounded by the segments that make them. */
#include "e4m3.h"
#include "elements.h"
#include "segment.h"

struct alignas(16) halves {
    uint16_t of[8];
};
struct alignas(16) codes {
    uint8_t of[16];
};

/* 16 columns a thread: two accesses to read and one to write. */
extern "C" __global__ void encoder_quantise_rows(const __grid_constant__ fp_quantising c)
{
    const long groups = (long)(c.live != nullptr ? *c.live : c.rows) * (c.columns / 16);
    const long step = (long)gridDim.x * blockDim.x;
    for (long g = (long)blockIdx.x * blockDim.x + threadIdx.x; g < groups; g += step) {
        const halves x[2] = {static_cast<const halves *>(c.x)[2 * g],
                             static_cast<const halves *>(c.x)[2 * g + 1]};
        codes out;
        for (int i = 0; i < 16; i++)
            out.of[e4m3_place(i)] =
                e4m3_pack(element_load((encoder_dtype)c.dtype, x[i / 8].of, i % 8) * c.inverse);
        static_cast<codes *>(c.codes)[g] = out;
    }
}
