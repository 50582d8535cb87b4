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

void encoder_carve_run(const struct plan *p, struct carving *c, struct run *r)
{
    const struct fp_blocks *m = &p->mask;
    size_t batch = (size_t)p->about.batch, rows = batch * (size_t)m->blocks;
    size_t entries =
        (m->lists > 1 ? 1 : batch) * (size_t)p->mask_entries; /* lists for each sequence */
    size_t words = ((size_t)p->mask_words + rows) * FP_BLOCK;
    if (!r->local)
        r->space.lengths = encoder_carve(c, batch * sizeof(int));
    if (p->about.packed != 0 && !r->local) {
        r->space.unpacked = encoder_carve(c, batch * (size_t)p->about.seq_len * sizeof(int));
        r->space.offset = encoder_carve(c, (batch + 1) * sizeof(int));
    }
    r->space.start = encoder_carve(c, (rows + 1) * sizeof(int));
    r->space.full = encoder_carve(c, rows * sizeof(int));
    r->space.key_block = encoder_carve(c, entries * sizeof(int));
    r->space.bits = encoder_carve(c, entries * sizeof(int));
    r->space.words = encoder_carve(c, words * sizeof(uint64_t));
}

/* A list for each sequence. */
static void cut_lists(const struct run *r, struct fp_blocks *out)
{
    const struct fp_blocks *from = &r->plan->mask;
    const struct lengths_space *s = &r->space;
    int lists = r->plan->about.batch, spare = (int)r->plan->mask_words;
    memcpy(s->words, from->words, (size_t)spare * FP_BLOCK * sizeof(*s->words));
    s->start[0] = 0;
    for (int at = 0; at < lists * from->blocks; at++) {
        int b = at / from->blocks, block = at % from->blocks, entry = s->start[at];
        struct fp_list_row row = {.key_block = s->key_block + entry, .bits = s->bits + entry};
        fp_cut_row(from, from->lists > 1 ? at : block, block * FP_BLOCK, s->lengths[b], spare + at,
                   s->words + (size_t)(spare + at) * FP_BLOCK, &row);
        s->start[at + 1] = entry + row.count;
        s->full[at] = row.full;
    }
    *out =
        (struct fp_blocks){lists, from->blocks, s->start, s->full, s->key_block, s->bits, s->words};
}

static void list_tokens(struct run *r)
{
    const struct lengths_space *s = &r->space;
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

/* The norm of one row; gamma null: the row as it is, beta null: zeros. */
static void normalise(const float *x, const float *gamma, const float *beta, double eps,
                      int columns, float *out)
{
    double mean = 0, variance = 0;
    for (int c = 0; c < columns && !encoder_has(ENCODER_RMS); c++)
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
    const float *gamma = r->e->weight[FIRST_GAMMA], *beta = r->e->weight[FIRST_BETA];
    for (int b = 0; b < r->plan->about.batch; b++) {
        const float *from = (const float *)((const char *)x + place_in_run(r, b));
        float *to = (float *)((char *)n + place_in_run(r, b));
        int rows = encoder_length(r, b);
#pragma omp parallel for
        for (int i = 0; i < rows; i++)
            normalise(from + (long)i * columns, gamma, beta, r->e->eps, columns,
                      to + (long)i * columns);
    }
    return ENCODER_OK;
}

void encoder_share_lengths(const struct run *r, struct run *local)
{
    local->space.lengths = r->space.lengths;
    local->space.unpacked = r->space.unpacked;
    local->space.offset = r->space.offset;
}

int encoder_begin(struct run *r)
{
    r->args.mask = r->plan->mask;
    if (!r->padded)
        return ENCODER_OK;
    for (int b = 0; b < r->plan->about.batch && !r->local; b++)
        r->space.lengths[b] = encoder_length(r, b);
    r->args.lengths = r->space.lengths;
    cut_lists(r, &r->args.mask);
    if (r->packed && !r->local)
        list_tokens(r);
    return ENCODER_OK;
}

int encoder_launch(struct run *r, int layer, int segment)
{
    const struct plan_segment *s = &r->plan->segments[segment];
    (void)layer;
    memcpy(r->args.knob, s->knob, sizeof(r->args.knob));
    s->run(&r->args);
    return ENCODER_OK;
}
