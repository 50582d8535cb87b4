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
    *out = (struct outcome){.status = TRIAL_OK, .ms = made_up_ms(m, value)};
    if (value == m->censor_value)
        out->status = TRIAL_CENSORED;
    if (value == m->fail_value)
        *out = (struct outcome){.status = TRIAL_FAILED, .ms = NAN};
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

static void add_header(const struct made_up *m, int version, const char *target,
                       const char *segments, unsigned lo, unsigned hi, struct buf *out)
{
    buf_addf(out,
             "{\"format\":\"fuseplan space\",\"version\":%d,\"workload\":{\"batch\":1,\"seq_len\":"
             "8,\"mask\":\"full\",\"heads\":2,\"head_size\":8,\"ffn\":64,\"layers\":1,\"eps\":1e-5,"
             "\"dtype\":\"fp32\",\"target\":\"%s\",\"lengths\":null},\"target\":{\"kind\":"
             "\"%s\",\"device\":\"\",\"uuid\":\"\",\"capability\":\"\",\"units\":1,\"driver\":"
             "\"\",\"compiler\":\"\",\"libraries\":\"\"},\"protocol\":\"1\",\"space\":[%u,%u]"
             ",\"counts\":{\"%s\":%d,\"plans\":%d},\"best\":{\"value\":%u},\"measured_utc\":"
             "\"\"}\n",
             version, target, target, lo, hi, segments, SLOT_COUNT, m->count,
             plan_value(m->space[m->best]));
}

void made_up_recorded(const struct made_up *m, unsigned lo, unsigned hi, struct buf *out)
{
    add_header(m, 1, "cpu", "segments", lo, hi, out);
    for (int i = 0; i < SLOT_COUNT; i++)
        buf_addf(out, "{\"ops\":[%d,%d],\"handwritten\":%s,\"us\":%.2f}\n", slot_segment(i).first,
                 slot_segment(i).last, i == SLOT_HANDWRITTEN ? "true" : "false",
                 1e3 * m->times.ms[i]);
    for (int i = 0; i < m->count; i++)
        buf_addf(out, "[%u,%.2f,%.2f,%.2f]\n", plan_value(m->space[i]), 1e3 * m->ms[i],
                 0.999e3 * m->ms[i], 1.001e3 * m->ms[i]);
}

void made_up_recorded_with(const struct made_up *m, const char *target, unsigned lo, unsigned hi,
                           double attempt_s, double plan_s, struct buf *out)
{
    add_header(m, 2, target, "attempts", lo, hi, out);
    for (int i = 0; i < SLOT_COUNT; i++)
        buf_addf(
            out,
            "{\"ops\":[%d,%d],\"handwritten\":%s,\"implementation\":\"%s\",\"schedule\":\"\","
            "\"us\":%.2f,\"build_s\":1,\"verify_s\":0,\"time_s\":%g}\n",
            slot_segment(i).first, slot_segment(i).last, i == SLOT_HANDWRITTEN ? "true" : "false",
            i == SLOT_HANDWRITTEN ? "attention" : "generated", 1e3 * m->times.ms[i], attempt_s - 1);
    for (int i = 0; i < m->count; i++)
        buf_addf(out, "[%u,%g,%.2f,%.2f,%.2f]\n", plan_value(m->space[i]), plan_s, 1e3 * m->ms[i],
                 0.999e3 * m->ms[i], 1.001e3 * m->ms[i]);
}
