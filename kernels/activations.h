/* Activations that have kernels on both targets; layer/chain.h has their ids.  The includer defines
 * FP_FUNCTION, the qualifiers of a function, and FP_ERF, erf of a float. */
#ifndef FUSEPLAN_ACTIVATIONS_H
#define FUSEPLAN_ACTIVATIONS_H

/* X(id, name): its id in emitted code of a CPU; fp_name() computes it. */
#define FP_ACTIVATIONS(X) X(FP_BIAS_GELU, gelu)

/* x Phi(x) = x/2 (1 + erf(x / sqrt 2)), Hendrycks and Gimpel: Gaussian Error Linear Units (2016).
 * Half types have another form: kernels/cuda/tokens.cuh. */
FP_FUNCTION float fp_gelu(float x)
{
    return 0.5f * x * (1.0f + FP_ERF(x * 0.70710678118654752f));
}

#endif
