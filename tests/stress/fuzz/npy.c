/* A NumPy file, as such and as the mask of a workload. */
#include "layer/layer.h"
#include "tests/stress/fuzz/fuzz.h"

enum { SEQ_LEN_MOST = 64, BATCH_MOST = 4 };

/* Builds the mask of a workload that has the array's shape. */
static void build_mask(const uint8_t *data, size_t size, const struct npy *a)
{
    struct workload w;
    struct status st = STATUS_INIT;
    SCOPED_BUF npy = BUF_INIT;
    if (a->ndim < 1 || a->shape[a->ndim - 1] > SEQ_LEN_MOST ||
        (a->ndim > 2 && (a->shape[0] < 1 || a->shape[0] > BATCH_MOST)))
        return;
    buf_add(&npy, data, size);
    workload_init(&w);
    mask_spec_release(&w.mask_spec);
    w.seq_len = (int)a->shape[a->ndim - 1];
    w.batch = a->ndim > 2 ? (int)a->shape[0] : 2;
    if (mask_parse("file:f", &w.mask_spec, &st) == 0 && workload_check(&w, &st) == 0 &&
        workload_build_mask(&w, &npy, &st) == 0)
        fuzz_require(w.blocks.kept <= (int64_t)w.batch * w.seq_len * w.seq_len,
                     "no more is kept than there is");
    workload_release(&w);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct npy a, again;
    SCOPED_BUF copy = BUF_INIT;
    struct status st = STATUS_INIT;
    if (npy_parse(data, size, &a, &st) != 0)
        return 0;
    for (int64_t i = npy_count(&a); i-- > 0;)
        npy_value(&a, i);
    npy_write(a.type, a.ndim, a.shape, a.data, &copy);
    fuzz_require(npy_parse(copy.ptr, copy.len, &again, &st) == 0 && again.type == a.type &&
                     again.ndim == a.ndim &&
                     memcmp(again.shape, a.shape, sizeof(a.shape[0]) * (size_t)a.ndim) == 0,
                 "an array that was read is written as one that can be read");
    build_mask(data, size, &a);
    return 0;
}
