/* The definition of each operator: a plain loop over the rows of a span.  The chain's table says
 * which tensors and weights an operator reads. */
#include "bench/oracle/oracle_int.h"

#include <assert.h>

static const struct op *op_of(const struct layer *l, int op)
{
    return &l->w->chain->ops[op];
}

/* A weight of an operator by role; null if it has none. */
static const float *weight_of(const struct layer *l, int op, enum weight_role role)
{
    int id = op_of(l, op)->weight[role];
    return id != WEIGHT_NONE ? l->weight[id] : NULL;
}

/* Element c of a vector that may be missing. */
static double element(const float *vector, int c)
{
    return vector != NULL ? vector[c] : 0;
}

static bool is_local(const struct layer *l, int tensor)
{
    return (l->local >> tensor & 1) != 0;
}

/* Row i of batch row b of a tensor (B,S,columns), in a span. */
static double *token_row(const struct layer *l, struct span s, int tensor, int i)
{
    int64_t columns = dim_size(tensor_columns(l->w->chain, tensor), l->w);
    int64_t row = is_local(l, tensor) ? i - s.first : (int64_t)s.batch_row * l->w->seq_len + i;
    return l->tensor[tensor] + row * columns;
}

/* Row i of a head of a tensor (parts,B,H,S,columns); part 0, 1, 2 is q, k, v. */
static double *head_row(const struct layer *l, struct span s, int tensor, int columns, int part,
                        int h, int i)
{
    const struct workload *w = l->w;
    int64_t head = ((int64_t)part * w->batch + s.batch_row) * w->heads + h;
    int64_t row =
        is_local(l, tensor) ? (int64_t)h * SPAN_ROWS + i - s.first : head * w->seq_len + i;
    return l->tensor[tensor] + row * columns;
}

/* A tensor of scores begins with the first head that is computed. */
static double *score_row(const struct layer *l, struct span s, int tensor, int h, int i)
{
    return head_row(l, s, tensor, l->w->seq_len, 0, h - l->head, i);
}

/* ---- operators ------------------------------------------------------------------------------- */

/* The scale by which a GEMM reads its input in e4m3; 0: it does not. */
static float e4m3_scale_of(const struct layer *l, int op)
{
    for (int g = 0; g < GEMM_COUNT && l->rounding != NULL; g++)
        if (chain_gemm(l->w->chain, g) == op)
            return l->rounding->scale[g];
    return 0;
}

/* Points at the same rows in e4m3; the caller frees what they are in. */
static double *round_input(struct gemm_row *rows, int count, int64_t depth, float scale,
                           int threads)
{
    double *rounded = mem_alloc((size_t)(count * depth), sizeof(*rounded));
#pragma omp parallel for num_threads(threads) if (threads > 1)
    for (int i = 0; i < count; i++) {
        double *to = rounded + i * depth;
        for (int64_t k = 0; k < depth; k++)
            to[k] = e4m3_round((float)rows[i].in[k], scale);
        rows[i].in = to;
    }
    return rounded;
}

void oracle_gemm_run(const struct layer *layers, const struct span *spans, int count, int op,
                     int threads)
{
    const struct layer *l = layers;
    const int id = op_of(l, op)->weight[ROLE_MATRIX];
    const struct weight *shape = &l->w->chain->weights[id];
    const int64_t depth = dim_size(shape->rows, l->w), columns = dim_size(shape->cols, l->w);
    SCOPED struct gemm_row *rows = mem_alloc((size_t)count * SPAN_ROWS, sizeof(*rows));
    int n = 0;
    for (int i = 0; i < count; i++)
        for (int r = spans[i].first; r < spans[i].first + spans[i].count; r++)
            rows[n++] = (struct gemm_row){token_row(&layers[i], spans[i], op_of(l, op)->input, r),
                                          token_row(&layers[i], spans[i], TENSOR_OF(op), r)};
    const float scale = e4m3_scale_of(l, op);
    SCOPED double *rounded = scale > 0 ? round_input(rows, n, depth, scale, threads) : NULL;
    oracle_multiply(rows, n, l->weight[id], depth, columns, threads);
}

/* out (rows,N) = in (rows,K) @ weight (K,N) */
static void gemm(const struct layer *l, struct span s, int op)
{
    oracle_gemm_run(l, &s, 1, op, 1);
}

/* out = in + bias + skip */
static void bias_residual(const struct layer *l, struct span s, int op)
{
    const float *bias = weight_of(l, op, ROLE_BIAS);
    int64_t columns = dim_size(op_of(l, op)->columns, l->w);
    for (int i = s.first; i < s.first + s.count; i++) {
        const double *x = token_row(l, s, op_of(l, op)->input, i);
        const double *skip = token_row(l, s, op_of(l, op)->skip, i);
        double *y = token_row(l, s, TENSOR_OF(op), i);
        for (int c = 0; c < columns; c++)
            y[c] = x[c] + element(bias, c) + skip[c];
    }
}

/* out = normalised in * gamma + beta */
static void norm(const struct layer *l, struct span s, int op)
{
    const float *gamma = weight_of(l, op, ROLE_GAMMA), *beta = weight_of(l, op, ROLE_BETA);
    int columns = (int)dim_size(op_of(l, op)->columns, l->w);
    for (int i = s.first; i < s.first + s.count; i++) {
        const double *x = token_row(l, s, op_of(l, op)->input, i);
        double *y = token_row(l, s, TENSOR_OF(op), i);
        oracle_normalise(op_of(l, op)->function, x, columns, l->w->eps, y);
        for (int c = 0; c < columns; c++)
            y[c] = y[c] * gamma[c] + element(beta, c);
    }
}

/* Turns each pair of columns c and c + W/2 by the angle of its row's place i, whose cosine and sine
 * the table has: y_c = x_c cos - x_(c+W/2) sin, y_(c+W/2) = x_(c+W/2) cos + x_c sin */
static void rotate(double *y, const float *table, int width, int i)
{
    const int half = width / 2;
    const float *turn = table + (ptrdiff_t)i * width;
    for (int c = 0; c < half; c++) {
        double a = y[c], b = y[c + half], cosine = turn[2 * c], sine = turn[2 * c + 1];
        y[c] = a * cosine - b * sine;
        y[c + half] = b * cosine + a * sine;
    }
}

/* (S, 3*H*W) + bias -> q, k, v: a row's columns are ordered by part (q, k, v), then by head. Rotary
 * embeddings turn q and k. */
static void split(const struct layer *l, struct span s, int op)
{
    const float *bias = weight_of(l, op, ROLE_BIAS), *table = weight_of(l, op, ROLE_TABLE);
    int width = l->w->head_size;
    for (int i = s.first; i < s.first + s.count; i++) {
        const double *x = token_row(l, s, op_of(l, op)->input, i);
        for (int part = 0, first = 0; part < 3; part++)
            for (int h = 0; h < l->w->heads; h++, first += width) {
                double *y = head_row(l, s, TENSOR_OF(op), width, part, h, i);
                for (int c = 0; c < width; c++)
                    y[c] = x[first + c] + element(bias, first + c);
                if (table != NULL && part < 2)
                    rotate(y, table, width, i);
            }
    }
}

/* A row of scores (S), all 0. */
static double *cleared_row(const struct layer *l, struct span s, int tensor, int h, int i)
{
    double *y = score_row(l, s, tensor, h, i);
    memset(y, 0, (size_t)l->w->seq_len * sizeof(*y));
    return y;
}

/* Numbers in whole tiles of a head's keys. */
static size_t keys_size(const struct workload *w)
{
    const int tiles = (w->seq_len + KEYS_AT_ONCE - 1) / KEYS_AT_ONCE;
    return (size_t)tiles * KEYS_AT_ONCE * (size_t)w->head_size;
}

double *oracle_keys_new(const struct workload *w)
{
    return mem_alloc((size_t)w->batch * (size_t)w->heads * keys_size(w), sizeof(double));
}

static double *head_keys(const struct layer *l, struct span s, int h)
{
    return l->keys + (size_t)(s.batch_row * l->w->heads + h) * keys_size(l->w);
}

void oracle_tile_keys(const struct layer *l, struct span s, int qkv)
{
    const int width = l->w->head_size;
    for (int h = 0; h < l->w->heads; h++)
        for (int i = s.first; i < s.first + s.count; i++)
            oracle_tile_key(head_row(l, s, qkv, width, 1, h, i), width, i, head_keys(l, s, h));
}

/* Scores of the kept pairs; nothing reads the scores of other pairs. */
static void scores(const struct layer *l, struct span s, int op)
{
    const int width = l->w->head_size, qkv = op_of(l, op)->qkv;
    for (int h = l->head; h < l->head + l->heads; h++) {
        const double *q[SPAN_ROWS];
        double *y[SPAN_ROWS];
        for (int r = 0; r < s.count; r++) {
            q[r] = head_row(l, s, qkv, width, 0, h, s.first + r);
            y[r] = cleared_row(l, s, TENSOR_OF(op), h, s.first + r);
        }
        oracle_scores(l->w, s, q, head_keys(l, s, h), y);
    }
}

/* Of kept keys score(i,j), + table[h][j-i + S-1] where there is a score bias. */
static void mask(const struct layer *l, struct span s, int op)
{
    const float *table = weight_of(l, op, ROLE_TABLE);
    const int last = l->w->seq_len - 1;
    for (int h = l->head; h < l->head + l->heads; h++)
        for (int i = s.first; i < s.first + s.count; i++) {
            const double *x = score_row(l, s, op_of(l, op)->input, h, i);
            double *y = cleared_row(l, s, TENSOR_OF(op), h, i);
            const ptrdiff_t place = (ptrdiff_t)h * (2 * last + 1) + last - i;
            for (struct kept run = {0, 0}; oracle_next_kept(l->w, s.batch_row, i, &run);)
                for (int j = run.begin; j < run.end; j++)
                    y[j] = x[j] + (table != NULL ? table[place + j] : 0);
        }
}

/* exp(x - max) / sum over the kept keys; a row that keeps none stays zeros. */
static void softmax(const struct layer *l, struct span s, int op)
{
    for (int h = l->head; h < l->head + l->heads; h++)
        for (int i = s.first; i < s.first + s.count; i++) {
            const double *x = score_row(l, s, op_of(l, op)->input, h, i);
            double *y = cleared_row(l, s, TENSOR_OF(op), h, i);
            double max = -INFINITY, sum = 0;
            for (struct kept run = {0, 0}; oracle_next_kept(l->w, s.batch_row, i, &run);)
                max = fmax(max, oracle_largest(x + run.begin, run.end - run.begin));
            for (struct kept run = {0, 0}; oracle_next_kept(l->w, s.batch_row, i, &run);)
                sum += oracle_exps(x + run.begin, run.end - run.begin, max, y + run.begin);
            for (struct kept run = {0, 0}; oracle_next_kept(l->w, s.batch_row, i, &run);)
                for (int j = run.begin; j < run.end; j++)
                    y[j] /= sum;
        }
}

/* Probabilities of keys that a query does not keep are 0. */
static void context(const struct layer *l, struct span s, int op)
{
    const int width = l->w->head_size;
    for (int h = l->head; h < l->head + l->heads; h++) {
        const double *probs[SPAN_ROWS];
        double *y[SPAN_ROWS];
        for (int r = 0; r < s.count; r++) {
            probs[r] = score_row(l, s, op_of(l, op)->input, h, s.first + r);
            y[r] = head_row(l, s, TENSOR_OF(op), width, 0, h, s.first + r);
        }
        oracle_context(l->w, s, probs, head_row(l, s, op_of(l, op)->qkv, width, 2, h, 0), y);
    }
}

static void merge_heads(const struct layer *l, struct span s, int op)
{
    int width = l->w->head_size;
    for (int i = s.first; i < s.first + s.count; i++)
        for (int h = 0; h < l->w->heads; h++)
            memcpy(token_row(l, s, TENSOR_OF(op), i) + h * width,
                   head_row(l, s, op_of(l, op)->input, width, 0, h, i),
                   (size_t)width * sizeof(double));
}

/* out = activation(in + bias) */
static void activation(const struct layer *l, struct span s, int op)
{
    const float *bias = weight_of(l, op, ROLE_BIAS);
    int columns = (int)dim_size(op_of(l, op)->columns, l->w);
    for (int i = s.first; i < s.first + s.count; i++) {
        const double *x = token_row(l, s, op_of(l, op)->input, i);
        double *y = token_row(l, s, TENSOR_OF(op), i);
        for (int c = 0; c < columns; c++)
            y[c] = oracle_activate(op_of(l, op)->function, x[c] + element(bias, c));
    }
}

/* out_c = activation(v_2c) * v_(2c+1), v = in + bias */
static void gate(const struct layer *l, struct span s, int op)
{
    const float *bias = weight_of(l, op, ROLE_BIAS);
    int columns = (int)dim_size(op_of(l, op)->columns, l->w);
    for (int i = s.first; i < s.first + s.count; i++) {
        const double *x = token_row(l, s, op_of(l, op)->input, i);
        double *y = token_row(l, s, TENSOR_OF(op), i);
        for (int c = 0; c < columns; c++)
            y[c] = oracle_activate(op_of(l, op)->function, x[2 * c] + element(bias, 2 * c)) *
                   (x[2 * c + 1] + element(bias, 2 * c + 1));
    }
}

/* ---- by kind --------------------------------------------------------------------------------- */

static oracle_operator *const definitions[] = {
    [KIND_GEMM] = gemm,         [KIND_SPLIT] = split,       [KIND_SCORES] = scores,
    [KIND_SCORE_MOD] = mask,    [KIND_SOFTMAX] = softmax,   [KIND_CONTEXT] = context,
    [KIND_MERGE] = merge_heads, [KIND_ADD] = bias_residual, [KIND_ACTIVATION] = activation,
    [KIND_GATE] = gate,         [KIND_NORM] = norm,
};
_Static_assert(ARRAY_LEN(definitions) == KIND_COUNT, "one row a kind");

void oracle_operator_run(const struct layer *l, struct span s, int op)
{
    definitions[op_of(l, op)->kind](l, s, op);
}
