#include "search/search.h"

static bool same_group(const struct sweep_row *a, const struct sweep_row *b)
{
    return a->batch == b->batch && a->seq_len == b->seq_len && strcmp(a->family, b->family) == 0;
}

static double cost_of(const struct sweep_row *row)
{
    const double tokens_of_one = 512; /* a search takes twice as long at so many tokens */
    return 1 + (double)row->batch * row->seq_len / tokens_of_one;
}

static int compare_numbers(int64_t a, int64_t b)
{
    return (a > b) - (a < b);
}

static int compare_rows(const void *pa, const void *pb)
{
    const struct sweep_row *a = pa, *b = pb;
    int by = strcmp(a->family, b->family);
    if (by == 0)
        by = compare_numbers((int64_t)a->batch * a->seq_len, (int64_t)b->batch * b->seq_len);
    if (by == 0)
        by = compare_numbers(a->seq_len, b->seq_len);
    if (by == 0)
        by = compare_numbers(strcmp(a->mask, "full") != 0, strcmp(b->mask, "full") != 0);
    if (by == 0)
        by = strcmp(a->mask, b->mask);
    return by != 0 ? by : compare_numbers(a->index, b->index);
}

void sweep_order(struct sweep_row *rows, int count)
{
    qsort(rows, (size_t)count, sizeof(*rows), compare_rows);
}

/* ---- shards ---------------------------------------------------------------------------------- */

/* What is dealt as one. */
struct part {
    int first, count;
    double cost;
};

static int compare_parts(const void *pa, const void *pb)
{
    const struct part *a = pa, *b = pb;
    int by = (a->cost < b->cost) - (a->cost > b->cost);
    return by != 0 ? by : compare_numbers(a->first, b->first);
}

static int parts_of(const struct sweep_row *rows, int count, double most, struct part *out)
{
    int n = 0;
    for (int i = 0, end; i < count; i = end) {
        double cost = 0;
        for (end = i; end < count && same_group(&rows[i], &rows[end]); end++)
            cost += cost_of(&rows[end]);
        bool whole = cost <= most;
        if (whole)
            out[n++] = (struct part){i, end - i, cost};
        for (int k = i; k < end && !whole; k++)
            out[n++] = (struct part){k, 1, cost_of(&rows[k])};
    }
    return n;
}

void sweep_shards(struct sweep_row *rows, int count, int shards)
{
    SCOPED struct part *parts = mem_alloc((size_t)count + 1, sizeof(*parts));
    double *load = mem_alloc((size_t)shards, sizeof(*load)), total = 0;
    for (int i = 0; i < count; i++)
        total += cost_of(&rows[i]);
    int n = parts_of(rows, count, SWEEP_GROUP_MOST * total / shards, parts);
    qsort(parts, (size_t)n, sizeof(*parts), compare_parts);
    for (int i = 0; i < n; i++) {
        int least = 0;
        for (int k = 1; k < shards; k++)
            if (load[k] < load[least])
                least = k;
        load[least] += parts[i].cost;
        for (int k = 0; k < parts[i].count; k++)
            rows[parts[i].first + k].shard = least;
    }
    free(load);
}

/* ---- devices --------------------------------------------------------------------------------- */

/* Whether a row of its group is taken. */
static bool is_begun(const struct sweep_row *rows, int count, const bool *taken, int row)
{
    for (int i = 0; i < count; i++)
        if (taken[i] && same_group(&rows[i], &rows[row]))
            return true;
    return false;
}

int sweep_next(const struct sweep_row *rows, int count, const bool *taken, int last)
{
    int any = -1, fresh = -1;
    for (int i = 0; i < count; i++) {
        if (taken[i])
            continue;
        if (last >= 0 && same_group(&rows[i], &rows[last]))
            return i;
        if (any < 0)
            any = i;
        if (fresh < 0 && !is_begun(rows, count, taken, i))
            fresh = i;
    }
    return fresh >= 0 ? fresh : any;
}
