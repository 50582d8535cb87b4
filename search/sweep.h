/* search, continued: the rows of a table of workloads, in which order and by whom they are
 * searched. Nothing here depends on the machine, a database, the locale or the time. */
#pragma once

/* Rows of equal family, batch size and sequence length are a group: a search of one takes segment
 * times over from searches of the others. */
struct sweep_row {
    const char *family; /* a text of all that names the workload, but for the members below */
    const char *mask;
    int batch, seq_len;
    int index; /* in the table */
    int shard; /* filled by sweep_shards() */
};

/* Sorts rows so that each follows what is most like it: families, in them groups by rising number
 * of tokens, in a group the mask "full" first. */
void sweep_order(struct sweep_row *rows, int count);

/* Deals rows in the order of sweep_order() to the shards 0..shards-1: groups, the most expensive
 * first, each to the shard that has the least so far.  A group of more than SWEEP_GROUP_MOST of an
 * even share is dealt row by row.  A row's cost: 1 + tokens / 512. */
#define SWEEP_GROUP_MOST 1.25
void sweep_shards(struct sweep_row *rows, int count, int shards);

/* The position of the row that a device takes next, -1 if there is none: of the group of its last
 * row, else of a group that nobody began, else any.  taken: (count) which rows are taken; last: the
 * position of its last row, -1 at first. */
int sweep_next(const struct sweep_row *rows, int count, const bool *taken, int last);
