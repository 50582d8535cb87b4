/* Plans of several lengths share the tables of a model: a sequence gives the same in each.
 * export.sh builds it with a library of the plans (1,20) and (1,70). */
#define _GNU_SOURCE /* of host.h */
#include "library.h"

#include <math.h>

enum { TOKENS = 20 };

/* The caller frees. */
static float *run(const struct encoder *e, const float *x, int seq_len)
{
    static const int length = TOKENS;
    struct encoder_call call = call_new(1, seq_len);
    float *y = call.y;
    device_write((void *)call.x, x, TOKENS * (size_t)hidden() * sizeof(*x));
    call.lengths = seq_len > TOKENS ? &length : NULL;
    CHECK(encoder_run(e, &call) == ENCODER_OK);
    call.y = NULL;
    call_delete(&call);
    return y;
}

static bool alike(const float *a, const float *b)
{
    for (int i = 0; i < TOKENS * hidden(); i++)
        if (!(fabsf(a[i] - b[i]) <= 1e-5F * (1 + fabsf(b[i]))))
            return false;
    return true;
}

int main(void)
{
    struct encoder *e;
    draw_model(1);
    CHECK(encoder_describe()->plans == 2 && encoder_describe()->seq_len == 70);
    model.rope_theta = 0;
    CHECK(encoder_create(&model, &e) == ENCODER_BAD_ARGUMENT && said("rope_theta 0"));
    model.rope_theta = encoder_describe()->rope_theta;
    model.score_bias = NULL;
    CHECK(encoder_create(&model, &e) == ENCODER_BAD_ARGUMENT);
    CHECK(strcmp(encoder_message(), "score_bias is null") == 0);
    model.score_bias = score_bias;
    CHECK(encoder_create(&model, &e) == ENCODER_OK);
    float *x = draw((size_t)(TOKENS * hidden()), 0);
    float *small = run(e, x, TOKENS), *large = run(e, x, 70), *given;
    CHECK(alike(small, large));
    encoder_destroy(e);

    /* The rotations may be given: here none. */
    int n = 70 * encoder_describe()->head_size;
    float *rope = calloc((size_t)n, sizeof(*rope));
    for (int i = 0; i < n; i += 2)
        rope[i] = 1;
    model.rope = rope;
    CHECK(encoder_create(&model, &e) == ENCODER_OK);
    given = run(e, x, TOKENS);
    CHECK(!alike(given, small));
    encoder_destroy(e);
    free(rope);
    free(x);
    device_delete(small);
    device_delete(large);
    device_delete(given);
    free_model();
    return report();
}
