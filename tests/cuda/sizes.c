/* Every plan of an exported CUDA library runs a batch of its own size, on the stand-in of CUDA's
 * runtime: plans of several sizes share kernels.  library.sh builds it with the library. */
#define _GNU_SOURCE /* of host.h */
#include "library.h"

static void run_plan(const struct encoder *e, const struct encoder_plan *p)
{
    const size_t n = (size_t)p->batch * (size_t)p->seq_len * (size_t)hidden();
    struct encoder_call c = call_new(p->batch, p->seq_len);
    float *x = draw(n, 0);
    device_write((void *)c.x, x, n * sizeof(*x));
    CHECK(encoder_run(e, &c) == ENCODER_OK);
    free(x);
    call_delete(&c);
}

int main(void)
{
    struct encoder *e;
    draw_model(1);
    CHECK(encoder_create(&model, &e) == ENCODER_OK);
    for (int i = 0; i < encoder_describe()->plans; i++)
        run_plan(e, encoder_plan_at(i));
    encoder_destroy(e);
    free_model();
    printf("%d plans, %d failures\n", encoder_describe()->plans, failures);
    return failures == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
