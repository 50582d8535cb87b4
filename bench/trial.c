#include "bench/bench.h"

#include <stdlib.h>

/* A search races: enough samples for an interval, then on; finalists are told apart by more. */
const struct sampling sampling_search = {
    .min_samples = 6, .max_samples = 15, .min_seconds = 0.03, .max_seconds = 0.3};
const struct sampling sampling_final = {
    .min_samples = 20, .max_samples = 200, .min_seconds = 1, .max_seconds = 5, .all_layers = true};

void trial_release(struct trial *t)
{
    free(t->samples_ms);
    *t = (struct trial){0};
}
