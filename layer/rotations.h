/* The rotations of rotary embeddings: the same where layers are verified and in an exported
 * library. */
#ifndef FUSEPLAN_LAYER_ROTATIONS_H
#define FUSEPLAN_LAYER_ROTATIONS_H

#include <math.h>

/* out (S,W): of place s and pair c < W/2 the cosine and the sine of s * theta^(-2c/W), at columns
 * 2c and 2c+1.  With a factor f, as GTE has it for longer sequences, of
 * s * (f theta)^(-2c/W) / f^(2/W): NTK-aware, so that the shortest wave is about as long as it was,
 * and the longest f times as long.  factor 0: not given, as 1. */
static inline void fp_rotations(int seq_len, int head_size, double theta, double factor, float *out)
{
    const double f = factor > 0 ? factor : 1, first = pow(f, -2.0 / head_size);
    for (int s = 0; s < seq_len; s++)
        for (int c = 0; c < head_size; c += 2) {
            double angle = s * (first * pow(f * theta, -(double)c / head_size));
            *out++ = (float)cos(angle);
            *out++ = (float)sin(angle);
        }
}

#endif
