#include "tests/masks.h"

/* ---- the definitions, told again one element at a time --------------------------------------- */

enum { ROOT = -1, QUARTER = -2 }; /* parameters that follow from S */

enum kind {
    FULL,
    CAUSAL,
    STRIDED,
    FIXED,
    SLIDING,
    SLIDING_CAUSAL,
    DILATED,
    LONGFORMER,
    BIGBIRD,
    PREFIX,
    DOCUMENT
};

static bool in_drawn_block(int64_t i, int64_t j, int64_t s, int64_t n, int64_t seed)
{
    for (int64_t k = 0; k < n; k++) {
        uint64_t x = (uint64_t)seed * 4294967296u + (uint64_t)(i / 64 * n + k);
        if (splitmix64(x) % (uint64_t)((s + 63) / 64) == (uint64_t)(j / 64))
            return true;
    }
    return false;
}

static bool keeps(enum kind kind, int64_t i, int64_t j, int64_t s, const int64_t *p)
{
    int64_t back = i - j;
    switch (kind) {
    case FULL:
        return true;
    case CAUSAL:
        return back >= 0;
    case STRIDED:
        return back >= 0 && (back % p[0] == 0 || back < p[0]);
    case FIXED:
        return back >= 0 && (j % p[0] == p[0] - 1 || back < p[0] - j % p[0]);
    case SLIDING:
        return llabs(back) <= p[0];
    case SLIDING_CAUSAL:
        return 0 <= back && back <= p[0];
    case DILATED:
        return back % p[1] == 0 && llabs(back) <= p[0] * p[1];
    case LONGFORMER:
        return llabs(back) <= p[1] || i < p[0] || j < p[0];
    case BIGBIRD:
        return in_drawn_block(i, j, s, p[2], p[3]) || keeps(LONGFORMER, i, j, s, p);
    case PREFIX:
        return back >= 0 || j < p[0];
    case DOCUMENT:
        return i * p[0] / s == j * p[0] / s;
    }
    return false;
}

static const struct {
    const char *text;
    enum kind kind;
    int64_t p[4];
} definitions[] = {
    {"full", FULL, {0}},
    {"causal", CAUSAL, {0}},
    {"strided", STRIDED, {ROOT}},
    {"strided:t=1", STRIDED, {1}},
    {"strided:t=5", STRIDED, {5}},
    {"strided:t=64", STRIDED, {64}},
    {"strided:t=2147483647", STRIDED, {2147483647}},
    {"fixed", FIXED, {ROOT}},
    {"fixed:t=1", FIXED, {1}},
    {"fixed:t=7", FIXED, {7}},
    {"fixed:t=128", FIXED, {128}},
    {"fixed:t=2147483647", FIXED, {2147483647}},
    {"sliding", SLIDING, {ROOT}},
    {"sliding:w=0", SLIDING, {0}},
    {"sliding:w=64", SLIDING, {64}},
    {"sliding:w=2147483647", SLIDING, {2147483647}},
    {"sliding_causal", SLIDING_CAUSAL, {ROOT}},
    {"sliding_causal:w=0", SLIDING_CAUSAL, {0}},
    {"sliding_causal:w=100", SLIDING_CAUSAL, {100}},
    {"dilated", DILATED, {ROOT, 2}},
    {"dilated:d=3", DILATED, {ROOT, 3}},
    {"dilated:w=0,d=1", DILATED, {0, 1}},
    {"dilated:w=9,d=1", DILATED, {9, 1}},
    {"dilated:w=2147483647,d=2147483647", DILATED, {2147483647, 2147483647}},
    {"longformer", LONGFORMER, {ROOT, ROOT}},
    {"longformer:w=3,g=1", LONGFORMER, {1, 3}},
    {"longformer:g=0", LONGFORMER, {0, ROOT}},
    {"longformer:g=9999,w=0", LONGFORMER, {9999, 0}},
    {"bigbird", BIGBIRD, {ROOT, ROOT, 1, 0}},
    {"bigbird:n=0", BIGBIRD, {ROOT, ROOT, 0, 0}},
    {"bigbird:g=0,w=0,n=3,seed=7", BIGBIRD, {0, 0, 3, 7}},
    {"bigbird:seed=4294967295,g=2", BIGBIRD, {2, ROOT, 1, 4294967295}},
    {"prefix", PREFIX, {QUARTER}},
    {"prefix:p=0", PREFIX, {0}},
    {"prefix:p=90", PREFIX, {90}},
    {"prefix:p=2147483647", PREFIX, {2147483647}},
    {"document", DOCUMENT, {4}},
    {"document:n=1", DOCUMENT, {1}},
    {"document:n=7", DOCUMENT, {7}},
    {"document:n=2147483647", DOCUMENT, {2147483647}},
};

static const int seq_lens[] = {1, 2, 3, 7, 63, 64, 65, 100, 128, 333};

static void resolve(const int64_t *p, int s, int64_t out[4])
{
    for (int k = 0; k < 4; k++)
        out[k] = p[k] == ROOT ? (int64_t)floor(sqrt(s)) : p[k] == QUARTER ? s / 4 : p[k];
}

TEST_LOOP(masks_are_as_defined, 0, ARRAY_LEN(definitions))
{
    for (size_t n = 0; n < ARRAY_LEN(seq_lens); n++) {
        int s = seq_lens[n];
        int64_t p[4];
        resolve(definitions[_i].p, s, p);
        SCOPED_BY(mask_release) struct mask m = mask_of(definitions[_i].text, s);
        ck_assert_int_eq(m.matrices, 1);
        ck_assert_int_eq(m.empty_rows, 0);
        for (int i = 0; i < s; i++)
            for (int j = 0; j < s; j++)
                if (mask_keep(&m, 5, i, j) != keeps(definitions[_i].kind, i, j, s, p))
                    ck_abort_msg("%s at S=%d, i=%d, j=%d", definitions[_i].text, s, i, j);
    }
}

SUITE("mask", NULL, NULL)
