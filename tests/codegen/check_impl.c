#include "segments.h"
#include "tests/suite.h"

#include <string.h>

static struct status st; /* of the call that a test is about */

START_TEST(schedule_text_is_words)
{
    struct schedule sch = {.pick = {1, 2, 0}};
    struct buf text;
    buf_init(&text);
    schedule_text(generated_cpu(), &sch, &text);
    ck_assert_str_eq(text.ptr, "lowering=rowwise row_block=64 col_block=even");
    buf_release(&text);
}
END_TEST

START_TEST(choices_survive_their_text)
{
    struct choice choices[CHOICES_MAX], parsed;
    struct segment s = segment_at(_i / 2);
    int n = choices_for(&build_cpu, s, _i % 2 != 0, CHOICES_MAX, choices);
    ck_assert_int_ge(n, 1);
    for (int i = 0; i < n; i++) {
        struct buf text;
        buf_init(&text);
        schedule_text(choices[i].impl, &choices[i].schedule, &text);
        OK(choice_parse(TARGET_CPU, &chain_bert, s, choices[i].impl->name, text.ptr, &parsed, &st));
        ck_assert(choice_equal(&parsed, &choices[i]));
        ck_assert_int_eq(choices[i].impl->handwritten, _i % 2 != 0 && s.first == 2 && s.last == 6);
        buf_release(&text);
    }
}
END_TEST

static const struct {
    struct segment segment;
    const char *impl, *schedule;
    enum status_code code;
    const char *message;
} bad_choices[] = {
    {{2, 1}, "generated", "", STATUS_USAGE, "operators 2-1 are not a segment"},
    {{-1, 1}, "generated", "", STATUS_USAGE, "operators -1-1 are not a segment"},
    {{14, 15}, "generated", "", STATUS_USAGE, "operators 14-15 are not a segment"},
    {{2, 6}, "hopper", "", STATUS_NOT_FOUND, "target cpu has no implementation 'hopper'"},
    {{2, 6}, "generated", "tiles=4", STATUS_USAGE, "'tiles=4' is not KNOB=VALUE with a knob"},
    {{2, 6},
     "generated",
     "lowering=tiled col_block=",
     STATUS_USAGE,
     "col_block of generated has no"},
    {{2, 6}, "generated", "lowering=tiled", STATUS_USAGE, "does not give all knobs of generated"},
};

START_TEST(refuses_bad_choices)
{
    struct choice c;
    FAILS(choice_parse(TARGET_CPU, &chain_bert, bad_choices[_i].segment, bad_choices[_i].impl,
                       bad_choices[_i].schedule, &c, &st),
          bad_choices[_i].code, bad_choices[_i].message);
    ck_assert_ptr_null(c.impl);
}
END_TEST

START_TEST(knobs_without_effect_are_refused)
{
    const char *why = NULL;
    const struct choice rowwise = {&chain_bert, {10, 11}, generated_cpu(), {.pick = {[0] = 1}}};
    const struct choice rows = {&chain_bert, {2, 6}, generated_cpu(), {.pick = {[1] = 1}}};
    ck_assert(!choice_applicable(&rowwise, &build_cpu, &why));
    ck_assert_str_eq(why, "both lowerings give this segment the same stages");
    ck_assert(!choice_applicable(&rows, &build_cpu, &why));
    ck_assert_str_eq(why, "row_block is a knob of GEMMs, and this segment has none");
}
END_TEST

SUITE("impl", NULL, NULL, ONCE(schedule_text_is_words),
      LOOP(choices_survive_their_text, 0, 2 * SEGMENT_COUNT),
      LOOP(refuses_bad_choices, 0, ARRAY_LEN(bad_choices)), ONCE(knobs_without_effect_are_refused))
