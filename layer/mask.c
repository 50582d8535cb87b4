#include "layer/mask_int.h"

/* Keeps keys lo..hi-1, as far as they exist. */
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

/* Keeps every sum and product above well inside 64 bits. */
#define PARAM_MAX INT32_MAX
/* Of random blocks in a block row: more would cover any row. */
#define RANDOM_MAX 1024

const struct mask_kind mask_kinds[] = {
    {.name = "full", .usage = "full", .summary = "every key", .row = full_row},
    {.name = "causal",
     .usage = "causal",
     .summary = "keys up to the query's own position",
     .row = causal_row},
    {.name = "strided",
     .usage = "strided:t=N",
     .summary = "causal: the last t keys and every t-th before",
     .params = {{"t", 1, PARAM_MAX, DEFAULT_ROOT}},
     .row = strided_row},
    {.name = "fixed",
     .usage = "fixed:t=N",
     .summary = "causal: the query's group of t keys and the last key of each group",
     .params = {{"t", 1, PARAM_MAX, DEFAULT_ROOT}},
     .row = fixed_row},
    {.name = "sliding",
     .usage = "sliding:w=N",
     .summary = "keys at most w away",
     .params = {{"w", 0, PARAM_MAX, DEFAULT_ROOT}},
     .row = sliding_row},
    {.name = "sliding_causal",
     .usage = "sliding_causal:w=N",
     .summary = "the query's own key and the w before it",
     .params = {{"w", 0, PARAM_MAX, DEFAULT_ROOT}},
     .row = sliding_causal_row},
    {.name = "dilated",
     .usage = "dilated:w=N,d=N",
     .summary = "every d-th key, w of them on each side",
     .params = {{"w", 0, PARAM_MAX, DEFAULT_ROOT}, {"d", 1, PARAM_MAX, 2}},
     .row = dilated_row},
    {.name = "longformer",
     .usage = "longformer:g=N,w=N",
     .summary = "keys at most w away; the first g tokens see and are seen by all",
     .params = {{"g", 0, PARAM_MAX, DEFAULT_ROOT}, {"w", 0, PARAM_MAX, DEFAULT_ROOT}},
     .row = longformer_row},
    {.name = "bigbird",
     .usage = "bigbird:g=N,w=N,n=N,seed=N",
     .summary = "longformer and n random 64x64 blocks a block row",
     .params = {{"g", 0, PARAM_MAX, DEFAULT_ROOT},
                {"w", 0, PARAM_MAX, DEFAULT_ROOT},
                {"n", 0, RANDOM_MAX, 1},
                {"seed", 0, UINT32_MAX, 0}},
     .row = bigbird_row},
    {.name = "prefix",
     .usage = "prefix:p=N",
     .summary = "causal, and the first p keys for all",
     .params = {{"p", 0, PARAM_MAX, DEFAULT_QUARTER}},
     .row = prefix_row},
    {.name = "document",
     .usage = "document:n=N",
     .summary = "n documents side by side, each seeing itself only",
     .params = {{"n", 1, PARAM_MAX, 4}},
     .row = document_row},
    {.name = "file",
     .usage = "file:PATH",
     .summary = "a NumPy file, bool or uint8, (S,S) or (B,S,S)"},
};

int mask_kind_count(void)
{
    return ARRAY_LEN(mask_kinds);
}

void mask_kind_info(int index, const char **name, const char **usage, const char **summary)
{
    *name = mask_kinds[index].name;
    *usage = mask_kinds[index].usage;
    *summary = mask_kinds[index].summary;
}
