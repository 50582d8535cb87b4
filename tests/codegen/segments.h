/* Every source that the CPU target emits, for the suite that runs them all and for the tool that
 * writes them down to be compiled. */
#ifndef FUSEPLAN_TESTS_SEGMENTS_H
#define FUSEPLAN_TESTS_SEGMENTS_H

#include "codegen/codegen_int.h"
#include "kernels/cpu/abi.h"
#include "tests/chains.h"

enum { SOURCES_MAX = 6400, CHOICES_MAX = 64, CHAINS_MAX = 32 };

static const struct build_target build_cpu = {
    .chain = &chain_bert, .kind = TARGET_CPU, .head_size = 64};

/* Compiled from emit_segments' output, in the order of all_sources(). */
extern fp_segment *const segment_functions[];
extern const bool segments_of_every_chain; /* as all_sources() was told */

static inline bool same_source(const struct choice *a, const struct choice *b)
{
    for (int k = 0; k < a->impl->knob_count; k++)
        if (a->impl->knobs[k].compile_time && a->schedule.pick[k] != b->schedule.pick[k])
            return false;
    return a->impl == b->impl;
}

static inline struct build_target cpu_target(const struct chain *c)
{
    struct build_target t = build_cpu;
    t.chain = c;
    return t;
}

/* Appends the choices of a segment, one a source: run-time knobs are at their first legal values.
 * Returns how many there are then. */
static inline int add_sources(const struct chain *c, struct segment s, bool handwritten, int count,
                              struct choice *out)
{
    const struct build_target t = cpu_target(c);
    struct choice choices[CHOICES_MAX];
    int n = choices_for(&t, s, handwritten, CHOICES_MAX, choices);
    for (int i = 0; i < n; i++) {
        bool known = handwritten && !choices[i].impl->handwritten;
        for (int before = 0; before < i; before++)
            known = known || same_source(&choices[before], &choices[i]);
        if (!known)
            out[count++] = choices[i];
    }
    return count;
}

/* The chains of tests, and of every chain also those that differ from BERT's in one function. */
static inline int chains_listed(bool every, const struct chain *out[CHAINS_MAX])
{
    int count = 0;
    for (int which = 0; which < CHAIN_COUNT; which++)
        out[count++] = chain_of_test((enum test_chain)which);
    const struct chain *one;
    for (int i = 0; every && (one = chain_of_one(i)) != NULL; i++) {
        bool listed = false;
        for (int before = 0; before < CHAIN_COUNT; before++)
            listed = listed || out[before] == one;
        if (!listed)
            out[count++] = one;
    }
    return count;
}

static inline bool has_all_segments(bool every, const struct chain *c)
{
    return every || c == chain_of_test(CHAIN_ALL);
}

static inline int add_all_segments(const struct chain *c, int count, struct choice *out)
{
    for (int i = 0; i < 2 * SEGMENT_COUNT; i++)
        count = add_sources(c, segment_at(i / 2), i % 2 != 0, count, out);
    return count;
}

/* Those of all segments of BERT's chain, then of the chains listed: of all segments if there is
 * every chain, and of the chain of all functions, else of segments in which they differ. */
static inline int all_sources(bool every, struct choice *out)
{
    static const struct segment differ[] = {{0, 1},  {1, 6},   {7, 9},   {8, 8}, {8, 9},
                                            {9, 12}, {10, 11}, {12, 14}, {0, 14}};
    const struct chain *chains[CHAINS_MAX];
    int chain_count = chains_listed(every, chains);
    int count = add_all_segments(&chain_bert, 0, out);
    for (int n = 0; n < chain_count; n++)
        if (has_all_segments(every, chains[n]))
            count = add_all_segments(chains[n], count, out);
        else
            for (size_t i = 0; i < ARRAY_LEN(differ); i++)
                count = add_sources(chains[n], differ[i], false, count, out);
    return count;
}

static inline const struct impl *generated_cpu(void)
{
    return impl_find(TARGET_CPU, "generated");
}

/* The sources kept in tests/golden/. */
enum { GOLDEN_COUNT = 8 };

static inline struct choice golden_choice(int i)
{
    static const struct {
        const char *chain;
        struct segment segment;
        const char *impl;
        const char *schedule;
    } golden[GOLDEN_COUNT] = {{"bert", {1, 6}, "generated", ""},
                              {"bert", {2, 6}, "handwritten", ""},
                              {"bert", {3, 4}, "generated", ""},
                              {"bert", {6, 9}, "generated", "lowering=rowwise"},
                              {"bert", {11, 11}, "generated", ""},
                              {"bert", {5, 9}, "generated", ""},
                              {"silu+gate", {10, 11}, "generated", ""},
                              {"pre+rms", {12, 14}, "generated", "lowering=rowwise"}};
    struct choice c = {.chain = chain_find(golden[i].chain),
                       .segment = golden[i].segment,
                       .impl = impl_find(TARGET_CPU, golden[i].impl)};
    schedule_parse(c.impl, golden[i].schedule, &c.schedule, STATUS_IGNORED);
    return c;
}

#endif
