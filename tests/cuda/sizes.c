/* Every plan of an exported CUDA library runs a batch of its own size, on the stand-in of CUDA's
 * runtime: plans of several sizes share kernels.  library.sh builds it with the library. */
#define _GNU_SOURCE /* of host.h */
#include "library.h"

static void run_plan(const struct encoder *e, const struct encoder_plan *p)
{
    size_t rows = (size_t)p->batch * (size_t)p->seq_len;
    size_t bytes = rows * (size_t)hidden() * sizeof(float);
    struct encoder_call c = {.batch = p->batch,
                             .seq_len = p->seq_len,
                             .x = device_new(bytes),
                             .y = device_new(bytes),
                             .workspace_bytes = encoder_workspace_bytes(p->batch, p->seq_len)};
    c.workspace = device_new(c.workspace_bytes);
    float *x = draw(rows * (size_t)hidden(), 0);
    device_write((void *)c.x, x, bytes);
    CHECK(encoder_run(e, &c) == ENCODER_OK);
    free(x);
    device_delete((void *)c.x);
    device_delete(c.y);
    device_delete(c.workspace);
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
