/* The definitions of activations and norms, and what a softmax is computed by. */
#include "bench/oracle/oracle_int.h"

/* x/2 * (1 + erf(x / sqrt(2))) */
static double gelu(double x)
{
    return x / 2 * (1 + erf(x / sqrt(2)));
}

/* x/2 * (1 + tanh(sqrt(2/pi) * (x + 0.044715 x^3))) */
static double gelu_tanh(double x)
{
    return x / 2 * (1 + tanh(sqrt(M_2_PI) * (x + 0.044715 * x * x * x)));
}

/* x / (1 + exp(-1.702 x)) */
static double quick_gelu(double x)
{
    return x / (1 + exp(-1.702 * x));
}

/* max(x, 0) */
static double relu(double x)
{
    return x < 0 ? 0 : x; /* NaN stays */
}

/* x / (1 + exp(-x)) */
static double silu(double x)
{
    return x / (1 + exp(-x));
}

/* (x - mean) / sqrt(variance + eps), the variance over n, not n - 1 */
static void normalise_layer(const double *x, int n, double eps, double *out)
{
    double mean = 0, variance = 0;
    for (int c = 0; c < n; c++)
        mean += x[c] / n;
    for (int c = 0; c < n; c++)
        variance += (x[c] - mean) * (x[c] - mean) / n;
    for (int c = 0; c < n; c++)
        out[c] = (x[c] - mean) / sqrt(variance + eps);
}

/* x / sqrt(mean of x^2 + eps) */
static void normalise_rms(const double *x, int n, double eps, double *out)
{
    double square = 0;
    for (int c = 0; c < n; c++)
        square += x[c] * x[c] / n;
    for (int c = 0; c < n; c++)
        out[c] = x[c] / sqrt(square + eps);
}

/* By function; null of those of other kinds. */
static const struct {
    double (*activate)(double x);
    void (*normalise)(const double *x, int n, double eps, double *out);
} definitions[FUNCTION_COUNT] = {
    [FUNCTION_BIAS_GELU] = {.activate = gelu},
    [FUNCTION_BIAS_GELU_TANH] = {.activate = gelu_tanh},
    [FUNCTION_BIAS_QUICK_GELU] = {.activate = quick_gelu},
    [FUNCTION_BIAS_RELU] = {.activate = relu},
    [FUNCTION_BIAS_SILU] = {.activate = silu},
    [FUNCTION_LAYERNORM] = {.normalise = normalise_layer},
    [FUNCTION_RMSNORM] = {.normalise = normalise_rms},
};

double oracle_activate(enum function_id activation, double x)
{
    return definitions[activation].activate(x);
}

void oracle_normalise(enum function_id norm, const double *x, int n, double eps, double *out)
{
    definitions[norm].normalise(x, n, eps, out);
}

/* ---- softmax ---------------------------------------------------------------------------------
 *
 * Loops that compilers turn into vectors, with the same bits in vectors of any width. */

enum { AT_ONCE = 8 }; /* sums, and maxima, of which none waits for the one before */

/* exp(x) of x <= 0, off by at most 2e-16 of it, but 0 below 1e-307: 2^n exp(r), n the integer next
 * to x / ln 2 and exp(r) a series. */
static inline __attribute__((always_inline)) double exp_down(double x)
{
    static const double factorial[] = {
        1, 1, 2, 6, 24, 120, 720, 5040, 40320, 362880, 3628800, 39916800, 479001600, 6227020800};
    const double shift = 0x1.8p52, shifted = x * M_LOG2E + shift, n = shifted - shift;
    const double r = x - n * 0x1.62e42feep-1 - n * 0x1.a39ef35793c76p-33; /* ln 2 in two parts */
    double sum = 0, scale;
    uint64_t bits;
#pragma GCC unroll 14
    for (int i = 13; i >= 0; i--)
        sum = sum * r + 1 / factorial[i];
    memcpy(&bits, &shifted, sizeof(bits)); /* they end in those of n */
    bits = (bits + 1023) << 52;
    memcpy(&scale, &bits, sizeof(scale));
    return x < -707 ? 0 : sum * scale;
}

FOR_EACH_CPU double oracle_largest(const double *x, int n)
{
    double most[AT_ONCE];
    int j = 0;
    for (int i = 0; i < AT_ONCE; i++)
        most[i] = -INFINITY;
    for (; j + AT_ONCE <= n; j += AT_ONCE)
        for (int i = 0; i < AT_ONCE; i++)
            most[i] = x[j + i] > most[i] ? x[j + i] : most[i];
    for (; j < n; j++)
        most[0] = x[j] > most[0] ? x[j] : most[0];
    for (int i = 1; i < AT_ONCE; i++)
        most[0] = most[i] > most[0] ? most[i] : most[0];
    return most[0];
}

FOR_EACH_CPU double oracle_exps(const double *x, int n, double max, double *y)
{
    double sums[AT_ONCE] = {0};
    int j = 0;
    for (int i = 0; i < n; i++)
        y[i] = exp_down(x[i] - max);
    for (; j + AT_ONCE <= n; j += AT_ONCE)
        for (int i = 0; i < AT_ONCE; i++)
            sums[i] += y[j + i];
    for (; j < n; j++)
        sums[0] += y[j];
    for (int i = 1; i < AT_ONCE; i++)
        sums[0] += sums[i];
    return sums[0];
}
