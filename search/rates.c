#include "search/study.h"

#include <jansson.h>

/* Takes the device's peaks from a trial that holds them, and ends the walk. */
static int read_peaks(void *ctx, const struct db_trial *row)
{
    struct limits *out = ctx;
    double flops = 0, bytes = 0;
    json_auto_t *conditions = json_loads(row->conditions, 0, NULL);
    json_unpack(conditions, "{s?F, s?F}", "peak_flops_per_s", &flops, "peak_bytes_per_s", &bytes);
    if (flops <= 0 || bytes <= 0)
        return 0;
    *out = (struct limits){.flops_per_s = flops, .bytes_per_s = bytes};
    return 1;
}

static void highest_reached(const struct segment_times *times, const struct workload *w,
                            unsigned precision, struct limits *out)
{
    for (int i = 0; i < SLOT_COUNT; i++) {
        if (isnan(times->ms[i]))
            continue;
        double seconds = 1e-3 * times->ms[i];
        const struct work work = segment_work(slot_segment(i), w, precision);
        out->flops_per_s = fmax(out->flops_per_s, work.paced_flops / seconds);
        out->bytes_per_s = fmax(out->bytes_per_s, work.bytes / seconds);
    }
}

int study_rates(struct db *db, int64_t study, const struct segment_times *times,
                const struct workload *w, unsigned precision, struct limits *out, bool *of_device,
                struct status *st)
{
    *out = (struct limits){.flops_per_s = NAN, .bytes_per_s = NAN};
    int result = db_trial_times(db, study, DB_TRIAL_SEGMENT, read_peaks, out, st);
    *of_device = !isnan(out->flops_per_s);
    if (!*of_device)
        highest_reached(times, w, precision, out);
    return result;
}

double least_us(const struct work *work, const struct limits *rates, bool *memory_bound)
{
    double compute = 1e6 * work->paced_flops / rates->flops_per_s;
    double memory = 1e6 * work->bytes / rates->bytes_per_s;
    *memory_bound = memory >= compute;
    return isnan(compute) || isnan(memory) ? NAN : fmax(compute, memory);
}
