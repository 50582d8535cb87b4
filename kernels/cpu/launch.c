/* What of a run depends on its target: a CPU. */
#ifndef _POSIX_C_SOURCE
#define _POSIX_C_SOURCE 200809L /* for a compiler that is told -std=c11 */
#endif

#include "lengths.h"
#include "plan.h"

#include <math.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

/* ---- scratch memory of the segments, see common.h -------------------------------------------- */

float *encoder_scratch(size_t count);

static pthread_key_t scratch_key;
static pthread_once_t scratch_once = PTHREAD_ONCE_INIT;

static void make_scratch_key(void)
{
    if (pthread_key_create(&scratch_key, free) != 0)
        abort();
}

float *encoder_scratch(size_t count)
{
    enum { LINE = 64, PAGE_FLOATS = 1024 };
    static _Thread_local struct {
        float *data;
        size_t count;
    } scratch;
    if (count <= scratch.count)
        return scratch.data;
    pthread_once(&scratch_once, make_scratch_key);
    free(scratch.data);
    scratch.count = (count + PAGE_FLOATS - 1) / PAGE_FLOATS * PAGE_FLOATS;
    scratch.data = aligned_alloc(LINE, scratch.count * sizeof(float));
    if (scratch.data == NULL || pthread_setspecific(scratch_key, scratch.data) != 0)
        abort();
    return scratch.data;
}

/* ---- a run ----------------------------------------------------------------------------------- */

/* Lists for each sequence. */
static void carve_lists(const struct plan_mask *m, size_t batch, struct carving *c,
                        struct run_mask *out)
{
    size_t rows = batch * (size_t)m->lists.blocks;
    size_t entries = (m->lists.lists > 1 ? 1 : batch) * (size_t)m->entries;
    size_t words = ((size_t)m->words + rows) * FP_BLOCK;
    out->start = encoder_carve(c, (rows + 1) * sizeof(int));
    out->full = encoder_carve(c, rows * sizeof(int));
    out->key_block = encoder_carve(c, entries * sizeof(int));
    out->bits = encoder_carve(c, entries * sizeof(int));
    out->words = encoder_carve(c, words * sizeof(uint64_t));
}

void encoder_carve_run(const struct plan *p, struct carving *c, struct run *r)
{
    size_t batch = (size_t)p->about.batch;
    r->space.lengths = encoder_carve(c, batch * sizeof(int));
    if (p->about.packed != 0) {
        r->space.unpacked = encoder_carve(c, batch * (size_t)p->about.seq_len * sizeof(int));
        r->space.offset = encoder_carve(c, (batch + 1) * sizeof(int));
    }
    for (int kind = 0; kind < encoder_kinds(); kind++)
        carve_lists(&p->masks[kind], batch, c, &r->masks[kind]);
}

/* A list for each sequence. */
static void cut_lists(const struct plan_mask *m, const int *lengths, int lists,
                      struct run_mask *out)
{
    const struct fp_blocks *from = &m->lists;
    int spare = (int)m->words;
    memcpy(out->words, from->words, (size_t)spare * FP_BLOCK * sizeof(*out->words));
    out->start[0] = 0;
    for (int at = 0; at < lists * from->blocks; at++) {
        int b = at / from->blocks, block = at % from->blocks, entry = out->start[at];
        struct fp_list_row row = {.key_block = out->key_block + entry, .bits = out->bits + entry};
        fp_cut_row(from, from->lists > 1 ? at : block, block * FP_BLOCK, lengths[b], spare + at,
                   out->words + (size_t)(spare + at) * FP_BLOCK, &row);
        out->start[at + 1] = entry + row.count;
        out->full[at] = row.full;
    }
    out->lists = (struct fp_blocks){lists,          from->blocks, out->start, out->full,
                                    out->key_block, out->bits,    out->words};
}

static void list_tokens(struct run *r)
{
    const struct run_space *s = &r->space;
    int n = 0;
    for (int b = 0; b < r->plan->about.batch; b++) {
        s->offset[b] = n;
        for (int i = 0; i < s->lengths[b]; i++)
            s->unpacked[n++] = b * r->plan->about.seq_len + i;
    }
    s->offset[r->plan->about.batch] = n;
    r->args.unpacked = s->unpacked;
    r->args.offset = s->offset;
}

static size_t row_bytes(void)
{
    return (size_t)encoder_library.hidden * sizeof(float);
}

/* Where a sequence's rows lie in r->x and r->y. */
static size_t place_in_run(const struct run *r, int sequence)
{
    size_t rows = r->packed ? (size_t)r->space.offset[sequence]
                            : (size_t)sequence * (size_t)r->plan->about.seq_len;
    return rows * row_bytes();
}

int encoder_take_x(const struct run *r)
{
    const struct encoder_call *c = r->call;
    size_t pitch = (size_t)c->seq_len * row_bytes();
    for (int b = 0; b < c->batch; b++)
        memcpy((char *)r->x + place_in_run(r, b), (const char *)c->x + (size_t)b * pitch,
               (size_t)encoder_length(r, b) * row_bytes());
    return ENCODER_OK;
}

int encoder_give(const struct run *r, void *from, void *to)
{
    const struct encoder_call *c = r->call;
    size_t pitch = (size_t)c->seq_len * row_bytes();
    for (int b = 0; b < c->batch; b++) {
        char *rows = (char *)to + (size_t)b * pitch;
        size_t bytes = (size_t)encoder_length(r, b) * row_bytes();
        if (from != to)
            memcpy(rows, (const char *)from + place_in_run(r, b), bytes);
        memset(rows + bytes, 0, pitch - bytes);
    }
    return ENCODER_OK;
}

/* The norm of one row, an RMS norm or a layernorm; gamma null: the row as it is, beta null: zeros.
 */
static void normalise(const float *x, const float *gamma, const float *beta, bool rms, double eps,
                      int columns, float *out)
{
    double mean = 0, variance = 0;
    for (int c = 0; c < columns && !rms; c++)
        mean += (double)x[c] / columns;
    for (int c = 0; c < columns; c++)
        variance += (x[c] - mean) * (x[c] - mean) / columns;
    for (int c = 0; c < columns; c++)
        out[c] = gamma == NULL ? x[c]
                               : (float)((x[c] - mean) / sqrt(variance + eps) * gamma[c] +
                                         (beta != NULL ? beta[c] : 0));
}

int encoder_normalise(const struct run *r, const void *x, void *n)
{
    const int columns = encoder_library.hidden;
    const bool rms = encoder_has(ENCODER_RMS);
    const float *gamma = r->e->weight[FIRST_GAMMA], *beta = r->e->weight[FIRST_BETA];
    for (int b = 0; b < r->plan->about.batch; b++) {
        const float *from = (const float *)((const char *)x + place_in_run(r, b));
        float *to = (float *)((char *)n + place_in_run(r, b));
        int rows = encoder_length(r, b);
#pragma omp parallel for
        for (int i = 0; i < rows; i++)
            normalise(from + (long)i * columns, gamma, beta, rms, r->e->eps, columns,
                      to + (long)i * columns);
    }
    return ENCODER_OK;
}

static bool is_token(const struct encoder_embedding *e, int row)
{
    if (e->mask != NULL)
        return e->mask[row] != 0;
    return e->lengths == NULL || row % e->seq_len < e->lengths[row / e->seq_len];
}

static int check_ids(const struct encoder_embedding *e)
{
    for (int row = 0; row < e->batch * e->seq_len; row++) {
        const long long id = e->ids[row], type = e->types != NULL ? e->types[row] : 0;
        const bool known = id >= 0 && id < e->word_rows;
        if (is_token(e, row) && (!known || (e->type != NULL && (type < 0 || type >= e->type_rows))))
            return encoder_fail(ENCODER_BAD_ARGUMENT,
                                "%s of token %d of sequence %d is %lld; expected 0 to %ld",
                                known ? "the type" : "the id", row % e->seq_len, row / e->seq_len,
                                known ? type : id, (known ? e->type_rows : e->word_rows) - 1);
    }
    return ENCODER_OK;
}

static long position_of(const struct encoder_embedding *e, int row)
{
    const int place = row % e->seq_len;
    long count = 0;
    if (e->padding_id < 0)
        return place;
    for (int i = row - place; i <= row && e->ids[row] != e->padding_id; i++)
        count += e->ids[i] != e->padding_id;
    return e->padding_id + count;
}

int encoder_launch_embed(const struct encoder_embedding *e)
{
    const int columns = encoder_library.hidden, rows = e->batch * e->seq_len;
    const float *word = e->word, *type = e->type, *position = e->position;
    const int status = check_ids(e);
#pragma omp parallel for
    for (int row = 0; row < (status == ENCODER_OK ? rows : 0); row++) {
        float *x = (float *)e->x + (long)row * columns;
        const long t = e->types != NULL ? e->types[row] : 0;
        if (!is_token(e, row))
            continue;
        memcpy(x, word + e->ids[row] * columns, row_bytes());
        for (int c = 0; c < columns && type != NULL; c++)
            x[c] += type[t * columns + c];
        for (int c = 0; c < columns && position != NULL; c++)
            x[c] += position[position_of(e, row) * columns + c];
        normalise(x, e->gamma, e->beta, false, e->eps, columns, x);
    }
    return status;
}

int encoder_begin(struct run *r)
{
    const int batch = r->plan->about.batch;
    for (int b = 0; b < batch && r->padded; b++)
        r->space.lengths[b] = encoder_length(r, b);
    for (int kind = 0; kind < encoder_kinds(); kind++)
        if (r->padded)
            cut_lists(&r->plan->masks[kind], r->space.lengths, batch, &r->masks[kind]);
        else
            r->masks[kind].lists = r->plan->masks[kind].lists;
    if (r->padded)
        r->args.lengths = r->space.lengths;
    if (r->packed)
        list_tokens(r);
    return ENCODER_OK;
}

int encoder_launch(struct run *r, int layer, int segment)
{
    const struct plan_segment *s = &r->plan->segments[segment];
    r->args.mask = r->masks[encoder_kind(layer)].lists;
    memcpy(r->args.knob, s->knob, sizeof(r->args.knob));
    s->run(&r->args);
    return ENCODER_OK;
}
