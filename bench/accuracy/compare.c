#include "bench/accuracy/accuracy_int.h"

/* The rows that a layer hands on: of chains that normalise before, normalised. */
static const float *result_of(const struct run *r, const struct variant *v)
{
    const struct chain *c = r->w.chain;
    int i = 0;
    while (c->carried[i].from != TENSOR_Y)
        i++;
    return v->flow.tensor[c->carried[i].to];
}

/* Products of two rows. */
struct products {
    double ab, aa, bb;
};

static struct products multiply(const float *a, const float *b, int columns)
{
    struct products p = {0, 0, 0};
    for (int c = 0; c < columns; c++) {
        p.ab += (double)a[c] * b[c];
        p.aa += (double)a[c] * a[c];
        p.bb += (double)b[c] * b[c];
    }
    return p;
}

/* 1 for two rows of zeros. */
static double cosine(struct products p)
{
    return p.aa == 0 && p.bb == 0 ? 1 : p.aa == 0 || p.bb == 0 ? 0 : p.ab / sqrt(p.aa * p.bb);
}

void compare_rows(struct run *r, struct variant *v, int layer)
{
    const int columns = r->sentences->columns, last = r->w.layers - 1;
    const float *out = result_of(r, v), *exact = result_of(r, &r->variants[0]);
    for (int b = 0; b < r->w.batch; b++)
        for (int i = 0; i < r->sentences->lengths[r->order[r->first + b]]; i++) {
            int64_t at = ((int64_t)b * r->w.seq_len + i) * columns;
            for (int c = 0; c < columns; c++) {
                double d = (double)out[at + c] - exact[at + c];
                v->off[layer] += d * d;
            }
            if (layer == last) {
                double is = cosine(multiply(out + at, exact + at, columns));
                v->cosines += is;
                v->least = is >= v->least || isnan(v->least) ? v->least : is;
            }
        }
}

void add_norms(struct run *r, int layer)
{
    const int columns = r->sentences->columns;
    const float *exact = result_of(r, &r->variants[0]);
    for (int b = 0; b < r->w.batch; b++) {
        int64_t n = (int64_t)r->sentences->lengths[r->order[r->first + b]] * columns;
        for (int64_t k = 0, at = (int64_t)b * r->w.seq_len * columns; k < n; k++)
            r->norms[layer] += (double)exact[at + k] * exact[at + k];
    }
}

void pool(struct run *r, struct variant *v)
{
    const int columns = r->sentences->columns;
    const float *out = result_of(r, v);
    SCOPED double *sum = mem_alloc((size_t)columns, sizeof(*sum));
    for (int b = 0; b < r->w.batch; b++) {
        const int sentence = r->order[r->first + b];
        double squares = 0;
        memset(sum, 0, (size_t)columns * sizeof(*sum));
        for (int i = 0; i < r->sentences->lengths[sentence]; i++)
            for (int c = 0; c < columns; c++)
                sum[c] += out[((int64_t)b * r->w.seq_len + i) * columns + c];
        for (int c = 0; c < columns; c++)
            squares += sum[c] * sum[c];
        for (int c = 0; c < columns; c++)
            v->pooled[(int64_t)sentence * columns + c] =
                squares == 0 ? 0 : (float)(sum[c] / sqrt(squares));
    }
}

void summarise(const struct run *r, const struct variant *v, const int *nearest, struct accuracy *a)
{
    const int n = r->sentences->count, columns = r->sentences->columns;
    a->cosine_mean = v->cosines / (double)r->sentences->tokens;
    a->cosine_least = v->least;
    a->errors = mem_alloc((size_t)r->model->layers, sizeof(*a->errors));
    a->saturated = mem_alloc((size_t)r->model->layers, sizeof(*a->saturated));
    for (int l = 0; l < r->model->layers; l++) {
        a->errors[l] = v->off[l] == 0 ? 0 : sqrt(v->off[l] / r->norms[l]);
        for (int g = 0; g < GEMM_COUNT; g++)
            a->saturated[l][g] =
                v->seen[l][g] > 0 ? (double)v->beyond[l][g] / (double)v->seen[l][g] : 0;
    }
    for (int i = 0; i < n; i++)
        a->sentence_cosine +=
            cosine(multiply(v->pooled + (int64_t)i * columns,
                            r->variants[0].pooled + (int64_t)i * columns, columns)) /
            n;
    SCOPED int *found = neighbours_find(v->pooled, n, columns);
    a->agreement = n > 2 ? neighbours_agree(nearest, found, n) : NAN;
}
