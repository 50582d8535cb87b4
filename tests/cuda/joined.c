/* Uses an exported library whose attention takes tiles of joined rows; joined.sh builds it with the
 * folder.  The library has one plan, (2,100) in a half type.
 *
 *   joined          calls that launch kernels, and such that replay graphs
 *   joined direct   the former alone: compute-sanitizer 13.0 crashes in cuGraphLaunch */
#include "library.h"

#include <math.h>

static int runs = 3; /* the last one replays a graph */
static bool direct;  /* each x has an address of its own, so that no graph is recorded */
#ifdef __SANITIZE_ADDRESS__
enum { EACH = 2 }; /* of the lengths: what is right for all is said without sanitizers */
#else
enum { EACH = 1 };
#endif
enum { KEPT = 64 };
static void *kept[KEPT]; /* every x, with direct */
static int kept_count;
static int fill = 0xff; /* bytes that a workspace has before a call: NaN */

static struct encoder *handle;

static size_t elements(int batch)
{
    return (size_t)batch * SEQ_LEN * (size_t)hidden();
}

/* Keys, values and what becomes of them count as much as x does. */
static void strengthen_attention(void)
{
    const size_t matrix = (size_t)hidden() * (size_t)hidden();
    for (int i = 0; i < LAYERS; i++)
        for (size_t k = 0; k < 4 * matrix; k++)
            drawn[i][k < 3 * matrix ? 0 : 2][k % (3 * matrix)] *= 4;
}

static float value(const uint16_t *y, size_t i)
{
    return element_load(encoder_describe()->dtype, y, i);
}

/* y of sequences whose padding is NaN in x, as is all else.  given: lengths are in the device's
 * memory.  The caller frees. */
static uint16_t *compute(const uint16_t *x, int batch, const int *real, bool given)
{
    const size_t bytes = elements(batch) * sizeof(*x);
    struct encoder_call call = call_new(batch, SEQ_LEN);
    int *lengths = device_new((size_t)batch * sizeof(*real));
    uint16_t *y = malloc(bytes);
    uint8_t *rest = malloc(call.workspace_bytes);
    memset(rest, fill, call.workspace_bytes);
    memcpy(y, x, bytes);
    for (size_t i = 0; i < elements(batch); i++)
        if ((int)(i / (size_t)hidden() % SEQ_LEN) >= real[i / elements(1)])
            y[i] = 0xffff;
    device_write((void *)call.x, y, bytes);
    device_write(lengths, real, (size_t)batch * sizeof(*real));
    call.lengths = given ? NULL : real;
    call.device_lengths = given ? lengths : NULL;
    for (int i = 0; i < runs; i++) {
        device_write(call.workspace, rest, call.workspace_bytes);
        CHECK(encoder_run(handle, &call) == ENCODER_OK);
        device_read(y, call.y, bytes);
    }
    CHECK(kept_count < KEPT);
    if (direct && kept_count < KEPT) {
        kept[kept_count++] = (void *)call.x;
        call.x = NULL;
    }
    call.device_lengths = lengths;
    call_delete(&call);
    free(rest);
    return y;
}

static bool are_near(const uint16_t *a, const uint16_t *b, size_t n)
{
    bool near = true;
    for (size_t i = 0; i < n; i++)
        near = near && fabsf(value(a, i) - value(b, i)) < 0.03F;
    return near;
}

/* Sequence s is near to what comes of it alone. */
static void ck_alone(const uint16_t *x, const uint16_t *y, const int *real, int s)
{
    uint16_t *alone = compute(x + (size_t)s * elements(1), 1, &real[s], true);
    CHECK(are_near(alone, y + (size_t)s * elements(1), elements(1)));
    free(alone);
}

/* What lies in the workspace, behind packed tokens too, changes no bit. */
static void ck_rest(const uint16_t *x, const uint16_t *y, const int *real)
{
    fill = 0;
    uint16_t *same = compute(x, BATCH, real, true);
    fill = 0xff;
    CHECK(memcmp(same, y, elements(BATCH) * sizeof(*y)) == 0);
    free(same);
}

/* NaN of the first token is in its result, and in no bit of the other sequence's. */
static void ck_contained(uint16_t *x, const uint16_t *y, const int *real, int s)
{
    const size_t first = (size_t)s * elements(1), other = (size_t)(1 - s) * elements(1);
    const uint16_t kept = x[first];
    x[first] = 0x7fff;
    uint16_t *bad = compute(x, BATCH, real, true);
    x[first] = kept;
    CHECK(memcmp(bad + other, y + other, elements(1) * sizeof(*y)) == 0);
    CHECK(real[s] == 0 || isnan(value(bad, first)));
    free(bad);
}

static void test_lengths(uint16_t *x, const int *real)
{
    const int replayed = runs;
    uint16_t *y = compute(x, BATCH, real, true);
    runs = 1; /* a graph has the launches of direct calls */
    ck_rest(x, y, real);
    for (int s = 0; s < BATCH; s++) {
        bool zeros = true;
        for (size_t i = (size_t)(real[s] * hidden()); i < elements(1); i++)
            zeros = zeros && value(y, (size_t)s * elements(1) + i) == 0;
        CHECK(zeros);
        ck_alone(x, y, real, s);
        ck_contained(x, y, real, s);
    }
    runs = replayed;
    if (real[0] > 0 && real[1] > 0) { /* lengths in host memory have a token at least */
        uint16_t *same = compute(x, BATCH, real, false);
        CHECK(are_near(same, y, elements(BATCH)));
        free(same);
    }
    free(y);
}

int main(int argc, char **argv)
{
    static const int lengths[][BATCH] = {
        {SEQ_LEN, SEQ_LEN}, {37, 30}, {1, SEQ_LEN}, {64, 64}, {63, 2},
        {SEQ_LEN, 28},      {0, 5},   {0, 0}};
    direct = argc > 1 && strcmp(argv[1], "direct") == 0;
    if (direct)
        runs = 1;
    draw_model(1);
    strengthen_attention();
    model.dtype = ENCODER_FP32;
    CHECK(encoder_create(&model, &handle) == ENCODER_OK);
    uint16_t *x = malloc(elements(BATCH) * sizeof(*x));
    for (size_t i = 0; i < elements(BATCH); i++)
        element_store(encoder_describe()->dtype, x, i, 2 * (float)rand() / (float)RAND_MAX - 1);
    for (size_t i = 0; handle != NULL && i < sizeof(lengths) / sizeof(lengths[0]); i += EACH)
        test_lengths(x, lengths[i]);
    encoder_destroy(handle);
    while (kept_count > 0)
        device_delete(kept[--kept_count]);
    free(x);
    free_model();
    return report();
}
