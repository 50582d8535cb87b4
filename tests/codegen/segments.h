/* Every source that the CPU target emits, for the suite that runs them all and for the tool that
 * writes them down to be compiled. */
#ifndef FUSEPLAN_TESTS_SEGMENTS_H
#define FUSEPLAN_TESTS_SEGMENTS_H

#include "codegen/codegen_int.h"
#include "kernels/cpu/abi.h"

enum { SOURCES_MAX = 400, CHOICES_MAX = 64 };

static const struct build_target build_cpu = {
    .chain = &chain_bert, .kind = TARGET_CPU, .head_size = 64};

/* Compiled from emit_segments' output, in the order of all_sources(). */
extern fp_segment *const segment_functions[];

static inline bool same_source(const struct choice *a, const struct choice *b)
{
    for (int k = 0; k < a->impl->knob_count; k++)
        if (a->impl->knobs[k].compile_time && a->schedule.pick[k] != b->schedule.pick[k])
            return false;
    return a->impl == b->impl;
}

/* The choices of all segments, one a source: run-time knobs are at their first legal values. */
static inline int all_sources(struct choice *out)
{
    int count = 0;
    for (int i = 0; i < 2 * SEGMENT_COUNT; i++) {
        struct choice choices[CHOICES_MAX];
        int n = choices_for(&build_cpu, segment_at(i / 2), i % 2 != 0, CHOICES_MAX, choices);
        for (int c = 0; c < n; c++) {
            bool known = i % 2 != 0 && !choices[c].impl->handwritten;
            for (int before = 0; before < c; before++)
                known = known || same_source(&choices[before], &choices[c]);
            if (!known)
                out[count++] = choices[c];
        }
    }
    return count;
}

static inline const struct impl *generated_cpu(void)
{
    return impl_find(TARGET_CPU, "generated");
}

/* The sources kept in tests/golden/. */
enum { GOLDEN_COUNT = 6 };

static inline struct choice golden_choice(int i)
{
    static const struct {
        struct segment segment;
        const char *impl;
        const char *schedule;
    } golden[GOLDEN_COUNT] = {
        {{1, 6}, "generated", ""},   {{2, 6}, "handwritten", ""},
        {{3, 4}, "generated", ""},   {{6, 9}, "generated", "lowering=rowwise"},
        {{11, 11}, "generated", ""}, {{5, 9}, "generated", ""}};
    struct choice c = {
        &chain_bert, golden[i].segment, impl_find(TARGET_CPU, golden[i].impl), {{0}}};
    struct status st = STATUS_INIT;
    schedule_parse(c.impl, golden[i].schedule, &c.schedule, &st);
    return c;
}

#endif
