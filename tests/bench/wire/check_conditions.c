#include "bench/wire/wire.h"
#include "tests/suite.h"

static const struct conditions some = {.known = true,
                                       .sm_mhz = 1410,
                                       .max_sm_mhz = 1980,
                                       .memory_mhz = 1593,
                                       .temperature_c = 45,
                                       .power_w = 350.5,
                                       .power_limit_w = 700,
                                       .slowed_by = 0x24,
                                       .other_processes = 2};

static const struct conditions crowded = {
    .cpu = true, .waited_share = 0.25, .other_cores = 1.5, .stopped_share = 0.125};

TEST(conditions_are_written_as_json)
{
    SCOPED_BUF text = BUF_INIT;
    conditions_json(&some, &text);
    ck_assert_str_eq(text.ptr,
                     "{\"sm_mhz\": 1410, \"max_sm_mhz\": 1980, \"memory_mhz\": 1593,"
                     " \"temperature_c\": 45, \"power_w\": 350.5, \"power_limit_w\": 700.0,"
                     " \"slowed_by\": [\"power_cap\", \"temperature\"], \"other_processes\": 2,"
                     " \"mig\": false}");
    buf_reset(&text);
    struct conditions peaks = some;
    peaks.peaks = (struct limits){9.89e14, NAN};
    conditions_json(&peaks, &text);
    ck_assert_ptr_nonnull(strstr(text.ptr, "\"mig\": false, \"peak_flops_per_s\": 9.89e14}"));
    buf_reset(&text);
    conditions_json(&crowded, &text);
    ck_assert_str_eq(text.ptr,
                     "{\"waited_share\": 0.25, \"other_cores\": 1.5, \"stopped_share\": 0.125}");
    struct conditions back;
    conditions_parse(text.ptr, &back);
    ck_assert(back.cpu);
    ck_assert_double_eq(back.waited_share, 0.25);
    conditions_parse("", &back);
    ck_assert(!back.cpu && !back.known);
    buf_reset(&text);
    conditions_json(&(struct conditions){.known = false}, &text);
    ck_assert_str_eq(text.ptr, "");
}

TEST(conditions_survive_the_journey)
{
    struct conditions to[] = {some, {.known = false}, some, crowded}, back;
    to[2].other_processes = -1;
    to[2].mig = true;
    to[2].slowed_by = 0;
    for (size_t i = 0; i < ARRAY_LEN(to); i++) {
        json_auto_t *m = message_of_conditions(&to[i]);
        SCOPED_BUF sent = BUF_INIT, got = BUF_INIT;
        message_to_conditions(m, &back);
        conditions_json(&to[i], &sent);
        conditions_json(&back, &got);
        ck_assert_str_eq(got.ptr, sent.ptr);
    }
}

/* Measurements, and what is said of them all.  say: null where nothing is. */
static const struct {
    struct conditions of[2];
    void (*say)(const struct disturbance *d, struct buf *out);
    const char *says;
} days[] = {
    {{{.known = true}, {.known = true, .slowed_by = 0x04}}, NULL, ""}, /* a power cap: as usual */
    {{{.known = true, .slowed_by = 0xa4}, {.known = true}},
     disturbance_slowdown_text,
     "the GPU slowed itself down during 1 of 2 measurements (temperature, power brake): those "
     "times are too long"},
    {{{.known = true, .other_processes = 1}, {.known = true, .other_processes = 3}},
     disturbance_sharing_text,
     "3 other processes use this GPU, which may show in the times; nvidia-smi names them"},
    {{{.known = true, .mig = true}, {.known = true, .mig = true}},
     disturbance_sharing_text,
     "this is a part of a GPU (MIG): other parts' work may show in the times"},
    {{{.cpu = true, .waited_share = 0.25}, {.cpu = true, .waited_share = 0.05}},
     disturbance_crowd_text,
     "other programs kept cores busy during 1 of 2 measurements: threads waited up to 25 % of "
     "their time for a core, and those times are too long"},
    {{{.cpu = true, .waited_share = 0.25, .stopped_share = 0.24},
      {.cpu = true, .waited_share = 0.5, .stopped_share = 0.1}},
     disturbance_crowd_text,
     "other programs, and the control group's quota of CPU time, kept this program waiting during "
     "2 of 2 measurements: threads waited up to 50 % of their time for a core, and those times are "
     "too long"},
};

TEST_LOOP(disorder_is_told, 0, ARRAY_LEN(days))
{
    void (*const all[])(const struct disturbance *d, struct buf *out) = {
        disturbance_sharing_text, disturbance_slowdown_text, disturbance_crowd_text};
    struct disturbance d = {.measured = 0};
    for (size_t i = 0; i < ARRAY_LEN(days[_i].of); i++)
        disturbance_add(&d, &days[_i].of[i]);
    for (size_t i = 0; i < ARRAY_LEN(all); i++) {
        SCOPED_BUF text = BUF_INIT;
        all[i](&d, &text);
        ck_assert_str_eq(text.ptr, all[i] == days[_i].say ? days[_i].says : "");
    }
}

SUITE("conditions", NULL, NULL)
