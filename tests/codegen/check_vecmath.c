#include "kernels/cpu/vecmath.h"
#include "tests/suite.h"

#include <math.h>

START_TEST(exp_is_accurate)
{
    double worst = 0;
    for (double x = -87.2; x < 88; x += 0.000977) {
        double right = exp((double)(float)x);
        worst = fmax(worst, fabs((double)fp_exp((float)x) - right) / right);
    }
    ck_assert_msg(worst < 2e-7, "relative error %g", worst);
}
END_TEST

START_TEST(exp_ends_in_zero)
{
    ck_assert(fp_exp(-INFINITY) == 0);
    ck_assert(fp_exp(-1e30f) == 0);
    ck_assert(fp_exp(-88) == 0);
    ck_assert(fp_exp(0) == 1);
}
END_TEST

START_TEST(erf_is_accurate)
{
    double worst = 0;
    for (double x = -6; x < 6; x += 0.0000977)
        worst = fmax(worst, fabs((double)fp_erf((float)x) - erf((double)(float)x)));
    ck_assert_msg(worst < 5e-7, "absolute error %g", worst);
}
END_TEST

START_TEST(gelu_keeps_its_ends)
{
    ck_assert(fp_gelu(0) == 0);
    ck_assert(fp_gelu(30) == 30);
    ck_assert(fabsf(fp_gelu(-30)) < 1e-5f);
}
END_TEST

START_TEST(transposes_every_size)
{
    float in[13 * 15], out[13 * 15];
    for (int i = 0; i < 13 * 15; i++)
        in[i] = (float)i;
    for (int rows = 0; rows <= 13; rows++)
        for (int columns = 0; columns <= 13; columns++) {
            for (int i = 0; i < 13 * 15; i++)
                out[i] = -1;
            fp_transpose(rows, columns, in, 15, out, 13);
            for (int i = 0; i < 13 * 13; i++) {
                int row = i % 13, column = i / 13;
                float right = row < rows && column < columns ? in[row * 15 + column] : -1;
                ck_assert(out[i] == right);
            }
        }
}
END_TEST

SUITE("vecmath", NULL, NULL, ONCE(exp_is_accurate), ONCE(exp_ends_in_zero), ONCE(erf_is_accurate),
      ONCE(gelu_keeps_its_ends), ONCE(transposes_every_size))
