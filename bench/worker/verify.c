#include "bench/worker/worker_int.h"

#include <inttypes.h>

/* Judges the error of a tensor; raises *worst to it. */
static int judge(struct worker *k, int t, struct oracle_error e, double tolerance, double *worst,
                 struct status *st)
{
    if (!(e.tensor <= *worst)) /* true of a NaN too */
        *worst = e.tensor;
    if (oracle_accepts(e, tolerance))
        return 0;
    return status_set(st, STATUS_WRONG,
                      "wrong result: the output of %s %s differs from the oracle's by %.2g of its "
                      "norm, by %.2g in the row at element %" PRId64 "; %.2g is allowed",
                      tensor_name(k->w.chain, t), tensor_shape_text(k->w.chain, t), e.tensor,
                      e.worst_row, e.worst_index, tolerance);
}

/* Compares the device's tensor with the oracle's. */
static int compare(struct worker *k, int layer, int t, const struct oracle_results *right,
                   double tolerance, double *worst, struct status *st)
{
    struct comparison c;
    comparison_init(&c, right, t);
    for (struct rows rows = {0, 0}; tensors_next_rows(&k->tensors, t, &rows);) {
        struct rows wanted = rows;
        if (comparison_narrow(&c, &wanted))
            comparison_add(&c, wanted, tensors_view(&k->tensors, layer, t, wanted));
    }
    return judge(k, t, comparison_end(&c), tolerance, worst, st);
}

/* last: the layer that ran last. */
static void hash_tensor(struct worker *k, int layer, int last, int t, char out[HASH_TEXT_SIZE])
{
    const struct workload *w = workload_of_layer(&k->w, last);
    struct result_hash h;
    uint64_t whole;
    if (result_hash_is_whole(w, t) && tensors_hash(&k->tensors, layer, t, &whole)) {
        snprintf(out, HASH_TEXT_SIZE, "%016" PRIx64, whole);
        return;
    }
    result_hash_init(&h, w, t);
    for (struct rows rows = {0, 0}; tensors_next_rows(&k->tensors, t, &rows);)
        result_hash_add(&h, rows, tensors_view(&k->tensors, layer, t, rows));
    result_hash_end(&h, out);
}

/* Whether the bits of a part's outputs are kept once the oracle has accepted them. */
static bool keeps_bits(const struct program *p, const struct part *part, int layer)
{
    return p->alone && !p->packed && layer == 0 && part->e4m3.in < 0 && part->e4m3.out < 0;
}

static void hash_outputs(struct worker *k, const struct part *part, char out[HASH_TEXT_SIZE])
{
    char each[TENSOR_COUNT][HASH_TEXT_SIZE] = {""};
    for (int t = 0; t < TENSOR_COUNT; t++)
        if ((segment_outputs(k->w.chain, part->choice.segment) >> t & 1) != 0)
            hash_tensor(k, 0, 0, t, each[t]);
    hash_text(each, sizeof(each), out);
}

/* Whether a part stores what the oracle has accepted, which is sooner told than compared again. */
static bool same_outputs(struct worker *k, const struct part *part)
{
    char now[HASH_TEXT_SIZE];
    hash_outputs(k, part, now);
    return strcmp(now, part->right) == 0;
}

/* Compares what a part stores for others.  scale: of what it stores in e4m3. */
static int compare_outputs(struct worker *k, const struct program *p, struct part *part, int layer,
                           float scale, double *worst, struct status *st)
{
    const int in = part->e4m3.in, last = TENSOR_OF(part->choice.segment.last);
    const struct oracle_results *right =
        in >= 0 ? verify_rounded_gemm(k, layer, in) : &k->reference.layer[layer];
    const double tolerance = in >= 0 ? verify_gemm_tolerance(k, in) : p->tolerance;
    const bool codes = part->e4m3.out >= 0, alone = codes && !part->e4m3.both;
    int result = 0;
    for (int t = 0; t < TENSOR_COUNT && result == 0; t++)
        if ((segment_outputs(k->w.chain, part->choice.segment) >> t & 1) == 0)
            continue;
        else if (alone && t == last)
            result = judge(k, t, verify_codes(k, part, layer, scale, right), tolerance, worst, st);
        else
            result = compare(k, layer, t, right, tolerance, worst, st);
    if (result == 0 && keeps_bits(p, part, layer)) {
        hash_outputs(k, part, part->right);
        part->recalled = false;
    }
    return result == 0 && codes && !alone ? verify_copy(k, part, layer, scale, st) : result;
}

/* Bits that an earlier request has accepted tell nothing if they differ: its inputs may have. */
static int judge_outputs(struct worker *k, const struct program *p, struct part *part, int layer,
                         float scale, double *worst, struct status *st)
{
    const bool known = keeps_bits(p, part, layer) && part->right[0] != '\0';
    if (known && same_outputs(k, part))
        return 0;
    if (known && !part->recalled)
        return status_set(st, STATUS_WRONG, "wrong result: it is another one than before");
    return compare_outputs(k, p, part, layer, scale, worst, st);
}

/* Fills what a part writes for others in e4m3 with NaN. */
static void poison_codes(struct worker *k, const struct part *part, int layer)
{
    if (part->e4m3.out >= 0)
        e4m3_poison(&k->tensors, layer, TENSOR_OF(part->choice.segment.last));
}

/* Runs one part on a layer's inputs, with all that it writes poisoned, and compares its outputs.
 * What it stores in e4m3 is over so small a scale that the largest numbers are beyond 448. */
static int verify_in_layer(struct worker *k, const struct program *p, struct part *part, int layer,
                           double *worst, struct status *st)
{
    enum { SATURATES = 8 };
    struct launch launch;
    struct replay *replay = NULL;
    struct segment s = part->choice.segment;
    int result = program_launch(k, part, layer, layer, &launch, st);
    launch.e4m3.out_scale /= SATURATES;
    if (result == 0) {
        program_feed_part(k, part, layer);
        poison_codes(k, part, layer);
        tensors_poison(&k->tensors, layer, part->tensors & ~segment_inputs(k->w.chain, s));
        result = k->ops->prepare(k->device, &launch, 1, &replay, st);
    }
    if (result == 0)
        result = k->ops->run(replay, 0, 1, st);
    if (result == 0)
        result = judge_outputs(k, p, part, layer, launch.e4m3.out_scale, worst, st);
    k->ops->release(replay);
    return result != 0 ? status_prefix(st, "%s%s", part->name, layer > 0 ? " in local layers" : "")
                       : 0;
}

static int verify_part(struct worker *k, const struct program *p, struct part *part, double *worst,
                       struct status *st)
{
    bool differ = segment_has_kinds(&k->w, part->choice.segment);
    for (int layer = 0; layer < (differ ? workload_kinds(&k->w) : 1); layer++)
        if (verify_in_layer(k, p, part, layer, worst, st) != 0)
            return -1;
    return 0;
}

/* The tensors of a layer that a program writes. */
static uint32_t written(const struct program *p)
{
    const struct choice *c = &p->parts[0].choice;
    uint32_t touched = 0, read = chain_inputs(c->chain);
    for (int i = 0; i < p->part_count; i++)
        touched |= p->parts[i].tensors;
    if (p->alone)
        read = segment_inputs(c->chain, c->segment);
    return touched & ~read;
}

static void poison_layer(struct worker *k, const struct program *p, int layer, uint32_t set)
{
    const struct chain *c = k->w.chain;
    tensors_poison(&k->tensors, layer, set);
    for (int i = 0; i < p->part_count; i++) {
        const int in = p->parts[i].e4m3.in;
        poison_codes(k, &p->parts[i], layer);
        if (!p->alone && in >= 0 && (chain_inputs(c) >> e4m3_input(c, in) & 1) == 0)
            e4m3_poison(&k->tensors, layer, e4m3_input(c, in)); /* if no part writes it */
    }
}

/* What a layer writes is poisoned first, to find out a plan that reads what another layer left. */
static int run_layer(struct worker *k, const struct program *p, int layer, struct status *st)
{
    poison_layer(k, p, layer, written(p));
    return k->ops->run(p->replay, layer * p->part_count, p->part_count, st);
}

/* Gives a layer the inputs that the oracle's layer had.  Samples of later layers share them, those
 * of one precision. */
static void feed_layer(struct worker *k, const struct program *p, int layer)
{
    const struct flow *in =
        reference_input(verify_rounded_layers(k, p->precision), layer, p->all_rows);
    const int copied = e4m3_input(k->w.chain, GEMM_QKV);
    bool shared = layer > 0 && !p->all_rows;
    if (shared && k->tensors.kept_of != p->precision) {
        tensors_forget(&k->tensors);
        k->tensors.kept_of = p->precision;
    }
    for (int t = 0; t < TENSOR_COUNT; t++) {
        if (in->tensor[t] == NULL || (shared && tensors_recall(&k->tensors, layer, t)))
            continue;
        tensors_feed(&k->tensors, layer, t, in);
        if (shared)
            tensors_keep(&k->tensors, layer, t);
    }
    if ((p->precision >> GEMM_QKV & 1) != 0)
        e4m3_fill(&k->tensors, layer, copied, k->tensors.e4m3.scales[layer].in[GEMM_QKV],
                  in->tensor[copied]);
}

/* Compares what a layer hands on.  The error of a plan is that of x. */
static int compare_layer(struct worker *k, struct program *p, int layer, struct status *st)
{
    const struct oracle_results *right =
        reference_output(verify_rounded_layers(k, p->precision), layer, p->all_rows);
    const struct chain *c = k->w.chain;
    double of_norm = 0;
    for (int i = 0; i < c->carried_count; i++)
        if (compare(k, layer, c->carried[i].from, right, layer_tolerance(k->w.dtype, p->precision),
                    c->carried[i].to == TENSOR_X ? &p->error : &of_norm, st) != 0)
            return status_prefix(st, "layer %d", layer);
    return 0;
}

/* Compares the first layers. */
static int verify_layers(struct worker *k, struct program *p, int compared, struct status *st)
{
    for (int l = 0; l < compared; l++) {
        worker_doing(k, "verifying layer %d of the plan", l);
        feed_layer(k, p, l);
        if (run_layer(k, p, l, st) != 0 || compare_layer(k, p, l, st) != 0)
            return -1;
    }
    return 0;
}

/* ---- the result: what a run leaves ----------------------------------------------------------- */

/* The tensors that hold it (bits), in layer result_layer(). */
static uint32_t result_tensors(const struct program *p)
{
    const struct choice *c = &p->parts[0].choice;
    return p->alone ? segment_outputs(c->chain, c->segment) : chain_carried(c->chain);
}

static int result_layer(const struct program *p)
{
    return p->alone ? 0 : p->layers - 1;
}

/* Of a segment alone. */
static void hash_codes(struct worker *k, int t, char out[HASH_TEXT_SIZE])
{
    hash_text(e4m3_read(&k->tensors, 0, t), (size_t)tensor_elements(t, &k->w), out);
}

static void hash_result(struct worker *k, struct program *p, char out[HASH_TEXT_SIZE])
{
    char each[TENSOR_COUNT + 1][HASH_TEXT_SIZE] = {""}; /* the last one is of codes */
    double start = clock_seconds();
    for (int t = 0; t < TENSOR_COUNT; t++)
        if ((result_tensors(p) >> t & 1) != 0)
            hash_tensor(k, result_layer(p), p->layers - 1, t, each[t]);
    if (p->alone && p->parts[0].e4m3.out >= 0)
        hash_codes(k, TENSOR_OF(p->parts[0].choice.segment.last), each[TENSOR_COUNT]);
    hash_text(each, sizeof(each), out);
    p->look_s = fmin(p->look_s, clock_seconds() - start);
}

void verify_spoil_result(struct worker *k, const struct program *p)
{
    k->tensors.packed = p->packed;
    tensors_poison(&k->tensors, result_layer(p), result_tensors(p));
    if (p->alone)
        poison_codes(k, &p->parts[0], 0);
}

/* Layers share all tensors but those that one hands to the next. */
void verify_spoil(struct worker *k, const struct program *p)
{
    k->tensors.packed = p->packed;
    poison_layer(k, p, result_layer(p), written(p));
    if (!p->alone && p->layers > 1)
        tensors_poison(&k->tensors, p->layers - 2, chain_carried(k->w.chain));
}

int verify_result(struct worker *k, struct program *p, const char *when, struct status *st)
{
    char now[HASH_TEXT_SIZE];
    k->tensors.packed = p->packed;
    hash_result(k, p, now);
    if (strcmp(now, p->result) == 0)
        return 0;
    return status_set(st, STATUS_WRONG, "wrong result: %s the %s gives another result than before",
                      when, p->alone ? "segment" : "plan");
}

/* ---- all of it ------------------------------------------------------------------------------- */

/* Compares the layers in one run with the layers one by one. */
static int verify_whole(struct worker *k, struct program *p, struct status *st)
{
    char whole[HASH_TEXT_SIZE];
    worker_doing(k, "verifying the plan as a whole");
    feed_layer(k, p, 0);
    for (int l = 0; l < p->layers; l++)
        if (run_layer(k, p, l, st) != 0)
            return -1;
    hash_result(k, p, p->result);
    verify_spoil_result(k, p);
    if (k->ops->time(p->replay, 1, 1, &p->once_s, st) != 0)
        return -1;
    hash_result(k, p, whole);
    if (strcmp(whole, p->result) != 0)
        return status_set(st, STATUS_WRONG,
                          "wrong result: %d layers in one run give another result than one by one",
                          p->layers);
    return 0;
}

/* Segments alone are verified without packing, which their code does not depend on. */
static int verify_parts(struct worker *k, struct program *p, struct status *st)
{
    k->tensors.packed = false;
    for (int i = 0; i < p->part_count; i++) {
        struct part *part = &p->parts[i];
        double error = 0;
        if (part->verified)
            continue;
        worker_need_reference(k, &k->reference, workload_kinds(&k->w), false);
        worker_doing(k, "verifying %s", part->name);
        int result = verify_part(k, p, part, &error, st);
        if (!(error <= p->error))
            p->error = error;
        if (result != 0)
            return -1;
        worker_passed(k, part, error);
    }
    return 0;
}

/* The result of all launches of a segment, which read the weights of all layers. */
static int run_alone(struct worker *k, struct program *p, struct status *st)
{
    program_feed_part(k, &p->parts[0], 0);
    verify_spoil(k, p);
    if (k->ops->time(p->replay, 1, 1, &p->once_s, st) != 0)
        return -1;
    hash_result(k, p, p->result);
    return 0;
}

int verify_program(struct worker *k, struct program *p, int compared, struct status *st)
{
    if (verify_parts(k, p, st) != 0)
        return -1;
    k->tensors.packed = p->packed;
    if (p->alone) {
        worker_need_reference(k, &k->reference, 1, p->all_rows);
        return run_alone(k, p, st);
    }
    worker_need_reference(k, verify_rounded_layers(k, p->precision), compared, p->all_rows);
    /* The oracle judges last.  A plan that stops writing leaves its NaN in both runs of
     * verify_whole(), which then agree. */
    if (verify_whole(k, p, st) != 0)
        return -1;
    return verify_layers(k, p, compared, st);
}

int verify_again(struct worker *k, struct program *p, bool kept, struct status *st)
{
    static const char when[] = "after timing";
    double error = 0, seconds;
    worker_doing(k, "verifying %s after timing", p->alone ? p->parts[0].name : "the plan");
    if (kept && verify_result(k, p, when, st) != 0)
        return -1;
    verify_spoil(k, p);
    if (p->alone) {
        struct part *part = &p->parts[0];
        const bool recalled = part->recalled;
        if (verify_part(k, p, part, &error, st) != 0)
            return status_prefix(st, when);
        if (recalled && !part->recalled) /* its bits are news */
            worker_passed(k, part, error);
        return 0;
    }
    if (k->ops->time(p->replay, 1, 1, &seconds, st) != 0)
        return -1;
    return verify_result(k, p, when, st);
}
