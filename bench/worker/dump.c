#include "bench/worker/worker_int.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* In a sandbox a file can be written and removed, but not renamed or given a mode, as file_write()
 * does. */
static int write_file(const char *path, const struct buf *bytes, struct status *st)
{
    int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666), error = fd < 0 ? errno : 0;
    for (size_t done = 0; done < bytes->len && error == 0;) {
        ssize_t n = write(fd, bytes->ptr + done, bytes->len - done);
        if (n < 0 && errno != EINTR)
            error = errno;
        done += n > 0 ? (size_t)n : 0;
    }
    if (fd >= 0 && close(fd) != 0 && error == 0)
        error = errno;
    if (error == 0)
        return 0;
    if (fd >= 0)
        unlink(path);
    return status_set(st, STATUS_ENVIRONMENT, "cannot write '%s': %s", path, strerror(error));
}

static int write_npy(const char *dir, const char *name, enum npy_type type, int ndim,
                     const int64_t *shape, const void *data, struct status *st)
{
    struct buf path, bytes;
    buf_init(&path);
    buf_init(&bytes);
    buf_addf(&path, "%s/%s.npy", dir, name);
    npy_write(type, ndim, shape, data, &bytes);
    int result = write_file(path.ptr, &bytes, st);
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

/* set: the weights of a layer, as bits. */
static int dump_weights(struct worker *k, int layers, unsigned set, const char *dir,
                        struct status *st)
{
    struct buf name;
    buf_init(&name);
    int result = 0;
    const struct chain *c = k->w.chain;
    for (int i = 0; i < layers * WEIGHT_MAX && result == 0; i++) {
        int layer = i / WEIGHT_MAX, id = i % WEIGHT_MAX;
        if ((set >> id & 1) == 0 || c->weights[id].name == NULL)
            continue;
        float *values = mem_alloc((size_t)weight_elements(id, &k->w), sizeof(*values));
        const struct weight *weight = &c->weights[id];
        int64_t shape[] = {dim_size(weight->rows, &k->w), dim_size(weight->cols, &k->w)};
        int ndim = weight->rows == DIM_1 ? 1 : 2;
        inputs_weight(&k->w, k->tensors.inputs, layer, id, values);
        buf_reset(&name);
        buf_addf(&name, "layer%d.%s", layer, weight->name);
        result = write_npy(dir, name.ptr, NPY_FLOAT32, ndim, shape + 2 - ndim, values, st);
        free(values);
    }
    buf_release(&name);
    return result;
}

/* Rows past a length are unspecified in memory and zeros in the file. */
static void clear_padding(const struct workload *w, size_t columns, float *rows)
{
    for (int b = 0; w->lengths != NULL && b < w->batch; b++) {
        size_t real = (size_t)w->lengths[b], all = (size_t)w->seq_len;
        memset(rows + ((size_t)b * all + real) * columns, 0,
               (all - real) * columns * sizeof(*rows));
    }
}

/* Writes a tensor of a layer whose rows are tokens. */
static int dump_tensor(struct worker *k, int layer, int t, const char *name, const char *dir,
                       struct status *st)
{
    assert(tensor_layout(k->w.chain, t) == LAYOUT_TOKENS);
    int64_t columns = dim_size(tensor_columns(k->w.chain, t), &k->w);
    int64_t shape[] = {k->w.batch, k->w.seq_len, columns};
    float *values = tensors_read(&k->tensors, layer, t);
    clear_padding(&k->w, (size_t)columns, values);
    return write_npy(dir, name, NPY_FLOAT32, 3, shape, values, st);
}

static int dump_plan(struct worker *k, struct program *p, const char *dir, struct status *st)
{
    int64_t shape[] = {k->w.batch, k->w.seq_len, workload_hidden(&k->w)};
    tensors_feed(&k->tensors, 0, &k->reference.in[0]);
    if (k->ops->run(p->replay, 0, p->layers * p->part_count, st) != 0)
        return -1;
    worker_doing(k, "writing to '%s'", dir);
    if (write_npy(dir, "x", NPY_FLOAT32, 3, shape, k->reference.in[0].tensor[TENSOR_X], st) != 0 ||
        dump_tensor(k, p->layers - 1, TENSOR_Y, "y", dir, st) != 0)
        return -1;
    return dump_weights(k, k->w.layers, SET_OF(WEIGHT_MAX) - 1, dir, st);
}

/* Of a segment that was verified: layer 0's tensors hold its inputs. */
static int dump_segment(struct worker *k, struct program *p, const char *dir, struct status *st)
{
    struct segment s = p->parts[0].choice.segment;
    const struct chain *c = k->w.chain;
    uint32_t files = segment_inputs(c, s) | segment_outputs(c, s);
    tensors_poison(&k->tensors, 0, segment_outputs(c, s));
    int result = k->ops->run(p->replay, 0, 1, st);
    worker_doing(k, "writing to '%s'", dir);
    for (int t = 0; t < TENSOR_COUNT && result == 0; t++)
        if ((files >> t & 1) != 0)
            result = dump_tensor(k, 0, t, tensor_name(c, t), dir, st);
    return result == 0 ? dump_weights(k, 1, segment_weights(c, s), dir, st) : -1;
}

int dump_program(struct worker *k, struct program *p, const char *dir, struct status *st)
{
    worker_doing(k, p->alone ? "running the segment" : "running the plan");
    int result = p->alone ? dump_segment(k, p, dir, st) : dump_plan(k, p, dir, st);
    return result == 0 ? dump_mask(&k->w, dir, st) : -1;
}
