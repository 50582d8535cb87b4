#include "bench/worker/worker_int.h"

#include <assert.h>
#include <fcntl.h>
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
    SCOPED_BUF path = BUF_INIT, bytes = BUF_INIT;
    buf_addf(&path, "%s/%s.npy", dir, name);
    npy_write(type, ndim, shape, data, &bytes);
    return write_file(path.ptr, &bytes, st);
}

/* The name of a file of one kind of layers: it ends with the kind if there are two. */
static const char *kind_name(const struct workload *w, const char *name, int kind, char out[16])
{
    snprintf(out, 16, w->local != NULL ? "%s%d" : "%s", name, kind);
    return out;
}

static int dump_masks(const struct workload *w, const char *dir, struct status *st)
{
    char name[16];
    int result = 0;
    for (int kind = 0; kind < workload_kinds(w) && result == 0; kind++) {
        int64_t shape[3];
        SCOPED unsigned char *keep = NULL;
        int dims = workload_kept(workload_of_kind(w, kind), shape, &keep);
        result = write_npy(dir, kind_name(w, "mask", kind, name), NPY_BOOL, dims, shape, keep, st);
    }
    return result;
}

/* Rows of 2F columns have those of a gate in pairs: their halves, the activated one first. */
static void part_pairs(enum dim columns, int64_t elements, const struct workload *w, float *values)
{
    const int64_t half = w->ffn;
    if (columns != DIM_2F)
        return;
    SCOPED float *row = mem_alloc((size_t)half, 2 * sizeof(*row));
    for (int64_t first = 0; first < elements; first += 2 * half) {
        memcpy(row, values + first, 2 * (size_t)half * sizeof(*row));
        for (int64_t c = 0; c < 2 * half; c++)
            values[first + c % 2 * half + c / 2] = row[c];
    }
}

/* (S,W) with the cosines in even columns, the sines in odd ones. */
static int dump_rotations(const struct workload *w, int kind, const float *table, const char *dir,
                          struct status *st)
{
    char name[16];
    const int64_t shape[] = {w->seq_len, w->head_size / 2}, n = shape[0] * shape[1];
    SCOPED float *part = mem_alloc((size_t)n, sizeof(*part));
    int result = 0;
    for (int odd = 0; odd < 2 && result == 0; odd++) {
        for (int64_t i = 0; i < n; i++)
            part[i] = table[2 * i + odd];
        result = write_npy(dir, kind_name(w, odd == 0 ? "rope_cos" : "rope_sin", kind, name),
                           NPY_FLOAT32, 2, shape, part, st);
    }
    return result;
}

static int dump_weight(const struct workload *w, int layer, int id, float *values, const char *dir,
                       struct status *st)
{
    const struct weight *weight = &w->chain->weights[id];
    const int64_t shape[] = {dim_size(weight->rows, w), dim_size(weight->cols, w)};
    const int ndim = weight->rows == DIM_1 ? 1 : 2;
    SCOPED_BUF name = BUF_INIT;
    if (weight->draw == WEIGHT_ROTATION)
        return dump_rotations(w, layer_kind(w, layer), values, dir, st);
    part_pairs(weight->cols, weight_elements(id, w), w, values);
    if (!weight->table)
        buf_addf(&name, "layer%d.", layer);
    buf_adds(&name, weight->name);
    return write_npy(dir, name.ptr, NPY_FLOAT32, ndim, shape + 2 - ndim, values, st);
}

/* How many layers have a weight of their own, of the first so many: a table of rotations belongs to
 * a kind of layers, another table to all of them. */
static int owners(const struct workload *w, int layers, int id)
{
    const struct weight *weight = &w->chain->weights[id];
    if (!weight->table)
        return layers;
    return weight->draw == WEIGHT_ROTATION ? workload_kinds(w) : 1;
}

/* Of the first so many layers, and the tables of all.  set: the weights of a layer, as bits. */
static int dump_weights(struct worker *k, int layers, uint32_t set, const char *dir,
                        struct status *st)
{
    const int most = layers > workload_kinds(&k->w) ? layers : workload_kinds(&k->w);
    int result = 0;
    for (int i = 0; i < most * WEIGHT_MAX && result == 0; i++) {
        int layer = i / WEIGHT_MAX, id = i % WEIGHT_MAX;
        const struct weight *weight = &k->w.chain->weights[id];
        if ((set >> id & 1) == 0 || weight->name == NULL || layer >= owners(&k->w, layers, id))
            continue;
        SCOPED float *values = mem_alloc((size_t)weight_elements(id, &k->w), sizeof(*values));
        inputs_weight(&k->w, k->tensors.inputs, layer, id, values);
        result = dump_weight(&k->w, layer, id, values, dir, st);
    }
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

static void read_codes(struct worker *k, int layer, int t, float scale, float *out)
{
    const uint8_t *codes = e4m3_read(&k->tensors, layer, t);
    for (int64_t i = 0; i < tensor_elements(t, &k->w); i++)
        out[i] = e4m3_unpack(codes[i]) * scale;
}

/* Writes a tensor of a layer whose rows are tokens.  scale: of one that is stored in e4m3 alone;
 * else 0. */
static int dump_tensor(struct worker *k, int layer, int t, float scale, const char *name,
                       const char *dir, struct status *st)
{
    assert(tensor_layout(k->w.chain, t) == LAYOUT_TOKENS);
    int64_t columns = dim_size(tensor_columns(k->w.chain, t), &k->w);
    int64_t shape[] = {k->w.batch, k->w.seq_len, columns};
    float *values = tensors_read(&k->tensors, layer, t);
    if (scale > 0)
        read_codes(k, layer, t, scale, values);
    clear_padding(&k->w, (size_t)columns, values);
    part_pairs(tensor_columns(k->w.chain, t), tensor_elements(t, &k->w), &k->w, values);
    return write_npy(dir, name, NPY_FLOAT32, 3, shape, values, st);
}

static int dump_plan(struct worker *k, struct program *p, const char *dir, bool whole,
                     struct status *st)
{
    const struct chain *c = k->w.chain;
    int64_t shape[] = {k->w.batch, k->w.seq_len, workload_hidden(&k->w)};
    program_feed(k, (struct segment){0, OP_COUNT - 1}, 0);
    if (k->ops->run(p->replay, 0, p->layers * p->part_count, st) != 0)
        return -1;
    worker_doing(k, "writing to '%s'", dir);
    for (int i = 0; i < c->carried_count; i++) {
        const int in = c->carried[i].to, out = c->carried[i].from;
        const float *values = k->reference.in[0].tensor[in];
        if (write_npy(dir, tensor_name(c, in), NPY_FLOAT32, 3, shape, values, st) != 0 ||
            dump_tensor(k, p->layers - 1, out, 0, in == TENSOR_X ? "y" : "yn", dir, st) != 0)
            return -1;
    }
    return whole ? dump_weights(k, k->w.layers, SET_OF(WEIGHT_MAX) - 1, dir, st) : 0;
}

/* Of a segment that was verified: layer 0's tensors hold its inputs. */
static int dump_segment(struct worker *k, struct program *p, const char *dir, struct status *st)
{
    struct segment s = p->parts[0].choice.segment;
    const struct chain *c = k->w.chain;
    const struct e4m3_use use = p->parts[0].e4m3;
    const bool alone = use.out >= 0 && !use.both;
    const float scale = alone ? e4m3_out_scale(&k->tensors, 0, use.out) : 0;
    uint32_t files = segment_inputs(c, s) | segment_outputs(c, s);
    tensors_poison(&k->tensors, 0, segment_outputs(c, s));
    int result = k->ops->run(p->replay, 0, 1, st);
    worker_doing(k, "writing to '%s'", dir);
    for (int t = 0; t < TENSOR_COUNT && result == 0; t++)
        if ((files >> t & 1) != 0)
            result = dump_tensor(k, 0, t, t == TENSOR_OF(s.last) ? scale : 0, tensor_name(c, t),
                                 dir, st);
    return result == 0 ? dump_weights(k, 1, segment_weights(c, s), dir, st) : -1;
}

int dump_program(struct worker *k, struct program *p, const char *dir, bool whole,
                 struct status *st)
{
    worker_doing(k, p->alone ? "running the segment" : "running the plan");
    int result = p->alone ? dump_segment(k, p, dir, st) : dump_plan(k, p, dir, whole, st);
    return result == 0 && whole ? dump_masks(&k->w, dir, st) : result;
}
