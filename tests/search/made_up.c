#include "made_up.h"

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

/* Appends the members that follow a trial's kind, value and choices. */
static void add_times(double ms, struct buf *out)
{
    buf_addf(out,
             "\"status\":\"ok\",\"stored_utc\":\"2026-01-01T00:00:00.000Z\",\"median_ms\":%.9g,"
             "\"ci_low_ms\":%.9g,\"ci_high_ms\":%.9g,\"sample_count\":0,\"layers_timed\":0}\n",
             ms, 0.999 * ms, 1.001 * ms);
}

static void add_choice(int slot, struct buf *out)
{
    struct segment s = slot_segment(slot);
    buf_addf(out, "\"%d", s.first);
    if (s.last > s.first)
        buf_addf(out, "-%d", s.last);
    buf_addf(out, " %s x=1\"", slot == SLOT_HANDWRITTEN ? "handwritten" : "generated");
}

void made_up_recorded(const struct made_up *m, struct buf *out)
{
    buf_adds(
        out,
        "{\"format\":\"fuseplan results\",\"version\":1}\n{\"study\":\"1\",\"inputs\":{\"init\":"
        "\"uniform\",\"seed\":0},\"protocol\":\"1\",\"created_utc\":\"2026-01-01T00:00:00.000Z\","
        "\"target\":{\"kind\":\"cpu\",\"device\":\"\",\"uuid\":\"\",\"capability\":\"\",\"units\":"
        "1,"
        "\"driver\":\"\",\"compiler\":\"\",\"libraries\":\"\"},\"workload\":{\"text\":\"b=1 s=8 "
        "h=2 w=8 "
        "f=64 l=1 eps=1e-05 dtype=fp32 lengths=full mask=full\",\"batch\":1,\"seq_len\":8,\"mask\":"
        "\"full\",\"heads\":2,\"head_size\":8,\"ffn\":64,\"layers\":1,\"eps\":1e-05,\"dtype\":"
        "\"fp32\",\"lengths\":\"full\"}}\n");
    for (int i = 0; i < SLOT_COUNT; i++) {
        buf_adds(out, "{\"study\":\"1\",\"trial\":\"segment\",\"choices\":[");
        add_choice(i, out);
        buf_adds(out, "],");
        add_times(m->times.ms[i], out);
    }
    for (int i = 0; i < m->count; i++) {
        int slots[OP_COUNT], count = plan_slots(m->space[i], slots);
        buf_addf(out, "{\"study\":\"1\",\"trial\":\"plan\",\"value\":%u,\"choices\":[",
                 plan_value(m->space[i]));
        for (int k = 0; k < count; k++) {
            buf_adds(out, k > 0 ? "," : "");
            add_choice(slots[k], out);
        }
        buf_adds(out, "],");
        add_times(m->ms[i], out);
    }
}
