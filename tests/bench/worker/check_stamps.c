/* From made-up stamps to times. */
#include "bench/worker/worker_int.h"
#include "tests/suite.h"

enum { UNITS = 5, BLOCKS = 12, LAUNCHES = 20, SINCE = 2000000000 };

static struct fp_stamps blocks[LAUNCHES][BLOCKS];
static struct launch_stamps launches[LAUNCHES];
static double us[LAUNCHES][STAMP_PHASES];

/* Multiprocessors count 1.7 cycles in a nanosecond, each from a number of its own, which is near
 * the end of 64 bits for the last one. */
static unsigned long long cycles(int unit, double ns)
{
    const unsigned long long begin = unit == UNITS - 1 ? -3000ull : (unsigned)unit * 77777777u;
    return begin + (unsigned long long)(1.7 * ns + 0.5);
}

/* Launch i begins at 5000 i, ns, and its thread block b comes b ns later to each step after the
 * wait.  tick: of the GPU's clock. */
static void lay_out(int tick)
{
    for (int i = 0; i < LAUNCHES; i++) {
        for (int b = 0; b < BLOCKS; b++) {
            const int unit = (b + i) % UNITS, begun = 5000 * i - 400 + 97 * b;
            struct fp_stamps *s = &blocks[i][b];
            *s = (struct fp_stamps){.multiprocessor = (unsigned)unit,
                                    .ns = (unsigned long long)((SINCE + begun) / tick * tick)};
            s->at[FP_STAMP_BEGUN] = cycles(unit, SINCE + begun);
            s->at[FP_STAMP_WAITED] = ~cycles(unit, SINCE + 5000 * i + 700);
            s->at[FP_STAMP_FIRST] = ~cycles(unit, SINCE + 5000 * i + 1500 + b);
            s->at[FP_STAMP_SUMS] = cycles(unit, SINCE + 5000 * i + 3000 + b);
            s->at[FP_STAMP_END] = cycles(unit, SINCE + 5000 * i + 4989 + b);
        }
        launches[i] = (struct launch_stamps){BLOCKS, blocks[i]};
    }
}

static void check(int launch, double tolerance, const double want[STAMP_PHASES])
{
    for (int phase = 0; phase < STAMP_PHASES; phase++)
        if (isnan(want[phase]))
            ck_assert_double_nan(us[launch][phase]);
        else
            ck_assert_double_eq_tol(us[launch][phase], want[phase], tolerance);
}

/* The median thread block is 5.5 ns behind the first. */
TEST(phases_add_up_to_a_launch)
{
    lay_out(1);
    stamps_times(launches, LAUNCHES, us);
    for (int i = 1; i < LAUNCHES; i++) {
        check(i, 2e-3, (const double[]){0.7, 0.8055, 1.5, 1.989, NAN, 0.0055});
        double sum = 0;
        for (int phase = 0; phase < STAMP_PHASES; phase++)
            sum += isnan(us[i][phase]) ? 0 : us[i][phase];
        ck_assert_double_eq_tol(sum, 5, 1e-3);
    }
}

/* Nothing was in front of the first launch: its time begins with its first thread block. */
TEST(first_launch_begins_with_itself)
{
    lay_out(1);
    stamps_times(launches, 1, us);
    check(0, 2e-3, (const double[]){1.1, 0.8055, 1.5, 1.989, NAN, 0.0055});
}

/* The GPU's clock ticks every microsecond; thread blocks begin at all times between. */
TEST(coarse_clock_is_fitted)
{
    lay_out(1000);
    stamps_times(launches, LAUNCHES, us);
    for (int i = 1; i < LAUNCHES; i++)
        check(i, 0.25, (const double[]){0.7, 0.8055, 1.5, 1.989, NAN, 0.0055});
}

/* A library's kernel is counted to the hand-over of the next one, as is all that is in front. */
TEST(launch_without_stamps_is_in_the_next_hand_over)
{
    lay_out(1);
    launches[3].blocks = launches[4].blocks = 0;
    stamps_times(launches, LAUNCHES, us);
    check(3, 0, (const double[]){NAN, NAN, NAN, NAN, NAN, NAN});
    check(4, 0, (const double[]){NAN, NAN, NAN, NAN, NAN, NAN});
    check(5, 2e-3, (const double[]){10.7, 0.8055, 1.5, 1.989, NAN, 0.0055});
    check(6, 2e-3, (const double[]){0.7, 0.8055, 1.5, 1.989, NAN, 0.0055});
}

TEST(kernel_without_products_is_not_divided)
{
    lay_out(1);
    for (int b = 0; b < BLOCKS; b++)
        blocks[2][b].at[FP_STAMP_FIRST] = blocks[2][b].at[FP_STAMP_SUMS] = 0;
    stamps_times(launches, LAUNCHES, us);
    check(2, 2e-3, (const double[]){0.7, NAN, NAN, NAN, 4.2945, 0.0055});
}

/* Thread blocks without a tile end early, and the median is of the others. */
TEST(thread_blocks_without_a_tile_do_not_count)
{
    lay_out(1);
    for (int b = 0; b < 9; b++)
        blocks[2][b].at[FP_STAMP_FIRST] = blocks[2][b].at[FP_STAMP_SUMS] = 0;
    stamps_times(launches, LAUNCHES, us);
    check(2, 2e-3, (const double[]){0.7, 0.81, 1.5, 1.989, NAN, 0.001});
}

SUITE("stamps", NULL, NULL)
