/* A bench without compilers and workers, linked in place of the real one: times are those of a
 * made-up space, and what goes wrong is told beforehand. */
#ifndef FUSEPLAN_TESTS_FAKE_BENCH_H
#define FUSEPLAN_TESTS_FAKE_BENCH_H

#include "made_up.h"

struct fake {
    struct made_up space;
    struct workload workload;

    /* What happens. */
    struct segment broken;  /* fails alone and in plans; {-1, -1}: none */
    bool broken_at_build;   /* by the compiler, not at run time */
    unsigned broken_value;  /* a plan that fails though its segments run; 0: none */
    unsigned slow_value;    /* a plan that takes five times its time; 0: none */
    unsigned lucky_value;   /* a plan that takes a tenth of its time, but not side by side */
    int slow_from_plan;     /* from this on every plan takes three times its time; 0: never */
    int slow_plans;         /* only so many of these; 0: all */
    int slow_segments;      /* so many that are timed alone next take 1.1 times their time */
    bool fails_compared[2]; /* side by side: plans with rows of padding fail, packed ones fail */
    bool off_fails;         /* side by side: schedules off their defaults fail */
    bool first_gives_up;    /* side by side: the first plan, if its time has a bound */
    bool clock_falls;       /* side by side with the first way, of which the second is slower */
    double packing;         /* the share of its time that a plan or segment takes packed */
    double by_knob;         /* by what share a segment takes less alone for each such knob; 0.02 */
    double off_in_plan;     /* by what share a plan takes longer for each knob off its default */
    double jitter;          /* plans take up to this share longer or shorter */
    double seconds_per_build, seconds_per_segment, seconds_per_plan; /* that pass on the clock */
    bool beside; /* a compiler runs while the device works */
    bool waits;  /* the session's turn has not come, but will after so many seconds */
    double turn_after_s;
    double clock_s;
    double verify_s;     /* of each trial, and of each later layer */
    double speed;        /* all times are divided by it; 1 */
    int stop_at_call;    /* interrupt; 0: never */
    int no_turn_at_call; /* another process keeps the device until the limit is over; 0: never */
    volatile sig_atomic_t stop;
    struct inputs inputs;
    struct disturbance disturbance;
    bool hopper;        /* the target, whose implementations expect times; else a CPU */
    unsigned precision; /* of the target */
    double e4m3;        /* by what share a plan takes less for each of its GEMMs in e4m3 */

    /* What was asked for.  fits: comparisons of a plan's schedules, before the finals. */
    int calls, built, segments, plans, fits, compares;
    int bounded; /* of segments: timed only while not hopeless */
    bool unlike; /* a fit compared packed tokens with rows of padding */
    struct {
        int lost_count,
            again; /* schedules that made a plan slower; that did so and were tried again */
        struct choice lost[64];
        double furthest; /* the most that one takes alone, over the present one */
    } tries;
    struct {
        int plans;
        struct sampling how;
    } compared[4];               /* of the first comparisons */
    double limit_s, limit_end_s; /* for waiting and building; limit_end_s: on the clock */
    bool ended;                  /* the turn */
    int broken_in_plan;          /* plans in which the broken segment was built or run */
};
extern struct fake fake;

/* bench_* of the fake; the pointer is good for every call. */
struct bench *fake_open(void);
void fake_close(void);

double fake_clock(void); /* for tune_options.clock */

#endif
