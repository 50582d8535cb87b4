#include "bench/accuracy/accuracy.h"

/* Sixteen sums, so that the processor adds to all of them at once. */
static float dot(const float *a, const float *b, int columns)
{
    enum { SUMS = 16 };
    float sums[SUMS] = {0}, all = 0;
    int c = 0;
    for (; c + SUMS <= columns; c += SUMS)
        for (int i = 0; i < SUMS; i++)
            sums[i] += a[c + i] * b[c + i];
    for (; c < columns; c++)
        all += a[c] * b[c];
    for (int i = 0; i < SUMS; i++)
        all += sums[i];
    return all;
}

int *neighbours_find(const float *rows, int n, int columns)
{
    int *found = mem_alloc((size_t)n * NEIGHBOURS, sizeof(*found));
#pragma omp parallel for schedule(dynamic, 16)
    for (int i = 0; i < n; i++) {
        int *nearest = found + (ptrdiff_t)i * NEIGHBOURS;
        float near[NEIGHBOURS];
        for (int k = 0; k < NEIGHBOURS; k++) {
            nearest[k] = -1;
            near[k] = -INFINITY;
        }
        for (int j = 0; j < n; j++) {
            float is =
                j != i ? dot(rows + (ptrdiff_t)i * columns, rows + (ptrdiff_t)j * columns, columns)
                       : -INFINITY;
            int k = NEIGHBOURS;
            for (; k > 0 && is > near[k - 1]; k--)
                if (k < NEIGHBOURS) {
                    near[k] = near[k - 1];
                    nearest[k] = nearest[k - 1];
                }
            if (k < NEIGHBOURS) {
                near[k] = is;
                nearest[k] = j;
            }
        }
    }
    return found;
}

double neighbours_agree(const int *one, const int *other, int n)
{
    int64_t all = 0, same = 0;
    for (int64_t i = 0; i < (int64_t)n * NEIGHBOURS; i++) {
        const int *others = other + i / NEIGHBOURS * NEIGHBOURS;
        all += one[i] >= 0;
        for (int k = 0; k < NEIGHBOURS; k++)
            same += one[i] >= 0 && others[k] == one[i];
    }
    return (double)same / (double)all;
}
