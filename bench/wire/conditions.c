#include "bench/wire/wire.h"

static const struct {
    unsigned bit;     /* NVML's nvmlClocksEventReason* */
    const char *name; /* in JSON */
    const char *text; /* for people */
    bool disturbs;    /* not the power cap's: a GPU under tensor load settles at its power cap */
} slowdowns[] = {
    {0x04, "power_cap", "power cap", false},
    {0x08, "hardware", "hardware slowdown", true},
    {0x20, "temperature", "temperature", true},
    {0x40, "temperature_hardware", "temperature (hardware)", true},
    {0x80, "power_brake", "power brake", true},
};

void slowdown_text(unsigned slowed_by, struct buf *out)
{
    const char *before = "";
    for (size_t i = 0; i < ARRAY_LEN(slowdowns); i++)
        if ((slowed_by & slowdowns[i].bit) != 0) {
            buf_addf(out, "%s%s", before, slowdowns[i].text);
            before = ", ";
        }
}

/* ---- as JSON --------------------------------------------------------------------------------- */

static json_t *slowdown_names(unsigned slowed_by)
{
    json_t *names = json_array();
    for (size_t i = 0; i < ARRAY_LEN(slowdowns); i++)
        if ((slowed_by & slowdowns[i].bit) != 0)
            json_array_append_new(names, json_string(slowdowns[i].name));
    return names;
}

static unsigned slowdown_bits(const json_t *names)
{
    unsigned bits = 0;
    for (size_t n = 0; n < json_array_size(names); n++) {
        const char *name = json_string_value(json_array_get(names, n));
        for (size_t i = 0; i < ARRAY_LEN(slowdowns); i++)
            if (name != NULL && strcmp(slowdowns[i].name, name) == 0)
                bits |= slowdowns[i].bit;
    }
    return bits;
}

json_t *message_of_conditions(const struct conditions *c)
{
    if (c->cpu)
        return json_pack("{s:f, s:f, s:f}", "waited_share", c->waited_share, "other_cores",
                         c->other_cores, "stopped_share", c->stopped_share);
    if (!c->known)
        return json_null();
    json_t *others = c->other_processes < 0 ? json_null() : json_integer(c->other_processes);
    return json_pack("{s:i, s:i, s:i, s:i, s:f, s:f, s:o, s:o, s:b}", "sm_mhz", c->sm_mhz,
                     "max_sm_mhz", c->max_sm_mhz, "memory_mhz", c->memory_mhz, "temperature_c",
                     c->temperature_c, "power_w", c->power_w, "power_limit_w", c->power_limit_w,
                     "slowed_by", slowdown_names(c->slowed_by), "other_processes", others, "mig",
                     (int)c->mig);
}

void message_to_conditions(const json_t *m, struct conditions *out)
{
    struct conditions c = {.known = true};
    json_t *names, *others;
    int mig;
    *out = (struct conditions){.known = false};
    if (json_unpack((json_t *)(uintptr_t)m, "{s:F, s:F, s?F}", "waited_share", &c.waited_share,
                    "other_cores", &c.other_cores, "stopped_share", &c.stopped_share) == 0) {
        *out = c;
        out->cpu = true;
        out->known = false;
        return;
    }
    if (json_unpack((json_t *)(uintptr_t)m, "{s:i, s:i, s:i, s:i, s:F, s:F, s:o, s:o, s:b}",
                    "sm_mhz", &c.sm_mhz, "max_sm_mhz", &c.max_sm_mhz, "memory_mhz", &c.memory_mhz,
                    "temperature_c", &c.temperature_c, "power_w", &c.power_w, "power_limit_w",
                    &c.power_limit_w, "slowed_by", &names, "other_processes", &others, "mig",
                    &mig) != 0)
        return;
    c.slowed_by = slowdown_bits(names);
    c.other_processes = json_is_integer(others) ? (int)json_integer_value(others) : -1;
    c.mig = mig != 0;
    *out = c;
}

void conditions_json(const struct conditions *c, struct buf *out)
{
    enum { DIGITS = 6 }; /* of watts, rates and shares */
    if (!c->known && !c->cpu)
        return;
    json_auto_t *object = message_of_conditions(c);
    if (c->peaks.flops_per_s > 0) /* false of a NaN */
        json_object_set_new(object, "peak_flops_per_s", json_real(c->peaks.flops_per_s));
    if (c->peaks.bytes_per_s > 0)
        json_object_set_new(object, "peak_bytes_per_s", json_real(c->peaks.bytes_per_s));
    SCOPED char *text = json_dumps(object, JSON_REAL_PRECISION(DIGITS));
    buf_adds(out, text);
}

void conditions_parse(const char *json, struct conditions *out)
{
    json_auto_t *object = json_loads(json, 0, NULL);
    message_to_conditions(object, out);
}

/* ---- disturbances ---------------------------------------------------------------------------- */

bool conditions_crowded(const struct conditions *c)
{
    const double share = 0.1;
    return c->cpu && c->waited_share > share;
}

bool conditions_throttled(const struct conditions *c)
{
    return conditions_crowded(c) && c->stopped_share > c->waited_share / 2;
}

void disturbance_add(struct disturbance *d, const struct conditions *c)
{
    d->crowded += conditions_crowded(c);
    d->throttled += conditions_throttled(c);
    if (conditions_crowded(c) && c->waited_share > d->waited_share)
        d->waited_share = c->waited_share;
    unsigned reasons = 0;
    for (size_t i = 0; i < ARRAY_LEN(slowdowns); i++)
        if (slowdowns[i].disturbs)
            reasons |= c->slowed_by & slowdowns[i].bit;
    d->measured += c->known || c->cpu;
    d->slowed += reasons != 0;
    d->slowed_by |= reasons;
    if (c->other_processes > d->other_processes)
        d->other_processes = c->other_processes;
    d->mig |= c->mig;
}

void disturbance_sharing_text(const struct disturbance *d, struct buf *out)
{
    bool one = d->other_processes == 1;
    if (d->other_processes > 0)
        buf_addf(out,
                 "%d other process%s this GPU, which may show in the times; nvidia-smi names %s",
                 d->other_processes, one ? " uses" : "es use", one ? "it" : "them");
    else if (d->mig)
        buf_adds(out, "this is a part of a GPU (MIG): other parts' work may show in the times");
}

void disturbance_crowd_text(const struct disturbance *d, struct buf *out)
{
    const char *by = "other programs kept cores busy";
    if (d->crowded > 0 && d->throttled == d->crowded)
        by = "the control group's quota of CPU time stopped this program";
    else if (d->throttled > 0)
        by = "other programs, and the control group's quota of CPU time, kept this program waiting";
    if (d->crowded > 0)
        buf_addf(out,
                 "%s during %d of %d measurements: threads waited up to "
                 "%.0f %% of their time for a core, and those times are too long",
                 by, d->crowded, d->measured, 100 * d->waited_share);
}

void disturbance_slowdown_text(const struct disturbance *d, struct buf *out)
{
    if (d->slowed == 0)
        return;
    buf_addf(out, "the GPU slowed itself down during %d of %d measurements (", d->slowed,
             d->measured);
    slowdown_text(d->slowed_by, out);
    buf_adds(out, "): those times are too long");
}
