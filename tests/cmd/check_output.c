/* Tables as people read them; what commands print in them is in cases/. */
#include "cmd/cmd.h"
#include "tests/suite.h"

#include <string.h>

static struct status st;
static struct buf printed;

static void setup(void)
{
    test_dir_setup();
    buf_init(&printed);
}

static void teardown(void)
{
    buf_release(&printed);
    test_dir_teardown();
}

static const struct column columns[] = {
    {"value", "value", 0},       {"ops", "ops", 0},       {"by", "by", 0},
    {"schedule", "schedule", 0}, {"us", "us", 2},         {"low", "low", 2},
    {"high", "high", 2},         {"flops", "TFLOP/s", 3}, {"bytes", "GB/s", 1},
    {"roof", "% of roof", 1},
};

/* Prints one row as a table and reads what was printed. */
static void print(const char *schedule)
{
    struct output out;
    ck_assert_ptr_nonnull(freopen(test_path("table"), "w", stdout));
    output_begin(&out, FORMAT_TABLE, columns, ARRAY_LEN(columns));
    output_row(&out, json_pack("{s:i, s:s, s:s, s:s, s:f, s:f, s:f, s:f, s:f, s:f}", "value", 48920,
                               "ops", "10-11", "by", "hopper_attention", "schedule", schedule, "us",
                               24.56, "low", 24.51, "high", 24.66, "flops", 590.112, "bytes",
                               1168.6, "roof", 55.1));
    output_end(&out);
    fflush(stdout);
    ck_assert_int_eq(file_read(test_path("table"), 1 << 16, &printed, &st), 0);
}

/* Whoever copies a name from a table gets all of it. */
START_TEST(a_long_word_is_not_cut)
{
    print("tile=96x192_swap_pingpong split=1 norm=cluster");
    ck_assert_ptr_nonnull(strstr(printed.ptr, "tile=96x192_swap_pingpong "));
    ck_assert_ptr_nonnull(
        strstr(printed.ptr, "\n                                split=1 norm=cluster\n"));
}
END_TEST

SUITE("cmd/output", setup, teardown, ONCE(a_long_word_is_not_cut))
