#include "base/base.h"
#include "tests/suite.h"

static struct progress p;
static struct buf line;

static void setup(void)
{
    buf_init(&line);
}

static void teardown(void)
{
    buf_release(&line);
}

static void work(const char *phase, int64_t done, int64_t total, double left_s, double now)
{
    progress_work(&p, &(struct step){phase, done, total, left_s}, now);
}

static void part(const char *phase, int64_t done, int64_t total, double left_s, double now)
{
    progress_part(&p, &(struct step){phase, done, total, left_s}, now);
}

/* text: null where no line may be shown. */
static void check(double now, const char *text)
{
    buf_reset(&line);
    ck_assert_int_eq(progress_line(&p, now, &line), text != NULL);
    ck_assert_str_eq(line.ptr, text != NULL ? text : "");
}

TEST(terminals_see_a_command_that_takes_a_second)
{
    progress_init(&p, true, "train", 100);
    check(100.9, NULL);
    check(101, "train | 0:01");
    check(101.2, "train | 0:01");
    check(3825, "train | 1:02:05");
}

TEST(pipes_see_a_line_every_ten_seconds)
{
    int lines = 0;
    progress_init(&p, false, "train", 0);
    for (int i = 0; i < 400; i++) { /* quarters of a second */
        buf_reset(&line);
        lines += progress_line(&p, 0.25 * i, &line);
    }
    ck_assert_int_eq(lines, 9);
}

TEST(lines_hold_all_that_is_known)
{
    progress_init(&p, true, "search", 0);
    work("segments", 0, 0, NAN, 10);
    check(12, "segments | 0:12");
    work("importing", 5000, 0, 3, 12);
    check(12, "importing 5000 | 0:12, ~0:03 left");
    work("plans", 37, 48, 31, 72);
    snprintf(p.best, sizeof(p.best), "best 36507 12.345 ms, ~1.23x 43690");
    check(72, "plans 37 of 48 | best 36507 12.345 ms, ~1.23x 43690 | 1:12, ~0:31 left");
    check(82, "plans 37 of 48 | best 36507 12.345 ms, ~1.23x 43690 | 1:22, ~0:21 left");
    check(200, "plans 37 of 48 | best 36507 12.345 ms, ~1.23x 43690 | 3:20, ~0:00 left");
}

TEST(parts_are_named_if_they_last)
{
    progress_init(&p, true, "bench", 0);
    part("compiling", 3, 8, NAN, 1);
    check(1.5, "bench | 0:02");
    check(2, "bench, compiling 3 of 8 | 0:02");
    part("timing", 1, 20, 19, 3);
    part("timing", 2, 20, 18, 4);
    check(4, "bench, timing 2 of 20 | 0:04, ~0:18 left");
    work("kernels", 1, 8, NAN, 5);
    check(9, "kernels 1 of 8 | 0:09");
    part("timing", 2, 20, 18, 10);
    work("kernels", 2, 8, 6, 10);
    part("timing", 2, 20, 18, 10);
    check(11, "kernels 2 of 8, timing 2 of 20 | 0:11, ~0:05 left");
}

SUITE("progress", setup, teardown)
