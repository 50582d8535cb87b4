/* The definitions of activations and norms. */
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
