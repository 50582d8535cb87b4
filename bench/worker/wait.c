/* Waits for the oracle, and what that means for the device: its clock falls while nothing runs. */
#include "bench/worker/worker_int.h"

/* Another session may have used the device before this one, and says when it ended. */
void worker_note_use(struct worker *k, const json_t *request)
{
    const json_t *idle_s = json_object_get(request, "idle_s");
    if (idle_s != NULL)
        k->last_run_s = fmax(k->last_run_s, clock_seconds() - json_number_value(idle_s));
}

/* Clocks stay high for about a second after the last run.  A CPU's caches hold the data of other
 * programs even then. */
struct warm_up worker_warm_up(const struct worker *k)
{
    return (struct warm_up){.device_s = clock_seconds() - k->last_run_s > 1 ? 0.3 : 0,
                            .each_s = k->ops->undisturbed ? 0 : 0.02};
}

/* Who waits for what. */
struct waiting {
    struct worker *worker;
    struct reference *reference;
};

/* Does what the device would be waited for later. */
static void ready_device(struct worker *k)
{
    enum { TOUCH_MS = 20 }; /* enough for a clock that is high */
    const double start = clock_seconds();
    const double least_s = fmax(worker_warm_up(k).device_s, TOUCH_MS * 1e-3);
    if (k->ops->open_library != NULL)
        k->ops->open_library(k->device);
    while (clock_seconds() - start < least_s && tensors_touch(&k->tensors))
        k->last_run_s = clock_seconds();
}

static void beat_reference(void *ctx, int layer)
{
    const struct waiting *w = ctx;
    worker_doing(w->worker, "computing layer %d with the oracle", layer);
    if (reference_computes(w->reference))
        ready_device(w->worker);
}

void worker_need_reference(struct worker *k, struct reference *r, int layers, bool all_rows)
{
    reference_need(r, layers, all_rows, beat_reference, &(struct waiting){k, r});
}
