#include "bench/worker/device_cuda_int.h"

/* ---- errors ---------------------------------------------------------------------------------- */

/* After code has failed while running, no call of the driver works in this process. */
static void end_worker(const struct cuda_driver *cu, int error, const char *what)
{
    struct status st = STATUS_INIT;
    cuda_check(cu, error, STATUS_LAUNCH, what, &st);
    fprintf(stderr, "%s\n", st.message);
    fflush(stderr);
    _Exit(EXIT_FAILURE);
}

void cuda_must(const struct device *d, int error, const char *what)
{
    if (error != CUDA_SUCCESS)
        end_worker(d->cu, error, what);
}

void cuda_finish(const struct device *d, const char *what)
{
    cuda_must(d, d->cu->cuStreamSynchronize(d->stream), what);
}

/* ---- memory ---------------------------------------------------------------------------------- */

static unsigned long long address(const void *memory)
{
    return (unsigned long long)(uintptr_t)memory;
}

uint64_t cuda_available(const struct device *d)
{
    enum { KEPT_SHARE = 64 }; /* 2 GiB of an H200 stay free for code, stacks and the driver */
    size_t have, all;
    cuda_must(d, d->cu->cuMemGetInfo(&have, &all), "asking for the GPU's memory");
    return have > all / KEPT_SHARE ? have - all / KEPT_SHARE : 0;
}

/* Whether another program has taken so much that `bytes` find no room: the candidate is not to
 * blame for that.  Loaded code takes memory too, but less than a CODE_SHARE of what there was. */
static bool taken_by_others(const struct device *d, uint64_t bytes)
{
    enum { CODE_SHARE = 16 };
    uint64_t kept = d->taken + d->available_at_first / CODE_SHARE;
    return bytes + kept <= d->available_at_first;
}

static int lacks_memory(const struct device *d, uint64_t bytes, uint64_t have, struct status *st)
{
    char need_text[32], have_text[32];
    number_bytes(bytes, need_text);
    number_bytes(have, have_text);
    if (taken_by_others(d, bytes))
        return status_set(
            st, STATUS_ENVIRONMENT,
            "out of GPU memory, of which another program has taken a part meanwhile: "
            "%s more is needed, and %s is available; end that program, or go on later",
            need_text, have_text);
    return status_set(st, STATUS_UNFIT, "out of GPU memory: %s more is needed, and %s is available",
                      need_text, have_text);
}

int cuda_take(struct device *d, int64_t bytes, unsigned long long *out, struct status *st)
{
    uint64_t have = cuda_available(d);
    int error = CUDA_ERROR_OUT_OF_MEMORY;
    if ((uint64_t)bytes <= have)
        error = d->cu->cuMemAlloc(out, (size_t)bytes);
    if (error == CUDA_ERROR_OUT_OF_MEMORY)
        return lacks_memory(d, (uint64_t)bytes, have, st);
    if (error == CUDA_SUCCESS)
        d->taken += (uint64_t)bytes;
    return cuda_check(d->cu, error, STATUS_ENVIRONMENT, "cannot allocate GPU memory", st);
}

int cuda_alloc(struct device *d, int64_t bytes, void **out, struct status *st)
{
    unsigned long long at = 0;
    int result = cuda_take(d, bytes, &at, st);
    *out = cuda_pointer(at);
    return result;
}

void cuda_free(struct device *d, void *memory)
{
    unsigned long long base;
    size_t bytes = 0;
    if (memory == NULL)
        return;
    d->cu->cuMemGetAddressRange(&base, &bytes, address(memory));
    d->taken -= bytes < d->taken ? bytes : d->taken;
    d->cu->cuMemFree(address(memory));
}

void cuda_stage_release(struct device *d)
{
    if (d->staging.pinned)
        d->cu->cuMemFreeHost(d->staging.at);
    else
        free(d->staging.at);
    d->staging = (struct staging){.at = NULL};
}

/* Pinned memory is lost to all other programs, and to pin it takes longer than to fill it: it grows
 * to powers of two.  Tensors come in pieces that are small enough for it; what is larger, a large
 * weight, is copied through ordinary memory. */
static void *stage(struct device *d, size_t bytes)
{
    enum { PINNED_MAX = 64 << 20 };
    struct staging *s = &d->staging;
    if (bytes <= s->bytes)
        return s->at;
    cuda_stage_release(d);
    for (s->bytes = 1; s->bytes < bytes;)
        s->bytes *= 2;
    s->pinned = s->bytes <= PINNED_MAX && d->cu->cuMemAllocHost(&s->at, s->bytes) == CUDA_SUCCESS;
    if (!s->pinned)
        s->at = mem_alloc(s->bytes, 1);
    return s->at;
}

void cuda_write(struct device *d, void *to, const void *from, int64_t bytes)
{
    cuda_must(d, d->cu->cuMemcpyHtoDAsync(address(to), from, (size_t)bytes, d->stream),
              "copying to the GPU");
    cuda_finish(d, "copying to the GPU");
}

void cuda_upload(struct device *d, void *to, enum dtype dtype, const float *from, int64_t elements)
{
    size_t bytes = (size_t)(elements * dtypes[dtype].bytes);
    void *packed = stage(d, bytes);
    elements_pack(dtype, from, elements, packed);
    cuda_write(d, to, packed, (int64_t)bytes);
}

const void *cuda_view(struct device *d, const void *memory, int64_t elements)
{
    size_t bytes = (size_t)(elements * d->element_bytes);
    void *packed = stage(d, bytes);
    cuda_must(d, d->cu->cuMemcpyDtoHAsync(packed, address(memory), bytes, d->stream),
              "copying from the GPU");
    cuda_finish(d, "copying from the GPU");
    return packed;
}

/* All bits set are a NaN of every type. */
void cuda_poison(struct device *d, void *memory, int64_t elements)
{
    cuda_must(d,
              d->cu->cuMemsetD8Async(address(memory), 0xff, (size_t)(elements * d->element_bytes),
                                     d->stream),
              "filling GPU memory");
}

void cuda_copy_within(struct device *d, void *to, const void *from, int64_t elements)
{
    cuda_must(d,
              d->cu->cuMemcpyDtoDAsync(address(to), address(from),
                                       (size_t)(elements * d->element_bytes), d->stream),
              "copying on the GPU");
}

int cuda_reserve(struct device *d, struct scratch *s, int64_t bytes, struct status *st)
{
    unsigned long long at;
    if (bytes <= s->bytes)
        return 0;
    if (cuda_take(d, bytes, &at, st) != 0)
        return -1;
    *s = (struct scratch){.at = at, .bytes = bytes};
    cuda_must(d, d->cu->cuMemsetD8Async(s->at, 0, (size_t)bytes, d->stream), "filling GPU memory");
    return 0;
}

int cuda_copy(struct device *d, const void *from, size_t bytes, unsigned long long *out,
              struct status *st)
{
    *out = 0;
    if (bytes == 0)
        return 0;
    if (cuda_take(d, (int64_t)bytes, out, st) != 0)
        return -1;
    cuda_must(d, d->cu->cuMemcpyHtoDAsync(*out, from, bytes, d->stream), "copying to the GPU");
    cuda_finish(d, "copying to the GPU");
    return 0;
}

int cuda_copy_arrays(struct device *d, struct cuda_array *arrays, size_t count, struct status *st)
{
    for (size_t i = 0; i < count; i++)
        if (cuda_copy(d, arrays[i].from, arrays[i].bytes, &arrays[i].at, st) != 0) {
            while (i-- > 0)
                cuda_free(d, cuda_pointer(arrays[i].at));
            return -1;
        }
    return 0;
}
