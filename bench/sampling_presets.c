#include "bench/bench.h"

/* The interval of nine samples leaves out one outlier on each side: an exhaustive search takes no
 * more. */
enum { SAMPLES_BUT_OUTLIERS = 9 };

/* A search needs an interval for each plan; the finals, which separate close plans, need more. */
const struct sampling sampling_search = {.min_samples = SAMPLES_OF_AN_INTERVAL,
                                         .max_samples = 15,
                                         .min_seconds = 0.03,
                                         .max_seconds = 0.3};
const struct sampling sampling_exhaustive = {.min_samples = SAMPLES_OF_AN_INTERVAL,
                                             .max_samples = SAMPLES_BUT_OUTLIERS,
                                             .min_seconds = 0.03,
                                             .max_seconds = 0.3};
const struct sampling sampling_final = {
    .min_samples = 20, .max_samples = 200, .min_seconds = 1, .max_seconds = 5, .all_layers = true};
const struct sampling sampling_bench = {.min_samples = 20,
                                        .max_samples = 200,
                                        .min_seconds = 1,
                                        .max_seconds = 5,
                                        .all_layers = true,
                                        .all_rows = true};
