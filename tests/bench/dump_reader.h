/* A reader of a dump, which computes y from the files alone, in plain loops that know nothing of
 * the program's masks, lengths and inputs. */
#ifndef FUSEPLAN_TESTS_BENCH_DUMP_READER_H
#define FUSEPLAN_TESTS_BENCH_DUMP_READER_H

#include "tests/bench/fixture.h"

#include <jansson.h>
#include <math.h>

/* ---- the files ------------------------------------------------------------------------------- */

struct array {
    struct buf bytes;
    struct npy npy;
};

static inline struct array array_read(const char *name)
{
    struct array a;
    struct status st = STATUS_INIT;
    char path[128];
    snprintf(path, sizeof(path), "dump/%s.npy", name);
    buf_init(&a.bytes);
    OK(file_read(test_path(path), 0, &a.bytes, &st));
    OK(npy_parse(a.bytes.ptr, a.bytes.len, &a.npy, &st));
    return a;
}

static inline const float *floats(const struct array *a)
{
    ck_assert_int_eq(a->npy.type, NPY_FLOAT32);
    return a->npy.data;
}

enum { WQKV, BQKV, WO, BO, GAMMA1, BETA1, W1, B1, W2, B2, GAMMA2, BETA2, WEIGHTS };
static const char *const names[WEIGHTS] = {"wqkv", "bqkv", "wo", "bo", "gamma1", "beta1",
                                           "w1",   "b1",   "w2", "b2", "gamma2", "beta2"};

enum { LAYERS_READ = 8 };

/* Sizes and functions, and one layer's weights. */
struct layer {
    int batch, seq, heads, width, hidden, ffn;
    int kinds[LAYERS_READ]; /* of each layer */
    double eps;
    bool pre, rms, gate, silu, rope, local;      /* local: files of a kind end with its number */
    struct array mask, cosine, sine, score_bias; /* no rotation, no bias: no bytes */
    struct array weight[WEIGHTS];
};

static inline double number_of(const json_t *workload, const char *name)
{
    const json_t *value = json_object_get(workload, name);
    ck_assert_msg(json_is_number(value), "%s", name);
    return json_number_value(value);
}

static inline bool says(const json_t *chain, const char *name, const char *value)
{
    const char *text = json_string_value(json_object_get(chain, name));
    ck_assert_ptr_nonnull(text);
    return strcmp(text, value) == 0;
}

static inline void read_chain(struct layer *l, const json_t *chain)
{
    l->pre = says(chain, "norm", "pre");
    l->rms = says(chain, "norm_kind", "rms");
    l->silu = says(chain, "activation", "silu");
    ck_assert(l->silu || says(chain, "activation", "gelu"));
    l->gate = json_is_true(json_object_get(chain, "gate"));
    l->rope = json_is_number(json_object_get(chain, "rope"));
    l->local = json_object_get(chain, "local") != NULL;
    const json_t *kinds = json_object_get(chain, "kinds");
    for (size_t i = 0; i < json_array_size(kinds) && i < LAYERS_READ; i++)
        l->kinds[i] = (int)json_integer_value(json_array_get(kinds, i));
    if (json_is_true(json_object_get(chain, "score_bias")))
        l->score_bias = array_read("score_bias");
}

static inline struct array kind_read(const struct layer *l, const char *name, int kind)
{
    char file[32];
    snprintf(file, sizeof(file), l->local ? "%s%d" : "%s", name, kind);
    return array_read(file);
}

/* The mask and the rotations of a kind of layers, in the place of another's. */
static inline void read_kind(struct layer *l, int kind)
{
    buf_release(&l->mask.bytes);
    buf_release(&l->cosine.bytes);
    buf_release(&l->sine.bytes);
    l->mask = kind_read(l, "mask", kind);
    if (!l->rope)
        return;
    l->cosine = kind_read(l, "rope_cos", kind);
    l->sine = kind_read(l, "rope_sin", kind);
}

static inline int read_sizes(struct layer *l, const struct array *x)
{
    json_t *workload = json_load_file(test_path("dump/workload.json"), 0, NULL);
    read_chain(l, json_object_get(workload, "chain"));
    read_kind(l, 0);
    l->heads = (int)number_of(workload, "heads");
    l->eps = number_of(workload, "eps");
    int layers = (int)number_of(workload, "layers");
    json_decref(workload);
    l->batch = (int)x->npy.shape[0];
    l->seq = (int)x->npy.shape[1];
    l->hidden = (int)x->npy.shape[2];
    l->width = l->hidden / l->heads;
    return layers;
}

static inline void read_layer(struct layer *l, int layer)
{
    read_kind(l, l->kinds[layer]);
    for (int i = 0; i < WEIGHTS; i++) {
        char name[32];
        if (l->rms && (i == BETA1 || i == BETA2))
            continue;
        snprintf(name, sizeof(name), "layer%d.%s", layer, names[i]);
        l->weight[i] = array_read(name);
    }
    l->ffn = (int)l->weight[W2].npy.shape[0];
    ck_assert_int_eq(l->weight[W1].npy.shape[1], l->gate ? 2 * l->ffn : l->ffn);
}

static inline void release_layer(struct layer *l)
{
    for (int i = 0; i < WEIGHTS; i++)
        buf_release(&l->weight[i].bytes);
}

static inline void release_tables(struct layer *l)
{
    buf_release(&l->mask.bytes);
    buf_release(&l->cosine.bytes);
    buf_release(&l->sine.bytes);
    buf_release(&l->score_bias.bytes);
}

/* ---- the layer, a token at a time ------------------------------------------------------------ */

/* out (columns) = in (rows) @ weight (rows,columns) + bias (columns) */
static inline void project(const double *in, int rows, const struct array *weight,
                           const struct array *bias, int columns, double *out)
{
    for (int c = 0; c < columns; c++) {
        out[c] = floats(bias)[c];
        for (int r = 0; r < rows; r++)
            out[c] += in[r] * floats(weight)[r * columns + c];
    }
}

static inline void normalise(const struct layer *l, double *row, const struct array *gamma,
                             const struct array *beta)
{
    double mean = 0, variance = 0;
    for (int c = 0; c < l->hidden && !l->rms; c++)
        mean += row[c] / l->hidden;
    for (int c = 0; c < l->hidden; c++)
        variance += (row[c] - mean) * (row[c] - mean) / l->hidden;
    for (int c = 0; c < l->hidden; c++)
        row[c] = (row[c] - mean) / sqrt(variance + l->eps) * floats(gamma)[c] +
                 (l->rms ? 0 : floats(beta)[c]);
}

static inline bool sees(const struct layer *l, int b, int i, int j)
{
    const unsigned char *keep = l->mask.npy.data;
    return keep[((l->mask.npy.ndim == 3 ? b * l->seq : 0) + i) * l->seq + j] != 0;
}

/* Query i of a head: the softmax of its products with the keys that it sees, times their values.
 * qkv: the sequence's (S,3D), q, k, v, each by heads. */
static inline void attend(const struct layer *l, const double *qkv, int b, int i, int head,
                          double *out)
{
    const double *q = qkv + (size_t)i * 3 * l->hidden + head * l->width;
    double sum = 0;
    for (int c = 0; c < l->width; c++)
        out[c] = 0;
    for (int j = 0; j < l->seq; j++) {
        const double *k = qkv + (size_t)j * 3 * l->hidden + l->hidden + head * l->width;
        double dot = 0;
        for (int c = 0; c < l->width; c++)
            dot += q[c] * k[c];
        double score = dot / sqrt(l->width);
        if (l->score_bias.bytes.len > 0)
            score += floats(&l->score_bias)[head * (2 * l->seq - 1) + j - i + l->seq - 1];
        double e = sees(l, b, i, j) ? exp(score) : 0;
        sum += e;
        for (int c = 0; c < l->width; c++)
            out[c] += e * k[l->hidden + c];
    }
    for (int c = 0; c < l->width && sum > 0; c++)
        out[c] /= sum;
}

/* Turns the heads of a q or k (D) at place i. */
static inline void rotate(const struct layer *l, int i, double *row)
{
    const int half = l->width / 2;
    for (int pair = 0; pair < l->hidden / 2 && l->cosine.bytes.len > 0; pair++) {
        double cosine = floats(&l->cosine)[i * half + pair % half];
        double sine = floats(&l->sine)[i * half + pair % half];
        double *first = row + pair / half * l->width + pair % half, a = first[0], b = first[half];
        first[0] = a * cosine - b * sine;
        first[half] = b * cosine + a * sine;
    }
}

/* Its activation, times the other half where there is a gate. */
static inline void activate(const struct layer *l, double *wide)
{
    for (int c = 0; c < l->ffn; c++) {
        double v = wide[c];
        wide[c] = l->silu ? v / (1 + exp(-v)) : v / 2 * (1 + erf(v / sqrt(2)));
        if (l->gate)
            wide[c] *= wide[l->ffn + c];
    }
}

/* What follows attention, for one token: x and n are its inputs and become its outputs.  Norms
 * stand behind the sums: n is x then. */
static inline void finish(const struct layer *l, const double *context, double *x, double *n)
{
    const size_t bytes = (size_t)l->hidden * sizeof(*x);
    double *row = mem_alloc((size_t)l->hidden, sizeof(*row));
    double *wide = mem_alloc((size_t)l->ffn, 2 * sizeof(*wide));
    project(context, l->hidden, &l->weight[WO], &l->weight[BO], l->hidden, row);
    for (int c = 0; c < l->hidden; c++)
        x[c] += row[c];
    memcpy(row, x, bytes);
    normalise(l, row, &l->weight[GAMMA1], &l->weight[BETA1]);
    if (!l->pre)
        memcpy(x, row, bytes);
    project(row, l->hidden, &l->weight[W1], &l->weight[B1], (l->gate ? 2 : 1) * l->ffn, wide);
    activate(l, wide);
    project(wide, l->ffn, &l->weight[W2], &l->weight[B2], l->hidden, row);
    for (int c = 0; c < l->hidden; c++)
        x[c] += row[c];
    memcpy(n, x, bytes);
    normalise(l, n, &l->weight[GAMMA2], &l->weight[BETA2]);
    if (!l->pre)
        memcpy(x, n, bytes);
    free(row);
    free(wide);
}

/* x, n: one sequence (S,D) each, which become the layer's outputs. */
static inline void run_layer(const struct layer *l, int b, double *x, double *n)
{
    double *qkv = mem_alloc((size_t)l->seq * 3 * l->hidden, sizeof(*qkv));
    double *context = mem_alloc((size_t)l->hidden, sizeof(*context));
    for (int i = 0; i < l->seq; i++) {
        double *row = qkv + (size_t)i * 3 * l->hidden;
        project(n + i * l->hidden, l->hidden, &l->weight[WQKV], &l->weight[BQKV], 3 * l->hidden,
                row);
        rotate(l, i, row);
        rotate(l, i, row + l->hidden);
    }
    for (int i = 0; i < l->seq; i++) {
        for (int h = 0; h < l->heads; h++)
            attend(l, qkv, b, i, h, context + h * l->width);
        finish(l, context, x + i * l->hidden, n + i * l->hidden);
    }
    free(qkv);
    free(context);
}

/* Whether token i of a sequence is real: it sees a key. */
static inline bool is_real(const struct layer *l, int b, int i)
{
    bool real = false;
    for (int j = 0; j < l->seq; j++)
        real |= sees(l, b, i, j);
    return real;
}

/* What a file holds, as numbers of double precision. */
static inline double *flow_read(const char *name)
{
    struct array a = array_read(name);
    int64_t elements = a.npy.shape[0] * a.npy.shape[1] * a.npy.shape[2];
    double *flow = mem_alloc((size_t)elements, sizeof(*flow));
    for (int64_t i = 0; i < elements; i++)
        flow[i] = floats(&a)[i];
    buf_release(&a.bytes);
    return flow;
}

/* Compares a file's real tokens, zero for all others; returns the number of real tokens. */
static inline int compare(const struct layer *l, const double *x, const char *name)
{
    double *y = flow_read(name);
    int real = 0;
    for (int row = 0; row < l->batch * l->seq; row++) {
        bool computed = is_real(l, row / l->seq, row % l->seq);
        real += computed;
        for (int c = row * l->hidden; c < (row + 1) * l->hidden; c++)
            ck_assert_msg(fabs(y[c] - (computed ? x[c] : 0)) < 1e-5, "token %d: %g, expected %g",
                          row, y[c], x[c]);
    }
    free(y);
    return real;
}

#endif
