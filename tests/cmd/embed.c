/* encoder_embed() of an exported library of any type and target, beside sums in double. */
#define _GNU_SOURCE /* of host.h */
#include "library.h"

#include <limits.h>
#include <math.h>

enum {
    TOKENS = BATCH * SEQ_LEN,
    WORDS = 50,
    TYPES = 3,
    PADDING = 1,
    POSITIONS = SEQ_LEN + PADDING + 1
};
static const double EPS = 1e-3;

static float *word, *type, *position, *gamma_, *beta; /* rounded to the library's type */
static long long ids[TOKENS], types[TOKENS], mask[TOKENS];
static int lengths[BATCH] = {SEQ_LEN, 37};
static struct encoder_embedding given; /* all of it */

static size_t row_elements(void)
{
    return (size_t)hidden();
}

static size_t row_bytes(void)
{
    return row_elements() * (size_t)encoder_describe()->element_bytes;
}

static const void *put(const void *from, size_t bytes)
{
    void *to = device_new(bytes);
    device_write(to, from, bytes);
    return to;
}

/* Numbers on the host, and the same on the device. */
static const void *draw_table(size_t rows, float middle, float **host)
{
    const enum encoder_dtype dtype = encoder_describe()->dtype;
    void *rounded = malloc(rows * row_bytes());
    *host = draw(rows * row_elements(), middle);
    for (size_t i = 0; i < rows * row_elements(); i++) {
        element_store(dtype, rounded, i, (*host)[i]);
        (*host)[i] = element_load(dtype, rounded, i);
    }
    const void *at = put(rounded, rows * row_bytes());
    free(rounded);
    return at;
}

static void begin(void)
{
    srand(1);
    given = (struct encoder_embedding){.batch = BATCH,
                                       .seq_len = SEQ_LEN,
                                       .word_rows = WORDS,
                                       .type_rows = TYPES,
                                       .position_rows = POSITIONS,
                                       .padding_id = -1,
                                       .eps = EPS};
    given.word = draw_table(WORDS, 0, &word);
    given.type = draw_table(TYPES, 1, &type);
    given.position = draw_table(POSITIONS, -1, &position);
    given.gamma = draw_table(1, 1, &gamma_);
    given.beta = draw_table(1, 0, &beta);
    given.x = device_new(TOKENS * row_bytes());
    for (int i = 0; i < TOKENS; i++) {
        ids[i] = rand() % WORDS;
        types[i] = rand() % TYPES;
        mask[i] = rand() % 3;
        ids[i] =
            mask[i] != 0 && rand() % 8 != 0 ? ids[i] : PADDING; /* RoBERTa's may be a token's */
    }
}

/* Of the row, by the same rules as encoder.h's. */
static void exact(const struct encoder_embedding *e, int row, double *out)
{
    const size_t d = row_elements();
    int at = row % SEQ_LEN;
    if (e->padding_id >= 0) {
        int n = 0;
        for (int i = row - at; i <= row; i++)
            n += ids[i] != PADDING;
        at = ids[row] == PADDING ? PADDING : PADDING + n;
    }
    double mean = 0, variance = 0;
    for (size_t c = 0; c < d; c++) {
        out[c] = word[(size_t)ids[row] * d + c];
        if (e->type != NULL)
            out[c] += type[(e->types != NULL ? (size_t)types[row] : 0) * d + c];
        if (e->position != NULL)
            out[c] += position[(size_t)at * d + c];
        mean += out[c] / (double)d;
    }
    for (size_t c = 0; c < d; c++)
        variance += (out[c] - mean) * (out[c] - mean) / (double)d;
    for (size_t c = 0; c < d; c++)
        out[c] =
            (out[c] - mean) / sqrt(variance + EPS) * gamma_[c] + (e->beta != NULL ? beta[c] : 0);
}

static bool is_token(const struct encoder_embedding *e, int row)
{
    if (e->mask != NULL)
        return mask[row] != 0;
    return e->lengths == NULL || row % SEQ_LEN < lengths[row / SEQ_LEN];
}

/* Runs a call on copies of what it names; x is as `x` before, and is read to it. */
static int run(struct encoder_embedding e, void *x)
{
    e.ids = put(ids, sizeof(ids));
    e.types = e.types != NULL ? put(types, sizeof(types)) : NULL;
    e.mask = e.mask != NULL ? put(mask, sizeof(mask)) : NULL;
    e.lengths = e.lengths != NULL ? put(lengths, sizeof(lengths)) : NULL;
    memset(x, 0x5a, TOKENS * row_bytes());
    device_write(e.x, x, TOKENS * row_bytes());
    const int status = encoder_embed(&e);
    device_read(x, e.x, TOKENS * row_bytes());
    device_delete((void *)e.ids);
    device_delete((void *)e.types);
    device_delete((void *)e.mask);
    device_delete((void *)e.lengths);
    return status;
}

/* Rows that are tokens' are right, but that of `bad`, which is NaN; all others are untouched. */
static void check(const struct encoder_embedding *e, const void *x, int bad)
{
    const enum encoder_dtype dtype = encoder_describe()->dtype;
    const double most = dtype == ENCODER_FP16 ? 2e-3 : dtype == ENCODER_BF16 ? 2e-2 : 1e-5;
    double *want = malloc(row_elements() * sizeof(*want));
    int wrong = 0;
    for (int row = 0; row < TOKENS; row++) {
        if (row != bad && is_token(e, row))
            exact(e, row, want);
        for (size_t c = 0; c < row_elements(); c++) {
            const size_t i = (size_t)row * row_elements() + c;
            const double got = element_load(dtype, x, i);
            const unsigned char *bytes =
                (const unsigned char *)x + i * row_bytes() / row_elements();
            if (!is_token(e, row))
                wrong += bytes[0] != 0x5a || bytes[1] != 0x5a;
            else
                wrong += row == bad ? !isnan(got) : !(fabs(got - want[c]) <= most * 3);
        }
    }
    free(want);
    CHECK(wrong == 0);
}

static void test_rows(void *x)
{
    for (int kind = 0; kind < 3 * 3 * 3 * 2; kind++) {
        struct encoder_embedding e = given;
        e.position = kind % 3 == 2 ? NULL : e.position;
        e.padding_id = kind % 3 == 1 ? PADDING : -1;
        e.type = kind / 3 % 3 == 2 ? NULL : e.type;
        e.types = kind / 3 % 3 == 0 ? types : NULL;
        e.mask = kind / 9 % 3 == 0 ? mask : NULL;
        e.lengths = kind / 9 % 3 == 1 ? lengths : NULL;
        e.beta = kind / 27 == 1 ? NULL : e.beta;
        CHECK(run(e, x) == ENCODER_OK);
        check(&e, x, -1);
    }
}

/* Only a token's are looked at. */
static void test_bad_ids(void *x)
{
    struct encoder_embedding e = given;
    e.lengths = lengths;
    e.types = types;
    static const long long bad[] = {-1, WORDS, 1LL << 40};
    for (int i = 0; i < 3; i++)
        for (int of_type = 0; of_type < 2; of_type++) {
            long long *at = (of_type ? types : ids) + SEQ_LEN + 5, before = *at;
            long long *behind = ids + SEQ_LEN + lengths[1], other = *behind;
            *at = bad[i];
            *behind = bad[i];
            const int status = run(e, x);
            CHECK(status == (on_cpu() ? ENCODER_BAD_ARGUMENT : ENCODER_OK));
            if (!on_cpu())
                check(&e, x, SEQ_LEN + 5);
            else
                CHECK(said(of_type ? "the type of token 5 of sequence 1 is "
                                   : "the id of token 5 of sequence 1 is "));
            *at = before;
            CHECK(run(e, x) == ENCODER_OK);
            check(&e, x, -1);
            *behind = other;
        }
}

static void refuse(struct encoder_embedding e, const char *says)
{
    CHECK(encoder_embed(&e) == ENCODER_BAD_ARGUMENT && said(says));
}

static void test_refused(void)
{
    struct encoder_embedding e = given;
    CHECK(encoder_embed(NULL) == ENCODER_BAD_ARGUMENT);
    refuse(e, "ids are null");
    given.ids = ids; /* not read */
    e = given;
    e.gamma = NULL;
    refuse(e, "gamma is null");
    e = given;
    e.seq_len = 0;
    refuse(e, "expected positive sizes");
    e = given;
    e.batch = e.seq_len = 1 << 16;
    refuse(e, "at most 2147483647 tokens");
    e = given;
    e.mask = mask;
    e.lengths = lengths;
    refuse(e, "mask and lengths are given");
    e = given;
    e.type_rows = 0;
    refuse(e, "type 0; expected some");
    e = given;
    e.padding_id = PADDING + 1;
    refuse(e, "position has 102 rows; sequences of 100 need at least 103");
    e.padding_id = LONG_MAX;
    refuse(e, "need at least 9223372036854775908");
    e = given;
    e.eps = -1;
    refuse(e, "the embedding has eps -1; expected a number from 1e-37 to 1");
    e.eps = NAN;
    refuse(e, "eps nan");
    e = given;
    e.x = (char *)e.x + 8;
    refuse(e, "is not aligned to 16 bytes");
}

int main(void)
{
    begin();
    void *x = malloc(TOKENS * row_bytes());
    test_rows(x);
    test_bad_ids(x);
    test_refused();
    free(x);
    device_delete((void *)given.word);
    device_delete((void *)given.type);
    device_delete((void *)given.position);
    device_delete((void *)given.gamma);
    device_delete((void *)given.beta);
    device_delete(given.x);
    float *const tables[] = {word, type, position, gamma_, beta};
    for (int i = 0; i < 5; i++)
        free(tables[i]);
    return report();
}
