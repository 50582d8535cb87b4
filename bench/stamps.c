/* Runs a plan whose kernels leave stamps. */
#include "bench/bench_int.h"

const char *const stamp_names[STAMP_PHASES] = {
    [STAMP_HAND_OVER] = "hand_over", [STAMP_LOADS] = "loads",
    [STAMP_PRODUCTS] = "products",   [STAMP_EPILOGUE] = "epilogue",
    [STAMP_UNDIVIDED] = "undivided", [STAMP_LAST_BLOCK] = "last_block",
};

/* Times the plan beside itself with stamps. */
static int compare(struct bench *b, const struct candidate *both, struct stamps *out,
                   struct status *st)
{
    struct trial t[2];
    if (bench_compare(b, both, 2, &sampling_search, t, st) != 0)
        return -1;
    for (int i = 0; i < 2; i++)
        if (t[i].status != TRIAL_OK && out->reason.code == STATUS_OK)
            out->reason = t[i].reason;
    out->plain_ms = t[0].ms.median;
    out->stamped_ms = t[1].ms.median;
    trial_release(&t[0]);
    trial_release(&t[1]);
    return 0;
}

static int read_parts(const json_t *reply, struct stamps *out, struct status *st)
{
    const json_t *parts = json_object_get(reply, "parts");
    if ((int)json_array_size(parts) != out->count)
        return status_set(st, STATUS_LAUNCH, "malformed stamps: %zu parts, not %d",
                          json_array_size(parts), out->count);
    for (int i = 0; i < out->count; i++)
        for (int phase = 0; phase < STAMP_PHASES; phase++) {
            const json_t *us = json_array_get(json_array_get(parts, (size_t)i), (size_t)phase);
            out->us[i][phase] = json_is_number(us) ? json_number_value(us) : NAN;
        }
    return 0;
}

int bench_stamps(struct bench *b, const struct candidate *c, struct stamps *out, struct status *st)
{
    struct candidate both[2] = {*c, *c};
    json_auto_t *reply = NULL;
    *out = (struct stamps){.count = c->count};
    for (int i = 0; i < c->count; i++)
        both[1].choices[i].stamped = true;
    if (compare(b, both, out, st) != 0)
        return -1;
    if (out->reason.code == STATUS_OK &&
        run_request(b, runnable_of(&both[1]), LOCK_TO_TIME, json_pack("{s:s}", "do", "stamps"),
                    &reply, &out->reason) == 0)
        read_parts(reply, out, &out->reason);
    const enum status_code code = out->reason.code;
    return code != STATUS_INTERRUPTED && code != STATUS_ENVIRONMENT
               ? 0
               : status_set(st, code, "%s", out->reason.message);
}
