#include "bench/accuracy/accuracy_int.h"

/* Rows of a group: sentences of about the same length run together. */
enum { GROUP_ROWS = 4096 };

static const struct kind kinds[ACCURACY_MAX] = {
    {NULL, DTYPE_FP32, 0, false},
    {"fp32", DTYPE_FP32, 0, false},
    {"fp16", DTYPE_FP16, 0, false},
    {"bf16", DTYPE_BF16, 0, false},
    {"fp8", DTYPE_COUNT, 1 << GEMM_QKV, false},
    {"fp8", DTYPE_COUNT, 1 << GEMM_OUT, false},
    {"fp8", DTYPE_COUNT, 1 << GEMM_FFN1, false},
    {"fp8", DTYPE_COUNT, 1 << GEMM_FFN2, false},
    {"fp8", DTYPE_COUNT, GEMM_ALL, false},
    {"fp8", DTYPE_COUNT, GEMM_ALL, true},
};

/* Whether no row above has this precision. */
static bool is_another(unsigned gemms)
{
    size_t i = 0;
    while (i < ARRAY_LEN(kinds) && kinds[i].gemms != gemms)
        i++;
    return i == ARRAY_LEN(kinds);
}

/* ---- a layer of a variant -------------------------------------------------------------------- */

/* What takes a layer's rows. */
struct taking {
    const struct run *r;
    struct variant *v;
    struct flow *next;
    const struct rounding *rounding;
    int layer;
};

static void count_beyond(const struct taking *t, int gemm, int64_t n, const double *values)
{
    int64_t beyond = 0;
    for (int64_t i = 0; i < n; i++)
        beyond += fabs(values[i]) <= (double)E4M3_MOST * t->rounding->scale[gemm] ? 0 : 1; /* NaN */
#pragma omp atomic
    t->v->beyond[t->layer][gemm] += beyond;
#pragma omp atomic
    t->v->seen[t->layer][gemm] += n;
}

static void take(void *ctx, int tensor, struct rows rows, const double *values)
{
    const struct taking *t = ctx;
    const struct chain *c = t->r->w.chain;
    int64_t columns = tensor_row_columns(&t->r->w, tensor), n = rows.count * columns;
    for (int i = 0; i < c->carried_count; i++)
        if (c->carried[i].from == tensor)
            for (int64_t k = 0; k < n; k++)
                t->next->tensor[c->carried[i].to][rows.first * columns + k] = (float)values[k];
    for (int g = 0; g < GEMM_COUNT; g++)
        if (t->rounding->scale[g] > 0 && c->ops[chain_gemm(c, g)].input == tensor)
            count_beyond(t, g, n, values);
}

static void set_dtype(struct workload *w, enum dtype dtype)
{
    w->dtype = dtype;
    if (w->local != NULL)
        w->local->dtype = dtype;
}

static void run_layer(struct run *r, struct variant *v, int layer)
{
    const struct chain *c = r->w.chain;
    struct rounding rounding = {.dtype = v->dtype,
                                .stored = v->kind->name != NULL ? rounding_stored(c) : 0};
    struct flow next;
    float *weight[WEIGHT_MAX];
    struct taking taking = {r, v, &next, &rounding, layer};
    struct oracle_taker taker = {chain_carried(c), take, &taking};
    for (int g = 0; g < GEMM_COUNT; g++)
        if ((v->kind->gemms >> g & 1) != 0) {
            rounding.scale[g] = r->calibration->scale[layer][g];
            taker.tensors |= SET_OF(c->ops[chain_gemm(c, g)].input);
        }
    set_dtype(&r->w, rounding.dtype);
    inputs_weights(&r->w, r->in, layer, &rounding, v->kind->by_column, weight);
    flow_init(&next, &r->w);
    SCOPED_BY(spans_release) struct spans all = spans_all(&r->w);
    oracle_layer_run(workload_of_layer(&r->w, layer), &v->flow, (const float *const *)weight, &all,
                     &rounding, 0, &taker);
    flow_release(&v->flow);
    v->flow = next;
    weights_release(weight);
}

/* ---- groups ---------------------------------------------------------------------------------- */

/* Sorts by counting: the longest first. */
static void order_sentences(struct run *r)
{
    const struct sentences *s = r->sentences;
    int n = 0;
    int64_t place = 0;
    r->order = mem_alloc((size_t)s->count, sizeof(*r->order));
    r->places = mem_alloc((size_t)s->count, sizeof(*r->places));
    for (int length = s->longest; length > 0; length--)
        for (int i = 0; i < s->count; i++)
            if (s->lengths[i] == length)
                r->order[n++] = i;
    for (int i = 0; i < s->count; i++) {
        r->places[i] = place;
        place += s->lengths[i];
    }
}

/* Makes the workload of the sentences from `first` on. */
static int open_group(struct run *r, int first, struct status *st)
{
    const struct sentences *s = r->sentences;
    const int longest = s->lengths[r->order[first]], left = s->count - first;
    const int most = longest < GROUP_ROWS ? GROUP_ROWS / longest : 1;
    r->first = first;
    workload_copy(&r->w, r->model);
    r->w.batch = left < most ? left : most;
    r->w.seq_len = longest;
    free(r->w.lengths);
    r->w.lengths = mem_alloc((size_t)r->w.batch, sizeof(*r->w.lengths));
    for (int b = 0; b < r->w.batch; b++)
        r->w.lengths[b] = s->lengths[r->order[first + b]];
    if (workload_check(&r->w, st) != 0 || workload_build_mask(&r->w, NULL, st) != 0)
        return status_prefix(st, "sentences of %d tokens", longest);
    return 0;
}

/* The flow that enters layer 0. */
static void enter(struct run *r, struct variant *v)
{
    const int columns = r->sentences->columns;
    set_dtype(&r->w, v->dtype);
    flow_init(&v->flow, &r->w);
    for (int b = 0; b < r->w.batch; b++) {
        int sentence = r->order[r->first + b];
        const float *from = r->sentences->rows + r->places[sentence] * columns;
        float *to = v->flow.tensor[TENSOR_X] + (int64_t)b * r->w.seq_len * columns;
        elements_round(r->w.dtype, from, (int64_t)r->sentences->lengths[sentence] * columns, to);
    }
    if (v->flow.tensor[TENSOR_N] != NULL)
        flow_normalise(&r->w, r->in, &v->flow);
}

static void tell(const struct run *r, struct step step)
{
    if (r->listener != NULL)
        step_tell(r->listener, &step);
}

static void run_group(struct run *r)
{
    const int64_t tokens = workload_tokens(&r->w), all = r->sentences->tokens;
    for (int i = 0; i < r->count; i++)
        enter(r, &r->variants[i]);
    for (int layer = 0; layer < r->w.layers; layer++) {
        for (int i = 0; i < r->count; i++) {
            run_layer(r, &r->variants[i], layer);
            compare_rows(r, &r->variants[i], layer);
        }
        add_norms(r, layer);
        r->done += tokens;
        tell(r, (struct step){"tokens", r->done / r->w.layers, all,
                              step_left(clock_seconds() - r->begun_s, r->done, all * r->w.layers)});
    }
    for (int i = 0; i < r->count; i++) {
        pool(r, &r->variants[i]);
        flow_release(&r->variants[i].flow);
    }
}

static int run_groups(struct run *r, struct status *st)
{
    r->begun_s = clock_seconds();
    for (int first = 0; first < r->sentences->count; first += r->w.batch) {
        workload_release(&r->w);
        if (open_group(r, first, st) != 0)
            return -1;
        run_group(r);
    }
    return 0;
}

/* ---- the whole ------------------------------------------------------------------------------- */

static void variant_init(const struct run *r, const struct kind *kind, struct variant *v)
{
    size_t layers = (size_t)r->model->layers;
    *v = (struct variant){.kind = kind, .least = 1};
    v->dtype = kind->gemms != 0 ? r->model->dtype : kind->dtype;
    v->pooled =
        mem_alloc((size_t)r->sentences->count * (size_t)r->sentences->columns, sizeof(*v->pooled));
    v->off = mem_alloc(layers, sizeof(*v->off));
    v->beyond = mem_alloc(layers, sizeof(*v->beyond));
    v->seen = mem_alloc(layers, sizeof(*v->seen));
}

static void variant_release(struct variant *v)
{
    free(v->pooled);
    free(v->off);
    free(v->beyond);
    free(v->seen);
}

int accuracy_run(const struct workload *w, struct inputs in, const struct sentences *sentences,
                 const struct calibration *calibration, unsigned also,
                 const struct listener *listener, struct accuracy_list *out, struct status *st)
{
    struct run r = {.model = w,
                    .in = in,
                    .sentences = sentences,
                    .calibration = calibration,
                    .listener = listener,
                    .also = {"fp8", DTYPE_COUNT, also, false}};
    *out = (struct accuracy_list){.count = 0};
    if (sentences->columns != workload_hidden(w))
        return status_set(st, STATUS_USAGE,
                          "the sentences' rows have %d columns, and the layers %d; write the rows "
                          "of this model",
                          sentences->columns, workload_hidden(w));
    r.count = calibration != NULL ? (int)ARRAY_LEN(kinds) : 4;
    r.norms = mem_alloc((size_t)w->layers, sizeof(*r.norms));
    for (int i = 0; i < r.count; i++)
        variant_init(&r, &kinds[i], &r.variants[i]);
    if (calibration != NULL && is_another(also))
        variant_init(&r, &r.also, &r.variants[r.count++]);
    order_sentences(&r);
    int result = run_groups(&r, st);
    if (result == 0) {
        SCOPED int *nearest =
            neighbours_find(r.variants[0].pooled, sentences->count, sentences->columns);
        for (int i = 1; i < r.count; i++) {
            tell(&r, (struct step){"finding the nearest sentences", i - 1, r.count - 1, NAN});
            const struct kind *kind = r.variants[i].kind;
            out->items[out->count] = (struct accuracy){.precision = kind->name,
                                                       .gemms = kind->gemms,
                                                       .beside = dtypes[r.variants[i].dtype].name,
                                                       .by_column = kind->by_column};
            summarise(&r, &r.variants[i], nearest, &out->items[out->count++]);
        }
    }
    for (int i = 0; i < r.count; i++)
        variant_release(&r.variants[i]);
    workload_release(&r.w);
    free(r.norms);
    free(r.order);
    free(r.places);
    return result;
}

void accuracy_release(struct accuracy_list *list)
{
    for (int i = 0; i < list->count; i++) {
        free(list->items[i].errors);
        free(list->items[i].saturated);
    }
    *list = (struct accuracy_list){.count = 0};
}
