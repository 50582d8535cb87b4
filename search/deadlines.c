/* When the phases of a search must end.  The time of the finals is kept back first. */
#include "search/tuner_int.h"

/* Shares of a time limit.  The finals get FINALS_SHARE at least.  If they would take more than
 * FINALS_MOST, they cannot be held, and the time goes to plans.  Stage 1 ends after STAGE1_SHARE of
 * the time that is left when it begins or goes on, or earlier if the finals need more: it leaves
 * stage 2 a share of the time before them. */
#define FINALS_SHARE 0.15
#define FINALS_MOST  0.9
#define STAGE1_SHARE 0.5
#define STAGE2_SHARE 0.4

/* The finals may begin late, on a machine that has become slower: they get so many times what they
 * need, up to a share of the limit. */
enum { LATE = 2 };
#define LATE_SHARE 0.5

static double finals_begin(const struct tuner *t)
{
    if (isinf(t->end))
        return t->end;
    double limit = t->end - t->start, least = least_finals_seconds(t);
    if (least > FINALS_MOST * limit)
        return t->end;
    double kept = fmax(least, fmin(LATE * least, LATE_SHARE * limit));
    return t->end - fmax(FINALS_SHARE * limit, kept);
}

/* An exhaustive search may spend on stage 1 all the time before the finals: its plans all run the
 * choices that stage 1 ends with. */
double stage1_end(const struct tuner *t)
{
    double begin = finals_begin(t);
    if (is_exhaustive(t))
        return begin;
    return t->round +
           fmin(STAGE1_SHARE * (t->end - t->round), (1 - STAGE2_SHARE) * (begin - t->round));
}

/* Half of what is left to stage 1: other plans may be faster. */
double first_climb_end(const struct tuner *t)
{
    return t->first.climb + (stage1_end(t) - t->first.climb) / 2;
}

double stage2_end(const struct tuner *t)
{
    return finals_begin(t);
}
