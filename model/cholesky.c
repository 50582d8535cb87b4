#include "model/model_int.h"

/* Column by column, so that the innermost loop runs over neighbours in memory. */
void cholesky(double *a, double *column, int n)
{
    for (int k = 0; k < n; k++) {
        double pivot = sqrt(a[k * n + k]);
        a[k * n + k] = pivot;
        for (int i = k + 1; i < n; i++)
            column[i] = a[i * n + k] /= pivot;
        for (int i = k + 1; i < n; i++) {
            double *restrict row = a + (size_t)i * (size_t)n, by = column[i];
            for (int j = k + 1; j <= i; j++)
                row[j] -= by * column[j];
        }
    }
}

void solve_lower(const double *l, int n, double *x)
{
    for (int i = 0; i < n; i++) {
        for (int j = 0; j < i; j++)
            x[i] -= l[i * n + j] * x[j];
        x[i] /= l[i * n + i];
    }
}

void solve_upper(const double *l, int n, double *x)
{
    for (int i = n - 1; i >= 0; i--) {
        x[i] /= l[i * n + i];
        for (int j = 0; j < i; j++)
            x[j] -= l[i * n + j] * x[i];
    }
}
