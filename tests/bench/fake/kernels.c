#include "tests/bench/fake/kernels.h"

#include "bench/oracle/oracle_int.h"

#include <unistd.h>

/* ---- segments -------------------------------------------------------------------------------- */

/* The bits that the block lists keep. */
static void unpack_mask(const struct fp_blocks *m, int seq_len, struct mask *out)
{
    *out = (struct mask){.seq_len = seq_len, .matrices = m->lists, .row_words = m->blocks};
    size_t list_words = (size_t)seq_len * (size_t)m->blocks;
    out->bits = mem_alloc((size_t)m->lists * list_words, sizeof(*out->bits));
    for (int list = 0; list < m->lists; list++)
        for (int i = 0; i < seq_len; i++) {
            uint64_t *row = out->bits + (size_t)list * list_words + (size_t)(i * m->blocks);
            int block = list * m->blocks + i / FP_BLOCK;
            for (int e = m->start[block]; e < m->start[block + 1]; e++)
                row[m->key_block[e]] =
                    m->bits[e] < 0 ? UINT64_MAX : m->words[m->bits[e] * FP_BLOCK + i % FP_BLOCK];
        }
}

static const struct chain *chain(void)
{
    const char *name = getenv("FAKE_CHAIN");
    return name != NULL ? chain_find(name) : &chain_bert;
}

static struct workload workload_of(const struct fp_args *a)
{
    struct workload w = {.chain = chain(),
                         .batch = a->batch,
                         .seq_len = a->seq_len,
                         .heads = a->heads,
                         .head_size = a->head_size,
                         .hidden = a->hidden,
                         .ffn = a->ffn,
                         .layers = 1,
                         .eps = a->eps,
                         .lengths = (int *)(uintptr_t)a->lengths};
    unpack_mask(&a->mask, a->seq_len, &w.mask);
    return w;
}

/* Where a row of a tensor begins; -1: nowhere, as it is padding of a packed one. */
static int64_t row_begin(const struct fp_args *a, const struct workload *w, int t, int64_t row,
                         int64_t columns)
{
    int b = (int)(row / w->seq_len), i = (int)(row % w->seq_len);
    if (a->offset == NULL || tensor_layout(w->chain, t) != LAYOUT_TOKENS)
        return row * columns;
    return i < oracle_length(w, b) ? (a->offset[b] + i) * columns : -1;
}

/* Whether a row is that of a real token; rows of other tensors count as such. */
static bool is_real(const struct workload *w, int t, int64_t row)
{
    return tensor_layout(w->chain, t) != LAYOUT_TOKENS ||
           (int)(row % w->seq_len) < oracle_length(w, (int)(row / w->seq_len));
}

/* The type of elements: fp32, or what FAKE_DTYPE names. */
static enum dtype dtype(void)
{
    const char *name = getenv("FAKE_DTYPE");
    return name != NULL ? dtype_from_name(name) : DTYPE_FP32;
}

static void load_all(const void *from, int64_t begin, int64_t n, float *out)
{
    elements_unpack(dtype(), (const char *)from + begin * dtypes[dtype()].bytes, n, out);
}

static void store_all(const float *x, int64_t n, void *to, int64_t begin)
{
    elements_pack(dtype(), x, n, (char *)to + begin * dtypes[dtype()].bytes);
}

static float load(const void *from, int64_t i)
{
    float x;
    load_all(from, i, 1, &x);
    return x;
}

static void store(void *to, int64_t i, float x)
{
    store_all(&x, 1, to, i);
}

/* Copies from a tensor as kernels have it, or to it; that of the oracle has all rows.  Kernels may
 * write anything to rows of padding: NaN. */
static void copy(const struct fp_args *a, const struct workload *w, int t, bool out, double *tensor)
{
    int64_t columns = tensor_row_columns(w, t), rows = tensor_elements(t, w) / columns;
    SCOPED float *values = mem_alloc((size_t)columns, sizeof(*values));
    for (int64_t row = 0; row < rows; row++, tensor += columns) {
        int64_t begin = row_begin(a, w, t, row, columns);
        if (begin < 0)
            continue;
        if (!out)
            load_all(a->tensor[t], begin, columns, values);
        const bool real = is_real(w, t, row);
        for (int64_t c = 0; c < columns; c++)
            if (out)
                values[c] = real ? (float)tensor[c] : NAN;
            else
                tensor[c] = values[c];
        if (out)
            store_all(values, columns, a->tensor[t], begin);
    }
}

/* The segment's weights in fp32; the caller frees each, and those of tables are as they are. */
static void load_weights(const struct fp_args *a, const struct workload *w, struct segment s,
                         float **out)
{
    const uint32_t used = segment_weights(w->chain, s);
    for (int i = 0; i < WEIGHT_MAX; i++) {
        const bool has = (used >> i & 1) != 0 && a->weight[i] != NULL;
        const int64_t n = has ? weight_elements(i, w) : 0;
        out[i] = mem_alloc((size_t)n + 1, sizeof(**out));
        if (n > 0 && w->chain->weights[i].table)
            memcpy(out[i], a->weight[i], (size_t)n * sizeof(**out));
        else if (n > 0)
            load_all(a->weight[i], 0, n, out[i]);
    }
}

/* ---- tiles of joined rows -------------------------------------------------------------------- */

/* Whether entries, of so many ints from key blocks to row words, keep a key for row r of their
 * rows. */
static bool keeps(const int *block, const int *bits, int ints, int count,
                  const unsigned long long *words, int r, int key)
{
    for (int e = 0; e < count; e++, block += ints, bits += ints)
        if (*block == key / FP_BLOCK)
            return *bits < 0 || (words[(ptrdiff_t)*bits * FP_BLOCK + r] >> key % FP_BLOCK & 1) != 0;
    return false;
}

static bool is_listed(const struct fp_blocks *m, int b, int token, int key)
{
    const int block = (m->lists > 1 ? b : 0) * m->blocks + token / FP_BLOCK, at = m->start[block];
    return keeps(m->key_block + at, m->bits + at, 1, m->start[block + 1] - at, m->words,
                 token % FP_BLOCK, key);
}

static bool is_joined(const struct fp_tiles *t, int row, int key)
{
    enum { HEAD = 32 };
    const int tile = row / FP_BLOCK, *head = t->head + (ptrdiff_t)tile * HEAD * 2,
              *of = t->tile + 4 * (ptrdiff_t)tile;
    return of[0] == 0 && of[1] == tile && of[2] <= HEAD &&
           keeps(head, head + 1, 2, of[2], t->words, row % FP_BLOCK, key);
}

/* Tiles of joined rows keep what the lists keep of a token's sequence, and nothing of another. */
static bool joins_as_listed(const struct fp_args *a)
{
    const int sequences = a->tiles.tile != NULL && a->tiles.rest == NULL ? a->batch : 0;
    bool right = true;
    for (int s = 0; s < sequences * sequences; s++) {
        const int b = s / sequences, of = s % sequences;
        const int real = a->lengths != NULL ? a->lengths[b] : a->seq_len,
                  keys = a->lengths != NULL ? a->lengths[of] : a->seq_len,
                  rows = a->offset != NULL ? keys : a->seq_len;
        const int begin = a->offset != NULL ? a->offset[b] : b * a->seq_len,
                  begin_of = a->offset != NULL ? a->offset[of] : of * a->seq_len;
        for (int i = 0; i < real; i++)
            for (int k = 0; k < rows; k++)
                right = right && is_joined(&a->tiles, begin + i, begin_of + k) ==
                                     (b == of && k < keys && is_listed(&a->mask, b, i, k));
    }
    return right;
}

/* ---- e4m3 ------------------------------------------------------------------------------------ */

/* Byte 2i of each 16 columns is column i, byte 2i + 1 column i + 8. */
static int64_t place_of(int64_t column)
{
    return column / 16 * 16 + column % 8 * 2 + column % 16 / 8;
}

/* Codes of a tensor as kernels have it, times `factor`, or to it.  wraps: what is beyond 448
 * becomes NaN. */
static void copy_codes(const struct fp_args *a, const struct workload *w, int t, bool out,
                       double factor, bool wraps, double *tensor)
{
    int64_t columns = tensor_row_columns(w, t), rows = tensor_elements(t, w) / columns;
    uint8_t *codes = out ? a->e4m3.out : (uint8_t *)(uintptr_t)a->e4m3.in;
    const enum dtype type = dtype();
    for (int64_t row = 0; row < rows; row++, tensor += columns) {
        int64_t begin = row_begin(a, w, t, row, columns);
        const bool real = is_real(w, t, row);
        for (int64_t c = 0; begin >= 0 && c < columns; c++) {
            uint8_t *code = codes + begin + place_of(c);
            if (!out) {
                tensor[c] = e4m3_unpack(*code) * factor;
                continue;
            }
            const double x = element_round(type, (float)tensor[c]) * factor;
            const bool fits = real && (!wraps || fabs(x) <= E4M3_MOST);
            *code = fits ? e4m3_pack((float)x) : E4M3_NAN;
        }
    }
}

/* A GEMM's weight (N,K) as (K,N); in_order: by who has not heard of the order. */
static void load_codes(const struct fp_args *a, const struct workload *w, int gemm, bool in_order,
                       float **weight)
{
    const int id = w->chain->ops[chain_gemm(w->chain, gemm)].weight[ROLE_MATRIX];
    const int64_t inner = dim_size(w->chain->weights[id].rows, w),
                  columns = dim_size(w->chain->weights[id].cols, w);
    const uint8_t *codes = a->e4m3.weight;
    free(weight[id]);
    weight[id] = mem_alloc((size_t)(inner * columns), sizeof(**weight));
    for (int64_t i = 0; i < inner; i++)
        for (int64_t n = 0; n < columns; n++)
            weight[id][i * columns + n] =
                e4m3_unpack(codes[n * inner + (in_order ? i : place_of(i))]);
}

/* The GEMM of a segment whose operands are e4m3; -1: none. */
static int gemm_of(const struct fp_args *a, const struct workload *w, int first, int last)
{
    int found = -1;
    for (int g = 0; g < GEMM_COUNT && a->e4m3.in != NULL; g++)
        if (first <= chain_gemm(w->chain, g) && chain_gemm(w->chain, g) <= last)
            found = g;
    return found;
}

/* ---- a segment's operators ------------------------------------------------------------------- */

/* Tensors that are given are read before and written after; the others exist in between. */
static void run_segment(const struct fp_args *a, const struct fake_code *c, bool half)
{
    const int first = c->first, last = c->last;
    struct workload w = workload_of(a);
    const int gemm = gemm_of(a, &w, first, last);
    const int coded = gemm >= 0 ? w.chain->ops[chain_gemm(w.chain, gemm)].input : TENSOR_NONE;
    float *weight[WEIGHT_MAX];
    const struct segment segment = {(int8_t)first, (int8_t)last};
    uint32_t inputs = segment_inputs(w.chain, segment);
    double *tensor[TENSOR_COUNT] = {NULL};
    SCOPED_BY(spans_release) struct spans all = spans_all(&w);
    SCOPED double *keys = oracle_keys_new(&w);
    struct layer l = {.w = &w,
                      .weight = (const float *const *)weight,
                      .tensor = tensor,
                      .keys = keys,
                      .heads = w.heads};
    load_weights(a, &w, segment, weight);
    if (gemm >= 0)
        load_codes(a, &w, gemm, strcmp(c->kind, "unordered") == 0, weight);
    for (int t = 0; t < TENSOR_COUNT; t++) {
        bool input = (inputs & 1u << t) != 0;
        if (input || (t > first && t <= last + 1))
            tensor[t] = mem_alloc((size_t)tensor_elements(t, &w), sizeof(**tensor));
        if (input && t == coded)
            copy_codes(a, &w, t, false, (double)a->e4m3.alpha, false, tensor[t]);
        else if (input && a->tensor[t] != NULL)
            copy(a, &w, t, false, tensor[t]);
    }
    for (int op = first; op <= last; op++) {
        for (int i = 0; i < all.count && w.chain->ops[op].kind == KIND_SCORES; i++)
            oracle_tile_keys(&l, all.items[i], w.chain->ops[op].qkv);
        for (int i = 0; i < all.count; i++)
            oracle_operator_run(&l, all.items[i], op);
    }
    for (int t = 0; t < TENSOR_COUNT; t++) {
        if (a->tensor[t] != NULL && t > (half ? last : first) && t <= last + 1)
            copy(a, &w, t, true, tensor[t]);
        if (a->e4m3.out != NULL && t == last + 1 && strcmp(c->kind, "uncopied") != 0)
            copy_codes(a, &w, t, true,
                       (double)load(&a->e4m3.factors, 0) * (strcmp(c->kind, "scaled") == 0 ? 2 : 1),
                       strcmp(c->kind, "wraps") == 0, tensor[t]);
        free(tensor[t]);
    }
    for (int i = 0; i < WEIGHT_MAX; i++)
        free(weight[i]);
    free(w.mask.bits);
}

/* ---- faults ---------------------------------------------------------------------------------- */

static bool is(const struct fake_code *c, const char *kind)
{
    return strcmp(c->kind, kind) == 0;
}

/* The operators of a GEMM's kernel that several segments share.  It may begin with merge_heads. */
static void find_operators(struct fake_code *c, const struct fp_args *a)
{
    const struct chain *chain_of_it = chain();
    for (int op = 0; op < OP_COUNT; op++) {
        const int kind = chain_of_it->ops[op].kind;
        if ((kind == KIND_GEMM || kind == KIND_MERGE) &&
            a->tensor[chain_of_it->ops[op].input] == a->gemm.in)
            c->first = op;
        if (a->tensor[TENSOR_OF(op)] == a->gemm.out)
            c->last = op;
    }
}

/* What lies behind the packed tokens of a tensor; NaN: none are packed, or another run poisoned it.
 */
static float behind_tokens(const struct fp_args *a, int t)
{
    struct workload w = workload_of(a);
    float x = NAN;
    if (a->offset != NULL && tensor_layout(w.chain, t) == LAYOUT_TOKENS)
        x = load(a->tensor[t], a->offset[a->batch] * tensor_row_columns(&w, t));
    free(w.mask.bits);
    return x;
}

static void compute(struct fake_code *c, const struct fp_args *a)
{
    if (a->gemm.in != NULL)
        find_operators(c, a);
    void *out = a->tensor[c->last + 1]; /* null: its result is in e4m3 alone */
    float old = out != NULL ? load(out, 0) : 0;
    unsigned *sync = a->sync;
    bool late = ++c->runs > c->rested_runs, marked = sync[0] != 0;
    sync[0] = is(c, "messy");
    const bool leaks = is(c, "leaky") && !isnan(behind_tokens(a, c->last + 1));
    if (late && is(c, "lazy"))
        return;
    run_segment(a, c, late && is(c, "half"));
    for (int i = 0; i < WEIGHT_MAX && is(c, "vandal"); i++)
        if (a->weight[i] != NULL)
            store((void *)(uintptr_t)a->weight[i], 0, 1);
    if (marked || is(c, "messy") || is(c, "vandal") || is(c, "wrong") || (late && is(c, "tired")) ||
        (c->runs > 1 && is(c, "fickle")))
        store(out, 0, load(out, 0) + 1);
    else if (is(c, "stale") && !isnan(old))
        store(out, 0, load(out, 0) + old);
    else if (leaks)
        store(out, 0, load(out, 0) + 1.0F / 64);
}

static const char *fault_notes(void)
{
    const char *path = getenv("FAKE_GPU_FAULTS");
    return path != NULL ? path : "/dev/null";
}

static int fault(void)
{
    FILE *notes = fopen(fault_notes(), "a");
    if (notes != NULL) {
        fputc('x', notes);
        fclose(notes);
    }
    return ILLEGAL_ADDRESS;
}

int fake_code_run(struct fake_code *c, const struct fp_args *a)
{
    if (is(c, "waking") && c->runs < c->rested_runs)
        nanosleep(&(struct timespec){.tv_nsec = 2000000}, NULL);
    if (is(c, "fault"))
        return fault();
    while (is(c, "hang"))
        pause();
    if (!is(c, "nothing") && joins_as_listed(a))
        compute(c, a);
    return 0;
}
