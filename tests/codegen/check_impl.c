#include "segments.h"
#include "tests/suite.h"

TEST(schedule_text_is_words)
{
    struct schedule sch = {.pick = {1, 2, 0}};
    SCOPED_BUF text = BUF_INIT;
    schedule_text(generated_cpu(), &sch, &text);
    ck_assert_str_eq(text.ptr, "lowering=rowwise row_block=64 col_block=even");
}

TEST_LOOP(choices_survive_their_text, 0, 2 * SEGMENT_COUNT)
{
    struct choice choices[CHOICES_MAX], parsed;
    struct segment s = segment_at(_i / 2);
    int n = choices_for(&build_cpu, s, _i % 2 != 0, CHOICES_MAX, choices);
    ck_assert_int_ge(n, 1);
    for (int i = 0; i < n; i++) {
        SCOPED_BUF text = BUF_INIT;
        schedule_text(choices[i].impl, &choices[i].schedule, &text);
        OK(choice_parse(TARGET_CPU, &chain_bert, s, choices[i].impl->name, text.ptr, &parsed, &st));
        ck_assert(choice_equal(&parsed, &choices[i]));
        ck_assert_int_eq(choices[i].impl->handwritten, _i % 2 != 0 && s.first == 2 && s.last == 6);
    }
}

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
    {{2, 6}, "generated", "e4m3=out", STATUS_USAGE, "'e4m3=out' is not KNOB=VALUE with a knob"},
};

static const struct {
    const char *schedule, *says; /* says: null if it is right */
} precisions[] = {
    {"tile=64x64 split=1 norm=cluster e4m3=ffn1+ffn2", NULL},
    {"tile=64x64 split=1 norm=cluster e4m3=ffn2+ffn1", "does not give all knobs"},
    {"tile=64x64 split=1 norm=cluster e4m3=", "'e4m3=' names no GEMMs"},
    {"tile=64x64 split=1 norm=cluster e4m3=ffn1+", "'e4m3=ffn1+' names no GEMMs"},
    {"tile=64x64 split=1 norm=cluster e4m3=ffn", "'e4m3=ffn' names no GEMMs"},
    {"tile=64x64 split=1 norm=cluster e4m3", "'e4m3' is not KNOB=VALUE"},
};

TEST_LOOP(schedules_have_a_precision, 0, ARRAY_LEN(precisions))
{
    const char *schedule = precisions[_i].schedule, *says = precisions[_i].says;
    const struct segment s = {10, 11};
    struct choice c;
    int result = choice_parse(TARGET_CUDA, &chain_bert, s, "hopper_gemm", schedule, &c, &st);
    ck_assert_msg(result == 0 ? says == NULL : says != NULL && strstr(st.message, says) != NULL,
                  "%s", st.message);
    if (says == NULL)
        ck_assert_uint_eq(c.schedule.precision, 1 << GEMM_FFN1 | 1 << GEMM_FFN2);
}

/* What a segment has in e4m3 if the plan has all that it touches so; in: -2 where it cannot. */
static const struct {
    const char *chain;
    struct segment s;
    int in, out;
    bool both;
} uses[] = {
    {"bert", {0, 1}, GEMM_QKV, -1, false},
    {"bert", {1, 6}, -1, GEMM_OUT, false},
    {"bert", {2, 5}, -1, -1, false},
    {"bert", {6, 7}, -2, 0, false},
    {"bert", {7, 9}, GEMM_OUT, GEMM_FFN1, true},
    {"bert", {10, 11}, GEMM_FFN1, GEMM_FFN2, false},
    {"bert", {12, 14}, GEMM_FFN2, GEMM_QKV, true},
    {"bert", {9, 10}, -2, 0, false},
    {"pre", {7, 9}, GEMM_OUT, GEMM_FFN1, false},
    {"pre", {12, 14}, GEMM_FFN2, GEMM_QKV, true},
};

TEST_LOOP(segments_use_e4m3, 0, ARRAY_LEN(uses))
{
    const struct chain *chain = chain_find(uses[_i].chain);
    const struct segment s = uses[_i].s;
    const struct choice c = {
        .chain = chain, .segment = s, .schedule = {.precision = (uint8_t)segment_gemms(chain, s)}};
    struct e4m3_use use;
    ck_assert_int_eq(choice_e4m3(&c, &use), uses[_i].in != -2);
    if (uses[_i].in == -2)
        return;
    ck_assert_int_eq(use.in, uses[_i].in);
    ck_assert_int_eq(use.out, uses[_i].out);
    ck_assert_int_eq(use.both, uses[_i].both);
}

TEST_LOOP(refuses_bad_choices, 0, ARRAY_LEN(bad_choices))
{
    struct choice c;
    FAILS(choice_parse(TARGET_CPU, &chain_bert, bad_choices[_i].segment, bad_choices[_i].impl,
                       bad_choices[_i].schedule, &c, &st),
          bad_choices[_i].code, bad_choices[_i].message);
    ck_assert_ptr_null(c.impl);
}

TEST(knobs_without_effect_are_refused)
{
    const char *why = NULL;
    const struct choice rowwise = {.chain = &chain_bert,
                                   .segment = {10, 11},
                                   .impl = generated_cpu(),
                                   .schedule = {{[0] = 1}, 0}};
    const struct choice rows = {.chain = &chain_bert,
                                .segment = {2, 6},
                                .impl = generated_cpu(),
                                .schedule = {{[1] = 1}, 0}};
    ck_assert(!choice_applicable(&rowwise, &build_cpu, &why));
    ck_assert_str_eq(why, "both lowerings give this segment the same stages");
    ck_assert(!choice_applicable(&rows, &build_cpu, &why));
    ck_assert_str_eq(why, "row_block is a knob of GEMMs, and this segment has none");
}

SUITE("impl", NULL, NULL)
