/* Activations that have kernels on both targets; layer/chain.h has their ids.  The includer defines
 * FP_FUNCTION, the qualifiers of a function, FP_ERF, erf of a float, and FP_EXP, exp of a float up
 * to 87. */
#ifndef FUSEPLAN_ACTIVATIONS_H
#define FUSEPLAN_ACTIVATIONS_H

/* X(id, name): its id in emitted code of a CPU; fp_name() computes it. */
#define FP_ACTIVATIONS(X)                                                                          \
    X(FP_BIAS_GELU, gelu)                                                                          \
    X(FP_BIAS_GELU_TANH, gelu_tanh)                                                                \
    X(FP_BIAS_QUICK_GELU, quick_gelu)                                                              \
    X(FP_BIAS_RELU, relu)                                                                          \
    X(FP_BIAS_SILU, silu)

/* x Phi(x) = x/2 (1 + erf(x / sqrt 2)), Hendrycks and Gimpel: Gaussian Error Linear Units (2016).
 * Half types have another form: kernels/cuda/tokens.cuh. */
FP_FUNCTION float fp_gelu(float x)
{
    return 0.5f * x * (1.0f + FP_ERF(x * 0.70710678118654752f));
}

/* 1 / (1 + e^-x) */
FP_FUNCTION float fp_sigmoid(float x)
{
    return 1.0f / (1.0f + FP_EXP(x > -87.0f ? -x : 87.0f));
}

/* x/2 (1 + tanh(sqrt(2/pi) (x + 0.044715 x^3))), by 1/2 + tanh(y)/2 = sigmoid(2 y). */
FP_FUNCTION float fp_gelu_tanh(float x)
{
    return x * fp_sigmoid(x * (1.5957691216057308f + 0.071354816272600250f * x * x));
}

FP_FUNCTION float fp_quick_gelu(float x)
{
    return x * fp_sigmoid(1.702f * x);
}

FP_FUNCTION float fp_relu(float x)
{
    return x > 0.0f ? x : 0.0f;
}

FP_FUNCTION float fp_silu(float x)
{
    return x * fp_sigmoid(x);
}

#endif
