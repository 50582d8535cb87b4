#include "made_up.h"

#include <math.h>

static int measure(void *ctx, struct plan p, struct outcome *out, struct status *st)
{
    struct made_up *m = ctx;
    unsigned value = plan_value(p);
    m->clock += m->cost;
    m->measured++;
    if (m->measured == m->stop_after) {
        m->stop = 1;
        return status_set(st, STATUS_INTERRUPTED, "stopped");
    }
    *out = (struct outcome){TRIAL_OK, made_up_ms(m, value)};
    if (value == m->censor_value)
        out->status = TRIAL_CENSORED;
    if (value == m->fail_value)
        *out = (struct outcome){TRIAL_FAILED, NAN};
    return 0;
}

static const struct segment_times *segments(void *ctx)
{
    return &((struct made_up *)ctx)->times;
}

static double now(void *ctx)
{
    return ((struct made_up *)ctx)->clock;
}

struct evaluator made_up_evaluator(struct made_up *m)
{
    return (struct evaluator){.measure = measure, .segments = segments, .now = now, .ctx = m};
}
