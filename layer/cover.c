#include "layer/blocks_int.h"

enum { STEP_MAX = 1024, ROWS_SAMPLED = 4, GAPS_MIN = 3 };

/* ---- orders of tokens ------------------------------------------------------------------------ */

/* The tokens by their place; places past the last token hold -1. */
static int *new_order(int blocks)
{
    int *tokens = mem_alloc((size_t)blocks * MASK_BLOCK, sizeof(*tokens));
    for (int i = 0; i < blocks * MASK_BLOCK; i++)
        tokens[i] = -1;
    return tokens;
}

/* 0, step, 2 step, ..., then 1, 1 + step, ... */
static int *residue_order(int seq_len, int blocks, int step)
{
    int *tokens = new_order(blocks), n = 0;
    for (int residue = 0; residue < step; residue++)
        for (int i = residue; i < seq_len; i += step)
            tokens[n++] = i;
    return tokens;
}

/* The columns marked come first. */
static int *summary_order(int seq_len, int blocks, const bool *first)
{
    int *tokens = new_order(blocks), n = 0;
    for (int marked = 1; marked >= 0; marked--)
        for (int j = 0; j < seq_len; j++)
            if (first[j] == (marked == 1))
                tokens[n++] = j;
    return tokens;
}

/* ---- parts ----------------------------------------------------------------------------------- */

/* Which kept elements (i, j) a part holds.  Stripes are the elements with (i - j) mod step = 0 and
 * |i - j| >= step. */
enum held { HELD_ALL, HELD_STRIPES, HELD_OTHERS };

/* What all parts of a cover are made from. */
struct source {
    const struct mask *mask;
    int batch;
    const int *lengths;
};

/* Puts the elements of one row that a part holds into a panel; place: of each key. */
static void fill_row(const struct mask_view *v, int row, int r, enum held held, int step,
                     const int *place, struct panel *p)
{
    for (int k = 0; k < p->blocks; k++)
        for (uint64_t bits = mask_row_word(v, row, k); bits != 0; bits &= bits - 1) {
            int key = k * MASK_BLOCK + __builtin_ctzll(bits);
            bool stripe = held != HELD_ALL && key != row && (key - row) % step == 0;
            if (held != HELD_ALL && stripe != (held == HELD_STRIPES))
                continue;
            p->words[(size_t)(place[key] / MASK_BLOCK) * MASK_BLOCK + r] |=
                (uint64_t)1 << place[key] % MASK_BLOCK;
        }
}

/* Where each key lies in an order; keys in their own order where `tokens` is null. */
static int *places(const int *tokens, int blocks)
{
    int *place = mem_alloc((size_t)blocks * MASK_BLOCK, sizeof(*place));
    for (int i = 0; i < blocks * MASK_BLOCK; i++)
        if (tokens == NULL)
            place[i] = i;
        else if (tokens[i] >= 0)
            place[tokens[i]] = i;
    return place;
}

/* Builds the lists of a part whose orders are set. */
static void fill_part(const struct source *s, enum held held, struct cover_part *part)
{
    struct lists_writer to;
    SCOPED_BY(panel_release) struct panel p;
    int blocks = s->mask->row_words, *place = places(part->key_token, blocks);
    lists_open(&to, &part->blocks, mask_views(s->mask, s->batch, s->lengths), blocks);
    panel_init(&p, blocks);
    for (int list = 0; list < part->blocks.lists; list++) {
        struct mask_view v = mask_view_of(s->mask, s->lengths, list);
        for (int query = 0; query < blocks; query++) {
            panel_clear(&p);
            for (int r = 0; r < MASK_BLOCK; r++) {
                int at = query * MASK_BLOCK + r;
                int row = part->query_token == NULL ? at : part->query_token[at];
                if (row < 0 || row >= v.length)
                    continue;
                p.real |= (uint64_t)1 << r;
                fill_row(&v, row, r, held, part->step, place, &p);
            }
            lists_add(&to, &p);
        }
    }
    lists_close(&to, s->batch);
    free(place);
}

static int64_t entries_of(const struct block_lists *l)
{
    return l->blocks_full + l->blocks_partial;
}

int64_t cover_entries(const struct cover *c)
{
    int64_t n = 0;
    for (int i = 0; i < c->parts; i++)
        n += entries_of(&c->part[i].blocks);
    return n;
}

/* ---- finding a step -------------------------------------------------------------------------- */

/* Counts the gaps between the kept keys of a row that are not neighbours. */
static void count_gaps(const struct mask_view *v, int row, int gaps[STEP_MAX + 1])
{
    int before = -1;
    for (int k = 0; k < v->row_words; k++)
        for (uint64_t bits = mask_row_word(v, row, k); bits != 0; bits &= bits - 1) {
            int key = k * MASK_BLOCK + __builtin_ctzll(bits), gap = key - before;
            if (before >= 0 && gap > 1 && gap <= STEP_MAX)
                gaps[gap]++;
            before = key;
        }
}

/* The gap that most gaps in a few rows have; 0 if there is none. */
static int find_step(const struct mask *m)
{
    struct mask_view v = mask_view_of(m, NULL, 0);
    int gaps[STEP_MAX + 1] = {0}, all = 0, step = 0;
    for (int64_t n = 1; n <= ROWS_SAMPLED; n++)
        count_gaps(&v, (int)((m->seq_len - 1) * n / ROWS_SAMPLED), gaps);
    for (int gap = 2; gap <= STEP_MAX; gap++) {
        all += gaps[gap];
        if (gaps[gap] > gaps[step])
            step = gap;
    }
    return gaps[step] >= GAPS_MIN && 2 * gaps[step] > all ? step : 0;
}

/* ---- finding summary columns ----------------------------------------------------------------- */

static int by_value(const void *a, const void *b)
{
    return *(const int *)a - *(const int *)b;
}

/* In how many query blocks each column is kept, in all lists. */
static int *column_uses(const struct source *s)
{
    int blocks = s->mask->row_words;
    int *uses = mem_alloc((size_t)blocks * MASK_BLOCK, sizeof(*uses));
    for (int list = 0; list < mask_views(s->mask, s->batch, s->lengths); list++) {
        struct mask_view v = mask_view_of(s->mask, s->lengths, list);
        for (int query = 0; query < blocks; query++)
            for (int k = 0; k < blocks; k++) {
                uint64_t any = 0;
                for (int r = 0; r < MASK_BLOCK; r++)
                    any |= mask_row_word(&v, query * MASK_BLOCK + r, k);
                for (; any != 0; any &= any - 1)
                    uses[k * MASK_BLOCK + __builtin_ctzll(any)]++;
            }
    }
    return uses;
}

/* Marks the columns that more than twice as many query blocks use as the median column; returns
 * how many there are. */
static int find_summary(const struct source *s, bool *marked)
{
    int n = s->mask->seq_len, count = 0;
    SCOPED int *uses = column_uses(s);
    SCOPED int *sorted = mem_alloc((size_t)n, sizeof(*sorted));
    memcpy(sorted, uses, (size_t)n * sizeof(*sorted));
    qsort(sorted, (size_t)n, sizeof(*sorted), by_value);
    int median = sorted[n / 2], most = median > 0 ? 2 * median : 2;
    for (int j = 0; j < n; j++) {
        marked[j] = uses[j] > most;
        count += marked[j];
    }
    return count;
}

/* ---- covers ---------------------------------------------------------------------------------- */

/* The stripes by residue, and before them what is off the step in plain order; everything by
 * residue where little is off the step, at most an element a row, and one part takes no more
 * blocks. */
static void cover_by_residue(const struct source *s, int step, struct cover *out)
{
    int n = s->mask->seq_len, blocks = s->mask->row_words;
    struct cover_part *others = &out->part[0], *stripes = &out->part[1];
    *out = (struct cover){.parts = 2};
    *others = (struct cover_part){.step = step};
    *stripes = (struct cover_part){.query_order = ORDER_RESIDUE,
                                   .key_order = ORDER_RESIDUE,
                                   .step = step,
                                   .query_token = residue_order(n, blocks, step),
                                   .key_token = residue_order(n, blocks, step)};
    fill_part(s, HELD_STRIPES, stripes);
    fill_part(s, HELD_OTHERS, others);
    if (others->blocks.kept > (int64_t)s->batch * n)
        return;
    struct cover_part all = *stripes;
    fill_part(s, HELD_ALL, &all);
    if (entries_of(&all.blocks) > cover_entries(out)) {
        block_lists_release(&all.blocks);
        return;
    }
    block_lists_release(&others->blocks);
    block_lists_release(&stripes->blocks);
    *out = (struct cover){.parts = 1, .part = {all}};
}

static void cover_by_summary(const struct source *s, struct cover *out)
{
    int n = s->mask->seq_len, blocks = s->mask->row_words;
    SCOPED bool *marked = mem_alloc((size_t)n, sizeof(*marked));
    int count = find_summary(s, marked);
    *out = (struct cover){.parts = 0};
    if (count > 0 && count < n) {
        *out = (struct cover){.parts = 1};
        out->part[0] = (struct cover_part){.key_order = ORDER_SUMMARY,
                                           .summary = count,
                                           .key_token = summary_order(n, blocks, marked)};
        fill_part(s, HELD_ALL, &out->part[0]);
    }
}

/* Keeps the cover with fewer entries in *best and releases the other one.  A cover of no part is
 * none. */
static void keep_better(int64_t *least, struct cover *best, struct cover *other)
{
    if (other->parts == 0 || cover_entries(other) >= *least) {
        cover_release(other);
        return;
    }
    *least = cover_entries(other);
    cover_release(best);
    *best = *other;
}

void cover_build(const struct mask *m, int batch, const int *lengths,
                 const struct block_lists *plain, struct cover *out)
{
    const struct source s = {m, batch, lengths};
    struct cover other;
    int64_t least = entries_of(plain);
    int step = find_step(m);
    *out = (struct cover){.parts = 0};
    if (step > 0) {
        cover_by_residue(&s, step, &other);
        keep_better(&least, out, &other);
    }
    cover_by_summary(&s, &other);
    keep_better(&least, out, &other);
}

void cover_release(struct cover *c)
{
    if (c == NULL)
        return;
    for (int i = 0; i < c->parts; i++) {
        free(c->part[i].query_token);
        free(c->part[i].key_token);
        block_lists_release(&c->part[i].blocks);
    }
    *c = (struct cover){.parts = 0};
}

static void add_order(enum token_order order, const struct cover_part *p, struct buf *out)
{
    if (order == ORDER_PLAIN)
        buf_adds(out, " in order");
    else if (order == ORDER_RESIDUE)
        buf_addf(out, " by residue modulo %d", p->step);
    else
        buf_addf(out, " with %d summary columns first", p->summary);
}

void cover_part_text(const struct cover_part *p, struct buf *out)
{
    buf_adds(out, "queries");
    if (p->query_order != p->key_order) {
        add_order(p->query_order, p, out);
        buf_adds(out, ", keys");
    } else {
        buf_adds(out, " and keys");
    }
    add_order(p->key_order, p, out);
    buf_addf(out, ": %lld full and %lld partial blocks", (long long)p->blocks.blocks_full,
             (long long)p->blocks.blocks_partial);
}
