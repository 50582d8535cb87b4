/* Builds and verifies every segment on a GPU, by each implementation that serves it.
 *
 *   cuda_segments DTYPE BATCH SEQ_LEN MASK AVERAGE   (AVERAGE: draw lengths with it; 0: none)
 *
 * Prints a line for each failure and one that sums up; exits 1 where anything failed. */
#include "bench/bench.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { CHOICES_MAX = 1024 };

static void fail(const struct status *st)
{
    fprintf(stderr, "cuda_segments: %s\n", st->message);
    exit(EXIT_FAILURE);
}

static void read_workload(char **argv, struct workload *w)
{
    struct status st = STATUS_INIT;
    workload_init(w);
    w->dtype = dtype_from_name(argv[1]);
    w->batch = atoi(argv[2]);
    w->seq_len = atoi(argv[3]);
    w->layers = 1;
    int average = atoi(argv[5]);
    if (mask_parse(argv[4], &w->mask_spec, &st) != 0 ||
        (average > 0 && workload_draw_lengths(w, average, 1, &st) != 0) ||
        workload_check(w, &st) != 0 || workload_build_mask(w, NULL, &st) != 0)
        fail(&st);
}

static bool is_default(const struct choice *c)
{
    const struct schedule none = {{0}};
    return memcmp(&c->schedule, &none, sizeof(none)) == 0;
}

/* The default schedule of each implementation for each segment. */
static int list_choices(const struct build_target *t, struct choice *out)
{
    struct choice found[CHOICES_MAX];
    int count = 0;
    for (int i = 0; i < 2 * SEGMENT_COUNT; i++) {
        bool handwritten = i >= SEGMENT_COUNT;
        struct segment s = segment_at(i % SEGMENT_COUNT);
        int n = choices_for(t, s, handwritten, CHOICES_MAX, found);
        for (int k = 0; k < n; k++)
            if (is_default(&found[k]) && found[k].impl->handwritten == handwritten)
                out[count++] = found[k];
    }
    return count;
}

static double since(double start)
{
    return clock_seconds() - start;
}

int main(int argc, char **argv)
{
    static struct choice choices[CHOICES_MAX];
    static struct status built[CHOICES_MAX];
    const struct sampling verify_only = {.max_samples = 0};
    const struct bench_options options = {.target = {.kind = TARGET_CUDA}};
    struct status st = STATUS_INIT;
    struct workload w;
    struct bench *b;
    if (argc != 6) {
        fputs("usage: cuda_segments DTYPE BATCH SEQ_LEN MASK AVERAGE\n", stderr);
        return 2;
    }
    read_workload(argv, &w);
    if (bench_open(&options, &w, &b, &st) != 0)
        fail(&st);
    int count = list_choices(bench_target(b), choices), failed = 0;
    double start = clock_seconds(), worst = 0, build_s;
    if (bench_build(b, choices, count, built, NULL, NULL, &st) != 0)
        fail(&st);
    build_s = since(start);
    start = clock_seconds();
    for (int i = 0; i < count; i++) {
        struct trial t;
        if (bench_segment(b, &choices[i], &verify_only, &t, &st) != 0)
            fail(&st);
        if (t.status != TRIAL_OK) {
            failed++;
            printf("FAILED %s (%d,%d) %s: %s\n", argv[1], w.batch, w.seq_len, argv[4],
                   t.reason.message);
        } else if (t.error > worst) {
            worst = t.error;
        }
        trial_release(&t);
    }
    printf("%s (%d,%d) %s%s: %d kernels, %d failed, largest error %.2g of %.2g allowed; built in "
           "%.1f s, verified in %.1f s\n",
           argv[1], w.batch, w.seq_len, argv[4], w.lengths != NULL ? " with lengths" : "", count,
           failed, worst, dtypes[w.dtype].tolerance, build_s, since(start));
    bench_close(b);
    workload_release(&w);
    return failed > 0 ? EXIT_FAILURE : EXIT_SUCCESS;
}
