#include "layer/mask_int.h"

/* Keeps those keys of lo..hi-1 that exist. */
static void keep_range(uint64_t *row, int64_t lo, int64_t hi, int64_t seq_len)
{
    lo = lo > 0 ? lo : 0;
    hi = hi < seq_len ? hi : seq_len;
    for (int64_t word = lo / 64; word * 64 < hi; word++) {
        uint64_t bits = ~(uint64_t)0;
        if (word == lo / 64)
            bits <<= lo % 64;
        if (hi - word * 64 < 64)
            bits &= ((uint64_t)1 << (hi - word * 64)) - 1;
        row[word] |= bits;
    }
}

/* Keeps keys lo, lo+step, ... below hi, all of which exist. */
static void keep_steps(uint64_t *row, int64_t lo, int64_t hi, int64_t step)
{
    for (int64_t j = lo; j < hi; j += step)
        row[j / 64] |= (uint64_t)1 << j % 64;
}

static void full_row(uint64_t *row, int64_t i, int64_t s, const int64_t *param)
{
    (void)i;
    (void)param;
    keep_range(row, 0, s, s);
}

static void causal_row(uint64_t *row, int64_t i, int64_t s, const int64_t *param)
{
    (void)param;
    keep_range(row, 0, i + 1, s);
}

static void strided_row(uint64_t *row, int64_t i, int64_t s, const int64_t *param)
{
    int64_t t = param[0];
    keep_range(row, i - t + 1, i + 1, s);
    keep_steps(row, i % t, i + 1, t);
}

/* The second half of the definition keeps the columns of i's own group of t. */
static void fixed_row(uint64_t *row, int64_t i, int64_t s, const int64_t *param)
{
    int64_t t = param[0];
    keep_range(row, i - i % t, i + 1, s);
    keep_steps(row, t - 1, i + 1, t);
}

static void sliding_row(uint64_t *row, int64_t i, int64_t s, const int64_t *param)
{
    int64_t w = param[0];
    keep_range(row, i - w, i + w + 1, s);
}

static void sliding_causal_row(uint64_t *row, int64_t i, int64_t s, const int64_t *param)
{
    keep_range(row, i - param[0], i + 1, s);
}

static void dilated_row(uint64_t *row, int64_t i, int64_t s, const int64_t *param)
{
    int64_t w = param[0], d = param[1];
    int64_t before = i / d < w ? i / d : w, reach = i + w * d;
    keep_steps(row, i - before * d, reach < s ? reach + 1 : s, d);
}

static void longformer_row(uint64_t *row, int64_t i, int64_t s, const int64_t *param)
{
    int64_t g = param[0], w = param[1];
    keep_range(row, 0, i < g ? s : g, s);
    keep_range(row, i - w, i + w + 1, s);
}

static void bigbird_row(uint64_t *row, int64_t i, int64_t s, const int64_t *param)
{
    uint64_t n = (uint64_t)param[2], seed = (uint64_t)param[3];
    uint64_t blocks = (uint64_t)(s + MASK_BLOCK - 1) / MASK_BLOCK,
             block_row = (uint64_t)i / MASK_BLOCK;
    longformer_row(row, i, s, param);
    for (uint64_t k = 0; k < n; k++) {
        uint64_t block = splitmix64((seed << 32) + block_row * n + k) % blocks;
        keep_range(row, (int64_t)block * MASK_BLOCK, (int64_t)(block + 1) * MASK_BLOCK, s);
    }
}

static void prefix_row(uint64_t *row, int64_t i, int64_t s, const int64_t *param)
{
    int64_t p = param[0];
    keep_range(row, 0, i + 1 > p ? i + 1 : p, s);
}

/* Document d holds the tokens j with floor(j*n/S) == d: ceil(d*S/n) <= j < ceil((d+1)*S/n). */
static void document_row(uint64_t *row, int64_t i, int64_t s, const int64_t *param)
{
    int64_t n = param[0], d = i * n / s;
    keep_range(row, (d * s + n - 1) / n, ((d + 1) * s + n - 1) / n, s);
}

/* With parameters up to this, every sum and product above fits 64 bits. */
#define PARAM_MAX INT32_MAX
/* Random blocks in a block row; a row has at most SEQ_LEN_MAX / 64 = 1024 blocks. */
#define RANDOM_MAX 1024

/* clang-format off */
const struct mask_kind mask_kinds[] = {
    {"full", "full", "every key", full_row, {{0}}},
    {"causal", "causal", "keys up to the query's own position", causal_row, {{0}}},
    {"strided", "strided:t=N", "causal: the last t keys and every t-th before",
     strided_row, {{"t", 1, PARAM_MAX, DEFAULT_ROOT}}},
    {"fixed", "fixed:t=N", "causal: the query's group of t keys and the last key of each group",
     fixed_row, {{"t", 1, PARAM_MAX, DEFAULT_ROOT}}},
    {"sliding", "sliding:w=N", "keys at most w away",
     sliding_row, {{"w", 0, PARAM_MAX, DEFAULT_ROOT}}},
    {"sliding_causal", "sliding_causal:w=N", "the query's own key and the w before it",
     sliding_causal_row, {{"w", 0, PARAM_MAX, DEFAULT_ROOT}}},
    {"dilated", "dilated:w=N,d=N", "every d-th key, w of them on each side",
     dilated_row, {{"w", 0, PARAM_MAX, DEFAULT_ROOT}, {"d", 1, PARAM_MAX, 2}}},
    {"longformer", "longformer:g=N,w=N",
     "keys at most w away; the first g tokens see and are seen by all",
     longformer_row, {{"g", 0, PARAM_MAX, DEFAULT_ROOT}, {"w", 0, PARAM_MAX, DEFAULT_ROOT}}},
    {"bigbird", "bigbird:g=N,w=N,n=N,seed=N", "longformer and n random 64x64 blocks a block row",
     bigbird_row, {{"g", 0, PARAM_MAX, DEFAULT_ROOT}, {"w", 0, PARAM_MAX, DEFAULT_ROOT},
                   {"n", 0, RANDOM_MAX, 1}, {"seed", 0, UINT32_MAX, 0}}},
    {"prefix", "prefix:p=N", "causal, and the first p keys for all",
     prefix_row, {{"p", 0, PARAM_MAX, DEFAULT_QUARTER}}},
    {"document", "document:n=N", "n documents side by side, each seeing itself only",
     document_row, {{"n", 1, PARAM_MAX, 4}}},
    {"file", "file:PATH", "a NumPy file, bool or uint8, (S,S) or (B,S,S)", NULL, {{0}}},
};
/* clang-format on */

int mask_kind_count(void)
{
    return ARRAY_LEN(mask_kinds);
}

void mask_kind_info(int index, const char **name, const char **usage, struct buf *summary)
{
    const struct mask_kind *kind = &mask_kinds[index];
    *name = kind->name;
    *usage = kind->usage;
    buf_adds(summary, kind->summary);
    for (int p = 0; p < MASK_PARAM_MAX && kind->params[p].key != NULL; p++) {
        buf_addf(summary, "%s%s=", p == 0 ? " (" : ",", kind->params[p].key);
        if (kind->params[p].fallback == DEFAULT_ROOT)
            buf_adds(summary, "sqrt(S)");
        else if (kind->params[p].fallback == DEFAULT_QUARTER)
            buf_adds(summary, "S/4");
        else
            buf_addf(summary, "%lld", (long long)kind->params[p].fallback);
    }
    buf_adds(summary, kind->params[0].key != NULL ? ")" : "");
}
