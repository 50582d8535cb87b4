#include "kernels/cpu/vecmath.h"
#include "tests/suite.h"

TEST(exp_is_accurate)
{
    double worst = 0;
    for (double x = -87.2; x < 88; x += 0.000977) {
        double right = exp((double)(float)x);
        worst = fmax(worst, fabs((double)fp_exp((float)x) - right) / right);
    }
    ck_assert_msg(worst < 2e-7, "relative error %g", worst);
}

TEST(exp_ends_in_zero)
{
    ck_assert(fp_exp(-INFINITY) == 0);
    ck_assert(fp_exp(-1e30f) == 0);
    ck_assert(fp_exp(-88) == 0);
    ck_assert(fp_exp(0) == 1);
}

TEST(erf_is_accurate)
{
    double worst = 0;
    for (double x = -6; x < 6; x += 0.0000977)
        worst = fmax(worst, fabs((double)fp_erf((float)x) - erf((double)(float)x)));
    ck_assert_msg(worst < 5e-7, "absolute error %g", worst);
}

SUITE("vecmath", NULL, NULL)
