#include "bench/worker_int.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

enum { LAST_TENSOR = TENSOR_COUNT - 1, LAYER_FACTOR = 4 /* a layer's tolerance in segments' */ };

/* The device's tensor against the oracle's. */
static int compare(struct worker *k, int layer, int t, const double *ref, double tolerance,
                   double *worst, struct status *st)
{
    int64_t n = tensor_elements(t, &k->w);
    float *out = mem_alloc((size_t)n, sizeof(*out));
    void *memory;
    int result = bank_tensor(&k->bank, layer, t, &memory, st);
    if (result == 0)
        result = k->ops->download(k->device, out, memory, n, st);
    if (result == 0) {
        struct oracle_error e = oracle_compare(&k->w, t, out, ref);
        if (!(e.tensor <= *worst)) /* true of a NaN too */
            *worst = e.tensor;
        if (!oracle_accepts(e, tolerance))
            result = status_set(st, STATUS_WRONG,
                                "wrong result: the output of %s %s differs from the oracle's by "
                                "%.2g of its norm, by %.2g in the row at element %" PRId64
                                "; %.2g is allowed",
                                ops[t - 1].name, tensor_shape_text(t), e.tensor, e.worst_row,
                                e.worst_index, tolerance);
    }
    free(out);
    return result;
}

static int run_once(struct worker *k, struct replay *r, struct status *st)
{
    double seconds;
    return k->ops->run(r, 1, &seconds, st);
}

/* One part on layer 0's inputs; everything that it writes is poisoned first. */
static int verify_part(struct worker *k, const struct program *p, const struct part *part,
                       double *worst, struct status *st)
{
    struct launch launch;
    struct replay *replay = NULL;
    uint16_t inputs = segment_inputs(part->choice.segment),
             outputs = segment_outputs(part->choice.segment);
    int result = program_launch(k, part, 0, 0, &launch, st);
    if (result == 0)
        result = program_feed(k, part->choice.segment, st);
    if (result == 0)
        result = bank_poison(&k->bank, 0, part->tensors & (uint16_t)~inputs, st);
    if (result == 0)
        result = k->ops->prepare(k->device, &launch, 1, &replay, st);
    if (result == 0)
        result = run_once(k, replay, st);
    for (int t = 0; t < TENSOR_COUNT && result == 0; t++)
        if (outputs >> t & 1)
            result = compare(k, 0, t, k->reference.first.tensor[t], p->tolerance, worst, st);
    k->ops->release(replay);
    return result != 0 ? status_prefix(st, "%s", part->name) : 0;
}

static uint16_t tensors_of(const struct program *p)
{
    unsigned set = 0;
    for (int i = 0; i < p->part_count; i++)
        set |= p->parts[i].tensors;
    return (uint16_t)set;
}

static int upload_x(struct worker *k, int layer, const float *values, struct status *st)
{
    void *memory;
    if (bank_tensor(&k->bank, layer, TENSOR_X, &memory, st) != 0)
        return -1;
    return k->ops->upload(k->device, memory, values, tensor_elements(TENSOR_X, &k->w), st);
}

/* Each layer fed what the oracle fed its own. */
static int verify_layers(struct worker *k, struct program *p, struct status *st)
{
    uint16_t written = tensors_of(p) & (uint16_t) ~(1u << TENSOR_X);
    for (int l = 0; l < p->layers; l++) {
        worker_doing(k, "verifying layer %d of the plan", l);
        if (upload_x(k, l, k->reference.x[l], st) != 0 ||
            bank_poison(&k->bank, l, written, st) != 0 || run_once(k, p->layer[l], st) != 0)
            return -1;
        if (compare(k, l, LAST_TENSOR, k->reference.y[l], LAYER_FACTOR * p->tolerance, &p->error,
                    st) != 0)
            return status_prefix(st, "layer %d", l);
    }
    return 0;
}

static int download_result(struct worker *k, const struct program *p, float **out,
                           struct status *st)
{
    int64_t n = tensor_elements(LAST_TENSOR, &k->w);
    void *memory;
    *out = NULL;
    if (bank_tensor(&k->bank, p->layers - 1, LAST_TENSOR, &memory, st) != 0)
        return -1;
    *out = mem_alloc((size_t)n, sizeof(**out));
    return k->ops->download(k->device, *out, memory, n, st);
}

/* Bit by bit on the real rows; what lies in padding is nobody's. */
static bool equal_results(const struct workload *w, const float *a, const float *b)
{
    size_t hidden = (size_t)workload_hidden(w);
    for (int row = 0; row < w->batch; row++) {
        size_t at = (size_t)row * (size_t)w->seq_len * hidden;
        size_t real = (size_t)(w->lengths != NULL ? w->lengths[row] : w->seq_len) * hidden;
        if (memcmp(a + at, b + at, real * sizeof(*a)) != 0)
            return false;
    }
    return true;
}

/* The layers as one run against the layers one by one, with the tensors inside a layer poisoned in
 * between: a plan that reads what a layer before left behind is found out. */
static int verify_whole(struct worker *k, struct program *p, struct status *st)
{
    uint16_t inside = tensors_of(p) & (uint16_t) ~(1u << TENSOR_X);
    float *whole = NULL;
    worker_doing(k, "verifying the plan as a whole");
    int result = upload_x(k, 0, k->reference.x[0], st);
    for (int l = 0; l < p->layers && result == 0; l++) {
        result = bank_poison(&k->bank, l, inside, st);
        if (result == 0)
            result = run_once(k, p->layer[l], st);
    }
    if (result == 0)
        result = download_result(k, p, &p->result, st);
    if (result == 0)
        result = run_once(k, p->whole, st);
    if (result == 0)
        result = download_result(k, p, &whole, st);
    if (result == 0 && !equal_results(&k->w, whole, p->result))
        result = status_set(st, STATUS_WRONG,
                            "wrong result: %d layers in one run give another "
                            "result than one by one",
                            p->layers);
    free(whole);
    return result;
}

int verify_program(struct worker *k, struct program *p, struct status *st)
{
    for (int i = 0; i < p->part_count; i++) {
        struct part *part = &p->parts[i];
        double error = 0;
        if (part->verdict == NULL)
            continue;
        worker_need_reference(k, 1);
        worker_doing(k, "verifying %s", part->name);
        int result = verify_part(k, p, part, &error, st);
        if (!(error <= p->error))
            p->error = error;
        if (result != 0)
            return -1;
        worker_passed(k, part->verdict, error);
    }
    worker_need_reference(k, p->alone ? 1 : p->layers);
    if (p->alone)
        return program_feed(k, p->parts[0].choice.segment, st);
    if (verify_layers(k, p, st) != 0)
        return -1;
    return verify_whole(k, p, st);
}

int verify_again(struct worker *k, struct program *p, struct status *st)
{
    double error = 0;
    if (p->alone) {
        worker_doing(k, "verifying %s after timing", p->parts[0].name);
        if (verify_part(k, p, &p->parts[0], &error, st) != 0)
            return status_prefix(st, "after timing");
        return 0;
    }
    float *after = NULL;
    worker_doing(k, "verifying the plan after timing");
    int result = run_once(k, p->whole, st);
    if (result == 0)
        result = download_result(k, p, &after, st);
    if (result == 0 && !equal_results(&k->w, after, p->result))
        result = status_set(st, STATUS_WRONG,
                            "wrong result: after timing the plan gives another "
                            "result than before");
    free(after);
    return result;
}
