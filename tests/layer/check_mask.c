#include "tests/masks.h"

#include <math.h>

/* ---- the definitions, told again one element at a time --------------------------------------- */

enum { ROOT = -1, QUARTER = -2 }; /* parameters that follow from S */

static bool is_full(int64_t i, int64_t j, int64_t s, const int64_t *p)
{
    (void)i, (void)j, (void)s, (void)p;
    return true;
}

static bool is_causal(int64_t i, int64_t j, int64_t s, const int64_t *p)
{
    (void)s, (void)p;
    return j <= i;
}

static bool is_strided(int64_t i, int64_t j, int64_t s, const int64_t *p)
{
    (void)s;
    int64_t t = p[0];
    return j <= i && ((i - j) % t == 0 || j > i - t);
}

static bool is_fixed(int64_t i, int64_t j, int64_t s, const int64_t *p)
{
    (void)s;
    int64_t t = p[0];
    return j <= i && (j % t == t - 1 || j > i + j % t - t);
}

static bool is_sliding(int64_t i, int64_t j, int64_t s, const int64_t *p)
{
    (void)s;
    return llabs(i - j) <= p[0];
}

static bool is_sliding_causal(int64_t i, int64_t j, int64_t s, const int64_t *p)
{
    (void)s;
    return 0 <= i - j && i - j <= p[0];
}

static bool is_dilated(int64_t i, int64_t j, int64_t s, const int64_t *p)
{
    (void)s;
    int64_t w = p[0], d = p[1];
    return (i - j) % d == 0 && llabs(i - j) <= w * d;
}

static bool is_longformer(int64_t i, int64_t j, int64_t s, const int64_t *p)
{
    (void)s;
    int64_t g = p[0], w = p[1];
    return llabs(i - j) <= w || i < g || j < g;
}

static uint64_t mixed(uint64_t x)
{
    uint64_t z = x + 0x9E3779B97F4A7C15u;
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9u;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EBu;
    return z ^ (z >> 31);
}

static bool is_bigbird(int64_t i, int64_t j, int64_t s, const int64_t *p)
{
    int64_t n = p[2], seed = p[3], row = i / 64;
    for (int64_t k = 0; k < n; k++) {
        uint64_t x = (uint64_t)seed * 4294967296u + (uint64_t)(row * n + k);
        if (mixed(x) % (uint64_t)((s + 63) / 64) == (uint64_t)(j / 64))
            return true;
    }
    return is_longformer(i, j, s, p);
}

static bool is_prefix(int64_t i, int64_t j, int64_t s, const int64_t *p)
{
    (void)s;
    return j <= i || j < p[0];
}

static bool is_document(int64_t i, int64_t j, int64_t s, const int64_t *p)
{
    return i * p[0] / s == j * p[0] / s;
}

static const struct {
    const char *text;
    bool (*keep)(int64_t i, int64_t j, int64_t s, const int64_t *p);
    int64_t p[4];
} definitions[] = {
    {"full", is_full, {0}},
    {"causal", is_causal, {0}},
    {"strided", is_strided, {ROOT}},
    {"strided:t=1", is_strided, {1}},
    {"strided:t=5", is_strided, {5}},
    {"strided:t=64", is_strided, {64}},
    {"strided:t=2147483647", is_strided, {2147483647}},
    {"fixed", is_fixed, {ROOT}},
    {"fixed:t=1", is_fixed, {1}},
    {"fixed:t=7", is_fixed, {7}},
    {"fixed:t=128", is_fixed, {128}},
    {"fixed:t=2147483647", is_fixed, {2147483647}},
    {"sliding", is_sliding, {ROOT}},
    {"sliding:w=0", is_sliding, {0}},
    {"sliding:w=64", is_sliding, {64}},
    {"sliding:w=2147483647", is_sliding, {2147483647}},
    {"sliding_causal", is_sliding_causal, {ROOT}},
    {"sliding_causal:w=0", is_sliding_causal, {0}},
    {"sliding_causal:w=100", is_sliding_causal, {100}},
    {"dilated", is_dilated, {ROOT, 2}},
    {"dilated:d=3", is_dilated, {ROOT, 3}},
    {"dilated:w=0,d=1", is_dilated, {0, 1}},
    {"dilated:w=9,d=1", is_dilated, {9, 1}},
    {"dilated:w=2147483647,d=2147483647", is_dilated, {2147483647, 2147483647}},
    {"longformer", is_longformer, {ROOT, ROOT}},
    {"longformer:w=3,g=1", is_longformer, {1, 3}},
    {"longformer:g=0", is_longformer, {0, ROOT}},
    {"longformer:g=9999,w=0", is_longformer, {9999, 0}},
    {"bigbird", is_bigbird, {ROOT, ROOT, 1, 0}},
    {"bigbird:n=0", is_bigbird, {ROOT, ROOT, 0, 0}},
    {"bigbird:g=0,w=0,n=3,seed=7", is_bigbird, {0, 0, 3, 7}},
    {"bigbird:seed=4294967295,g=2", is_bigbird, {2, ROOT, 1, 4294967295}},
    {"prefix", is_prefix, {QUARTER}},
    {"prefix:p=0", is_prefix, {0}},
    {"prefix:p=90", is_prefix, {90}},
    {"prefix:p=2147483647", is_prefix, {2147483647}},
    {"document", is_document, {4}},
    {"document:n=1", is_document, {1}},
    {"document:n=7", is_document, {7}},
    {"document:n=2147483647", is_document, {2147483647}},
};

static const int seq_lens[] = {1, 2, 3, 7, 63, 64, 65, 100, 128, 333};

static void resolve(const int64_t *p, int s, int64_t out[4])
{
    for (int k = 0; k < 4; k++)
        out[k] = p[k] == ROOT ? (int64_t)floor(sqrt(s)) : p[k] == QUARTER ? s / 4 : p[k];
}

START_TEST(masks_are_as_defined)
{
    for (size_t n = 0; n < ARRAY_LEN(seq_lens); n++) {
        int s = seq_lens[n];
        int64_t p[4];
        resolve(definitions[_i].p, s, p);
        struct mask m = mask_of(definitions[_i].text, s);
        ck_assert_int_eq(m.matrices, 1);
        ck_assert_int_eq(m.empty_rows, 0);
        for (int i = 0; i < s; i++)
            for (int j = 0; j < s; j++)
                if (mask_keep(&m, 5, i, j) != definitions[_i].keep(i, j, s, p))
                    ck_abort_msg("%s at S=%d, i=%d, j=%d", definitions[_i].text, s, i, j);
        mask_release(&m);
    }
}
END_TEST

START_TEST(bits_past_the_sequence_are_0)
{
    for (int s = 1; s <= 130; s += 43)
        for (size_t n = 0; n < ARRAY_LEN(mask_names); n++) {
            struct mask m = mask_of(mask_names[n], s);
            int past = 0;
            for (int i = 0; i < s; i++)
                for (int j = s; j < m.row_words * 64; j++)
                    past += mask_keep(&m, 0, i, j);
            ck_assert_int_eq(past, 0);
            mask_release(&m);
        }
}
END_TEST

SUITE("mask", NULL, NULL, LOOP(masks_are_as_defined, 0, ARRAY_LEN(definitions)),
      ONCE(bits_past_the_sequence_are_0))
