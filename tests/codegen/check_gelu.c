/* GELU of kernels/cuda/tokens.cuh that becomes e4m3, for every number of fp16: the polynomial of
 * its text, each operation rounded as a GPU does. */
#include "codegen/codegen_int.h"
#include "tests/suite.h"

enum { TERMS = 5, FINITE = 0x7c00 };

static double terms[TERMS]; /* the highest power's first */

static double half_of(unsigned bits)
{
    const int exponent = (int)(bits >> 10 & 31), fraction = (int)(bits & 1023);
    const double size =
        exponent == 0 ? ldexp(fraction, -24) : ldexp(1024 + fraction, exponent - 25);
    return (bits & 0x8000) != 0 ? -size : size;
}

static double rounded(double x)
{
    enum { LEAST = -24, DIGITS = 11 };
    int exponent;
    if (isinf(x))
        return x;
    frexp(x, &exponent);
    const double unit = ldexp(1, exponent - DIGITS < LEAST ? LEAST : exponent - DIGITS);
    const double near = nearbyint(x / unit) * unit;
    return fabs(near) > 65504 ? copysign(INFINITY, x) : near;
}

static double computed(double x)
{
    const double t = rounded(x * x);
    double p = terms[0];
    for (int i = 1; i < TERMS; i++)
        p = rounded(p * t + terms[i]);
    return rounded(x * rounded(fmin(fmax(p * x + 0.5, 0), 1)));
}

static double gelu(double x)
{
    return x / 2 * (1 + erf(x / sqrt(2)));
}

static const char *text_of(const char *name)
{
    const struct kernel_file *files;
    const int count = kernel_group(KERNEL_CUDA, &files);
    int i = 0;
    while (i < count && strcmp(files[i].name, name) != 0)
        i++;
    ck_assert(i < count);
    return files[i].text;
}

/* Each is in the text twice, as a pair. */
static void read_terms(void)
{
    const char *at = strstr(text_of("tokens.cuh"), "activation_for_e4m3<fp16, gelu_function> {");
    ck_assert_ptr_nonnull(at);
    for (int i = 0; i < TERMS; i++) {
        at = strstr(at, "\"r\"(0x");
        ck_assert_ptr_nonnull(at);
        at += strlen("\"r\"(");
        const unsigned long pair = strtoul(at, NULL, 16);
        ck_assert_uint_eq(pair >> 16, pair & 0xffff);
        terms[i] = half_of((unsigned)(pair & 0xffff));
    }
}

TEST(every_number)
{
    double worst = 0;
    for (unsigned bits = 0; bits < FINITE; bits++)
        for (int sign = -1; sign <= 1; sign += 2) {
            const double x = sign * half_of(bits), out = computed(x);
            worst = fmax(worst, fabs(out - gelu(x)));
            if (x >= 4)
                ck_assert_msg(out == x, "%g becomes %g", x, out);
            if (x <= -4)
                ck_assert_msg(out == 0, "%g becomes %g", x, out);
        }
    ck_assert_msg(worst < 0.0039, "error %g", worst);
}

/* The share of the norm, of numbers of normal distributions. */
TEST_LOOP(normal_numbers, 0, 5)
{
    const double deviation = ldexp(0.25, _i);
    double error = 0, norm = 0;
    for (unsigned bits = 0; bits + 1 < FINITE; bits++)
        for (int sign = -1; sign <= 1; sign += 2) {
            const double x = sign * half_of(bits), right = gelu(x), away = computed(x) - right,
                         share = exp(-x * x / (2 * deviation * deviation)) *
                                 (half_of(bits + 1) - half_of(bits));
            error += away * away * share;
            norm += right * right * share;
        }
    ck_assert_msg(sqrt(error / norm) < 7e-4, "%g at deviation %g", sqrt(error / norm), deviation);
}

SUITE("gelu", read_terms, NULL)
