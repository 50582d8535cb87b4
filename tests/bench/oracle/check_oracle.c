#include "tests/bench/oracle/layer_inputs.h"
#include "tests/workload.h"

/* A workload with its inputs, and the layer computed from them. */
struct run {
    struct workload w;
    struct layer_inputs in;
    struct oracle_layer layer;
};

static void prepare(struct run *r, const struct workload *sizes, const char *mask,
                    const char *lengths, const struct buf *npy)
{
    r->w = *sizes;
    r->w.chain = &chain_bert;
    workload_ready(&r->w, mask, lengths, npy);
    r->in = layer_inputs_draw(&r->w, (struct inputs){.seed = 1, .ranges = RANGES_WIDE}, 0);
}

static void compute(struct run *r, int threads)
{
    layer_inputs_run(&r->w, &r->in, threads, &r->layer);
}

static void release(struct run *r)
{
    oracle_layer_release(&r->layer);
    layer_inputs_release(&r->in);
    workload_release(&r->w);
}

/* ---- by hand --------------------------------------------------------------------------------- */

static const struct workload two_tokens = {.chain = &chain_bert,
                                           .batch = 1,
                                           .seq_len = 2,
                                           .heads = 1,
                                           .head_size = 2,
                                           .ffn = 2,
                                           .layers = 1,
                                           .eps = 1e-5};

static const float by_hand[WEIGHT_MAX][12] = {
    [WEIGHT_WQKV] = {1, 0, 1, 0, 10, 0, 0, 1, 0, 1, 0, 10},
    [WEIGHT_BQKV] = {0, 0, 0, 0, 1, 0},
    [WEIGHT_WO] = {0, 1, 1, 0},
    [WEIGHT_BO] = {0.5f, -1},
    [WEIGHT_GAMMA1] = {1, 2},
    [WEIGHT_BETA1] = {0, 3},
    [WEIGHT_W1] = {0, 0, 0, 0},
    [WEIGHT_B1] = {1, -1},
    [WEIGHT_W2] = {1, 0, 0, 2},
    [WEIGHT_B2] = {0, 7},
    [WEIGHT_GAMMA2] = {-1, 1},
    [WEIGHT_BETA2] = {4, 5},
};

static void check_row(const struct run *r, int op, int first, double a, double b)
{
    ck_assert_double_eq_tol(r->layer.tensor[TENSOR_OF(op)][first], a, 1e-12);
    ck_assert_double_eq_tol(r->layer.tensor[TENSOR_OF(op)][first + 1], b, 1e-12);
}

/* Two tokens of two columns, one causal head, weights that pass q = k = x and v = 10x + (1,0). */
TEST(two_tokens_by_hand)
{
    SCOPED_BY(release) struct run r;
    prepare(&r, &two_tokens, "causal", NULL, NULL);
    memcpy(r.in.flow.tensor[TENSOR_X], (const float[]){1, 0, 0, 2}, 4 * sizeof(float));
    for (int id = 0; id < WEIGHT_MAX; id++)
        memcpy(r.in.weight[id], by_hand[id], (size_t)weight_elements(id, &r.w) * sizeof(float));
    compute(&r, 1);

    check_row(&r, 0, 4, 10, 0); /* token 0's v, before its bias */
    check_row(&r, 1, 0, 1, 0);  /* q */
    check_row(&r, 1, 2, 0, 2);
    check_row(&r, 1, 4, 1, 0); /* k */
    check_row(&r, 1, 6, 0, 2);
    check_row(&r, 1, 8, 11, 0); /* v */
    check_row(&r, 1, 10, 1, 20);
    check_row(&r, 2, 0, 0.70710678118654752, 0); /* 1/sqrt(2) */
    check_row(&r, 2, 2, 0, 2.8284271247461901);  /* 4/sqrt(2) */
    check_row(&r, 4, 0, 1, 0);
    double p = 0.05580721920716974; /* 1 / (1 + exp(2.8284271247461901)) */
    check_row(&r, 4, 2, p, 1 - p);
    check_row(&r, 6, 0, 11, 0);
    check_row(&r, 6, 2, 11 * p + (1 - p), 20 * (1 - p));
    check_row(&r, 7, 0, 0, 11); /* columns swapped */
    check_row(&r, 8, 0, 1.5, 10);
    double half = 8.5 / 2, unit = half / sqrt(half * half + 1e-5);
    check_row(&r, 9, 0, -unit, 2 * unit + 3);
    check_row(&r, 10, 0, 0, 0);
    double gelu1 = 0.84134474606854293; /* the normal distribution's share below 1 */
    check_row(&r, 11, 0, gelu1, gelu1 - 1);
    check_row(&r, 12, 0, gelu1, 2 * (gelu1 - 1));
    check_row(&r, 13, 0, gelu1 - unit, 2 * (gelu1 - 1) + 7 + 2 * unit + 3);
    half = (2 * (gelu1 - 1) + 10 + 2 * unit - gelu1 + unit) / 2;
    unit = half / sqrt(half * half + 1e-5);
    check_row(&r, 14, 0, 4 + unit, 5 + unit);
}

/* ---- each operator from its inputs, an element at a time ------------------------------------- */

static const struct {
    struct workload sizes;
    const char *mask, *lengths;
} cases[] = {
    {{.batch = 1, .seq_len = 1, .heads = 1, .head_size = 1, .ffn = 1, .layers = 1, .eps = 1e-5},
     "full",
     NULL},
    {{.batch = 2, .seq_len = 7, .heads = 3, .head_size = 4, .layers = 1, .eps = 1e-12},
     "causal",
     NULL},
    {{.batch = 3, .seq_len = 13, .heads = 2, .head_size = 5, .ffn = 9, .layers = 1, .eps = 1e-5},
     "sliding:w=2",
     "13,1,6"},
    {{.batch = 2, .seq_len = 70, .heads = 1, .head_size = 8, .ffn = 70, .layers = 1, .eps = 1e-5},
     "strided",
     "70,66"},
    {{.batch = 1, .seq_len = 66, .heads = 2, .head_size = 33, .ffn = 3, .layers = 1, .eps = 0.5},
     "bigbird:g=1,w=3",
     NULL}};

static double in(const struct run *r, int tensor, int64_t index)
{
    return r->layer.tensor[tensor][index];
}

/* Element n of x @ weight for the row that starts at x. */
static double product(const double *x, const float *weight, int64_t depth, int64_t columns,
                      int64_t n)
{
    long double sum = 0;
    for (int64_t k = 0; k < depth; k++)
        sum += (long double)x[k] * weight[k * columns + n];
    return (double)sum;
}

static double normalised(const struct run *r, int tensor, int64_t row, int64_t c,
                         const float *gamma, const float *beta)
{
    int64_t d = workload_hidden(&r->w);
    const double *x = r->layer.tensor[tensor] + row * d;
    long double sum = 0, squares = 0;
    for (int64_t k = 0; k < d; k++)
        sum += x[k];
    long double mean = sum / d;
    for (int64_t k = 0; k < d; k++)
        squares += (x[k] - mean) * (x[k] - mean);
    return (double)((x[c] - mean) / sqrtl(squares / d + (long double)r->w.eps)) * gamma[c] +
           beta[c];
}

/* Column c of a token's row in the tensor of one of the operators 0 and 6..14. */
static double token_element(const struct run *r, int op, int b, int i, int64_t c)
{
    const float *const *w = (const float *const *)r->in.weight;
    int64_t d = workload_hidden(&r->w), f = r->w.ffn, row = (int64_t)b * r->w.seq_len + i;
    int64_t head = c / r->w.head_size, at = c % r->w.head_size;
    double biased;
    switch (op) {
    case 0:
        return product(r->layer.tensor[TENSOR_X] + row * d, w[WEIGHT_WQKV], d, 3 * d, c);
    case 6:
        return in(r, TENSOR_OF(5),
                  ((b * r->w.heads + head) * r->w.seq_len + i) * r->w.head_size + at);
    case 7:
        return product(r->layer.tensor[TENSOR_OF(6)] + row * d, w[WEIGHT_WO], d, d, c);
    case 8:
        return in(r, TENSOR_OF(7), row * d + c) + w[WEIGHT_BO][c] +
               r->in.flow.tensor[TENSOR_X][row * d + c];
    case 9:
        return normalised(r, TENSOR_OF(8), row, c, w[WEIGHT_GAMMA1], w[WEIGHT_BETA1]);
    case 10:
        return product(r->layer.tensor[TENSOR_OF(9)] + row * d, w[WEIGHT_W1], d, f, c);
    case 11:
        biased = in(r, TENSOR_OF(10), row * f + c) + w[WEIGHT_B1][c];
        return biased * 0.5 * erfc(-biased * sqrt(0.5)); /* x times the normal distribution */
    case 12:
        return product(r->layer.tensor[TENSOR_OF(11)] + row * f, w[WEIGHT_W2], f, d, c);
    case 13:
        return in(r, TENSOR_OF(12), row * d + c) + w[WEIGHT_B2][c] +
               in(r, TENSOR_OF(9), row * d + c);
    default:
        return normalised(r, TENSOR_OF(13), row, c, w[WEIGHT_GAMMA2], w[WEIGHT_BETA2]);
    }
}

static void check_element(const struct run *r, int tensor, int64_t index, double expected)
{
    double found = in(r, tensor, index);
    if (!(fabs(found - expected) <= 1e-12 * (1 + fabs(expected))))
        ck_abort_msg("tensor %d, element %lld: %.17g, expected %.17g", tensor, (long long)index,
                     found, expected);
}

TEST_LOOP(token_operators_are_as_defined, 0, ARRAY_LEN(cases))
{
    static const int token_ops[] = {0, 6, 7, 8, 9, 10, 11, 12, 13, 14};
    SCOPED_BY(release) struct run r;
    prepare(&r, &cases[_i].sizes, cases[_i].mask, cases[_i].lengths, NULL);
    compute(&r, 2);
    for (size_t k = 0; k < ARRAY_LEN(token_ops); k++) {
        int op = token_ops[k], t = TENSOR_OF(op);
        int64_t columns = tensor_elements(t, &r.w) / r.w.batch / r.w.seq_len;
        for (int b = 0; b < r.w.batch; b++)
            for (int i = 0; i < r.w.seq_len; i++)
                for (int64_t c = 0; c < columns; c++)
                    check_element(&r, t, ((int64_t)b * r.w.seq_len + i) * columns + c,
                                  i < length_of(&r.w, b) ? token_element(&r, op, b, i, c) : 0);
    }
}

/* Index of element c of a head's row in q, k or v, or (parts = 1) in a tensor (B,H,S,W). */
static int64_t head_index(const struct run *r, int part, int b, int h, int i, int c)
{
    return (((int64_t)(part * r->w.batch + b) * r->w.heads + h) * r->w.seq_len + i) *
               r->w.head_size +
           c;
}

static double qkv(const struct run *r, int part, int b, int h, int i, int c)
{
    return in(r, TENSOR_OF(1), head_index(r, part, b, h, i, c));
}

/* The four tensors of one query row of one head: scores, masked, probabilities, context. */
static void check_query(const struct run *r, int b, int h, int i)
{
    int s = r->w.seq_len, width = r->w.head_size, length = length_of(&r->w, b);
    int64_t row = (((int64_t)b * r->w.heads + h) * s + i) * s;
    double sum = 0;
    for (int j = 0; j < s; j++) {
        double dot = 0;
        for (int c = 0; c < width; c++)
            dot += qkv(r, 0, b, h, i, c) * qkv(r, 1, b, h, j, c);
        bool real = i < length && j < length, keep = real && mask_keep(&r->w.mask, b, i, j);
        check_element(r, TENSOR_OF(2), row + j, keep ? dot / sqrt(width) : 0);
        check_element(r, TENSOR_OF(3), row + j, keep ? in(r, TENSOR_OF(2), row + j) : 0);
        sum += keep ? exp(in(r, TENSOR_OF(2), row + j)) : 0;
    }
    for (int j = 0; j < s; j++) {
        bool keep = i < length && j < length && mask_keep(&r->w.mask, b, i, j);
        check_element(r, TENSOR_OF(4), row + j, keep ? exp(in(r, TENSOR_OF(2), row + j)) / sum : 0);
    }
    for (int c = 0; c < width; c++) {
        double mixed = 0;
        for (int j = 0; j < s; j++)
            mixed += in(r, TENSOR_OF(4), row + j) * qkv(r, 2, b, h, j, c);
        check_element(r, TENSOR_OF(5), head_index(r, 0, b, h, i, c), mixed);
    }
}

TEST_LOOP(attention_is_as_defined, 0, ARRAY_LEN(cases))
{
    SCOPED_BY(release) struct run r;
    prepare(&r, &cases[_i].sizes, cases[_i].mask, cases[_i].lengths, NULL);
    compute(&r, 2);
    int width = r.w.head_size, d = workload_hidden(&r.w);
    for (int b = 0; b < r.w.batch; b++)
        for (int h = 0; h < r.w.heads; h++)
            for (int i = 0; i < r.w.seq_len; i++) {
                for (int part = 0; part < 3; part++)
                    for (int c = 0; c < width; c++) {
                        int column = part * d + h * width + c;
                        int64_t from = ((int64_t)b * r.w.seq_len + i) * 3 * d + column;
                        check_element(&r, TENSOR_OF(1), head_index(&r, part, b, h, i, c),
                                      i < length_of(&r.w, b) ? in(&r, TENSOR_OF(0), from) +
                                                                   r.in.weight[WEIGHT_BQKV][column]
                                                             : 0);
                    }
                check_query(&r, b, h, i);
            }
}

/* ---- properties ------------------------------------------------------------------------------ */

static const struct workload small = {.chain = &chain_bert,
                                      .batch = 2,
                                      .seq_len = 40,
                                      .heads = 2,
                                      .head_size = 8,
                                      .layers = 1,
                                      .eps = 1e-5};

/* What a query does not keep, and what lies in padding, changes nothing in its row. */
TEST(rows_see_what_they_keep_only)
{
    struct run before, after;
    prepare(&before, &small, "causal", "40,21", NULL);
    prepare(&after, &small, "causal", "40,21", NULL);
    for (int c = 0; c < 16; c++) {
        after.in.flow.tensor[TENSOR_X][30 * 16 + c] += 1; /* token 30 of batch row 0 */
        after.in.flow.tensor[TENSOR_X][(40 + 21) * 16 + c] =
            NAN; /* the first padded token of batch row 1 */
    }
    compute(&before, 1);
    compute(&after, 1);
    const double *a = before.layer.tensor[TENSOR_OF(14)], *b = after.layer.tensor[TENSOR_OF(14)];
    ck_assert_mem_eq(a, b, 30 * 16 * sizeof(*a));
    ck_assert_mem_eq(a + 40 * 16, b + 40 * 16, 40 * 16 * sizeof(*a));
    for (int i = 30; i < 40; i++)
        ck_assert_int_ne(memcmp(a + i * 16, b + i * 16, 16 * sizeof(*a)), 0);
    release(&before);
    release(&after);
}

TEST(threads_change_nothing)
{
    struct run one, many;
    prepare(&one, &small, "dilated", "40,3", NULL);
    prepare(&many, &small, "dilated", "40,3", NULL);
    compute(&one, 1);
    compute(&many, 5);
    for (int t = 0; t < TENSOR_COUNT; t++)
        ck_assert_mem_eq(one.layer.tensor[t], many.layer.tensor[t],
                         (size_t)tensor_elements(t, &one.w) * sizeof(double));
    release(&one);
    release(&many);
}

/* Batch row 0's row 1 keeps nothing, batch row 1's row 1 only a key past the length of 2. */
TEST(rows_without_keys_are_zeros)
{
    static const struct workload sizes = {.chain = &chain_bert,
                                          .batch = 2,
                                          .seq_len = 3,
                                          .heads = 1,
                                          .head_size = 4,
                                          .layers = 1,
                                          .eps = 1e-5};
    static const uint8_t kept[2][9] = {{0, 0, 1, 0, 0, 0, 1, 1, 0}, {0, 1, 0, 0, 0, 1, 1, 1, 1}};
    SCOPED_BUF npy = BUF_INIT;
    SCOPED_BY(release) struct run r;
    npy_write(NPY_BOOL, 3, (const int64_t[]){2, 3, 3}, kept, &npy);
    prepare(&r, &sizes, "file:made-up", "3,2", &npy);
    compute(&r, 1);
    static const bool empty[2][3] = {{false, true, false}, {false, true, true}};
    for (int b = 0; b < 2; b++)
        for (int i = 0; i < 3; i++) {
            const double *probs = r.layer.tensor[TENSOR_OF(4)] + (b * 3 + i) * 3;
            const double *y = r.layer.tensor[TENSOR_OF(5)] + (b * 3 + i) * 4;
            ck_assert_int_eq(probs[0] == 0 && probs[1] == 0 && probs[2] == 0, empty[b][i]);
            ck_assert_int_eq(y[0] == 0 && y[1] == 0 && y[2] == 0 && y[3] == 0, empty[b][i]);
        }
    for (int64_t k = 0; k < tensor_elements(TENSOR_OF(14), &r.w); k++)
        ck_assert(isfinite(in(&r, TENSOR_OF(14), k)));
}

SUITE("oracle", NULL, NULL)
