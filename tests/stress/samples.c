#include "tests/stress/soak.h"

#include <stdio.h>
#include <stdlib.h>

/* What a search of one workload after the other may not need more and more of. */
static const struct {
    const char *name, *unit;
    double more, share; /* that the last quarter may have more than the second one */
} judged[] = {
    [SAMPLE_MEMORY] = {"memory", " KiB", 2048, 0.02}, /* what an allocator keeps */
    [SAMPLE_DESCRIPTORS] = {"descriptors", "", 0, 0},
    [SAMPLE_FILES] = {"files", "", 0, 0},
};

void samples_take(struct samples *s, const struct lane *l)
{
    struct usage now;
    if (!usage_read(l->pid, &now))
        return;
    const double values[SAMPLE_KINDS] = {[SAMPLE_MEMORY] = (double)now.rss_kib,
                                         [SAMPLE_DESCRIPTORS] = now.descriptors,
                                         [SAMPLE_FILES] = lane_files(l)};
    for (int i = 0; i < SAMPLE_KINDS; i++) {
        s->values[i] = mem_resize(s->values[i], (size_t)s->count + 1, sizeof(double));
        s->values[i][s->count] = values[i];
    }
    s->count++;
}

/* The median of a quarter, 0 to 3. */
static double quarter(const struct samples *s, int kind, int part)
{
    int first = s->count * part / 4, n = s->count * (part + 1) / 4 - first;
    return stats_median(s->values[kind] + first, (size_t)n).median;
}

void samples_judge(const struct samples *s, struct account *a)
{
    enum { LEAST = 200 };
    printf("steady lane: %d samples%s\n", s->count,
           s->count < LEAST ? ", too few to judge" : " of its process");
    for (int i = 0; i < SAMPLE_KINDS && s->count >= LEAST; i++) {
        double second = quarter(s, i, 1), last = quarter(s, i, 3);
        printf("  %-12s %.0f%s in the second quarter, %.0f%s in the last\n", judged[i].name, second,
               judged[i].unit, last, judged[i].unit);
        if (last > second * (1 + judged[i].share) + judged[i].more)
            complain(a, "%s grew", judged[i].name);
    }
}

void samples_release(struct samples *s)
{
    for (int i = 0; i < SAMPLE_KINDS; i++)
        free(s->values[i]);
    *s = (struct samples){0};
}
