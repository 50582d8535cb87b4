/* Memory of a CPU, and what takes a call. */
#ifndef _POSIX_C_SOURCE
#define _POSIX_C_SOURCE 200809L /* for a compiler that is told -std=c11 */
#endif

#include "plan.h"

#include <stdlib.h>
#include <string.h>

int encoder_device_check(void)
{
    return ENCODER_OK;
}

int encoder_device_allocate(size_t bytes, void **out)
{
    enum { LINE = 64 };
    *out = NULL;
    if (posix_memalign(out, LINE, bytes) == 0)
        return ENCODER_OK;
    return encoder_fail(ENCODER_NO_MEMORY, "out of memory: the weights take %zu bytes", bytes);
}

void encoder_device_free(void *memory)
{
    free(memory);
}

int encoder_device_copy(void *to, const void *from, size_t bytes, bool from_device)
{
    (void)from_device;
    memcpy(to, from, bytes);
    return ENCODER_OK;
}

int encoder_device_read(void *to, const void *from, size_t bytes)
{
    return encoder_device_copy(to, from, bytes, false);
}

int encoder_device_open(const struct encoder_model *m, struct encoder *e)
{
    (void)m;
    (void)e;
    return ENCODER_OK;
}

void encoder_device_close(struct encoder *e)
{
    (void)e;
}

int encoder_submit(struct run *r)
{
    return encoder_work(r);
}
