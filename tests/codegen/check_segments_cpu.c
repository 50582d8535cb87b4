/* Every segment as every implementation against the oracle.
 *
 * Inputs come from the oracle.  All else is NaN beforehand: outputs, padded rows of inputs, masked
 * positions of inputs where they are unspecified; so whoever reads what it must not is found.  The
 * default run takes each pair (segment, mask) once, over shapes that hold each pair of sizes;
 * FUSEPLAN_TEST_ALL=1 takes the whole product.  The suite every_chain_cpu is this with all segments
 * of every chain. */
#include "bench/oracle/oracle.h"
#include "segments.h"
#include "shapes.h"
#include "tests/bench/oracle/layer_inputs.h"
#include "tests/workload.h"

static const char *const masks[] = {"full",
                                    "causal",
                                    "strided",
                                    "fixed",
                                    "sliding",
                                    "sliding_causal:w=3",
                                    "dilated:w=4,d=3",
                                    "longformer:g=2,w=5",
                                    "bigbird:g=1,w=4",
                                    "prefix",
                                    "document:n=3",
                                    "file:some_rows_empty.npy"};
enum { MASKS = ARRAY_LEN(masks) };
static const struct inputs inputs = {.seed = 7};

/* What an element of a tensor is: real, a padded row's, or masked (of tensors (B,H,S,S)). */
enum place { REAL, PADDED, MASKED };

/* The places of all elements of a tensor; the caller frees. */
static uint8_t *places_of(const struct workload *w, int tensor)
{
    const int64_t n = tensor_elements(tensor, w), s = w->seq_len;
    const enum layout layout = tensor_layout(w->chain, tensor);
    const int64_t columns = layout == LAYOUT_TOKENS   ? n / w->batch / s
                            : layout == LAYOUT_SCORES ? s
                                                      : w->head_size;
    uint8_t *places = mem_alloc((size_t)n, 1), *row = places;
    for (int64_t i = 0; i * columns < n; i++, row += columns) {
        const int b = (int)(layout == LAYOUT_TOKENS ? i / s : i / s / w->heads % w->batch);
        const int query = (int)(i % s), length = length_of(w, b);
        memset(row, query >= length ? PADDED : REAL, (size_t)columns);
        for (int key = 0; layout == LAYOUT_SCORES && query < length && key < s; key++)
            if (key >= length || !mask_keep(&w->mask, b, query, key))
                row[key] = MASKED;
    }
    return places;
}

/* ---- one workload and the oracle's word on it ------------------------------------------------ */

struct scene {
    struct workload w;
    struct oracle_results right;
    float *full[TENSOR_COUNT]; /* the same with all elements; 0 where none is stored */
    uint8_t *places[TENSOR_COUNT];
    struct layer_inputs in;
};

/* (S,S) with every fourth row empty, and all rows of the second block of 64. */
static void some_rows_empty(int seq_len, struct buf *npy)
{
    unsigned char *keep = mem_alloc((size_t)seq_len * (size_t)seq_len, 1);
    for (int i = 0; i < seq_len * seq_len; i++)
        keep[i] = i / seq_len % 4 != 2 && i / seq_len / MASK_BLOCK != 1 &&
                  (i % 5 == 0 || i % seq_len == i / seq_len);
    npy_write(NPY_BOOL, 2, (int64_t[]){seq_len, seq_len}, keep, npy);
    free(keep);
}

static void scene_set(struct scene *s, const struct chain *chain, const struct shape *shape,
                      const char *mask)
{
    SCOPED_BUF npy = BUF_INIT;
    memset(s, 0, sizeof(*s));
    workload_init(&s->w);
    s->w.chain = chain;
    s->w.rope_theta = 100;
    s->w.seq_len = sizes[0][shape->pick[0]];
    s->w.heads = sizes[1][shape->pick[1]];
    s->w.head_size = sizes[2][shape->pick[2]];
    s->w.head_size += chain_functions(chain).rope ? s->w.head_size % 2 : 0;
    s->w.batch = sizes[3][shape->pick[3]];
    if (chain_functions(chain).hidden) { /* more or less than its heads have */
        int columns = s->w.heads * s->w.head_size;
        s->w.hidden = columns > 4 && s->w.seq_len % 2 != 0 ? columns / 2 : columns + 5;
    }
    s->w.ffn = workload_hidden(&s->w) + 13; /* odd or even, never a multiple of a vector */
    if (sizes[4][shape->pick[4]] != 0) {
        s->w.lengths = mem_alloc((size_t)s->w.batch, sizeof(int));
        for (int b = 0; b < s->w.batch; b++)
            s->w.lengths[b] = b == 0 ? (s->w.seq_len + 1) / 2 : s->w.seq_len;
    }
    if (strncmp(mask, "file:", 5) == 0)
        some_rows_empty(s->w.seq_len, &npy);
    workload_ready(&s->w, mask, NULL, npy.len > 0 ? &npy : NULL);

    s->in = layer_inputs_draw(&s->w, inputs, 0);
    SCOPED_BY(spans_release) struct spans all = spans_all(&s->w);
    oracle_results_init(&s->right, &s->w, (1u << TENSOR_COUNT) - 1, &all);
    const struct oracle_taker taker = oracle_results_taker(&s->right);
    oracle_layer_run(&s->w, &s->in.flow, (const float *const *)s->in.weight, &all, NULL, 0, &taker);
    for (int t = 0; t < TENSOR_COUNT; t++) {
        int64_t n = tensor_elements(t, &s->w);
        struct rows rows = {0, n / tensor_row_columns(&s->w, t)};
        s->places[t] = places_of(&s->w, t);
        s->full[t] = mem_alloc((size_t)n, sizeof(float));
        const float *values = oracle_results_rows(&s->right, t, rows, s->full[t]);
        if (values != s->full[t])
            memcpy(s->full[t], values, (size_t)n * sizeof(float));
    }
}

static void scene_release(struct scene *s)
{
    for (int t = 0; t < TENSOR_COUNT; t++) {
        free(s->full[t]);
        free(s->places[t]);
    }
    oracle_results_release(&s->right);
    layer_inputs_release(&s->in);
    workload_release(&s->w);
}

/* ---- tensors --------------------------------------------------------------------------------- */

/* Filled with what the oracle computed where that is specified, and with NaN elsewhere. */
static float *tensor_new(const struct scene *s, int tensor, bool filled)
{
    int64_t n = tensor_elements(tensor, &s->w);
    float *t = mem_alloc((size_t)n, sizeof(*t));
    for (int64_t i = 0; i < n; i++) {
        enum place place = filled ? s->places[tensor][i] : PADDED;
        bool specified = place == REAL || (place == MASKED && tensor == TENSOR_OF(4));
        t[i] = specified ? s->full[tensor][i] : NAN;
    }
    return t;
}

/* An assertion that holds costs a message to Check's parent: too much for each element. */
static void check_zeros(const struct scene *s, int tensor, const float *out, const char *what)
{
    int64_t n = tensor_elements(tensor, &s->w);
    enum place zero = tensor == TENSOR_OF(4) ? MASKED : PADDED;
    if (tensor != TENSOR_OF(4) && tensor != TENSOR_OF(OP_COUNT - 1))
        return;
    for (int64_t i = 0; i < n; i++)
        if (out[i] != 0 && s->places[tensor][i] == zero)
            ck_abort_msg("%s: element %lld of tensor %d is %g, not 0", what, (long long)i, tensor,
                         (double)out[i]);
}

/* ---- one case -------------------------------------------------------------------------------- */

static void case_text(const struct scene *s, const struct choice *c, struct buf *out)
{
    choice_symbol(c, out);
    buf_adds(out, " ");
    schedule_text(c->impl, &c->schedule, out);
    buf_adds(out, " at ");
    workload_text(&s->w, out);
}

static void run_case(const struct scene *s, const struct choice *c, fp_segment *function)
{
    const struct block_lists *l = &s->w.blocks;
    uint32_t in = segment_inputs(c->chain, c->segment), out = choice_tensors(c);
    struct fp_args a = {
        .batch = s->w.batch,
        .seq_len = s->w.seq_len,
        .heads = s->w.heads,
        .head_size = s->w.head_size,
        .hidden = workload_hidden(&s->w),
        .ffn = s->w.ffn,
        .eps = (float)s->w.eps,
        .lengths = s->w.lengths,
        .mask = {l->lists, l->blocks, l->start, l->full, l->key_block, l->bits, l->words}};
    SCOPED_BUF what = BUF_INIT;
    case_text(s, c, &what);
    for (int t = 0; t < TENSOR_COUNT; t++)
        if (((in | out) >> t & 1) != 0)
            a.tensor[t] = tensor_new(s, t, (in >> t & 1) != 0);
    for (int id = 0; id < WEIGHT_MAX; id++)
        a.weight[id] =
            (segment_weights(c->chain, c->segment) >> id & 1) != 0 ? s->in.weight[id] : NULL;
    for (int k = 0; k < c->impl->knob_count; k++)
        a.knob[k] = choice_value(c, k);

    function(&a);

    for (int t = 0; t < TENSOR_COUNT; t++) {
        if ((out >> t & 1) != 0) {
            struct comparison compared;
            struct rows rows = {0, tensor_elements(t, &s->w) / tensor_row_columns(&s->w, t)};
            comparison_init(&compared, &s->right, t);
            comparison_add(&compared, rows, a.tensor[t]);
            struct oracle_error e = comparison_end(&compared);
            ck_assert_msg(oracle_accepts(e, dtypes[DTYPE_FP32].tolerance),
                          "%s: tensor %d is off by %g, its worst row, at %lld, by %g", what.ptr, t,
                          e.tensor, (long long)e.worst_index, e.worst_row);
            check_zeros(s, t, a.tensor[t], what.ptr);
        }
        free(a.tensor[t]);
    }
}

/* ---- which cases ----------------------------------------------------------------------------- */

static struct choice sources[SOURCES_MAX];
static int source_count, bert_count;           /* those of BERT's chain come first */
static const struct chain *chains[CHAINS_MAX]; /* the others */
static int chain_count;

static bool whole_product(void)
{
    const char *all = getenv("FUSEPLAN_TEST_ALL");
    return all != NULL && strcmp(all, "1") == 0;
}

/* Turns to the run-time knobs' values one after another, as far as they are legal. */
static struct choice with_knobs(struct choice c, int turn)
{
    struct choice choices[CHOICES_MAX];
    const struct build_target t = cpu_target(c.chain);
    int n = choices_for(&t, c.segment, c.impl->handwritten, CHOICES_MAX, choices), same = 0;
    for (int i = 0; i < n; i++)
        if (same_source(&choices[i], &c))
            choices[same++] = choices[i];
    ck_assert_int_gt(same, 0); /* itself */
    return choices[turn % same];
}

/* Sources first..end-1 are those of one segment and implementation. */
static int sources_end(int first)
{
    int end = first;
    while (end < bert_count && sources[end].impl == sources[first].impl &&
           segment_index(sources[end].segment) == segment_index(sources[first].segment))
        end++;
    return end;
}

static void run_shape(const struct shape *shape, int shape_index, int shapes, int mask)
{
    SCOPED_BY(scene_release) struct scene s;
    bool all = whole_product();
    scene_set(&s, &chain_bert, shape, masks[mask]);
    for (int first = 0, end, n = 0; first < bert_count; first = end, n++) {
        end = sources_end(first);
        bool its_shape = (n * 5 + mask) % shapes == shape_index;
        for (int i = first; i < end; i++) {
            struct choice c = with_knobs(sources[i], n + mask);
            bool chosen = c.impl->handwritten
                              ? (shape_index + mask) % 4 == 0
                              : its_shape && i == first + (n + mask) % (end - first);
            if (all || chosen)
                run_case(&s, &c, segment_functions[i]);
        }
    }
}

static void __attribute__((constructor(101))) list_segments(void) /* before TEST_LOOP counts */
{
    chain_count = chains_listed(segments_of_every_chain, chains);
    source_count = all_sources(segments_of_every_chain, sources);
    while (bert_count < source_count && sources[bert_count].chain == &chain_bert)
        bert_count++;
    if (whole_product())
        tcase_set_timeout(suite_tests(), 7200);
}

TEST_LOOP(segments_agree_with_the_oracle, 0, MASKS)
{
    struct shape shapes[SHAPES_MAX];
    int count = whole_product() ? all_shapes(shapes) : pairwise_shapes(shapes);
    for (int i = 0; i < count; i++)
        run_shape(&shapes[i], i, count, _i);
}

/* Sources of another chain, on a third of the shapes; if it has those of all segments, each on a
 * third of these. */
TEST_LOOP(other_chains_agree_with_the_oracle, 0, chain_count)
{
    enum { EVERY = 3 };
    const struct chain *c = chains[_i];
    bool spread = has_all_segments(segments_of_every_chain, c);
    struct shape shapes[SHAPES_MAX];
    int count = pairwise_shapes(shapes);
    bool ran[SOURCES_MAX] = {false};
    for (int n = _i % EVERY; n < count; n += EVERY) {
        SCOPED_BY(scene_release) struct scene s;
        scene_set(&s, c, &shapes[n], masks[n % MASKS]);
        for (int i = bert_count; i < source_count; i++)
            if (sources[i].chain == c && (!spread || (i + n / EVERY) % EVERY == 0)) {
                struct choice choice = with_knobs(sources[i], n);
                run_case(&s, &choice, segment_functions[i]);
                ran[i] = true;
            }
    }
    for (int i = bert_count; i < source_count; i++)
        ck_assert(ran[i] == (sources[i].chain == c));
}

SUITE("segments_cpu", NULL, NULL)
