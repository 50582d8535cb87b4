/* The mask on the device: once for sequences without padding, and in each call with lengths. */
#include "launch.h"

#include <stdlib.h>

/* ---- once ------------------------------------------------------------------------------------ */

/* Arrays on their way into one block of device memory.  A null base counts the bytes. */
struct upload {
    struct carving to;
    int status;
};

static void *upload(struct upload *u, const void *from, long count, size_t each)
{
    size_t bytes = (size_t)count * each;
    void *at = encoder_carve(&u->to, bytes);
    if (u->to.base != NULL && u->status == ENCODER_OK && count > 0)
        u->status = encoder_device_copy(at, from, bytes, false);
    return at;
}

static void upload_lists(struct upload *u, const struct plan_mask *m, const int *order,
                         struct fp_blocks *out)
{
    const struct fp_blocks *from = &m->lists;
    long rows = (long)from->lists * from->blocks;
    *out = *from;
    out->order = upload(u, order, rows, sizeof(int));
    out->start = upload(u, from->start, rows + 1, sizeof(int));
    out->full = upload(u, from->full, rows, sizeof(int));
    out->key_block = upload(u, from->key_block, m->entries, sizeof(int));
    out->bits = upload(u, from->bits, m->entries, sizeof(int));
    out->words = upload(u, from->words, m->words * FP_BLOCK, sizeof(fp_word));
}

enum { HEAD = 32 }; /* entries of a tile that lie in fp_tiles.head; lanes read as many behind */

static void upload_tiles(struct upload *u, const struct plan_tiles *t,
                         const struct fp_blocks *lists, struct fp_tiles *out)
{
    size_t entry = (size_t)t->entry_ints * sizeof(int);
    out->count = t->count;
    out->parts = t->parts;
    if (t->most > 0)
        return;
    out->tile = upload(u, t->tile, t->count, 4 * sizeof(int));
    out->head = upload(u, t->head, (long)t->count * HEAD, entry);
    out->rest = upload(u, t->rest, t->rest_entries + HEAD, entry);
    out->words = lists->words;
    if (t->words == NULL)
        return;
    out->words = upload(u, t->words, t->word_blocks * FP_BLOCK, sizeof(fp_word));
    out->query_token = upload(u, t->query_token, t->tokens, sizeof(int));
    out->key_token = upload(u, t->key_token, t->tokens, sizeof(int));
}

static void upload_all(struct upload *u, const struct plan_mask *m, const int *order,
                       struct device_mask *out)
{
    upload_lists(u, m, order, &out->lists);
    if (m->tiles != NULL)
        upload_tiles(u, m->tiles, &out->lists, &out->tiles);
}

/* The query blocks, the blocks with the most key blocks first, so that the last lists are short.
 * The caller frees; null where memory runs out. */
static int *sort_blocks(const struct fp_blocks *m)
{
    int rows = m->lists * m->blocks, n = 0;
    int *order = malloc((size_t)rows * sizeof(*order));
    for (int entries = m->blocks; order != NULL && entries >= 0; entries--)
        for (int i = 0; i < rows; i++)
            if (m->start[i + 1] - m->start[i] == entries)
                order[n++] = i;
    return order;
}

int encoder_mask_open(const struct plan_mask *m, struct device_mask *out)
{
    int *order = sort_blocks(&m->lists);
    struct upload u = {.status = ENCODER_OK};
    if (order == NULL)
        return encoder_fail(ENCODER_NO_MEMORY, "out of memory");
    upload_all(&u, m, order, out);
    u.status = encoder_device_allocate(u.to.used, &out->memory);
    u.to = (struct carving){.base = out->memory};
    if (u.status == ENCODER_OK)
        upload_all(&u, m, order, out);
    free(order);
    return u.status;
}

/* ---- in each call ---------------------------------------------------------------------------- */

/* How many sequences of a batch share a list of the mask, and a row of its tiles. */
static int sequences(const struct plan_mask *m, int batch)
{
    return m->lists.lists > 1 ? 1 : batch;
}

/* Lists for each sequence. */
static void carve_lists(const struct plan_mask *m, int batch, struct carving *c,
                        struct fp_cut_lists *out)
{
    size_t rows = (size_t)batch * (size_t)m->lists.blocks;
    size_t entries = (size_t)sequences(m, batch) * (size_t)m->entries;
    size_t words = ((size_t)m->words + rows) * FP_BLOCK;
    out->start = encoder_carve(c, (rows + 1) * sizeof(int));
    out->full = encoder_carve(c, rows * sizeof(int));
    out->key_block = encoder_carve(c, entries * sizeof(int));
    out->bits = encoder_carve(c, entries * sizeof(int));
    out->words = encoder_carve(c, words * sizeof(fp_word));
}

static long tile_words(const struct plan_mask *m)
{
    return m->tiles->words != NULL ? m->tiles->word_blocks : m->words;
}

static void carve_tiles(const struct plan_mask *m, int batch, struct carving *c,
                        struct fp_cut_tiles *out)
{
    const struct plan_tiles *t = m->tiles;
    size_t each = (size_t)sequences(m, batch), count = (size_t)t->count * each;
    size_t rest = (size_t)t->rest_entries * each, entry = (size_t)t->entry_ints * sizeof(int);
    size_t words = (size_t)tile_words(m) + (count * HEAD + rest) * (size_t)t->rows;
    out->tile = encoder_carve(c, count * 4 * sizeof(int));
    out->head = encoder_carve(c, count * HEAD * entry);
    out->rest = encoder_carve(c, (rest + HEAD) * entry);
    out->words = encoder_carve(c, words * FP_BLOCK * sizeof(fp_word));
}

static void carve_joined(const struct plan_tiles *t, struct carving *c, struct fp_join_tiles *out)
{
    out->tile = encoder_carve(c, (size_t)t->count * 4 * sizeof(int));
    out->head = encoder_carve(c, (size_t)t->count * HEAD * 2 * sizeof(int));
    out->words = encoder_carve(c, (size_t)t->count * (size_t)t->most * FP_BLOCK * sizeof(fp_word));
}

void encoder_carve_run(const struct plan *p, struct carving *c, struct run *r)
{
    long sync_words = 1, workspace_bytes = 1;
    for (int s = 0; s < p->about.kernels; s++) {
        const struct plan_segment *of = &p->segments[s];
        sync_words = of->sync_words > sync_words ? of->sync_words : sync_words;
        workspace_bytes =
            of->workspace_bytes > workspace_bytes ? of->workspace_bytes : workspace_bytes;
    }
    const size_t batch = (size_t)p->about.batch;
    r->space.sync_bytes = (size_t)sync_words * sizeof(unsigned);
    r->args.sync = encoder_carve(c, r->space.sync_bytes);
    r->args.workspace = encoder_carve(c, (size_t)workspace_bytes);
    r->space.lengths = encoder_carve(c, batch * sizeof(int));
    r->space.unpacked = encoder_carve(c, batch * (size_t)p->about.seq_len * sizeof(int));
    r->space.offset = encoder_carve(c, (batch + 1) * sizeof(int));
    r->space.place = encoder_carve(c, batch * (size_t)p->about.seq_len * sizeof(int));
    for (int kind = 0; kind < encoder_kinds(); kind++) {
        const struct plan_mask *m = &p->masks[kind];
        carve_lists(m, p->about.batch, c, &r->masks[kind].cut_lists);
        if (m->tiles != NULL && m->tiles->most > 0)
            carve_joined(m->tiles, c, &r->masks[kind].join_tiles);
        else if (m->tiles != NULL)
            carve_tiles(m, p->about.batch, c, &r->masks[kind].cut_tiles);
    }
}

int encoder_launch_outside(const struct run *r, const void *kernel, void *argument, int blocks,
                           int threads)
{
    void *parameters[] = {argument};
    struct cudaLaunchAttribute_st attribute = {
        .id = cudaLaunchAttributeProgrammaticStreamSerialization,
        .val.programmaticStreamSerializationAllowed = 1};
    struct cudaLaunchConfig_st config = {.gridDim = {(unsigned)blocks, 1, 1},
                                         .blockDim = {(unsigned)threads, 1, 1},
                                         .stream = (cudaStream_t)r->stream,
                                         .attrs = &attribute,
                                         .numAttrs = r->began && r->e->device->dependent};
    return encoder_check(cudaLaunchKernelExC(&config, kernel, parameters),
                         "cannot launch a kernel");
}

static int copy_words(const struct run *r, fp_word *to, const fp_word *from, long blocks)
{
    if (blocks == 0)
        return ENCODER_OK;
    return encoder_check(cudaMemcpyAsync(to, from, (size_t)blocks * FP_BLOCK * sizeof(*to),
                                         cudaMemcpyDeviceToDevice, (cudaStream_t)r->stream),
                         "cannot copy the mask");
}

/* lengths.cu; as C sees kernels. */
void encoder_clear_words(void);
void encoder_take_lengths(void);
void encoder_read_mask(void);
void encoder_cut_lists(void);
void encoder_cut_tiles(void);
void encoder_join_tiles(void);

static struct fp_clearing clearing_of(const struct run *r)
{
    return (struct fp_clearing){r->args.sync, (int)(r->space.sync_bytes / sizeof(unsigned))};
}

/* Thread blocks of the kernels that clear counters and list tokens: one for so many counters or
 * sequences. */
static int blocks_for(int count, int each)
{
    enum { MOST = 128 };
    int blocks = (count + each - 1) / each;
    return blocks < MOST ? blocks : MOST;
}

int encoder_clear(const struct run *r)
{
    struct fp_clearing c = clearing_of(r);
    const int threads = c.count < 1024 ? 128 : 1024;
    return encoder_launch_outside(r, (const void *)encoder_clear_words, &c,
                                  blocks_for(c.count, threads), threads);
}

int encoder_lengths_take(const struct run *r)
{
    int batch = r->plan->about.batch, status = ENCODER_OK;
    for (int first = 0; first < batch && status == ENCODER_OK; first += FP_LENGTHS_CHUNK) {
        struct fp_lengths_chunk c = {.count = batch - first, .to = r->space.lengths + first};
        c.count = c.count < FP_LENGTHS_CHUNK ? c.count : FP_LENGTHS_CHUNK;
        for (int i = 0; i < c.count; i++)
            c.value[i] = encoder_length(r, first + i);
        status = encoder_launch_outside(r, (const void *)encoder_take_lengths, &c, 1, 128);
    }
    return status;
}

bool encoder_rows_given(const struct run *r)
{
    bool products = false;
    for (int s = 0; s < r->plan->about.kernels; s++)
        products = products || r->plan->segments[s].product != NULL;
    return products && r->packed && r->call->device_lengths == NULL && r->call->device_mask == NULL;
}

static int real_tokens(const struct run *r)
{
    int sum = 0;
    for (int b = 0; b < r->plan->about.batch; b++)
        sum += encoder_length(r, b);
    return sum;
}

/* The first kind's kernel clears the counters, takes the call's lengths and lists tokens, too: no
 * mask decides these. */
static int cut_lists(struct run *r, int kind)
{
    enum { THREADS = 1024 };
    const struct plan_mask *m = &r->plan->masks[kind];
    struct run_mask *mask = &r->masks[kind];
    struct fp_cut_lists *c = &mask->cut_lists;
    if (kind == 0) {
        c->clearing = clearing_of(r);
        c->given = (struct fp_given_lengths){.batch = r->call->batch,
                                             .seq_len = r->call->seq_len,
                                             .count = r->plan->about.batch,
                                             .from = r->call->device_lengths,
                                             .to = r->space.lengths};
        c->unpacked = r->packed ? r->space.unpacked : NULL;
        c->offset = r->space.offset;
    }
    c->batch = r->plan->about.batch;
    c->seq_len = r->plan->about.seq_len;
    c->lengths = r->space.lengths;
    c->from = mask->lists;
    c->from_words = (int)m->words;
    const int clearing = blocks_for(c->clearing.count, THREADS);
    const int listing = c->unpacked == NULL ? 1 : blocks_for(c->batch, 1);
    const int blocks = clearing > listing ? clearing : listing;
    int status = copy_words(r, c->words, c->from.words, m->words);
    if (status == ENCODER_OK)
        status = encoder_launch_outside(r, (const void *)encoder_cut_lists, c, blocks, THREADS);
    mask->lists = (struct fp_blocks){c->batch,     c->from.blocks, c->start, c->full,
                                     c->key_block, c->bits,        c->words, NULL};
    return status;
}

static int cut_tiles(struct run *r, int kind)
{
    enum { THREADS = 64 };
    const struct plan_mask *m = &r->plan->masks[kind];
    const struct plan_tiles *t = m->tiles;
    struct run_mask *mask = &r->masks[kind];
    struct fp_cut_tiles *c = &mask->cut_tiles;
    c->batch = r->plan->about.batch;
    c->seq_len = r->plan->about.seq_len;
    c->blocks = m->lists.blocks;
    c->lists = m->lists.lists;
    c->lengths = r->space.lengths;
    c->from = mask->tiles;
    c->rows = t->rows;
    c->entry_ints = t->entry_ints;
    c->rest_entries = (int)t->rest_entries;
    c->from_words = (int)tile_words(m);
    int count = t->count * sequences(m, c->batch);
    int status = copy_words(r, c->words, c->from.words, tile_words(m));
    if (status == ENCODER_OK)
        status = encoder_launch_outside(r, (const void *)encoder_cut_tiles, c,
                                        (count + THREADS - 1) / THREADS, THREADS);
    mask->tiles = (struct fp_tiles){.count = count,
                                    .parts = t->parts,
                                    .tile = c->tile,
                                    .head = c->head,
                                    .rest = c->rest,
                                    .words = c->words,
                                    .query_token = c->from.query_token,
                                    .key_token = c->from.key_token};
    return status;
}

static int join_tiles(struct run *r, int kind)
{
    enum { THREADS = FP_BLOCK };
    const struct plan_tiles *t = r->plan->masks[kind].tiles;
    struct fp_join_tiles *c = &r->masks[kind].join_tiles;
    c->batch = r->plan->about.batch;
    c->seq_len = r->plan->about.seq_len;
    c->left = t->left;
    c->right = t->right;
    c->most = t->most;
    c->lengths = r->padded ? r->space.lengths : NULL;
    c->offset = r->packed ? r->space.offset : NULL;
    r->masks[kind].tiles = (struct fp_tiles){
        .count = t->count, .parts = 1, .tile = c->tile, .head = c->head, .words = c->words};
    return encoder_launch_outside(r, (const void *)encoder_join_tiles, c, t->count, THREADS);
}

int encoder_joined_begin(struct run *r)
{
    int status = ENCODER_OK;
    for (int kind = 0; kind < encoder_kinds() && status == ENCODER_OK; kind++)
        if (r->plan->masks[kind].tiles != NULL && r->plan->masks[kind].tiles->most > 0)
            status = join_tiles(r, kind);
    return status;
}

static int read_mask(const struct run *r)
{
    enum { THREADS = 128 };
    struct fp_reading c = {.batch = r->call->batch,
                           .seq_len = r->call->seq_len,
                           .count = r->plan->about.batch,
                           .mask = r->call->device_mask,
                           .lengths = r->space.lengths,
                           .place = r->space.place};
    return encoder_launch_outside(r, (const void *)encoder_read_mask, &c, c.count, THREADS);
}

int encoder_lengths_begin(struct run *r)
{
    int status = r->call->device_mask != NULL ? read_mask(r) : ENCODER_OK;
    for (int kind = 0; kind < encoder_kinds() && status == ENCODER_OK; kind++) {
        status = cut_lists(r, kind);
        const struct plan_tiles *tiles = r->plan->masks[kind].tiles;
        if (status == ENCODER_OK && tiles != NULL && tiles->most == 0)
            status = cut_tiles(r, kind);
    }
    if (status == ENCODER_OK)
        status = encoder_joined_begin(r);
    r->args.lengths = r->space.lengths;
    if (r->packed) {
        r->args.unpacked = r->space.unpacked;
        r->args.offset = r->space.offset;
    }
    if (encoder_rows_given(r))
        r->args.tokens = real_tokens(r);
    else if (r->packed)
        r->args.live = r->space.offset + r->plan->about.batch;
    return status;
}
