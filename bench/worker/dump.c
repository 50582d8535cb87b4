#include "bench/worker/worker_int.h"

#include <stdlib.h>
#include <string.h>

static int write_npy(const char *dir, const char *name, enum npy_type type, int ndim,
                     const int64_t *shape, const void *data, struct status *st)
{
    struct buf path, bytes;
    buf_init(&path);
    buf_init(&bytes);
    buf_addf(&path, "%s/%s.npy", dir, name);
    npy_write(type, ndim, shape, data, &bytes);
    int result = file_write(path.ptr, bytes.ptr, bytes.len, st);
    buf_release(&bytes);
    buf_release(&path);
    return result;
}

static int dump_mask(const struct workload *w, const char *dir, struct status *st)
{
    int64_t shape[3];
    unsigned char *keep;
    int dims = workload_kept(w, shape, &keep);
    int result = write_npy(dir, "mask", NPY_BOOL, dims, shape, keep, st);
    free(keep);
    return result;
}

static int dump_weights(struct worker *k, const char *dir, struct status *st)
{
    struct buf name;
    buf_init(&name);
    int result = 0;
    for (int i = 0; i < k->w.layers * WEIGHT_COUNT && result == 0; i++) {
        int layer = i / WEIGHT_COUNT;
        enum weight_id id = (enum weight_id)(i % WEIGHT_COUNT);
        float *values = mem_alloc((size_t)weight_elements(id, &k->w), sizeof(*values));
        int64_t shape[] = {dim_size(weights[id].rows, &k->w), dim_size(weights[id].cols, &k->w)};
        int ndim = weights[id].rows == DIM_1 ? 1 : 2;
        inputs_weight(&k->w, k->bank.inputs, layer, id, values);
        buf_reset(&name);
        buf_addf(&name, "layer%d.%s", layer, weights[id].name);
        result = write_npy(dir, name.ptr, NPY_FLOAT32, ndim, shape + 2 - ndim, values, st);
        free(values);
    }
    buf_release(&name);
    return result;
}

/* Rows past a length are unspecified in memory and zeros in the file. */
static void clear_padding(const struct workload *w, float *y)
{
    size_t hidden = (size_t)workload_hidden(w);
    for (int b = 0; w->lengths != NULL && b < w->batch; b++) {
        size_t real = (size_t)w->lengths[b], all = (size_t)w->seq_len;
        memset(y + ((size_t)b * all + real) * hidden, 0, (all - real) * hidden * sizeof(*y));
    }
}

int dump_program(struct worker *k, struct program *p, const char *dir, struct status *st)
{
    int64_t shape[] = {k->w.batch, k->w.seq_len, workload_hidden(&k->w)};
    worker_doing(k, "running the plan");
    bank_feed(&k->bank, 0, k->reference.x[0]);
    if (k->ops->run(p->replay, 0, p->layers * p->part_count, st) != 0)
        return -1;
    float *y = bank_read(&k->bank, p->layers - 1, TENSOR_Y);
    clear_padding(&k->w, y);
    worker_doing(k, "writing to '%s'", dir);
    if (write_npy(dir, "x", NPY_FLOAT32, 3, shape, k->reference.x[0], st) != 0 ||
        write_npy(dir, "y", NPY_FLOAT32, 3, shape, y, st) != 0 || dump_mask(&k->w, dir, st) != 0)
        return -1;
    return dump_weights(k, dir, st);
}
