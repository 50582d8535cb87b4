#include "layer/layer.h"

const struct dtype_info dtypes[DTYPE_COUNT] = {
#define X(id, name, bytes, tolerance) {name, bytes, tolerance},
    DTYPES(X)
#undef X
};

enum dtype dtype_from_name(const char *name)
{
    int d = 0;
    while (d < DTYPE_COUNT && strcmp(dtypes[d].name, name) != 0)
        d++;
    return (enum dtype)d;
}

/* Where numbers are rounded to e4m3, one next to the middle of two of these may go to the other
 * one, by a whole step. */
double layer_tolerance(enum dtype dtype, unsigned precision)
{
    enum { SEGMENTS = 4 };
    const double rounded = 3e-2, plain = SEGMENTS * dtypes[dtype].tolerance;
    return precision != 0 && rounded > plain ? rounded : plain;
}

void workload_init(struct workload *w)
{
    struct status st = STATUS_INIT;
    *w = (struct workload){.chain = &chain_bert,
                           .heads = 12,
                           .head_size = 64,
                           .layers = 12,
                           .eps = 1e-5,
                           .dtype = DTYPE_FP32};
    mask_parse("full", &w->mask_spec, &st);
}

void workload_release(struct workload *w)
{
    if (w == NULL)
        return;
    free(w->lengths);
    mask_spec_release(&w->mask_spec);
    mask_release(&w->mask);
    block_lists_release(&w->blocks);
    cover_release(&w->cover);
    workload_release(w->local);
    free(w->local);
    *w = (struct workload){.lengths = NULL};
}

static void *duplicate(const void *data, size_t count, size_t size)
{
    return data == NULL ? NULL : memcpy(mem_alloc(count, size), data, count * size);
}

static void copy_blocks(struct block_lists *dst, const struct block_lists *src)
{
    size_t query_blocks = (size_t)src->lists * (size_t)src->blocks;
    size_t entries = src->start == NULL ? 0 : (size_t)src->start[query_blocks];
    *dst = *src;
    dst->start = duplicate(src->start, query_blocks + 1, sizeof(*src->start));
    dst->full = duplicate(src->full, query_blocks, sizeof(*src->full));
    dst->key_block = duplicate(src->key_block, entries, sizeof(*src->key_block));
    dst->bits = duplicate(src->bits, entries, sizeof(*src->bits));
    dst->words = duplicate(src->words, (size_t)src->bit_blocks, MASK_BLOCK * sizeof(*src->words));
}

static void copy_cover(struct cover *dst, const struct cover *src)
{
    *dst = *src;
    for (int i = 0; i < src->parts; i++) {
        const struct cover_part *from = &src->part[i];
        struct cover_part *to = &dst->part[i];
        size_t places = (size_t)from->blocks.blocks * MASK_BLOCK;
        to->query_token = duplicate(from->query_token, places, sizeof(*from->query_token));
        to->key_token = duplicate(from->key_token, places, sizeof(*from->key_token));
        copy_blocks(&to->blocks, &from->blocks);
    }
}

void workload_copy(struct workload *dst, const struct workload *src)
{
    *dst = *src;
    dst->lengths = duplicate(src->lengths, (size_t)src->batch, sizeof(*src->lengths));
    mask_spec_copy(&dst->mask_spec, &src->mask_spec);
    dst->mask.bits = NULL;
    dst->mask.borrowed = false;
    copy_blocks(&dst->blocks, &src->blocks);
    copy_cover(&dst->cover, &src->cover);
    if (src->local == NULL)
        return;
    dst->local = mem_alloc(1, sizeof(*dst->local));
    workload_copy(dst->local, src->local);
}

double workload_bytes(const struct workload *w)
{
    const struct chain *c = w->chain;
    double tokens = (double)w->batch * w->seq_len, s = w->seq_len;
    double tensors = 0, layer_weights = 0;
    for (int t = 0; t < TENSOR_COUNT; t++)
        if (chain_has_tensor(c, t))
            tensors += tokens * (tensor_layout(c, t) == LAYOUT_SCORES
                                     ? w->heads * s
                                     : dim_bound(tensor_columns(c, t), w));
    for (int i = 0; i < WEIGHT_MAX; i++)
        layer_weights += dim_bound(c->weights[i].rows, w) * dim_bound(c->weights[i].cols, w);
    /* In struct mask and in struct block_lists. */
    double mask_bits = 2 * tokens * s * workload_kinds(w);
    double oracle = sizeof(float) * workload_kinds(w);
    return tensors * (dtypes[w->dtype].bytes + oracle) +
           layer_weights * w->layers * dtypes[w->dtype].bytes + mask_bits / 8;
}

/* Within these bounds kernels can index every element, every count of elements and of mask blocks
 * fits its type, and a mask takes at most 512 MiB a matrix. */
static const struct {
    const char *name;
    size_t offset;
    int max;
} sizes[] = {{"batch", offsetof(struct workload, batch), BATCH_MAX},
             {"seq_len", offsetof(struct workload, seq_len), SEQ_LEN_MAX},
             {"heads", offsetof(struct workload, heads), HEADS_MAX},
             {"head_size", offsetof(struct workload, head_size), HEAD_SIZE_MAX},
             {"ffn", offsetof(struct workload, ffn), FFN_MAX},
             {"layers", offsetof(struct workload, layers), LAYERS_MAX},
             {"hidden", offsetof(struct workload, hidden), HIDDEN_MAX}};
enum { TOKENS_MAX = 1 << 24 };

static int size_at(const struct workload *w, size_t s)
{
    return *(const int *)((const char *)w + sizes[s].offset);
}

static int refuse_large(const struct workload *w, const char *name, int64_t found, int64_t max,
                        struct status *st)
{
    char bytes[32];
    double need = workload_bytes(w);
    number_bytes(need < 0x1p63 ? (uint64_t)need : (uint64_t)1 << 63, bytes);
    return status_set(st, STATUS_USAGE,
                      "%s is %lld: the workload would take %s%s of memory; give at most %lld", name,
                      (long long)found, need < 0x1p63 ? "" : "more than ", bytes, (long long)max);
}

static int check_sizes(const struct workload *w, struct status *st)
{
    for (size_t s = 0; s < ARRAY_LEN(sizes); s++) {
        bool may_be_0 = sizes[s].offset == offsetof(struct workload, ffn) ||
                        sizes[s].offset == offsetof(struct workload, hidden);
        if (size_at(w, s) < (may_be_0 ? 0 : 1))
            return status_set(st, STATUS_USAGE, "%s is %d; give a number from 1 to %d",
                              sizes[s].name, size_at(w, s), sizes[s].max);
    }
    for (size_t s = 0; s < ARRAY_LEN(sizes); s++)
        if (size_at(w, s) > sizes[s].max)
            return refuse_large(w, sizes[s].name, size_at(w, s), sizes[s].max, st);
    int64_t tokens = (int64_t)w->batch * w->seq_len, columns = (int64_t)w->heads * w->head_size;
    if (tokens > TOKENS_MAX)
        return refuse_large(w, "batch * seq_len", tokens, TOKENS_MAX, st);
    if (columns > HIDDEN_MAX)
        return refuse_large(w, "heads * head_size", columns, HIDDEN_MAX, st);
    return 0;
}

/* Checks the lengths, and drops them if all are seq_len. */
static int check_lengths(struct workload *w, struct status *st)
{
    bool padded = false;
    for (int b = 0; w->lengths != NULL && b < w->batch; b++) {
        if (w->lengths[b] < 1 || w->lengths[b] > w->seq_len)
            return status_set(st, STATUS_USAGE,
                              "the length of batch row %d is %d; give 1 to %d, the seq_len", b,
                              w->lengths[b], w->seq_len);
        padded = padded || w->lengths[b] != w->seq_len;
    }
    if (!padded) {
        free(w->lengths);
        w->lengths = NULL;
    }
    return 0;
}

/* Rotations need pairs of columns.  theta and factor are 0 of chains without them, so that
 * they are in no text. */
static int check_rope(struct workload *w, struct status *st)
{
    if (!chain_functions(w->chain).rope) {
        w->rope_theta = w->rope_factor = 0;
        return 0;
    }
    if (w->head_size % 2 != 0)
        return status_set(st, STATUS_USAGE,
                          "head_size is %d; rotary embeddings need an even number", w->head_size);
    if (!(w->rope_theta >= ROPE_THETA_MIN && w->rope_theta <= ROPE_THETA_MAX))
        return status_set(
            st, STATUS_USAGE,
            "the base of rotary embeddings is %g; give a number from %g to %g, such as "
            "10000",
            w->rope_theta, ROPE_THETA_MIN, ROPE_THETA_MAX);
    if (w->rope_factor != 0 && !(w->rope_factor >= 1 && w->rope_factor <= ROPE_FACTOR_MAX))
        return status_set(st, STATUS_USAGE,
                          "the factor of rotary embeddings is %g; give a number from 1 to %g",
                          w->rope_factor, ROPE_FACTOR_MAX);
    return 0;
}

static void settle_hidden(struct workload *w)
{
    struct chain_functions f = chain_functions(w->chain);
    if (w->hidden == workload_heads_columns(w))
        w->hidden = 0;
    if (f.hidden != (w->hidden != 0)) {
        f.hidden = w->hidden != 0;
        w->chain = chain_of(f);
    }
}

/* Gives the local layers what all have, and drops them if there are none. */
static int check_local(struct workload *w, struct status *st)
{
    struct workload *local = w->local;
    if (local == NULL)
        return 0;
    if (w->layers == 1) {
        workload_release(local);
        free(local);
        w->local = NULL;
        w->every = 0;
        return 0;
    }
    if (w->every < 2 || w->every > LAYERS_MAX)
        return status_set(st, STATUS_USAGE,
                          "global_every is %d; give a number from 2 to %d: at 1 no layer is local",
                          w->every, LAYERS_MAX);
    if (local->mask_spec.path != NULL)
        return status_set(
            st, STATUS_USAGE,
            "the attention mask of local layers is a file; give one by its name, such as "
            "sliding:w=64");
    struct workload now = *w;
    free(local->lengths);
    now.lengths = duplicate(w->lengths, (size_t)w->batch, sizeof(*w->lengths));
    now.mask_spec = local->mask_spec;
    now.mask = local->mask;
    now.blocks = local->blocks;
    now.cover = local->cover;
    now.rope_theta = local->rope_theta;
    now.every = 0;
    now.local = NULL;
    *local = now;
    if (check_rope(local, st) != 0 || mask_resolve(&local->mask_spec, w->seq_len, st) != 0)
        return status_prefix(st, "local layers");
    return 0;
}

int workload_check(struct workload *w, struct status *st)
{
    if ((unsigned)w->dtype >= DTYPE_COUNT)
        return status_set(st, STATUS_USAGE, "unknown dtype; give fp32, tf32, fp16 or bf16");
    if (chain_check(w->chain, st) != 0 || check_sizes(w, st) != 0 || check_lengths(w, st) != 0)
        return -1;
    if (!(w->eps >= EPS_MIN && w->eps <= EPS_MAX))
        return status_set(st, STATUS_USAGE, "eps is %g; give a number from %g to %g, such as 1e-5",
                          w->eps, EPS_MIN, EPS_MAX);
    if (check_rope(w, st) != 0)
        return -1;
    settle_hidden(w);
    if (w->ffn == 0)
        w->ffn = 4 * workload_hidden(w);
    if (mask_resolve(&w->mask_spec, w->seq_len, st) != 0)
        return -1;
    return check_local(w, st);
}

int workload_build_mask(struct workload *w, const struct buf *npy, struct status *st)
{
    mask_release(&w->mask);
    block_lists_release(&w->blocks);
    cover_release(&w->cover);
    if (mask_build(&w->mask_spec, w->batch, w->seq_len, npy, &w->mask, st) != 0)
        return -1;
    block_lists_build(&w->mask, w->batch, w->lengths, &w->blocks);
    cover_build(&w->mask, w->batch, w->lengths, &w->blocks, &w->cover);
    return w->local != NULL ? workload_build_mask(w->local, NULL, st) : 0;
}

unsigned workload_functions(const struct workload *w)
{
    const struct chain_functions f = chain_functions(w->chain);
    return (unsigned)f.pre | (unsigned)f.rms << 1 | (unsigned)f.gate << 2 | (unsigned)f.rope << 3 |
           (unsigned)f.score_bias << 4 | (unsigned)(w->local != NULL) << 5;
}

int64_t workload_tokens(const struct workload *w)
{
    int64_t tokens = 0;
    for (int b = 0; b < w->batch; b++)
        tokens += w->lengths != NULL ? w->lengths[b] : w->seq_len;
    return tokens;
}

/* Whether query i of a batch row sees key j. */
static bool keeps(const struct workload *w, int batch_row, int i, int j)
{
    int length = w->lengths != NULL ? w->lengths[batch_row] : w->seq_len;
    return i < length && j < length && mask_keep(&w->mask, batch_row, i, j);
}

int workload_kept(const struct workload *w, int64_t shape[3], unsigned char **out)
{
    bool differ = w->lengths != NULL || w->mask.matrices > 1;
    int s = w->seq_len, matrices = differ ? w->batch : 1, dims = 0;
    if (differ)
        shape[dims++] = matrices;
    shape[dims++] = s;
    shape[dims++] = s;
    unsigned char *at = *out = mem_alloc((size_t)matrices * (size_t)s * (size_t)s, 1);
    for (int b = 0; b < matrices; b++)
        for (int i = 0; i < s; i++)
            for (int j = 0; j < s; j++)
                *at++ = keeps(w, b, i, j);
    return dims;
}

static int parse_lengths(char *text, int *out, const struct workload *w, struct status *st)
{
    int count = 0;
    for (char *one; (one = strsep(&text, ",")) != NULL; count++) {
        int64_t length;
        if (number_parse("a length", one, 1, w->seq_len, &length, st) != 0)
            return -1;
        if (count < w->batch)
            out[count] = (int)length;
    }
    if (count != w->batch)
        return status_set(st, STATUS_USAGE,
                          "%d lengths for a batch of %d; give one number a batch row", count,
                          w->batch);
    return 0;
}

int workload_parse_lengths(struct workload *w, const char *text, struct status *st)
{
    if (check_sizes(w, st) != 0)
        return -1;
    int *lengths = mem_alloc((size_t)w->batch, sizeof(*lengths));
    SCOPED char *copy = mem_strdup(text);
    if (parse_lengths(copy, lengths, w, st) != 0) {
        free(lengths);
        return -1;
    }
    free(w->lengths);
    w->lengths = lengths;
    return 0;
}

int workload_draw_lengths(struct workload *w, int average, uint64_t seed, struct status *st)
{
    if (check_sizes(w, st) != 0)
        return -1;
    if (average < 1 || average > w->seq_len)
        return status_set(st, STATUS_USAGE, "the average length is %d; give 1 to %d, the seq_len",
                          average, w->seq_len);
    int hi = 2 * average - 1, lo = 2 * average - w->seq_len;
    hi = hi < w->seq_len ? hi : w->seq_len;
    lo = lo > 1 ? lo : 1;
    free(w->lengths);
    w->lengths = mem_alloc((size_t)w->batch, sizeof(*w->lengths));
    for (int b = 0; b < w->batch; b++) {
        uint64_t drawn = splitmix64((seed << 32) + (uint64_t)b);
        w->lengths[b] = lo + (int)(drawn % (uint64_t)(hi - lo + 1));
    }
    return 0;
}
