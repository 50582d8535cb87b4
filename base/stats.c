#include "base/base.h"

int stats_order(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static double *sorted_copy(const double *samples, size_t n)
{
    double *copy = mem_alloc(n, sizeof(*copy));
    memcpy(copy, samples, n * sizeof(*copy));
    qsort(copy, n, sizeof(*copy), stats_order);
    return copy;
}

static double quantile_sorted(const double *sorted, size_t n, double q)
{
    double position = q * (double)(n - 1);
    size_t below = (size_t)position;
    size_t above = below + 1 < n ? below + 1 : below;
    return sorted[below] + (position - (double)below) * (sorted[above] - sorted[below]);
}

double stats_quantile(const double *samples, size_t n, double q)
{
    SCOPED double *sorted = sorted_copy(samples, n);
    return quantile_sorted(sorted, n, q);
}

/* The largest k (1-based) for which [x_(k), x_(n+1-k)] covers the median with at least 95 %:
 * P(Binomial(n, 1/2) < k) <= 2.5 %.  0 if even the extremes cover less (n < 6). */
static size_t median_rank(size_t n)
{
    double log_term = -(double)n * log(2), below = exp(log_term);
    size_t k = 0;
    while (k < n / 2 && below <= 0.025) {
        k++;
        log_term += log((double)(n - k + 1) / (double)k);
        below += exp(log_term);
    }
    return k;
}

struct interval interval_times(double factor, struct interval i)
{
    return (struct interval){factor * i.median, factor * i.low, factor * i.high};
}

struct interval stats_median(const double *samples, size_t n)
{
    SCOPED double *sorted = sorted_copy(samples, n);
    size_t k = median_rank(n);
    if (k == 0)
        k = 1;
    return (struct interval){
        .median = quantile_sorted(sorted, n, 0.5), .low = sorted[k - 1], .high = sorted[n - k]};
}

struct interval stats_median_ratio(const double *a, const double *b, size_t n)
{
    SCOPED double *ratios = mem_alloc(n, sizeof(*ratios));
    for (size_t i = 0; i < n; i++)
        ratios[i] = a[i] / b[i];
    return stats_median(ratios, n);
}

/* The cut of ascending samples that leaves the least variance within its two sides: the number of
 * samples on the low side.  *explained: the share of the variance between the sides. */
static size_t best_cut(const double *sorted, size_t n, double *explained)
{
    double sum = 0, squares = 0, low_sum = 0, best = 0;
    size_t cut = 0;
    for (size_t i = 0; i < n; i++)
        sum += sorted[i];
    for (size_t i = 0; i < n; i++)
        squares += (sorted[i] - sum / (double)n) * (sorted[i] - sum / (double)n);
    for (size_t k = 1; k < n; k++) {
        low_sum += sorted[k - 1];
        double apart = (sum - low_sum) / (double)(n - k) - low_sum / (double)k;
        double between = apart * apart * (double)k * (double)(n - k) / (double)n;
        if (between > best) {
            best = between;
            cut = k;
        }
    }
    *explained = squares > 0 ? best / squares : 0;
    return cut;
}

bool stats_two_groups(const double *samples, size_t n, struct groups *out)
{
    enum { SAMPLES_LEAST = 10, SIDE_LEAST = 3 };
    const double explained_least = 0.9, side_share = 0.1, apart_least = 1.05;
    if (n < SAMPLES_LEAST)
        return false;
    double explained, *sorted = sorted_copy(samples, n);
    size_t cut = best_cut(sorted, n, &explained), side = cut < n - cut ? cut : n - cut;
    bool two = explained >= explained_least && side >= SIDE_LEAST &&
               (double)side >= side_share * (double)n;
    if (two)
        *out = (struct groups){.low = quantile_sorted(sorted, cut, 0.5),
                               .high = quantile_sorted(sorted + cut, n - cut, 0.5),
                               .high_share = (double)(n - cut) / (double)n};
    free(sorted);
    return two && out->high >= apart_least * out->low;
}

struct ranked {
    double value;
    size_t index;
};

static int by_ranked_value(const void *a, const void *b)
{
    return stats_order(&((const struct ranked *)a)->value, &((const struct ranked *)b)->value);
}

/* Ranks from 0; tied values share the mean of their ranks. */
static double *ranks_of(const double *values, size_t n)
{
    SCOPED struct ranked *order = mem_alloc(n, sizeof(*order));
    double *ranks = mem_alloc(n, sizeof(*ranks));
    for (size_t i = 0; i < n; i++)
        order[i] = (struct ranked){values[i], i};
    qsort(order, n, sizeof(*order), by_ranked_value);
    for (size_t i = 0, end; i < n; i = end) {
        end = i + 1;
        while (end < n && order[end].value == order[i].value)
            end++;
        for (size_t k = i; k < end; k++)
            ranks[order[k].index] = (double)(i + end - 1) / 2;
    }
    return ranks;
}

double stats_spearman(const double *a, const double *b, size_t n)
{
    SCOPED double *ra = ranks_of(a, n);
    SCOPED double *rb = ranks_of(b, n);
    double mean = (double)(n - 1) / 2, ab = 0, aa = 0, bb = 0;
    for (size_t i = 0; i < n; i++) {
        ab += (ra[i] - mean) * (rb[i] - mean);
        aa += (ra[i] - mean) * (ra[i] - mean);
        bb += (rb[i] - mean) * (rb[i] - mean);
    }
    return aa > 0 && bb > 0 ? ab / sqrt(aa * bb) : 0;
}
