#include "model/model_int.h"

/* The prior of the slope is 1: a plan takes what its segments take.  Its weight counts like data
 * with this sum of squares of ln(additive ms): (errors of 5 % / doubt about the slope of 0.3)^2. */
static const double prior_slope = 1, prior_weight = 0.03;

/* A few rows can lie on the line by chance, but no line predicts plans better than this. */
static const double least_spread = 0.02;

double baseline_log_ms(const struct baseline *b, double log_additive)
{
    return isnan(log_additive) ? b->mean_log_ms
                               : b->mean_log_ms + b->slope * (log_additive - b->mean_log_additive);
}

/* A logistic distribution with the spread's variance: its heavy tails forgive the line's misses. */
double baseline_log_odds(const struct baseline *b, double log_additive, double ms)
{
    double scale = b->spread * sqrt(3) / M_PI;
    return (log(ms) - baseline_log_ms(b, log_additive)) / scale;
}

/* Means over the rows whose additive time is known; over all rows if none is. */
static void fit_means(struct baseline *b, const struct model_data *d, const double *log_additive)
{
    double sum_of_all = 0, sum_of_known = 0;
    int known = 0;
    for (int i = 0; i < d->count; i++) {
        sum_of_all += log(d->ms[i]);
        if (isnan(log_additive[i]))
            continue;
        known++;
        sum_of_known += log(d->ms[i]);
        b->mean_log_additive += log_additive[i];
    }
    b->mean_log_ms = known > 0 ? sum_of_known / known : sum_of_all / d->count;
    b->mean_log_additive = known > 0 ? b->mean_log_additive / known : 0;
}

/* Least squares with the prior. */
static void fit_slope(struct baseline *b, const struct model_data *d, const double *log_additive)
{
    double xx = prior_weight, xy = prior_weight * prior_slope;
    for (int i = 0; i < d->count; i++) {
        if (isnan(log_additive[i]))
            continue;
        double x = log_additive[i] - b->mean_log_additive;
        xx += x * x;
        xy += x * (log(d->ms[i]) - b->mean_log_ms);
    }
    b->slope = xy / xx;
}

struct baseline baseline_fit(const struct model_data *d, const double *log_additive)
{
    struct baseline b = {.slope = 0};
    fit_means(&b, d, log_additive);
    fit_slope(&b, d, log_additive);
    double squares = 0;
    for (int i = 0; i < d->count; i++) {
        double error = log(d->ms[i]) - baseline_log_ms(&b, log_additive[i]);
        squares += error * error;
    }
    b.spread = fmax(sqrt(squares / d->count), least_spread);
    return b;
}
